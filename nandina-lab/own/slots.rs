//! `slots`: each record has a place in some page, and RAM has all keys in order.
//!
//! This is an example of an engine of one's own, and no tree: one file outside the library. It
//! needs a device that replaces each page as a whole, as an FTL or an SD card does. A page
//! has as many *slots* as records fit in it, each a byte that says whether it is used, a key and a
//! value. A change replaces one page, which a cut leaves old or new. The *order* in RAM has an entry
//! for each slot: those of records, by key, and behind them the free ones.

use core::convert::Infallible;
use core::ops::Bound;

use nandina::engine::{
    Bounds, Description, Engine, EngineFault, KEY_BYTES_MAX, Record, UpdateScheme, bounded,
    unusable, unusable_sizes,
};
use nandina::flash::{Capabilities, ErrorKind, Flash, FlashError, Geometry, Needs, PageNumber};
use nandina::log::layout_of;
use nandina::node::{Medium, PageFault, PageHeader};
use nandina::{
    Cost, Damage, Fault, Idle, Inserted, OpenError, Options, Plan, Removed, Statistics, System,
    Violation,
};

/// The system.
pub struct Slots;

/// Bytes of the number of a slot in an entry of the order.
const NUMBER: usize = 4;

/// Attempts to read a page.
const READS_MAX: u32 = 3;

/// Slots of a page.
const fn per_page(geometry: &Geometry, options: &Options) -> usize {
    layout_of(geometry).area_bytes() / (1 + options.key_bytes + options.value_bytes)
}

/// Slots of a device. Its first page says what it is.
fn slots_of(geometry: &Geometry, options: &Options) -> usize {
    bounded(geometry).pages().saturating_sub(1) as usize * per_page(geometry, options)
}

impl System for Slots {
    const DESCRIPTION: Description = Description {
        key: "slots",
        name: "slots",
        summary: "a record stays in a page that has room, and RAM has all keys in order",
        source: "an example of an engine of one's own",
        code: 251,
        needs: Needs { rewrite: true, atomic_rewrite: true, no_bad_blocks: true, ..Needs::NOTHING },
        updates: UpdateScheme::InPlace,
        ..Description::EMPTY
    };

    type Engine<'b, F: Flash> = SlotIndex<'b, F>;

    fn ram_needed(geometry: &Geometry, options: &Options) -> usize {
        let entry = NUMBER + options.key_bytes;
        slots_of(geometry, options)
            .saturating_mul(entry)
            .saturating_add(layout_of(geometry).frame_bytes())
    }

    fn plan(
        geometry: &Geometry,
        _: &Capabilities,
        options: &Options,
        records: u32,
    ) -> Result<Plan, OpenError<Infallible>> {
        if let Some(reason) = unusable(geometry) {
            return Err(OpenError::BadOption { reason });
        }
        let all =
            Cost { reads: u64::from(geometry.pages()) * u64::from(READS_MAX), ..Cost::default() };
        let mut plan = Plan::default();
        plan.ram_bytes = Self::ram_needed(geometry, options);
        (plan.height, plan.valid_pages, plan.limit_pages) = (2, geometry.pages(), geometry.pages());
        plan.fits = records as usize <= slots_of(geometry, options);
        plan.get.reads = READS_MAX.into();
        plan.open = all;
        // After an error the order is gathered again.
        plan.change = Cost { programs: 1, ..all.and(1, plan.get) };
        (plan.change_after_cuts, plan.gc_step_least) = (plan.change, 1);
        Ok(plan)
    }
}

/// An index of slots.
pub struct SlotIndex<'b, F> {
    flash: F,
    medium: Medium,
    identity: u32,
    sequence: u64,
    frame: &'b mut [u8],
    /// The page in the frame.
    loaded: Option<u32>,
    /// Entries of the order: a slot's number, and a key if it is used.
    order: &'b mut [u8],
    slots: usize,
    records: usize,
    /// Whether the order is what the pages hold: a change that failed may have been made or not.
    is_known: bool,
}

/// The positions in the order that a scan has yet to visit.
#[derive(Clone, Copy)]
pub struct Scan {
    from: usize,
    to: usize,
    downwards: bool,
}

