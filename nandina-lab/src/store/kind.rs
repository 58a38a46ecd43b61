//! The kinds of an image's keys and values, as people read them, and their bytes.
//!
//! Keys are encoded so that they order as people expect, numbers in values little-endian. Every
//! kind has one size, as the index has.

use std::fmt;
use std::str::FromStr;

use nandina::key;
use serde::Serialize;

/// A kind of key or value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// A whole number from 0 to 4294967295, 4 bytes.
    U32,
    /// A whole number from -2147483648 to 2147483647, 4 bytes.
    I32,
    /// A whole number from 0 to 18446744073709551615, 8 bytes.
    U64,
    /// A whole number from -9223372036854775808 to 9223372036854775807, 8 bytes.
    I64,
    /// UTF-8 of at most this many bytes, padded with zero bytes.
    ///
    /// It contains no zero byte; keys order as bytes.
    Text(u16),
    /// Exactly this many bytes, written as hexadecimal digits.
    Hex(u16),
}

/// A key or value as people read it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(untagged)]
pub enum Cell {
    /// A number that cannot be negative.
    Unsigned(u64),
    /// A number.
    Signed(i64),
    /// Text or hexadecimal digits.
    Text(String),
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unsigned(number) => write!(f, "{number}"),
            Self::Signed(number) => write!(f, "{number}"),
            Self::Text(text) => f.write_str(text),
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::U32 => f.write_str("u32"),
            Self::I32 => f.write_str("i32"),
            Self::U64 => f.write_str("u64"),
            Self::I64 => f.write_str("i64"),
            Self::Text(bytes) => write!(f, "text:{bytes}"),
            Self::Hex(bytes) => write!(f, "hex:{bytes}"),
        }
    }
}

impl FromStr for Kind {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let sized = |bytes: &str| bytes.parse().ok();
        let kind = match (text, text.split_once(':')) {
            ("u32", _) => Some(Self::U32),
            ("i32", _) => Some(Self::I32),
            ("u64", _) => Some(Self::U64),
            ("i64", _) => Some(Self::I64),
            (_, Some(("text", bytes))) => sized(bytes).map(Self::Text),
            (_, Some(("hex", bytes))) => sized(bytes).map(Self::Hex),
            _ => None,
        };
        kind.ok_or_else(|| {
            "choose u32, i32, u64, i64, text:N or hex:N, N being bytes, at most 65535".into()
        })
    }
}

impl Kind {
    /// Bytes of every key or value of this kind.
    pub const fn bytes(self) -> u16 {
        match self {
            Self::U32 | Self::I32 => 4,
            Self::U64 | Self::I64 => 8,
            Self::Text(bytes) | Self::Hex(bytes) => bytes,
        }
    }

    /// The bytes of a key, or what was expected instead of `text`.
    pub fn key(self, text: &str) -> Result<Vec<u8>, String> {
        Ok(match self {
            Self::U32 => key::from_u32(self.number(text)?).to_vec(),
            Self::I32 => key::from_i32(self.number(text)?).to_vec(),
            Self::U64 => key::from_u64(self.number(text)?).to_vec(),
            Self::I64 => key::from_i64(self.number(text)?).to_vec(),
            Self::Text(_) | Self::Hex(_) => self.padded(text)?,
        })
    }

    /// The bytes of a value, or what was expected instead of `text`.
    pub fn value(self, text: &str) -> Result<Vec<u8>, String> {
        Ok(match self {
            Self::U32 => self.number::<u32>(text)?.to_le_bytes().to_vec(),
            Self::I32 => self.number::<i32>(text)?.to_le_bytes().to_vec(),
            Self::U64 => self.number::<u64>(text)?.to_le_bytes().to_vec(),
            Self::I64 => self.number::<i64>(text)?.to_le_bytes().to_vec(),
            Self::Text(_) | Self::Hex(_) => self.padded(text)?,
        })
    }

    fn number<N: FromStr>(self, text: &str) -> Result<N, String> {
        let range = match self {
            Self::U32 => "0 to 4294967295",
            Self::I32 => "-2147483648 to 2147483647",
            Self::U64 => "0 to 18446744073709551615",
            _ => "-9223372036854775808 to 9223372036854775807",
        };
        text.trim().parse().map_err(|_| {
            format!("'{}' is not {self}: a whole number from {range} was expected", shown(text))
        })
    }

