//! An unstable page in an image: its two states, in hexadecimal digits.

use nandina::flash::Geometry;
use serde::{Deserialize, Serialize};

use crate::unstable::Unstable;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UnstableFields {
    /// Main data and spare area, two digits a byte; empty if all of it is ones.
    old: String,
    new: String,
    faint: bool,
    overwritten: bool,
}

impl From<&Unstable> for UnstableFields {
    fn from(unstable: &Unstable) -> Self {
        let Unstable { old, new, faint, overwritten } = unstable;
        Self { old: text(old), new: text(new), faint: *faint, overwritten: *overwritten }
    }
}

impl UnstableFields {
    /// Returns the page, or `None` if its states do not fit this chip's pages.
    pub fn into_unstable(self, geometry: &Geometry) -> Option<Unstable> {
        let length = geometry.page_bytes as usize + geometry.spare_bytes as usize;
        let (old, new) = (bytes(&self.old, length)?, bytes(&self.new, length)?);
        Some(Unstable { old, new, faint: self.faint, overwritten: self.overwritten })
    }
}

fn text(bytes: &[u8]) -> String {
    if bytes.iter().all(|&byte| byte == 0xFF) {
        return String::new();
    }
    let digit = |value: u8| char::from(b"0123456789abcdef"[usize::from(value)]);
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

fn bytes(text: &str, length: usize) -> Option<Vec<u8>> {
    if text.is_empty() {
        return Some(vec![0xFF; length]);
    }
    let digit = |digit: u8| char::from(digit).to_digit(16).map(|value| value as u8);
    let pairs = text.as_bytes().chunks(2);
    let bytes = pairs.map(|pair| Some(digit(pair[0])? << 4 | digit(*pair.get(1)?)?));
    bytes.collect::<Option<Vec<u8>>>().filter(|bytes| bytes.len() == length)
}
