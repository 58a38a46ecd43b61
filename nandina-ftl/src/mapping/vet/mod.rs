//! `vet`: the Virtual Extent Trie, with its nodes in a hash table (§2.2, §3).
//!
//! A write is divided into canonical extents; each is a leaf of a binary trie over all units. The
//! trie has no pointers: a node is found by its prefix. To find the leaf of a unit is a binary
//! search over the lengths of its prefixes, guided by internal nodes.
//!
//! An internal node counts the leaves that need it and goes with the last of them. One that stayed
//! would lead the search below a leaf above it, and so hide that leaf.
//!
//! The mapping is generic in the table and in where leaves keep their physical units. No look-up
//! backtracks.

mod chained;
mod cuckoo;
mod extents;
#[cfg(feature = "std")]
mod hash_brown;
mod path;
mod table;

pub use chained::Chained;
pub use cuckoo::Cuckoo;
pub use extents::{Extents, Inline, Pointed};
#[cfg(feature = "std")]
pub use hash_brown::Brown;
pub use path::Insertion;
pub use table::{Node, Table};

use super::contract::{Broken, Bytes, Mapping, Scheme, Work};
use super::extent::{Extent, Joined, Piece, Run, Space};
use super::refusal::Refusal;
use path::Levels;

/// The most logical units: prefixes of 31 bits and a leading 1 are keys of 32.
pub const LOGICAL_MAX: u32 = 1 << 31;

/// A Virtual Extent Trie in the table `T`, whose leaves lead to extents in `E`.
pub struct Vet<T, E> {
    space: Space,
    levels: Levels,
    insertion: Insertion,
    table: T,
    extents: E,
}

/// What a search for a unit finds.
enum Found {
    /// A leaf: its units, its level and its word.
    Leaf(Extent, u32, u32),
    /// No leaf: none of these units is mapped.
    Hole(Extent),
}

/// Units that are left of a divided leaf, and the word and start of that leaf.
type Remainder = Option<(Extent, u32, u32)>;

impl<T: Table, E: Extents> Vet<T, E> {
    /// A mapping in an empty table. Refuses with [`Refusal::Space`].
    pub fn new(space: Space, insertion: Insertion, table: T, extents: E) -> Result<Self, Refusal> {
        if space.logical > LOGICAL_MAX {
            return Err(Refusal::Space { logical_max: LOGICAL_MAX });
        }
        Ok(Vet { space, levels: Levels::of(space.logical), insertion, table, extents })
    }

    /// Algorithm 2, for one unit: a binary search over the lengths of its prefixes.
    ///
    /// Where there is no leaf, the hole ends behind the prefix whose look-up failed first: had that
    /// prefix a leaf below it, that leaf would need the node which is missing. The prefixes that
    /// fail later are shorter, and a search for a leaf below them need not look at them.
    fn search(&self, unit: u32) -> Found {
        let mut search = self.levels.search();
        let mut hole = None;
        while let Some(level) = search.middle() {
            match self.table.get(self.levels.key(unit, level)) {
                Some(Node { length: 0, .. }) => search.look_below(level),
                Some(Node { length, word }) => {
                    let start = self.levels.prefix(unit, level).start;
                    return Found::Leaf(Extent::new(start, length), level, word);
                }
                None => {
                    hole = hole.or(Some(level));
                    search.look_above(level);
                }
            }
        }
        // Only a stale internal node at the last level could leave the search without a failure.
        let level = hole.unwrap_or(self.levels.0);
        Found::Hole(self.levels.prefix(unit, level))
    }

    /// Passes the pieces of `extent`, in order.
    fn visit(&self, extent: Extent, mut pass: impl FnMut(Piece)) {
        let mut unit = extent.start;
        while unit < extent.end() {
            let piece = match self.search(unit) {
                Found::Hole(hole) => Piece::hole(hole),
                Found::Leaf(Extent { start, length }, _, word) => {
                    let physical = self.extents.physical(word, start);
                    Piece { logical: start, length, physical: Some(physical) }
                }
            };
            let Some(piece) = piece.within(Extent::between(unit, extent.end())) else { break };
            unit = piece.end();
            pass(piece);
        }
    }

