//! The index of leaves in sectors: its parts, and how a leaf is searched.
//!
//! A leaf has sorted records, and behind them a log of changes that are newer. A key is looked for
//! in the log first, from its newest slot on: in the last group by its tags and keys, in the others
//! by their fingerprints. Then the sorted records are halved.

use super::cells::{Cells, Sector};
use super::directory::{Directory, Leaf};
use super::fingerprints;
use super::form::{Form, GROUP, GROUP_BYTES, Log};
use super::head::HEAD_MAX;
use super::options::{self, Sizes};
use super::order::Order;
use super::pool::Pool;
use super::state::State as Session;
use crate::engine::Options;
use crate::error::{Damage, Fault};
use crate::flash::Flash;
use crate::node::Medium;
use crate::node::slot::{self, State, TAG_BYTES};

/// Whether a fault is a lack of sectors.
pub const fn lacks_room<E>(fault: &Fault<E>) -> bool {
    matches!(fault, Fault::NoRoom { .. } | Fault::WornOut { .. })
}

/// Groups of fingerprints that are read at once.
const GROUPS_READ: usize = 4;

/// An index whose leaves are erase sectors.
pub struct SectorLeaves<'b, F: Flash> {
    pub(super) cells: Cells<'b, F>,
    pub(super) form: Form,
    pub(super) medium: Medium,
    pub(super) directory: Directory<'b>,
    pub(super) pool: Pool<'b>,
    pub(super) state: Session,
    pub(super) order: Order<'b>,
    /// A page that is to be programmed.
    pub(super) page: &'b mut [u8],
    /// A sorted record that was read.
    pub(super) record: &'b mut [u8],
    /// A slot that was read, or is to be programmed.
    pub(super) slot: &'b mut [u8],
    pub(super) sectors: usize,
    pub(super) leaves_max: usize,
}

impl<'b, F: Flash> SectorLeaves<'b, F> {
    /// An index that is neither formatted nor mounted, in the RAM that is handed over.
    pub(super) fn unmounted(flash: F, options: &Options, ram: &'b mut [u8]) -> Self {
        let geometry = flash.geometry();
        let form = Form::new(&geometry, options.key_bytes, options.value_bytes);
        let sizes = Sizes::of(&geometry, &flash.capabilities(), options);
        let sectors = geometry.blocks.min(options::SECTORS_MAX) as usize;
        let (page, rest) = ram.split_at_mut(sizes.page_bytes);
        let (read, rest) = rest.split_at_mut(sizes.page_bytes);
        let (record, rest) = rest.split_at_mut(form.record_bytes());
        let (slot, rest) = rest.split_at_mut(form.slot_bytes());
        let (order, rest) = rest.split_at_mut(sizes.order_bytes);
        let (states, rest) = rest.split_at_mut(sizes.pool_bytes);
        let entries = &mut rest[..sizes.directory_bytes];
        Self {
            cells: Cells::new(flash, form, options.verify, read),
            form,
            medium: options::medium(&geometry, options),
            directory: Directory::new(entries, options.key_bytes),
            pool: Pool::new(states, sectors),
            state: Session::UNKNOWN,
            order: Order::new(order),
            page,
            record,
            slot,
            sectors,
            leaves_max: sizes.leaves,
        }
    }

    /// Whether more sectors are bad than the chip may have.
    pub(super) fn is_worn_out(&self) -> bool {
        let flash = self.cells.flash();
        self.pool.bad() > flash.capabilities().bad_blocks_max(flash.geometry().blocks)
    }

    /// The error for a lack of sectors: worn out, or no room.
    pub(super) fn no_room(&self) -> Fault<F::Error> {
        if self.is_worn_out() {
            return Fault::WornOut { bad_blocks: self.pool.bad() };
        }
        Fault::NoRoom { limit_pages: self.leaves_max as u32 }
    }

    /// Mounts again after an operation that failed half way.
    pub(super) fn mount_if_in_doubt(&mut self) -> Result<(), Fault<F::Error>> {
        if self.state.is_in_doubt() { self.mount() } else { Ok(()) }
    }

    /// The log of a leaf.
    pub(super) const fn log_of(&self, leaf: &Leaf) -> Log {
        self.form.log(leaf.sorted as usize)
    }

    /// Reads the head of a leaf into the page buffer of the cells.
    ///
    /// Its checksum held.
    pub(super) fn look_at_head(&mut self, sector: Sector) -> Result<(), Fault<F::Error>> {
        if self.cells.look_at_tail(sector)? {
            return Ok(());
        }
        Err(self.cells.damage(sector, 0, Damage::Uncorrectable))
    }

    /// The same, and the head is in `head` then.
    pub(super) fn read_head(
        &mut self,
        sector: Sector,
        head: &mut [u8; HEAD_MAX],
    ) -> Result<(), Fault<F::Error>> {
        self.look_at_head(sector)?;
        let bytes = self.form.head_bytes();
        head[..bytes].copy_from_slice(&self.cells.tail()[..bytes]);
        Ok(())
    }