impl<F: Flash> SlotIndex<'_, F> {
    fn key_bytes(&self) -> usize {
        self.medium.key_bytes.into()
    }

    fn slot_bytes(&self) -> usize {
        1 + self.key_bytes() + usize::from(self.medium.value_bytes)
    }

    /// The slot at a position of the order: its page, and where it begins there.
    fn place(&self, at: usize) -> (u32, usize) {
        let mut number = [0; NUMBER];
        number.copy_from_slice(&self.order[at * (NUMBER + self.key_bytes())..][..NUMBER]);
        let (slot, each) = (u32::from_le_bytes(number) as usize, self.slot_bytes());
        let per_page = layout_of(&self.flash.geometry()).area_bytes() / each;
        (1 + (slot / per_page) as u32, slot % per_page * each)
    }

    fn key(&self, at: usize) -> &[u8] {
        &self.order[at * (NUMBER + self.key_bytes()) + NUMBER..][..self.key_bytes()]
    }

    /// Moves the entry at `from` to `to`, and those in between by one. It is for `key` then.
    fn move_entry(&mut self, from: usize, to: usize, key: &[u8]) {
        let each = NUMBER + self.key_bytes();
        let (first, last) = (from.min(to) * each, (from.max(to) + 1) * each);
        let entries = &mut self.order[first..last];
        if from < to {
            entries.rotate_left(each)
        } else {
            entries.rotate_right(each)
        }
        self.order[to * each + NUMBER..][..key.len()].copy_from_slice(key);
    }

    /// The position of the first record that is not before what is sought.
    fn first_not(&self, is_before: impl Fn(&[u8]) -> bool) -> usize {
        let (mut from, mut to) = (0, self.records);
        while from < to {
            let middle = from.midpoint(to);
            if is_before(self.key(middle)) { from = middle + 1 } else { to = middle }
        }
        from
    }

    /// The position of a key, or of the first record behind it.
    fn search(&self, key: &[u8]) -> Result<usize, usize> {
        let at = self.first_not(|found| found < key);
        if at < self.records && self.key(at) == key { Ok(at) } else { Err(at) }
    }

    /// Reads a page into the frame.
    fn read(&mut self, page: u32) -> Result<Result<PageHeader, PageFault>, EngineFault<F>> {
        let layout = layout_of(&self.flash.geometry());
        self.loaded = None;
        for _ in 0..READS_MAX {
            let (main, spare) = self.frame.split_at_mut(layout.page_bytes());
            match self.flash.read(PageNumber(page), main, spare) {
                Ok(_) => return Ok(layout.open(self.frame)),
                Err(error) if error.kind() == ErrorKind::Uncorrectable => {}
                Err(error) => return Err(Fault::Device(error)),
            }
        }
        Ok(Err(PageFault::Unreadable))
    }

    /// Reads a page with slots into the frame, unless it is there.
    ///
    /// A page that is older than the last format is empty.
    fn load(&mut self, page: u32) -> Result<(), EngineFault<F>> {
        if self.loaded == Some(page) {
            return Ok(());
        }
        match self.read(page)? {
            Ok(header) if header.identity == self.identity => {}
            Ok(_) | Err(PageFault::Erased) => self.frame.fill(0xFF),
            Err(_) => {
                let reason = Damage::Checksum;
                return Err(Fault::Corrupt { page: PageNumber(page), reason });
            }
        }
        self.loaded = Some(page);
        Ok(())
    }

    /// Replaces a page by the frame.
    fn write(&mut self, page: u32) -> Result<(), EngineFault<F>> {
        (self.loaded, self.is_known) = (None, false);
        self.sequence += 1;
        let header = PageHeader {
            identity: self.identity,
            sequence: self.sequence,
            lowest: 1,
            height: u8::from(page == 0),
            erase_count: 0,
            records: self.records as u32,
            settling: false,
            tag: 0,
        };
        let layout = layout_of(&self.flash.geometry());
        layout.seal(self.frame, &self.medium, &header);
        let (main, spare) = self.frame.split_at(layout.page_bytes());
        self.flash.rewrite(PageNumber(page), main, spare).map_err(Fault::Device)?;
        (self.loaded, self.is_known) = (Some(page), true);
        Ok(())
    }

    /// Writes the slot at a position of the order: a record, or nothing.
    fn store(&mut self, at: usize, record: Option<Record<'_>>) -> Result<(), EngineFault<F>> {
        let ((page, start), bytes) = (self.place(at), self.slot_bytes());
        self.load(page)?;
        let slot = &mut self.frame[start..start + bytes];
        slot.fill(0xFF);
        if let Some((key, value)) = record {
            slot[0] = 1;
            slot[1..=key.len()].copy_from_slice(key);
            slot[1 + key.len()..].copy_from_slice(value);
        }
        self.write(page)
    }

    /// Finds all records, unless they are known.
    fn gather(&mut self) -> Result<(), EngineFault<F>> {
        if self.is_known {
            return Ok(());
        }
        (self.loaded, self.records) = (None, 0);
        let each = NUMBER + self.key_bytes();
        for (slot, entry) in (0u32..).zip(self.order.chunks_exact_mut(each)) {
            entry[..NUMBER].copy_from_slice(&slot.to_le_bytes());
        }
        let mut key = [0; KEY_BYTES_MAX];
        let key = &mut key[..self.medium.key_bytes.into()];
        for at in 0..self.slots {
            let (page, start) = self.place(at);
            self.load(page)?;
            if self.frame[start] == 1 {
                key.copy_from_slice(&self.frame[start + 1..][..key.len()]);
                let (Ok(to) | Err(to)) = self.search(key);
                self.move_entry(at, to, key);
                self.records += 1;
            }
        }
        self.is_known = true;
        Ok(())
    }
}

