//! What is done while the device is idle: garbage is collected before it has to be, in steps of
//! bounded length, and pages that nobody reads are read, so that rot is found while the ECC can
//! mend it.

use super::{PageOwner, floor, next_valid, next_victim, note_refreshed, review_reserve, save};
use crate::error::Fault;
use crate::flash::{BlockNumber, Flash, PageNumber};

/// What [`Index::gc_step`](crate::Index::gc_step) did.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Idle {
    /// Chip operations used.
    pub operations: u32,
    /// There is more that such steps can do: call again when there is time.
    pub more: bool,
    /// Cuts have used up part of the reserve, and the victim has to be found by reading: that is
    /// left to the next change.
    pub left_to_change: bool,
}

/// Why a page is moved.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Cause {
    /// The next change has no room.
    Gain,
    /// The ECC found it weak.
    Weak,
    /// Its block is bad.
    Bad,
    /// Its block is to be erased ahead of need.
    Ahead,
    /// Its block has rested while others wore out.
    Rested,
}

enum Due {
    Nothing,
    /// What only a change can do.
    Change,
    Move(PageNumber, Cause),
}

/// Does part of the work that is due anyway, with at most `budget` chip operations.
pub fn step<'b, F: Flash>(
    owner: &mut impl PageOwner<'b, F>,
    budget: u32,
) -> Result<Idle, Fault<F::Error>> {
    let start = owner.log().operations();
    let ride = owner.move_cost(owner.pages_beside());
    let (more, left_to_change) = loop {
        let left = left(owner, start, budget);
        let due = due(owner, budget >= ride, left > owner.move_cost(0))?;
        let left = self::left(owner, start, budget);
        let (page, cause) = match due {
            Due::Nothing => {
                // After that erase another block's data may have rested too long.
                if left > owner.log().blocks.wear().reads_by_erase() && owner.prepare_block()? {
                    continue;
                }
                patrol(owner, self::left(owner, start, budget))?;
                break (false, false);
            }
            Due::Change => break (false, true),
            Due::Move(page, cause) => (page, cause),
        };
        // A page that is to gain room and is moved alone may gain none.
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
        if cause == Cause::Weak {
            note_refreshed(owner);
        }
        save(owner, page, together.then_some(block))?;
        review_reserve(owner);
        owner.log_mut().mark_bad_blocks()?;
    };
    let operations = owner.log().operations().wrapping_sub(start);
    Ok(Idle { operations, more, left_to_change })
}

/// What is left of `budget`.
fn left<'b, F: Flash>(owner: &impl PageOwner<'b, F>, start: u32, budget: u32) -> u32 {
    budget.saturating_sub(owner.log().operations().wrapping_sub(start))
}

/// The least budget with which a step gets on.
pub fn least<'b, F: Flash>(owner: &impl PageOwner<'b, F>) -> u32 {
    let gains = owner.room() < floor(owner);
    owner.move_cost(if gains { owner.pages_beside() } else { 0 })
}

/// Whether emptying `block` writes fewer pages than it makes free.
fn gains<'b, F: Flash>(owner: &impl PageOwner<'b, F>, block: BlockNumber, together: bool) -> bool {
    let together = together && owner.pages_beside() > 0;
    let written = owner.pages_to_empty(owner.log().blocks.valid_in(block), together);
    // Moved together only as long as there is room: then for all of it.
    let whole = !together || owner.room() >= floor(owner) + owner.pages_beside() + written;
    whole && written < owner.log().block_pages()
}

/// The next page to move; `ride` if a step can carry along what stands beside it, `look` if it can
/// look for data that has rested, which takes a read, and move a page of it.
fn due<'b, F: Flash>(
    owner: &mut impl PageOwner<'b, F>,
    ride: bool,
    look: bool,
) -> Result<Due, Fault<F::Error>> {
    let room = owner.room();
    if room < floor(owner) {
        // As the next change would: the same victim, and no other work before it.
        if (owner.collector().reserve_touched && owner.move_pages() > 1) || !owner.knows_pages() {
            return Ok(Due::Change);
        }
        let victim = next_victim(owner)?;
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
        let rested = owner.log_mut().rested()?;
        if let Some(page) = first_valid(owner, rested)? {
            return Ok(Due::Move(page, Cause::Rested));
        }
    }
    if room >= floor(owner) + owner.log().block_pages() {
        return Ok(Due::Nothing);
    }
    let victim = next_victim(owner)?
        .filter(|&victim| gains(owner, victim, false) || (ride && gains(owner, victim, true)));
    Ok(match first_valid(owner, victim)? {
        Some(page) => Due::Move(page, Cause::Ahead),
        None => Due::Nothing,
    })
}

/// The first valid page of a block; none where it would have to be searched for, which takes longer
/// than steps do.
fn first_valid<'b, F: Flash>(
    owner: &mut impl PageOwner<'b, F>,
    block: Option<BlockNumber>,
) -> Result<Option<PageNumber>, Fault<F::Error>> {
    let Some(block) = block.filter(|_| owner.knows_pages()) else {
        return Ok(None);
    };
    Ok(next_valid(owner, block, 0)?.map(|(page, _)| page))
}

/// Reads at most `reads` valid pages, going on where the last call ended. Without an ECC that
/// reports what it corrects there is nothing to find.
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
        let page = PageNumber(owner.collector().patrol);
        owner.collector_mut().patrol = (page.0 + 1) % pages;
        if owner.log().blocks.is_valid(page) {
            // A page that cannot be read is reported when its records are asked for.
            let _ = owner.log_mut().read_raw(page, 0)?;
            reads -= 1;
        }
    }
    Ok(())
}
