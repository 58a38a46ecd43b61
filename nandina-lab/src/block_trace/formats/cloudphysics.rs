//! CloudPhysics: SCSI commands of virtual machines, as CSV.
//!
//! The operation is the SCSI opcode in hexadecimal. The header may be missing.

use crate::block_trace::field::{SECONDS, bytes, exactly, sectors, time, wrong};
use crate::block_trace::format::{Format, Line, Parser, Stated};
use crate::block_trace::request::Kind;

pub(in crate::block_trace) const FORMAT: Format = Format {
    key: "cloudphysics",
    name: "CloudPhysics",
    columns: "version,time in s,SCSI opcode,bytes,sector",
    parser: |_| Box::new(CloudPhysics { began: false }),
};

const HEADER: &str = "version,time,op,size,lbn";

struct CloudPhysics {
    began: bool,
}

impl Parser for CloudPhysics {
    fn line<'l>(&mut self, line: &'l str) -> Result<Line<'l>, String> {
        if !std::mem::replace(&mut self.began, true) && line == HEADER {
            return Ok(Line::Aside("header"));
        }
        let [version, at, opcode, size, sector] = exactly(line.split(','), FORMAT.columns)?;
        if version != "1" && version != "2" {
            return Err(wrong(1, "version", version, "1 or 2"));
        }
        let time_ns = time(2, at, SECONDS)?;
        let hexadecimal = (opcode.len() <= 2).then(|| u8::from_str_radix(opcode, 16).ok());
        let Some(opcode) = hexadecimal.flatten() else {
            return Err(wrong(3, "op", opcode, "a SCSI opcode, two hexadecimal digits,"));
        };
        let (bytes, start) = (bytes(4, "size", size)?, sectors(5, "lbn", sector)?);
        let kind = match opcode {
            0x08 | 0x28 | 0xA8 | 0x88 => Kind::Read,
            0x0A | 0x2A | 0xAA | 0x8A => Kind::Write,
            0x42 => Kind::Trim,
            0x35 | 0x91 => Kind::Flush,
            _ => return Ok(Line::Refused("SCSI commands other than read, write, unmap and flush")),
        };
        Ok(Line::Request(Stated { kind, volume: "", start, bytes, time_ns }))
    }
}
