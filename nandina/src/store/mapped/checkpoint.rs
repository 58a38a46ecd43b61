//! Mounting mapped nodes from a checkpoint.
//!
//! A checkpoint stores the mapping table as well. The blocks that it lists held no valid page and
//! no logical address, so as long as it is used no page number means two nodes. Of the pages that
//! are newer, each that was written under a logical address replaces the mapping of that address,
//! unless an inner node points to the page itself since: then the mapping was flushed. The rest of
//! the table is settled by a walk of the tree: an address to which no node points is dropped.
//!
//! Nothing is written here.
//!
//! Cost: two reads for each page written since, one more where the address was written since, and
//! one for each inner node.

use crate::error::Fault;
use crate::flash::{Flash, PageNumber};
use crate::node::PageHeader;
use crate::space::{Checkpoint, Checkpointing, Checkpoints, Maps};
use crate::store::page_commits;
use crate::tree::{HEIGHT_MAX, Index, Placement};

impl<F: Flash, S: Placement<Kind = Maps>> Index<'_, F, S> {
    /// Continues from the checkpoint `found`. Returns `false` if it cannot be used.
    pub(super) fn go_on_from_mappings(
        &mut self,
        found: &Checkpoint,
    ) -> Result<bool, Fault<F::Error>> {
        self.unexplained_pages = 0;
        let opened = self.space.look_into(found)?;
        if !opened.is_usable(found) {
            return Ok(false);
        }
        self.space.go_on_from(found, &opened);
        let since = opened.since.iter().zip(found.listed());
        let opened_since = since.filter_map(|(first, block)| Some(((*first)?, *block)));
        // A number of 0 is no page of the tree.
        let newest = opened_since.filter(|(first, _)| *first > 0).max();
        let active = found.active.map(|(block, _)| block);
        if let Some(block) = newest.map(|(_, block)| block).or(active) {
            self.space.log.keep_newest(block);
        }
        let identity = found.header.identity;
        let mut since = self.decide_on_torn(identity, false)?;
        self.add_checkpoint(found, &mut since);
        self.take_newest_root(identity, &since)?;
        let Some(before) = self.update_mappings(identity, &since)? else { return Ok(false) };
        self.space.log.blocks.forget_valid();
        self.inner_nodes = 0;
        self.find_valid_pages(|_| true)?;
        let blocks = &self.space.log.blocks;
        self.space.mappings.retain(|name, _| blocks.is_valid(PageNumber(name)));
        self.count_unexplained();
        self.from_checkpoint = true;
        if !self.ended_well() {
            self.hold_before_commit(before)?;
        }
        Ok(true)
    }

    /// Where no newer page says otherwise, the tree is that of the checkpoint.
    fn add_checkpoint(&self, found: &Checkpoint, since: &mut page_commits::Found) {
        let tree = found.tree;
        let header = PageHeader {
            lowest: tree.height,
            height: tree.height,
            records: tree.records,
            ..found.header
        };
        let root = (PageNumber(tree.root), header);
        if since.root.is_none() {
            since.root = Some(root);
        } else if since.root_before.is_none() {
            since.root_before = Some(root);
        }
        since.commit = since.commit.or(Some(header));
    }

    /// Brings the mappings of the checkpoint up to date.
    ///
    /// Returns the page that the newest commit superseded, or `None` if the table has no room for
    /// all addresses that may be in use. Some in the table may be out of use.
    #[inline(never)]
    fn update_mappings(
        &mut self,
        identity: u32,
        since: &page_commits::Found,
    ) -> Result<Option<Option<PageNumber>>, Fault<F::Error>> {
        self.space.log.blocks.forget_valid();
        let newest = PageNumber(self.newest.0);
        let mut last = None;
        let mut scan = Scan::default();
        while let Some((page, header)) = self.next_newer(&mut scan, identity)? {
            // Only a page that commits counts for certain. (The mappings that another inner node
            // flushed are dropped in the end.)
            if header.height == 0 {
                continue;
            }
            let area = &self.space.log.frames.bytes(0)[..self.space.log.layout().area_bytes()];
            let name = S::address_in(area)
                .filter(|&name| name < self.space.log.geometry().pages() && name != page.0);
            if (2..=HEIGHT_MAX).contains(&header.lowest) {
                self.for_each_pointer(header.lowest, |index, page| {
                    let blocks = &mut index.space.log.blocks;
                    if !blocks.is_valid(page) {
                        blocks.set_valid(page, true);
                    }
                });
            }
            let Some(name) = name else { continue };
            if page == newest {
                last = Some(name);
            } else if !self.has_newer_page(name, header.sequence)? && !self.set_mapping(name, page)
            {
                return Ok(None);
            }
        }
        self.drop_flushed();
        let root_before = since.root_before.map(|(page, _)| page);
        let Some(name) = last else { return Ok(Some(root_before)) };
        let before = PageNumber(self.space.current_page(name));
        Ok(self.set_mapping(name, newest).then_some(Some(before)))
    }

    /// Maps `name` to `page`. Returns `false` if the table has no room for that.
    fn set_mapping(&mut self, name: u32, page: PageNumber) -> bool {
        if !self.space.mappings.takes(name) {
            self.drop_flushed();
        }
        let has_room = self.space.mappings.takes(name);
        if has_room {
            self.space.mappings.set(name, page.0);
        }
        has_room
    }

    /// Whether the current page of the address `name` is newer than `sequence`.
    fn has_newer_page(&mut self, name: u32, sequence: u64) -> Result<bool, Fault<F::Error>> {
        let rival = PageNumber(self.space.current_page(name));
        let block = self.space.log.geometry().block_of(rival);
        let mut position = 0;
        while let Some(scanned) = self.next_scanned(&mut position) {
            if scanned == block {
                let rival = self.space.log.read_raw(rival, 0)?;
                return Ok(rival.is_ok_and(|rival| rival.sequence > sequence));
            }
        }
        Ok(false)
    }

    /// Removes the mappings that were flushed: those to pages that are marked.
    fn drop_flushed(&mut self) {
        let blocks = &self.space.log.blocks;
        self.space.mappings.retain(|_, page| !blocks.is_valid(PageNumber(page)));
    }

    /// Reads the next page that is newer than the checkpoint and counts.
    fn next_newer(
        &mut self,
        scan: &mut Scan,
        identity: u32,
    ) -> Result<Option<(PageNumber, PageHeader)>, Fault<F::Error>> {
        let base = Checkpoints::base(&self.space).map_or(0, |base| base.sequence);
        while let Some(block) = Checkpoints::scanned(&self.space, scan.block) {
            while scan.place < self.space.log.block_pages() {
                let page = self.space.log.page_at(block, scan.place);
                scan.place += 1;
                if let Ok(header) = self.space.log.read_raw(page, 0)?
                    && header.identity == identity
                    && header.sequence > base
                    && self.counts(page, header.sequence)
                {
                    return Ok(Some((page, header)));
                }
            }
            *scan = Scan { block: scan.block + 1, place: 0 };
        }
        Ok(None)
    }
}

/// How far the pages are read that may be newer than the checkpoint.
#[derive(Default)]
struct Scan {
    block: u32,
    place: u32,
}
