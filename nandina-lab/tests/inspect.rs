//! The inspector and the check on healthy, torn, damaged, blank and foreign chips, for every
//! system.

use nandina::flash::{BlockNumber, Flash, PageNumber, Profile, profile::MLC, profile::SD};
use nandina::node::{HEADER_BYTES, PageLayout};
use nandina::store::{Rosette, Visitor};
use nandina::{Change, Index, Options, Statistics, System, ram_needed};
use nandina_lab::check::check;
use nandina_lab::inspect::{Inspection, State, inspect};
use nandina_lab::systems::{SYSTEMS, key_of, visit};
use nandina_lab::torture::suited;
use nandina_lab::wear::{Observed, wear};
use nandina_sim::{Chip, Cut, Faults, TINY};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// A small chip whose records fill its leaves soon.
const SMALL: Profile = Profile {
    geometry: nandina::flash::Geometry { blocks: 24, pages_per_block: 8, ..TINY.geometry },
    ..TINY
};
const OPTIONS: Options = Options::new(4, 12);
const RECORDS: u32 = 600;

/// Writes records into an index of a system, on a new chip or one that has it already.
struct Fill<'c> {
    chip: &'c mut Chip,
    records: std::ops::Range<u32>,
    format: bool,
}

impl Visitor for Fill<'_> {
    type Output = Option<Statistics>;

    fn visit<S: System + 'static>(self) -> Self::Output {
        let mut ram = vec![0; ram_needed::<S>(&self.chip.profile().geometry, &OPTIONS)];
        let mut index = if self.format {
            Index::<_, S>::format(self.chip, &OPTIONS, &mut ram)
        } else {
            Index::<_, S>::open(self.chip, &OPTIONS, &mut ram)
        }
        .ok()?;
        for number in self.records {
            let key = nandina::key::from_u32(number.wrapping_mul(7919) % 10_007);
            index.insert(&key, &[number as u8; 12]).ok()?;
        }
        Some(index.statistics())
    }
}

fn fill(system: &str, chip: &mut Chip, records: std::ops::Range<u32>) -> Option<Statistics> {
    visit(system, Fill { chip, records, format: true }).unwrap()
}

fn go_on(system: &str, chip: &mut Chip, records: std::ops::Range<u32>) -> Option<Statistics> {
    visit(system, Fill { chip, records, format: false }).unwrap()
}

/// Inspects, and checks what holds for every inspection.
///
/// The chip did no operation, and every page is counted.
fn look(chip: &Chip) -> Inspection {
    let before = (chip.counters(), chip.fault_counters(), chip.time());
    let found = inspect(chip).unwrap();
    let holds = check(chip).unwrap().holds;
    let after = (chip.counters(), chip.fault_counters(), chip.time());
    assert_eq!(after, before, "looking changed the chip");
    let pages = &found.pages;
    let sum = pages.valid
        + pages.stale
        + pages.journal
        + pages.unfinished
        + pages.other_index
        + pages.erased
        + pages.skipped
        + pages.damaged
        + pages.unreadable
        + pages.other_version;
    assert_eq!(sum, pages.total, "{pages:?}");
    // The check sees at least what the inspector sees.
    assert!(!holds || found.state == State::Whole, "{found:?}");
    found
}

fn violations(chip: &Chip) -> Vec<String> {
    check(chip).unwrap().violations
}

/// A chip of this profile that can do what the system needs.
fn chip_for(system: &str, profile: Profile) -> Chip {
    struct Suited(Profile);
    impl Visitor for Suited {
        type Output = Profile;
        fn visit<S: System + 'static>(self) -> Profile {
            suited::<S>(self.0)
        }
    }
    Chip::new(visit(system, Suited(profile)).unwrap())
}

#[test]
fn a_healthy_index_of_every_system_is_whole() {
    for system in SYSTEMS {
        let mut chip = chip_for(system.key, SMALL);
        let statistics = fill(system.key, &mut chip, 0..RECORDS).unwrap();
        for turn in 0..3 {
            let again = 0..RECORDS / 2 + turn * 7;
            let statistics = go_on(system.key, &mut chip, again).unwrap();
            assert_eq!(statistics.records, RECORDS, "{}", system.key);
        }
        let found = look(&chip);
        assert_eq!(found.state, State::Whole, "{}: {found:?}", system.key);
        let tree = found.tree.unwrap();
        assert_eq!(tree.records_reached, u64::from(RECORDS), "{}", system.key);
        assert_eq!(tree.height, statistics.height, "{}", system.key);
        assert_eq!(violations(&chip), [""; 0], "{}", system.key);
    }
}

