//! Formatting a chip, and finding the index again after any cut.
//!
//! Sequence numbers rise with every program, and blocks are written one at a time, so the newest block
//! is the one whose first page has the highest number. The last root in it is the commit point; pages
//! behind it belong to an operation that was cut, and nothing refers to them. The account of valid pages
//! is rebuilt by walking the inner nodes. A mount writes nothing, so a cut during it changes nothing.
//!
//! A cut damages at most the last page of a block, since no block is written after it. More damage behind
//! the root that is found may have been newer roots: the mount counts it
//! ([`Statistics::unexplained_pages`](super::Statistics)). What a mount cannot see is a first page whose
//! program did nothing and told nobody, and a block of which no page can be read; `Options::verify` is
//! against the first.
//!
//! Cost: one read for each block, those of the newest block, and one for each inner node; in a block whose
//! first page is damaged, one for each page up to the first that is not.

use super::descend::Path;
use super::{HEIGHT_MAX, Index, Options};
use crate::error::{Fault, OpenError};
use crate::flash::{BlockNumber, Flash, PageNumber};
use crate::node::{Medium, PageFault, PageHeader, SAME_PAGE};
use crate::place::{Placement, relink};
use crate::space::{Budget, Space};

/// What the first pages of all blocks say.
#[derive(Default)]
pub(super) struct Survey {
    newest: Option<(BlockNumber, PageHeader)>,
    any_written: bool,
    other_version: Option<u8>,
}

impl Survey {
    /// The first readable page of the newest block, or why there is no index.
    pub(super) fn newest_page<E>(&self) -> Result<PageHeader, OpenError<E>> {
        match (&self.newest, self.other_version) {
            (Some((_, header)), _) => Ok(*header),
            (None, Some(found)) => Err(OpenError::Version { found }),
            (None, None) if self.any_written => Err(OpenError::NotNandina),
            (None, None) => Err(OpenError::Blank),
        }
    }
}

impl<'b, F: Flash, S: Placement> Index<'b, F, S> {
    /// Makes an empty index on the chip. An older index on it is gone once this returns `Ok`; after a
    /// cut during it, the older one may or may not be there.
    ///
    /// Cost: one read for each block, one erase, one program.
    pub fn format(
        flash: F,
        options: &Options,
        ram: &'b mut [u8],
    ) -> Result<Self, OpenError<F::Error>> {
        let mut index = Self::new(flash, options, ram)?;
        // A root and two leaves are the least that can grow.
        let limit_pages = index.budget_for(2, 1).limit_pages;
        if limit_pages < 3 {
            return Err(OpenError::ChipTooSmall { limit_pages });
        }
        let sequence = match survey(&mut index.space, u64::MAX)?.newest {
            Some((newest, header)) => index.last_sequence(newest, header.sequence)?,
            None => 0,
        };
        index.space.restart((sequence as u32).wrapping_add(1), sequence, sequence);
        index.height = 1;
        index.budget = index.budget_for(1, 0);
        index.place.begin(&mut index.space, 1);
        let root = index.level(1);
        index.empty_node(root);
        index.space.begin_operation(true);
        index.root = index.place.put(&mut index.space, root, 0)?;
        index.in_doubt = false;
        Ok(index)
    }

    /// Opens the index on the chip, after a clean end or a cut alike.
    ///
    /// Cost: one read for each block, at most two blocks' pages, and one read for each inner node.
    pub fn open(
        flash: F,
        options: &Options,
        ram: &'b mut [u8],
    ) -> Result<Self, OpenError<F::Error>> {
        let mut index = Self::new(flash, options, ram)?;
        let newest = survey(&mut index.space, u64::MAX)?.newest_page()?;
        index.check_medium(&newest.medium)?;
        index.mount()?;
        Ok(index)
    }

    fn new(flash: F, options: &Options, ram: &'b mut [u8]) -> Result<Self, OpenError<F::Error>> {
        let geometry = flash.geometry();
        options.check::<S, F::Error>(&geometry, ram.len())?;
        let medium = options.medium::<S>(&geometry);
        Ok(Self {
            space: Space::new(flash, medium, &options.kept::<S>(), relink::<S>, ram),
            place: S::default(),
            root: 0,
            height: 1,
            records: 0,
            inner_nodes: 0,
            budget: Budget::default(),
            moves: options.moves,
            in_doubt: true,
            reserve_touched: false,
            collected_blocks: 0,
            moved_pages: 0,
            refreshed_pages: 0,
            patrol: 0,
            unexplained_pages: 0,
        })
    }

