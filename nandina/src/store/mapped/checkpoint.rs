//! Mounting mapped nodes from a checkpoint.
//!
//! A checkpoint stores the mapping table as well. The pages that are newer are read in the order in
//! which they were written, and each that commits is applied to the table and to the valid pages as
//! it was when it was written. The blocks that a checkpoint lists held no valid page and no logical
//! address, so as long as it is used no page number means two nodes.
//!
//! Nothing is written here.
//!
//! Cost: two reads for each page written since, and some three more for each inner node among them.

use crate::error::Fault;
use crate::flash::{Flash, PageNumber};
use crate::log::GAP;
use crate::log::checkpoint::{Checkpoint, Checkpoints};
use crate::node::{PageFault, PageHeader};
use crate::space::{Checkpointing, Maps};
use crate::store::page_commits::Found;
use crate::tree::{HEIGHT_MAX, Placement, Top, TreeIndex};

impl<F: Flash, S: Placement<Kind = Maps>> TreeIndex<'_, F, S> {
    /// Continues from the checkpoint `found`. Returns `false` if it cannot be used.
    pub(super) fn go_on_from_mappings(
        &mut self,
        found: &Checkpoint,
    ) -> Result<bool, Fault<F::Error>> {
        self.state.begin_unexplained(0);
        let opened = self.space.log.look_into(found)?;
        let pages = self.space.log.geometry().pages();
        if !found.summary.is_tree(pages) || !opened.is_usable(found) {
            return Ok(false);
        }
        self.space.checkpoints.go_on_from(found, &opened);
        if self.lacks_pages()? {
            covered!("a block that was opened since a checkpoint has gone bad");
            return Ok(false);
        }
        let since = opened.since.iter().zip(found.listed());
        let opened_since = since.filter_map(|(first, block)| Some(((*first)?, *block)));
        // A number of 0 is no page of the tree.
        let newest = opened_since.filter(|(first, _)| *first > 0).max();
        let active = found.active.map(|(block, _)| block);
        if let Some(block) = newest.map(|(_, block)| block).or(active) {
            self.space.log.keep_newest(block);
        }
        let identity = found.header.identity;
        let mut since = Found::NOTHING;
        self.decide_on_torn(identity, false, &mut since)?;
        self.add_checkpoint(found, &mut since);
        self.take_newest_root(identity, &since)?;
        let Some(before) = self.apply_newer(found)? else { return Ok(false) };
        self.count_unexplained();
        self.state.continue_from_checkpoint();
        if !self.ended_well() {
            self.hold_before_commit(before)?;
        }
        Ok(true)
    }

    /// Whether a block with pages newer than the checkpoint has gone bad since.
    ///
    /// They no longer count, and the other pages do not continue the tree without them.
    fn lacks_pages(&mut self) -> Result<bool, Fault<F::Error>> {
        let mut position = 0;
        while let Some(block) = Checkpoints::scanned(&self.space, position) {
            if self.space.log.is_marked(block)? {
                return Ok(true);
            }
            position += 1;
        }
        Ok(false)
    }

    /// Where no newer page says otherwise, the tree is that of the checkpoint.
    fn add_checkpoint(&self, found: &Checkpoint, since: &mut Found) {
        let tree = found.summary;
        let header = PageHeader {
            lowest: tree.height,
            height: tree.height,
            records: tree.records,
            ..found.header
        };
        since.add_older(PageNumber(tree.page), &header);
    }

    /// Applies the newer pages that commit to the checkpoint `found`, in their order.
    ///
    /// Returns the page that the newest commit superseded, or `None` if the pages do not continue
    /// the tree of the checkpoint, or if one of them is lost: those after it may not continue it.
    #[inline(never)]
    fn apply_newer(
        &mut self,
        found: &Checkpoint,
    ) -> Result<Option<Option<PageNumber>>, Fault<F::Error>> {
        let mut root = Top { page: found.summary.page, level: found.summary.height };
        self.state.begin_inner_nodes(found.summary.nodes);
        let (mut scan, mut last, mut before) = (Scan::default(), 0, None);
        while let Some((page, header)) = self.next_newer(&mut scan, found.header.identity)? {
            if scan.lost {
                covered!("a page that is newer than the checkpoint is lost");
                return Ok(None);
            }
            let level = header.lowest;
            if header.height == 0 || !(1..=HEIGHT_MAX).contains(&level) {
                // It commits nothing: if it counts, a page that commits leads to it.
                continue;
            }
            let area = &self.space.log.frames.bytes(0)[..self.space.log.layout().area_bytes()];
            let name = S::address_in(area).filter(|&name| name != page.0);
            let new = Top { page: page.0, level };
            let is_in_order = header.sequence > last;
            last = header.sequence;
            if level == header.height && is_in_order {
                before = Some(PageNumber(root.page));
                self.take_instead(root, root, new)?;
                root = new;
            } else if let Some(name) = name.filter(|&name| self.is_address(name) && is_in_order) {
                before = Some(PageNumber(self.space.current_page(name)));
                self.take_instead(root, Top { page: name, level }, new)?;
                if !self.space.mappings.takes(name) {
                    return Ok(None);
                }
                self.claim_page(PageNumber(name))?;
                self.space.mappings.set(name, page.0);
            } else {
                return Ok(None);
            }
        }
        Ok((root == self.top()).then_some(before))
    }

    /// Whether a node of the tree has the logical address `name`.
    fn is_address(&self, name: u32) -> bool {
        let page = PageNumber(name);
        name < self.space.log.geometry().pages() && self.space.log.blocks.is_valid(page)
    }

    /// Marks the pages below `new` as valid, and what they replace below `old` as not.
    ///
    /// `old` is a node of the tree with the root `tree`.
    fn take_instead(&mut self, tree: Top, old: Top, new: Top) -> Result<(), Fault<F::Error>> {
        self.drop_replaced(tree, old, new)?;
        if new.level == 1 {
            return self.claim_page(PageNumber(new.page));
        }
        self.find_new_pages(new, |blocks, page| !blocks.is_valid(PageNumber(page)))
    }

    /// Reads the next page that is newer than the checkpoint and counts.
    fn next_newer(
        &mut self,
        scan: &mut Scan,
        identity: u32,
    ) -> Result<Option<(PageNumber, PageHeader)>, Fault<F::Error>> {
        let Some(base) = self.space.checkpoints.base() else { return Ok(None) };
        while let Some(block) = Checkpoints::scanned(&self.space, scan.block) {
            while scan.place < self.space.log.block_pages() {
                let page = self.space.log.page_at(block, scan.place);
                scan.place += 1;
                let header = match self.space.log.read_raw(page, 0)? {
                    Ok(header) => header,
                    // The rest of a block may be blank, and a page in the middle may look so.
                    Err(PageFault::Erased) => {
                        scan.blank = true;
                        continue;
                    }
                    Err(_) => {
                        scan.unread = true;
                        continue;
                    }
                };
                if base.has_all_of(block, header.sequence) {
                    scan.unread = false;
                    break;
                }
                if !base.is_older_than(header.sequence) {
                    scan.unread = false;
                } else if header.identity == identity && self.counts(page, header.sequence) {
                    // A page that a cut tore is followed by the gap that a mount leaves.
                    let goes_on = header.sequence < scan.last + GAP;
                    scan.lost = (scan.unread || scan.blank) && goes_on;
                    (scan.unread, scan.blank, scan.last) = (false, false, header.sequence);
                    return Ok(Some((page, header)));
                }
            }
            scan.block += 1;
            (scan.place, scan.blank) = (0, false);
        }
        Ok(None)
    }
}

/// How far the pages are read that may be newer than the checkpoint.
#[derive(Default)]
struct Scan {
    block: u32,
    place: u32,
    /// The sequence number of the last one.
    last: u64,
    /// The next page cannot be read.
    unread: bool,
    /// The next page in its block looks erased.
    blank: bool,
    /// A page before it is lost that no cut can have torn.
    lost: bool,
}
