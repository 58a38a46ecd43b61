//! `compact`, ours: runs in packed leaves of variable span, changed in place.
//!
//! The paper has nothing like it; its opponents there are `emt` and `page`.
//!
//! The logical space is divided into parts, one for each leaf; a small sorted directory leads to
//! the leaf of a unit. A leaf (`leaf.rs`) has up to 64 items of as few bits as it needs, or a flat
//! array where that is smaller. A change moves the bits behind it (`edit.rs`); only a leaf that
//! overflows, or whose fields became too narrow, is encoded again (`encode.rs`). Runs that continue
//! one another are joined inside of a leaf. Look-ups are in `look_up.rs`, slots and directory in
//! `store.rs`.
//!
//! Each item has an allowance of bytes. While all leaves, holes and directory take less than the
//! sum, memory is not short, and time is worth more: more holes stay, a leaf that grows gets a
//! spare granule, and one that overflows is divided without its neighbour. Holes stay as well while
//! everything takes no more than 1,000 runs may.
//!
//! The leaf that was last found is tried first, and before it the piece that was last looked up. A
//! change that continues the previous one needs no search (`follow.rs`).
//!
//! No change keeps a leaf unpacked, and none takes memory besides that of the caller, except 3 KB
//! of stack.

mod bits;
mod edit;
mod encode;
mod follow;
mod leaf;
mod look_up;
mod store;

use core::cell::Cell;

use super::contract::{Broken, Bytes, Mapping, Scheme, Work};
use super::extent::{Extent, Joined, Piece, Run, Space};
use super::refusal::Refusal;
use follow::End;
use leaf::{Form, ITEMS, Leaf, UNITS};
use store::{ENTRY, GRANULE, Store, granules};

/// Runs in packed leaves.
pub struct Compact<'m> {
    space: Space,
    store: Store<'m>,
    physical_bits: u32,
    /// Bytes that any change needs free.
    reserve: usize,
    /// Bits that all leaves may take before memory is short.
    allowance: usize,
    /// The leaf that was last found, if its part is not empty: its number, and its part.
    last: Cell<(usize, Extent)>,
    end: End,
    /// The last piece that was looked up, empty after a change.
    piece: Cell<Piece>,
    nodes: Cell<u64>,
}

impl<'m> Compact<'m> {
    /// Bytes that any change needs free.
    ///
    /// At most three leaves take the place of those that it meets, and two flat leaves, covered in
    /// part, are encoded again. Where items may need more than a word, leaves have half the runs, or
    /// fewer that take no more bytes together.
    fn reserve(space: Space) -> usize {
        let item = 2 * bits::width(space.logical) + bits::width(space.physical);
        let leaves = if item <= u64::BITS { 5 } else { 8 };
        let units = UNITS * bits::width(space.physical);
        let slot = granules(ITEMS * item.min(u64::BITS) as usize).max(granules(units as usize));
        leaves * (slot * GRANULE + ENTRY)
    }

    /// Bytes with which `runs` runs fit, with room for any change.
    pub fn bytes_for(space: Space, runs: usize) -> usize {
        Self::reserve(space) + runs * 16
    }

    /// A mapping without any run.
    ///
    /// Refuses with [`Refusal::Full`] if no change would be accepted.
    pub fn new(space: Space, memory: &'m mut [u8]) -> Result<Self, Refusal> {
        let store = Store::new(memory);
        let reserve = Self::reserve(space);
        store.room(reserve + GRANULE + ENTRY)?;
        let physical_bits = bits::width(space.physical);
        let mut map = Compact {
            space,
            store,
            physical_bits,
            reserve,
            allowance: 0,
            last: Cell::new((0, Extent::new(0, 0))),
            end: End::default(),
            piece: Cell::new(Piece::NONE),
            nodes: Cell::new(0),
        };
        map.store.replace_entries(0, 0, 1);
        map.store.set_base(0, 0);
        map.write_leaf(0, &[], space.logical);
        Ok(map)
    }

    #[inline(always)]
    fn leaf(&self, at: usize) -> Leaf {
        self.store.leaf(at, self.space.logical, self.physical_bits)
    }

    /// The leaf whose part of the space has `unit`, and its number.
    #[inline(always)]
    fn leaf_with(&self, unit: u32) -> (usize, Leaf) {
        // Often it is the one of the change or look-up before.
        let (last, part) = self.last.get();
        if unit.wrapping_sub(part.start) < part.length {
            self.count(1);
            return (last, self.leaf(last));
        }
        let (at, leaf, read) = self.store.find(unit, self.space.logical, self.physical_bits);
        self.count(read);
        self.last.set((at, leaf.part()));
        (at, leaf)
    }

