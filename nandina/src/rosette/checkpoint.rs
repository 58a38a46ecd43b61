//! Checkpoints: the directory as it was, so that a mount reads only what is newer.
//!
//! A mount gives the newer pages what they own first, as without a checkpoint; the entries of the
//! stored directory are older than all of them, and own what is left. Where the checkpoint is
//! missing or damaged, the mount reads the pages of all blocks.
//!
//! A checkpoint stores the directory as it is in RAM: first which bytes of the separators the
//! entries have, and a separator with whose first bytes all begin; then the entries. After these it
//! stores the blocks that may hold a torn page, and where the session page that lists them is,
//! since a mount from the checkpoint sees no older session page; and the page that stores a batch,
//! if one is being made.
//! No checkpoint is written before the newest leaf of the mount was written again.

use super::batch::{self, Batch};
use super::directory::Directory;
use super::leaves::Leaves;
use super::separator::{Separator, Window};
use super::suspects::{BYTES_MAX, Suspects};
use super::torn::Torn;
use crate::bytes::u32_at;
use crate::error::Fault;
use crate::flash::{Flash, PageNumber};
use crate::gc::PageOwner;
use crate::log::checkpoint::{Checkpoint, IS_BUILT, Stream, Summary, read_owned};

/// Bytes that say which bytes of the separators are stored.
///
/// The first is where these end, plus 1; the second where they begin.
pub(super) const STORED_BEFORE: usize = 2;

/// The most bytes that a checkpoint stores besides the directory.
pub(super) const STORED_BESIDE_MAX: usize = (1 + batch::IS_BUILT as usize) * PAGE_BYTES + BYTES_MAX;

const PAGE_BYTES: usize = 4;

/// The page buffer with what a checkpoint stores beside the directory.
const BESIDE: usize = 1;

/// What a checkpoint stores: the directory, the session page, and what that lists.
pub(super) struct Stored<'s, 'b> {
    directory: &'s Directory<'b>,
    session: [u8; PAGE_BYTES],
    suspects: &'s Suspects,
    /// The page that stores the batch that is being made, if there is one.
    batch: Option<[u8; PAGE_BYTES]>,
}

impl<'s, 'b> Stored<'s, 'b> {
    /// The part of this that a checkpoint stores.
    pub fn of(directory: &'s Directory<'b>, torn: &'s Torn, batch: &Batch) -> Self {
        let session = torn.session().map_or(u32::MAX, |page| page.0).to_le_bytes();
        let batch = batch.open().map(|page| page.0.to_le_bytes());
        Self { directory, session, suspects: torn.suspects(), batch }
    }

    /// What is stored beside the directory.
    fn beside(&self) -> [&[u8]; 3] {
        let batch = self.batch.as_ref().map_or(&[][..], |page| page);
        [&self.session, self.suspects.stored(), batch]
    }
}

impl Stream for Stored<'_, '_> {
    const STORES_VALID: bool = false;
    const HAS_FIXED_SIZE: bool = false;

    fn bytes(&self) -> usize {
        let beside = self.beside().iter().map(|bytes| bytes.len()).sum::<usize>();
        STORED_BEFORE + self.directory.stored().len() + beside
    }

    fn fill(&self, from: usize, out: &mut [u8]) {
        out.fill(0xFF);
        let (window, stored) = (self.directory.window(), self.directory.stored());
        // A format without a window has a zero here.
        let before: [u8; STORED_BEFORE] = [window.end() as u8 + 1, window.from() as u8];
        let (mut filled, mut begin) = (0, 0);
        for bytes in [&before[..], stored].into_iter().chain(self.beside()) {
            let left = bytes.get((from + filled).saturating_sub(begin)..).unwrap_or_default();
            let taken = left.len().min(out.len() - filled);
            out[filled..filled + taken].copy_from_slice(&left[..taken]);
            filled += taken;
            begin += bytes.len();
        }
    }

    // A mount takes the bytes once it knows what is newer.
    fn clear(&mut self) {}

    fn load(&mut self, _: usize, _: &[u8]) -> bool {
        true
    }

    fn is_sound(&mut self, _: u32) -> bool {
        true
    }
}

impl<'b, F: Flash> Leaves<'b, F> {
    /// Whether the medium has checkpoints.
    ///
    /// Without them nothing of this file is built.
    pub(super) const fn has_checkpoints(&self) -> bool {
        IS_BUILT && self.log.medium.checkpoints
    }

    /// Writes a checkpoint if one is due before the next page.
    pub(super) fn keep_checkpoint(&mut self) -> Result<(), Fault<F::Error>> {
        if self.has_checkpoints() && self.checkpoints.is_due(&self.log, 1) {
            self.write_checkpoint()?;
        }
        Ok(())
    }

