//! Every page of a chip, read once and classified.
//!
//! A page is judged by its own content, not by pages that refer to it; no tree is walked here.

use nandina::flash::{Flash, FlashError, PageNumber, Reading};
use nandina::node::{Gaps, HEADER_BYTES, ONE_BY_ONE, PageFault, PageLayout};
use nandina_sim::Chip;

use super::JournalFacts;
use super::header::Header;
use super::reader::reader_of;
use crate::LabError;
use crate::opened::copy_to_look_at;

/// All pages of a chip.
pub struct Pages {
    chip: Chip,
    pub layout: PageLayout,
    /// The kind of each page, by its number.
    pub found: Vec<Result<Header, PageFault>>,
    /// Pages in which the ECC corrected so many bits that they should be written again.
    pub corrected: u32,
    /// Gaps in the newest session page of a mount, and that page's number.
    ///
    /// Only systems that replace nodes in place have it.
    gaps: (Gaps, u64),
    frame: Vec<u8>,
    held: Option<PageNumber>,
}

impl Pages {
    /// Reads every page of a copy of `chip`.
    pub fn read(chip: &Chip) -> Result<Self, LabError> {
        let geometry = chip.profile().geometry;
        let layout = PageLayout::new(geometry.page_bytes as usize, geometry.spare_bytes as usize);
        if layout.frame_bytes() < HEADER_BYTES {
            let what = format!(
                "its pages have {} bytes, {HEADER_BYTES} are the least",
                geometry.page_bytes
            );
            return Err(LabError(what));
        }
        let mut pages = Self {
            chip: copy_to_look_at(chip),
            layout,
            found: Vec::with_capacity(geometry.pages() as usize),
            corrected: 0,
            gaps: (Gaps::default(), 0),
            frame: vec![0; layout.frame_bytes()],
            held: None,
        };
        for page in (0..geometry.pages()).map(PageNumber) {
            let found = match pages.sense(page)? {
                Some(reading) => {
                    let found = Header::of(&pages.layout, &pages.frame);
                    pages.corrected += u32::from(found.is_ok() && reading == Reading::Corrected);
                    found
                }
                None => Err(PageFault::Unreadable),
            };
            pages.found.push(found);
        }
        pages.find_session()?;
        Ok(pages)
    }

    /// A copy of the chip.
    pub fn copy(&self) -> Chip {
        self.chip.clone()
    }

    fn find_session(&mut self) -> Result<(), LabError> {
        let is_session = |header: &Header| {
            (header.begins_session() || header.ends_session())
                && reader_of(header.medium.system).is_some_and(|reader| reader.system.replaces())
        };
        let sessions = self.readable().filter(|(_, header)| is_session(header));
        let newest = sessions.max_by_key(|(_, header)| header.sequence);
        if let Some((page, number)) = newest.map(|(page, header)| (page, header.sequence)) {
            let area_bytes = self.layout.area_bytes();
            self.gaps = (Gaps::read(&self.bytes(page)?[..area_bytes]), number);
        }
        Ok(())
    }

    /// Whether a mount counts a page with this header.
    pub fn counts(&self, header: &Header) -> bool {
        let (gaps, session) = &self.gaps;
        let in_place =
            reader_of(header.medium.system).is_some_and(|reader| reader.system.replaces());
        !in_place || gaps.let_count(header, *session)
    }

    /// Reads `page` into the page buffer; `None` if the ECC cannot correct it.
    fn sense(&mut self, page: PageNumber) -> Result<Option<Reading>, LabError> {
        self.held = None;
        let (main, spare) = self.frame.split_at_mut(self.layout.page_bytes());
        match self.chip.read(page, main, spare) {
            Ok(reading) => {
                self.held = Some(page);
                Ok(Some(reading))
            }
            Err(error) if error.kind() == nandina::flash::ErrorKind::Uncorrectable => Ok(None),
            Err(error) => Err(LabError(error.to_string())),
        }
    }

    /// The bytes of a page that was found to be readable.
    pub fn bytes(&mut self, page: PageNumber) -> Result<&[u8], LabError> {
        if self.held != Some(page) && self.sense(page)?.is_none() {
            return Err(LabError(format!("{page} could be read before and cannot any more")));
        }
        Ok(&self.frame)
    }

    /// The readable pages and their headers.
    pub fn readable(&self) -> impl Iterator<Item = (PageNumber, &Header)> {
        let numbered = (0..).map(PageNumber).zip(&self.found);
        numbered.filter_map(|(page, found)| Some((page, found.as_ref().ok()?)))
    }

    /// The newest readable page of a tree: it identifies the index on the chip.
    pub fn newest(&self) -> Option<Header> {
        let of_trees =
            self.readable().map(|(_, header)| *header).filter(|header| header.lowest > 0);
        of_trees.max_by_key(|header| header.sequence)
    }

    /// Whether a cut has left a batch of leaves half made, which a mount makes.
    pub fn has_half_made_batch(&self) -> bool {
        let has_directory = |newest: &Header| {
            reader_of(newest.medium.system).is_some_and(|reader| reader.system.has_directory())
        };
        self.newest().filter(has_directory).is_some_and(|newest| is_half_made(&newest))
    }

    /// The journal after the page `root`, if the system of that has one.
    pub fn journal_behind(&mut self, root: PageNumber) -> Result<Option<JournalFacts>, LabError> {
        let Some(Ok(root)) = self.found.get(root.0 as usize).copied() else { return Ok(None) };
        let packed = reader_of(root.medium.system).and_then(|reader| reader.packed);
        let Some(packed) = packed else { return Ok(None) };
        let counts = |header: &Header| {
            (packed.is_journal)(header)
                && header.identity == root.identity
                && header.sequence > root.sequence
        };
        let newer: Vec<_> = self.readable().filter(|(_, header)| counts(header)).collect();
        let newer: Vec<_> = newer.into_iter().map(|(page, header)| (page, *header)).collect();
        let sizes = (usize::from(root.medium.key_bytes), usize::from(root.medium.value_bytes));
        let area_bytes = self.layout.area_bytes();
        let mut facts = JournalFacts::default();
        for (page, header) in newer {
            let changes = (packed.changes)(&header, &self.bytes(page)?[..area_bytes], sizes) as u64;
            facts.pages += 1;
            facts.changes += changes;
            if header.lowest == ONE_BY_ONE {
                facts.pages_of_slots += 1;
                facts.changes_in_slots += changes;
            }
        }
        Ok(Some(facts))
    }

    /// The roots of the index that `newest` belongs to, the newest first.
    pub fn roots(&self, newest: &Header) -> Vec<PageNumber> {
        let reader = reader_of(newest.medium.system);
        let last =
            reader.is_none_or(|reader| reader.system.root_commits() || reader.packed.is_some());
        let mut roots: Vec<_> = self
            .readable()
            .filter(|(_, header)| header.height > 0 && header.identity == newest.identity)
            .filter(|(_, header)| self.counts(header))
            // In the systems in which no root is written last, further pages commit as well.
            .filter(|(_, header)| last || header.lowest == header.height)
            .map(|(page, header)| (header.sequence, page))
            .collect();
        roots.sort_unstable_by(|one, other| other.cmp(one));
        roots.into_iter().map(|(_, page)| page).collect()
    }
}

/// Whether the newest page of an index of leaves belongs to a batch, and does not store it.
///
/// Other pages of such an index have level 1 (docs/FORMAT.md).
fn is_half_made(newest: &Header) -> bool {
    let stores_batch = newest.height == 0 && !newest.begins_session() && !newest.ends_session();
    newest.lowest > 1 && !stores_batch
}
