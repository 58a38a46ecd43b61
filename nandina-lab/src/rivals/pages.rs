//! Pages of a device that replaces each as a whole, written in groups that count together.
//!
//! A group goes to free pages; one of a single page may replace the older version of it. Its last
//! page has the height of the tree in its header and commits it: pages with a higher sequence than
//! that of the newest commit do not count, and a mount blanks them before it writes anything else.
//! So a cut leaves all of a group or nothing. A page is free when nobody holds it; what it says
//! then is older than what counts. The newest commit is held always. Nothing here knows what the
//! pages say.

use std::collections::BTreeMap;

use nandina::engine::EngineFault;
use nandina::flash::{ErrorKind, Flash, FlashError, PageNumber};
use nandina::log::layout_of;
use nandina::node::{Medium, PageFault, PageHeader, PageLayout};
use nandina::{Damage, Fault};

/// Attempts to read a page.
const READS_MAX: u32 = 3;

/// Bytes of what every page says of the whole tree, before its body.
pub const HEAD_BYTES: usize = 16;

/// What a commit says of the whole tree.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Head {
    /// The number of the root.
    pub root: u32,
    /// The number of the next node. None is given twice.
    pub next: u32,
    /// Of the LA-tree: the first page of the root's buffer that counts.
    pub since: u64,
    /// Levels.
    pub height: u8,
    /// Records in the leaves.
    pub records: u32,
}

/// What a page is to hold.
pub struct Body {
    /// The lowest level that its header names.
    pub level: u8,
    /// The tag of its header.
    pub tag: u8,
    pub bytes: Vec<u8>,
}

/// A page of the index, as a mount finds it.
pub struct Found<T> {
    pub page: u32,
    pub sequence: u64,
    /// What the caller took from it.
    pub content: T,
}

/// What a device holds where it holds no index of these settings.
pub enum NoIndex {
    /// An index with other settings.
    Other(Medium),
    /// Pages of another version of the format.
    Version(u8),
    /// Nothing at all.
    Blank,
    /// Pages that are none of an index.
    Foreign,
}

/// What a mount found: the newest commit, and all pages in the order in which they were written.
pub type Mounted<T> = Result<(Head, Vec<Found<T>>), NoIndex>;

/// The pages of a device.
pub struct Pages<F> {
    pub flash: F,
    medium: Medium,
    identity: u32,
    /// That of the newest page.
    sequence: u64,
    frame: Vec<u8>,
    /// How many hold each page.
    holders: Vec<u16>,
    held: u32,
    /// Where the search for a free page begins.
    next: u32,
    /// The page of the newest commit.
    commit: Option<u32>,
    /// Pages that the running operation has read.
    read: BTreeMap<u32, Vec<u8>>,
}

impl<F: Flash> Pages<F> {
    pub fn new(flash: F, medium: Medium) -> Self {
        let geometry = flash.geometry();
        let frame = vec![0xFF; layout_of(&geometry).frame_bytes()];
        let holders = vec![0; geometry.pages() as usize];
        let (identity, sequence, held, next, commit) = (0, 0, 0, 0, None);
        let read = BTreeMap::new();
        Self { flash, medium, identity, sequence, frame, holders, held, next, commit, read }
    }

    fn layout(&self) -> PageLayout {
        layout_of(&self.flash.geometry())
    }

    pub const fn medium(&self) -> &Medium {
        &self.medium
    }

    /// Pages of the device.
    pub fn count(&self) -> u32 {
        self.holders.len() as u32
    }

    /// Pages that are not free.
    pub const fn held(&self) -> u32 {
        self.held
    }

    /// The sequence of the page that is written next.
    pub const fn next_sequence(&self) -> u64 {
        self.sequence + 1
    }

    /// Begins an operation, which reads each page once.
    pub fn begin(&mut self) {
        self.read.clear();
    }

    pub fn hold(&mut self, page: u32) {
        let holders = &mut self.holders[page as usize];
        self.held += u32::from(*holders == 0);
        *holders += 1;
    }

    /// Gives up what [`hold`](Self::hold) holds. The device hears of a page that is free then.
    ///
    /// No commit that a mount may find needs the page any more.
    pub fn release(&mut self, page: u32) -> Result<(), EngineFault<F>> {
        let holders = &mut self.holders[page as usize];
        *holders -= 1;
        if *holders > 0 {
            return Ok(());
        }
        self.held -= 1;
        self.flash.discard(PageNumber(page)).map_err(Fault::Device)
    }

