//! The rules of the media contract that a caller can break. A broken rule changes nothing and is not
//! counted.

use nandina::flash::{BlockNumber, PageNumber};

use crate::{Chip, ChipError, Rule};

impl Chip {
    pub(crate) fn check_page(
        &self,
        page: PageNumber,
        main: usize,
        spare: usize,
    ) -> Result<(), ChipError> {
        let geometry = &self.profile.geometry;
        if page.0 >= geometry.pages() {
            let evidence = format!("{page} was named, the chip has {} pages", geometry.pages());
            return Err(ChipError::rule(Rule::Bounds, evidence));
        }
        if main != geometry.page_bytes as usize || spare > geometry.spare_bytes as usize {
            let evidence = format!(
                "{main} + {spare} bytes were named for {page}, a page has {} + {}",
                geometry.page_bytes, geometry.spare_bytes
            );
            return Err(ChipError::rule(Rule::WholePages, evidence));
        }
        Ok(())
    }

    pub(crate) fn check_block(&self, block: BlockNumber) -> Result<(), ChipError> {
        if block.0 >= self.profile.geometry.blocks {
            let blocks = self.profile.geometry.blocks;
            let evidence = format!("{block} was named, the chip has {blocks} blocks");
            return Err(ChipError::rule(Rule::Bounds, evidence));
        }
        Ok(())
    }

    pub(crate) fn check_good(&self, block: BlockNumber) -> Result<(), ChipError> {
        if self.blocks[block.0 as usize].bad {
            return Err(ChipError::rule(Rule::BadBlocks, format!("{block} is marked as bad")));
        }
        Ok(())
    }

    /// Answers the place of `page`, so that nobody has to divide again.
    pub(crate) fn check_program(
        &self,
        page: PageNumber,
        main: &[u8],
        spare: &[u8],
    ) -> Result<(usize, PageNumber), ChipError> {
        self.check_page(page, main.len(), spare.len())?;
        let (number, index) = self.place(page);
        self.check_good(BlockNumber(number as u32))?;
        let block = &self.blocks[number];
        let programs = block.programs(index);
        let allowed = self.profile.capabilities.programs_per_page;
        if block.is_exhausted(index) {
            let block = self.profile.geometry.block_of(page);
            let evidence = format!("{page} lies in {block}, whose erase was cut or failed");
            return Err(ChipError::rule(Rule::EraseBeforeProgram, evidence));
        }
        if let Some(allowed) = allowed.filter(|&allowed| programs >= allowed) {
            let evidence =
                format!("{page} had {programs} of {allowed} programs since its block was erased");
            return Err(ChipError::rule(Rule::EraseBeforeProgram, evidence));
        }
        if self.profile.capabilities.in_order && index.0 + 1 < block.next_in_order {
            let evidence = format!(
                "{page} is page {} of its block, and page {} was programmed before",
                index.0,
                block.next_in_order - 1
            );
            return Err(ChipError::rule(Rule::Order, evidence));
        }
        if let Some(old) = block.page_bytes(index).filter(|_| programs > 0) {
            let rises = |(old, new): (&u8, &u8)| new & !old != 0;
            let spare_old = &old[main.len()..];
            if old.iter().zip(main).any(rises) || spare_old.iter().zip(spare).any(rises) {
                let evidence = format!("a program of {page} would change a bit from 0 to 1");
                return Err(ChipError::rule(Rule::BitsFall, evidence));
            }
        }
        Ok((number, index))
    }

    pub(crate) fn check_rewrite(&self, page: PageNumber) -> Result<(), ChipError> {
        if self.profile.capabilities.rewrite {
            return Ok(());
        }
        let evidence = format!("{page} was to be rewritten, this chip cannot");
        Err(ChipError::rule(Rule::Rewrite, evidence))
    }
}
