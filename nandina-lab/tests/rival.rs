//! A store of another crate as a subject: the map of `sequential-storage` beside `vm-ow`.
//!
//! It runs on the same simulated chip, does the same work, and its results are checked alike. The
//! figures are printed with `--nocapture`.

use std::ops::{Bound, RangeBounds};

use embassy_futures::block_on;
use embedded_storage::nor_flash::{NorFlash, ReadNorFlash};
use embedded_storage_async::nor_flash as asynchronous;
use nandina::Options;
use nandina::flash::profile::{MLC, NOR};
use nandina_lab::LabError;
use nandina_lab::run::{Setup, SystemCost, SystemRun, run, run_on};
use nandina_lab::subject::{Maker, Subject, SubjectError};
use nandina_lab::work::{Operation, Phase, Work};
use nandina_sim::{Chip, NorChip, NorChipError};
use sequential_storage::Error;
use sequential_storage::cache::Cache;
use sequential_storage::cache::key_pointers::ArrayKeyPointers;
use sequential_storage::cache::page_pointers::ArrayPagePointers;
use sequential_storage::cache::page_states::ArrayPageStates;
use sequential_storage::map::{MapConfig, MapStorage};

/// The most sectors of a chip, because the caches are arrays.
const SECTORS: usize = 8;

/// Keys whose places are cached: as many as give the map about as much RAM as `vm-ow` takes.
const CACHED_KEYS: usize = 220;

type Key = [u8; 4];
type Caches = Cache<
    ArrayPageStates<SECTORS>,
    ArrayPagePointers<SECTORS>,
    ArrayKeyPointers<Key, CACHED_KEYS>,
    Key,
>;

/// The chip as the asynchronous trait: every operation is ready at once.
struct Ready<'c>(NorChip<&'c mut Chip>);

impl asynchronous::ErrorType for Ready<'_> {
    type Error = NorChipError;
}

impl asynchronous::ReadNorFlash for Ready<'_> {
    const READ_SIZE: usize = <NorChip as ReadNorFlash>::READ_SIZE;

    async fn read(&mut self, offset: u32, bytes: &mut [u8]) -> Result<(), NorChipError> {
        self.0.read(offset, bytes)
    }

    fn capacity(&self) -> usize {
        self.0.capacity()
    }
}

impl asynchronous::NorFlash for Ready<'_> {
    const WRITE_SIZE: usize = <NorChip as NorFlash>::WRITE_SIZE;
    const ERASE_SIZE: usize = <NorChip as NorFlash>::ERASE_SIZE;

    async fn erase(&mut self, from: u32, to: u32) -> Result<(), NorChipError> {
        self.0.erase(from, to)
    }

    async fn write(&mut self, offset: u32, bytes: &[u8]) -> Result<(), NorChipError> {
        self.0.write(offset, bytes)
    }
}

impl asynchronous::MultiwriteNorFlash for Ready<'_> {}

/// Makes maps of `sequential-storage`.
struct SequentialStorage;

impl Maker for SequentialStorage {
    fn key(&self) -> &'static str {
        "sequential-storage"
    }

    /// Room for one record that is read, and for the best one so far of a scan.
    fn ram_bytes(&self, setup: &Setup) -> Result<usize, String> {
        let Options { key_bytes, value_bytes, .. } = setup.options;
        if key_bytes != size_of::<Key>() {
            return Err(format!("keys have {key_bytes} bytes, not {}", size_of::<Key>()));
        }
        if setup.profile.geometry.blocks as usize > SECTORS {
            return Err(format!("the chip has more than {SECTORS} sectors"));
        }
        let ram_bytes = 2 * (key_bytes + value_bytes);
        match setup.ram_bytes {
            Some(bound) if ram_bytes + size_of::<Map<'_>>() > bound => {
                Err(format!("{bound} bytes of RAM are too few"))
            }
            _ => Ok(ram_bytes),
        }
    }

    fn format<'c>(
        &self,
        setup: &Setup,
        chip: &'c mut Chip,
        ram: &'c mut [u8],
    ) -> Result<Box<dyn Subject + 'c>, SubjectError> {
        let chip = NorChip::new(chip).map(Ready);
        let chip = chip.ok_or_else(|| SubjectError::Unsuited("the chip is not SPI NOR".into()))?;
        let config = MapConfig::try_new(0..setup.profile.geometry.bytes() as u32)
            .map_err(|error| SubjectError::Unsuited(format!("{error:?}")))?;
        let caches =
            Caches::new(ArrayPageStates::new(), ArrayPagePointers::new(), ArrayKeyPointers::new());
        let (item, best) = ram.split_at_mut(ram.len() / 2);
        Ok(Box::new(Map { storage: MapStorage::new(chip, config, caches), item, best }))
    }
}