    /// Reads a page into the frame.
    fn load(&mut self, page: u32) -> Result<Result<PageHeader, PageFault>, EngineFault<F>> {
        let layout = self.layout();
        for _ in 0..READS_MAX {
            let (main, spare) = self.frame.split_at_mut(layout.page_bytes());
            match self.flash.read(PageNumber(page), main, spare) {
                // A device may show a discarded page as zeros.
                Ok(_) if self.frame.iter().all(|&byte| byte == self.frame[0]) => {
                    return Ok(Err(PageFault::Erased));
                }
                Ok(_) => return Ok(layout.open(&self.frame)),
                Err(error) if error.kind() == ErrorKind::Uncorrectable => {}
                Err(error) => return Err(Fault::Device(error)),
            }
        }
        Ok(Err(PageFault::Unreadable))
    }

    /// The body of a page that is held.
    pub fn body(&mut self, page: u32) -> Result<&[u8], EngineFault<F>> {
        if !self.read.contains_key(&page) {
            let is_ours =
                matches!(self.load(page)?, Ok(header) if header.identity == self.identity);
            if !is_ours {
                let reason = Damage::Checksum;
                return Err(Fault::Corrupt { page: PageNumber(page), reason });
            }
            let area_bytes = self.layout().area_bytes();
            self.read.insert(page, self.frame[HEAD_BYTES..area_bytes].to_vec());
        }
        Ok(&self.read[&page])
    }

    /// Writes a group of pages, and commits it. Returns the pages, which nobody holds yet.
    pub fn write(&mut self, head: &Head, group: &[Body]) -> Result<Vec<u32>, EngineFault<F>> {
        // It is refused before anything is written, or done.
        if (self.count() - self.held) < group.len() as u32 {
            return Err(Fault::NoRoom { limit_pages: self.count() });
        }
        let mut pages = Vec::with_capacity(group.len());
        for (at, body) in group.iter().enumerate() {
            let Some(page) = self.take_free(&pages) else {
                return Err(Fault::NoRoom { limit_pages: self.count() });
            };
            self.fill(head, body, at + 1 == group.len());
            self.replace(page)?;
            pages.push(page);
        }
        pages.last().map_or(Ok(()), |&last| self.commit_is(last))?;
        Ok(pages)
    }

    /// Writes a group of one page in the place of one that is held, and commits it.
    pub fn rewrite(&mut self, head: &Head, body: &Body, page: u32) -> Result<(), EngineFault<F>> {
        self.fill(head, body, true);
        self.replace(page)?;
        self.commit_is(page)
    }

    /// Makes the frame the next page of a group.
    fn fill(&mut self, head: &Head, body: &Body, commits: bool) {
        self.sequence += 1;
        self.frame.fill(0xFF);
        self.frame[..4].copy_from_slice(&head.root.to_le_bytes());
        self.frame[4..8].copy_from_slice(&head.next.to_le_bytes());
        self.frame[8..HEAD_BYTES].copy_from_slice(&head.since.to_le_bytes());
        self.frame[HEAD_BYTES..][..body.bytes.len()].copy_from_slice(&body.bytes);
        let header = PageHeader {
            identity: self.identity,
            sequence: self.sequence,
            lowest: body.level,
            height: if commits { head.height } else { 0 },
            erase_count: 0,
            records: head.records,
            settling: false,
            tag: body.tag,
        };
        self.layout().seal(&mut self.frame, &self.medium, &header);
    }

    /// Notes the page of the newest commit.
    fn commit_is(&mut self, page: u32) -> Result<(), EngineFault<F>> {
        self.hold(page);
        self.commit.replace(page).map_or(Ok(()), |before| self.release(before))
    }

    /// Writes the frame to a page.
    fn replace(&mut self, page: u32) -> Result<(), EngineFault<F>> {
        self.read.remove(&page);
        let (main, spare) = self.frame.split_at(self.layout().page_bytes());
        self.flash.rewrite(PageNumber(page), main, spare).map_err(Fault::Device)
    }

