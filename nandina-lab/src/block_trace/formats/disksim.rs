//! DiskSim: five columns with times in milliseconds.
//!
//! The columns are those of SSDsim, whose times are nanoseconds.

use crate::block_trace::field::{MILLISECONDS, exactly, sectors, time, whole, wrong};
use crate::block_trace::format::{Format, Line, Parser, Stated};
use crate::block_trace::request::Kind;

pub(in crate::block_trace) const FORMAT: Format = Format {
    key: "disksim",
    name: "DiskSim",
    columns: "time-in-ms device sector sectors flags",
    parser: |_| Box::new(DiskSim),
};

struct DiskSim;

impl Parser for DiskSim {
    fn line<'l>(&mut self, line: &'l str) -> Result<Line<'l>, String> {
        let [at, volume, sector, size, flags] =
            exactly(line.split_ascii_whitespace(), FORMAT.columns)?;
        let time_ns = time(1, at, MILLISECONDS)?;
        whole(2, "device", volume)?;
        let (start, bytes) = (sectors(3, "sector", sector)?, sectors(4, "sectors", size)?);
        // Bit 0 is set for a read; other bits say how it is waited for.
        let flags = u32::from_str_radix(flags, 16)
            .map_err(|_| wrong(5, "flags", flags, "a hexadecimal number, odd for a read,"))?;
        let kind = if flags & 1 == 1 { Kind::Read } else { Kind::Write };
        Ok(Line::Request(Stated { kind, volume, start, bytes, time_ns }))
    }
}
