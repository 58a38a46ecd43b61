//! Replays on an FTL on a chip: the chip's counts, computed by hand, and equal for each mapping.

use nandina::blocks::GcPolicy;
use nandina::flash::Profile;
use nandina::flash::profile::{MLC, SD, SLC};
use nandina_lab::LabError;
use nandina_lab::block_trace::{BlockTrace, Choices};
use nandina_lab::layer::{Layer, TransitBuffer};
use nandina_lab::replay::{DeviceReport, DeviceSetup, MAPPINGS, replay_on_chip};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, Zipf};

fn setup(profile: Profile) -> DeviceSetup {
    let mappings = Vec::new();
    let (hybrid, space_bytes) = (None, None);
    let (footprint, sorts_moves) = (false, false);
    DeviceSetup {
        mappings,
        hybrid,
        transit: None,
        profile,
        chips: 1,
        over_provisioning: 7,
        space_bytes,
        footprint,
        sorts_moves,
        victims: GcPolicy::Fewest,
        volatile_trims: false,
        passes: 1,
    }
}

fn run(text: &str, setup: &DeviceSetup) -> Result<DeviceReport, LabError> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.csv");
    std::fs::write(&path, text).unwrap();
    replay_on_chip(&BlockTrace::open(&path, Choices::default()).unwrap(), setup, &|_| {})
}

/// Pages of 4,096 bytes: 0 and 1 written whole, 2 in part, 1 in part; 0 to 3 read; 0 trimmed.
const TEXT: &str = "op,start_bytes,length_bytes\n\
    write,0,10240\nwrite,4608,512\nread,0,16384\ntrim,0,5000\nflush,0,0\ntrim,1,4096\n";

#[test]
fn requests_become_pages_and_every_mapping_sees_the_same_chip() {
    let report = run(TEXT, &setup(MLC)).unwrap();
    let names: Vec<_> = report.mappings.iter().map(|row| row.mapping).collect();
    let known: Vec<_> = MAPPINGS.iter().map(|entry| entry.name).collect();
    assert_eq!(names, known);
    assert!(report.left_out.is_empty());
    assert_eq!((report.page_bytes, report.logical_pages), (4096, 4));
    let work = &report.device_work;
    assert_eq!((work.host_writes, work.partial_writes), (4, 2));
    assert_eq!((work.host_reads, work.host_trims), (4, 1));
    // A read of a page that was never written costs no chip operation: of the part of page 2 before
    // its write, and of page 3. Page 1 is read before its part is written.
    assert_eq!(work.reads, 1 + 3);
    // Four pages, and the list of trims.
    assert_eq!((work.programs, work.moved, work.own), (5, 0, 1));
    assert_eq!(work.write_amplification, Some(5.0 / 4.0));
    assert_eq!((report.replayed, report.written_pages, report.least_runs), (4, Some(2), Some(2)));
    assert_eq!(report.not_replayed.len(), 1);
    assert_eq!(report.not_replayed[0].reason, "trims of no whole page");
    // Four reads of a page in a request take four times as long as one.
    assert!(work.read_latency.max_us > 0.0);
    assert_eq!(work.read_latency.p50_us, work.read_latency.max_us);
}

#[test]
fn sequential_writes_take_a_quarter_of_the_time_on_four_chips() {
    let mut text = String::from("op,start_bytes,length_bytes\n");
    for at in 0..64 {
        text += &format!("write,{},65536\nread,{},65536\n", at * 65536, at * 65536);
    }
    let few = DeviceSetup { mappings: vec!["emt".into()], ..setup(SLC) };
    let reports = [1, 2, 4].map(|chips| run(&text, &DeviceSetup { chips, ..few.clone() }).unwrap());
    let one = &reports[0];
    for report in &reports {
        // 64 requests of 32 pages of 2 KiB, which are one run across all blocks.
        let chips = f64::from(report.chips);
        assert_eq!(report.device_work.programs, 64 * 32);
        assert_eq!((report.written_pages, report.least_runs), (Some(64 * 32), Some(1)));
        let by_one = |of: fn(&DeviceReport) -> f64| of(report) * chips / of(one);
        let writes = by_one(|report| report.device_work.write_latency.p50_us);
        let reads = by_one(|report| report.device_work.read_latency.p50_us);
        println!("{chips} chips: {writes:.3} of a share of writes, {reads:.3} of reads");
        assert!((0.98..1.02).contains(&writes) && (0.98..1.02).contains(&reads));
    }
    let refused = run(&text, &DeviceSetup { chips: 100, ..few }).unwrap_err().to_string();
    assert!(
        refused.contains("blocks of the stripe") || refused.contains("a block of the stripe"),
        "{refused}"
    );
}