#[test]
fn a_healthy_index_is_told_in_full() {
    for system in SYSTEMS.iter().filter(|system| system.root_commits()) {
        for profile in [SMALL, MLC.with_blocks(16)] {
            let mut chip = Chip::new(profile);
            let statistics = fill(system.key, &mut chip, 0..RECORDS).unwrap();
            let found = look(&chip);
            assert_eq!(found.state, State::Whole, "{found:?}");
            assert_eq!((found.refusal.as_deref(), &found.older_tree), (None, &None));
            let medium = found.medium.unwrap();
            assert_eq!(medium.system, Some(system.key));
            assert_eq!((medium.key_bytes, medium.value_bytes), (4, 12));
            // A format leaves a gap of 64 in the numbers; each program takes one.
            assert_eq!(medium.sequence, chip.counters().programs + 64);
            let tree = found.tree.unwrap();
            assert_eq!((tree.height, tree.records), (statistics.height, RECORDS));
            assert_eq!(tree.records_reached, u64::from(RECORDS));
            assert_eq!(tree.valid_pages, statistics.valid_pages);
            assert_eq!(found.pages.valid, statistics.valid_pages);
            assert_eq!((found.pages.damaged, found.pages.unfinished), (0, 0));
            assert_eq!(found.pages.skipped > 0, profile.key == "mlc");
            let inner: u32 = tree.levels.iter().filter(|l| l.level > 1).map(|l| l.nodes).sum();
            assert_eq!(inner, statistics.inner_nodes);
            for pair in tree.levels.windows(2) {
                assert_eq!(pair[0].records, u64::from(pair[1].nodes));
            }
            for level in &tree.levels {
                assert!(level.fill_least_percent > 0.0 && level.fill_mean_percent <= 100.0);
                assert!(level.fill_least_percent <= level.fill_mean_percent);
            }
            assert_eq!(found.wear.most, statistics.erases_most);
            let blocks: u32 = found.wear.histogram.iter().map(|bucket| bucket.blocks).sum();
            assert_eq!(blocks, profile.geometry.blocks);
            let checked = check(&chip).unwrap();
            assert_eq!((checked.holds, checked.violations.len()), (true, 0));
            assert_eq!(checked.records, Some(RECORDS));
        }
    }
}

#[test]
fn looking_changes_no_byte_even_of_a_chip_that_reads_disturb() {
    let folder = tempfile::tempdir().unwrap();
    let image = |chip: &Chip| {
        let path = folder.path().join("chip.img");
        chip.save(&path).unwrap();
        std::fs::read(path).unwrap()
    };
    let mut chip = Chip::new(SMALL);
    fill("mu", &mut chip, 0..RECORDS).unwrap();
    chip.set_faults(Faults { disturbing_reads: 1, within_ecc: true, ..Faults::default() });
    let before = image(&chip);
    assert_eq!(look(&chip).state, State::Whole);
    wear(&chip, None);
    assert!(image(&chip) == before);
}

#[test]
fn a_torn_index_is_whole_and_shows_what_was_not_finished() {
    for system in SYSTEMS.iter().filter(|system| system.root_commits()) {
        let mut whole = Chip::new(SMALL);
        fill(system.key, &mut whole, 0..RECORDS).unwrap();
        let mut opened = whole.clone();
        let before = opened.counters().operations();
        go_on(system.key, &mut opened, 0..0).unwrap();
        let mount = opened.counters().operations() - before;
        let mut unfinished = 0;
        for operation in 0..120.max(mount + 60) {
            for cut in Cut::ALL {
                let mut chip = whole.clone();
                chip.cut_at(operation, cut);
                if go_on(system.key, &mut chip, RECORDS..RECORDS + 20).is_some() {
                    continue;
                }
                let found = look(&chip);
                assert_eq!(found.state, State::Whole, "{cut:?} at {operation}: {found:?}");
                assert_eq!(violations(&chip), [""; 0]);
                assert_eq!(found.unexplained_pages, Some(0));
                unfinished += found.pages.unfinished + found.pages.damaged + found.pages.unreadable;
            }
        }
        assert!(unfinished > 0, "{}: no cut left anything behind", system.key);
    }
}

