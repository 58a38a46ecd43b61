//! Garbage collection: empties blocks with few valid pages, to reuse them.
//!
//! Three other kinds of work belong to it. Bad blocks are emptied first, pages that the ECC found
//! weak are written elsewhere, and blocks with cold data are put into circulation.
//!
//! Only the owner of the pages knows which of them are still needed, and which pointers change if
//! one moves; the trait [`PageOwner`] asks it. This module decides when, in which order and how
//! much is moved, for changes and for idle steps alike (`gc/idle.rs`).
//!
//! A damaged page never stops a change elsewhere: the block that holds it is left alone.

mod budget;
mod idle;

pub use budget::{Budget, Extent, MOVED_ALONG_MAX, RelocationMode, room_to_fail};
pub use idle::Idle;
pub use idle::{least, step};

use crate::error::Fault;
use crate::flash::{BlockNumber, Flash, PageNumber};
use crate::log::Log;

/// Moves of one change that serve purposes other than gaining room.
pub const SPARE_MOVES: u32 = 4;

/// Rounds of one collection that may gain nothing before it counts as stuck.
///
/// A block that fails on the way uses the room that was kept for it.
const IDLE_ROUNDS: u32 = 16;

/// The state and the counters of a garbage collector.
#[derive(Default)]
pub struct Collector {
    /// Whether cuts, or blocks that failed, have touched the reserve.
    reserve_touched: bool,
    collected_blocks: u32,
    refreshed_pages: u32,
    /// The next page that the patrol reads to check its ECC.
    patrol: u32,
    /// The block with cold data that idle steps have emptied since the last change.
    rested: Option<BlockNumber>,
}

impl Collector {
    /// Collected blocks: those of which pages were moved.
    pub const fn collected_blocks(&self) -> u32 {
        self.collected_blocks
    }

    /// Pages moved because the ECC found them weak.
    pub const fn refreshed_pages(&self) -> u32 {
        self.refreshed_pages
    }

    /// Assumes that the reserve is untouched.
    pub const fn forget_reserve(&mut self) {
        self.reserve_touched = false;
    }

    /// Notes the block with cold data that idle steps empty until the next change.
    const fn note_rested(&mut self, block: BlockNumber) {
        self.rested = Some(block);
    }

    /// The page that the patrol comes to next, on a chip with this many pages.
    const fn next_patrolled(&mut self, pages: u32) -> PageNumber {
        let page = self.patrol;
        self.patrol = (page + 1) % pages;
        PageNumber(page)
    }

    fn note_collected(&mut self) {
        self.collected_blocks = self.collected_blocks.saturating_add(1);
    }
}

