//! Garbage collection: blocks with few valid pages are emptied, so that they can be erased and
//! written. Bad blocks are emptied first, pages that the ECC found weak are written elsewhere, and
//! blocks whose data rests are put into circulation.
//!
//! Only the owner of the pages knows which of them are still needed and who must know if one moves,
//! so it is asked for that ([`PageOwner`]). When, in which order and how much is decided here, for
//! changes and for idle steps alike (`idle.rs` beside this).
//!
//! A damaged page never stops a change elsewhere: the block that holds it is left alone.

mod idle;

pub use idle::Idle;
pub use idle::{least, step};

use crate::error::Fault;
use crate::flash::{BlockNumber, Flash, PageNumber};
use crate::log::Log;

/// Moves that one change does for other reasons than to gain room.
pub const SPARE_MOVES: u32 = 4;

/// What a collector has done, and what it has to remember.
#[derive(Default)]
pub struct Collector {
    /// Cuts, or blocks that failed, have touched the reserve.
    reserve_touched: bool,
    collected_blocks: u32,
    refreshed_pages: u32,
    /// The next page to read for the sake of its ECC.
    patrol: u32,
}

impl Collector {
    /// Blocks of which pages were moved.
    pub const fn collected_blocks(&self) -> u32 {
        self.collected_blocks
    }

    /// Pages that were moved because the ECC found them weak.
    pub const fn refreshed_pages(&self) -> u32 {
        self.refreshed_pages
    }

    /// Nothing is known to have touched the reserve.
    pub const fn forget_reserve(&mut self) {
        self.reserve_touched = false;
    }

    fn note_collected(&mut self) {
        self.collected_blocks = self.collected_blocks.saturating_add(1);
    }
}

/// Whoever owns the pages of a log.
pub trait PageOwner<'b, F: Flash> {
    /// The log that the pages are in.
    fn log(&self) -> &Log<'b, F>;

    /// The log, to change.
    fn log_mut(&mut self) -> &mut Log<'b, F>;

    /// What its collector remembers.
    fn collector(&self) -> &Collector;

    /// The same, to change.
    fn collector_mut(&mut self) -> &mut Collector;

    /// Moves `page` if it is still needed, durably. With `beside`, pages of that block that are
    /// written anyway may come along. Writes at most [`move_pages`](Self::move_pages) pages for
    /// each page that moves.
    fn relocate(
        &mut self,
        page: PageNumber,
        beside: Option<BlockNumber>,
    ) -> Result<(), Fault<F::Error>>;

    /// Pages that must be free before a change begins, what cuts and blocks that fail may take
    /// among them.
    fn kept(&self) -> u32;

    /// Of these, the pages that only collection after a cut, or after a block failed, may take.
    fn reserve_pages(&self) -> u32;

    /// Pages that are written at most to empty a block with so many valid ones; moved together, or
    /// each by itself.
    fn pages_to_empty(&self, valid: u32, together: bool) -> u32;

    /// Chip operations of one move, if so many pages come along.
    fn move_cost(&self, beside: u32) -> u32;

    /// The most valid pages of which the owner allows to be on the chip.
    fn limit_pages(&self) -> u32;

    /// Pages that can be written before anything is collected. Default: what the log has left.
    fn room(&self) -> u32 {
        self.log().room()
    }

    /// Pages that one moved page writes. Default: itself.
    fn move_pages(&self) -> u32 {
        1
    }

    /// Pages of a victim that may come along with one that moves; 0 if each moves by itself.
    /// Default: none.
    fn pages_beside(&self) -> u32 {
        0
    }

    /// Makes durable what is not on the chip yet. Default: nothing is.
    fn write_out(&mut self) -> Result<(), Fault<F::Error>> {
        Ok(())
    }

    /// Does what has to be done before the first change since the mount; returns whether there was
    /// something. Default: nothing has to be.
    fn begin_changes(&mut self) -> Result<bool, Fault<F::Error>> {
        Ok(false)
    }

    /// Moves pages of `victim` that the owner knows about by other means than the account. Default:
    /// none.
    fn collect_ahead(&mut self, victim: BlockNumber) -> Result<(), Fault<F::Error>> {
        let _ = victim;
        Ok(())
    }

    /// Whether the account tells which pages are valid. If not, [`is_needed`](Self::is_needed) has
    /// to find out. Default: as the account says.
    fn knows_pages(&self) -> bool {
        !self.log().blocks.searches()
    }

    /// Whether a page that may be valid is. Default: it is.
    fn is_needed(&mut self, page: PageNumber) -> Result<bool, Fault<F::Error>> {
        let _ = page;
        Ok(true)
    }

    /// How many moves empty `block`; any number that is not lower than `best` if that is not lower.
    /// Default: one for each valid page.
    fn moves_to_empty(&mut self, block: BlockNumber, best: u32) -> Result<u32, Fault<F::Error>> {
        let _ = best;
        Ok(self.log().blocks.valid_in(block))
    }

    /// Whether the state in RAM is not known to be that on the chip, because an operation failed
    /// half way. Default: it never is.
    fn in_doubt(&self) -> bool {
        false
    }

    /// The block to collect next, of those that gain room, by what the log knows. Default: any kind
    /// of choice of the log's.
    fn victim(&self, gains: impl Fn(u32) -> bool) -> Option<BlockNumber> {
        self.log().victim(gains)
    }

    /// Whether it is time to look for a block whose data has rested. Default: as the log says.
    fn wear_due(&self) -> bool {
        self.log().wear_due(self.move_pages())
    }

    /// Erases the block that is opened next ahead of need; returns whether it did. Default: as the
    /// log does.
    fn prepare_block(&mut self) -> Result<bool, Fault<F::Error>> {
        self.log_mut().prepare_block()
    }
}

