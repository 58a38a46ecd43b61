//! Hostile media: bytes that describe a damaged image, and an index that is opened on it and used. Whatever
//! the bytes, nothing panics, loops for ever or reads past a page. The fuzz target and the tests share this.

use std::sync::OnceLock;

use nandina::flash::{Geometry, PageNumber, Profile};
use nandina::node::{Medium, PageLayout};
use nandina::place::{Placement, SYSTEMS, Visitor, visit};
use nandina::{Index, Options, ram_needed};
use nandina_sim::{Chip, TINY};

use crate::torture::oracle::{key, value};

const VALUE_BYTES: usize = 28;
const RECORDS: u32 = 90;

/// Chip operations after which a use of a medium is taken to loop for ever.
const OPERATIONS_MAX: u64 = 200_000;

fn profile() -> Profile {
    let geometry = Geometry { blocks: 12, ..TINY.geometry };
    Profile { geometry, ..TINY }
}

/// What use of a damaged medium came to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// The medium was refused.
    Refused,
    /// It was opened and used.
    Used,
}

/// Opens and uses, with the system and on the medium that `data` describes. Panics if the index does not
/// come to an end; any other panic is the index's own.
///
/// The first byte chooses the system. The second chooses the medium: an erased chip, or one with a healthy
/// index. Then come changes to pages: the page, the kind of change, and what that needs.
pub fn mount_then_use(data: &[u8]) -> Outcome {
    let mut bytes = Bytes(data);
    let system = SYSTEMS[usize::from(bytes.next()) % SYSTEMS.len()];
    visit(system.key, Use { bytes }).unwrap_or(Outcome::Refused)
}

/// Bytes that are taken one after another; behind the last come zeros.
struct Bytes<'d>(&'d [u8]);

impl Bytes<'_> {
    fn next(&mut self) -> u8 {
        let Some((&first, rest)) = self.0.split_first() else {
            return 0;
        };
        self.0 = rest;
        first
    }

    fn next_u16(&mut self) -> u16 {
        u16::from_le_bytes([self.next(), self.next()])
    }

    fn next_u32(&mut self) -> u32 {
        u32::from(self.next_u16()) | u32::from(self.next_u16()) << 16
    }

    const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

struct Use<'d> {
    bytes: Bytes<'d>,
}

/// A chip with a healthy index of several levels, splits and garbage behind it.
fn healthy<S: Placement>() -> Chip {
    let options = Options::new(4, VALUE_BYTES);
    let mut chip = Chip::new(profile());
    let mut ram = vec![0; ram_needed::<S>(&profile().geometry, &options)];
    if let Ok(mut index) = Index::<_, S>::format(&mut chip, &options, &mut ram) {
        for turn in 0..RECORDS * 2 {
            let number = turn * 37 % RECORDS;
            let _ = index.insert(&key(number), &value(number, turn, VALUE_BYTES));
        }
    }
    chip
}

impl Visitor for Use<'_> {
    type Output = Outcome;

    fn visit<S: Placement + 'static>(mut self) -> Outcome {
        // Healthy images are made once for each system.
        static HEALTHY: OnceLock<Vec<OnceLock<Chip>>> = OnceLock::new();
        let images = HEALTHY.get_or_init(|| SYSTEMS.iter().map(|_| OnceLock::new()).collect());
        let place = SYSTEMS.iter().position(|system| system.key == S::DESCRIPTION.key);
        let mut chip = match (self.bytes.next() % 4, place.and_then(|place| images.get(place))) {
            (1.., Some(image)) => image.get_or_init(healthy::<S>).clone(),
            _ => Chip::new(profile()),
        };
        self.damage::<S>(&mut chip);
        let options = Options::new(4, VALUE_BYTES);
        let mut ram = vec![0; ram_needed::<S>(&profile().geometry, &options)];
        let start = chip.counters().operations();
        let outcome = match Index::<_, S>::open(&mut chip, &options, &mut ram) {
            Err(_) => Outcome::Refused,
            Ok(mut index) => {
                self.exercise(&mut index);
                Outcome::Used
            }
        };
        let took = chip.counters().operations() - start;
        assert!(took < OPERATIONS_MAX, "{took} chip operations");
        outcome
    }
}

impl Use<'_> {
    /// Changes pages as the bytes say, some so that their checksums are right again.
    fn damage<S: Placement>(&mut self, chip: &mut Chip) {
        let geometry = profile().geometry;
        let layout = PageLayout::new(geometry.page_bytes as usize, geometry.spare_bytes as usize);
        let frame_bytes = layout.frame_bytes();
        for _ in 0..1 + self.bytes.next() % 24 {
            if self.bytes.is_empty() {
                break;
            }
            let page = PageNumber(u32::from(self.bytes.next()) % geometry.pages());
            let kind = self.bytes.next();
            chip.corrupt_page(page, |main, spare| {
                let used = frame_bytes - main.len();
                let mut frame = [&*main, &spare[..used]].concat();
                let mut header = layout.header(&frame);
                match kind % 8 {
                    0 => {
                        let at = usize::from(self.bytes.next_u16()) % frame_bytes;
                        frame[at] = self.bytes.next();
                    }
                    1 => {
                        let at = usize::from(self.bytes.next_u16()) % frame_bytes;
                        let end = (at + 8).min(frame_bytes);
                        frame[at..end].fill_with(|| self.bytes.next());
                    }
                    2 => header.lowest = self.bytes.next() % 6,
                    3 => header.height = self.bytes.next() % 14,
                    4 => header.records = self.bytes.next_u32(),
                    5 => {
                        let high = u64::from(self.bytes.next_u16());
                        header.sequence = high << 32 | u64::from(self.bytes.next_u32());
                    }
                    6 => header.identity = self.bytes.next().into(),
                    _ => frame.fill(self.bytes.next()),
                }
                // Half of the time the checksum vouches for the damage.
                if kind & 0x80 == 0 {
                    header.medium = Medium {
                        system: S::DESCRIPTION.code,
                        key_bytes: 4,
                        value_bytes: VALUE_BYTES as u16,
                        blocks: geometry.blocks,
                        pages_per_block: geometry.pages_per_block as u16,
                        checkpoints: false,
                    };
                    layout.seal(&mut frame, &header);
                }
                main.copy_from_slice(&frame[..main.len()]);
                spare[..used].copy_from_slice(&frame[main.len()..]);
            });
        }
    }

    /// Does what a user does, in the order that the bytes say.
    fn exercise<S: Placement>(&mut self, index: &mut Index<'_, &mut Chip, S>) {
        for _ in 0..12 {
            let number = u32::from(self.bytes.next());
            match self.bytes.next() % 6 {
                0 => drop(index.get(&key(number)).map(|value| value.map(<[u8]>::len))),
                1 => drop(index.insert(&key(number), &value(number, 9, VALUE_BYTES))),
                2 => drop(index.remove(&key(number))),
                3 => drop(index.gc_step(200)),
                4 => drop(index.check(|_| {})),
                _ => {
                    if let Ok(mut range) = index.range(&key(number)..) {
                        for _ in 0..20 {
                            if !matches!(range.next(), Ok(Some(_))) {
                                break;
                            }
                        }
                    }
                }
            }
        }
        let _ = index.check(|_| {});
        if let Ok(mut range) = index.range(..) {
            while let Ok(Some(_)) = range.next() {}
        }
        if let Ok(mut range) = index.range_down(..) {
            while let Ok(Some(_)) = range.next() {}
        }
    }
}
