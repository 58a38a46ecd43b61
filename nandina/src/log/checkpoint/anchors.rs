//! The anchors: two fixed blocks that record which block holds the checkpoints.
//!
//! A page of an anchor is written for each block that checkpoints fill, and for each checkpoint
//! that takes several. The anchors take turns: the one in use is filled before the other one is
//! erased.

use super::page::{IS_BUILT, Kind, PREFIX_BYTES, Prefix};
use crate::blocks::NO_BLOCK;
use crate::error::Fault;
use crate::flash::{BlockNumber, Flash};
use crate::log::{Label, Log, Source};

/// The anchors: blocks that record where the checkpoints are.
pub const ANCHORS: [BlockNumber; 2] = [BlockNumber(0), BlockNumber(1)];

/// What is known of the anchors on the chip.
#[derive(Clone, Copy)]
pub(super) struct Anchors {
    /// The anchor in use and the place of its next page.
    ///
    /// `None` after a mount without a checkpoint.
    next: Option<(u8, u32)>,
    /// The blocks to which the anchors lead, or [`NO_BLOCK`] where that is not known.
    leads_to: [BlockNumber; ANCHORS.len()],
    /// The anchors may lead to a checkpoint that the mount did not use.
    ///
    /// None of its blocks may be opened until the anchors are erased.
    stale: bool,
}

impl Anchors {
    /// Nothing is known of them. They may be `stale` where checkpoints are written.
    pub const fn unknown(stale: bool) -> Self {
        Self { next: None, leads_to: [NO_BLOCK; ANCHORS.len()], stale }
    }

    /// Forgets them, but not where they lead.
    ///
    /// They may lead there after they were erased.
    pub const fn forgotten(self, stale: bool) -> Self {
        Self { next: None, stale, ..self }
    }

    /// The same anchors, of which it is known that they were erased.
    pub const fn erased(self) -> Self {
        Self { stale: false, ..self }
    }

    /// Whether they may lead to a checkpoint that the mount did not use.
    pub const fn are_stale(&self) -> bool {
        self.stale
    }

    /// Notes that the anchor `which` leads to this block.
    pub const fn note(&mut self, which: usize, block: BlockNumber) {
        self.leads_to[which] = block;
    }

    /// The mount uses the checkpoint to which the anchor `which` leads.
    ///
    /// A cut erase of the anchor may have left all of it readable, and a cut program may have left
    /// nothing visible. So the place after its last page cannot be trusted: the other anchor is
    /// erased and written next.
    pub const fn follow(&mut self, which: usize, block_pages: u32) {
        self.next = Some((which as u8, block_pages));
        self.stale = false;
    }

    /// Erases both anchors, so that a mount finds no checkpoint.
    pub fn erase<F: Flash>(&mut self, log: &mut Log<'_, F>) -> Result<(), Fault<F::Error>> {
        erase_anchors(log)?;
        let leads_to = core::mem::replace(&mut self.leads_to, [NO_BLOCK; ANCHORS.len()]);
        for (anchor, block) in ANCHORS.into_iter().zip(leads_to) {
            // Without a mark it still leads to its checkpoint, which then has to be erased.
            if block != NO_BLOCK
                && log.blocks.is_bad(anchor)
                && !log.is_marked(anchor)?
                && log.blocks.is_empty(block)
                && Some(block) != log.active_block()
            {
                log.erase_for_good(block)?;
            }
        }
        let usable = ANCHORS.iter().position(|&block| !log.blocks.is_bad(block));
        self.next = usable.map(|which| (which as u8, 0));
        self.stale = false;
        Ok(())
    }

    /// Programs the anchor page for checkpoints in the blocks `area`.
    ///
    /// Returns `false` if no anchor could be written.
    pub fn write<F: Flash>(
        &mut self,
        log: &mut Log<'_, F>,
        (area, number): (&[BlockNumber], u64),
    ) -> Result<bool, Fault<F::Error>> {
        let area_bytes = log.layout().area_bytes();
        while let Some((which, place)) = self.with_room(log)? {
            let page = &mut log.frames.bytes_mut(0)[..area_bytes];
            page.fill(0xFF);
            Prefix { kind: Kind::Anchor, part: 0, parts: 1, before: 0, number }.write(page);
            for (block, named) in area.iter().zip(page[PREFIX_BYTES..].chunks_exact_mut(4)) {
                named.copy_from_slice(&block.0.to_le_bytes());
            }
            self.next = Some((which as u8, place + 1));
            self.leads_to[which] = area.first().copied().unwrap_or(NO_BLOCK);
            if program_area(log, ANCHORS[which], place)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The anchor to write next, and the place in it.
    fn with_room<F: Flash>(
        &self,
        log: &mut Log<'_, F>,
    ) -> Result<Option<(usize, u32)>, Fault<F::Error>> {
        let usable = |log: &Log<'_, F>, which: usize| !log.blocks.is_bad(ANCHORS[which]);
        let first = match self.next.map(|(which, place)| (which.into(), place)) {
            Some((which, place)) if usable(log, which) && place < log.block_pages() => {
                return Ok(Some((which, place)));
            }
            // The other anchor first: the one in use leads to a checkpoint that is still correct.
            Some((which, _)) => 1 - which,
            None => return Ok(None),
        };
        for which in [first, 1 - first] {
            if usable(log, which) && log.erase(ANCHORS[which])? {
                return Ok(Some((which, 0)));
            }
        }
        Ok(None)
    }
}

/// Erases both anchors, of whatever index they are.
///
/// A library that is built without checkpoints knows of none.
pub fn erase_anchors<F: Flash>(log: &mut Log<'_, F>) -> Result<(), Fault<F::Error>> {
    if !IS_BUILT {
        return Ok(());
    }
    for block in ANCHORS {
        // An anchor that cannot be erased may still be readable: it has to be marked as bad, so
        // that no mount reads it.
        if !log.blocks.is_bad(block) && !log.erase_for_good(block)? {
            covered!("an anchor cannot be erased");
            log.mark_bad_blocks()?;
        }
    }
    Ok(())
}

/// Programs page buffer 0 as a page of an anchor or a checkpoint.
///
/// If the program fails, gives the block up and returns `false`.
pub(super) fn program_area<F: Flash>(
    log: &mut Log<'_, F>,
    block: BlockNumber,
    place: u32,
) -> Result<bool, Fault<F::Error>> {
    log.program_at(block, place, Source::Frame(0), Label { lowest: 0, height: 0, records: 0 })
}
