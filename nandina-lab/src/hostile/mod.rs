//! Hostile media: bytes that describe a damaged image, and an index opened on it.
//!
//! Whatever the bytes are, the index must not panic, loop for ever or read past a page. The fuzz
//! target and the tests share this.

mod ftl;
mod journal;
mod sectors;

pub use ftl::mount_ftl_then_use;

use std::sync::OnceLock;

use rand::Rng;

use crate::systems::{SYSTEMS, visit};
use nandina::flash::profile::Ecc;
use nandina::flash::{Geometry, PageNumber, Profile};
use nandina::node::{Medium, PageLayout};
use nandina::store::Visitor;
use nandina::{Index, Options, System, ram_needed};
use nandina_sim::{Chip, TINY};

use crate::torture::device::{fitted, suited};
use crate::torture::oracle::{key, value};

const VALUE_BYTES: usize = 28;
const RECORDS: u32 = 90;

/// Children of a node where nodes are packed.
const FANOUT: u16 = 4;
/// The same where only values stay in the journal.
const FANOUT_BESIDE_VALUES: u16 = 8;

/// Chip operations after which the use of a medium counts as an endless loop.
///
/// A use makes at most 240 changes. Each of them may find damage, after which the index is mounted
/// again. That mount looks at the 64 pages of this chip, in two rounds, as often as at pages of
/// which it does not know whether they are torn: 24 times, and a few times more to find them.
const OPERATIONS_MAX: u64 = 240 * 64 * 2 * (24 + 2);

/// The content of the medium before it is damaged.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Image {
    Plain,
    /// With checkpoints, and changes since the last one.
    Checkpoints,
    /// With a checkpoint at its end: a mount walks no tree.
    JustWritten,
}

impl Image {
    fn of(choice: u8) -> Self {
        match choice >> 5 & 3 {
            2 => Self::Checkpoints,
            3 => Self::JustWritten,
            _ => Self::Plain,
        }
    }
}

/// A medium before it is damaged: its content and its form.
#[derive(Clone, Copy)]
struct Ground {
    image: Image,
    /// Nodes are small, and packed into pages.
    packs: bool,
    /// Values stay in the journal.
    values_in_journal: bool,
    /// The chip programs parts of pages, so that a journal programs its changes one by one.
    has_slots: bool,
}

impl Ground {
    /// How many there are for a system.
    const COUNT: usize = 3 << 3;

    /// The medium that a byte chooses. Only systems that keep nodes in RAM have several forms.
    fn of<S: System>(choice: u8) -> Self {
        let has = |bit: u8| S::DESCRIPTION.has_arena() && choice & bit != 0;
        Self {
            image: Image::of(choice),
            packs: has(4),
            values_in_journal: has(8),
            has_slots: has(0x80),
        }
    }

    /// Its number among all of a system.
    fn number(self) -> usize {
        let forms = [self.packs, self.values_in_journal, self.has_slots];
        forms.into_iter().fold(self.image as usize, |number, form| number << 1 | usize::from(form))
    }

    /// A chip that can do what the system needs.
    fn profile<S: System>(self) -> Profile {
        let blocks = if self.image == Image::Plain { 12 } else { 16 };
        let geometry = Geometry { blocks, ..TINY.geometry };
        let mut profile = suited::<S>(Profile { geometry, ..TINY });
        if self.has_slots {
            let capabilities = &mut profile.capabilities;
            (capabilities.overwrite, capabilities.in_order) = (true, false);
            capabilities.programs_per_page = None;
            // With an ECC a part that is torn may make its page fail.
            profile.ecc = Ecc::NONE;
        }
        profile
    }

    /// The options, without those that the system does not have.
    fn options<S: System>(self) -> Options {
        let checkpoints = (self.image != Image::Plain).then_some(2);
        let mut options = Options { checkpoints, ..Options::new(4, VALUE_BYTES) };
        // The chip is too small for values beside nodes that fill a page.
        options.fanout = match (self.packs, self.values_in_journal) {
            (true, _) => Some(FANOUT),
            (false, true) => Some(FANOUT_BESIDE_VALUES),
            (false, false) => None,
        };
        options.journal_values = self.values_in_journal.then_some(true);
        fitted::<S>(options)
    }