#[test]
fn pages_moved_in_logical_order_leave_no_more_runs_than_in_physical_order_within_a_hundredth() {
    let mut random = ChaCha8Rng::seed_from_u64(5);
    for most_pages in [1, 8] {
        let mut text = String::from("op,start_bytes,length_bytes\n");
        for _ in 0..40_000 / most_pages {
            let pages = random.random_range(1..=most_pages);
            let first = random.random_range(0..8192 - pages);
            text += &format!("write,{},{}\n", first * 2048, pages * 2048);
        }
        let runs = [false, true].map(|sorts_moves| {
            let few = DeviceSetup { mappings: vec!["page".into()], sorts_moves, ..setup(SLC) };
            let report = run(&text, &few).unwrap();
            assert!(report.device_work.moved > 10_000, "{:?}", report.device_work);
            report.least_runs.unwrap()
        });
        println!("up to {most_pages} pages: runs in physical and in logical order {runs:?}");
        assert!(runs[1] <= runs[0] + runs[0] / 100, "{most_pages} pages: {runs:?}");
    }
}

#[test]
fn a_full_chip_collects_and_every_page_that_is_programmed_is_accounted_for() {
    let mut text = String::from("op,start_bytes,length_bytes\n");
    let mut number = 1u64;
    for _ in 0..12_000 {
        number = number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        text += &format!("write,{},2048\n", (number >> 33) % 2048 * 2048);
    }
    let few = DeviceSetup { mappings: vec!["compact".into()], ..setup(SLC) };
    let report = run(&text, &few).unwrap();
    let work = &report.device_work;
    assert_eq!((work.host_writes, work.partial_writes, work.host_trims), (12_000, 0, 0));
    assert_eq!(work.programs, work.host_writes + work.moved + work.own);
    assert!(work.moved > 1_000 && work.erases > 200, "{work:?}");
    assert!(report.over_provisioning >= 7.0);
    assert!(f64::from(work.wear_most) <= 1.2 * work.wear_mean + 2.0, "{work:?}");
    // Uniform writes hit half of the pages in a moment: no mapping of extents gains by them.
    let page = &report.mappings[0];
    assert_eq!((page.mapping, page.percent_of_page), ("page", 100.0));

    // With more spare pages, fewer move.
    let more = DeviceSetup { over_provisioning: 50, ..few };
    assert!(run(&text, &more).unwrap().device_work.moved < work.moved / 2);
}

#[test]
fn sequential_writes_stay_long_runs_on_chips_whose_pages_share_cells() {
    let mut text = String::from("op,start_bytes,length_bytes\n");
    for turn in 0..16 {
        text += &format!("write,{},1048576\n", turn * 1_048_576);
    }
    let report = run(&text, &setup(MLC)).unwrap();
    assert_eq!(report.written_pages, Some(4096));
    assert_eq!(report.device_work.write_amplification, Some(1.0));
    // Blocks have 64 safe pages; a run goes on where the next block is the physically next.
    let runs = report.least_runs.unwrap();
    assert!(runs <= 4096 / 64, "{runs} runs");
}