    /// Writes a checkpoint.
    ///
    /// Returns `false` if that has to wait, or if there is no block for it.
    pub(super) fn write_checkpoint(&mut self) -> Result<bool, Fault<F::Error>> {
        if !self.has_checkpoints() || self.torn.newest_leaf().is_some() {
            return Ok(false);
        }
        let stored = Stored::of(&self.directory, &self.torn, &self.batch);
        // The blocks that it keeps must not be of the reserve.
        let taken = self.checkpoints.taken(&self.log, &stored);
        if taken > 0 && self.log.room() < self.reserve_pages() + taken {
            return Ok(false);
        }
        let last =
            self.log.next_place().and_then(|(block, next)| Some((block, next.checked_sub(1)?)));
        let Some((block, place)) = last else { return Ok(false) };
        let summary = Summary {
            page: self.log.page_at(block, place).0,
            height: 1,
            records: self.state.records(),
            nodes: self.directory.len() as u32,
        };
        self.state.doubt();
        let written = self.checkpoints.write(&mut self.log, &summary, &stored)?;
        self.state.trust();
        self.state.note_checkpoint(written);
        Ok(written)
    }

    /// Makes the checkpoints unusable, unless one was written since the mount.
    pub(super) fn void_checkpoint(&mut self) -> Result<(), Fault<F::Error>> {
        if self.has_checkpoints() && !self.state.has_checkpoint() {
            self.checkpoints.void(&mut self.log)?;
            self.state.note_void();
        }
        Ok(())
    }

    /// Finds the newest checkpoint, if a mount can begin with it.
    ///
    /// Then only the blocks that may have newer pages are in the order of blocks. It is large, so
    /// it is written where it is needed.
    // Apart from what calls it, for the sake of the stack.
    #[inline(never)]
    pub(super) fn find_usable(
        &mut self,
        usable: &mut Option<Checkpoint>,
    ) -> Result<(), Fault<F::Error>> {
        let mut unused = Stored::of(&self.directory, &self.torn, &self.batch);
        *usable = self.checkpoints.find_newest(&mut self.log, &mut unused)?;
        let Some(found) = &*usable else { return Ok(()) };
        let opened = self.log.look_into(found)?;
        if !opened.is_usable(found) {
            *usable = None;
            return Ok(());
        }
        self.checkpoints.go_on_from(found, &opened);
        self.order.clear();
        let listed = opened.since.into_iter().zip(found.listed());
        let listed = listed.filter_map(|(first, &block)| Some((block, first?)));
        let active = found.active.map(|(block, _)| (block, found.header.sequence));
        for (block, first) in active.into_iter().chain(listed) {
            // A block that the chip has marked held nothing that counts.
            if first > 0 && !self.log.is_marked(block)? {
                self.order.note(block, first);
            }
        }
        Ok(())
    }

    /// Gives each leaf of the checkpoint's directory what no newer one owns.
    ///
    /// Takes the suspects as well, unless a newer session page was met. Returns `false` if they
    /// cannot be read, or if there are more ranges than there is room for.
    ///
    /// Cost: a read for each page of the checkpoint. The page buffers 0 and 1 are used.
    pub(super) fn paint_checkpoint(
        &mut self,
        found: &Checkpoint,
        has_session: bool,
    ) -> Result<bool, Fault<F::Error>> {
        let is_painted = self.paint_ranges(found)?;
        Ok(is_painted && self.take_beside(has_session))
    }

    /// Gives each leaf of the checkpoint's directory what no newer one owns.
    ///
    /// What is stored beside the directory is in the page buffer [`BESIDE`] then.
    // Apart from what calls it, for the sake of the stack.
    #[inline(never)]
    fn paint_ranges(&mut self, found: &Checkpoint) -> Result<bool, Fault<F::Error>> {
        let mut reader = Reader::new(self.directory.window());
        let mut ranges = found.summary.nodes;
        self.log.frames.release(BESIDE);
        self.log.frames.bytes_mut(BESIDE).fill(0xFF);
        let mut beside_bytes = 0;
        let mut place = found.place();
        for part in 0..found.parts() {
            let stored = read_owned::<F, Stored<'_, '_>>(&mut self.log, found, &mut place, part)?;
            let Some(stored) = stored else { return Ok(false) };
            let mut at = stored.start;
            while ranges > 0 && at < stored.end {
                match reader.read(self.log.frames.bytes(0)[at]) {
                    Read::Part => {}
                    Read::Unknown => return Ok(false),
                    Read::Range => {
                        ranges -= 1;
                        let before = reader.before.as_ref();
                        if before
                            .is_some_and(|before| !self.paint_stored(before, Some(&reader.low)))
                        {
                            return Ok(false);
                        }
                        reader.go_on();
                    }
                }
                at += 1;
            }
            let (beside, read) = self.log.frames.pair(BESIDE, 0);
            let (beside, read) = (&mut beside[beside_bytes..], &read[at..stored.end]);
            let taken = read.len().min(beside.len());
            beside[..taken].copy_from_slice(&read[..taken]);
            beside_bytes += taken;
        }
        let last = reader.before.as_ref().filter(|_| ranges == 0);
        Ok(last.is_some_and(|last| self.paint_stored(last, None)))
    }