    fn check_medium(&self, found: &Medium) -> Result<(), OpenError<F::Error>> {
        let expected = &self.space.medium;
        let settings = [
            ("system number", u32::from(found.system), u32::from(expected.system)),
            ("key size", found.key_bytes.into(), expected.key_bytes.into()),
            ("value size", found.value_bytes.into(), expected.value_bytes.into()),
            ("block count", found.blocks, expected.blocks),
            ("pages per block", found.pages_per_block.into(), expected.pages_per_block.into()),
        ];
        match settings.into_iter().find(|(_, found, expected)| found != expected) {
            Some((setting, found, expected)) => {
                Err(OpenError::Mismatch { setting, found, expected })
            }
            None => Ok(()),
        }
    }

    /// The highest sequence number in `block`, whose first page has `first`.
    fn last_sequence(&mut self, block: BlockNumber, first: u64) -> Result<u64, Fault<F::Error>> {
        let mut last = first;
        for place in 1..self.space.block_pages() {
            let page = self.space.page_at(block, place);
            match self.space.read_raw(page, 0)? {
                Ok(header) => last = last.max(header.sequence),
                Err(PageFault::Erased) => break,
                Err(_) => {}
            }
        }
        Ok(last)
    }

    /// Finds the last committed root and rebuilds all that RAM holds.
    pub(super) fn mount(&mut self) -> Result<(), Fault<F::Error>> {
        self.in_doubt = true;
        let newest = survey(&mut self.space, u64::MAX)?.newest;
        let Some((newest, header)) = newest else {
            return Err(self.corrupt("no page of the index is readable"));
        };
        let sequence = self.last_sequence(newest, header.sequence)?;
        let mut candidate = Some((newest, header));
        self.unexplained_pages = 0;
        let (page, root) = loop {
            // One operation spans a few blocks, but a bound by sequence ends the search in any case.
            let Some((block, first)) = candidate else {
                return Err(self.corrupt("no root is readable"));
            };
            if let Some(found) = self.last_root(block, header.identity)? {
                break found;
            }
            candidate = survey(&mut self.space, first.sequence)?.newest;
        };
        if root.medium != self.space.medium || root.lowest == 0 || root.height > HEIGHT_MAX {
            return Err(Fault::Corrupt { page, reason: "it is not a root of this index" });
        }
        let most = u64::from(self.space.geometry.pages())
            * self.form().records_that_fit::<S>(1, root.height.max(1)) as u64;
        if u64::from(root.records) > most {
            return Err(Fault::Corrupt {
                page,
                reason: "it claims more records than the chip holds",
            });
        }
        self.space.restart(header.identity, root.sequence, sequence);
        (self.root, self.height, self.records) = (page.0, root.height, root.records);
        self.inner_nodes = 0;
        self.find_valid_pages()?;
        self.budget = self.budget_for(self.height, self.inner_nodes);
        self.reserve_touched = self.space.room() < self.budget.reserve_pages;
        self.in_doubt = false;
        Ok(())
    }

    /// The last root in `block` that belongs to the formatting `identity`; counts the damaged pages behind
    /// it that no cut explains.
    fn last_root(
        &mut self,
        block: BlockNumber,
        identity: u32,
    ) -> Result<Option<(PageNumber, PageHeader)>, Fault<F::Error>> {
        let mut last: Option<(PageNumber, PageHeader)> = None;
        let mut newest = 0;
        // Damaged pages behind the root, and the one among them that is the last page of the block.
        let (mut damaged, mut torn) = (0, 0);
        for place in 0..self.space.block_pages() {
            let page = self.space.page_at(block, place);
            match self.space.read_raw(page, 0)? {
                // On a chip whose erase did nothing, an older page may stand behind a newer one.
                Ok(header) if header.identity == identity && newest < header.sequence => {
                    newest = header.sequence;
                    torn = 0;
                    if header.height > 0 {
                        last = Some((page, header));
                        damaged = 0;
                    }
                }
                Ok(_) => {}
                Err(PageFault::Erased) => break,
                Err(_) => {
                    damaged += 1;
                    torn = 1;
                }
            }
        }
        self.unexplained_pages += damaged - torn;
        Ok(last)
    }

