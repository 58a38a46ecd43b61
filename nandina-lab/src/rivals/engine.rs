//! What an engine does in the same way for each rival: options, opening, scans and errors.
//!
//! After a change that failed half way RAM may disagree with the device: the next operation mounts,
//! and makes the changes again that waited before. Nothing here knows how records are stored.

use core::marker::PhantomData;
use core::ops::Bound;
use std::collections::{BTreeMap, VecDeque};

use nandina::engine::{
    Bounds, Description, Engine, EngineFault, KEY_BYTES_MAX, Record, bounded, unusable,
    unusable_sizes,
};
use nandina::flash::{Flash, Geometry, PageNumber};
use nandina::log::{check_medium, layout_of};
use nandina::node::Medium;
use nandina::{
    Damage, Fault, Idle, Inserted, OpenError, Options, Plan, Removed, Statistics, Violation,
};

use super::pages::{Head, NoIndex, Pages};
use super::tree::{Bytes, Change, Keys, Most};
use super::worst::{Device, Worst};

/// The records of a leaf, as all changes leave them, and the keys that belong to it.
pub struct Leaf {
    pub records: Vec<(Bytes, Bytes)>,
    pub keys: Keys,
}

/// What a system holds on the heap between two calls, at most.
///
/// The numbers are measured on full devices (`nandina-lab/tests/heap`). A call takes more: it
/// decodes the nodes and the pages that it works on.
#[derive(Clone, Copy)]
pub struct Heap {
    /// Bytes for each page of the device.
    pub page: usize,
    /// Pages' worth of records that are decoded.
    pub decoded: usize,
    /// The same for each page of the write buffer.
    pub waiting: usize,
}

/// Bytes that a decoded record takes beside its own.
const RECORD_BYTES: usize = 64;

/// A system of which each record is on the device.
pub trait Rival<F: Flash>: Sized {
    const DESCRIPTION: Description;
    const HEAP: Heap;

    /// An index of nothing.
    fn new(pages: Pages<F>, most: Most, options: &Options) -> Self;

    /// The most entries of nodes on pages with an area of so many bytes.
    fn most(area_bytes: usize, options: &Options) -> Most;

    /// Pages that a device must have for so many records that are only inserted.
    fn pages_needed(device: &Device<'_>, records: u32) -> u64;

    /// The most that one call costs with at most so many records at once.
    fn worst(device: &Device<'_>, records: u32) -> Worst;

    fn pages(&self) -> &Pages<F>;

    fn pages_mut(&mut self) -> &mut Pages<F>;

    fn into_flash(self) -> F;

    fn head(&self) -> &Head;

    /// Records, as far as they were counted.
    fn records(&self) -> u32;

    /// Changes that are in RAM alone.
    fn waiting(&self) -> u32;

    /// Whether a change of a key may be in RAM alone, if there are such changes.
    fn waits(&self, _key: &[u8]) -> bool {
        true
    }

    /// Writes an empty index, behind all that the pages hold.
    fn format(&mut self) -> Result<(), EngineFault<F>>;

    /// Finds what the device holds.
    ///
    /// After a read that failed, what waits in RAM is kept.
    fn mount(&mut self, keep: bool) -> Result<Option<NoIndex>, EngineFault<F>>;

    fn get(&mut self, key: &[u8]) -> Result<Option<Bytes>, EngineFault<F>>;

    /// Makes a record or takes it away. Returns whether the key had one, if it knows.
    fn change(&mut self, key: &[u8], value: Option<&[u8]>) -> Result<Option<bool>, EngineFault<F>>;

    /// The leaf to which a descent leads; `is_before` says which keys begin no leaf behind it.
    fn leaf(&mut self, is_before: &dyn Fn(&[u8]) -> bool) -> Result<Leaf, EngineFault<F>>;

    fn flush(&mut self) -> Result<(), EngineFault<F>>;

    /// Reports each invariant that does not hold.
    fn check(&mut self, report: &mut dyn FnMut(Violation)) -> Result<(), EngineFault<F>>;
}

/// What [`Rival`] asks of a system with the fields `pages` and `head`.
macro_rules! has_pages_and_head {
    () => {
        fn pages(&self) -> &Pages<F> {
            &self.pages
        }

        fn pages_mut(&mut self) -> &mut Pages<F> {
            &mut self.pages
        }

        fn into_flash(self) -> F {
            self.pages.flash
        }

        fn head(&self) -> &Head {
            &self.head
        }
    };
}
pub(super) use has_pages_and_head;

/// An index of a rival.
pub struct RivalIndex<'b, R, F> {
    rival: R,
    /// Whether RAM says what the device holds.
    is_known: bool,
    /// Whether the next mount leaves what waits in RAM as it is.
    keeps: bool,
    /// Changes that wait, in the order in which they came.
    log: Vec<Change>,
    ticks: u32,
    ticks_max: Option<u32>,
    answer: Bytes,
    /// Records that the running scan has read.
    ahead: VecDeque<(Bytes, Bytes)>,
    record: (Bytes, Bytes),
    of: PhantomData<(&'b mut [u8], F)>,
}

/// Where a scan continues.
#[derive(Clone, Copy)]
pub struct Scan<'k> {
    bounds: Bounds<'k>,
    downwards: bool,
    /// The end of the leaf that it has read, where that is not the end of all.
    key: [u8; KEY_BYTES_MAX],
    has_key: bool,
    is_over: bool,
}

/// Bytes that an index of `R` takes between two calls. They are on the heap.
pub fn ram_needed<F: Flash, R: Rival<F>>(geometry: &Geometry, options: &Options) -> usize {
    let (layout, pages) = (layout_of(geometry), bounded(geometry).pages() as usize);
    let Heap { page, decoded, waiting } = R::HEAP;
    let record = options.key_bytes + options.value_bytes;
    let records = layout.page_bytes() / record.max(1) * (decoded + waiting * options.write_buffer);
    layout.frame_bytes() + page * pages + records * (RECORD_BYTES + record)
}

/// The sizes that the bounds of `R` follow from, if it can be on such a device.
fn device<'o, F: Flash, R: Rival<F>, E>(
    geometry: &Geometry,
    options: &'o Options,
) -> Result<Device<'o>, OpenError<E>> {
    if let Some(reason) = unusable(geometry) {
        return Err(OpenError::BadOption { reason });
    }
    if let Some(reason) = unusable_sizes(options) {
        return Err(OpenError::BadOption { reason });
    }
    let area_bytes = layout_of(geometry).area_bytes();
    let most = R::most(area_bytes, options);
    if most.leaf < 3 || most.inner < 4 {
        let record_bytes = options.key_bytes + options.value_bytes;
        return Err(OpenError::RecordTooLarge { record_bytes, leaf_bytes: area_bytes });
    }
    Ok(Device { pages: geometry.pages().into(), area_bytes, most, options })
}

