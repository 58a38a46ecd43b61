//! What a format is, the list of them, and which of them a file may have.
//!
//! No file is read here.

use super::formats;
use super::request::Kind;

/// What a user chooses about a trace.
#[derive(Clone, Debug)]
pub struct Choices {
    /// The format's key; `None` to find it by the first lines.
    pub format: Option<String>,
    /// Of blkparse, the action whose lines are the requests.
    pub action: char,
    /// The only volume whose requests are used; `None` for all.
    pub volume: Option<String>,
}

impl Default for Choices {
    /// The format is found, every volume is used, and requests are those sent to the drive.
    fn default() -> Self {
        Self { format: None, action: 'D', volume: None }
    }
}

/// A request as a line states it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Stated<'l> {
    pub kind: Kind,
    /// The volume's name, as the line gives it.
    pub volume: &'l str,
    /// The first byte in the volume.
    pub start: u64,
    pub bytes: u64,
    pub time_ns: Option<u64>,
}

/// What a line is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Line<'l> {
    /// A request.
    Request(Stated<'l>),
    /// A request that cannot be used, and why.
    Refused(&'static str),
    /// No request, and what instead.
    Aside(&'static str),
}

/// Reads the lines of one trace, in order.
pub(super) trait Parser {
    /// What the next line is, or what is wrong with it.
    ///
    /// The line has no line end, is not empty and does not start with `#`.
    fn line<'l>(&mut self, line: &'l str) -> Result<Line<'l>, String>;
}

/// A format of block traces.
pub struct Format {
    /// By which users choose it.
    pub key: &'static str,
    /// Who writes it.
    pub name: &'static str,
    /// The columns of a line with their units.
    pub columns: &'static str,
    /// Makes a parser for one reading of a trace.
    pub(super) parser: fn(&Choices) -> Box<dyn Parser>,
}

/// Every format.
pub const FORMATS: &[Format] = &[
    formats::cloudphysics::FORMAT,
    formats::msr::FORMAT,
    formats::spc::FORMAT,
    formats::blkparse::FORMAT,
    formats::fiu::FORMAT,
    formats::disksim::FORMAT,
    formats::ssdsim::FORMAT,
    formats::fio::FORMAT,
    formats::own::FORMAT,
];

/// The keys of all formats, in a list.
fn keys() -> String {
    let keys: Vec<_> = FORMATS.iter().map(|format| format.key).collect();
    keys.join(", ")
}

/// The error of a file that is no block trace begins so.
pub const NO_FORMAT: &str = "no format fits its first line";

/// How to choose one of these formats, with the columns by which they differ.
fn choice(formats: &[&Format]) -> String {
    let choices: Vec<_> = formats
        .iter()
        .map(|Format { key, columns, .. }| format!("--format {key} ({columns})"))
        .collect();
    choices.join(" or ")
}

/// The format of that key.
pub(super) fn by_key(key: &str) -> Result<&'static Format, String> {
    FORMATS
        .iter()
        .find(|format| format.key == key)
        .ok_or_else(|| format!("there is no format '{key}': choose from {}", keys()))
}

/// The one format that reads the most of these lines, at the beginning of a trace.
///
/// So a mistake in one of them is reported as a mistake of that format. The error says that no
/// format reads the first line, or that several read as many.
pub(super) fn detect(lines: &[String], choices: &Choices) -> Result<&'static Format, String> {
    let read = |format: &Format| {
        let mut parser = (format.parser)(choices);
        lines.iter().take_while(|line| parser.line(line).is_ok()).count()
    };
    let read: Vec<_> = FORMATS.iter().map(|format| (format, read(format))).collect();
    let most = read.iter().map(|&(_, lines)| lines).max().unwrap_or(0).max(1);
    let fitting: Vec<_> =
        read.iter().filter(|&&(_, lines)| lines == most).map(|&(format, _)| format).collect();
    match fitting[..] {
        [format] => Ok(format),
        [] => Err(format!("{NO_FORMAT}: choose one by --format to see why: {}", keys())),
        _ => Err(format!("more than one format fits its first lines: choose {}", choice(&fitting))),
    }
}