/// A map on a simulated chip.
struct Map<'c> {
    storage: MapStorage<Key, Ready<'c>, Caches>,
    /// The record that is read or written.
    item: &'c mut [u8],
    /// The value of the next record of a scan.
    best: &'c mut [u8],
}

fn as_key(bytes: &[u8]) -> Key {
    bytes.try_into().expect("the maker refuses keys of other sizes")
}

fn failed(error: Error<NorChipError>) -> SubjectError {
    match error {
        Error::FullStorage => SubjectError::Full(error.to_string()),
        error => SubjectError::Failed(error.to_string()),
    }
}

impl Map<'_> {
    /// Finds the record with the lowest key in `keys`, and returns its key and its value.
    ///
    /// The map has no order, so this reads all items. The last item of a key is the valid one.
    fn lowest(
        &mut self,
        keys: impl RangeBounds<Key>,
    ) -> Result<Option<(Key, &[u8])>, SubjectError> {
        let mut lowest = None;
        block_on(async {
            let mut items = self.storage.fetch_all_items(self.item).await?;
            while let Some((key, value)) = items.next::<&[u8]>(self.item).await? {
                if keys.contains(&key) && lowest.is_none_or(|(lowest, _)| key <= lowest) {
                    self.best[..value.len()].copy_from_slice(value);
                    lowest = Some((key, value.len()));
                }
            }
            Ok(())
        })
        .map_err(failed)?;
        Ok(lowest.map(|(key, value_bytes)| (key, &self.best[..value_bytes])))
    }
}

impl Subject for Map<'_> {
    fn insert(&mut self, key: &[u8], value: &[u8]) -> Result<Option<bool>, SubjectError> {
        let stored = block_on(self.storage.store_item(self.item, &as_key(key), &value));
        stored.map_err(failed)?;
        Ok(None)
    }

    fn remove(&mut self, key: &[u8]) -> Result<Option<bool>, SubjectError> {
        block_on(self.storage.remove_item(self.item, &as_key(key))).map_err(failed)?;
        Ok(None)
    }

    fn get(&mut self, key: &[u8]) -> Result<Option<&[u8]>, SubjectError> {
        block_on(self.storage.fetch_item(self.item, &as_key(key))).map_err(failed)
    }

    fn scan(
        &mut self,
        from: &[u8],
        records: usize,
        each: &mut dyn FnMut(&[u8], &[u8]),
    ) -> Result<(), SubjectError> {
        let mut low = Bound::Included(as_key(from));
        for _ in 0..records {
            let Some((key, value)) = self.lowest((low, Bound::Unbounded))? else { break };
            each(&key, value);
            low = Bound::Excluded(key);
        }
        Ok(())
    }

    fn chip(&mut self) -> &Chip {
        self.storage.flash().0.chip()
    }
}

/// Records that are inserted, found, changed again and again, and removed.
fn work(records: u32, rounds: u32) -> Work {
    let mut work = Work::random_rows(records, size_of::<Key>(), 8, 11).unwrap();
    let order = |seed| Work::shuffled(records, seed).into_iter();
    let scan = |row| Operation::Scan { row, records: 10 };
    // An inserted row has its own value again, so each round changes every record.
    let change = |round| if round % 2 == 0 { Operation::Update } else { Operation::Insert };
    let changes = (0..rounds).flat_map(|round| order(round.into()).map(change(round)));
    let removed = records as usize / 4;
    work.phases = vec![
        Phase::new("insert", order(100).map(Operation::Insert).collect()),
        Phase::new("lookup", order(101).map(Operation::Lookup).collect()),
        Phase::new("scan", order(102).take(5).map(scan).collect()),
        Phase::new("change", changes.collect()),
        Phase::new("remove", order(103).take(removed).map(Operation::Delete).collect()),
        Phase::new("lookup of all", order(104).map(Operation::Lookup).collect()),
        Phase::new("scan of the rest", order(105).take(5).map(scan).collect()),
    ];
    work
}

