//! A mount's decision about torn pages is final.
//!
//! A page that it left out does not come back; a mount that was given up half way does not count;
//! and where room is short the torn page is settled first.

use std::any::Any;
use std::cell::Cell;

use nandina::flash::{BlockNumber, Flash, PageNumber, Reading};
use nandina::store::Description;
use nandina::{System, WriteError};
use nandina_lab::hand_on;
use nandina_lab::torn::{Shown, Torn};
use nandina_lab::torture::{Outcome as Replayed, replay};
use nandina_sim::{Chip, ChipError};

use crate::formats::{fill, filled};
use crate::harness::*;

fn open<'r, S: System>(
    chip: &'r mut Torn,
    case: &Case,
    ram: &'r mut [u8],
) -> Result<OnBus<'r, S>, String> {
    open_on::<S>(chip, &case.options, ram).map_err(text)
}

struct LeftOut;

impl Check for LeftOut {
    fn concerns(&self, system: &Description) -> bool {
        is_log(system)
    }

    fn run<S: System + 'static>(&self) -> Outcome {
        let case = Case::new(LONG).suited::<S>();
        let mut ram = case.ram::<S>();
        let mut torn = 0;
        for records in 10..60 {
            let mut closed = filled::<S>(&case, records, &mut ram)?;
            open::<S>(&mut closed, &case, &mut ram)?.close();
            for left in 0..5 {
                let mut chip = closed.clone();
                let mut index = open::<S>(&mut chip, &case, &mut ram)?;
                device_of::<Torn, S>(&index).left.set(Some(left));
                let _ = index.insert(&key(records), &value(records, 0));
                drop(index);
                chip.left.set(None);
                torn += u32::from(chip.hidden.is_some());
                let mut found = None;
                for shown in [Shown::Erased, Shown::Written, Shown::Both, Shown::Written] {
                    chip.shown = shown;
                    let index = open::<S>(&mut chip, &case, &mut ram)?;
                    if *found.get_or_insert(index.len()) != index.len() {
                        return Err(format!("{records} records, program {left}: {found:?}"));
                    }
                }
            }
        }
        if torn == 0 { Err("nothing was torn".into()) } else { Ok(()) }
    }
}

/// Replays a case by the name that a failing run printed.
pub fn assert_survives(case: &str) {
    assert_eq!(replay(case).unwrap(), Replayed::Survived, "{case}");
}

#[test]
fn a_torn_page_that_a_mount_left_out_is_left_out_by_all_later_ones() {
    for_every_system(&LeftOut);
}

struct LeftBehind;

impl Check for LeftBehind {
    fn concerns(&self, system: &Description) -> bool {
        system.has_mapping_table()
    }

    fn run<S: System + 'static>(&self) -> Outcome {
        let case = Case::new(LONG).suited::<S>();
        let mut ram = case.ram::<S>();
        let mut cut = 0;
        for records in 10..60 {
            let mut chip = filled::<S>(&case, records, &mut ram)?;
            open::<S>(&mut chip, &case, &mut ram)?.close();
            let mut index = open::<S>(&mut chip, &case, &mut ram)?;
            device_of::<Torn, S>(&index).left.set(Some(1));
            let _ = index.insert(&key(records), &value(records, 0));
            drop(index);
            chip.left.set(None);
            (chip.cuts_erase, chip.shown) = (true, Shown::Both);
            // The mount that leaves the page out is cut while it erases the block.
            if open::<S>(&mut chip, &case, &mut ram).is_ok() {
                continue;
            }
            cut += 1;
            for reads in 0..16 {
                let mut chip = chip.clone();
                chip.reads = reads;
                let mut index = open::<S>(&mut chip, &case, &mut ram)?;
                let mut violations = Vec::new();
                index.check(|violation| violations.push(violation.to_string())).map_err(text)?;
                if !violations.is_empty() {
                    return Err(format!("{records} records, {reads} reads: {violations:?}"));
                }
            }
        }
        if cut == 0 { Err("no mount erased the block".into()) } else { Ok(()) }
    }
}

#[test]
fn a_torn_page_behind_a_first_page_that_an_erase_destroyed_is_left_out() {
    for_every_system(&LeftBehind);
}

