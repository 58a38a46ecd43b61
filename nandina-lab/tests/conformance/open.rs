//! Refusals of `format` and `open`, and their evidence.

use nandina::flash::{BlockNumber, Flash, Geometry, PageNumber, Profile};
use nandina::store::{Description, Mu, Visitor, Wandering};
use nandina::{BadOption, Index, OpenError, Options, System, WearPolicy, ram_needed};
use nandina_lab::systems::{SYSTEMS, visit};
use nandina_sim::{Chip, ChipError, TINY};

use crate::harness::*;

struct Settings;

impl Check for Settings {
    fn run<S: System + 'static>(&self) -> Outcome {
        let case = Case::new(SMALL);
        let mut ram = case.ram::<S>();
        let mut large_ram = vec![0; 1 << 16];
        let mut chip = Chip::new(suited::<S>(case.profile));
        let open = |chip: &mut Chip, options: &Options, ram: &mut [u8]| {
            Index::<_, S>::open(chip, options, ram).map(|index| index.len())
        };
        expect(open(&mut chip, &case.options, &mut ram), Err(OpenError::Blank))?;
        let format = |chip: &mut Chip, options: &Options, ram: &mut [u8]| {
            Index::<_, S>::format(chip, options, ram).map(|index| index.len())
        };
        let (needed, given) = (ram.len(), ram.len() - 1);
        let too_small = Err(OpenError::RamTooSmall { needed, given });
        expect(format(&mut chip, &case.options, &mut ram[..given]), too_small)?;
        expect(format(&mut chip, &case.options, &mut ram), Ok(0))?;
        expect(open(&mut chip, &case.options, &mut ram), Ok(0))?;

        let mismatch =
            |setting, found, expected| Err(OpenError::Mismatch { setting, found, expected });
        let other = Options { key_bytes: 8, ..case.options };
        expect(open(&mut chip, &other, &mut large_ram), mismatch("key size", 4, 8))?;
        let other = Options { value_bytes: 13, ..case.options };
        expect(open(&mut chip, &other, &mut large_ram), mismatch("value size", 12, 13))?;

        let bad = Options { key_bytes: 65, ..case.options };
        let reason = BadOption::KeyBytes;
        expect(open(&mut chip, &bad, &mut large_ram), Err(OpenError::BadOption { reason }))?;
        let bad = Options { page_buffers: Some(1), ..case.options };
        if !matches!(open(&mut chip, &bad, &mut large_ram), Err(OpenError::BadOption { .. })) {
            return Err("one page buffer was accepted".into());
        }
        let large = Options { value_bytes: 600, ..case.options };
        let result = format(&mut chip, &large, &mut large_ram);
        if !matches!(result, Err(OpenError::RecordTooLarge { record_bytes: 604, .. })) {
            return Err(format!("records of 604 bytes in pages of 512 gave {result:?}"));
        }
        // None of these refusals has touched the medium.
        expect(open(&mut chip, &case.options, &mut ram), Ok(0))
    }
}

fn expect<T: PartialEq + std::fmt::Debug>(result: T, expected: T) -> Outcome {
    if result == expected { Ok(()) } else { Err(format!("{result:?}, not {expected:?}")) }
}

#[test]
fn settings_are_checked() {
    for_every_system(&Settings);
}

struct Formatting;

impl Check for Formatting {
    fn run<S: System + 'static>(&self) -> Outcome {
        let case = Case::new(SMALL);
        let mut ram = case.ram::<S>();
        let mut chip = Chip::new(suited::<S>(case.profile));
        for round in 0..30u32 {
            let mut index =
                Index::<_, S>::format(&mut chip, &case.options, &mut ram).map_err(text)?;
            compare(&mut index, &Model::new()).map_err(|what| format!("round {round}: {what}"))?;
            for number in 0..200 {
                index.insert(&key(number), &value(number, round)).map_err(text)?;
            }
            drop(index);
            let mut index =
                Index::<_, S>::open(&mut chip, &case.options, &mut ram).map_err(text)?;
            let model: Model = (0..200)
                .map(|number| (key(number).to_vec(), value(number, round).to_vec()))
                .collect();
            compare(&mut index, &model).map_err(|what| format!("round {round}: {what}"))?;
        }
        Ok(())
    }
}

#[test]
fn formatting_empties_a_medium_again_and_again() {
    for_every_system(&Formatting);
}

struct TooSmall;

impl Check for TooSmall {
    fn concerns(&self, system: &Description) -> bool {
        // In place nothing is collected.
        system.collects()
    }

    fn run<S: System + 'static>(&self) -> Outcome {
        let geometry = Geometry { blocks: 2, ..TINY.geometry };
        let case = Case::new(Profile { geometry, ..TINY });
        let mut ram = case.ram::<S>();
        let mut chip = Chip::new(suited::<S>(case.profile));
        match Index::<_, S>::format(&mut chip, &case.options, &mut ram) {
            Err(OpenError::ChipTooSmall { .. }) => Ok(()),
            Err(error) => Err(text(error)),
            Ok(_) => Err("a chip of two blocks was accepted".into()),
        }
    }
}

#[test]
fn a_chip_without_room_for_collection_is_refused() {
    for_every_system(&TooSmall);
}

#[test]
fn a_medium_of_another_system_is_refused() {
    let case = Case::new(SMALL);
    let mut ram = vec![0; 1 << 16];
    let mut chip = Chip::new(case.profile);
    Index::<_, Wandering>::format(&mut chip, &case.options, &mut ram).unwrap();
    let error = Index::<_, Mu>::open(&mut chip, &case.options, &mut ram).map(|_| ()).unwrap_err();
    let setting = "system number";
    assert_eq!(error, OpenError::<ChipError>::Mismatch { setting, found: 1, expected: 2 });
    assert_eq!(error.to_string(), "the medium was made with system wandering, not system mu");
}

