//! A chip for long replays: it stores no main data that are zeros.
//!
//! Hosts that replay block traces write pages of zeros, because traces have no contents. A device
//! of many GiB then takes 50 bytes of memory for each page of a block in use. The bytes where pages
//! carry headers, at the end of the main data or in the spare area, are stored in a [`Chip`], which
//! checks every rule and counts every operation; other main data that are no zeros are stored
//! beside it. So nothing is forgotten, and a replay gets the results that it would get on a
//! [`Chip`]. There are no cuts and no faults.

use std::collections::HashMap;

use nandina::flash::{BlockNumber, Capabilities, Flash, Geometry, PageNumber, Profile, Reading};

use crate::{Chip, ChipError, Counters, TimeSplit, Wear, checksum};

/// Bytes of a header, of which the spare area takes what it can and the main data the rest.
const HEADER: u32 = 40;

/// The fewest bytes at the end of the main data that the chip stores, whatever they are.
const STORED_MIN: u32 = 8;

/// Zeros that a host can write, of which the chip knows that they are zeros.
static ZEROS: [u8; 1 << 22] = [0; 1 << 22];

/// Zeros that passed the controller in the last call: their address, and how many they are.
#[derive(Clone, Copy, Debug)]
enum Passed {
    /// They were read: what follows is their checksum.
    Read(usize, usize),
    /// Their checksum was computed, to seal them: what follows is their program.
    Summed(usize, usize),
    /// They were programmed as a copy: what follows may be a read to the same place.
    Copied(usize, usize),
    /// No zeros, or none that the next call may rely on.
    Other,
}

/// A chip of a profile whose pages are programmed once between two erases.
///
/// It has neither [`Capabilities::rewrite`] nor [`Capabilities::overwrite`], and only the first 40
/// bytes of the spare area.
#[derive(Clone, Debug)]
pub struct SparseChip {
    chip: Chip,
    geometry: Geometry,
    /// Bytes at the end of the main data that `chip` stores.
    stored: usize,
    /// Main data before the last bytes, of pages where they are no zeros.
    rest: HashMap<u32, Box<[u8]>>,
    /// The checksum of a page's zeros.
    zeros: Option<(usize, u32)>,
    /// The zeros that passed in the last call.
    passed: Passed,
}

impl SparseChip {
    /// Makes a chip of `profile` with all blocks good, erased and unused.
    ///
    /// Panics if a page has fewer than 40 bytes of main data.
    pub fn new(profile: Profile) -> Self {
        let spare_bytes = profile.geometry.spare_bytes.min(HEADER);
        let geometry = Geometry { spare_bytes, ..profile.geometry };
        assert!(geometry.page_bytes >= HEADER, "pages of 40 bytes or more");
        let stored = (HEADER - spare_bytes).max(STORED_MIN);
        let timing = nandina::flash::Timing {
            read_ns: profile.page_read_ns(),
            read_byte_ns: 0,
            program_ns: profile.page_program_ns(),
            program_byte_ns: 0,
            ..profile.timing
        };
        let chip = Chip::new(Profile {
            geometry: Geometry { page_bytes: stored, ..geometry },
            capabilities: Self::capabilities_of(profile.capabilities),
            timing,
            ..profile
        });
        Self {
            chip,
            geometry,
            stored: stored as usize,
            rest: HashMap::new(),
            zeros: None,
            passed: Passed::Other,
        }
    }

    /// Makes the chip as new, and keeps its memory: see [`Chip::renew`].
    pub fn renew(&mut self) {
        self.chip.renew();
        self.rest.clear();
        self.passed = Passed::Other;
    }

    const fn capabilities_of(capabilities: Capabilities) -> Capabilities {
        let programs_per_page = Some(1);
        Capabilities {
            programs_per_page,
            rewrite: false,
            overwrite: false,
            part_reads: false,
            ..capabilities
        }
    }

    /// Counts of the chip's operations since it was made.
    pub const fn counters(&self) -> Counters {
        let stored = self.chip.counters();
        let each = self.geometry.page_bytes as u64 - self.stored as u64;
        Counters {
            bytes_read: stored.bytes_read + stored.reads * each,
            bytes_programmed: stored.bytes_programmed + stored.programs * each,
            ..stored
        }
    }

    /// Modelled time of these operations, by kind.
    pub const fn time(&self) -> TimeSplit {
        self.chip.time()
    }

    /// Least, most and mean erase count of the blocks that are not bad.
    pub fn wear(&self) -> Wear {
        self.chip.wear()
    }

    /// Pages with main data other than zeros, which take memory for all of their bytes.
    pub fn pages_with_data(&self) -> usize {
        self.rest.len()
    }

    /// This many bytes of zeros, or as many as there are.
    ///
    /// A chip does not look at what is programmed from here: it cannot be anything else. A replay
    /// takes less time by that.
    pub fn zeros(length: usize) -> &'static [u8] {
        &ZEROS[..length.min(ZEROS.len())]
    }

    /// Whether all bytes are 0, of which the first ones may be `passed` zeros.
    ///
    /// A controller that computes a checksum does so while bytes pass: those that it has just read
    /// are not looked at again, nor are those whose checksum it has just computed for a program. A
    /// build with debug assertions looks, so that a caller that changes them in between is found.
    fn are_still_zeros(passed: Option<(usize, usize)>, bytes: &[u8]) -> bool {
        let same = passed.filter(|&(address, _)| address == address_of(bytes));
        let Some((_, count)) = same else { return are_zeros(bytes) };
        let (known, rest) = bytes.split_at(count.min(bytes.len()));
        debug_assert!(are_zeros(known), "bytes were changed after they passed");
        are_zeros(rest)
    }

    /// Checks the length of what is read or programmed (rule 4).
    fn check_length(&self, page: PageNumber, main: usize, spare: usize) -> Result<(), ChipError> {
        let Geometry { page_bytes, spare_bytes, .. } = self.geometry;
        if main == page_bytes as usize && spare <= spare_bytes as usize {
            return Ok(());
        }
        let evidence = format!(
            "{main} + {spare} bytes were named for {page}, a page has {page_bytes} + {spare_bytes}"
        );
        Err(ChipError::rule(crate::Rule::WholePages, evidence))
    }
}