#[test]
fn devices_and_spaces_that_cannot_be_are_refused() {
    let refused = |setup: &DeviceSetup| run(TEXT, setup).unwrap_err().to_string();
    assert_eq!(refused(&setup(SD)), "sd replaces pages in place: it needs no FTL");
    let unknown = DeviceSetup { mappings: vec!["tree".into()], ..setup(SLC) };
    assert!(refused(&unknown).starts_with("there is no mapping 'tree'"));
    let huge = DeviceSetup { space_bytes: Some(1 << 50), ..setup(SLC) };
    assert!(refused(&huge).contains("an FTL numbers fewer than 2^32"), "{}", refused(&huge));
    // Fewer safe pages than 2^32, but more pages: those of the lower half of each cell are counted.
    let paired = DeviceSetup { space_bytes: Some(1 << 43), ..setup(MLC) };
    assert!(refused(&paired).contains("an FTL numbers fewer than 2^32"), "{}", refused(&paired));
    let large = DeviceSetup { space_bytes: Some(1 << 41), ..setup(SLC) };
    assert!(refused(&large).contains("GiB of memory"), "{}", refused(&large));
    // With a footprint, it is what the requests touch that counts.
    let touched = DeviceSetup { footprint: true, ..large };
    assert_eq!(run(TEXT, &touched).unwrap().replayed, 5);
    // Untouched pages need no number: a space of 64 TiB is 2^35 pages.
    let far = format!("{TEXT}write,{},8192\n", (1_u64 << 46) - 8192);
    let setup = DeviceSetup { space_bytes: None, ..touched };
    assert_eq!(run(&far, &setup).unwrap().replayed, 6);
    let refused = run(&format!("{TEXT}write,{},8192\n", 1_u64 << 52), &setup).unwrap_err();
    assert!(refused.to_string().ends_with("--footprint takes at most 68719476736"), "{refused}");
}

#[test]
fn a_hybrid_ftl_has_room_for_a_space_that_is_smaller_than_a_block() {
    for name in ["ftl:block", "ftl:bast", "ftl:fast"] {
        let setup = DeviceSetup { hybrid: Some(Layer::named(name).unwrap()), ..setup(SLC) };
        assert_eq!(run(TEXT, &setup).unwrap().replayed, 5, "{name}");
    }
}

/// Pages of 2,048 bytes in logical blocks of 64, written twice, block by block and in order.
fn twice_in_order() -> String {
    let mut text = String::from("op,start_bytes,length_bytes\n");
    for _ in 0..2 {
        for block in 0..8u64 {
            text += &format!("write,{},{}\n", block * 64 * 2048, 64 * 2048);
        }
    }
    text
}

#[test]
fn a_hybrid_ftl_counts_its_merges_by_kind() {
    let hybrid = |name: &str, log_blocks: Option<u32>| {
        let layer = Layer::named(name).unwrap();
        log_blocks.map_or(layer, |count| layer.with_log_blocks(count).unwrap())
    };
    let replayed = |layer, text: &str| {
        let setup = DeviceSetup { hybrid: Some(layer), ..setup(SLC) };
        run(text, &setup).unwrap()
    };
    // The first time each page goes to its place; the second time a log block takes each logical
    // block, and becomes its data block: nothing is copied.
    for name in ["ftl:bast", "ftl:fast"] {
        let report = replayed(hybrid(name, Some(2)), &twice_in_order());
        let work = &report.device_work;
        assert_eq!((work.host_writes, work.moved, work.programs), (1024, 0, 1024), "{name}");
        assert!(work.switch_merges.unwrap() >= 6, "{name}: {work:?}");
        assert_eq!((work.partial_merges, work.full_merges), (Some(0), Some(0)), "{name}");
        assert_eq!((report.ftl, report.log_blocks), (name.to_string(), Some(2)));
        assert_eq!((report.mappings, report.written_pages), (Vec::new(), None));
    }
    // Without log blocks a page that is replaced copies its block.
    let text = "op,start_bytes,length_bytes\nwrite,0,131072\nwrite,4096,2048\nread,0,8192\n";
    let report = replayed(hybrid("ftl:block", None), text);
    let work = &report.device_work;
    assert_eq!((work.host_writes, work.moved, work.full_merges), (65, 63, Some(1)));
    assert_eq!((work.programs, work.host_reads), (65 + 63, 4));
    assert_eq!(work.write_amplification, Some(128.0 / 65.0));
    assert_eq!(report.log_blocks, None);
    // One page of each of eight logical blocks in turn: too many for two log blocks of BAST.
    let mut text = twice_in_order();
    for turn in 0..64u64 {
        text += &format!("write,{},2048\n", (turn % 8 * 64 + 7) * 2048);
    }
    let bast = replayed(hybrid("ftl:bast", Some(2)), &text).device_work;
    let fast = replayed(hybrid("ftl:fast", Some(2)), &text).device_work;
    assert!(bast.full_merges > Some(50), "{bast:?}");
    assert!(fast.full_merges < bast.full_merges && fast.moved < bast.moved, "{fast:?}");
    assert!(fast.write_latency.mean_us < bast.write_latency.mean_us);
}