    fn ram<S: System>(self) -> Vec<u8> {
        vec![0; ram_needed::<S>(&self.profile::<S>().geometry, &self.options::<S>())]
    }
}

/// The outcome of using a damaged medium.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// The medium was refused.
    Refused,
    /// It was opened and used.
    Used,
}

/// Opens and uses the medium that `data` describes.
///
/// Panics if the index does not finish; any other panic is a bug of the index.
///
/// The first byte chooses the system. The second chooses the medium: an erased chip, or one with a
/// healthy index, perhaps with checkpoints, whether there is a write buffer, and in `tnc` how nodes
/// and changes are written. Then come changes to pages: the page, the kind of change, and what that
/// needs.
pub fn mount_then_use(data: &[u8]) -> Outcome {
    let mut bytes = Bytes(data);
    let system = SYSTEMS[usize::from(bytes.next()) % SYSTEMS.len()];
    visit(system.key, Use { bytes }).unwrap_or(Outcome::Refused)
}

/// The same bytes with a few of them changed, inserted or removed.
pub fn mutated(data: &[u8], random: &mut impl Rng) -> Vec<u8> {
    let mut data = data.to_vec();
    for _ in 0..random.random_range(1..8) {
        let at = random.random_range(0..=data.len());
        match random.random_range(0..3) {
            0 => data.insert(at, random.random()),
            1 if at < data.len() => drop(data.remove(at)),
            _ if at < data.len() => data[at] = random.random(),
            _ => {}
        }
    }
    data
}

/// Bytes taken one after another; after the last come zeros.
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

/// A chip before it is damaged.
struct Healthy {
    chip: Chip,
    /// Pages of checkpoints, in use or not.
    of_checkpoints: Vec<PageNumber>,
}

/// Makes a chip with a healthy index of several levels, after splits, with garbage.
fn healthy<S: System>(ground: Ground) -> Healthy {
    let mut chip = Chip::new(ground.profile::<S>());
    let mut ram = ground.ram::<S>();
    if let Ok(mut index) = Index::<_, S>::format(&mut chip, &ground.options::<S>(), &mut ram) {
        for turn in 0..RECORDS * 2 {
            let number = turn * 37 % RECORDS;
            let _ = index.insert(&key(number), &value(number, turn, VALUE_BYTES));
        }
        if ground.image == Image::JustWritten {
            let _ = index.checkpoint();
        }
    }
    Healthy { of_checkpoints: checkpoint_pages(&chip), chip }
}

impl Visitor for Use<'_> {
    type Output = Outcome;

    fn visit<S: System + 'static>(mut self) -> Outcome {
        // Healthy images are made once for each system.
        static HEALTHY: OnceLock<Vec<[OnceLock<Healthy>; Ground::COUNT]>> = OnceLock::new();
        let images = HEALTHY.get_or_init(|| SYSTEMS.iter().map(|_| Default::default()).collect());
        let place = SYSTEMS.iter().position(|system| system.key == S::DESCRIPTION.key);
        let choice = self.bytes.next();
        let ground = Ground::of::<S>(choice);
        let (mut chip, of_checkpoints) =
            match (choice % 4, place.and_then(|place| images.get(place))) {
                (1.., Some(images)) => {
                    let healthy = images[ground.number()].get_or_init(|| healthy::<S>(ground));
                    (healthy.chip.clone(), &healthy.of_checkpoints[..])
                }
                _ => (Chip::new(ground.profile::<S>()), &[][..]),
            };
        self.damage::<S>(&mut chip, ground.image, of_checkpoints);
        let write_buffer = usize::from(choice >> 4 & 1);
        let options = fitted::<S>(Options { write_buffer, ..ground.options::<S>() });
        let mut ram = vec![0; ram_needed::<S>(&chip.profile().geometry, &options)];
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