/// Bounds of what an index of so many records costs.
///
/// The records fit if they are only inserted: nodes are not merged, so removals can thin a tree out
/// until the device refuses further records. The costs hold all the same, on a device without
/// faults.
pub fn plan<F: Flash, R: Rival<F>, E>(
    geometry: &Geometry,
    options: &Options,
    records: u32,
) -> Result<Plan, OpenError<E>> {
    let device = device::<F, R, E>(geometry, options)?;
    let worst = R::worst(&device, records);
    let mut plan = Plan::default();
    plan.ram_bytes = ram_needed::<F, R>(geometry, options);
    plan.height = worst.height as u8;
    plan.valid_pages = u32::try_from(R::pages_needed(&device, records)).unwrap_or(u32::MAX);
    plan.limit_pages = geometry.pages();
    plan.fits = plan.valid_pages <= plan.limit_pages;
    (plan.open, plan.get, plan.close) = (worst.open, worst.get, worst.change);
    // What a cut left is gone with the mount.
    (plan.change, plan.change_after_cuts) = (worst.change, worst.change);
    plan.gc_step_least = 1;
    Ok(plan)
}

impl<F: Flash, R: Rival<F>> RivalIndex<'_, R, F> {
    /// Mounts, unless what is in RAM is known to agree with the device.
    fn settle(&mut self) -> Result<(), EngineFault<F>> {
        if !self.is_known {
            let keep = std::mem::take(&mut self.keeps);
            if self.rival.mount(keep)?.is_some() {
                let reason = Damage::NoRoot;
                return Err(Fault::Corrupt { page: PageNumber(0), reason });
            }
            // Some of them may be durable already: they are made twice then.
            let again = if keep { &[] } else { &self.log[..] };
            for (key, value) in again {
                self.rival.change(key, value.as_deref())?;
            }
            self.is_known = true;
            self.forget_durable();
        }
        Ok(())
    }

    /// Forgets the changes that wait no longer.
    fn forget_durable(&mut self) {
        let waiting = self.rival.waiting() as usize;
        if waiting == 0 {
            self.log.clear();
            self.ticks = 0;
        } else if self.log.len() > 2 * waiting {
            let log = std::mem::take(&mut self.log).into_iter();
            let newest: BTreeMap<_, _> = log.filter(|(key, _)| self.rival.waits(key)).collect();
            self.log = newest.into_iter().collect();
        }
    }

    /// Makes a record or takes it away.
    fn change(&mut self, key: &[u8], value: Option<&[u8]>) -> Result<Option<bool>, EngineFault<F>> {
        let was_there = self.write(|rival| rival.change(key, value))?;
        if self.rival.waiting() > 0 {
            self.log.push((Bytes::from_slice(key), value.map(Bytes::from_slice)));
        }
        Ok(was_there)
    }

    /// Does what may write. If it fails, the next operation mounts.
    fn write<T>(
        &mut self,
        work: impl FnOnce(&mut R) -> Result<T, EngineFault<F>>,
    ) -> Result<T, EngineFault<F>> {
        self.settle()?;
        let result = work(&mut self.rival);
        // What is refused was not begun.
        self.is_known = matches!(result, Ok(_) | Err(Fault::NoRoom { .. }));
        if self.is_known {
            self.forget_durable();
        }
        result
    }

    /// Does what only looks. If it fails, what waits in RAM is kept.
    fn look<T>(
        &mut self,
        work: impl FnOnce(&mut R) -> Result<T, EngineFault<F>>,
    ) -> Result<T, EngineFault<F>> {
        self.settle()?;
        let result = work(&mut self.rival);
        (self.is_known, self.keeps) = (result.is_ok(), result.is_err());
        result
    }
}

