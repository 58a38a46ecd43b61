//! What RAM knows of the tree: its root, its size, and whether the medium agrees.
//!
//! Only the verbs below change it. Nothing is read or written here.

/// The state of a tree in RAM.
pub struct State {
    root: u32,
    height: u8,
    records: u32,
    inner_nodes: u32,
    /// An operation failed half way.
    /// As after a cut, only the medium shows what is true.
    in_doubt: bool,
    /// No page on the chip can read differently from when the index was opened.
    settled: bool,
    /// Damaged pages after the root that the mount found, unless a cut explains them.
    unexplained_pages: u32,
    from_checkpoint: bool,
    moved_pages: u32,
}

impl State {
    /// The state before the first mount: nothing is known.
    pub const fn unmounted() -> Self {
        Self {
            root: 0,
            height: 1,
            records: 0,
            inner_nodes: 0,
            in_doubt: true,
            settled: false,
            unexplained_pages: 0,
            from_checkpoint: false,
            moved_pages: 0,
        }
    }

    /// The pointer to the root: a page, or its logical address.
    pub const fn root(&self) -> u32 {
        self.root
    }

    /// Levels of the tree.
    pub const fn height(&self) -> u8 {
        self.height
    }

    /// Records in the tree, without pending changes.
    pub const fn records(&self) -> u32 {
        self.records
    }

    /// Nodes above the leaves.
    pub const fn inner_nodes(&self) -> u32 {
        self.inner_nodes
    }

    /// Whether the medium must be mounted again before it is used.
    pub const fn is_in_doubt(&self) -> bool {
        self.in_doubt
    }

    /// Whether no page on the chip can read differently from when the index was opened.
    pub const fn is_settled(&self) -> bool {
        self.settled
    }

    /// Damaged pages that the mount found and no cut explains.
    pub const fn unexplained_pages(&self) -> u32 {
        self.unexplained_pages
    }

    /// Whether the mount began at a checkpoint.
    pub const fn is_from_checkpoint(&self) -> bool {
        self.from_checkpoint
    }

    /// Pages that collection has moved since the index was opened.
    pub const fn moved_pages(&self) -> u32 {
        self.moved_pages
    }

    /// Something is about to be written.
    ///
    /// Until [`trust`](Self::trust) only the medium shows what is true.
    pub const fn doubt(&mut self) {
        self.in_doubt = true;
    }

    /// What RAM says is on the medium.
    pub const fn trust(&mut self) {
        self.in_doubt = false;
    }

    /// The mount has settled what may be torn, or has not.
    pub const fn set_settled(&mut self, settled: bool) {
        self.settled = settled;
    }

    /// The root was written to `root`.
    pub const fn move_root(&mut self, root: u32) {
        self.root = root;
    }

    /// A change has committed, with the root at `root` and `records` records.
    pub const fn commit(&mut self, root: u32, records: u32) {
        (self.root, self.records) = (root, records);
    }

    /// A mount has found the tree at `root`.
    pub const fn find(&mut self, root: u32, height: u8, records: u32) {
        (self.root, self.height, self.records) = (root, height, records);
    }

    /// A format begins a tree that is a single leaf.
    pub const fn begin_leaf(&mut self) {
        self.height = 1;
    }

    /// The format is over: the tree is empty, and nothing older counts.
    pub const fn formatted(&mut self) {
        (self.records, self.inner_nodes, self.unexplained_pages) = (0, 0, 0);
        self.from_checkpoint = false;
        self.settled = true;
    }

    /// The root is split, so there is one more level.
    pub const fn grow(&mut self) {
        self.height += 1;
    }

    /// The only child of the root becomes the root.
    pub const fn shrink(&mut self) {
        self.height -= 1;
    }

    /// Counts one inner node more.
    pub const fn add_inner_node(&mut self) {
        self.inner_nodes += 1;
    }

    /// Counts one inner node less. Returns `false` if none was counted.
    pub const fn drop_inner_node(&mut self) -> bool {
        let some = self.inner_nodes > 0;
        self.inner_nodes -= some as u32;
        some
    }

    /// Begins to count `nodes` inner nodes: none, or those of a checkpoint.
    pub const fn begin_inner_nodes(&mut self, nodes: u32) {
        self.inner_nodes = nodes;
    }

    /// Begins to count the records of all leaves.
    pub const fn begin_records(&mut self) {
        self.records = 0;
    }

    /// Counts the records of one leaf.
    pub const fn add_records(&mut self, records: u32) {
        self.records += records;
    }

    /// A mount begins that reads the pages of all blocks.
    pub const fn begin_mount(&mut self) {
        self.unexplained_pages = 0;
        self.from_checkpoint = false;
    }

    /// Begins to count damaged pages, of which `pages` are known.
    pub const fn begin_unexplained(&mut self, pages: u32) {
        self.unexplained_pages = pages;
    }

    /// Counts damaged pages that no cut explains.
    pub const fn add_unexplained(&mut self, pages: u32) {
        self.unexplained_pages += pages;
    }

    /// The mount continues from a checkpoint.
    pub const fn continue_from_checkpoint(&mut self) {
        self.from_checkpoint = true;
    }

    /// Counts a page that collection moves.
    pub const fn note_move(&mut self) {
        self.moved_pages = self.moved_pages.saturating_add(1);
    }
}