    /// Marks a page as valid. A page that two nodes refer to would make a walk of the tree as long as the
    /// number of its ways, which has no bound worth the name.
    fn claim(&mut self, page: u32) -> Result<(), Fault<F::Error>> {
        let page = PageNumber(page);
        if self.space.blocks.is_valid(page) {
            return Err(Fault::Corrupt { page, reason: "two nodes refer to it" });
        }
        self.space.blocks.set_valid(page, true);
        Ok(())
    }

    /// Walks the inner nodes and marks every page that holds a reachable node.
    fn find_valid_pages(&mut self) -> Result<(), Fault<F::Error>> {
        let mut path = Path::new();
        let mut level = self.height;
        path.set_page(level, self.root);
        loop {
            let page = path.page(level);
            let frame = self.visit(page, level)?;
            let slot = path.slot(level);
            if slot == 0 {
                let lowest = self.space.header(frame).lowest;
                let below = level > 1 && self.node(frame, level)?.slot_of(SAME_PAGE).is_some();
                if lowest == level {
                    self.claim(page)?;
                } else if lowest > level || !below {
                    let reason = "it lacks a node that its header tells of";
                    return Err(Fault::Corrupt { page: PageNumber(page), reason });
                }
                self.inner_nodes += u32::from(level > 1);
            }
            let count = self.node(frame, level)?.count();
            if level == 1 || slot >= count {
                // A tree of height one is a leaf, and the walk is over; else go on beside the parent.
                if level == self.height {
                    return Ok(());
                }
                level += 1;
                path.set_slot(level, path.slot(level) + 1);
                continue;
            }
            let pointer = self.node(frame, level)?.pointer(slot);
            let child = if pointer == SAME_PAGE { page } else { pointer };
            if child >= self.space.geometry.pages() {
                let page = PageNumber(page);
                return Err(Fault::Corrupt { page, reason: "a pointer leads beyond the chip" });
            }
            if level == 2 {
                // A leaf is the lowest node of its page: it need not be read to be known.
                self.claim(child)?;
                path.set_slot(level, slot + 1);
            } else {
                level -= 1;
                path.set_page(level, child);
                path.set_slot(level, 0);
            }
        }
    }
}

/// Reads the first readable page of each block: erase counts, and the newest block whose sequence
/// number is below `before`.
pub(super) fn survey<F: Flash>(
    space: &mut Space<'_, F>,
    before: u64,
) -> Result<Survey, Fault<F::Error>> {
    let mut survey = Survey::default();
    let (mut known, mut sum) = (0u64, 0u64);
    space.blocks.clear();
    space.find_bad_blocks()?;
    for block in space.blocks.all() {
        // A first page that is damaged must not hide those behind it.
        for place in 0..space.block_pages() {
            match space.read_raw(space.page_at(block, place), 0)? {
                Ok(header) => {
                    survey.any_written = true;
                    known += 1;
                    sum += u64::from(header.erase_count);
                    space.blocks.set_erase_count(block, header.erase_count);
                    let newest = survey.newest.map_or(0, |(_, newest)| newest.sequence);
                    if header.sequence < before && header.sequence > newest {
                        survey.newest = Some((block, header));
                    }
                    break;
                }
                Err(PageFault::Erased) => break,
                Err(PageFault::Damaged | PageFault::Unreadable) => survey.any_written = true,
                Err(PageFault::Version(found)) => {
                    survey.other_version = Some(found);
                    break;
                }
            }
        }
    }
    // A block whose count was lost in a cut is taken to be as worn as the others; one that was
    // never erased shares that guess, which only delays its first use.
    if let Some(mean) = sum.checked_div(known) {
        for block in space.blocks.all() {
            if space.blocks.erase_count(block) == 0 {
                space.blocks.set_erase_count(block, mean as u32);
            }
        }
    }
    Ok(survey)
}
