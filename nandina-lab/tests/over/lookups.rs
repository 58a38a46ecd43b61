//! A lookup above an FTL reads each node once, wherever its newest page is.

use std::cell::RefCell;

use nandina::flash::{BlockNumber, Capabilities, Flash, Geometry, PageNumber, Profile, Reading};
use nandina::store::{BTree, Wpcb};
use nandina::{Index, Options, System, ram_needed};
use nandina_lab::layer::{Layer, OnFtl, Pages, Room, TransitBuffer};
use nandina_sim::{Chip, ChipError, TINY};
use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

const CHIP: Profile =
    Profile { geometry: Geometry { pages_per_block: 8, blocks: 64, ..TINY.geometry }, ..TINY };

const RECORDS: u32 = 3_000;

/// A chip that notes which pages are read.
struct Watched {
    chip: Chip,
    read: RefCell<Vec<PageNumber>>,
}

impl Flash for Watched {
    type Error = ChipError;

    fn geometry(&self) -> Geometry {
        self.chip.geometry()
    }

    fn capabilities(&self) -> Capabilities {
        self.chip.capabilities()
    }

    fn read(
        &mut self,
        page: PageNumber,
        main: &mut [u8],
        spare: &mut [u8],
    ) -> Result<Reading, ChipError> {
        self.read.get_mut().push(page);
        self.chip.read(page, main, spare)
    }

    fn program(&mut self, page: PageNumber, main: &[u8], spare: &[u8]) -> Result<(), ChipError> {
        self.chip.program(page, main, spare)
    }

    fn erase(&mut self, block: BlockNumber) -> Result<(), ChipError> {
        self.chip.erase(block)
    }

    fn is_bad(&mut self, block: BlockNumber) -> Result<bool, ChipError> {
        self.chip.is_bad(block)
    }

    fn mark_bad(&mut self, block: BlockNumber) -> Result<(), ChipError> {
        self.chip.mark_bad(block)
    }
}

/// The blocks of the chip that are buffer blocks.
fn buffer_blocks(pages: &Pages<'_, Watched>) -> Vec<BlockNumber> {
    match pages {
        Pages::Mapped(ftl) => ftl.buffer_blocks().map(|it| it.block).collect(),
        Pages::Block(ftl) => ftl.buffer_blocks().map(|it| it.block).collect(),
        Pages::Bast(ftl) => ftl.buffer_blocks().map(|it| it.block).collect(),
        Pages::Fast(ftl) => ftl.buffer_blocks().map(|it| it.block).collect(),
        Pages::Logged(_) => Vec::new(),
    }
}

type Device<'d> = OnFtl<'d, Watched>;

/// The pages of the chip that were read since the last call.
fn read_pages<S: System>(index: &Index<'_, &mut Device<'_>, S>) -> Vec<PageNumber> {
    std::mem::take(&mut *index.flash().inspect().chip().read.borrow_mut())
}

/// Pages that lookups read in buffer blocks, and below them.
struct Seen {
    rng: ChaCha8Rng,
    buffered: usize,
    below: usize,
    /// Lookups that read pages of both.
    both: usize,
}

impl Seen {
    /// Looks up a record that is there, or one that is not.
    fn look<S: System>(&mut self, index: &mut Index<'_, &mut Device<'_>, S>, there: &[u32]) {
        let height = usize::from(index.statistics().height);
        let is_there = self.rng.random_range(0..4) > 0;
        let key = there[self.rng.random_range(0..there.len())];
        let key = if is_there { key } else { RECORDS + key };
        read_pages(index);
        let found = index.get(&key.to_be_bytes()).unwrap().map(<[u8]>::to_vec);
        assert_eq!(found, is_there.then(|| key.to_le_bytes().to_vec()), "{key}");
        let mut read = read_pages(index);
        assert_eq!(read.len(), height, "{}: {read:?}", S::DESCRIPTION.key);
        read.sort_unstable_by_key(|page| page.0);
        assert!(read.is_sorted_by(|one, next| one.0 < next.0), "a page was read twice: {read:?}");
        let buffered = buffer_blocks(index.flash().inspect());
        let is_buffered = |page: &&PageNumber| buffered.contains(&CHIP.geometry.block_of(**page));
        let in_buffer = read.iter().filter(is_buffered).count();
        self.buffered += in_buffer;
        self.below += height - in_buffer;
        self.both += usize::from(in_buffer > 0 && in_buffer < height);
    }
}

/// Looks records up while the tree grows, and after a mount.
fn look_up<S: System>(layer: &Layer, seen: &mut Seen) {
    let size = layer.size(&CHIP).unwrap();
    let mut chip = Watched { chip: Chip::new(CHIP), read: RefCell::default() };
    let mut room = Room::default();
    // Page buffers would keep the root and what was read last.
    let options = Options { keep_pages: Some(false), ..Options::new(4, 4) };
    let mut ram = vec![0; ram_needed::<S>(&size.profile.geometry, &options)];
    let mut keys: Vec<u32> = (0..RECORDS).collect();
    keys.shuffle(&mut seen.rng);
    {
        let mut disk = layer.open(&size, &mut chip, &mut room, true).unwrap();
        let mut index = Index::<_, S>::format(&mut disk, &options, &mut ram).unwrap();
        for (at, key) in (1..).zip(&keys) {
            index.insert(&key.to_be_bytes(), &key.to_le_bytes()).unwrap();
            seen.look(&mut index, &keys[..at]);
        }
        assert_eq!(index.statistics().height, 3);
    }
    let mut disk = layer.open(&size, &mut chip, &mut room, false).unwrap();
    let mut index = Index::<_, S>::open(&mut disk, &options, &mut ram).unwrap();
    for _ in 0..500 {
        seen.look(&mut index, &keys);
    }
}

/// Every FTL that has a page of its own for each logical page, without a buffer and behind some.
fn layers() -> Vec<Layer> {
    let mut all = Vec::new();
    for name in ["ftl:page", "ftl:compact", "ftl:block", "ftl:bast", "ftl:fast"] {
        let layer = Layer::named(name).unwrap();
        let layer =
            if layer.log_blocks().is_some() { layer.with_log_blocks(3).unwrap() } else { layer };
        all.push(layer);
        for (blocks, as_printed) in [(1, true), (2, false), (4, true)] {
            all.push(layer.with_transit(TransitBuffer { blocks, as_printed }).unwrap());
        }
    }
    all
}

#[test]
fn a_lookup_reads_as_many_pages_as_the_tree_is_high_over_every_ftl() {
    for layer in layers() {
        let rng = ChaCha8Rng::seed_from_u64(1);
        let mut seen = Seen { rng, buffered: 0, below: 0, both: 0 };
        look_up::<BTree>(&layer, &mut seen);
        look_up::<Wpcb>(&layer, &mut seen);
        let Seen { buffered, below, both, .. } = seen;
        println!("{layer:?}: {buffered} in buffer blocks, {below} below, {both} in both");
        match layer.buffer_blocks() {
            None => assert_eq!(buffered, 0, "{layer:?}"),
            Some(_) => assert!(
                buffered.min(below).min(both) > 500,
                "{layer:?}: {buffered}, {below}, {both}"
            ),
        }
    }
}