    /// Nodes that leaves for all of `extent` add at most.
    fn nodes(&self, extent: Extent) -> usize {
        let canonical = self.levels.canonical(extent);
        let (leaves, path) = canonical.fold((0, 0), |(leaves, path), (_, level)| {
            (leaves + 1, path + self.levels.path(level, self.insertion).count())
        });
        // A level has two nodes at most that are above a part of the extent only.
        leaves + path.min(2 * self.levels.0 as usize)
    }

    /// Stores a leaf and counts it in the internal nodes that it needs.
    fn insert_leaf(&mut self, part: Extent, level: u32, word: u32) {
        for above in self.levels.path(level, self.insertion) {
            let key = self.levels.key(part.start, above);
            let leaves = self.table.get(key).map_or(0, |node| node.word);
            self.table.put(key, Node { length: 0, word: leaves + 1 });
        }
        let node = Node { length: part.length, word };
        self.table.put(self.levels.key(part.start, level), node);
    }

    /// Drops a leaf, and the internal nodes that no other leaf needs.
    fn remove_leaf(&mut self, part: Extent, level: u32) {
        self.table.remove(self.levels.key(part.start, level));
        for above in self.levels.path(level, self.insertion) {
            let key = self.levels.key(part.start, above);
            match self.table.get(key) {
                Some(Node { length: 0, word }) if word > 1 => {
                    self.table.put(key, Node { length: 0, word: word - 1 });
                }
                _ => self.table.remove(key),
            }
        }
    }

    /// Stores leaves for all of `extent`; `word` is that of what begins at `from`.
    fn insert(&mut self, (extent, word, from): (Extent, u32, u32)) {
        for (part, level) in self.levels.canonical(extent) {
            let word = self.extents.share(word, from, part.start);
            self.insert_leaf(part, level, word);
        }
    }
}

impl<T: Table, E: Extents> Scheme for Vet<T, E> {
    fn find(&mut self, extent: Extent, found: &mut dyn FnMut(Piece)) {
        Joined::pieces(found, |pieces| self.visit(extent, |piece| pieces.push(piece)));
    }

    fn room(&self, extent: Extent, adds: bool) -> Result<(), Refusal> {
        let mut more = if adds { self.nodes(extent) } else { 0 };
        let (mut dropped, mut unit) = (0, extent.start);
        while unit < extent.end() {
            let end = match self.search(unit) {
                Found::Hole(hole) => hole.end(),
                Found::Leaf(leaf, ..) => {
                    dropped += 1;
                    more += self.nodes(Extent::between(leaf.start, extent.start));
                    more += self.nodes(Extent::between(extent.end(), leaf.end()));
                    leaf.end()
                }
            };
            // Where all fits, whatever is dropped, no more of the extent is searched.
            let last_leaf = 2 * self.levels.0 as usize + self.levels.0 as usize;
            if self.table.room(more + last_leaf).is_ok() {
                break;
            }
            unit = end;
        }
        let with = |other: Bytes| {
            move |refusal| match refusal {
                Refusal::Full { needed } => Refusal::Full { needed: needed + other.reserved },
                refusal => refusal,
            }
        };
        let more = more.saturating_sub(dropped);
        self.table.room(more).map_err(with(self.extents.bytes()))?;
        let more = usize::from(adds);
        self.extents.room(more).map_err(with(self.table.bytes()))
    }