/// The owner of the pages of a log.
pub trait PageOwner<'b, F: Flash> {
    /// The log that holds the pages.
    fn log(&self) -> &Log<'b, F>;

    /// The log, mutable.
    fn log_mut(&mut self) -> &mut Log<'b, F>;

    /// The state of its collector.
    fn collector(&self) -> &Collector;

    /// The state of its collector, mutable.
    fn collector_mut(&mut self) -> &mut Collector;

    /// Moves `page` durably, if it is still needed.
    ///
    /// With `beside`, pages of that block that would be written later anyway may move along. Writes
    /// at most [`move_pages`](Self::move_pages) pages for each page that moves.
    fn relocate(
        &mut self,
        page: PageNumber,
        beside: Option<BlockNumber>,
    ) -> Result<(), Fault<F::Error>>;

    /// Pages that must be free before a change begins.
    ///
    /// This includes what cuts and failing blocks may take.
    fn kept(&self) -> u32;

    /// The part of [`kept`](Self::kept) that is the reserve.
    ///
    /// Only collection after a cut, or after a block failed, may take these pages.
    fn reserve_pages(&self) -> u32;

    /// The most pages written to empty a block with `valid` valid pages.
    ///
    /// The pages move `together`, or each by itself.
    fn pages_to_empty(&self, valid: u32, together: bool) -> u32;

    /// Chip operations of one move with this many pages moving along.
    fn move_cost(&self, beside: u32) -> u32;

    /// The most valid pages that the owner allows on the chip.
    fn limit_pages(&self) -> u32;

    /// Pages that can be written before anything is collected.
    ///
    /// Default: the room of the log.
    fn room(&self) -> u32 {
        self.log().room()
    }

    /// Pages written to move one page. Default: 1, the page itself.
    fn move_pages(&self) -> u32 {
        1
    }

    /// Pages of a victim that may move along with another; 0 if each moves by itself.
    ///
    /// Default: 0.
    fn pages_beside(&self) -> u32 {
        0
    }

    /// Writes out pages that are not on the chip yet. Default: there are none.
    fn write_out(&mut self) -> Result<(), Fault<F::Error>> {
        Ok(())
    }

    /// Prepares the first change since the mount. Returns whether it did anything.
    ///
    /// Default: no preparation is needed.
    fn begin_changes(&mut self) -> Result<bool, Fault<F::Error>> {
        Ok(false)
    }

    /// Moves pages of `victim` in an order that the owner chooses.
    ///
    /// It is not called once cuts have touched the reserve, unless the owner [empties
    /// blocks](Self::empties_blocks). Default: moves none.
    fn collect_ahead(&mut self, victim: BlockNumber) -> Result<(), Fault<F::Error>> {
        let _ = victim;
        Ok(())
    }

    /// Whether only [`collect_ahead`](Self::collect_ahead) gains room.
    ///
    /// It empties blocks then, and an idle step leaves that to the next change. Default: false.
    fn empties_blocks(&self) -> bool {
        false
    }

    /// Whether the block table knows which pages are valid.
    ///
    /// If not, [`is_needed`](Self::is_needed) has to search for each page. Default: as the table
    /// says.
    fn knows_pages(&self) -> bool {
        !self.log().blocks.searches()
    }

    /// Whether a page that may be valid really is. Default: true.
    fn is_needed(&mut self, page: PageNumber) -> Result<bool, Fault<F::Error>> {
        let _ = page;
        Ok(true)
    }

    /// The number of moves that empty `block`.
    ///
    /// If that is not lower than `best`, any number that is not lower than `best` may be returned.
    /// Default: one for each valid page.
    fn moves_to_empty(&mut self, block: BlockNumber, best: u32) -> Result<u32, Fault<F::Error>> {
        let _ = best;
        Ok(self.log().blocks.valid_in(block))
    }

    /// Whether a victim is chosen by its moves once cuts have touched the reserve.
    ///
    /// Default: true.
    fn counts_moves(&self) -> bool {
        true
    }

    /// Whether the state in RAM may differ from that on the chip.
    ///
    /// This is so after an operation failed half way. Default: never.
    fn in_doubt(&self) -> bool {
        false
    }

    /// The block to collect next, of those that gain room. Default: the log's choice.
    ///
    /// `gains` says whether a block with that number of valid pages gains room.
    fn victim(&self, gains: impl Fn(u32) -> bool) -> Option<BlockNumber> {
        self.log().victim(gains)
    }

    /// Whether it is time to look for a block with cold data.
    ///
    /// Default: the log decides.
    fn wear_due(&self) -> bool {
        self.log().wear_due(self.move_pages())
    }

    /// Erases the next block ahead of need. Returns whether it did.
    ///
    /// Default: as the log does.
    fn prepare_block(&mut self) -> Result<bool, Fault<F::Error>> {
        self.log_mut().prepare_block()
    }
}

/// The room below which pages move only to gain room.
pub fn floor<'b, F: Flash>(owner: &impl PageOwner<'b, F>) -> u32 {
    owner.kept() + owner.move_pages()
}

fn no_room<'b, F: Flash>(owner: &impl PageOwner<'b, F>) -> Fault<F::Error> {
    owner.log().no_room(owner.limit_pages())
}

/// Collects garbage until a change fits and the reserve is whole.
///
/// If `first`, it first does other work that is due: wear levelling, weak pages, bad blocks.
#[inline(always)]
pub fn make_room<'b, F: Flash>(
    owner: &mut impl PageOwner<'b, F>,
    first: bool,
) -> Result<(), Fault<F::Error>> {
    if first {
        owner.collector_mut().rested = None;
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

/// Collects garbage until `beyond` pages fit above those that have to be kept free.
#[inline(never)]
pub fn gain_room<'b, F: Flash>(
    owner: &mut impl PageOwner<'b, F>,
    beyond: u32,
) -> Result<(), Fault<F::Error>> {
    if owner.room() >= owner.kept() + beyond {
        owner.collector_mut().reserve_touched = false;
        return Ok(());
    }
    owner.write_out()?;
    note_reserve(owner);
    let mut idle_rounds = 0;
    while owner.room() < owner.kept() + beyond {
        // Where counting moves chose a victim that gained nothing, valid pages are counted.
        let victim = next_victim(owner, idle_rounds == 0)?;
        let Some(victim) = victim.filter(|_| idle_rounds < IDLE_ROUNDS) else {
            return Err(no_room(owner));
        };
        let room = owner.room();
        if owner.empties_blocks() || !owner.collector().reserve_touched {
            owner.collect_ahead(victim)?;
        }
        collect(owner, victim)?;
        idle_rounds += u32::from(owner.room() <= room);
    }
    owner.collector_mut().reserve_touched = false;
    Ok(())
}

/// Notes whether cuts, or blocks that failed, have touched the reserve.
///
/// The room for failing blocks is part of the reserve: cuts must not use that up either.
pub fn note_reserve<'b, F: Flash>(owner: &mut impl PageOwner<'b, F>) {
    // No block is open: nothing was written since the mount, or since a block failed. So a
    // collection that idle steps left half done does not count as touching the reserve.
    let touched = owner.log().active_block().is_none() && owner.room() < owner.reserve_pages();
    owner.collector_mut().reserve_touched |= touched;
}

