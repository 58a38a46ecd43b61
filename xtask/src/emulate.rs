//! Runs an image in the emulator, within a time limit, and returns its report.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::count::{self, Counts};
use crate::image::Image;
use crate::tools::Board;

/// The limit of a run; it normally takes seconds.
const LIMIT: Duration = Duration::from_secs(300);

/// An image's report: names and values.
pub type Said = BTreeMap<String, String>;

/// Runs the image in a folder of its own, where the file of the chip's pages is.
///
/// `word` is the command line of the image, if it has one.
pub fn run(
    image: &Image,
    word: Option<&str>,
    board: Board,
    folder: PathBuf,
    plugin: Option<&Path>,
) -> Result<(Said, Option<Counts>), String> {
    std::fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let out = folder.canonicalize().map_err(|error| error.to_string())?.join("counts");
    // A count of an earlier run must not be read as this one's.
    let _ = std::fs::remove_file(&out);
    let mut emulator = Command::new("qemu-system-arm");
    emulator
        .current_dir(&folder)
        .args(["-M", board.name, "-nographic", "-monitor", "none", "-serial", "none"])
        .args(["-icount", "shift=6", "-semihosting-config"])
        .arg(match word {
            Some(word) => format!("enable=on,target=native,arg={word}"),
            None => "enable=on,target=native".to_owned(),
        })
        .arg("-kernel")
        .arg(image.path.canonicalize().map_err(|error| error.to_string())?)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    if let Some(plugin) = plugin {
        emulator.arg("-plugin").arg(count::argument(plugin, &out, &image.marks));
    }
    let mut child =
        emulator.spawn().map_err(|error| format!("the emulator does not start: {error}"))?;
    let text = read_apart(child.stdout.take());
    let noise = read_apart(child.stderr.take());
    let ended = wait(&mut child);
    let (text, noise) = (text.join().unwrap_or_default(), noise.join().unwrap_or_default());
    let said = parse(&text);
    match ended {
        Some(true) if said.get("passed").is_some_and(|passed| passed == "yes") => {
            let counts = std::fs::read_to_string(&out).ok().and_then(|text| count::read(&text));
            Ok((said, counts))
        }
        Some(_) => Err(said.get("failed").map_or_else(
            || format!("the run ended early\n{text}{noise}"),
            |failure| format!("{failure}\n{text}"),
        )),
        None => Err(format!("stopped after {} s\n{text}{noise}", LIMIT.as_secs())),
    }
}

fn read_apart(stream: Option<impl Read + Send + 'static>) -> thread::JoinHandle<String> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut stream) = stream {
            // After an error, the output before it is all there is.
            let _ = stream.read_to_end(&mut bytes);
        }
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

/// Whether the child succeeded; `None` if it had to be stopped.
fn wait(child: &mut Child) -> Option<bool> {
    let begin = Instant::now();
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Some(status.success()),
            Ok(None) if begin.elapsed() < LIMIT => thread::sleep(Duration::from_millis(20)),
            _ => {
                let _ = child.kill();
                let _ = child.wait();
                return None;
            }
        }
    }
}

fn parse(text: &str) -> Said {
    let pair = |line: &str| line.split_once(' ').map(|(name, is)| (name.to_owned(), is.to_owned()));
    text.lines().filter_map(pair).collect()
}

#[cfg(test)]
mod tests {
    #[test]
    fn lines_are_names_and_what_they_are() {
        let said = super::parse("board microbit\nnonsense\nfailed a scan ended early\n");
        assert_eq!(said["board"], "microbit");
        assert_eq!(said["failed"], "a scan ended early");
        assert_eq!(said.len(), 2);
    }
}