    fn padded(self, text: &str) -> Result<Vec<u8>, String> {
        let size = usize::from(self.bytes());
        let wrong = |what: String| format!("'{}' is not {self}: {what}", shown(text));
        if let Self::Hex(_) = self {
            let digits: Option<Vec<u8>> =
                text.chars().map(|c| c.to_digit(16).map(|digit| digit as u8)).collect();
            return match digits {
                Some(digits) if digits.len() == 2 * size => {
                    Ok(digits.chunks_exact(2).map(|pair| pair[0] << 4 | pair[1]).collect())
                }
                _ => Err(wrong(format!("{} hexadecimal digits were expected", 2 * size))),
            };
        }
        if text.contains('\0') {
            return Err(wrong("it has a zero byte, which ends a text".into()));
        }
        if text.len() > size {
            return Err(wrong(format!("it has {} bytes, at most {size} fit", text.len())));
        }
        let mut bytes = text.as_bytes().to_vec();
        bytes.resize(size, 0);
        Ok(bytes)
    }

    /// A key as people read it.
    ///
    /// If `bytes` does not have the kind's size, it is shown as digits.
    pub fn key_cell(self, bytes: &[u8]) -> Cell {
        match (self, bytes.try_into(), bytes.try_into()) {
            (Self::U32, Ok(four), _) => Cell::Unsigned(key::to_u32(four).into()),
            (Self::I32, Ok(four), _) => Cell::Signed(key::to_i32(four).into()),
            (Self::U64, _, Ok(eight)) => Cell::Unsigned(key::to_u64(eight)),
            (Self::I64, _, Ok(eight)) => Cell::Signed(key::to_i64(eight)),
            _ => self.padded_cell(bytes),
        }
    }

    /// A value as people read it.
    ///
    /// If `bytes` does not have the kind's size, it is shown as digits.
    pub fn value_cell(self, bytes: &[u8]) -> Cell {
        match (self, bytes.try_into(), bytes.try_into()) {
            (Self::U32, Ok(four), _) => Cell::Unsigned(u32::from_le_bytes(four).into()),
            (Self::I32, Ok(four), _) => Cell::Signed(i32::from_le_bytes(four).into()),
            (Self::U64, _, Ok(eight)) => Cell::Unsigned(u64::from_le_bytes(eight)),
            (Self::I64, _, Ok(eight)) => Cell::Signed(i64::from_le_bytes(eight)),
            _ => self.padded_cell(bytes),
        }
    }

    fn padded_cell(self, bytes: &[u8]) -> Cell {
        if let Self::Text(_) = self {
            let end = bytes.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
            return Cell::Text(String::from_utf8_lossy(&bytes[..end]).into_owned());
        }
        Cell::Text(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
    }
}

/// The beginning of a cell, in one line.
fn shown(text: &str) -> String {
    text.chars().take(30).map(|c| if c.is_control() { ' ' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_gives_back_what_was_put_in() {
        for (kind, texts) in [
            ("u32", &["0", "4294967295"][..]),
            ("i32", &["-2147483648", "7"]),
            ("u64", &["18446744073709551615"]),
            ("i64", &["-9223372036854775808"]),
            ("text:5", &["", "μm/s", "a b"]),
            ("hex:3", &["00ff7a"]),
        ] {
            let kind: Kind = kind.parse().unwrap();
            assert_eq!(kind.to_string().parse(), Ok(kind));
            for text in texts {
                let (key, value) = (kind.key(text).unwrap(), kind.value(text).unwrap());
                assert_eq!((key.len(), value.len()), (kind.bytes().into(), kind.bytes().into()));
                assert_eq!(kind.key_cell(&key).to_string(), *text);
                assert_eq!(kind.value_cell(&value).to_string(), *text);
            }
        }
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        for (kind, text) in [
            ("u32", "-1"),
            ("u32", "1.5"),
            ("i32", "2147483648"),
            ("u64", "abc"),
            ("i64", ""),
            ("text:3", "long"),
            ("text:3", "a\0"),
            ("hex:2", "12345"),
            ("hex:2", "12x4"),
            ("hex:2", "äöüß"),
        ] {
            let kind: Kind = kind.parse().unwrap();
            assert!(kind.key(text).is_err() && kind.value(text).is_err(), "{kind} {text}");
        }
        for text in ["u16", "text", "text:", "hex:-1", "text:70000", "u32:4", ""] {
            assert!(text.parse::<Kind>().is_err(), "{text}");
        }
    }
}