#[test]
fn foreign_bytes_and_other_versions_are_named() {
    let case = Case::new(SMALL);
    let mut ram = vec![0; 1 << 16];
    let mut chip = Chip::new(case.profile);
    chip.erase(BlockNumber(3)).unwrap();
    chip.program(PageNumber(24), &[0x42; 512], &[]).unwrap();
    let open = |chip: &mut Chip, ram: &mut [u8]| {
        Index::<_, Mu>::open(chip, &case.options, ram).map(|_| ()).unwrap_err()
    };
    assert_eq!(open(&mut chip, &mut ram), OpenError::NotNandina);

    let mut chip = Chip::new(case.profile);
    Index::<_, Mu>::format(&mut chip, &case.options, &mut ram).unwrap();
    let written = (0..192).map(PageNumber).find(|&page| !chip.page_is_erased(page)).unwrap();
    chip.corrupt_page(written, |_, spare| spare[6] = 9);
    assert_eq!(open(&mut chip, &mut ram), OpenError::Version { found: 9 });
}

struct Ram;

impl Check for Ram {
    fn run<S: System + 'static>(&self) -> Outcome {
        // The struct, with the chip behind a reference, on a 64-bit host.
        let struct_bytes = size_of::<Index<'_, &mut Chip, S>>();
        // Debug builds remember which blocks are being written, and the running operation.
        let watched = if cfg!(debug_assertions) { 264 } else { 0 };
        // 16 bytes are those of the second open block, which an FTL needs, and 8 those of two modes
        // for comparison; this build has both features.
        if struct_bytes > 1_008 + 16 + 8 + watched {
            return Err(format!("the struct takes {struct_bytes} bytes"));
        }
        if S::DESCRIPTION.has_leaf_blocks() {
            // Its parts are other ones: tested in `nandina/tests/rosette_nor`.
            return Ok(());
        }
        // Three keys, page buffers and their content, one bit for each page, marks of each block
        // and perhaps its erase count, a table of mappings, and no more.
        let geometry = nandina::flash::profile::MLC.geometry;
        let table = if S::DESCRIPTION.has_mapping_table() { 1024 } else { 0 };
        for (wear, blocks) in
            [(WearPolicy::Counted, 128 * 4 + 128 * 4 / 8), (WearPolicy::Circular, 128 * 5 / 8)]
        {
            let wear = Some(wear);
            let options = Options { page_buffers: Some(3), wear, ..Options::new(4, 4) };
            let beside = S::DESCRIPTION.root_commits() && wear == Some(WearPolicy::Circular);
            let buffers = 3 * (4096 + 40 + 4) + if beside { 4096 + 40 } else { 0 };
            // Or a key and a number of two bytes for each leaf and three more, four bytes for each
            // block, and a key beside. Or the nodes in RAM, and half a byte for each page.
            let (options, beside) =
                match (S::DESCRIPTION.has_directory(), S::DESCRIPTION.has_arena()) {
                    (true, _) => (options.leaves(1_000), 4 + 1_003 * (4 + 2) + 128 * 4),
                    (_, true) => (options.arena_bytes(10_000), 10_000 + 16_384 / 2),
                    _ => (options, 3 * 4 + table),
                };
            let promised = beside + buffers + 16_384 / 8 + blocks;
            expect(ram_needed::<S>(&geometry, &options), promised)?;
        }
        Ok(())
    }
}

#[test]
fn ram_is_what_is_promised() {
    for_every_system(&Ram);
}

/// Opens and formats a chip that holds an index of system `A` as the system that is visited.
struct Over<A>(core::marker::PhantomData<A>);

impl<A: System + 'static> Visitor for Over<A> {
    type Output = Outcome;

    fn visit<B: System + 'static>(self) -> Outcome {
        let (before, after) = (A::DESCRIPTION, B::DESCRIPTION);
        let options = Options::new(4, 12);
        let profile = suited::<B>(suited::<A>(SMALL));
        let mut chip = Chip::new(profile);
        let mut ram = vec![0; 1 << 16];
        let mut index = Index::<_, A>::format(&mut chip, &options, &mut ram).map_err(text)?;
        for number in 0..100 {
            index.insert(&key(number), &value(number, 0)).map_err(text)?;
        }
        drop(index);
        let opened = Index::<_, B>::open(&mut chip, &options, &mut ram).map(|index| index.len());
        let expected = if before.code == after.code {
            Ok(100)
        } else {
            let (found, expected) = (before.code.into(), after.code.into());
            Err(OpenError::Mismatch { setting: "system number", found, expected })
        };
        expect(opened, expected)?;
        let mut index = Index::<_, B>::format(&mut chip, &options, &mut ram).map_err(text)?;
        index.insert(&key(1), &value(1, 1)).map_err(text)?;
        drop(index);
        let opened = Index::<_, A>::open(&mut chip, &options, &mut ram).map(|index| index.len());
        if before.code != after.code && opened.is_ok() {
            return Err(format!("an index of {} is there after one of {}", before.key, after.key));
        }
        let opened = Index::<_, B>::open(&mut chip, &options, &mut ram).map(|index| index.len());
        expect(opened, Ok(1))
    }
}

struct Replaced;

impl Check for Replaced {
    fn run<A: System + 'static>(&self) -> Outcome {
        for system in SYSTEMS {
            let over = visit(system.key, Over::<A>(core::marker::PhantomData));
            over.unwrap().map_err(|what| format!("then {}: {what}", system.key))?;
        }
        Ok(())
    }
}

#[test]
fn an_index_of_another_system_is_told_and_gone_once_the_chip_is_formatted() {
    for_every_system(&Replaced);
}