    /// Algorithms 1 and 3: leaves that `extent` overlaps give way to new ones.
    ///
    /// Line 5 of Algorithm 1 and line 4 of Algorithm 3 drop a subtree. Here its leaves are found by
    /// search, as each must be passed on; internal nodes go with the last leaf that needs them.
    fn replace(&mut self, extent: Extent, physical: Option<u32>, superseded: &mut dyn FnMut(Run)) {
        let (mut left, mut right): (Remainder, Remainder) = (None, None);
        Joined::runs(superseded, |pieces| {
            let mut unit = extent.start;
            while unit < extent.end() {
                let (leaf, level, word) = match self.search(unit) {
                    Found::Leaf(leaf, level, word) => (leaf, level, word),
                    Found::Hole(hole) => {
                        unit = hole.end();
                        continue;
                    }
                };
                let physical = self.extents.physical(word, leaf.start);
                let run = Run { logical: leaf.start, length: leaf.length, physical };
                if let Some(cut) = run.within(extent) {
                    pieces.push(cut.into());
                }
                self.remove_leaf(leaf, level);
                let before = Extent::between(leaf.start, extent.start);
                let behind = Extent::between(extent.end(), leaf.end());
                left = left.or((before.length > 0).then_some((before, word, leaf.start)));
                right = (behind.length > 0).then_some((behind, word, leaf.start));
                if before.length == 0 && behind.length == 0 {
                    self.extents.drop_leaf(word);
                }
                unit = leaf.end();
            }
        });
        left.into_iter().chain(right).for_each(|remainder| self.insert(remainder));
        // The leaves that were divided; one that was divided at both ends counts once.
        if let Some((_, word, _)) = left {
            self.extents.drop_leaf(word);
        }
        if let Some((_, word, from)) = right
            && left.is_none_or(|(_, _, left)| left != from)
        {
            self.extents.drop_leaf(word);
        }
        if let Some(physical) = physical {
            let run = Run { logical: extent.start, length: extent.length, physical };
            let word = self.extents.add(run);
            self.insert((extent, word, extent.start));
        }
    }
}

impl<T: Table, E: Extents> Mapping for Vet<T, E> {
    fn space(&self) -> Space {
        self.space
    }

    fn walk(&self, visit: &mut dyn FnMut(Run)) {
        Joined::runs(visit, |pieces| self.visit(self.space.whole(), |piece| pieces.push(piece)));
    }

    fn entries(&self) -> usize {
        self.table.entries()
    }

    fn bytes(&self) -> Bytes {
        let (table, extents) = (self.table.bytes(), self.extents.bytes());
        Bytes {
            used: table.used + extents.used,
            reserved: table.reserved + extents.reserved,
            peak: table.peak + extents.peak,
        }
    }

    fn work(&self) -> Work {
        Work { probes: self.table.probes(), ..Work::default() }
    }

    fn check(&self) -> Result<(), Broken> {
        self.table.check()?;
        let (mut leaves, mut units, mut needed, mut counted) = (0, 0u64, 0, 0);
        let mut broken = None;
        self.table.each(&mut |key, node| {
            let (part, level) = self.levels.decode(key);
            if node.length == 0 {
                counted += node.word as usize;
                return;
            }
            leaves += 1;
            units += u64::from(part.length);
            if part.length != node.length || part.end() > self.space.logical {
                broken = Some("a leaf has another length than its prefix");
            }
            let last = self.extents.physical(node.word, part.start).checked_add(part.length);
            if last.is_none_or(|end| end > self.space.physical) {
                broken = Some("a unit is mapped behind the physical space");
            }
            for above in self.levels.path(level, self.insertion) {
                needed += 1;
                let node = self.table.get(self.levels.key(part.start, above));
                if !node.is_some_and(|node| node.length == 0 && node.word > 0) {
                    broken = Some("an internal node that a leaf needs is missing");
                }
            }
        });
        if let Some(broken) = broken {
            return Err(Broken(broken));
        }
        if needed != counted {
            return Err(Broken("internal nodes count other leaves than need them"));
        }
        let mut found = 0;
        self.walk(&mut |run| found += u64::from(run.length));
        if found != units {
            return Err(Broken("a leaf is hidden, or two leaves overlap"));
        }
        self.extents.check(leaves)
    }
}

#[cfg(test)]
mod tests;
