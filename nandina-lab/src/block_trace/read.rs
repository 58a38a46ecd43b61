//! Reads a trace: its file, its format, its lines, its volumes.
//!
//! A mistake stops the reading and names file, line, field and the expected unit. A request that
//! cannot be used is counted with the reason, and reading continues.

use std::collections::HashMap;
use std::io::{BufRead, Read};
use std::path::{Path, PathBuf};

use super::account::{Account, Volume};
use super::field::BYTES_MAX;
use super::format::{self, Choices, Format, Line, Parser, Stated};
use super::make::SYNTHETIC;
use super::request::{Kind, Request};
use crate::LabError;
use crate::input::packed::{self, ReadProgress};
use crate::trace::line::{Lines, Mistake};

/// Lines by which the format is found.
const DETECTED_BY: usize = 100;
/// Volumes of a trace, at most.
const VOLUMES_MAX: usize = 1000;

/// A trace in a file, which may be compressed with gzip or zstd.
pub struct BlockTrace {
    path: PathBuf,
    format: &'static Format,
    choices: Choices,
    /// Whether its first line says that it is synthetic.
    is_synthetic: bool,
}

impl BlockTrace {
    /// Opens a trace and finds its format by its first 100 lines.
    ///
    /// Refuses a file that cannot be read, and one that no format or several formats fit.
    pub fn open(path: &Path, choices: Choices) -> Result<Self, LabError> {
        let fail = |what: String| LabError(format!("{}: {what}", path.display()));
        let format = match &choices.format {
            Some(key) => format::by_key(key).map_err(LabError)?,
            None => packed::open(path, &|_| {}, |from| {
                let mut lines = Lines::new(from);
                let mut first = Vec::new();
                while first.len() < DETECTED_BY
                    && let Some((_, line)) = lines.next().map_err(|mistake| at(path, mistake))?
                {
                    first.push(line.to_string());
                }
                if first.is_empty() {
                    return Err(fail(NO_REQUEST.into()));
                }
                format::detect(&first, &choices).map_err(fail)
            })?,
        };
        let is_synthetic = packed::open(path, &|_| {}, |from| {
            let mut first = Vec::new();
            let read = from.take(SYNTHETIC.len() as u64).read_to_end(&mut first);
            Ok(read.is_ok() && first == SYNTHETIC.as_bytes())
        })?;
        Ok(Self { path: path.to_path_buf(), format, choices, is_synthetic })
    }

    /// The format.
    pub fn format(&self) -> &'static Format {
        self.format
    }

    /// The name of the file, without folders, and whether the trace is synthetic.
    ///
    /// `nandina trace make` says so in the first line of what it writes.
    pub fn name(&self) -> String {
        let name = self.path.file_name().unwrap_or(self.path.as_os_str()).to_string_lossy();
        if self.is_synthetic { format!("{name}, synthetic") } else { name.into_owned() }
    }

    /// Bytes of the file, as far as they are known: the length of its progress.
    pub fn file_bytes(&self) -> u64 {
        std::fs::metadata(&self.path).map_or(0, |file| file.len())
    }

    /// Reads the whole trace and passes every request that is used to `each`.
    ///
    /// A trace may be read several times; each gives the same. `progress` is called with bytes of
    /// the file.
    pub fn read(
        &self,
        progress: ReadProgress<'_>,
        each: &mut dyn FnMut(&Request),
    ) -> Result<Account, LabError> {
        packed::open(&self.path, progress, |from| self.lines(from, each))
    }

    /// Reads the trace once more. Fails if its requests are not those of `account`.
    pub fn read_again(
        &self,
        account: &Account,
        progress: ReadProgress<'_>,
        each: &mut dyn FnMut(&Request),
    ) -> Result<(), LabError> {
        if self.read(progress, each)? == *account {
            Ok(())
        } else {
            Err(LabError(format!("{}: the file was changed meanwhile", self.name())))
        }
    }

    fn lines(
        &self,
        from: &mut dyn BufRead,
        each: &mut dyn FnMut(&Request),
    ) -> Result<Account, LabError> {
        let mut parser = (self.format.parser)(&self.choices);
        let mut reading = Reading {
            choices: &self.choices,
            account: Account::default(),
            numbers: HashMap::new(),
            last: 0,
        };
        let mut lines = Lines::new(from);
        while let Some((number, line)) = lines.next().map_err(|mistake| at(&self.path, mistake))? {
            let read = reading.line(&mut *parser, line, each);
            read.map_err(|what| at(&self.path, Mistake { line: number, what }))?;
        }
        let account = reading.account;
        let fail = |what: String| Err(LabError(format!("{}: {what}", self.path.display())));
        if account.requests == 0 {
            return fail(format!("{NO_REQUEST}{}", account.besides()));
        }
        if let (Some(volume), true) = (&self.choices.volume, account.volumes.is_empty()) {
            return fail(format!(
                "no request is to the volume '{volume}': `nandina trace stats` lists them"
            ));
        }
        assert!(account.is_complete(), "a request is in no count: {account}");
        Ok(account)
    }
}

