//! Idle steps: garbage collection ahead of need, in steps of bounded length.
//!
//! They also read pages that nothing else reads (patrol), so that decay is found while the ECC can
//! still correct it.

use super::{PageOwner, floor, next_valid, next_victim, note_refreshed, review_reserve, save};
use crate::error::Fault;
use crate::flash::{BlockNumber, Flash, PageNumber};

/// What [`Index::gc_step`](crate::Index::gc_step) did.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Idle {
    /// Chip operations used.
    pub operations: u32,
    /// Further steps have work to do: call again when there is time.
    pub more: bool,
    /// Cuts have touched the reserve, and finding the victim takes reads.
    ///
    /// This work is left to the next change.
    pub left_to_change: bool,
}

/// Why a page is moved.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Cause {
    /// The next change lacks room.
    Gain,
    /// The ECC found it weak.
    Weak,
    /// Its block is bad.
    Bad,
    /// Its block is to be erased ahead of need.
    Ahead,
    /// Its block holds cold data while others wear out.
    Rested,
}

enum Due {
    Nothing,
    /// Work that only a change can do.
    Change,
    Move(PageNumber, Cause),
}

/// Does part of the work that is due, with at most `budget` chip operations.
///
/// From one change to the next, at most one block with cold data is emptied. Regaining the room
/// that this takes wears other blocks, so where blocks are short the steps would never end.
pub fn step<'b, F: Flash>(
    owner: &mut impl PageOwner<'b, F>,
    budget: u32,
) -> Result<Idle, Fault<F::Error>> {
    // A mount that settled may have gained the room that cuts took.
    review_reserve(owner);
    let start = owner.log().operations();
    let ride = owner.move_cost(owner.pages_beside());
    let (more, left_to_change) = loop {
        let left = left(owner, start, budget);
        let due = due(owner, budget >= ride, left > owner.move_cost(0))?;
        let left = self::left(owner, start, budget);
        let (page, cause) = match due {
            Due::Nothing => {
                // After this erase another block may hold data that is too cold.
                if left > owner.log().blocks.wear().reads_by_erase() && owner.prepare_block()? {
                    continue;
                }
                patrol(owner, self::left(owner, start, budget))?;
                break (false, false);
            }
            Due::Change => break (false, true),
            Due::Move(page, cause) => (page, cause),
        };
        // To gain room the page must move together with others, since alone it may gain none.
        let least = if cause == Cause::Gain { least(owner) } else { owner.move_cost(0) };
        if left < least {
            if cause == Cause::Weak {
                owner.log_mut().note_weak(page);
            }
            break (true, false);
        }
        if owner.begin_changes()? {
            owner.log_mut().note_weak(page);
            continue;
        }
        let block = owner.log().geometry().block_of(page);
        let together = !matches!(cause, Cause::Weak | Cause::Rested)
            && owner.pages_beside() > 0
            && left >= ride
            && (cause == Cause::Gain || owner.room() >= floor(owner) + owner.pages_beside());
        if cause == Cause::Ahead && !together && !gains(owner, block, false) {
            break (true, false);
        }
        if cause == Cause::Rested {
            owner.collector_mut().note_rested(block);
        }
        if cause == Cause::Weak {
            note_refreshed(owner);
        }
        // Nothing else may use the reserve for cuts.
        debug_assert!(
            cause == Cause::Gain || owner.room() >= floor(owner),
            "an idle step uses the reserve"
        );
        save(owner, page, together.then_some(block))?;
        review_reserve(owner);
        owner.log_mut().mark_bad_blocks()?;
    };
    let operations = owner.log().operations().wrapping_sub(start);
    Ok(Idle { operations, more, left_to_change })
}

/// The unused part of `budget`.
fn left<'b, F: Flash>(owner: &impl PageOwner<'b, F>, start: u32, budget: u32) -> u32 {
    budget.saturating_sub(owner.log().operations().wrapping_sub(start))
}