#[test]
fn a_damaged_index_is_told_as_far_as_it_can_be_decoded() {
    for system in SYSTEMS.iter().filter(|system| system.root_commits()) {
        let mut chip = Chip::new(SMALL);
        fill(system.key, &mut chip, 0..RECORDS).unwrap();
        let whole = look(&chip);
        // A page with reachable nodes that is not the root's.
        let root = whole.tree.as_ref().unwrap().root_page;
        let leaf = (0..SMALL.geometry.pages()).find(|&page| {
            let mut chip = chip.clone();
            chip.corrupt_page(PageNumber(page), |main, _| main[3] ^= 4);
            page != root && inspect(&chip).unwrap().pages.valid + 1 == whole.pages.valid
        });
        let leaf = leaf.expect("some leaf stands in a page of its own");
        chip.corrupt_page(PageNumber(leaf), |main, _| main[3] ^= 4);
        let found = look(&chip);
        assert_eq!(found.state, State::Damaged);
        assert_eq!(found.pages.damaged, 1);
        let tree = found.tree.unwrap();
        assert_eq!(tree.losses.len(), 1);
        assert_eq!((tree.losses[0].page, tree.losses[0].level), (leaf, 1));
        assert_eq!(tree.losses[0].reason, "its checksum does not match");
        assert!(tree.records_reached < RECORDS.into() && tree.records_reached > 500);
        let older = found.older_tree.unwrap();
        assert!(older.sequence < tree.sequence && older.records_reached > 500);
        let decodable: u32 = found.decodable.iter().map(|level| level.pages).sum();
        assert_eq!(decodable, found.pages.valid + found.pages.stale + found.pages.unfinished);
        let wrong = violations(&chip);
        assert!(
            wrong.iter().any(|what| what.starts_with(&format!("page {leaf}, level 1"))),
            "{wrong:?}"
        );

        // Damage every root but those of the first block: the inspector shows that old tree, or
        // none.
        let mut chip = Chip::new(SMALL);
        fill(system.key, &mut chip, 0..40).unwrap();
        for page in (8..SMALL.geometry.pages()).map(PageNumber) {
            if !chip.page_is_erased(page) {
                chip.corrupt_page(page, |main, spare| {
                    main.fill(0);
                    spare.fill(0);
                });
            }
        }
        let found = look(&chip);
        assert!(found.tree.is_some_and(|tree| tree.records < 40 && tree.records > 0));
        assert!(found.pages.damaged > 0 && !found.decodable.is_empty());
    }
}

#[test]
fn a_tree_without_any_root_still_shows_its_pages() {
    let layout = PageLayout::new(512, 64);
    for system in SYSTEMS.iter().filter(|system| system.root_commits()) {
        let mut chip = Chip::new(SMALL);
        fill(system.key, &mut chip, 0..RECORDS).unwrap();
        for page in (0..SMALL.geometry.pages()).map(PageNumber) {
            if !chip.page_is_erased(page) {
                chip.corrupt_page(page, |main, spare| {
                    let mut frame = [&*main, &spare[..HEADER_BYTES]].concat();
                    let mut header = layout.header(&frame);
                    header.height = 0;
                    layout.reseal(&mut frame, &header);
                    spare[..HEADER_BYTES].copy_from_slice(&frame[512..]);
                });
            }
        }
        let found = look(&chip);
        assert_eq!((found.state, found.tree), (State::Damaged, None));
        assert!(found.refusal.unwrap().contains("no root is readable"));
        assert!(found.decodable.iter().any(|level| level.level == 1 && level.pages > 20));
    }
}