/// A chip whose device gives up one read, tears one append, and limits its erases.
#[derive(Clone)]
struct Flaky {
    chip: Chip,
    /// Programs until the device gives one up.
    programs: Cell<Option<u32>>,
    /// Reads until the device gives one up.
    reads: Cell<Option<u32>>,
    /// Appends until one is torn, and power lost.
    appends: Cell<Option<u32>>,
    /// A torn append programs the first half of its bytes, for good.
    halves: bool,
    /// The page with the torn append, with its content before: half of the reads find that.
    torn: Option<(PageNumber, Vec<u8>)>,
    /// Erases until all others fail.
    erases: Cell<Option<u32>>,
    all_reads: u64,
    all_programs: u32,
}

impl Flaky {
    const fn new(chip: Chip) -> Self {
        Self {
            chip,
            programs: Cell::new(None),
            reads: Cell::new(None),
            appends: Cell::new(None),
            halves: false,
            torn: None,
            erases: Cell::new(None),
            all_reads: 0,
            all_programs: 0,
        }
    }
}

/// Counts down; returns whether zero is reached.
fn strikes(left: &Cell<Option<u32>>) -> bool {
    let is_due = left.get() == Some(0);
    left.set(if is_due { None } else { left.get().map(|left| left - 1) });
    is_due
}

impl Bus for Flaky {
    fn simulated(&self) -> &Chip {
        &self.chip
    }

    fn itself(&self) -> Option<&dyn Any> {
        Some(self)
    }
}

impl Flash for Flaky {
    type Error = ChipError;

    hand_on!(chip: geometry, capabilities, rewrite, is_bad, mark_bad);

    fn read(
        &mut self,
        page: PageNumber,
        main: &mut [u8],
        spare: &mut [u8],
    ) -> Result<Reading, ChipError> {
        if strikes(&self.reads) {
            return Err(ChipError::GaveUp);
        }
        self.all_reads += 1;
        let reading = self.chip.read(page, main, spare);
        if let Some((_, before)) = self.torn.as_ref().filter(|(torn, _)| *torn == page)
            && self.all_reads.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 63 == 1
        {
            main.copy_from_slice(&before[..main.len()]);
        }
        reading
    }

    fn program(&mut self, page: PageNumber, main: &[u8], spare: &[u8]) -> Result<(), ChipError> {
        if strikes(&self.programs) {
            return Err(ChipError::GaveUp);
        }
        self.all_programs += 1;
        self.chip.program(page, main, spare)
    }

    fn overwrite(&mut self, page: PageNumber, offset: u32, bytes: &[u8]) -> Result<(), ChipError> {
        if !strikes(&self.appends) {
            return self.chip.overwrite(page, offset, bytes);
        }
        if self.halves {
            self.chip.overwrite(page, offset, &bytes[..bytes.len() / 2])?;
            return Err(ChipError::PowerLost);
        }
        let mut before = vec![0; self.chip.geometry().page_bytes as usize];
        self.chip.read(page, &mut before, &mut [])?;
        self.chip.overwrite(page, offset, bytes)?;
        self.torn = Some((page, before));
        Err(ChipError::PowerLost)
    }

    fn erase(&mut self, block: BlockNumber) -> Result<(), ChipError> {
        if self.erases.get() == Some(0) {
            return Err(ChipError::EraseFailed(block));
        }
        strikes(&self.erases);
        if self.torn.as_ref().is_some_and(|(page, _)| self.geometry().block_of(*page) == block) {
            self.torn = None;
        }
        self.chip.erase(block)
    }
}

struct GivenUp;

impl Check for GivenUp {
    /// Systems that replace in place settle torn pages before the first change.
    fn concerns(&self, system: &Description) -> bool {
        system.collects()
    }

    fn run<S: System + 'static>(&self) -> Outcome {
        let case = Case::new(SMALL).suited::<S>();
        let mut ram = case.ram::<S>();
        let (records, mut given_up) = (40, 0u64);
        let share = Share::one_in(4);
        let mut filled = Flaky::new(Chip::new(case.profile));
        fill::<S>(&mut filled, &case, records, &mut ram)?;
        for read in (0..).filter(|&read| share.takes(read)) {
            let mut chip = filled.clone();
            let mut index = open_on::<S>(&mut chip, &case.options, &mut ram).map_err(text)?;
            device_of::<Flaky, S>(&index).programs.set(Some(0));
            let changed = index.insert(&key(7), &value(7, 1));
            if !matches!(changed, Err(WriteError::Device(ChipError::GaveUp))) {
                // The change was appended.
                device_of::<Flaky, S>(&index).programs.set(None);
                device_of::<Flaky, S>(&index).reads.set(Some(0));
                let _ = index.insert(&key(8), &value(8, 1));
            }
            let before = device_of::<Flaky, S>(&index).all_programs;
            device_of::<Flaky, S>(&index).reads.set(Some(u32::try_from(read).unwrap()));
            let mounted = index.get(&key(0)).map(drop);
            if device_of::<Flaky, S>(&index).reads.take().is_some() {
                // The mount has fewer reads.
                break;
            }
            given_up += u64::from(mounted.is_err());
            for number in [0, 9] {
                if index.get(&key(number)).map_err(text)? != Some(&value(number, 0)) {
                    return Err(format!("record {number} is lost"));
                }
            }
            if device_of::<Flaky, S>(&index).all_programs == before {
                return Err(format!("read {read} was given up, and nothing is settled"));
            }
        }
        if given_up < share.least(5).max(1) {
            Err(format!("only {given_up} mounts were given up"))
        } else {
            Ok(())
        }
    }
}

