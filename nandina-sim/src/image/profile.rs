//! A datasheet in an image: its fields as JSON, and the checks on them.
//!
//! A chip with changed sizes, or one that is in no list, is described as fully as a listed one:
//! nothing depends on its name.

use std::collections::BTreeSet;
use std::sync::Mutex;

use nandina::flash::profile::{Ecc, PROFILES};
use nandina::flash::{Capabilities, Geometry, Pairing, Profile, Timing};
use serde::{Deserialize, Serialize};

/// The most blocks of a chip that is read.
const BLOCKS_MAX: u32 = 1 << 20;
/// The most bytes of a page, and of its spare area.
const PAGE_BYTES_MAX: u32 = 1 << 20;
/// The most bytes of a block, spare areas included.
const BLOCK_BYTES_MAX: u64 = 256 << 20;
/// The most pages of a chip.
const PAGES_MAX: u64 = 1 << 24;
/// The longest time of one part of an operation: an hour.
const TIME_MAX_NS: u64 = 3_600_000_000_000;

/// The most blocks of a chip with `pages_per_block` pages in each.
pub fn blocks_max(pages_per_block: u32) -> u32 {
    BLOCKS_MAX.min((PAGES_MAX / u64::from(pages_per_block.max(1))) as u32)
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProfileFields {
    key: String,
    summary: String,
    source: String,
    #[serde(with = "GeometryFields")]
    pub geometry: Geometry,
    #[serde(with = "CapabilityFields")]
    capabilities: Capabilities,
    #[serde(with = "TimingFields")]
    timing: Timing,
    #[serde(with = "EccFields")]
    ecc: Ecc,
    endurance: u32,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Geometry", deny_unknown_fields)]
struct GeometryFields {
    page_bytes: u32,
    spare_bytes: u32,
    pages_per_block: u32,
    blocks: u32,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Capabilities", deny_unknown_fields)]
struct CapabilityFields {
    programs_per_page: Option<u8>,
    in_order: bool,
    #[serde(with = "PairingFields")]
    pairing: Pairing,
    rewrite: bool,
    #[serde(default)]
    atomic_rewrite: bool,
    #[serde(default)]
    overwrite: bool,
    #[serde(default)]
    part_reads: bool,
    bad_blocks_per_mille: u8,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Pairing", rename_all = "snake_case")]
enum PairingFields {
    None,
    DistanceThree,
    WordLines(u8),
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Timing", deny_unknown_fields)]
struct TimingFields {
    read_ns: u64,
    read_byte_ns: u64,
    program_ns: u64,
    program_byte_ns: u64,
    erase_ns: u64,
    rewrite_extra_ns: u64,
    random_read_extra_ns: u64,
    random_program_extra_ns: u64,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Ecc", deny_unknown_fields)]
struct EccFields {
    codeword_bytes: u32,
    bits: u8,
    refresh_bits: u8,
}

impl From<&Profile> for ProfileFields {
    fn from(profile: &Profile) -> Self {
        Self {
            key: profile.key.into(),
            summary: profile.summary.into(),
            source: profile.source.into(),
            geometry: profile.geometry,
            capabilities: profile.capabilities,
            timing: profile.timing,
            ecc: profile.ecc,
            endurance: profile.endurance,
        }
    }
}

impl ProfileFields {
    /// Returns what is impossible about the chip, or `None`.
    pub fn fault(&self) -> Option<String> {
        let Geometry { page_bytes, spare_bytes, pages_per_block, blocks } = self.geometry;
        let block_bytes =
            (u64::from(page_bytes) + u64::from(spare_bytes)) * u64::from(pages_per_block);
        let timing = &self.timing;
        let times = [
            timing.read_ns,
            timing.read_byte_ns,
            timing.program_ns,
            timing.program_byte_ns,
            timing.erase_ns,
            timing.rewrite_extra_ns,
            timing.random_read_extra_ns,
            timing.random_program_extra_ns,
        ];
        let pages = u64::from(pages_per_block) * u64::from(blocks);
        let longest = times.into_iter().max().unwrap_or(0);
        let word_line = u64::from(self.capabilities.pairing != Pairing::WordLines(0));
        let programs = self.capabilities.programs_per_page.unwrap_or(1).into();
        let checks = [
            ("page_bytes", u64::from(page_bytes), 1, u64::from(PAGE_BYTES_MAX)),
            ("spare_bytes", spare_bytes.into(), 0, PAGE_BYTES_MAX.into()),
            ("the number of blocks", blocks.into(), 1, BLOCKS_MAX.into()),
            ("the bytes of a block", block_bytes, 1, BLOCK_BYTES_MAX),
            ("the number of pages", pages, 1, PAGES_MAX),
            ("programs_per_page", programs, 1, 255),
            ("the pages of a word line", word_line, 1, 255),
            ("codeword_bytes", self.ecc.codeword_bytes.into(), 1, u32::MAX.into()),
            ("a time in nanoseconds", longest, 0, TIME_MAX_NS),
        ];
        checks.into_iter().find(|(_, value, least, most)| !(least..=most).contains(&value)).map(
            |(what, value, least, most)| {
                format!("{what} is {value}, {least} to {most} was expected")
            },
        )
    }

    /// Returns the datasheet. The fields must have passed [`fault`](Self::fault).
    pub fn into_profile(self) -> Profile {
        Profile {
            key: kept(self.key),
            summary: kept(self.summary),
            source: kept(self.source),
            geometry: self.geometry,
            capabilities: self.capabilities,
            timing: self.timing,
            ecc: self.ecc,
            endurance: self.endurance,
        }
    }
}

/// Returns the same text with a static lifetime.
///
/// Texts of the listed profiles exist already; each other text is kept once, however many chips
/// have it.
fn kept(text: String) -> &'static str {
    static KEPT: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
    let listed = PROFILES.iter().chain([&crate::TINY]);
    let mut texts = listed.flat_map(|profile| [profile.key, profile.summary, profile.source]);
    if let Some(listed) = texts.find(|listed| *listed == text) {
        return listed;
    }
    let mut kept = KEPT.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    if let Some(known) = kept.get(text.as_str()) {
        return known;
    }
    let text = &*text.leak();
    kept.insert(text);
    text
}
