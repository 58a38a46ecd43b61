//! Which faults a chip shows besides cuts, and how often. All are off on a new chip.

use nandina::flash::PageNumber;
use rand::Rng;
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use crate::block::Block;
use nandina::flash::profile::Ecc;

/// Whether a field is left out of an image, because older programs do not know it.
fn is_zero<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// The faults of a chip. A frequency `n` means one in `n` operations; 0 means never.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Faults {
    /// Programs that the chip reports as failed. The block fails for ever afterwards (rule 11).
    pub program_failures: u32,
    /// Erases that the chip reports as failed. The block fails for ever afterwards.
    pub erase_failures: u32,
    /// Programs that change no cell and report success.
    pub silent_programs: u32,
    /// Erases that change no cell, or only some, and report success.
    ///
    /// What those of the second kind leave is as after a cut, and reads the same each time.
    pub silent_erases: u32,
    /// Rewrites that the chip reports as failed.
    ///
    /// The page is as after a cut (rule 14), and the block fails for ever afterwards.
    #[serde(default)]
    pub rewrite_failures: u32,
    /// Rewrites that leave the page as after a cut and report success.
    #[serde(default)]
    pub silent_rewrites: u32,
    /// Torn pages that read differently each time until erased or rewritten (rule 6).
    ///
    /// A page is torn by a cut, or by an operation that the chip reports as failed or gives up.
    /// Each page of a torn block is drawn separately.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unstable_pages: u32,
    /// Operations that the device gives up for a reason of its own (rule 11).
    ///
    /// They are not begun, torn or done; the block stays good.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub device_errors: u32,
    /// Read disturb: reads that flip a bit in some page of the same block.
    pub disturbing_reads: u32,
    /// Retention: days that a programmed page rests, on average, before it loses a bit.
    pub retention_days: u32,
    /// No codeword loses more bits than the ECC can correct.
    ///
    /// Without ECC no bit is lost at all.
    pub within_ecc: bool,
    /// A block fails, sooner or later, after the profile's endurance.
    ///
    /// Its erase count has reached that number then.
    pub wear_out: bool,
}

impl Faults {
    /// No fault at all.
    pub const NONE: Self = Self {
        program_failures: 0,
        erase_failures: 0,
        silent_programs: 0,
        silent_erases: 0,
        rewrite_failures: 0,
        silent_rewrites: 0,
        unstable_pages: 0,
        device_errors: 0,
        disturbing_reads: 0,
        retention_days: 0,
        within_ecc: false,
        wear_out: false,
    };

    /// Whether an operation may meet a fault.
    pub(crate) const fn any(&self) -> bool {
        self.program_failures
            | self.erase_failures
            | self.silent_programs
            | self.silent_erases
            | self.rewrite_failures
            | self.silent_rewrites
            | self.device_errors
            | self.disturbing_reads
            > 0
            || self.wear_out
    }
}

/// Exact counts of the faults of a chip.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FaultCounters {
    /// Cuts of power.
    pub cuts: u64,
    /// Programs, erases and rewrites torn by a cut, or as the device gave them up.
    pub torn: u64,
    /// Programs reported as failed.
    pub program_failures: u64,
    /// Erases reported as failed.
    pub erase_failures: u64,
    /// Rewrites reported as failed.
    #[serde(default)]
    pub rewrite_failures: u64,
    /// Programs, erases and rewrites that failed silently.
    pub silent: u64,
    /// Pages left unstable.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unstable: u64,
    /// Operations given up by the device.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub device_errors: u64,
    /// Bits flipped by read disturb or retention.
    pub flips: u64,
    /// Reads that the ECC corrected so far that the page should be refreshed.
    pub corrected: u64,
    /// Reads that the ECC could not correct.
    pub uncorrectable: u64,
}

impl FaultCounters {
    /// Number of injected faults. What reads reported of them is not counted again.
    pub const fn injected(&self) -> u64 {
        self.cuts
            + self.torn
            + self.program_failures
            + self.erase_failures
            + self.rewrite_failures
            + self.silent
            + self.device_errors
            + self.flips
    }
}

impl std::ops::AddAssign for FaultCounters {
    fn add_assign(&mut self, other: Self) {
        self.cuts += other.cuts;
        self.torn += other.torn;
        self.program_failures += other.program_failures;
        self.erase_failures += other.erase_failures;
        self.rewrite_failures += other.rewrite_failures;
        self.silent += other.silent;
        self.unstable += other.unstable;
        self.device_errors += other.device_errors;
        self.flips += other.flips;
        self.corrected += other.corrected;
        self.uncorrectable += other.uncorrectable;
    }
}

/// Draws whether an event of frequency one in `often` happens now.
///
/// With 0 it never happens.
pub fn strikes(random: &mut ChaCha8Rng, often: u32) -> bool {
    often > 0 && random.random_range(0..often) == 0
}

/// The most wrong bits in one codeword among `flips`.
pub fn worst_codeword(flips: &[u32], ecc: &Ecc) -> u32 {
    let codeword = |flip: u32| flip / 8 / ecc.codeword_bytes;
    let beside =
        |flip: u32| flips.iter().filter(|&&other| codeword(other) == codeword(flip)).count() as u32;
    flips.iter().map(|&flip| beside(flip)).max().unwrap_or(0)
}

/// Flips a random bit of `page` if it is programmed and the bounds allow it.
///
/// Returns whether it did.
pub fn flip_bit(
    block: &mut Block,
    page: PageNumber,
    bits: u32,
    ecc: &Ecc,
    within_ecc: bool,
    random: &mut ChaCha8Rng,
) -> bool {
    let bit = random.random_range(0..bits);
    if block.page_bytes(page).is_none() {
        return false;
    }
    let mut flips = block.damage.get(&page.0).map_or_else(Vec::new, |damage| damage.flips.clone());
    if flips.contains(&bit) {
        return false;
    }
    flips.push(bit);
    if within_ecc && worst_codeword(&flips, ecc) > ecc.bits.into() {
        return false;
    }
    block.damage_mut(page).flips = flips;
    true
}
