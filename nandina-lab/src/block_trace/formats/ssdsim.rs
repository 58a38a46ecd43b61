//! SSDsim and MQSim: five columns with times in nanoseconds.
//!
//! The columns are those of DiskSim, whose times are milliseconds.

use crate::block_trace::field::{NANOSECONDS, exactly, sectors, whole, whole_time, wrong};
use crate::block_trace::format::{Format, Line, Parser, Stated};
use crate::block_trace::request::Kind;

pub(in crate::block_trace) const FORMAT: Format = Format {
    key: "ssdsim",
    name: "SSDsim, MQSim",
    columns: "time-in-ns device sector sectors 0-write-or-1-read",
    parser: |_| Box::new(SsdSim),
};

struct SsdSim;

impl Parser for SsdSim {
    fn line<'l>(&mut self, line: &'l str) -> Result<Line<'l>, String> {
        let [at, volume, sector, size, kind] =
            exactly(line.split_ascii_whitespace(), FORMAT.columns)?;
        let time_ns = whole_time(1, at, NANOSECONDS)?;
        whole(2, "device", volume)?;
        let (start, bytes) = (sectors(3, "sector", sector)?, sectors(4, "sectors", size)?);
        let kind = match kind {
            "0" => Kind::Write,
            "1" => Kind::Read,
            _ => return Err(wrong(5, "operation", kind, "0 for a write or 1 for a read")),
        };
        Ok(Line::Request(Stated { kind, volume, start, bytes, time_ns }))
    }
}