    /// Gives the page of a range that was stored whatever of the range has no owner.
    ///
    /// The range ends where the `next` one begins. Returns `false` if there is no room, or if this
    /// is no range of this chip.
    fn paint_stored(&mut self, (low, page): &StoredRange, next: Option<&Separator>) -> bool {
        let (low, page, high) = (&**low, *page, next.map(|next| &**next));
        if page == u32::MAX {
            // That range was lost before.
            return true;
        }
        if page >= self.log.geometry().pages() || high.is_some_and(|high| high <= low) {
            return false;
        }
        let painted = self.directory.paint((low, high), PageNumber(page));
        self.take_painted(painted)
    }

    /// Takes the suspects that a checkpoint stores, and the page that lists them.
    ///
    /// A newer session page has newer ones. Also takes the page that stores a batch.
    fn take_beside(&mut self, has_session: bool) -> bool {
        let (geometry, beside) = (self.log.geometry(), self.log.frames.bytes(BESIDE));
        let (page, listed) = (PageNumber(u32_at(beside, 0)), &beside[PAGE_BYTES..]);
        if batch::IS_BUILT {
            let behind = listed.get(Suspects::bytes_in(listed)..).unwrap_or_default();
            let batch = behind.get(..PAGE_BYTES).map(|bytes| PageNumber(u32_at(bytes, 0)));
            self.batch.note_stored(batch.filter(|page| page.0 < geometry.pages()));
        }
        if has_session {
            return true;
        }
        self.torn.read_suspects(listed, geometry.blocks, page)
            && self.torn.session().is_none_or(|page| page.0 < geometry.pages())
    }
}

/// The separator of a range, and the number of its page or that for "no page".
type StoredRange = (Separator, u32);

/// Reads the ranges of a stored directory, byte by byte: each may be in two pages.
struct Reader {
    /// `None` as long as nothing was read that says so.
    window: Option<Window>,
    /// The window of a directory without separators.
    empty: Window,
    /// The last separator that was read. Its first bytes are those of all separators.
    low: Separator,
    /// The numbers beside it: those of the window, or of the page.
    beside: [u8; size_of::<PageNumber>()],
    /// Bytes read of the range, or of what comes before the ranges.
    filled: usize,
    /// The range before the one that is being read.
    before: Option<StoredRange>,
}

/// What a byte of a stored directory completes.
enum Read {
    /// Nothing yet, or how the ranges that follow are stored.
    Part,
    /// A range.
    Range,
    /// No directory is stored so.
    Unknown,
}

impl Reader {
    fn new(empty: Window) -> Self {
        let low = Separator::lowest(empty.key_bytes());
        Self { window: None, empty, low, beside: [0; 4], filled: 0, before: None }
    }

    /// Reads the next byte.
    fn read(&mut self, byte: u8) -> Read {
        let at = self.filled;
        self.filled += 1;
        let Some(window) = self.window else {
            match at.checked_sub(STORED_BEFORE) {
                None => self.beside[at] = byte,
                Some(at) => self.low.bytes_mut()[at] = byte,
            }
            if self.filled == STORED_BEFORE + self.empty.key_bytes() {
                self.filled = 0;
                let [end, from, ..] = self.beside;
                self.window = end.checked_sub(1).and_then(|end| self.empty.at(from, end));
                let Some(window) = self.window else { return Read::Unknown };
                self.low.bytes_mut()[window.from()..].fill(0);
            }
            return Read::Part;
        };
        match at.checked_sub(window.width()) {
            None => self.low.bytes_mut()[window.from() + at] = byte,
            Some(at) => self.beside[at] = byte,
        }
        if self.filled < window.entry_bytes() {
            return Read::Part;
        }
        self.filled = 0;
        Read::Range
    }

    /// Keeps the range that was read, as the one before the next.
    fn go_on(&mut self) {
        let Some(window) = self.window else { return };
        let page = window.page_of(&self.beside[..window.entry_bytes() - window.width()]);
        let low = match self.before {
            None => Separator::lowest(window.key_bytes()),
            Some(_) => self.low,
        };
        self.before = Some((low, page));
    }
}