/// The least budget with which a step makes progress.
pub fn least<'b, F: Flash>(owner: &impl PageOwner<'b, F>) -> u32 {
    let gains = owner.room() < floor(owner) && !owner.empties_blocks();
    owner.move_cost(if gains { owner.pages_beside() } else { 0 })
}

/// Whether emptying `block` writes fewer pages than it frees.
fn gains<'b, F: Flash>(owner: &impl PageOwner<'b, F>, block: BlockNumber, together: bool) -> bool {
    let together = together && owner.pages_beside() > 0;
    let written = owner.pages_to_empty(owner.log().blocks.valid_in(block), together);
    // Pages move together only while there is room, so there must be room for all of them.
    let whole = !together || owner.room() >= floor(owner) + owner.pages_beside() + written;
    whole && written < owner.log().block_pages()
}

/// The next page to move.
///
/// `ride` says whether the step can move its neighbours along. `look` says whether it can look for
/// cold data, which takes a read, and then move a page of it.
fn due<'b, F: Flash>(
    owner: &mut impl PageOwner<'b, F>,
    ride: bool,
    look: bool,
) -> Result<Due, Fault<F::Error>> {
    let room = owner.room();
    if room < floor(owner) {
        // This is what the next change would do: it takes the same victim, and does no other work
        // before.
        let repairs = owner.collector().reserve_touched && owner.move_pages() > 1;
        if repairs || owner.empties_blocks() || !owner.knows_pages() {
            return Ok(Due::Change);
        }
        let victim = next_victim(owner, true)?;
        return Ok(match first_valid(owner, victim)? {
            Some(page) if room >= owner.move_pages() => Due::Move(page, Cause::Gain),
            _ => Due::Nothing,
        });
    }
    if let Some(weak) = owner.log_mut().take_weak() {
        return Ok(Due::Move(weak, Cause::Weak));
    }
    let bad = owner.log().blocks.failing();
    if let Some(page) = first_valid(owner, bad)? {
        return Ok(Due::Move(page, Cause::Bad));
    }
    if look && owner.wear_due() {
        let begun = owner.collector().rested;
        let rested = owner.log_mut().rested()?;
        let rested = rested.filter(|&block| begun.is_none_or(|begun| begun == block));
        if let Some(page) = first_valid(owner, rested)? {
            return Ok(Due::Move(page, Cause::Rested));
        }
    }
    if room >= floor(owner) + owner.log().block_pages() {
        return Ok(Due::Nothing);
    }
    let victim = next_victim(owner, true)?
        .filter(|&victim| gains(owner, victim, false) || (ride && gains(owner, victim, true)));
    Ok(match first_valid(owner, victim)? {
        Some(page) => Due::Move(page, Cause::Ahead),
        None => Due::Nothing,
    })
}

/// The first valid page of a block.
///
/// Returns `None` where a search for it would be needed, which may take longer than a step may.
fn first_valid<'b, F: Flash>(
    owner: &mut impl PageOwner<'b, F>,
    block: Option<BlockNumber>,
) -> Result<Option<PageNumber>, Fault<F::Error>> {
    let Some(block) = block.filter(|_| owner.knows_pages()) else {
        return Ok(None);
    };
    Ok(next_valid(owner, block, 0)?.map(|(page, _)| page))
}

/// Reads at most `reads` valid pages, from where the last call ended.
///
/// Without an ECC that reports its corrections there is nothing to find.
fn patrol<'b, F: Flash>(
    owner: &mut impl PageOwner<'b, F>,
    mut reads: u32,
) -> Result<(), Fault<F::Error>> {
    if !owner.log().reports_corrections() {
        return Ok(());
    }
    let pages = owner.log().geometry().pages();
    for _ in 0..pages {
        if reads == 0 {
            break;
        }
        let page = owner.collector_mut().next_patrolled(pages);
        if owner.log().blocks.is_valid(page) {
            // An unreadable page is reported on access to its records.
            let _ = owner.log_mut().read_raw(page, 0)?;
            reads -= 1;
        }
    }
    Ok(())
}
