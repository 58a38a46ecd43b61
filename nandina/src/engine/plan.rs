//! What an index will cost, before it exists: RAM and chip operations.

/// Upper bounds of the chip operations of one call.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Cost {
    /// Page reads.
    pub reads: u64,
    /// Page programs, or rewrites where logical pages are replaced.
    pub programs: u64,
    /// Block erases.
    pub erases: u64,
}

impl Cost {
    /// The cost of this and of `count` times `others`.
    pub const fn and(self, count: u64, others: Self) -> Self {
        Self {
            reads: self.reads + count * others.reads,
            programs: self.programs + count * others.programs,
            erases: self.erases + count * others.erases,
        }
    }
}

/// The result of `nandina::plan`.
///
/// An engine outside of this crate begins with the default, which is all zeros.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct Plan {
    /// Bytes of the buffer that the index needs.
    pub ram_bytes: usize,
    /// Most levels of the tree, in whatever order records were inserted and removed.
    pub height: u8,
    /// Most pages that are valid at once.
    pub valid_pages: u32,
    /// Valid pages that are allowed in a tree of that size.
    ///
    /// For a system with virtual mappings, the pages that mappings may keep are subtracted.
    pub limit_pages: u32,
    /// The records fit, in whatever order they are inserted and removed.
    ///
    /// Their pages are allowed, and the pages have room for nodes of that many levels. No insert is
    /// refused.
    pub fits: bool,
    /// Opening the index, after a cut or a clean end.
    ///
    /// For each block whose erase was cut and that was not written since, twice its pages come on
    /// top.
    pub open: Cost,
    /// A lookup.
    pub get: Cost,
    /// A change of a record, with the garbage collection and the flush that are due.
    ///
    /// That is an insert, a replacement or a removal. The bound holds as long as power was not cut
    /// during garbage collection since it last caught up. In a tree that was thinned out, an insert
    /// that splits a node may first look through all nodes for some to merge; that is included.
    /// With a write buffer, all pending changes are applied before it, each to a leaf of its own. A
    /// flush and a tick cost no more.
    pub change: Cost,
    /// The same after any number of cuts during garbage collection.
    pub change_after_cuts: Cost,
    /// Closing the index, after any number of cuts.
    ///
    /// Without checkpoints one page, if that. Where a checkpoint ends a session, its pages, and the
    /// garbage collection that makes room for them.
    pub close: Cost,
    /// The least budget with which `gc_step` makes progress.
    pub gc_step_least: u32,
}