/// Returns an error unless a mount found an index.
fn demand_index<E>(found: Option<NoIndex>, expected: &Medium) -> Result<(), OpenError<E>> {
    let found = match found {
        None => return Ok(()),
        Some(NoIndex::Blank) => return Err(OpenError::Blank),
        Some(NoIndex::Foreign) => return Err(OpenError::NotNandina),
        Some(NoIndex::Version(found)) => return Err(OpenError::Version { found }),
        Some(NoIndex::Other(found)) => found,
    };
    check_medium(&found, expected).and(Err(OpenError::NotNandina))
}

impl<'b, F: Flash, R: Rival<F>> Engine<'b, F> for RivalIndex<'b, R, F> {
    type Scan<'k> = Scan<'k>;

    fn check_options(flash: &F, options: &Options, ram: &[u8]) -> Result<(), OpenError<F::Error>> {
        let geometry = flash.geometry();
        device::<F, R, _>(&geometry, options)?;
        if let Some(missing) = R::DESCRIPTION.needs.missing(&flash.capabilities()) {
            return Err(OpenError::Unsuited(missing));
        }
        let (needed, given) = (ram_needed::<F, R>(&geometry, options), ram.len());
        if given < needed { Err(OpenError::RamTooSmall { needed, given }) } else { Ok(()) }
    }

    fn new(flash: F, options: &Options, _: &'b mut [u8]) -> Self {
        let geometry = flash.geometry();
        let medium = Medium {
            system: R::DESCRIPTION.code,
            key_bytes: options.key_bytes as u16,
            value_bytes: options.value_bytes as u16,
            blocks: geometry.blocks,
            pages_per_block: geometry.pages_per_block as u16,
            checkpoints: false,
            appended: false,
            replaced: false,
            atomic: true,
        };
        let most = R::most(layout_of(&geometry).area_bytes(), options);
        Self {
            rival: R::new(Pages::new(flash, medium), most, options),
            is_known: false,
            keeps: false,
            log: Vec::new(),
            ticks: 0,
            ticks_max: options.write_buffer_ticks,
            answer: Bytes::new(),
            ahead: VecDeque::new(),
            record: (Bytes::new(), Bytes::new()),
            of: PhantomData,
        }
    }

    fn format(&mut self) -> Result<(), OpenError<F::Error>> {
        self.rival.pages_mut().forget()?;
        self.rival.format()?;
        self.log.clear();
        self.is_known = true;
        Ok(())
    }

    fn open(&mut self) -> Result<(), OpenError<F::Error>> {
        let found = self.rival.mount(false)?;
        demand_index(found, self.rival.pages().medium())?;
        self.is_known = true;
        Ok(())
    }

    fn close(mut self) -> F {
        // What cannot be written waits no longer, as after a cut.
        let _ = self.flush();
        self.rival.into_flash()
    }

    fn flash(&self) -> &F {
        &self.rival.pages().flash
    }

    fn record_sizes(&self) -> (usize, usize) {
        let medium = self.rival.pages().medium();
        (medium.key_bytes.into(), medium.value_bytes.into())
    }

    fn records(&self) -> u32 {
        self.rival.records()
    }

    fn statistics(&self) -> Statistics {
        let mut statistics = Statistics::default();
        let pages = self.rival.pages();
        (statistics.height, statistics.records) = (self.rival.head().height, self.records());
        (statistics.valid_pages, statistics.limit_pages) = (pages.held(), pages.count());
        statistics.free_pages = pages.count() - pages.held();
        statistics.waiting_changes = self.rival.waiting();
        statistics
    }

    fn refresh_due(&self) -> bool {
        false
    }

    fn get(&mut self, key: &[u8]) -> Result<Option<&[u8]>, EngineFault<F>> {
        let found = self.look(|rival| rival.get(key))?;
        Ok(found.map(|value| {
            self.answer = value;
            &self.answer[..]
        }))
    }

    fn insert(&mut self, key: &[u8], value: &[u8]) -> Result<Inserted, EngineFault<F>> {
        let was_there = self.change(key, Some(value))?;
        Ok(match was_there {
            _ if self.rival.waiting() > 0 => Inserted::Buffered,
            Some(true) => Inserted::Replaced,
            Some(false) => Inserted::New,
            None => Inserted::Buffered,
        })
    }

    fn remove(&mut self, key: &[u8]) -> Result<Removed, EngineFault<F>> {
        let was_there = self.change(key, None)?;
        Ok(match was_there {
            _ if self.rival.waiting() > 0 => Removed::Buffered,
            Some(true) => Removed::Found,
            Some(false) => Removed::Absent,
            None => Removed::Buffered,
        })
    }

    fn scan<'k>(
        &mut self,
        bounds: Bounds<'k>,
        downwards: bool,
    ) -> Result<Scan<'k>, EngineFault<F>> {
        self.settle()?;
        self.ahead.clear();
        let key = [0; KEY_BYTES_MAX];
        Ok(Scan { bounds, downwards, key, has_key: false, is_over: false })
    }

    fn next(&mut self, scan: &mut Scan<'_>) -> Result<Option<Record<'_>>, EngineFault<F>> {
        while self.ahead.is_empty() && !scan.is_over {
            // It ends after an error.
            scan.is_over = true;
            let Scan { bounds, downwards, key, has_key, .. } = *scan;
            let end = &key[..usize::from(self.rival.pages().medium().key_bytes)];
            let (low, high) = match (has_key, downwards) {
                (false, _) => bounds,
                (true, false) => (Bound::Included(end), bounds.1),
                (true, true) => (bounds.0, Bound::Excluded(end)),
            };
            let is_before = |key: &[u8]| match (downwards, low, high) {
                (false, Bound::Included(from) | Bound::Excluded(from), _) => key <= from,
                (false, Bound::Unbounded, _) => false,
                (true, _, Bound::Included(to)) => key <= to,
                (true, _, Bound::Excluded(to)) => key < to,
                (true, _, Bound::Unbounded) => true,
            };
            let leaf = self.look(|rival| rival.leaf(&is_before))?;
            let is_within = |key: &[u8]| is_above(key, low) && is_below(key, high);
            self.ahead.extend(leaf.records.into_iter().filter(|(key, _)| is_within(key)));
            let end = if downwards { leaf.keys.low } else { leaf.keys.high };
            if let Some(end) = end {
                scan.key[..end.len()].copy_from_slice(&end);
                let is_more = if downwards { is_above(&end, low) } else { is_below(&end, high) };
                (scan.has_key, scan.is_over) = (true, !is_more);
            }
        }
        let next = if scan.downwards { self.ahead.pop_back() } else { self.ahead.pop_front() };
        Ok(next.map(|record| {
            self.record = record;
            (&self.record.0[..], &self.record.1[..])
        }))
    }

    fn flush(&mut self) -> Result<(), EngineFault<F>> {
        self.write(R::flush)
    }

    fn tick(&mut self) -> Result<(), EngineFault<F>> {
        self.settle()?;
        self.ticks += u32::from(self.rival.waiting() > 0);
        if self.ticks_max.is_some_and(|most| self.ticks >= most) { self.flush() } else { Ok(()) }
    }

    fn checkpoint(&mut self) -> Result<bool, EngineFault<F>> {
        self.flush().map(|()| false)
    }

    fn gc_step_least(&self) -> u32 {
        1
    }

    fn gc_step(&mut self, _: u32) -> Result<Idle, EngineFault<F>> {
        Ok(Idle { operations: 0, more: false, left_to_change: false })
    }

    fn check(&mut self, report: &mut dyn FnMut(Violation)) -> Result<(), EngineFault<F>> {
        self.look(|rival| rival.check(report))
    }
}

fn is_above(key: &[u8], low: Bound<&[u8]>) -> bool {
    match low {
        Bound::Included(low) => key >= low,
        Bound::Excluded(low) => key > low,
        Bound::Unbounded => true,
    }
}

fn is_below(key: &[u8], high: Bound<&[u8]>) -> bool {
    match high {
        Bound::Included(high) => key <= high,
        Bound::Excluded(high) => key < high,
        Bound::Unbounded => true,
    }
}
