//! MSR Cambridge: CSV of a week of 36 volumes, with or without a leading number and a space.

use crate::block_trace::field::{TICKS, bytes, exactly, whole, whole_time, wrong};
use crate::block_trace::format::{Format, Line, Parser, Stated};
use crate::block_trace::request::Kind;

pub(in crate::block_trace) const FORMAT: Format = Format {
    key: "msr",
    name: "MSR Cambridge",
    columns: "time in 100 ns,host,disk,Read or Write,byte,bytes,response in 100 ns",
    parser: |_| Box::new(Msr),
};

struct Msr;

impl Parser for Msr {
    fn line<'l>(&mut self, line: &'l str) -> Result<Line<'l>, String> {
        let line = match line.split_once(' ') {
            Some((number, line)) if number.parse::<u64>().is_ok() => line,
            _ => line,
        };
        let [at, host, disk, kind, offset, size, response] =
            exactly(line.split(','), FORMAT.columns)?;
        // These times are since the year 1601: only their differences count.
        let time_ns = whole_time(1, at, TICKS)?;
        whole(3, "disk", disk)?;
        let kind = match kind {
            "Read" => Kind::Read,
            "Write" => Kind::Write,
            _ => return Err(wrong(4, "type", kind, "Read or Write")),
        };
        let (start, bytes) = (bytes(5, "offset", offset)?, bytes(6, "size", size)?);
        whole_time(7, response, TICKS)?;
        // Host and disk are neighbours in the line.
        let volume = &line[at.len() + 1..][..host.len() + 1 + disk.len()];
        Ok(Line::Request(Stated { kind, volume, start, bytes, time_ns }))
    }
}