fn on_nor(sectors: u32) -> Setup {
    let profile = NOR.with_blocks(sectors);
    Setup { profile, options: Options::new(1, 0), ram_bytes: None, layer: None }
}

fn print(cost: &SystemCost) {
    println!("{}: {} bytes of RAM, {:?} s", cost.system, cost.ram_bytes, cost.seconds);
    for phase in &cost.phases {
        println!("  {}: {} operations, {:?}", phase.phase, phase.ops, phase.counters);
    }
}

#[test]
fn a_store_of_another_crate_does_the_same_work_on_the_same_chip() {
    let (work, setup) = (work(200, 10), on_nor(SECTORS as u32));
    let vm_ow = run("vm-ow", &setup, &work, &|_| {}).and_then(SystemRun::cost).unwrap();
    let rival = run_on(&SequentialStorage, &setup, &work, &|_| {}).and_then(SystemRun::cost);
    let rival = rival.unwrap();
    for cost in [&vm_ow, &rival] {
        print(cost);
        let system = cost.system;
        for (phase, expected) in cost.phases.iter().zip(&work.phases) {
            let (name, counters) = (&phase.phase, phase.counters);
            assert_eq!(phase.ops, expected.operations.len() as u64, "{system}, {name}");
            assert!(counters.reads > 0, "{system}, {name}: nothing was read");
            let changes = ["insert", "change", "remove"].contains(&&name[..]);
            assert_eq!(counters.programs > 0, changes, "{system}, {name}: {counters:?}");
            assert!(phase.ms_mean > 0.0, "{system}, {name}");
        }
        // More is written than the chip has room for, so sectors are erased and used again.
        let sum = |count: fn(&SystemCost, usize) -> u64| {
            (0..cost.phases.len()).map(|phase| count(cost, phase)).sum::<u64>()
        };
        let erases = sum(|cost, phase| cost.phases[phase].counters.erases);
        assert!(erases > 0 && cost.seconds.erase > 0.0, "{system}: {erases} erases");
        let programmed = sum(|cost, phase| cost.phases[phase].counters.bytes_programmed);
        assert!(programmed > setup.profile.geometry.bytes(), "{system}: {programmed} bytes");
        assert!(cost.reclaimed_blocks <= erases && cost.wear_max_by_mean >= 1.0, "{system}");
    }
    let ram = rival.ram_bytes as f64 / vm_ow.ram_bytes as f64;
    assert!((0.8..1.2).contains(&ram), "the map has {ram:.2} times the RAM of vm-ow");
    assert_eq!((vm_ow.records, rival.records), (Some(150), None));
    assert!(vm_ow.height.is_some() && rival.height.is_none() && rival.height_most.is_none());
}

#[test]
fn settings_of_an_index_do_not_matter_to_a_rival() {
    let mut work = work(50, 1);
    let cost = |setup: &Setup, work: &Work| {
        run_on(&SequentialStorage, setup, work, &|_| {}).and_then(SystemRun::cost).unwrap()
    };
    let plain = cost(&on_nor(4), &work);
    work.idle_steps = true;
    let options = Options { write_buffer: 2, ..Options::new(1, 0) };
    assert_eq!(cost(&Setup { options, ..on_nor(4) }, &work), plain);
}

fn refusal(setup: &Setup, work: &Work) -> String {
    match run_on(&SequentialStorage, setup, work, &|_| {}).unwrap() {
        SystemRun::Refused(refusal) => {
            assert_eq!(refusal.system, "sequential-storage");
            refusal.reason
        }
        SystemRun::Ran(cost) => panic!("it ran: {cost:?}"),
    }
}

#[test]
fn what_a_rival_cannot_do_is_refused_with_its_reason() {
    let short = work(10, 1);
    let long_keys = Work::random_rows(10, 8, 8, 1).unwrap();
    assert_eq!(refusal(&on_nor(4), &long_keys), "keys have 8 bytes, not 4");
    assert_eq!(refusal(&on_nor(9), &short), "the chip has more than 8 sectors");
    let little = Setup { ram_bytes: Some(100), ..on_nor(4) };
    assert_eq!(refusal(&little, &short), "100 bytes of RAM are too few");
    let nand = Setup { profile: MLC.with_blocks(8), ..on_nor(4) };
    assert_eq!(refusal(&nand, &short), "the chip is not SPI NOR");
    let full = refusal(&on_nor(2), &work(500, 0));
    assert!(full.starts_with("nor is full after "), "{full}");
    assert!(
        full.ends_with("(Storage is full): choose a larger --device or fewer records"),
        "{full}"
    );
}