#[test]
fn a_transit_buffer_turns_scattered_writes_into_cheaper_merges() {
    // Every 67th page of 64 blocks, again and again: FAST with two log blocks merges all the time.
    let mut text = String::from("op,start_bytes,length_bytes\nwrite,0,8388608\n");
    for at in 0..2_000u64 {
        text += &format!("write,{},2048\n", at * 67 % 4096 * 2048);
    }
    text += "read,0,8388608\n";
    let fast = Layer::named("ftl:fast").unwrap().with_log_blocks(2).unwrap();
    let transit = |as_printed| fast.with_transit(TransitBuffer { blocks: 64, as_printed }).unwrap();
    let [without, printed, improved] = [fast, transit(true), transit(false)].map(|layer| {
        let report = run(&text, &DeviceSetup { hybrid: Some(layer), ..setup(SLC) }).unwrap();
        assert_eq!(report.buffer_blocks, layer.buffer_blocks());
        assert_eq!(report.device_work.host_writes, 4096 + 2000);
        report.device_work.programs
    });
    println!("{without} programs without, {printed} as printed, {improved} improved");
    assert!(printed < without / 2 && improved <= printed);
    let dipl = Layer::named("ftl:dipl").unwrap();
    let refused = dipl.with_transit(TransitBuffer { blocks: 1, as_printed: true }).unwrap_err();
    assert!(refused.to_string().starts_with("ftl:dipl has no transit buffer"), "{refused}");
}

#[test]
fn a_transit_buffer_before_a_page_map_only_costs_programs_as_printed() {
    // As above: no page is written twice while it is in the buffer.
    let mut text = String::from("op,start_bytes,length_bytes\nwrite,0,8388608\n");
    for at in 0..2_000u64 {
        text += &format!("write,{},2048\n", at * 67 % 4096 * 2048);
    }
    text += "read,0,8388608\n";
    let transit = |as_printed| Some(TransitBuffer { blocks: 64, as_printed });
    let [without, printed, improved] = [None, transit(true), transit(false)].map(|transit| {
        // So many spare pages that all three have the same chip.
        let few =
            DeviceSetup { mappings: vec!["compact".into()], over_provisioning: 150, ..setup(SLC) };
        let report = run(&text, &DeviceSetup { transit, ..few }).unwrap();
        assert_eq!(report.blocks, 160);
        assert_eq!(report.buffer_blocks, transit.map(|transit| transit.blocks));
        assert_eq!(report.device_work.host_writes, 4096 + 2000);
        assert!(report.left_out.is_empty(), "{:?}", report.left_out);
        (report.device_work.programs, report.device_work.moved)
    });
    println!(
        "{without:?} programs and moves without, {printed:?} as printed, {improved:?} improved"
    );
    // Each page that is converted is moved once more; a block that stays where it is costs nothing.
    assert!(printed.1 >= without.1 + 4096 && printed.0 >= without.0 + 4096, "{printed:?}");
    assert_eq!(improved, without);
}

#[test]
fn a_footprint_leaves_out_what_no_request_touches_and_then_garbage_is_collected() {
    // Single pages, 16 MiB apart, with a trim across some of them.
    let mut text = String::from("op,start_bytes,length_bytes\n");
    let mut at = 1u64;
    for _ in 0..6_000 {
        at = at * 48271 % 2147483647;
        text += &format!("write,{},2048\n", (at % 500) << 24);
    }
    text += "trim,0,33554432\nread,0,2048\n";
    let whole = DeviceSetup { mappings: vec!["compact".into()], ..setup(SLC) };
    let footprint = DeviceSetup { footprint: true, ..whole };
    let whole = DeviceSetup { mappings: vec!["compact".into()], ..setup(SLC) };
    let sorted = DeviceSetup {
        mappings: vec!["compact".into()],
        sorts_moves: true,
        footprint: true,
        ..setup(SLC)
    };
    let [whole, small, sorted] =
        [whole, footprint, sorted].map(|setup| run(&text, &setup).unwrap());
    assert_eq!((whole.logical_pages, small.logical_pages), (499 * 8192 + 1, 500));
    for report in [&whole, &small, &sorted] {
        assert_eq!((report.replayed, report.device_work.host_writes), (6002, 6000));
        assert_eq!((report.device_work.host_trims, report.written_pages), (2, Some(498)));
    }
    assert_eq!(whole.device_work.moved, 0);
    assert!(small.device_work.moved > 100, "{:?}", small.device_work);
    let reads = [&small, &sorted].map(|report| report.device_work.reads);
    assert!(reads[1] > reads[0], "{reads:?}");
}

