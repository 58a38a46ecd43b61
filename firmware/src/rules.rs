//! Shows that the chip refuses operations that break a rule of the media contract.
//!
//! A chip that accepts everything would show no fault of an index.

use nandina::System as _;
use nandina::flash::{BlockNumber, Flash, PageNumber};

use crate::chip::{Chip, GEOMETRY, Refusal};
use crate::smoke::{Failure, demand};

/// Breaks each rule on a new chip, and leaves it as new. `page` is a page buffer.
pub fn test(chip: &mut Chip<'_>, page: &mut [u8]) -> Result<(), Failure> {
    let (low, high, beyond) = (PageNumber(2), PageNumber(3), PageNumber(GEOMETRY.pages()));
    let allowed = chip.capabilities();
    let refused = |answer: Result<(), Refusal>, as_what| answer == Err(as_what);
    page.fill(0x5A);
    demand(chip.program(high, page, &[]).is_ok(), "a program is refused")?;
    if allowed.in_order {
        demand(refused(chip.program(low, page, &[]), Refusal::Order), "rule 3 is not checked")?;
    }
    if allowed.programs_per_page == Some(1) {
        demand(refused(chip.program(high, page, &[]), Refusal::EraseFirst), "rule 1")?;
    } else {
        page.fill(0xA5);
        demand(refused(chip.program(high, page, &[]), Refusal::BitRises), "rule 2")?;
    }
    demand(refused(chip.program(beyond, page, &[]), Refusal::Bounds), "rule 5, pages")?;
    demand(refused(chip.erase(BlockNumber(GEOMETRY.blocks)), Refusal::Bounds), "rule 5, blocks")?;
    demand(refused(chip.program(low, &page[1..], &[]), Refusal::Size), "rule 4, the page")?;
    demand(refused(chip.program(low, page, &[0]), Refusal::Size), "rule 4, the spare area")?;
    let overwritten = chip.overwrite(high, 8, &[0x5A; 4]);
    if allowed.overwrite {
        demand(overwritten.is_ok(), "the same bits again are refused")?;
        demand(refused(chip.overwrite(high, 8, &[0xA5]), Refusal::BitRises), "rule 2, again")?;
        if !crate::System::DESCRIPTION.needs.any_order {
            demand(refused(chip.overwrite(low, 8, &[0]), Refusal::Overwrite), "rule 15")?;
        }
    } else {
        demand(refused(overwritten, Refusal::Overwrite), "rule 15 is not checked")?;
    }
    page.fill(0);
    demand(chip.read(high, page, &mut []).is_ok(), "a read is refused")?;
    demand(page.iter().all(|&byte| byte == 0x5A), "a read gives other bytes")?;
    page.fill(0xC3);
    let rewritten = chip.rewrite(high, page, &[]);
    if allowed.rewrite {
        demand(rewritten.is_ok(), "a rewrite is refused")?;
    } else {
        demand(refused(rewritten, Refusal::Rewrite), "rule 14 is not checked")?;
    }
    demand(chip.erase(BlockNumber(0)).is_ok(), "an erase is refused")?;
    demand(chip.read(high, page, &mut []).is_ok(), "an erased page cannot be read")?;
    demand(page.iter().all(|&byte| byte == 0xFF), "an erased page has a bit that is 0")?;
    chip.reset();
    Ok(())
}