#[test]
fn a_mount_that_the_device_gave_up_is_begun_again() {
    for_every_system(&GivenUp);
}

struct ShortOfRoom;

impl Check for ShortOfRoom {
    fn concerns(&self, system: &Description) -> bool {
        system.appends()
    }

    fn run<S: System + 'static>(&self) -> Outcome {
        let mut case = Case::new(SMALL).suited::<S>();
        case.profile.capabilities.programs_per_page = None;
        case.profile.capabilities.in_order = false;
        let mut ram = case.ram::<S>();
        let mut torn = 0;
        for records in 60..90 {
            let mut chip = Flaky::new(Chip::new(case.profile));
            fill::<S>(&mut chip, &case, records, &mut ram)?;
            let mut index = open_on::<S>(&mut chip, &case.options, &mut ram).map_err(text)?;
            device_of::<Flaky, S>(&index).appends.set(Some(records % 7));
            let mut versions = vec![0; records as usize];
            for version in 1..200 {
                let number = version * 5 % records;
                if index.insert(&key(number), &value(number, version)).is_err() {
                    break;
                }
                versions[number as usize] = version;
            }
            drop(index);
            torn += u32::from(chip.torn.is_some());
            chip.erases.set(Some(records % 3));
            let mut changed = None;
            for _ in 0..4 {
                let mut index = open_on::<S>(&mut chip, &case.options, &mut ram).map_err(text)?;
                let mut violations = Vec::new();
                index.check(|violation| violations.push(violation.to_string())).map_err(text)?;
                if !violations.is_empty() {
                    return Err(format!("{records} records: {violations:?}"));
                }
                let mut others = 0;
                for (number, &version) in (0..).zip(&versions) {
                    let found = index.get(&key(number)).map_err(text)?;
                    others += u32::from(found != Some(&value(number, version)));
                }
                if others > 1 || *changed.get_or_insert(others) != others {
                    return Err(format!("{records} records: {others} are others, {changed:?}"));
                }
            }
        }
        if torn < 10 { Err(format!("only {torn} appends were torn")) } else { Ok(()) }
    }
}

#[test]
fn a_torn_append_is_written_anew_first_where_room_is_short() {
    for_every_system(&ShortOfRoom);
}

struct UpperAlone;

impl Check for UpperAlone {
    fn concerns(&self, system: &Description) -> bool {
        system.appends()
    }

    fn run<S: System + 'static>(&self) -> Outcome {
        let mut case = Case::new(SMALL);
        case.options.write_buffer = 24;
        let mut case = case.suited::<S>();
        case.profile.capabilities.programs_per_page = None;
        case.profile.capabilities.in_order = false;
        let mut ram = case.ram::<S>();
        let (records, mut torn) = (60, 0);
        for removed in 0..24 {
            for append in 0..4 {
                let mut chip = Flaky { halves: true, ..Flaky::new(Chip::new(case.profile)) };
                let mut index = format_on::<S>(&mut chip, &case.options, &mut ram).map_err(text)?;
                for number in 100..100 + records {
                    index.insert(&key(number), &value(number, 0)).map_err(text)?;
                }
                for number in 100..100 + removed {
                    index.remove(&key(number)).map_err(text)?;
                }
                index.flush().map_err(text)?;
                device_of::<Flaky, S>(&index).appends.set(Some(append));
                // All of these are lower than what the lowest leaf has.
                for new in 0..case.options.write_buffer as u32 {
                    let _ = index.insert(&key(new), &value(0, new));
                }
                torn += u32::from(index.flush().is_err());
                drop(index);
                chip.appends.set(None);
                let mut index = open_on::<S>(&mut chip, &case.options, &mut ram).map_err(text)?;
                let mut violations = Vec::new();
                index.check(|violation| violations.push(violation.to_string())).map_err(text)?;
                for number in 100 + removed..100 + records {
                    if index.get(&key(number)).map_err(text)? != Some(&value(number, 0)) {
                        violations.push(format!("record {number} is lost"));
                    }
                }
                if !violations.is_empty() {
                    return Err(format!("{removed} removed, append {append}: {violations:?}"));
                }
            }
        }
        if torn < 20 { Err(format!("only {torn} appends were torn")) } else { Ok(()) }
    }
}