impl<'b, F: Flash> Engine<'b, F> for SlotIndex<'b, F> {
    type Scan<'k> = Scan;

    fn check_options(flash: &F, options: &Options, ram: &[u8]) -> Result<(), OpenError<F::Error>> {
        let geometry = flash.geometry();
        if let Some(reason) = unusable(&geometry) {
            return Err(OpenError::BadOption { reason });
        }
        if let Some(missing) = Slots::DESCRIPTION.needs.missing(&flash.capabilities()) {
            return Err(OpenError::Unsuited(missing));
        }
        if let Some(reason) = unusable_sizes(options) {
            return Err(OpenError::BadOption { reason });
        }
        if per_page(&geometry, options) < 2 {
            let leaf_bytes = layout_of(&geometry).area_bytes();
            let record_bytes = options.key_bytes + options.value_bytes;
            return Err(OpenError::RecordTooLarge { record_bytes, leaf_bytes });
        }
        let (needed, given) = (Slots::ram_needed(&geometry, options), ram.len());
        if given < needed { Err(OpenError::RamTooSmall { needed, given }) } else { Ok(()) }
    }

    fn new(flash: F, options: &Options, ram: &'b mut [u8]) -> Self {
        let geometry = flash.geometry();
        let (frame, rest) = ram.split_at_mut(layout_of(&geometry).frame_bytes());
        let slots = slots_of(&geometry, options);
        let order = &mut rest[..slots * (NUMBER + options.key_bytes)];
        let medium = Medium {
            system: Slots::DESCRIPTION.code,
            key_bytes: options.key_bytes as u16,
            value_bytes: options.value_bytes as u16,
            blocks: geometry.blocks,
            pages_per_block: geometry.pages_per_block as u16,
            checkpoints: false,
            appended: false,
            replaced: true,
            atomic: true,
        };
        let (identity, sequence, loaded) = (0, 0, None);
        let (records, is_known) = (0, false);
        Self { flash, medium, identity, sequence, frame, loaded, order, slots, records, is_known }
    }

    fn format(&mut self) -> Result<(), OpenError<F::Error>> {
        // Older pages no longer count once the first page has an identity that none of them has.
        for page in 0..self.flash.geometry().pages() {
            if let Ok(header) = self.read(page)? {
                self.identity = self.identity.max(header.identity.wrapping_add(1));
                self.sequence = self.sequence.max(header.sequence);
            }
        }
        self.frame.fill(0);
        self.write(0)?;
        self.is_known = false;
        Ok(self.gather()?)
    }

    fn open(&mut self) -> Result<(), OpenError<F::Error>> {
        match self.read(0)? {
            Ok(header) => (self.identity, self.sequence) = (header.identity, header.sequence),
            Err(PageFault::Erased) => return Err(OpenError::Blank),
            Err(PageFault::Version(found)) => return Err(OpenError::Version { found }),
            Err(_) => {
                // Where another page is one of an index, this one was, too.
                for page in 1..self.flash.geometry().pages() {
                    if self.read(page)?.is_ok() {
                        let reason = Damage::Checksum;
                        return Err(OpenError::Corrupt { page: PageNumber(0), reason });
                    }
                }
                return Err(OpenError::NotNandina);
            }
        }
        let (found, expected) = (layout_of(&self.flash.geometry()).medium(self.frame), self.medium);
        let settings = [
            ("system number", u32::from(found.system), u32::from(expected.system)),
            ("key_bytes", found.key_bytes.into(), expected.key_bytes.into()),
            ("value_bytes", found.value_bytes.into(), expected.value_bytes.into()),
            ("blocks", found.blocks, expected.blocks),
            ("pages per block", found.pages_per_block.into(), expected.pages_per_block.into()),
        ];
        for (setting, found, expected) in settings {
            if found != expected {
                return Err(OpenError::Mismatch { setting, found, expected });
            }
        }
        Ok(self.gather()?)
    }

    fn close(self) -> F {
        self.flash
    }

    fn flash(&self) -> &F {
        &self.flash
    }

    fn record_sizes(&self) -> (usize, usize) {
        (self.medium.key_bytes.into(), self.medium.value_bytes.into())
    }

    fn records(&self) -> u32 {
        self.records as u32
    }

    fn statistics(&self) -> Statistics {
        let mut statistics = Statistics::default();
        let pages = self.flash.geometry().pages();
        // The order leads to pages.
        (statistics.height, statistics.records) = (2, self.records());
        (statistics.valid_pages, statistics.limit_pages) = (pages, pages);
        statistics
    }

    fn refresh_due(&self) -> bool {
        false
    }

    fn get(&mut self, key: &[u8]) -> Result<Option<&[u8]>, EngineFault<F>> {
        self.gather()?;
        let Ok(at) = self.search(key) else { return Ok(None) };
        let (page, start) = self.place(at);
        self.load(page)?;
        Ok(Some(&self.frame[start + 1 + key.len()..start + self.slot_bytes()]))
    }

    fn insert(&mut self, key: &[u8], value: &[u8]) -> Result<Inserted, EngineFault<F>> {
        self.gather()?;
        let to = match self.search(key) {
            Ok(at) => return self.store(at, Some((key, value))).map(|()| Inserted::Replaced),
            Err(to) => to,
        };
        if self.records == self.slots {
            return Err(Fault::NoRoom { limit_pages: self.flash.geometry().pages() });
        }
        self.store(self.records, Some((key, value)))?;
        self.move_entry(self.records, to, key);
        self.records += 1;
        Ok(Inserted::New)
    }

    fn remove(&mut self, key: &[u8]) -> Result<Removed, EngineFault<F>> {
        self.gather()?;
        let Ok(at) = self.search(key) else { return Ok(Removed::Absent) };
        self.store(at, None)?;
        self.records -= 1;
        self.move_entry(at, self.records, &[]);
        Ok(Removed::Found)
    }

    fn scan<'k>(&mut self, bounds: Bounds<'k>, downwards: bool) -> Result<Scan, EngineFault<F>> {
        self.gather()?;
        let from = match bounds.0 {
            Bound::Included(key) => self.first_not(|found| found < key),
            Bound::Excluded(key) => self.first_not(|found| found <= key),
            Bound::Unbounded => 0,
        };
        let to = match bounds.1 {
            Bound::Included(key) => self.first_not(|found| found <= key),
            Bound::Excluded(key) => self.first_not(|found| found < key),
            Bound::Unbounded => self.records,
        };
        Ok(Scan { from, to, downwards })
    }

    fn next(&mut self, scan: &mut Scan) -> Result<Option<Record<'_>>, EngineFault<F>> {
        let Scan { from, to, downwards } = *scan;
        // It ends after an error.
        scan.from = to;
        if from >= to {
            return Ok(None);
        }
        let at = if downwards { to - 1 } else { from };
        let (page, start) = self.place(at);
        self.load(page)?;
        *scan = match downwards {
            true => Scan { from, to: at, downwards },
            false => Scan { from: at + 1, to, downwards },
        };
        let record = &self.frame[start + 1..start + self.slot_bytes()];
        Ok(Some(record.split_at(self.key_bytes())))
    }

    fn flush(&mut self) -> Result<(), EngineFault<F>> {
        Ok(())
    }

    fn tick(&mut self) -> Result<(), EngineFault<F>> {
        Ok(())
    }

    fn checkpoint(&mut self) -> Result<bool, EngineFault<F>> {
        Ok(false)
    }

    fn gc_step_least(&self) -> u32 {
        1
    }

    fn gc_step(&mut self, _: u32) -> Result<Idle, EngineFault<F>> {
        Ok(Idle { operations: 0, more: false, left_to_change: false })
    }

    fn check(&mut self, report: &mut dyn FnMut(Violation)) -> Result<(), EngineFault<F>> {
        self.gather()?;
        for at in 0..self.records {
            let (page, start) = self.place(at);
            self.load(page)?;
            let is_there =
                self.frame[start] == 1 && self.frame[start + 1..].starts_with(self.key(at));
            if !is_there || at > 0 && self.key(at - 1) >= self.key(at) {
                let what = "a slot does not hold the record of its key";
                report(Violation { page: PageNumber(page), what });
            }
        }
        Ok(())
    }
}
