//! Finding the tree again where the root commits, and what a mount writes anew.
//!
//! The newest block holds the newest root, or one of the few before it does.

use crate::error::Fault;
use crate::flash::{BlockNumber, Flash, PageNumber};
use crate::gc::{self, PageOwner};
use crate::log::Newest;
use crate::node::PageHeader;
use crate::space::{BuiltCheckpoints, Checkpointing, Paths};
use crate::tree::{Placement, TreeIndex};

/// The highest sequence number and the last root of a block.
pub(super) struct Last {
    /// The highest sequence number.
    pub sequence: u64,
    pub root: Option<(PageNumber, PageHeader)>,
}

/// A page with a root, its header, and its block.
pub(super) type Rooted = (PageNumber, PageHeader, Newest);

impl<F: Flash, S: Placement<Kind = Paths>> TreeIndex<'_, F, S> {
    /// Finds the last root, and the valid pages by walking its tree.
    pub(super) fn recover_root(&mut self, newest: &mut Newest) -> Result<(), Fault<F::Error>> {
        let mut sequence = newest.sequence;
        let (page, root, block) = loop {
            let all = (u64::MAX, u32::MAX);
            match self.root_from(*newest, newest.identity, all, &mut sequence)? {
                Some(found) => break found,
                None => self.before_torn_format(newest)?,
            }
        };
        if !self.torn.ended_at(sequence) {
            let unexplained = self.state.unexplained_pages();
            self.hold_before(block, &root, sequence)?;
            self.state.begin_unexplained(unexplained);
        }
        self.torn.set_newest(page, root.sequence);
        self.take_root(page, &root)?;
        self.space.restart(newest.identity, root.sequence, sequence);
        self.state.begin_inner_nodes(0);
        self.find_valid_pages()
    }

    /// The newest root whose sequence number is below `below`, and its block.
    ///
    /// It is searched for in `block` and in up to the given number of blocks that were opened
    /// before. Blocks with which a mount began, and which have no root, do not count: that mount
    /// was cut before it committed. `highest` is raised to the highest sequence number seen.
    pub(super) fn root_from(
        &mut self,
        block: Newest,
        identity: u32,
        (below, mut others): (u64, u32),
        highest: &mut u64,
    ) -> Result<Option<Rooted>, Fault<F::Error>> {
        let mut candidate = Some(block);
        // One operation spans a few blocks; in any case the search ends because each block is
        // older.
        while let Some(newest) = candidate {
            let last = self.last_root(newest.block, Some(identity), (0, newest.sequence), below)?;
            *highest = last.sequence.max(*highest);
            if let Some((page, root)) = last.root {
                return Ok(Some((page, root, newest)));
            }
            covered!("the newest block holds no root");
            if !newest.begins_session {
                if others == 0 {
                    break;
                }
                others -= 1;
            }
            candidate = self.survey_newest(newest.age(), Some(identity))?;
        }
        Ok(None)
    }

    /// The newest data of `block`, from the page at `first` on.
    ///
    /// Pages numbered below `from`, the number of the block's first page, are left from before its
    /// erase, which silently did only a part of its work. Of the others, only roots with sequence
    /// numbers below `below` count, and only pages of the formatting `identity`, or of any if it is
    /// `None`. Counts the damaged pages after the last root that no cut explains.
    ///
    /// Cost: the logarithm of the block's pages to the base 2, and one read for each page from the
    /// root on.
    #[inline(never)]
    pub(super) fn last_root(
        &mut self,
        block: BlockNumber,
        identity: Option<u32>,
        (first, from): (u32, u64),
        below: u64,
    ) -> Result<Last, Fault<F::Error>> {
        let written = self.space.log.written(block, self.space.log.block_pages(), 1)?;
        let mut last = Last { sequence: 0, root: None };
        let mut damaged = 0;
        for place in (first..written).rev() {
            let page = self.space.log.page_at(block, place);
            match self.space.log.read_raw(page, 0)? {
                Ok(header) if header.sequence < from => {
                    covered!("an erase silently left a page");
                }
                Ok(header) if identity.is_none_or(|identity| header.identity == identity) => {
                    self.torn.note_end(&header);
                    last.sequence = last.sequence.max(header.sequence);
                    let counts = header.sequence < below && !self.torn.outdates(header.sequence);
                    if header.lowest > 0 && header.height > 0 && counts {
                        last.root = Some((page, header));
                        break;
                    }
                }
                Ok(_) => {}
                // A cut damages only the last page that was written.
                Err(_) => damaged += u32::from(place + 1 < written),
            }
        }
        // The index does not need a block without a root: the erase of it may have been cut.
        if last.root.is_some() {
            self.state.add_unexplained(damaged);
        }
        Ok(last)
    }

    /// Holds the blocks of the previous tree, the one before `root` in `block`.
    ///
    /// They are not opened until the next commit. If that tree is no longer whole, `root` is known
    /// to be.
    #[inline(never)]
    pub(super) fn hold_before(
        &mut self,
        block: Newest,
        root: &PageHeader,
        mut sequence: u64,
    ) -> Result<(), Fault<F::Error>> {
        // The newest commit began in this block, or in an earlier one that its pages span.
        let path = S::path_pages(root.height);
        let others = others_spanned(path, root.height, self.space.log.block_pages());
        let below = (root.sequence, others);
        let found = self.root_from(block, root.identity, below, &mut sequence)?;
        let Some((page, before, _)) = found else { return Ok(()) };
        self.take_root(page, &before)?;
        self.space.restart(root.identity, before.sequence, sequence);
        self.state.begin_inner_nodes(0);
        match self.find_valid_pages() {
            Ok(()) => self.space.log.blocks.hold_valid(),
            Err(Fault::Corrupt { .. }) => {
                covered!("the tree before the newest root is gone");
                self.space.log.blocks.forget_valid();
            }
            Err(fault) => return Err(fault),
        }
        Ok(())
    }

    /// Where the root commits: writes the page with the root anew.
    ///
    /// Mounts that are cut here again and again would use up the reserve, a block each time. So
    /// near the reserve nothing is written if every page that may be torn reads the same every
    /// time.
    ///
    /// Cost: one read, two programs, and an erase. Near the reserve one read for each block,
    /// [`LOOKS`] for each that may begin with a torn page, and a collection.
    #[inline(never)]
    pub(super) fn settle_root(&mut self) -> Result<(), Fault<F::Error>> {
        let root = self.state.root();
        // Room for the first page that is programmed, and for the longest path.
        let lacks_room = self.space.room() < 1 + S::path_pages(self.state.height());
        let room = self.space.room() + self.held_pages();
        // It may use the block to which checkpoints move, which the last operation left free.
        let checkpoints = <BuiltCheckpoints as Checkpointing>::room(&self.space) > 0;
        let kept = if checkpoints { self.reserve_pages() } else { self.kept() };
        if lacks_room || room < kept + self.space.log.block_pages() {
            self.expect_steady(root)?;
            self.free_held();
            if self.ends_alike()? {
                covered!("a mount near the reserve writes nothing");
                return Ok(());
            }
            // The first page that is moved makes a new root. The other nodes of the page that may
            // be torn can stay there.
            match gc::gain_room(self, 0) {
                Err(Fault::NoRoom { .. } | Fault::WornOut { .. }) if !self.state.is_in_doubt() => {}
                gained => gained?,
            }
            if self.state.root() != root {
                covered!("a collection settles the root");
                return Ok(());
            }
        }
        self.state.doubt();
        self.space.begin_walk();
        self.space.begin_operation(true);
        let frame = self.working(self.state.height());
        self.space.load_into(root, frame)?;
        let lowest = self.space.log.lowest(frame);
        let (height, records) = (self.state.height(), self.state.records());
        let written = self.space.program(frame, lowest, height, records)?;
        self.state.move_root(written.0);
        self.space.retire(PageNumber(root));
        let root = self.space.commit(self.state.root())?;
        self.state.move_root(root);
        self.state.trust();
        Ok(())
    }

    /// Whether the pages that may have been written last read the same every time.
    ///
    /// These are the end of each block from that of the root on, and the first page of each block
    /// that may have been opened since. A mount that was cut leaves a block without a root, after
    /// the end that it did not see.
    ///
    /// Returns `false` if there are more of these blocks than one operation and a mount open: then
    /// several mounts were cut, each of which left a block that is free.
    pub(super) fn ends_alike(&mut self) -> Result<bool, Fault<F::Error>> {
        let root = self.block_of(self.space.current_page(self.state.root()));
        let Some(from) = self.space.log.first_sequence(root)? else { return Ok(false) };
        let path = S::path_pages(self.state.height());
        let mut left = ends_max(path, self.state.height(), self.space.log.block_pages());
        for block in self.space.log.blocks.all() {
            match self.space.log.first_header(block)? {
                // No tree depends on the last page of a checkpoint.
                Some(first) if first.lowest == 0 || first.sequence < from => {}
                Some(_) => {
                    if left == 0 || !self.end_is_alike(block)? {
                        return Ok(false);
                    }
                    left -= 1;
                }
                None if self.space.log.reads_alike(self.space.log.page_at(block, 0))? => {}
                None => return Ok(false),
            }
        }
        Ok(true)
    }

    /// Whether the last page of `block` and the next one read the same every time.
    fn end_is_alike(&mut self, block: BlockNumber) -> Result<bool, Fault<F::Error>> {
        let pages = self.space.log.block_pages();
        let written = self.space.log.written(block, pages, 1)?;
        for place in written.saturating_sub(1)..(written + 1).min(pages) {
            if !self.space.log.reads_alike(self.space.log.page_at(block, place))? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// Blocks beside that of a root which the operation that wrote it may span.
///
/// The operation writes at most a path of `path` pages and the halves of a node of each level.
pub(super) fn others_spanned(path: u32, height: u8, block_pages: u32) -> u32 {
    1 + (path + u32::from(height) + 1) / block_pages
}

/// Blocks whose ends are looked at where a mount writes nothing.
///
/// These are that of the root, those that an operation after it may span, and one with which a
/// mount began.
pub(super) fn ends_max(path: u32, height: u8, block_pages: u32) -> u32 {
    2 + others_spanned(path, height, block_pages)
}
