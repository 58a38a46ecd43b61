//! fio's iolog, version 2: the requests of a benchmark, without times except `wait`.

use crate::block_trace::field::{bytes, exactly, number_wrong, shown, wrong};
use crate::block_trace::format::{Format, Line, Parser, Stated};
use crate::block_trace::request::Kind;

pub(in crate::block_trace) const FORMAT: Format = Format {
    key: "fio",
    name: "fio iolog v2",
    columns: "file action [byte bytes]",
    parser: |_| Box::new(Fio { began: false, time_ns: 0 }),
};

const HEADER: &str = "fio version 2 iolog";

struct Fio {
    began: bool,
    /// The sum of what was waited.
    time_ns: u64,
}

impl Parser for Fio {
    fn line<'l>(&mut self, line: &'l str) -> Result<Line<'l>, String> {
        if !std::mem::replace(&mut self.began, true) {
            if line.trim_end() != HEADER {
                return Err(format!("'{}': the header '{HEADER}' was expected", shown(line)));
            }
            return Ok(Line::Aside("header"));
        }
        let (file, action) = match line.split_once(' ') {
            Some((file, rest)) => (file, rest.split(' ').next().unwrap_or_default()),
            None => return Err(number_wrong("1", FORMAT.columns)),
        };
        let kind = match action {
            "add" | "open" | "close" => return Ok(Line::Aside("files added, opened or closed")),
            "wait" => {
                let [_, _, wait] = exactly(line.split(' ').take(3), "file wait microseconds")?;
                let wait: u64 = wait
                    .parse()
                    .map_err(|_| wrong(3, "wait", wait, "a whole number of microseconds"))?;
                self.time_ns = self.time_ns.saturating_add(wait.saturating_mul(1000));
                return Ok(Line::Aside("waits"));
            }
            "sync" | "datasync" => Kind::Flush,
            "read" => Kind::Read,
            "write" => Kind::Write,
            "trim" => Kind::Trim,
            _ => {
                let expected = "read, write, trim, sync, datasync, wait, add, open or close";
                return Err(wrong(2, "action", action, expected));
            }
        };
        let (mut start, mut length) = (0, 0);
        if kind != Kind::Flush {
            let [_, _, offset, size] = exactly(line.split(' '), FORMAT.columns)?;
            start = bytes(3, "offset", offset)?;
            length = bytes(4, "length", size)?;
        }
        let time_ns = Some(self.time_ns);
        Ok(Line::Request(Stated { kind, volume: file, start, bytes: length, time_ns }))
    }
}