const NO_REQUEST: &str = "there is no request in it";

/// Why requests are refused that the format has read.
const EMPTY: &str = "of no bytes";
const FAR: &str = "behind 8 PiB";
const ELSEWHERE: &str = "to another volume";

/// The error of a line.
fn at(path: &Path, Mistake { line, what }: Mistake) -> LabError {
    LabError(format!("{}: line {line}: {what}", path.display()))
}

/// A trace while it is read.
struct Reading<'r> {
    choices: &'r Choices,
    account: Account,
    numbers: HashMap<String, usize>,
    /// The volume of the last request: most requests are to the same.
    last: usize,
}

impl Reading<'_> {
    fn line(
        &mut self,
        parser: &mut dyn Parser,
        line: &str,
        each: &mut dyn FnMut(&Request),
    ) -> Result<(), String> {
        let stated = match parser.line(line)? {
            Line::Aside(what) => {
                self.account.aside(what);
                return Ok(());
            }
            Line::Refused(reason) => Err(reason),
            Line::Request(stated) => self.usable(stated),
        };
        self.account.requests += 1;
        match stated {
            Err(reason) => self.account.refuse(reason),
            Ok(Stated { kind, volume, start, bytes, time_ns }) => {
                let request = Request { kind, volume: self.volume(volume)?, start, bytes, time_ns };
                self.account.count(&request);
                each(&request);
            }
        }
        Ok(())
    }

    /// The request, or why it cannot be used.
    fn usable<'l>(&self, stated: Stated<'l>) -> Result<Stated<'l>, &'static str> {
        if self.choices.volume.as_ref().is_some_and(|volume| volume != stated.volume) {
            return Err(ELSEWHERE);
        }
        if stated.kind == Kind::Flush {
            return Ok(Stated { start: 0, bytes: 0, ..stated });
        }
        if stated.bytes == 0 {
            return Err(EMPTY);
        }
        if stated.start.checked_add(stated.bytes).is_none_or(|end| end > BYTES_MAX) {
            return Err(FAR);
        }
        Ok(stated)
    }

    /// The number of a volume.
    fn volume(&mut self, name: &str) -> Result<usize, String> {
        let volumes = &mut self.account.volumes;
        // Most formats name none. To compare no bytes at a dangling address takes AVX-512 80 ns.
        let is_last = |Volume { name: last, .. }: &Volume| {
            if name.is_empty() { last.is_empty() } else { last == name }
        };
        if volumes.get(self.last).is_some_and(is_last) {
            return Ok(self.last);
        }
        self.last = match self.numbers.get(name) {
            Some(&number) => number,
            None if volumes.len() == VOLUMES_MAX => {
                return Err(format!(
                    "a trace may have {VOLUMES_MAX} volumes: choose one by --volume"
                ));
            }
            None => {
                volumes.push(Volume { name: name.into(), requests: 0, end: 0 });
                self.numbers.insert(name.into(), volumes.len() - 1);
                volumes.len() - 1
            }
        };
        Ok(self.last)
    }
}