/// Where bytes begin in memory.
fn address_of(bytes: &[u8]) -> usize {
    bytes.as_ptr().addr()
}

/// Whether all bytes are 0.
///
/// Bytes within [`ZEROS`] are. It is called for each page that is programmed, so it looks for an
/// end only now and then.
fn are_zeros(bytes: &[u8]) -> bool {
    if ZEROS.as_ptr_range().contains(&bytes.as_ptr()) {
        return true;
    }
    let (words, rest) = bytes.as_chunks::<8>();
    let (blocks, others) = words.as_chunks::<128>();
    let all = |words: &[[u8; 8]]| words.iter().fold(0, |all, word| all | u64::from_le_bytes(*word));
    blocks.iter().all(|block| all(block) == 0)
        && all(others) == 0
        && rest.iter().all(|&byte| byte == 0)
}

impl Flash for SparseChip {
    type Error = ChipError;

    fn geometry(&self) -> Geometry {
        self.geometry
    }

    fn capabilities(&self) -> Capabilities {
        self.chip.capabilities()
    }

    fn reports_corrections(&self) -> bool {
        self.chip.reports_corrections()
    }

    fn checksum(&mut self, pieces: &[&[u8]]) -> u32 {
        let passed = std::mem::replace(&mut self.passed, Passed::Other);
        let [first, others @ ..] = pieces else { return checksum::NONE };
        if first.len() < self.stored.max(HEADER as usize) {
            // A header alone.
            return checksum::after(checksum::NONE, pieces);
        }
        let read = match passed {
            Passed::Read(address, count) => Some((address, count)),
            _ => None,
        };
        if !Self::are_still_zeros(read, first) {
            return checksum::after(checksum::NONE, pieces);
        }
        // The checksum of what was read checks it: who programs it computes another one.
        if read.is_none() {
            self.passed = Passed::Summed(address_of(first), first.len());
        }
        let sum = match self.zeros {
            Some((length, known)) if length == first.len() => known,
            _ => checksum::after(checksum::NONE, &[first]),
        };
        self.zeros = Some((first.len(), sum));
        checksum::after(sum, others)
    }

    fn read(
        &mut self,
        page: PageNumber,
        main: &mut [u8],
        spare: &mut [u8],
    ) -> Result<Reading, ChipError> {
        let passed = std::mem::replace(&mut self.passed, Passed::Other);
        self.check_length(page, main.len(), spare.len())?;
        let (first, last) = main.split_at_mut(main.len() - self.stored);
        let reading = self.chip.read(page, last, spare)?;
        match self.rest.get(&page.0) {
            Some(bytes) => first.copy_from_slice(bytes),
            None if self.chip.page_is_erased(page) => first.fill(0xFF),
            None => {
                let place = (address_of(first), first.len());
                match passed {
                    Passed::Copied(address, count) if (address, count) == place => {
                        debug_assert!(are_zeros(first), "bytes were changed after they passed");
                    }
                    _ => first.fill(0),
                }
                self.passed = Passed::Read(place.0, place.1);
            }
        }
        Ok(reading)
    }

    fn program(&mut self, page: PageNumber, main: &[u8], spare: &[u8]) -> Result<(), ChipError> {
        let passed = std::mem::replace(&mut self.passed, Passed::Other);
        self.check_length(page, main.len(), spare.len())?;
        let (first, last) = main.split_at(main.len() - self.stored);
        self.chip.program(page, last, spare)?;
        let summed = match passed {
            Passed::Summed(address, count) => Some((address, count)),
            _ => None,
        };
        if !Self::are_still_zeros(summed, first) {
            self.rest.insert(page.0, first.into());
        }
        Ok(())
    }

    fn program_copy(
        &mut self,
        of: PageNumber,
        page: PageNumber,
        main: &[u8],
        spare: &[u8],
    ) -> Result<(), ChipError> {
        if self.rest.contains_key(&of.0) || self.chip.page_is_erased(of) {
            return self.program(page, main, spare);
        }
        self.passed = Passed::Other;
        self.check_length(page, main.len(), spare.len())?;
        let (first, last) = main.split_at(main.len() - self.stored);
        debug_assert!(are_zeros(first), "this is not what was read");
        self.chip.program(page, last, spare)?;
        self.passed = Passed::Copied(address_of(first), first.len());
        Ok(())
    }

    fn erase(&mut self, block: BlockNumber) -> Result<(), ChipError> {
        self.passed = Passed::Other;
        self.chip.erase(block)?;
        if !self.rest.is_empty() {
            for page in 0..self.geometry.pages_per_block {
                self.rest.remove(&self.geometry.page_in(block, page).0);
            }
        }
        Ok(())
    }

    fn is_bad(&mut self, block: BlockNumber) -> Result<bool, ChipError> {
        self.chip.is_bad(block)
    }

    fn mark_bad(&mut self, block: BlockNumber) -> Result<(), ChipError> {
        self.chip.mark_bad(block)
    }
}