    /// Reads the tag of a slot.
    #[inline(never)]
    pub(super) fn read_tag(
        &mut self,
        sector: Sector,
        log: &Log,
        number: usize,
    ) -> Result<u16, Fault<F::Error>> {
        let mut tag = [0; TAG_BYTES];
        self.cells.read(sector, log.slot(number), &mut tag)?;
        Ok(slot::tag(&tag))
    }

    /// Reads a slot.
    pub(super) fn read_slot(
        &mut self,
        sector: Sector,
        log: &Log,
        number: usize,
    ) -> Result<State, Fault<F::Error>> {
        self.cells.read(sector, log.slot(number), self.slot)?;
        Ok(slot::state(self.slot))
    }

    /// Where the value of `key` is in a leaf; `None` if it has no record of it.
    pub(super) fn look(
        &mut self,
        leaf: &Leaf,
        key: &[u8],
    ) -> Result<Option<usize>, Fault<F::Error>> {
        self.look_in(leaf, &self.log_of(leaf), key)
    }

    /// The same if it is known where the log lies.
    pub(super) fn look_in(
        &mut self,
        leaf: &Leaf,
        log: &Log,
        key: &[u8],
    ) -> Result<Option<usize>, Fault<F::Error>> {
        let used = usize::from(leaf.used);
        let groups = used / GROUP;
        for number in (groups * GROUP..used).rev() {
            if let Some(found) = self.look_in_slot(leaf, log, number, key)? {
                return Ok(found);
            }
        }
        let wanted = fingerprints::fingerprint(key);
        let mut bytes = [0; GROUPS_READ * GROUP_BYTES];
        let mut end = groups;
        while end > 0 {
            let begin = end.saturating_sub(GROUPS_READ);
            let bytes = &mut bytes[..(end - begin) * GROUP_BYTES];
            self.cells.read(leaf.sector, log.group(begin), bytes)?;
            for (at, group) in bytes.chunks_exact(GROUP_BYTES).enumerate().rev() {
                let is_whole = fingerprints::group_is_whole(group);
                if is_whole && !fingerprints::group_has(group, wanted) {
                    continue;
                }
                for in_group in (0..GROUP).rev() {
                    // Torn fingerprints lead to no slot, so that all are looked at.
                    if is_whole && group[in_group] != wanted {
                        continue;
                    }
                    let number = (begin + at) * GROUP + in_group;
                    if let Some(found) = self.look_in_slot(leaf, log, number, key)? {
                        return Ok(found);
                    }
                }
            }
            end = begin;
        }
        let (at, is_there) = self.search_sorted(leaf, key)?;
        Ok(is_there.then(|| self.form.sorted(at) + key.len()))
    }

    /// What a slot says of `key`: `None` if it says nothing.
    fn look_in_slot(
        &mut self,
        leaf: &Leaf,
        log: &Log,
        number: usize,
        key: &[u8],
    ) -> Result<Option<Option<usize>>, Fault<F::Error>> {
        let at = log.slot(number);
        let bytes = TAG_BYTES + key.len();
        let begin = self.cells.view(leaf.sector, at, &mut self.slot[..bytes])?;
        if slot::is_killed(slot::tag(begin)) || begin[TAG_BYTES..] != *key {
            return Ok(None);
        }
        match self.read_slot(leaf.sector, log, number)? {
            State::Whole(kind) => Ok(Some(kind.puts.then_some(at + bytes))),
            // Slots of a leaf that could not be settled may be torn.
            _ if leaf.is_untouched => Ok(None),
            _ => Err(self.cells.damage(leaf.sector, at, Damage::Checksum)),
        }
    }

    /// The position of the first sorted record that is not before `key`.
    ///
    /// Also whether it has that key. The key may be shorter than one.
    pub(super) fn search_sorted(
        &mut self,
        leaf: &Leaf,
        key: &[u8],
    ) -> Result<(usize, bool), Fault<F::Error>> {
        let (mut low, mut high) = (0, usize::from(leaf.sorted));
        while low < high {
            let middle = low.midpoint(high);
            match self.cells.compare(leaf.sector, self.form.sorted(middle), key)? {
                core::cmp::Ordering::Less => low = middle + 1,
                core::cmp::Ordering::Equal => return Ok((middle, true)),
                core::cmp::Ordering::Greater => high = middle,
            }
        }
        Ok((low, false))
    }

    /// The value at a position of a leaf.
    pub(super) fn value(&mut self, leaf: &Leaf, at: usize) -> Result<&[u8], Fault<F::Error>> {
        self.cells.view(leaf.sector, at, &mut self.record[..self.form.value_bytes])
    }
}
