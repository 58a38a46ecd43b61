//! Which of the blocks that a checkpoint lists were opened since.
//!
//! Nothing is written here.

use super::{Checkpoint, LIST_MAX};
use crate::error::Fault;
use crate::flash::Flash;
use crate::log::{GAP, LOST_MAX, Log};
use crate::node::PageFault;

/// What the first pages of the blocks record that a checkpoint lists.
pub struct Opened {
    /// For each listed block, the number of its first page.
    ///
    /// `None` if that is not newer than the checkpoint.
    pub since: [Option<u64>; LIST_MAX],
    /// For each listed block, a bit: a mount began to write with its first page.
    sessions: u16,
    /// No page of a checkpoint of which no anchor was found has a higher number.
    pub checkpoint: u64,
    /// The index of the checkpoint is gone.
    ///
    /// One of the blocks holds newer pages of another formatting.
    outdated: bool,
}

impl Opened {
    /// Whether a mount can rely on the checkpoint `found`.
    pub fn is_usable(&self, found: &Checkpoint) -> bool {
        // Once the last listed block is open, blocks that are not listed may be open as well.
        let end = self.since[..found.listed().len()].last();
        let has_ended = self.outdated || end.is_none_or(Option::is_some);
        if has_ended {
            covered!("the list of a checkpoint has ended");
        }
        !has_ended
    }

    /// Whether a mount can rely on `found`, where a checkpoint ends a session.
    ///
    /// The first page after it is in a block that it lists.
    pub fn is_untouched(&self, found: &Checkpoint) -> bool {
        self.is_usable(found) && self.since.iter().all(Option::is_none)
    }

    /// The most pages numbered from `checkpoint` to `last`, in blocks of `block_pages`.
    ///
    /// Numbers that a mount skipped before it wrote its first page do not count as pages.
    pub fn pages_since(&self, checkpoint: u64, last: u64, block_pages: u32) -> u64 {
        let firsts = || (0..).zip(&self.since).filter_map(|(at, since)| Some(((*since)?, at)));
        let opened = firsts().map(|(first, _)| first).filter(|&first| first > 0);
        core::iter::once(checkpoint + 1)
            .chain(opened)
            .map(|first| {
                let next = firsts().filter(|&(next, _)| next > first).min();
                let (end, skipped) = match next {
                    Some((next, at)) if self.sessions >> at & 1 == 1 => (next, GAP),
                    Some((next, _)) => (next, 0),
                    None => (last + 1, 0),
                };
                end.saturating_sub(first + skipped).min(block_pages.into())
            })
            .sum()
    }
}

impl<F: Flash> Log<'_, F> {
    /// Reads the first readable page of each block that the checkpoint lists.
    pub fn look_into(&mut self, found: &Checkpoint) -> Result<Opened, Fault<F::Error>> {
        let mut opened =
            Opened { since: [None; LIST_MAX], sessions: 0, checkpoint: 0, outdated: false };
        let Opened { since, sessions, checkpoint, outdated } = &mut opened;
        for ((at, since), &block) in (0..).zip(since).zip(found.listed()) {
            // A block that was given up is not opened again, but the newest root may be in it.
            if self.blocks.is_bad(block) {
                covered!("a listed block is bad");
                *since = Some(0);
            }
            for place in 0..self.block_pages() {
                let page = self.page_at(block, place);
                match self.read_raw(page, 0)? {
                    Ok(header) => {
                        if header.sequence <= found.header.sequence {
                            break;
                        }
                        if header.identity != found.header.identity {
                            *outdated = true;
                        } else {
                            if header.lowest > 0 {
                                *since = Some(header.sequence);
                            } else {
                                // Pages of a checkpoint do not lead to a root. Their anchor may be
                                // torn, so that no page may get its number.
                                *since = Some(0);
                                let pages = u64::from(self.block_pages());
                                *checkpoint = (*checkpoint).max(header.sequence + pages);
                            }
                            if header.begins_session() {
                                *sessions |= 1 << at;
                            }
                            self.blocks.set_erase_count(block, header.erase_count);
                            self.blocks.set_opened_at(block, header.sequence);
                        }
                        break;
                    }
                    // A first page that is damaged, or was lost and reads as erased, must not hide
                    // those after it.
                    Err(PageFault::Erased) if place < LOST_MAX => {}
                    Err(PageFault::Damaged | PageFault::Unreadable | PageFault::Version(_)) => {}
                    Err(PageFault::Erased | PageFault::Appended) => break,
                }
            }
        }
        Ok(opened)
    }
}