    /// Forgets the leaf that was last found.
    ///
    /// Call this before leaves get other numbers or parts.
    fn forget(&self) {
        self.last.set((0, Extent::new(0, 0)));
    }

    fn count(&self, nodes: u64) {
        self.nodes.set(self.nodes.get() + nodes);
    }
}

impl Scheme for Compact<'_> {
    fn find(&mut self, extent: Extent, mut found: &mut dyn FnMut(Piece)) {
        self.visit(extent, &mut found);
    }

    fn room(&self, _extent: Extent, _adds: bool) -> Result<(), Refusal> {
        self.store.room(self.reserve)
    }

    fn replace(&mut self, extent: Extent, physical: Option<u32>, superseded: &mut dyn FnMut(Run)) {
        self.change(extent, physical, superseded);
    }
}

impl Mapping for Compact<'_> {
    fn space(&self) -> Space {
        self.space
    }

    fn walk(&self, visit: &mut dyn FnMut(Run)) {
        Joined::runs(visit, |pieces| {
            self.visit_from::<false>(0, self.space.whole(), &mut |piece| pieces.push(piece))
        });
    }

    fn entries(&self) -> usize {
        (0..self.store.entries()).map(|at| self.leaf(at).count).sum()
    }

    fn bytes(&self) -> Bytes {
        self.store.bytes()
    }

    fn work(&self) -> Work {
        let moved = self.store.moved();
        Work { nodes: self.nodes.get(), moved, ..Work::default() }
    }

    fn check(&self) -> Result<(), Broken> {
        if !self.store.is_whole() {
            return Err(Broken("slots and holes do not tile the memory"));
        }
        if self.store.base(0) != 0 {
            return Err(Broken("the first leaf does not begin with the space"));
        }
        for at in 0..self.store.entries() {
            self.check_leaf(&self.leaf(at))?;
        }
        if self.allowance != (0..self.store.entries()).map(|at| self.leaf(at).allowance()).sum() {
            return Err(Broken("the allowance is not that of the leaves"));
        }
        Ok(())
    }
}

impl Compact<'_> {
    fn check_leaf(&self, leaf: &Leaf) -> Result<(), Broken> {
        let items = leaf.items(self.store.memory());
        if leaf.base >= leaf.limit {
            return Err(Broken("the bases of leaves do not rise"));
        }
        if granules(leaf.fields() * leaf.stride()) > leaf.granules {
            return Err(Broken("a leaf is larger than its slot"));
        }
        let is_flat = leaf.form == Form::Units;
        if is_flat && leaf.part().length > UNITS || !is_flat && leaf.count > ITEMS {
            return Err(Broken("a leaf has more items than one may have"));
        }
        let (mut end, mut pieces) = (leaf.base, 0);
        let mut last: Option<Piece> = None;
        for item in (0..leaf.fields()).map(|at| leaf.item(items, at)) {
            self.check_item(leaf, item, end, last)?;
            let joins = last.is_some_and(|last| last.continues_to(&item));
            pieces += usize::from(!joins);
            end = item.end();
            last = Some(item);
        }
        if leaf.form == Form::Pieces && end != leaf.limit {
            return Err(Broken("items do not tile their leaf"));
        }
        if pieces != leaf.count {
            return Err(Broken("the number of pieces of a flat leaf is wrong"));
        }
        Ok(())
    }

    /// Checks an item behind another one, which ends at `end`.
    fn check_item(
        &self,
        leaf: &Leaf,
        item: Piece,
        end: u32,
        last: Option<Piece>,
    ) -> Result<(), Broken> {
        if item.length == 0 || item.logical < end || item.end() > leaf.limit {
            return Err(Broken("an item overlaps another one, or ends behind its leaf"));
        }
        if leaf.form == Form::Pieces && item.logical != end {
            return Err(Broken("items do not tile their leaf"));
        }
        let last_unit = item.physical.map(|physical| physical + (item.length - 1));
        if last_unit.is_some_and(|unit| unit >= self.space.physical) {
            return Err(Broken("a unit is mapped behind the physical space"));
        }
        let joins = last.is_some_and(|last| last.continues_to(&item));
        if joins && leaf.form != Form::Units {
            return Err(Broken("two items that continue one another are not joined"));
        }
        Ok(())
    }
}