/// A map with a flaw.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Flaw {
    None,
    /// A lookup finds nothing.
    Forgets,
    /// A lookup returns the key as the value.
    Confuses,
    /// Every key is said to be new.
    AllNew,
    /// No key is said to be there when it is removed.
    NoneRemoved,
    /// A scan leaves out its first record.
    Skips,
    /// A scan ends too early.
    EndsEarly,
    /// A scan returns more than was requested.
    Overruns,
    /// A lookup fails.
    Fails,
}

struct Flawed(Flaw);

impl Maker for Flawed {
    fn key(&self) -> &'static str {
        "flawed"
    }

    fn ram_bytes(&self, setup: &Setup) -> Result<usize, String> {
        SequentialStorage.ram_bytes(setup)
    }

    fn format<'c>(
        &self,
        setup: &Setup,
        chip: &'c mut Chip,
        ram: &'c mut [u8],
    ) -> Result<Box<dyn Subject + 'c>, SubjectError> {
        let map = SequentialStorage.format(setup, chip, ram)?;
        Ok(Box::new(FlawedMap { map, flaw: self.0, key: Key::default() }))
    }
}

struct FlawedMap<'c> {
    map: Box<dyn Subject + 'c>,
    flaw: Flaw,
    key: Key,
}

impl Subject for FlawedMap<'_> {
    fn insert(&mut self, key: &[u8], value: &[u8]) -> Result<Option<bool>, SubjectError> {
        let new = self.map.insert(key, value)?;
        Ok(if self.flaw == Flaw::AllNew { Some(true) } else { new })
    }

    fn remove(&mut self, key: &[u8]) -> Result<Option<bool>, SubjectError> {
        let removed = self.map.remove(key)?;
        Ok(if self.flaw == Flaw::NoneRemoved { Some(false) } else { removed })
    }

    fn get(&mut self, key: &[u8]) -> Result<Option<&[u8]>, SubjectError> {
        self.key = as_key(key);
        match self.flaw {
            Flaw::Forgets => Ok(None),
            Flaw::Confuses => Ok(Some(&self.key)),
            Flaw::Fails => Err(SubjectError::Failed("no reason".into())),
            _ => self.map.get(key),
        }
    }

    fn scan(
        &mut self,
        from: &[u8],
        records: usize,
        each: &mut dyn FnMut(&[u8], &[u8]),
    ) -> Result<(), SubjectError> {
        let mut first = true;
        let mut but_first = |key: &[u8], value: &[u8]| {
            if !std::mem::take(&mut first) {
                each(key, value);
            }
        };
        match self.flaw {
            Flaw::Skips => self.map.scan(from, records + 1, &mut but_first),
            Flaw::EndsEarly => self.map.scan(from, records - 1, each),
            Flaw::Overruns => self.map.scan(from, records + 1, each),
            _ => self.map.scan(from, records, each),
        }
    }

    fn chip(&mut self) -> &Chip {
        self.map.chip()
    }
}

#[test]
fn a_wrong_result_of_a_rival_gives_an_error_and_no_figure() {
    let work = work(40, 1);
    let run_with = |flaw| run_on(&Flawed(flaw), &on_nor(4), &work, &|_| {});
    assert!(matches!(run_with(Flaw::None), Ok(SystemRun::Ran(_))));
    let wrong = |flaw, what: &str, reason: &str| {
        let Err(LabError(error)) = run_with(flaw) else { panic!("{flaw:?} is not seen") };
        let begins = error.starts_with(&format!("flawed: {what} of row "));
        assert!(begins && error.ends_with(reason), "{flaw:?}: {error}");
    };
    wrong(Flaw::Forgets, "lookup", ": the result is wrong");
    wrong(Flaw::Confuses, "lookup", ": the result is wrong");
    wrong(Flaw::AllNew, "change", ": the result is wrong");
    wrong(Flaw::NoneRemoved, "delete", ": the result is wrong");
    for flaw in [Flaw::Skips, Flaw::EndsEarly, Flaw::Overruns] {
        wrong(flaw, "scan", ": the result is wrong");
    }
    wrong(Flaw::Fails, "lookup", ": no reason");
}
