//! The lines of a text, one after the other, each with its number.
//!
//! A line that is too long or is no text is an error, reported without reading the rest of it.
//!
//! A general CSV reader accepts lines of any length and numbers a row after empty lines by the
//! first of them. A trace of gigabytes needs a bound, and its errors the right line.

use std::io::{BufRead, Read};

/// What is wrong with a trace.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Mistake {
    /// The line, from 1.
    pub line: u64,
    /// What is wrong and what was expected, with the field where it is in one.
    pub what: String,
}

impl Mistake {
    pub(crate) fn new(line: u64, what: String) -> Self {
        Self { line, what }
    }
}

/// Bytes of a line, at most: digits of the longest key and value, and names.
pub(crate) const LINE_BYTES_MAX: usize = 2 * (64 + 65_535) + 64;

/// What some programs write before a text.
const BYTE_ORDER_MARK: &[u8] = "\u{FEFF}".as_bytes();

/// Reads lines.
pub(crate) struct Lines<R> {
    from: R,
    bytes: Vec<u8>,
    number: u64,
}

impl<R: BufRead> Lines<R> {
    pub(crate) fn new(from: R) -> Self {
        Self { from, bytes: Vec::new(), number: 0 }
    }

    /// The next line that is neither empty nor a comment (`#`), and its number from 1.
    pub(crate) fn next(&mut self) -> Result<Option<(u64, &str)>, Mistake> {
        loop {
            self.number += 1;
            let fail = |what: String| Mistake::new(self.number, what);
            self.bytes.clear();
            let mut line = self.from.by_ref().take(LINE_BYTES_MAX as u64 + 1);
            line.read_until(b'\n', &mut self.bytes)
                .map_err(|error| fail(format!("cannot be read: {error}")))?;
            if self.number == 1 && self.bytes.starts_with(BYTE_ORDER_MARK) {
                self.bytes.drain(..BYTE_ORDER_MARK.len());
            } else if self.bytes.is_empty() {
                return Ok(None);
            }
            if self.bytes.len() > LINE_BYTES_MAX {
                return Err(fail(format!(
                    "the line is longer than {LINE_BYTES_MAX} bytes: one operation a line was expected"
                )));
            }
            if !self.bytes.trim_ascii().is_empty() && self.bytes[0] != b'#' {
                break;
            }
        }
        let text = std::str::from_utf8(&self.bytes);
        let text = text.map_err(|_| Mistake::new(self.number, "this is not text".into()))?;
        Ok(Some((self.number, text.trim_end_matches(['\n', '\r']))))
    }
}