/// Pages of checkpoints, in use or not.
fn checkpoint_pages(chip: &Chip) -> Vec<PageNumber> {
    let geometry = chip.profile().geometry;
    let layout = PageLayout::new(geometry.page_bytes as usize, geometry.spare_bytes as usize);
    let mut chip = chip.clone();
    let frame_bytes = layout.frame_bytes();
    let mut holds_one = |page| {
        let mut holds_one = false;
        chip.corrupt_page(page, |main, spare| {
            let frame = [&*main, &spare[..frame_bytes - main.len()]].concat();
            holds_one = layout.open(&frame).is_ok_and(|header| {
                header.lowest == 0 || header.is_of_checkpoint() || header.ends_session()
            });
        });
        holds_one
    };
    (0..geometry.pages()).map(PageNumber).filter(|&page| holds_one(page)).collect()
}

impl Use<'_> {
    /// Changes pages by the bytes, in part with checksums that are right again.
    fn damage<S: System>(&mut self, chip: &mut Chip, image: Image, of_checkpoints: &[PageNumber]) {
        let geometry = chip.profile().geometry;
        let layout = PageLayout::new(geometry.page_bytes as usize, geometry.spare_bytes as usize);
        let frame_bytes = layout.frame_bytes();
        for _ in 0..1 + self.bytes.next() % 24 {
            if self.bytes.is_empty() {
                break;
            }
            let page = u32::from(self.bytes.next());
            let kind = self.bytes.next();
            if S::DESCRIPTION.has_leaf_blocks() && kind & 0x40 != 0 {
                self.damage_sector(chip, page, kind);
                continue;
            }
            if S::DESCRIPTION.has_arena() && kind & 0x20 != 0 {
                self.damage_journal(chip, page, kind);
                continue;
            }
            let page = match of_checkpoints.get(page as usize % of_checkpoints.len().max(1)) {
                Some(&page) if kind & 0x40 != 0 => page,
                _ => PageNumber(page % geometry.pages()),
            };
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
                    // A word in a checkpoint about itself or the tree.
                    2 | 3 if header.lowest == 0 => {
                        let at = usize::from(self.bytes.next()) % 26 * 4;
                        let few = u32::from(self.bytes.next());
                        let word = if kind % 8 == 2 { few } else { self.bytes.next_u32() };
                        frame[at..at + 4].copy_from_slice(&word.to_le_bytes());
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
                // In half of the cases the checksum matches the damage.
                if kind & 0x80 == 0 {
                    let medium = Medium {
                        system: S::DESCRIPTION.code,
                        key_bytes: 4,
                        value_bytes: VALUE_BYTES as u16,
                        blocks: geometry.blocks,
                        pages_per_block: geometry.pages_per_block as u16,
                        checkpoints: image != Image::Plain && S::DESCRIPTION.checkpoints,
                        appended: S::DESCRIPTION.appends(),
                        atomic: S::DESCRIPTION.needs.atomic_rewrite,
                        replaced: image != Image::Plain && S::DESCRIPTION.replaces(),
                    };
                    layout.seal(&mut frame, &medium, &header);
                }
                main.copy_from_slice(&frame[..main.len()]);
                spare[..used].copy_from_slice(&frame[main.len()..]);
            });
        }
    }

    /// Uses the index as a user does, in the order that the bytes give.
    fn exercise<S: System>(&mut self, index: &mut Index<'_, &mut Chip, S>) {
        for _ in 0..12 {
            let number = u32::from(self.bytes.next());
            let what = self.bytes.next();
            match what % 6 {
                0 => drop(index.get(&key(number)).map(|value| value.map(<[u8]>::len))),
                1 => drop(index.insert(&key(number), &value(number, 9, VALUE_BYTES))),
                // With a write buffer, many changes of one leaf.
                2 if what & 0x80 != 0 => {
                    for number in number..number + 20 {
                        drop(index.insert(&key(number), &value(number, 8, VALUE_BYTES)));
                    }
                }
                2 => drop(index.remove(&key(number))),
                3 if what & 0x40 != 0 => drop(index.checkpoint()),
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
        let _ = index.flush();
        let _ = index.check(|_| {});
        if let Ok(mut range) = index.range(..) {
            while let Ok(Some(_)) = range.next() {}
        }
        if let Ok(mut range) = index.range_down(..) {
            while let Ok(Some(_)) = range.next() {}
        }
    }
}
