//! A mount of a system with virtual mappings (VMTree paper, section 4.5).
//!
//! Parents do not show where their children are stored now, so the mappings have to be recovered.
//! Nothing is written.
//!
//! Every page carries its logical address, the pointer that its parent had for it, and commits the
//! operation that wrote it if it has one. The newest root is the root. Then, from the level below
//! it down, the pointers of the nodes above are the logical addresses; they are marked, or searched
//! for from the root ([`Validity`](crate::Validity)). Of the pages that carry such an address, the
//! newest is the node. A page does not count if it is older than the page whose number is its
//! logical address: then that number meant another node.
//!
//! Cost: one read of every written page for each level, one more for each node that was moved, and
//! two for each inner node.

use super::{HEIGHT_MAX, Index};
use crate::error::{Damage, Fault};
use crate::flash::{Flash, PageNumber};
use crate::log::LOST_MAX;
use crate::node::{PageFault, PageHeader, SESSION_START};
use crate::place::Placement;

/// What the pages of one formatting record.
pub(super) struct Found {
    pub sequence: u64,
    pub commit: Option<PageHeader>,
    pub root: Option<(PageNumber, PageHeader)>,
    /// The newest root except `root`.
    pub root_before: Option<(PageNumber, PageHeader)>,
    /// The newest page that no mount wrote while it settled.
    ///
    /// Its sequence number, and that of the first page of its block.
    pub settled: (u64, u64),
    /// The newest page that began to write after a mount.
    pub start: u64,
}

impl<F: Flash, S: Placement> Index<'_, F, S> {
    /// Finds root, mappings and valid pages of the index with this identity.
    pub(super) fn recover(&mut self, identity: u32, found: &Found) -> Result<(), Fault<F::Error>> {
        self.take_newest_root(identity, found)?;
        self.space.mappings.clear();
        for level in (1..self.height).rev() {
            self.space.log.blocks.forget_valid();
            if !self.space.log.blocks.searches() {
                self.mark_pointers(level)?;
            }
            self.find_named(identity, level)?;
        }
        self.space.log.blocks.forget_valid();
        self.inner_nodes = 0;
        self.find_valid_pages(|_| true)?;
        self.count_unexplained();
        Ok(())
    }

    /// Takes the tree of the newest root.
    #[inline(never)]
    fn take_newest_root(&mut self, identity: u32, found: &Found) -> Result<(), Fault<F::Error>> {
        self.settle_from = found.settled.1;
        let (Some((page, root)), Some(commit)) = (found.root, found.commit) else {
            return Err(self.no_root()?);
        };
        self.take_root(page, &PageHeader { records: commit.records, ..root })?;
        self.space.restart(identity, commit.sequence, found.sequence);
        Ok(())
    }

    /// Counts the blocks with damage that no cut explains.
    ///
    /// A block without valid pages is not counted: its erase may have been cut.
    pub(super) fn count_unexplained(&mut self) {
        self.unexplained_pages = 0;
        for block in self.space.log.blocks.all() {
            let damaged = self.space.log.blocks.take_stuck(block);
            self.unexplained_pages +=
                u32::from(damaged && self.space.log.blocks.valid_in(block) > 0);
        }
    }

    /// Reads every written page of the formatting `identity`.
    ///
    /// Marks the blocks that have a damaged page other than the last.
    pub(super) fn read_all(&mut self, identity: u32) -> Result<Found, Fault<F::Error>> {
        let mut found = Found {
            sequence: 0,
            commit: None,
            root: None,
            root_before: None,
            settled: (0, 0),
            start: 0,
        };
        for block in self.space.log.blocks.all() {
            let (mut damaged, mut blank, mut first) = (false, 0, None);
            for place in 0..self.space.log.block_pages() {
                let page = self.space.log.page_at(block, place);
                let header = self.space.log.read_raw(page, 0)?;
                if header == Err(PageFault::Erased) {
                    blank += 1;
                    if blank > LOST_MAX {
                        break;
                    }
                    continue;
                }
                damaged |= blank > 0;
                blank = 0;
                // A cut damages only the last page that was written. (Until it is known which
                // blocks matter, the stuck mark records the damage; nothing else uses it yet.)
                if damaged {
                    self.space.log.blocks.set_stuck(block);
                }
                damaged = header.is_err();
                let Ok(header) = header else { continue };
                if header.identity != identity {
                    continue;
                }
                let first = *first.get_or_insert(header.sequence);
                found.sequence = found.sequence.max(header.sequence);
                self.note_end(&header);
                if !header.settling {
                    found.settled = found.settled.max((header.sequence, first));
                }
                if header.height == 0 && header.records == SESSION_START {
                    found.start = found.start.max(header.sequence);
                }
                if !self.counts(page, header.sequence) {
                    continue;
                }
                if S::DESCRIPTION.appends || header.height > 0 {
                    self.note_newest(page, header.sequence);
                }
                if header.height == 0 || header.height > HEIGHT_MAX || header.lowest == 0 {
                    continue;
                }
                if found.commit.is_none_or(|commit| commit.sequence < header.sequence) {
                    found.commit = Some(header);
                }
                if header.lowest == header.height
                    && found.root.is_none_or(|(_, root)| root.sequence < header.sequence)
                {
                    found.root_before = found.root;
                    found.root = Some((page, header));
                } else if header.lowest == header.height
                    && found.root_before.is_none_or(|(_, root)| root.sequence < header.sequence)
                {
                    found.root_before = Some((page, header));
                }
            }
        }
        Ok(found)
    }

    /// Finds the nodes of `level` that are not on the page of their logical address.
    #[inline(never)]
    fn find_named(&mut self, identity: u32, level: u8) -> Result<(), Fault<F::Error>> {
        for block in self.space.log.blocks.all() {
            let mut blank = 0;
            for place in 0..self.space.log.block_pages() {
                let page = self.space.log.page_at(block, place);
                let header = match self.space.log.read_raw(page, 0)? {
                    Err(PageFault::Erased) if blank >= LOST_MAX => break,
                    Err(PageFault::Erased) => {
                        blank += 1;
                        continue;
                    }
                    Err(_) => continue,
                    Ok(header) => header,
                };
                blank = 0;
                if !self.counts(page, header.sequence) {
                    continue;
                }
                if header.identity != identity || header.lowest != level || header.height == 0 {
                    continue;
                }
                let area = &self.space.log.frames.bytes(0)[..self.space.log.layout().area_bytes()];
                let Some(name) = S::name_in(area).filter(|&name| {
                    name < self.space.log.geometry().pages()
                        && name != page.0
                        && (self.space.log.blocks.searches()
                            || self.space.log.blocks.is_valid(PageNumber(name)))
                }) else {
                    continue;
                };
                if self.space.log.blocks.searches() && !self.is_pointed_to(level, name)? {
                    continue;
                }
                // The page whose number is the logical address is not programmed again while it is
                // one, so pages with that address that are older than it are stale.
                let rival = PageNumber(self.space.where_is(name));
                let rival = self.space.log.read_raw(rival, 0)?;
                if rival.is_ok_and(|rival| {
                    rival.identity == identity && rival.sequence > header.sequence
                }) {
                    continue;
                }
                if !self.space.mappings.takes(name) {
                    let reason = Damage::TableTooSmall;
                    return Err(Fault::Corrupt { page, reason });
                }
                self.space.mappings.set(name, page.0);
            }
        }
        Ok(())
    }
}