/// Clears the note that the reserve was touched, if there is enough room now.
pub fn review_reserve<'b, F: Flash>(owner: &mut impl PageOwner<'b, F>) {
    let lacks = owner.room() < owner.kept();
    owner.collector_mut().reserve_touched &= lacks;
}

/// The block to empty next, to gain room.
///
/// Once the reserve is touched, it is the block that the fewest moves empty, if moves are counted.
#[inline(never)]
fn next_victim<'b, F: Flash>(
    owner: &mut impl PageOwner<'b, F>,
    counts_moves: bool,
) -> Result<Option<BlockNumber>, Fault<F::Error>> {
    if counts_moves && owner.counts_moves() && owner.collector().reserve_touched {
        return easiest_victim(owner);
    }
    let block_pages = owner.log().block_pages();
    let most = block_pages - gain(block_pages);
    let (together, room) = (owner.pages_beside() > 0, owner.room());
    // A victim other than the one with the fewest pages needs its own reserve.
    Ok(owner.victim(|valid| {
        owner.pages_to_empty(valid, together) <= most && reserve_blocks(valid) * block_pages <= room
    }))
}

/// Blocks that cuts can use up while a victim with `valid` valid pages is emptied.
///
/// `budget.rs` beside this has the proof.
pub const fn reserve_blocks(valid: u32) -> u32 {
    1 + valid.next_power_of_two().ilog2()
}

/// The least number of pages that emptying a block must gain.
pub const fn gain(block_pages: u32) -> u32 {
    if block_pages < 16 { 1 } else { block_pages / 8 }
}

/// The block that the fewest moves empty.
///
/// The search may read the valid pages of some blocks, so it is made only after cuts have touched
/// the reserve.
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
    covered!("the victim is the block that the fewest moves empty");
    let mut best = (owner.log().blocks.valid_in(fewest), fewest);
    for block in owner.log().blocks.all() {
        // A move empties at most as many pages as it writes, so a block with more valid pages than
        // that cannot take fewer moves.
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

/// The first valid page of `block` at or after `from`, and its place in the block.
///
/// Cost: where the block table does not know it, the reads of [`PageOwner::is_needed`] for each
/// page.
pub fn next_valid<'b, F: Flash>(
    owner: &mut impl PageOwner<'b, F>,
    block: BlockNumber,
    from: u32,
) -> Result<Option<(PageNumber, u32)>, Fault<F::Error>> {
    // Checking whether a page is needed makes none valid or garbage.
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

/// Rescues weak pages and the pages of bad blocks, as far as there is room.
#[inline(never)]
fn tend<'b, F: Flash>(owner: &mut impl PageOwner<'b, F>) -> Result<(), Fault<F::Error>> {
    if owner.log().has_weak() {
        // A worn-out device has no room for this, and may still have room for the change.
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

/// Static wear levelling: empties a block with cold data while others wear out.
///
/// It moves a few pages, as far as there is room; the next calls continue.
#[inline(never)]
fn level_wear<'b, F: Flash>(owner: &mut impl PageOwner<'b, F>) -> Result<(), Fault<F::Error>> {
    match owner.log_mut().rested()? {
        Some(rested) => relieve(owner, rested),
        None => Ok(()),
    }
}

/// Moves a few valid pages of `block`, each by itself, not to gain room.
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

/// Marks `block` as stuck if it still counts valid pages after all were visited.
///
/// Its remaining pages cannot be found because something is damaged; they stay.
fn leave_alone<'b, F: Flash>(owner: &mut impl PageOwner<'b, F>, block: BlockNumber) {
    if !owner.knows_pages() && owner.log().blocks.valid_in(block) > 0 {
        owner.log_mut().blocks.set_stuck(block);
    }
}

/// Moves a page. Returns `false` if it is unreadable; its block is then left alone.
pub fn save<'b, F: Flash>(
    owner: &mut impl PageOwner<'b, F>,
    page: PageNumber,
    beside: Option<BlockNumber>,
) -> Result<bool, Fault<F::Error>> {
    match owner.relocate(page, beside) {
        Ok(()) => Ok(true),
        Err(Fault::Corrupt { .. }) if !owner.in_doubt() => {
            // Where the block table does not know, garbage may be found weak: then it is no damage
            // that a page of it leads nowhere.
            if owner.knows_pages() {
                let block = owner.log().geometry().block_of(page);
                owner.log_mut().blocks.set_stuck(block);
            }
            // The page was just read, and may have been noted as weak again.
            owner.log_mut().forget_weak(page);
            Ok(false)
        }
        Err(fault) => Err(fault),
    }
}
