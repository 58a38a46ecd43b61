//! blkparse: the text that Linux's blktrace is printed as.
//!
//! A request passes several actions, and each is a line. So that it counts once, the lines of one
//! action are its requests and all others are put aside. The summary at the end is, too.

use crate::block_trace::field::{SECONDS, number_wrong, sectors, time, whole, wrong};
use crate::block_trace::format::{Format, Line, Parser, Stated};
use crate::block_trace::request::Kind;

pub(in crate::block_trace) const FORMAT: Format = Format {
    key: "blkparse",
    name: "blkparse",
    columns: "device cpu number time-in-s pid action RWBS sector + sectors",
    parser: |choices| Box::new(Blkparse { action: choices.action, began: false, ended: false }),
};

struct Blkparse {
    action: char,
    began: bool,
    /// The summary has begun.
    ended: bool,
}

impl Parser for Blkparse {
    fn line<'l>(&mut self, line: &'l str) -> Result<Line<'l>, String> {
        // The summary has a part for each processor, or only one in all.
        self.ended |= self.began && (line.starts_with("CPU") || line.starts_with("Total"));
        if self.ended {
            return Ok(Line::Aside("lines of the summary"));
        }
        let mut fields = line.split_ascii_whitespace();
        let mut begin = [""; 7];
        for (at, field) in begin.iter_mut().enumerate() {
            let missing = || number_wrong(&at.to_string(), FORMAT.columns);
            *field = match fields.next() {
                Some(field) => field,
                // Some actions have no RWBS.
                None if at == 6 => "",
                None => return Err(missing()),
            };
        }
        let [volume, cpu, _, at, _, action, rwbs] = begin;
        let is_device = |(major, minor): (&str, &str)| {
            major.parse::<u32>().is_ok() && minor.parse::<u32>().is_ok()
        };
        if !volume.split_once(',').is_some_and(is_device) {
            return Err(wrong(1, "device", volume, "major,minor"));
        }
        whole(2, "cpu", cpu)?;
        let time_ns = time(4, at, SECONDS)?;
        if action.len() > 2 || !action.bytes().all(|byte| byte.is_ascii_alphabetic()) {
            return Err(wrong(6, "action", action, "a letter such as Q, D or C"));
        }
        self.began = true;
        if !action.starts_with(self.action) || action.len() != 1 {
            return Ok(Line::Aside("lines of other actions"));
        }
        let Some(kind) = kind(rwbs) else {
            return Ok(Line::Refused("commands without read, write, discard or flush"));
        };
        let place = (fields.next(), fields.next(), fields.next());
        let (start, bytes) = match (kind, place) {
            (Kind::Flush, _) => (0, 0),
            (_, (Some(sector), Some("+"), Some(count))) => {
                (sectors(8, "sector", sector)?, sectors(10, "sectors", count)?)
            }
            // A write that carries only the order to flush.
            (Kind::Write, (Some(process), ..)) if process.starts_with('[') => {
                return Ok(Line::Request(Stated {
                    kind: Kind::Flush,
                    volume,
                    start: 0,
                    bytes: 0,
                    time_ns,
                }));
            }
            _ => return Err(format!("the place is missing: {} was expected", FORMAT.columns)),
        };
        Ok(Line::Request(Stated { kind, volume, start, bytes, time_ns }))
    }
}

/// What RWBS says: an F before the others is a flush that goes ahead of them.
fn kind(rwbs: &str) -> Option<Kind> {
    let operation = match rwbs.strip_prefix('F') {
        None => rwbs,
        Some(behind) if behind.starts_with(['R', 'W', 'D']) => behind,
        Some(_) => return Some(Kind::Flush),
    };
    match operation.chars().next() {
        Some('R') => Some(Kind::Read),
        Some('W') => Some(Kind::Write),
        Some('D') => Some(Kind::Trim),
        _ => None,
    }
}
