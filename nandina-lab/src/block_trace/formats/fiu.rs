//! FIU: traces of a department's servers, with a hash of the content.
//!
//! The name of the process may have spaces, so fields are counted from the end.

use crate::block_trace::field::{NANOSECONDS, number_wrong, sectors, whole, whole_time, wrong};
use crate::block_trace::format::{Format, Line, Parser, Stated};
use crate::block_trace::request::Kind;

pub(in crate::block_trace) const FORMAT: Format = Format {
    key: "fiu",
    name: "FIU",
    columns: "time-in-ns pid process sector sectors R-or-W major minor [MD5]",
    parser: |_| Box::new(Fiu),
};

struct Fiu;

impl Parser for Fiu {
    fn line<'l>(&mut self, line: &'l str) -> Result<Line<'l>, String> {
        let is_hash = |text: &str| text.len() == 32 && text.bytes().all(|b| b.is_ascii_hexdigit());
        let line = match line.trim_end().rsplit_once(' ') {
            Some((line, hash)) if is_hash(hash) => line,
            _ => line.trim_end(),
        };
        let mut last = line.rsplitn(6, ' ');
        let mut next = || last.next().ok_or_else(|| number_wrong("too few", FORMAT.columns));
        let (minor, major, kind, size) = (next()?, next()?, next()?, next()?);
        let (sector, begin) = (next()?, next()?);
        let mut begin = begin.splitn(3, ' ');
        let at = begin.next().unwrap_or_default();
        let time_ns = whole_time(1, at, NANOSECONDS)?;
        let pid = begin.next().unwrap_or_default();
        whole(2, "pid", pid)?;
        let start = sectors(4, "sector", sector)?;
        let bytes = sectors(5, "sectors", size)?;
        let kind = match kind {
            "R" => Kind::Read,
            "W" => Kind::Write,
            _ => return Err(wrong(6, "operation", kind, "R or W")),
        };
        for (field, name, text) in [(7, "major", major), (8, "minor", minor)] {
            whole(field, name, text)?;
        }
        let volume = &line[line.len() - major.len() - 1 - minor.len()..];
        Ok(Line::Request(Stated { kind, volume, start, bytes, time_ns }))
    }
}
