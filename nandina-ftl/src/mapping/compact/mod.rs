//! `compact`, ours: runs in packed leaves of variable span, changed in place.
//!
//! The paper has nothing like it; its opponents there are `emt` and `page`.
//!
//! The logical space is divided into parts, one for each leaf; a small sorted directory leads to
//! the leaf of a unit. A leaf (`leaf.rs`) has up to 64 items of as few bits as it needs, or a flat
//! array where that is smaller. A change moves the bits behind it (`edit.rs`); only a leaf that
//! overflows, or whose fields became too narrow, is encoded again (`encode.rs`). Runs that continue
//! one another are joined inside of a leaf. Slots and directory are in `store.rs`.
//!
//! No change keeps a leaf unpacked, and none takes memory besides that of the caller, except 3 KB
//! of stack.

mod bits;
mod edit;
mod encode;
mod leaf;
mod store;

use core::cell::Cell;

use super::contract::{Broken, Bytes, Mapping, Refusal, Scheme, Work};
use super::extent::{Extent, Joined, Piece, Run, Space};
use leaf::{Form, ITEMS, Leaf, UNITS};
use store::{ENTRY, GRANULE, Store, granules};

/// Runs in packed leaves.
pub struct Compact<'m> {
    space: Space,
    store: Store<'m>,
    physical_bits: u32,
    /// Bytes that any change needs free.
    reserve: usize,
    nodes: Cell<u64>,
}

impl<'m> Compact<'m> {
    /// Bytes that any change needs free.
    ///
    /// At most three leaves take the place of those that it meets, and two flat leaves, covered in
    /// part, are encoded again.
    fn reserve(space: Space) -> usize {
        let item = 2 * bits::width(space.logical) + bits::width(space.physical);
        let units = UNITS * bits::width(space.physical);
        let slot = granules(ITEMS * item as usize).max(granules(units as usize));
        5 * (slot * GRANULE + ENTRY)
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
        let mut map = Compact { space, store, physical_bits, reserve, nodes: Cell::new(0) };
        map.store.replace_entries(0, 0, 1);
        map.store.set_base(0, 0);
        map.write_leaf(0, &[], space.logical);
        Ok(map)
    }

    fn leaf(&self, at: usize) -> Leaf {
        self.store.leaf(at, self.space.logical, self.physical_bits)
    }

    /// The leaf whose part of the space has `unit`.
    fn leaf_with(&self, unit: u32) -> usize {
        let (at, read) = self.store.find(unit);
        self.count(read);
        at
    }

    fn count(&self, nodes: u64) {
        self.nodes.set(self.nodes.get() + nodes);
    }

    /// Passes what is stored of `extent`, cut to it, in order. Holes may be missing.
    fn visit(&self, extent: Extent, mut pass: impl FnMut(Piece)) {
        let memory = self.store.memory();
        let mut at = self.leaf_with(extent.start);
        loop {
            let leaf = self.leaf(at);
            let (first, read) = leaf.find(memory, extent.start.max(leaf.base));
            self.count(read);
            let mut passed = 0;
            leaf.scan(memory, first, |item| {
                if item.end() <= extent.start {
                    return true;
                }
                let piece = item.within(extent);
                passed += u64::from(piece.is_some());
                piece.map(&mut pass).is_some()
            });
            self.count(passed);
            if leaf.limit >= extent.end() || at + 1 >= self.store.entries() {
                break;
            }
            at += 1;
        }
    }
}

impl Scheme for Compact<'_> {
    fn find(&mut self, extent: Extent, found: &mut dyn FnMut(Piece)) {
        Joined::pieces(found, |pieces| {
            let mut at = extent.start;
            self.visit(extent, |piece| {
                if at < piece.logical {
                    pieces.push(Piece::hole(Extent::between(at, piece.logical)));
                }
                at = piece.end();
                pieces.push(piece);
            });
            if at < extent.end() {
                pieces.push(Piece::hole(Extent::between(at, extent.end())));
            }
        });
    }

    fn room(&self, _extent: Extent, _adds: bool) -> Result<(), Refusal> {
        self.store.room(self.reserve)
    }

    fn replace(&mut self, extent: Extent, physical: Option<u32>, superseded: &mut dyn FnMut(Run)) {
        Joined::runs(superseded, |old| self.change(extent, physical, old));
    }
}

impl Mapping for Compact<'_> {
    fn space(&self) -> Space {
        self.space
    }

    fn walk(&self, visit: &mut dyn FnMut(Run)) {
        Joined::runs(visit, |pieces| self.visit(self.space.whole(), |piece| pieces.push(piece)));
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
        Ok(())
    }
}

impl Compact<'_> {
    fn check_leaf(&self, leaf: &Leaf) -> Result<(), Broken> {
        let memory = self.store.memory();
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
        let mut broken = None;
        leaf.scan(memory, 0, |item| {
            broken = self.check_item(leaf, item, end, last).err();
            let joins = last.is_some_and(|last| last.continues_to(&item));
            pieces += usize::from(!joins);
            end = item.end();
            last = Some(item);
            broken.is_none()
        });
        if let Some(broken) = broken {
            return Err(broken);
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