#[test]
fn volatile_trims_program_one_list_for_many_and_leave_the_same_pages() {
    let mut text = String::from("op,start_bytes,length_bytes\n");
    for at in 0..640u64 {
        text += &format!("write,{},2048\n", at * 2048);
    }
    // Pages that do not touch.
    for at in 0..96u64 {
        text += &format!("trim,{},2048\n", at * 3 * 2048);
    }
    let durable = DeviceSetup { mappings: vec!["compact".into()], ..setup(SLC) };
    let volatile = DeviceSetup { volatile_trims: true, ..durable.clone() };
    let [durable, volatile] = [durable, volatile].map(|setup| run(&text, &setup).unwrap());
    for report in [&durable, &volatile] {
        assert_eq!((report.device_work.host_trims, report.written_pages), (96, Some(544)));
    }
    // 16 wait; the next one is listed with them.
    let programs = [&durable, &volatile].map(|report| report.device_work.programs);
    assert_eq!(programs, [640 + 96, 640 + 96 / 17]);
    assert_eq!(durable.device_work.own - volatile.device_work.own, 96 - 96 / 17);
}

/// Single pages of 2,048 bytes: each once, then by Zipf's law with the exponent 0.99.
///
/// The ranks are spread over the pages.
fn skewed(pages: u32, writes: u32) -> String {
    let mut random = ChaCha8Rng::seed_from_u64(1);
    let law = Zipf::new(f64::from(pages), 0.99).unwrap();
    let drawn = (0..writes).map(|_| law.sample(&mut random) as u32 * 37 % pages);
    let line = |page: u32| format!("write,{},2048\n", u64::from(page) * 2048);
    let lines: String = (0..pages).chain(drawn).map(line).collect();
    format!("op,start_bytes,length_bytes\n{lines}")
}

/// The bound is that of the whole project for wear: the most worn block by the mean.
#[test]
fn skewed_writes_wear_the_blocks_of_every_ftl_evenly() {
    let cases =
        [("ftl:page", 60_000), ("ftl:block", 4_000), ("ftl:bast", 60_000), ("ftl:fast", 60_000)];
    for (ftl, writes) in cases {
        let hybrid = (ftl != "ftl:page").then(|| Layer::named(ftl).unwrap());
        let setup = DeviceSetup { hybrid, mappings: vec!["page".into()], ..setup(SLC) };
        let work = run(&skewed(1024, writes), &setup).unwrap().device_work;
        let ratio = f64::from(work.wear_most) / work.wear_mean;
        println!("{ftl}: most {}, mean {:.1}", work.wear_most, work.wear_mean);
        assert!(work.wear_mean > 20.0 && ratio <= 1.2, "{ftl}: {ratio}");
    }
}

#[test]
fn where_few_pages_are_written_often_cost_and_benefit_saves_programs() {
    let text = skewed(4096, 60_000);
    let choices = [GcPolicy::Fewest, GcPolicy::Sampled(8), GcPolicy::CostBenefit];
    let works = choices.map(|victims| {
        let mappings = vec!["page".into()];
        let setup = DeviceSetup { over_provisioning: 25, mappings, victims, ..setup(SLC) };
        run(&text, &setup).unwrap().device_work
    });
    for (victims, work) in choices.iter().zip(&works) {
        let ratio = f64::from(work.wear_most) / work.wear_mean;
        println!("{victims:?}: {} programs, wear {ratio:.3}", work.programs);
        assert!(ratio <= 1.2, "{victims:?}: {ratio}");
    }
    let [fewest, sampled, benefit] = works.map(|work| work.programs);
    assert!(benefit * 20 < fewest * 19 && sampled < fewest, "{fewest} {sampled} {benefit}");
}