#[test]
fn a_split_of_which_only_the_upper_half_was_noted_leaves_no_empty_leaf() {
    for_every_system(&UpperAlone);
}

#[test]
fn a_mount_that_wrote_before_its_chip_wore_out_finds_what_it_wrote() {
    let case = "swarm/wandering/seed 4301636 unstable changed formats errors";
    assert_survives(case);
}

#[test]
fn pages_of_a_block_whose_erase_failed_do_not_count_where_records_are_appended() {
    let case = "swarm/vm-ow/seed 142583 unstable changed formats errors";
    assert_survives(case);
}

#[test]
fn a_root_that_was_torn_does_not_come_back_where_the_erase_of_its_block_fails() {
    let case = "swarm/wandering/seed 4303942 unstable changed formats errors";
    assert_survives(case);
}

/// A commit was torn, and the mount that began to settle it was cut after its first page. On a chip
/// with little room the next mount saw the end of that mount's block alone, wrote nothing, and later
/// mounts saw the torn commit.
#[test]
fn a_torn_root_behind_which_a_mount_was_cut_is_seen_or_not_by_all_later_mounts() {
    let cases = [
        "exhaustive/wandering/seed 1/36 x 60 unstable/371 mixture/69 before",
        "exhaustive/wandering/seed 1/36 x 60 unstable/355 mixture/73 before",
        "exhaustive/wandering/seed 1/36 x 60 unstable/578 mixture/112 after",
        "exhaustive/mu/seed 1/36 x 60 unstable/448 mixture/96 after",
    ];
    for case in cases {
        assert_survives(case);
    }
}

/// A mount that settled a torn page was cut while it erased the block of that page. The next mount
/// saw the torn page and not the first one of its block, took the block for an older one, and later
/// mounts did not see the page.
#[test]
fn a_block_whose_erase_was_cut_while_a_mount_settled_it_does_not_look_older() {
    let cases = [
        "745 mixture/264 mixture",
        "775 mixture/257 ones",
        "822 mixture/292 mixture",
        "933 mixture/262 mixture",
        "1091 mixture/301 mixture",
        "927 unreadable/319 mixture",
    ];
    for cuts in cases {
        let case = format!("exhaustive/vm/seed 1/36 x 60 unstable/{cuts}");
        assert_survives(&case);
    }
}

/// A mount was cut in its first program, which the next mount did not see: both gave their first
/// pages the same number. From a checkpoint the first of these blocks alone was looked into.
#[test]
fn of_two_blocks_that_begin_with_one_number_a_mount_from_a_checkpoint_looks_into_both() {
    let case = "exhaustive/mu/seed 1/36 x 60 unstable checkpoints 2/719 unreadable/27 unreadable";
    assert_survives(case);
}

/// A mount from a checkpoint wrote another one while it settled. It lost sight of a block with a
/// torn page, which a later mount without a checkpoint counted.
#[test]
fn a_mount_that_settles_writes_no_checkpoint_before_it_has_cleared_torn_blocks() {
    for seed in ["130000997", "130006154"] {
        let case = format!("swarm/vm/seed {seed} unstable changed formats errors");
        assert_survives(&case);
    }
}

/// A program failed, and the next one, the first in the block that was opened for it, was cut. Both
/// pages were torn, but a mount looked only at the end of the newer block.
#[test]
fn a_page_that_failed_before_the_first_of_a_block_was_cut_is_torn_as_well() {
    let case = "swarm/vm/seed 3026116188 unstable changed formats errors";
    assert_survives(case);
}

/// A checkpoint was written into its own block, and the page after it, in the block before, was
/// cut. A mount that did not use the checkpoint took its block for the one that was written last.
#[test]
fn a_page_that_was_cut_after_a_checkpoint_is_torn_though_that_is_newer() {
    for seed in ["5026114316", "5026116570"] {
        let case = format!("swarm/vm/seed {seed} unstable changed formats errors");
        assert_survives(&case);
    }
}

