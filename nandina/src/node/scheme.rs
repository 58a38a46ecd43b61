//! The three choices that make a system: how it updates, splits, and shares pages.
//!
//! Each is an enumeration, so that no two facts of a choice contradict each other. Only
//! those who declare a choice name it; others ask what follows from it, by the functions here.

/// How a change reaches the chip.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum UpdateScheme {
    /// Each change writes new pages up to the root, and the root commits it.
    Paths,
    /// A changed node is written to a new page; a mapping table leads to it.
    Mapped,
    /// A changed record is appended to the page that holds its node.
    Appended,
    /// A changed node replaces itself on its logical page.
    ///
    /// Nothing is erased or collected.
    InPlace,
    /// A changed leaf is written to a new page; a directory in RAM leads to it.
    ///
    /// There are no inner nodes. Of the leaves of a range the newest counts.
    Leaves,
    /// A change is appended to the log of a leaf, which is a block.
    ///
    /// A directory in RAM leads to it. There are no inner nodes. Of the leaves of a range the
    /// newest counts.
    LeafBlocks,
    /// A change is a record in a journal, and nodes are changed in RAM.
    ///
    /// A later commit writes the nodes; it may be that of a mount after a cut. So pages of changes
    /// come after the newest root, and if one of them is lost, so are its changes.
    Journal,
}

impl UpdateScheme {
    /// Whether blocks are collected, so that wear and victims are a choice.
    pub const fn collects(self) -> bool {
        !matches!(self, Self::InPlace | Self::LeafBlocks)
    }

    /// Whether a changed node replaces itself on its page, so that no block is erased.
    pub const fn replaces(self) -> bool {
        matches!(self, Self::InPlace)
    }

    /// Whether records are appended to pages that are programmed already.
    pub const fn appends(self) -> bool {
        matches!(self, Self::Appended)
    }

    /// Whether each page commits the operation that wrote it.
    ///
    /// Otherwise, only a root does.
    pub const fn pages_commit(self) -> bool {
        !matches!(self, Self::Paths)
    }
}

/// Which writes make a split of a node visible.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SplitCommit {
    /// The whole path is written; its root is the commit.
    Root,
    /// Both halves are written, then the parent, which is the commit.
    ParentOfBoth,
    /// The upper half is written, then the parent, which is the commit.
    ///
    /// The lower half stays where it is, with stale copies of the records that moved up.
    ParentOfUpper,
}

impl SplitCommit {
    /// Whether reads trim a node to the records below its upper neighbour's first key.
    ///
    /// They do where a node may be on the chip that is older than its parent.
    pub const fn trims(self) -> bool {
        !matches!(self, Self::Root)
    }

    /// Whether the lower half of a split node stays where it is, untouched.
    pub const fn lower_stays(self) -> bool {
        matches!(self, Self::ParentOfUpper)
    }
}

/// How the nodes of a path share pages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PageSharing {
    /// Each node has a page of its own.
    Never,
    /// A page can hold several nodes, each in the part that its level has.
    ByLevel,
    /// A page can hold several nodes; their counts say where each begins.
    ///
    /// So how many records a leaf can have depends on its path.
    Packed,
}

impl PageSharing {
    /// Whether some inner nodes have no page of their own.
    pub const fn shares(self) -> bool {
        !matches!(self, Self::Never)
    }

    /// Whether each page says where its nodes are.
    pub const fn packs(self) -> bool {
        matches!(self, Self::Packed)
    }
}