/// Room below which nothing is moved but to gain room.
pub fn floor<'b, F: Flash>(owner: &impl PageOwner<'b, F>) -> u32 {
    owner.kept() + owner.move_pages()
}

fn no_room<'b, F: Flash>(owner: &impl PageOwner<'b, F>) -> Fault<F::Error> {
    owner.log().no_room(owner.limit_pages())
}

/// Collects garbage until a change fits and the reserve is whole. If `first`, the other work that
/// is due is done before.
#[inline(always)]
pub fn make_room<'b, F: Flash>(
    owner: &mut impl PageOwner<'b, F>,
    first: bool,
) -> Result<(), Fault<F::Error>> {
    if first {
        let is_short = owner.room() < owner.kept();
        if is_short {
            gain_room(owner, 0)?;
        }
        if is_short || owner.wear_due() {
            level_wear(owner)?;
        }
        tend(owner)?;
    }
    gain_room(owner, 0)
}

/// Collects garbage until `beyond` pages more can be programmed than are kept.
#[inline(never)]
pub fn gain_room<'b, F: Flash>(
    owner: &mut impl PageOwner<'b, F>,
    beyond: u32,
) -> Result<(), Fault<F::Error>> {
    // Each round gains a page at least; a chip's worth of rounds without success is no progress.
    if owner.room() < owner.kept() + beyond {
        owner.write_out()?;
    }
    note_reserve(owner);
    let mut rounds = owner.log().geometry().pages();
    // A block that fails on the way takes the room that was kept for it.
    while owner.room() < owner.kept() + beyond {
        let Some(victim) = next_victim(owner)?.filter(|_| rounds > 0) else {
            return Err(no_room(owner));
        };
        if !owner.collector().reserve_touched {
            owner.collect_ahead(victim)?;
        }
        collect(owner, victim)?;
        rounds -= 1;
    }
    owner.collector_mut().reserve_touched = false;
    Ok(())
}

/// Notes whether cuts, or blocks that failed, have touched the reserve. Room for blocks that fail
/// is part of it: cuts must not use that up either.
pub fn note_reserve<'b, F: Flash>(owner: &mut impl PageOwner<'b, F>) {
    // Nothing was written since the mount, or since a block failed: a collection that is half done
    // in idle steps has touched nothing.
    let touched = owner.log().active_block().is_none() && owner.room() < owner.reserve_pages();
    owner.collector_mut().reserve_touched |= touched;
}

/// What touched the reserve has been made up for, if there is room enough now.
pub fn review_reserve<'b, F: Flash>(owner: &mut impl PageOwner<'b, F>) {
    let lacks = owner.room() < owner.kept();
    owner.collector_mut().reserve_touched &= lacks;
}

/// The block to empty next, to gain room.
#[inline(never)]
fn next_victim<'b, F: Flash>(
    owner: &mut impl PageOwner<'b, F>,
) -> Result<Option<BlockNumber>, Fault<F::Error>> {
    if owner.collector().reserve_touched {
        return easiest_victim(owner);
    }
    let block_pages = owner.log().block_pages();
    let most = block_pages - gain(block_pages);
    let together = owner.pages_beside() > 0;
    Ok(owner.victim(|valid| owner.pages_to_empty(valid, together) <= most))
}

/// Pages that emptying a block gains at least.
pub const fn gain(block_pages: u32) -> u32 {
    if block_pages < 16 { 1 } else { block_pages / 8 }
}

/// The block that the fewest moves empty. Finding it may read the valid pages of some blocks, which
/// is only done when cuts have touched the reserve.
fn easiest_victim<'b, F: Flash>(
    owner: &mut impl PageOwner<'b, F>,
) -> Result<Option<BlockNumber>, Fault<F::Error>> {
    let active = owner.log().active_block();
    let Some(fewest) = owner.log().blocks.victim(active) else {
        return Ok(None);
    };
    let move_pages = owner.move_pages();
    if move_pages == 1 {
        return Ok(Some(fewest));
    }
    let mut best = (owner.log().blocks.valid_in(fewest), fewest);
    for block in owner.log().blocks.all() {
        // A move empties at most what it writes, so more valid pages than that cannot be fewer
        // moves.
        let valid = owner.log().blocks.valid_in(block);
        if best.0 == 1
            || valid >= best.0 * move_pages
            || !owner.log().blocks.is_victim(block, active)
        {
            continue;
        }
        let moves = owner.moves_to_empty(block, best.0)?;
        if moves < best.0 {
            best = (moves, block);
        }
    }
    Ok(Some(best.1))
}

