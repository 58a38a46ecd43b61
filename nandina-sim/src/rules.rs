//! The rules of the media contract that a caller can break.
//!
//! An operation that breaks a rule changes no cell and is not counted.

use std::ops::Range;

use nandina::flash::{BlockNumber, PageNumber};

use crate::{Chip, ChipError, Rule};

/// Builds the message of a broken rule.
///
/// It is kept apart from the checks, which every operation passes.
#[cold]
#[inline(never)]
fn broken(rule: Rule, evidence: impl FnOnce() -> String) -> ChipError {
    ChipError::rule(rule, evidence())
}

/// Whether a bit is 1 in `new` and 0 in `old`.
///
/// It looks at every byte, which is faster than stopping early.
fn rises(old: &[u8], new: &[u8]) -> bool {
    old.iter().zip(new).fold(0, |risen, (old, new)| risen | new & !old) != 0
}

impl Chip {
    pub(crate) fn check_page(
        &self,
        page: PageNumber,
        main: usize,
        spare: usize,
    ) -> Result<(), ChipError> {
        let geometry = &self.profile.geometry;
        if page.0 >= geometry.pages() {
            return Err(broken(Rule::Bounds, move || {
                format!("{page} was named, the chip has {} pages", geometry.pages())
            }));
        }
        if main != geometry.page_bytes as usize || spare > geometry.spare_bytes as usize {
            return Err(broken(Rule::WholePages, move || {
                format!(
                    "{main} + {spare} bytes were named for {page}, a page has {} + {}",
                    geometry.page_bytes, geometry.spare_bytes
                )
            }));
        }
        Ok(())
    }

    /// Checks the part of `page` that is to be read.
    pub(crate) fn check_part(
        &self,
        page: PageNumber,
        part: &Range<usize>,
    ) -> Result<(), ChipError> {
        let page_bytes = self.profile.geometry.page_bytes as usize;
        if part.is_empty() || part.end > page_bytes {
            let (start, end) = (part.start, part.end);
            return Err(broken(Rule::Bounds, move || {
                format!("bytes {start} to {end} of {page} were named, a page has {page_bytes}")
            }));
        }
        Ok(())
    }

    pub(crate) fn check_block(&self, block: BlockNumber) -> Result<(), ChipError> {
        let blocks = self.profile.geometry.blocks;
        if block.0 >= blocks {
            return Err(broken(Rule::Bounds, move || {
                format!("{block} was named, the chip has {blocks} blocks")
            }));
        }
        Ok(())
    }

    pub(crate) fn check_good(&self, block: BlockNumber) -> Result<(), ChipError> {
        if self.blocks[block.0 as usize].bad {
            return Err(broken(Rule::BadBlocks, move || format!("{block} is marked as bad")));
        }
        Ok(())
    }

    /// Returns the block and index of `page`, so that they are computed once.
    pub(crate) fn check_program(
        &self,
        page: PageNumber,
        main: &[u8],
        spare: &[u8],
    ) -> Result<(usize, PageNumber), ChipError> {
        self.check_page(page, main.len(), spare.len())?;
        let (number, index) = self.place(page);
        self.check_programs(page, number, index)?;
        let block = &self.blocks[number];
        // No caller can know which bits of an unstable page are 1: there they simply fall.
        if block.programs(index) > 0
            && !block.unstable.contains_key(&index.0)
            && let Some(old) = block.page_bytes(index)
        {
            let (old_main, old_spare) = old.split_at(main.len());
            if rises(old_main, main) || rises(old_spare, spare) {
                return Err(broken(Rule::BitsFall, move || {
                    format!("a program of {page} would change a bit from 0 to 1")
                }));
            }
        }
        Ok((number, index))
    }

    /// Whether `page` may be programmed now, whatever the bytes.
    ///
    /// It is page `index` of block `number`.
    fn check_programs(
        &self,
        page: PageNumber,
        number: usize,
        index: PageNumber,
    ) -> Result<(), ChipError> {
        self.check_good(BlockNumber(number as u32))?;
        let block = &self.blocks[number];
        let programs = block.programs(index);
        let allowed = self.profile.capabilities.programs_per_page;
        if block.is_exhausted(index) {
            return Err(broken(Rule::EraseBeforeProgram, move || {
                let block = BlockNumber(number as u32);
                format!("{page} lies in {block}, whose erase was cut or failed")
            }));
        }
        if let Some(allowed) = allowed.filter(|&allowed| programs >= allowed) {
            return Err(broken(Rule::EraseBeforeProgram, move || {
                format!("{page} had {programs} of {allowed} programs since its block was erased")
            }));
        }
        let next = block.next_in_order;
        if self.profile.capabilities.in_order && index.0 + 1 < next {
            return Err(broken(Rule::Order, move || {
                let (page_of_block, last) = (index.0, next - 1);
                format!(
                    "{page} is page {page_of_block} of its block, and page {last} was programmed before"
                )
            }));
        }
        Ok(())
    }

    /// Returns the block and index of `page`, and the range of the bytes in it.
    pub(crate) fn check_overwrite(
        &self,
        page: PageNumber,
        offset: u32,
        bytes: &[u8],
    ) -> Result<(usize, PageNumber, Range<usize>), ChipError> {
        let page_bytes = self.profile.geometry.page_bytes as usize;
        self.check_page(page, page_bytes, 0)?;
        let (start, length) = (offset as usize, bytes.len());
        if length == 0 || length > page_bytes || start > page_bytes - length {
            return Err(broken(Rule::Bounds, move || {
                format!(
                    "{length} bytes from byte {start} of {page} were named, a page has {page_bytes}"
                )
            }));
        }
        if !self.profile.capabilities.overwrite {
            return Err(broken(Rule::Overwrite, move || {
                format!("{page} was to be overwritten, this chip cannot")
            }));
        }
        let (number, index) = self.place(page);
        self.check_programs(page, number, index)?;
        let block = &self.blocks[number];
        if self.profile.capabilities.in_order && block.programs(index) == 0 {
            return Err(broken(Rule::Overwrite, move || {
                format!("{page} was to be overwritten, it was not programmed since its erase")
            }));
        }
        let range = start..start + length;
        // After a silent fault, or in an unstable page, no caller can know what the cells hold: the
        // bits simply fall.
        if self.fault_counters.silent == 0
            && !block.unstable.contains_key(&index.0)
            && let Some(old) = block.page_bytes(index)
            && rises(&old[range.clone()], bytes)
        {
            return Err(broken(Rule::BitsFall, move || {
                format!("an overwrite of {page} would change a bit from 0 to 1")
            }));
        }
        Ok((number, index, range))
    }

    pub(crate) fn check_rewrite(&self, page: PageNumber) -> Result<(), ChipError> {
        if self.profile.capabilities.rewrite {
            return Ok(());
        }
        Err(broken(Rule::Rewrite, move || format!("{page} was to be rewritten, this chip cannot")))
    }
}