    /// The next page that is free, and not among those of the group.
    fn take_free(&mut self, group: &[u32]) -> Option<u32> {
        let count = self.count();
        let mut pages = (0..count).map(|step| (self.next + step) % count);
        let page =
            pages.find(|&page| self.holders[page as usize] == 0 && !group.contains(&page))?;
        self.next = (page + 1) % count;
        Some(page)
    }

    /// Forgets what is held, and takes a new identity, which no page of the device has.
    pub fn forget(&mut self) -> Result<(), EngineFault<F>> {
        (self.identity, self.sequence) = (0, 0);
        for page in 0..self.count() {
            if let Ok(header) = self.load(page)? {
                self.identity = self.identity.max(header.identity.wrapping_add(1));
                self.sequence = self.sequence.max(header.sequence);
            }
        }
        self.let_all_go();
        Ok(())
    }

    fn let_all_go(&mut self) {
        self.holders.fill(0);
        (self.held, self.next, self.commit) = (0, 0, None);
        self.read.clear();
    }

    /// Finds the index that the device holds, and blanks what a cut left of a group.
    ///
    /// `take` is what the caller needs of a page: its header and its body are the arguments.
    pub fn mount<T>(
        &mut self,
        take: impl Fn(&PageHeader, &[u8]) -> T,
    ) -> Result<Mounted<T>, EngineFault<F>> {
        self.let_all_go();
        let layout = self.layout();
        let mut pages = Vec::new();
        let (mut newest, mut version, mut foreign) = (None, None, None);
        for page in 0..self.count() {
            let header = match self.load(page)? {
                Ok(header) => header,
                Err(PageFault::Erased) => continue,
                Err(PageFault::Version(found)) => {
                    version = Some(found);
                    continue;
                }
                Err(_) => {
                    foreign = foreign.or(Some(page));
                    continue;
                }
            };
            let area = &self.frame[..layout.area_bytes()];
            if header.height > 0 && newest.is_none_or(|(of, _, _)| of < order(&header)) {
                newest = Some((order(&header), head_of(&header, area), layout.medium(&self.frame)));
            }
            let content = take(&header, &area[HEAD_BYTES..]);
            pages.push((order(&header), page, content));
        }
        let Some(((identity, sequence), head, medium)) = newest else {
            return Ok(Err(match (version, foreign) {
                (Some(found), _) => NoIndex::Version(found),
                (None, Some(_)) => NoIndex::Foreign,
                (None, None) => NoIndex::Blank,
            }));
        };
        if medium != self.medium {
            return Ok(Err(NoIndex::Other(medium)));
        }
        if let Some(page) = foreign {
            let reason = Damage::Checksum;
            return Err(Fault::Corrupt { page: PageNumber(page), reason });
        }
        (self.identity, self.sequence) = (identity, sequence);
        let mut found = Vec::new();
        for ((of, sequence), page, content) in pages {
            if of != identity {
                continue;
            }
            if sequence > self.sequence {
                self.frame.fill(0xFF);
                self.replace(page)?;
                continue;
            }
            if sequence == self.sequence {
                self.hold(page);
                self.commit = Some(page);
                self.next = (page + 1) % self.count();
            }
            found.push(Found { page, sequence, content });
        }
        found.sort_by_key(|found| found.sequence);
        Ok(Ok((head, found)))
    }
}

/// The order in which pages were written.
const fn order(header: &PageHeader) -> (u32, u64) {
    (header.identity, header.sequence)
}

fn head_of(header: &PageHeader, area: &[u8]) -> Head {
    Head {
        root: number_at(area, 0),
        next: number_at(area, 4),
        since: long_at(area, 8),
        height: header.height,
        records: header.records,
    }
}

/// Four bytes as a number.
pub fn number_at(bytes: &[u8], at: usize) -> u32 {
    let mut number = [0; 4];
    number.copy_from_slice(&bytes[at..at + 4]);
    u32::from_le_bytes(number)
}

/// Eight bytes as a number.
pub fn long_at(bytes: &[u8], at: usize) -> u64 {
    u64::from(number_at(bytes, at)) | u64::from(number_at(bytes, at + 4)) << 32
}

/// Two bytes as a number.
pub fn count_at(bytes: &[u8], at: usize) -> usize {
    usize::from(u16::from_le_bytes([bytes[at], bytes[at + 1]]))
}