#[test]
fn blank_foreign_and_other_chips_are_told_apart() {
    let blank = Chip::new(SMALL);
    let found = look(&blank);
    assert_eq!((found.state, found.medium), (State::Blank, None));
    assert_eq!(violations(&blank), ["the chip is erased and holds no index: format it first"]);

    let mut foreign = blank.clone();
    foreign.corrupt_page(PageNumber(3), |main, _| main.copy_from_slice(&[0x42; 512]));
    assert_eq!(look(&foreign).state, State::Foreign);
    foreign.corrupt_page(PageNumber(8), |main, _| main.copy_from_slice(&[0x42; 512]));
    assert_eq!(look(&foreign).state, State::Foreign);
    assert!(violations(&foreign)[0].contains("not a Nandina index"));

    let mut newer = blank.clone();
    newer.corrupt_page(PageNumber(0), |_, spare| spare[4..7].copy_from_slice(b"Nd\x09"));
    assert_eq!(look(&newer).state, State::OtherVersion);
    assert!(violations(&newer)[0].contains("format version 9"));

    // An index that was made for a chip of another size does not open, but is shown.
    let mut larger = Chip::new(SMALL.with_blocks(30));
    fill("mu", &mut larger, 0..100).unwrap();
    let mut moved = blank.clone();
    for page in (0..SMALL.geometry.pages()).map(PageNumber) {
        let (mut main, mut spare) = ([0; 512], [0; 64]);
        if !larger.page_is_erased(page) {
            larger.read(page, &mut main, &mut spare).unwrap();
            moved.program(page, &main, &spare).unwrap();
        }
    }
    let found = look(&moved);
    assert_eq!(found.state, State::Damaged);
    assert!(found.refusal.unwrap().contains("block count 30, not 24"));
    assert_eq!(found.tree.unwrap().records_reached, 100);

    // The pages of the previous index are counted separately.
    let mut twice = Chip::new(SMALL);
    fill("mu", &mut twice, 0..50).unwrap();
    fill("wandering", &mut twice, 0..5).unwrap();
    let found = look(&twice);
    assert_eq!(found.medium.unwrap().system, Some("wandering"));
    assert!(found.state == State::Whole && found.pages.other_index > 40);
}

#[test]
fn damaged_and_resealed_chips_never_panic() {
    let layout = PageLayout::new(512, 64);
    for system in SYSTEMS {
        let mut image = chip_for(system.key, SMALL);
        fill(system.key, &mut image, 0..RECORDS).unwrap();
        let (mut whole, mut damaged) = (0, 0);
        for seed in 0..250 {
            let mut random = ChaCha8Rng::seed_from_u64(seed);
            let mut chip = image.clone();
            for _ in 0..random.random_range(1..30) {
                let page = PageNumber(random.random_range(0..SMALL.geometry.pages()));
                let resealed = random.random_bool(0.7);
                chip.corrupt_page(page, |main, spare| {
                    let mut frame = [&*main, &spare[..HEADER_BYTES]].concat();
                    for _ in 0..random.random_range(1..6) {
                        let at = random.random_range(0..frame.len());
                        frame[at] = random.random();
                    }
                    if resealed {
                        let (mut header, mut medium) =
                            (layout.header(&frame), layout.medium(&frame));
                        header.lowest = random.random_range(0..5);
                        header.height = random.random_range(0..14);
                        if random.random_bool(0.1) {
                            medium.key_bytes = random.random_range(0..70);
                        }
                        layout.seal(&mut frame, &medium, &header);
                    }
                    main.copy_from_slice(&frame[..512]);
                    spare[..HEADER_BYTES].copy_from_slice(&frame[512..]);
                });
            }
            match inspect(&chip).unwrap().state {
                State::Whole => whole += 1,
                _ => damaged += 1,
            }
            check(&chip).unwrap();
        }
        assert!(whole > 0 && damaged > 0, "{whole} whole and {damaged} damaged show nothing");
    }
}

#[test]
fn wear_is_forecast_from_what_was_observed() {
    let mut chip = Chip::new(SMALL);
    assert!(wear(&chip, Some(Observed::Changes(0))).forecast.is_none());
    for block in 0..24 {
        for _ in 0..10 + 30 * u32::from(block == 5) {
            chip.erase(BlockNumber(block)).unwrap();
        }
    }
    let found = wear(&chip, Some(Observed::Changes(1000)));
    assert_eq!((found.erase_counts.len(), found.erase_counts[5]), (24, 40));
    assert_eq!((found.spread.least, found.spread.most, found.spread.mean), (10, 40, 11.25));
    let forecast = found.forecast.unwrap();
    // 5,000 erases are promised: 40 came with 1,000 changes, so the other 4,960 come with 124,000.
    assert_eq!((forecast.unit, forecast.until_most_worn), ("changes", 124_000.0));
    assert_eq!(forecast.erases_per_unit, 0.27);
    assert!((forecast.until_mean - (5000.0 - 11.25) / 11.25 * 1000.0).abs() < 1e-6);
    let days = wear(&chip, Some(Observed::Days(2.0))).forecast.unwrap();
    assert_eq!((days.unit, days.until_most_worn), ("days", 248.0));
    assert!(wear(&chip, None).no_forecast.unwrap().contains("--days-observed"));
    let mut card = Chip::new(SD.with_blocks(4));
    card.erase(BlockNumber(0)).unwrap();
    let found = wear(&card, Some(Observed::Days(1.0)));
    assert_eq!((found.endurance, found.forecast), (None, None));
    assert_eq!((key_of(2), key_of(200)), (Some("mu"), None));
}