/// Moves the valid pages of `victim`, to gain room.
#[inline(always)]
fn collect<'b, F: Flash>(
    owner: &mut impl PageOwner<'b, F>,
    victim: BlockNumber,
) -> Result<(), Fault<F::Error>> {
    owner.collector_mut().note_collected();
    let beside = (owner.pages_beside() > 0).then_some(victim);
    let mut from = 0;
    while let Some((page, place)) = next_valid(owner, victim, from)? {
        if owner.room() < owner.move_pages() {
            return Err(no_room(owner));
        }
        if !save(owner, page, beside)? {
            break;
        }
        from = place;
    }
    leave_alone(owner, victim);
    Ok(())
}

/// The first valid page of `block` from the one at `from` on, and its place in the block.
///
/// Cost: where the account does not tell, what [`PageOwner::is_needed`] reads for each page.
pub fn next_valid<'b, F: Flash>(
    owner: &mut impl PageOwner<'b, F>,
    block: BlockNumber,
    from: u32,
) -> Result<Option<(PageNumber, u32)>, Fault<F::Error>> {
    // To find out whether a page is needed makes none valid or garbage.
    if owner.log().blocks.valid_in(block) == 0 {
        return Ok(None);
    }
    for place in from..owner.log().geometry().pages_per_block {
        let page = owner.log().geometry().page_in(block, place);
        if owner.log().blocks.is_valid(page) && (owner.knows_pages() || owner.is_needed(page)?) {
            return Ok(Some((page, place)));
        }
    }
    Ok(None)
}

/// Saves what is on weak pages and bad blocks, as far as there is room.
fn tend<'b, F: Flash>(owner: &mut impl PageOwner<'b, F>) -> Result<(), Fault<F::Error>> {
    if owner.log().has_weak() {
        // A device that is worn out refuses this, and may take the change all the same.
        let pages = owner.move_pages();
        match gain_room(owner, pages) {
            Err(Fault::NoRoom { .. } | Fault::WornOut { .. }) => {}
            gained => gained?,
        }
    }
    while owner.room() >= floor(owner)
        && let Some(page) = owner.log_mut().take_weak()
    {
        note_refreshed(owner);
        save(owner, page, None)?;
    }
    if let Some(block) = owner.log().blocks.failing() {
        relieve(owner, block)?;
    }
    owner.log_mut().mark_bad_blocks()
}

fn note_refreshed<'b, F: Flash>(owner: &mut impl PageOwner<'b, F>) {
    let collector = owner.collector_mut();
    collector.refreshed_pages = collector.refreshed_pages.saturating_add(1);
}

/// Puts a block into circulation whose data has rested while others wore out (static wear
/// levelling), as far as there is room for it; the next calls go on.
fn level_wear<'b, F: Flash>(owner: &mut impl PageOwner<'b, F>) -> Result<(), Fault<F::Error>> {
    match owner.log_mut().rested()? {
        Some(rested) => relieve(owner, rested),
        None => Ok(()),
    }
}

/// Moves a few valid pages of `block`, each by itself, for another reason than to gain room.
fn relieve<'b, F: Flash>(
    owner: &mut impl PageOwner<'b, F>,
    block: BlockNumber,
) -> Result<(), Fault<F::Error>> {
    owner.collector_mut().note_collected();
    let mut from = 0;
    for _ in 0..SPARE_MOVES {
        if owner.room() < floor(owner) {
            return Ok(());
        }
        let Some((page, place)) = next_valid(owner, block, from)? else {
            leave_alone(owner, block);
            break;
        };
        if !save(owner, page, None)? {
            break;
        }
        from = place;
    }
    Ok(())
}

/// All pages of `block` were looked at. What cannot be found in it, because it is damaged, stays.
fn leave_alone<'b, F: Flash>(owner: &mut impl PageOwner<'b, F>, block: BlockNumber) {
    if !owner.knows_pages() && owner.log().blocks.valid_in(block) > 0 {
        owner.log_mut().blocks.set_stuck(block);
    }
}

/// Moves a page. Returns whether it could be read: if not, its block is left alone.
pub fn save<'b, F: Flash>(
    owner: &mut impl PageOwner<'b, F>,
    page: PageNumber,
    beside: Option<BlockNumber>,
) -> Result<bool, Fault<F::Error>> {
    match owner.relocate(page, beside) {
        Ok(()) => Ok(true),
        Err(Fault::Corrupt { .. }) if !owner.in_doubt() => {
            // Where the account does not tell, garbage may be found weak: that a page of it leads
            // nowhere is no damage.
            if owner.knows_pages() {
                let block = owner.log().geometry().block_of(page);
                owner.log_mut().blocks.set_stuck(block);
            }
            // It was read, and may have been found weak again.
            owner.log_mut().forget_weak(page);
            Ok(false)
        }
        Err(fault) => Err(fault),
    }
}
