//! SPC: the format of the Storage Performance Council and of the UMass traces.

use crate::block_trace::field::{SECONDS, bytes, exactly, sectors, time, whole, wrong};
use crate::block_trace::format::{Format, Line, Parser, Stated};
use crate::block_trace::request::Kind;

pub(in crate::block_trace) const FORMAT: Format = Format {
    key: "spc",
    name: "SPC, UMass",
    columns: "ASU,sector,bytes,r or w,time in s",
    parser: |_| Box::new(Spc),
};

struct Spc;

impl Parser for Spc {
    fn line<'l>(&mut self, line: &'l str) -> Result<Line<'l>, String> {
        // The standard allows further fields behind the fifth.
        let [volume, sector, size, kind, at] =
            exactly(line.split(',').map(str::trim).take(5), FORMAT.columns)?;
        whole(1, "ASU", volume)?;
        let (start, bytes) = (sectors(2, "LBA", sector)?, bytes(3, "size", size)?);
        let kind = match kind {
            "r" | "R" => Kind::Read,
            "w" | "W" => Kind::Write,
            _ => return Err(wrong(4, "opcode", kind, "r or w")),
        };
        let time_ns = time(5, at, SECONDS)?;
        Ok(Line::Request(Stated { kind, volume, start, bytes, time_ns }))
    }
}