/// Makes an index with settings that its pages do not state, or state in the nodes alone.
struct Unusual {
    chip: Chip,
    options: Options,
    records: u32,
}

impl Visitor for Unusual {
    type Output = Chip;

    fn visit<S: System + 'static>(mut self) -> Self::Output {
        let mut ram = vec![0; ram_needed::<S>(&self.chip.profile().geometry, &self.options)];
        let mut index = Index::<_, S>::format(&mut self.chip, &self.options, &mut ram).unwrap();
        for number in (0..self.records).chain(0..self.records / 2) {
            let key = nandina::key::from_u32(number.wrapping_mul(7919) % 10_007);
            index.insert(&key, &[number as u8; 12]).unwrap();
        }
        drop(index);
        self.chip
    }
}

#[test]
fn an_index_with_unusual_settings_is_inspected_without_them() {
    let geometry = nandina::flash::Geometry { blocks: 320, pages_per_block: 16, ..TINY.geometry };
    let profile = Profile { geometry, ..TINY };
    let unusual = [
        ("tnc", 2500, Options { fanout: Some(9), ..OPTIONS }),
        ("tnc", 2500, Options { fanout: Some(12), ..OPTIONS }),
        ("tnc", 2500, Options { arena_bytes: Some(120_000), journal_pages: Some(150), ..OPTIONS }),
        ("vm", 8000, Options { mapping_bytes: 8192, ..OPTIONS }),
        ("rosette", 2500, Options { leaves: Some(400), ..OPTIONS }),
    ];
    for (system, records, options) in unusual {
        let making = Unusual { chip: Chip::new(profile), options, records };
        let chip = visit(system, making).unwrap();
        let report = inspect(&chip).unwrap();
        assert_eq!(report.refusal, None, "{system} {options:?}");
        let check = check(&chip).unwrap();
        assert_eq!(check.violations, [] as [String; 0], "{system} {options:?}");
        assert_eq!(check.records, Some(records), "{system} {options:?}");
    }
}

#[test]
fn a_batch_that_is_half_made_is_seen_as_a_mount_will_make_it() {
    let mut ram = vec![0; ram_needed::<Rosette>(&SMALL.geometry, &OPTIONS)];
    let mut batches = 0;
    for change in 0..8 {
        let mut chip = Chip::new(SMALL);
        fill("rosette", &mut chip, 0..300).unwrap();
        let mut index = Index::<_, Rosette>::open(&mut chip, &OPTIONS, &mut ram).unwrap();
        index.insert(&[0; 4], &[7; 12]).unwrap();
        let records = index.len();
        let keys = [0x100, 0x900, 0x1100, 0x1900].map(nandina::key::from_u32);
        let batch = keys.each_ref().map(|key| Change::Put { key, value: &[9; 12] });
        // A mount without a cut before it writes its first page, and then the batch.
        chip.cut_at_change(change, Cut::After);
        let mut index = Index::<_, Rosette>::open(&mut chip, &OPTIONS, &mut ram);
        let written = index.as_mut().map(|index| index.write_batch(&batch));
        let was_cut = !matches!(written, Ok(Ok(())));
        drop(index);
        chip.restore_power();
        let found = look(&chip);
        assert!(found.decodable.iter().all(|level| level.level == 1), "{:?}", found.decodable);
        let check = check(&chip).unwrap();
        assert_eq!(check.violations, [] as [String; 0], "change {change}");
        let mut index = Index::<_, Rosette>::open(&mut chip, &OPTIONS, &mut ram).unwrap();
        let there = keys.each_ref().map(|key| index.get(key).unwrap() == Some(&[9; 12]));
        assert!(there == [true; 4] || there == [false; 4], "change {change}: {there:?}");
        assert_eq!(check.records, Some(index.len()), "{records} before");
        batches += u32::from(was_cut && there[0]);
    }
    assert!(batches > 2, "{batches} batches were made again");
}