/// A page was torn right behind a checkpoint. The suspect that a mount from there listed began one
/// number too late, so that a later mount without the checkpoint counted the page.
#[test]
fn a_page_torn_right_behind_a_checkpoint_is_left_out_without_the_checkpoint_too() {
    let case = "exhaustive/rosette/seed 1/36 x 60 unstable checkpoints 1/480 mixture/82 mixture";
    assert_survives(case);
}

/// The checkpoint that a mount began with could be read in part only, which a full directory took
/// for too many leaves. The mount reads all blocks then.
#[test]
fn a_checkpoint_that_can_be_read_in_part_only_does_not_refuse_a_mount() {
    let case = "swarm/rosette/seed 910001259 unstable errors";
    assert_survives(case);
}

/// A mount erased a block that the newest checkpoint listed, because a torn page was in it. The
/// erase failed, the block was marked as bad, and was opened since the checkpoint listed it.
#[test]
fn a_listed_block_that_went_bad_before_it_was_opened_is_not_opened() {
    let case = "swarm/rosette/seed 910002626 unstable errors";
    assert_survives(case);
}

/// A parent was appended the two halves of a split child, which was cut: it read with one key more
/// or without it. A mount that moved one of its children wrote the child's new page to the slot of
/// another one, whose records were lost.
#[test]
fn a_torn_append_of_a_key_to_a_parent_mixes_up_no_children() {
    let case = "swarm/vm-ow/seed 220001042 unstable formats errors";
    assert_survives(case);
}

/// The chip was worn out. A removal was pending that the tree had refused, and the insert of the
/// same key, which went to the tree at once, returned that it had replaced a record.
#[test]
fn an_insert_after_a_removal_that_the_tree_refused_is_of_a_new_record() {
    let case = "swarm/wandering/seed 220000247 unstable formats errors";
    assert_survives(case);
}

/// A block with a torn page of an inner node could not be erased, and was marked as bad. A later
/// mount read that page once, took it for the node, could not read it again when it compared the
/// other pages of the node with it, and took an older one.
#[test]
fn a_torn_page_in_a_block_that_was_marked_hides_no_newer_page() {
    let case = "swarm/vm/seed 230004247 unstable changed formats errors";
    assert_survives(case);
}

#[test]
fn a_journal_behind_a_torn_page_of_the_same_number_is_replayed() {
    // A mount that ended well does not see the torn first page of a block, gives its number again,
    // and writes a journal into another block. The next mount reads both.
    assert_survives("swarm/tnc/seed 940000168 unstable changed formats errors");
}

#[test]
fn a_full_tree_of_packed_nodes_moves_them_together_whatever_is_requested() {
    assert_survives("swarm/tnc/seed 940003513 unstable changed formats errors");
    assert_survives("swarm/tnc/seed 960001081 unstable changed formats errors narrow");
}

/// Most blocks were bad, so a tree of two levels had no room. The insert was refused because the
/// tree could not become higher, as if more RAM would help, and not because the device is worn out.
#[test]
fn a_packed_tree_without_blocks_is_worn_out_and_not_too_high() {
    assert_survives("swarm/tnc/seed 5400000300 unstable changed formats errors narrow");
}

/// A session that followed a good end was cut in its first page, which the next mount did not see
/// when it looked for the newest page, but when it looked for the blocks that were opened. That
/// mount gave the same number to the first page of another block. When a third mount found the torn
/// page, it took all pages from that number on for torn, and acknowledged changes were lost.
#[test]
fn leaves_behind_a_torn_first_page_of_the_same_number_count() {
    assert_survives("swarm/rosette/seed 2100005071 unstable changed formats errors narrow");
}

/// A chip was worn out, and a mount had no room to write a torn append anew. A change then found
/// room, and the next mount took the torn page for settled.
#[test]
fn a_change_settles_first_what_the_mount_had_no_room_for() {
    assert_survives("swarm/vm-ow/seed 1500004106 unstable changed formats errors narrow");
}

/// The device gave up a change, and the FTL below the index had no room for what the mount wrote
/// that determines which change is there. The runner took that for a fault of the index.
#[test]
fn an_ftl_of_a_worn_out_chip_may_refuse_the_mount_after_an_error_of_the_device() {
    assert_survives("swarm/mu over ftl:compact/seed 5310000113 unstable errors");
}

/// The mount that wrote a leaf again, whose commit was torn, was cut. The next one saw neither of
/// the two, and erased only one.
#[test]
fn a_torn_leaf_that_a_cut_mount_was_copying_does_not_come_back() {
    assert_survives("exhaustive/rosette-nor/seed 1/36 x 60 unstable/617 mixture/159 mixture");
}
