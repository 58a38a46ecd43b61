//! The error of a command line, in one line like every other mistake.
//!
//! clap reports it in several lines; this leaves out its usage and adds where to read more.

use clap::error::{ContextKind, ContextValue, Error, ErrorKind};
use clap::{Command, CommandFactory};

use crate::arguments::Arguments;

/// Returns the mistake in one line; `None` where help or the version was requested.
pub fn one_line(error: &Error, words: &[String]) -> Option<String> {
    if !error.use_stderr() || error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        return None;
    }
    let text = error.render().to_string();
    let text = text.strip_prefix("error: ").unwrap_or(&text);
    let (command, name) = named(words);
    let mut line = String::new();
    for part in text.lines().map(str::trim).filter(|part| !part.is_empty()) {
        if part.starts_with("Usage:") || part.starts_with("For more information") {
            break;
        }
        line += match line.chars().next_back() {
            None => "",
            Some(':') => " ",
            Some(_) if part.starts_with('[') => " ",
            Some(_) => ", ",
        };
        // A range as people write it.
        line += &part.replace("..=", " to ");
    }
    if error.kind() == ErrorKind::InvalidSubcommand
        && !matches!(error.get(ContextKind::SuggestedSubcommand), Some(ContextValue::Strings(_)))
    {
        let known: Vec<_> = command.get_subcommands().map(Command::get_name).collect();
        line += &format!(", choose from {}", known.join(", "));
    }
    Some(format!("{line}; `{name} --help` lists what there is"))
}

/// The command that `words` name, as far as they name one, and its full name.
fn named(words: &[String]) -> (Command, String) {
    let mut command = Arguments::command();
    let mut name = command.get_name().to_string();
    for word in words {
        let Some(inner) = command.find_subcommand(word).cloned() else {
            break;
        };
        name += &format!(" {word}");
        command = inner;
    }
    (command, name)
}
