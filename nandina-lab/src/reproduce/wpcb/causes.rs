//! Why three claims on figures do not hold: each cause by itself, as an experiment.
//!
//! C12, half of the erases: the buffer blocks by the blocks of the tree, and the fewest erases that
//! any buffer can have. C13, the time of creation: page writes that have nothing of a tree but the
//! number of its blocks. C15, the time of removals: the merges and the buffer, one after the other.

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::below::{Below, replay};
use super::counts::{BUFFERS, LOG_BLOCKS, figure_10};
use super::device::{Event, Events};
use super::growth::{Grown, Growth, Nodes, Phase, Tally};
use super::rebalancing;
use super::rivals::Rival;
use super::runs::{Case, Runs, each};
use super::{Experiment, Experiments, reduction};
use crate::LabError;
use crate::reproduce::Row;

/// Records of the smaller trees; a quick run has fewer.
const RECORDS: u32 = 300_000;

/// Buffer blocks, in per cent of the blocks of the tree.
const SHARES: [u32; 6] = [40, 60, 80, 90, 100, 120];

/// Log blocks with which removals are compared.
const REMOVALS_LOG_BLOCKS: [u32; 4] = [2, 4, LOG_BLOCKS, 64];

/// What the paper prints for removals against the B-tree, in per cent.
const PRINTED_REMOVALS: f64 = 93.4;

/// Log blocks for the smaller trees: about as many by the blocks of the tree as with all records.
const FEW_LOG_BLOCKS: u32 = 5;

/// The B-tree and WPCB as printed, with each share of buffer blocks, with fewer records.
fn shares(of: &Experiments) -> (Case, Vec<(u32, Case)>) {
    let records = of.scale.records.min(RECORDS);
    let growth = |system| Growth { records, ..of.inserts(system, 0) };
    // A million random keys take 178 blocks of 64 pages.
    let blocks = u64::from(records) * 178 * 64 / u64::from(of.scale.block_pages) / 1_000_000 + 1;
    let fast = Below::fast(FEW_LOG_BLOCKS);
    let with = |share: u32| {
        let buffer = (blocks * u64::from(share)).div_ceil(100) as u32;
        (share, Case { growth: growth("wpcb"), below: fast.printed(buffer) })
    };
    (Case { growth: growth("btree"), below: fast }, SHARES.map(with).into())
}

/// Log blocks of this run, each number once.
fn removals_log_blocks(of: &Experiments) -> Vec<u32> {
    let mut all = REMOVALS_LOG_BLOCKS.to_vec();
    all.dedup_by_key(|blocks| of.scale.blocks(*blocks));
    all
}

/// Removals of a B-tree that merges, of one that does not, and of that behind the buffer.
fn removals(of: &Experiments, log_blocks: u32) -> [Case; 3] {
    let fast = Below::fast(of.scale.blocks(log_blocks));
    [(Rival::Merging.key(), fast), ("btree", fast), ("wpcb", fast.printed(of.buffer()))]
        .map(|(system, below)| Case { growth: rebalancing::life(of, system), below })
}

/// The cases of these experiments.
pub fn cases(of: &Experiments) -> Vec<Case> {
    let (btree, shares) = shares(of);
    let removals = removals_log_blocks(of).into_iter().flat_map(|blocks| removals(of, blocks));
    [btree].into_iter().chain(shares.into_iter().map(|(_, case)| case)).chain(removals).collect()
}

fn erases(of: &Experiments, runs: &Runs) -> Result<Experiment, LabError> {
    let title = "C12: erases of WPCB as printed by those of the others, by buffer blocks C";
    let mut experiment = Experiment::of("c12", title, Vec::new());
    let least = 1.0 / f64::from(of.scale.block_pages);
    let at = |case: &Case| {
        let cost = runs.costs(case)?.inserts;
        Ok::<_, LabError>(cost.each(cost.erases))
    };
    for per_cent in [0, 100] {
        let rs = f64::from(per_cent) / 100.0;
        let [btree, ..] = of.sides(LOG_BLOCKS);
        let ours = Case { growth: of.inserts("btree", per_cent), below: btree.below };
        let mut others = vec![("B-tree", at(&ours)?)];
        for (rival, case) in of.rival_cases(per_cent) {
            if rival.below != Below::RAW {
                others.push((rival.name, at(&case)?));
            }
        }
        for (name, others) in &others {
            for buffer in BUFFERS {
                let case = figure_10(of, per_cent, buffer, true);
                let config = format!("rs {rs}, {}, by {name}", case.below.name());
                let by = at(&case)? / others;
                experiment.rows.push(Row::alone("wpcb", &config, "erases", by, "ratio"));
            }
            let config = format!("rs {rs}, any C, by {name}");
            let bound = least / others;
            experiment.rows.push(Row::alone("wpcb", &config, "erases, at least", bound, "ratio"));
        }
        if per_cent == 100 {
            let bound = least / others[0].1;
            let claim = format!(
                "rs 1: no C gives a third of the B-tree's erases: each page is programmed once at \
                 least, which is {bound:.2}"
            );
            experiment.orderings.push((claim, bound > 1.0 / 3.0));
        }
    }
    let (btree, shares) = shares(of);
    let by = at(&btree)?;
    let mut found = Vec::new();
    for (share, case) in shares {
        let (blocks, records) = (runs.grown(&case.growth)?.blocks, case.growth.records);
        let ratio = at(&case)? / by;
        let config = format!(
            "rs 0, {records} records, {blocks} blocks, {}: {share} %, by B-tree",
            case.below.name()
        );
        experiment.rows.push(Row::alone("wpcb", &config, "erases", ratio, "ratio"));
        found.push((share, ratio));
    }
    let falls = found.windows(2).all(|two| two[1].1 <= two[0].1 * 1.01);
    experiment
        .orderings
        .push(("rs 0: erases fall as C nears the blocks of the tree".into(), falls));
    let is_half = |at: fn(u32) -> bool, half: fn(f64) -> bool| {
        found.iter().filter(|(share, _)| at(*share)).all(|(_, ratio)| half(*ratio))
    };
    let holds = is_half(|share| share <= 80, |ratio| ratio > 0.5)
        && is_half(|share| share >= 100, |ratio| ratio < 0.5);
    let claim = "rs 0: erases are more than half of the B-tree's with C of up to 80 % of the blocks \
                 of the tree, and less than half from all of them on";
    experiment.orderings.push((claim.into(), holds));
    Ok(experiment)
}

/// The page writes of an index, as they were but for their blocks, which are drawn anew.
///
/// Pages that follow one another in a block stay together. Of `blocks` blocks more and more are in
/// use. Of `every` such runs one is taken.
fn scattered(grown: &Grown, blocks: u32, every: u32, seed: u64) -> Grown {
    let (mut rng, block_pages) = (ChaCha8Rng::seed_from_u64(seed), grown.block_pages);
    let written = grown.inserts.events.iter().filter_map(|event| match event {
        Event::Write(page) => Some(page),
        _ => None,
    });
    let (mut events, mut writes) = (Events::default(), 0);
    let (mut last, mut run, mut block) = (None, 0_u32, 0);
    for (at, page) in (1..).zip(written) {
        let follows = last.is_some_and(|last| page == last + 1) && page % block_pages != 0;
        if !follows {
            let used = (u64::from(blocks) * at).div_ceil(grown.inserts.writes.max(1)) as u32;
            (run, block) = (run + 1, rng.random_range(0..used.clamp(1, blocks)));
        }
        last = Some(page);
        if run % every == 0 {
            events.push(Event::Write(block * block_pages + page % block_pages));
            events.push(Event::End(0));
            writes += 1;
        }
    }
    Grown {
        format: Events::default(),
        inserts: Phase { events, reads: 0, writes, nodes: Nodes::default() },
        lookups: None,
        removals: None,
        height: 0,
        nodes: 0,
        pages: blocks * block_pages,
        blocks,
        most_blocks: blocks,
        block_pages,
        raw: None,
        tally: Tally::default(),
    }
}

/// Programs that an FTL makes of a page write.
fn programs(below: &Below, grown: &Grown) -> Result<f64, LabError> {
    let cost = replay(below, grown)?.inserts;
    Ok(cost.programs as f64 / grown.inserts.writes.max(1) as f64)
}

/// A tree: its name, system and blocks, and page writes an insert and programs a page write.
type Spread = (&'static str, &'static str, u32, f64, f64);

fn blocks(of: &Experiments, runs: &Runs) -> Result<Experiment, LabError> {
    let title =
        "C13: programs of FAST a page write, of trees, and of the same in blocks drawn anew";
    let mut experiment = Experiment::of("c13", title, Vec::new());
    let [btree, ..] = of.sides(LOG_BLOCKS);
    let fast = btree.below;
    let ours = Case { growth: of.inserts("btree", 0), below: fast };
    let rivals = of.rival_cases(0).filter(|(rival, _)| rival.below != Below::RAW);
    let all = [("B-tree", ours)].into_iter().chain(rivals.map(|(side, case)| (side.name, case)));
    let (mut trees, mut drawn) = (Vec::<Spread>::new(), Vec::new());
    for (name, case) in all {
        let (grown, cost) = (runs.grown(&case.growth)?, runs.costs(&case)?.inserts);
        let written = grown.inserts.writes.max(1) as f64;
        let an_insert = written / f64::from(case.growth.records);
        let system = case.growth.system;
        trees.push((name, system, grown.blocks, an_insert, cost.programs as f64 / written));
        // Its own writes, and those of our B-tree on as many blocks.
        drawn.extend([(case.growth, grown.blocks), (ours.growth, grown.blocks)]);
    }
    drawn.dedup();
    let every = of.scale.records / of.scale.records.min(RECORDS);
    let random = each(&drawn, |&(growth, blocks)| {
        programs(&fast, &scattered(runs.grown(&growth)?, blocks, every, of.seed))
    })?;
    let of_drawn = |system, blocks| {
        let mut all =
            random.iter().filter(|((growth, of), _)| (growth.system, *of) == (system, blocks));
        all.next().map_or(0.0, |(_, programs)| *programs)
    };
    let mut found = Vec::new();
    for (name, system, blocks, an_insert, programs) in trees {
        let [own, btrees] = [of_drawn(system, blocks), of_drawn("btree", blocks)];
        let config = format!("{name}, {blocks} blocks, {}", fast.name());
        let row = |system, metric, figure, unit| Row::alone(system, &config, metric, figure, unit);
        experiment.rows.extend([
            row(system, "page writes", an_insert, "an insert"),
            row(system, "programs", programs, "a page write"),
            row(system, "programs, blocks drawn anew", own, "a page write"),
            row("btree", "programs of its writes in as many blocks", btrees, "a page write"),
        ]);
        let claim = format!(
            "{name}: in blocks drawn anew, its page writes take as many programs, within a tenth: \
             {programs:.2}, {own:.2}"
        );
        experiment.orderings.push((claim, (0.9..=1.1).contains(&(own / programs))));
        found.push((blocks, btrees));
    }
    found.sort_unstable_by_key(|(blocks, _)| *blocks);
    let rises = found.windows(2).all(|two| two[0].0 == two[1].0 || two[1].1 > two[0].1);
    let claim =
        "page writes of the B-tree take more programs in more blocks, in nothing else different";
    experiment.orderings.push((claim.into(), rises));
    Ok(experiment)
}

fn removal_time(of: &Experiments, runs: &Runs) -> Result<Experiment, LabError> {
    let title = "C15: the time of removals without merges, and then behind the buffer as printed";
    let mut experiment = Experiment::of("c15", title, Vec::new());
    let mut parts = Vec::new();
    for log_blocks in removals_log_blocks(of) {
        let cases = removals(of, log_blocks);
        let n = of.scale.blocks(log_blocks);
        let mut seconds = [0.0; 3];
        for (case, taken) in cases.iter().zip(&mut seconds) {
            let cost = runs.costs(case)?.removals;
            let written = runs.grown(&case.growth)?.removals.as_ref().map_or(0, |it| it.writes);
            let config = format!("{} removals, {}", case.growth.records, case.below.name());
            let row = |metric, figure, unit| {
                Row::alone(case.growth.system, &config, metric, figure, unit)
            };
            experiment.rows.extend([
                row("writes", cost.each(written), "a removal"),
                row("delete", 1e3 * cost.seconds / written.max(1) as f64, "ms a page write"),
                row("delete", cost.seconds, "s"),
            ]);
            *taken = cost.seconds;
        }
        let [merging, bare, buffered] = seconds;
        // A page that is written is programmed once, and its share of an erase.
        let records = f64::from(cases[2].growth.records);
        let share = 1.5e-3 / f64::from(of.scale.block_pages);
        let most = reduction(records * (200e-6 + share), merging);
        let [no_merges, buffer, both] =
            [reduction(bare, merging), reduction(buffered, bare), reduction(buffered, merging)];
        let config = format!("N={n}");
        for (metric, figure) in [
            ("no merges, against the B-tree that merges", no_merges),
            ("the buffer, against the B-tree without merges", buffer),
            ("both", both),
            ("at most, if a write takes one program", most),
        ] {
            experiment.rows.push(Row::alone("wpcb", &config, metric, figure, "% less"));
        }
        parts.push((n, no_merges, buffer, most));
    }
    let of_all = |holds: fn(&(u32, f64, f64, f64)) -> bool| parts.iter().all(holds);
    experiment.orderings = vec![
        (
            "no merges take less than a third of the time away, at every N".into(),
            of_all(|part| part.1 < 100.0 / 3.0),
        ),
        (
            "the fewer log blocks, the more time the buffer takes away".into(),
            parts.windows(2).all(|two| two[1].2 < two[0].2),
        ),
    ];
    let list = |can: bool| {
        let which = parts.iter().filter(|part| (part.3 >= PRINTED_REMOVALS) == can);
        let which: Vec<_> = which.map(|part| format!("N={} ({:.1} %)", part.0, part.3)).collect();
        if which.is_empty() { "nowhere".to_string() } else { which.join(", ") }
    };
    experiment.notes.push(format!(
        "{PRINTED_REMOVALS} % less is possible at all, by any buffer, with {}; not with {}.",
        list(true),
        list(false)
    ));
    Ok(experiment)
}

/// The experiments.
pub fn experiments(of: &Experiments, runs: &Runs) -> Result<Vec<Experiment>, LabError> {
    Ok(vec![erases(of, runs)?, blocks(of, runs)?, removal_time(of, runs)?])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reproduce::wpcb::{Scale, rivals, tree};

    /// Erases of WPCB as printed by those of the B-tree, with this buffer.
    fn by_btree(of: &Experiments, per_cent: u32, log_blocks: u32, buffers: &[u32]) -> Vec<f64> {
        let fast = Below::fast(log_blocks);
        let erases = |below: Below, grown: &Grown| replay(&below, grown).unwrap().inserts.erases;
        let [btree, wpcb] = ["btree", "wpcb"]
            .map(|system| tree::grow(&of.inserts(system, per_cent), &|_| {}).unwrap());
        println!("{} blocks", wpcb.blocks);
        let btree = erases(fast, &btree) as f64;
        let erases = |&blocks: &u32| erases(fast.printed(blocks), &wpcb) as f64 / btree;
        buffers.iter().map(erases).collect()
    }

    #[test]
    fn c12_half_of_the_erases_needs_a_buffer_block_for_each_block_and_a_third_is_impossible() {
        let of = Experiments::new(Scale { records: 20_000, ..Scale::QUICK }, 1);
        // 28 blocks.
        let found = by_btree(&of, 0, 3, &[11, 17, 22, 28, 34]);
        println!("rs 0: {found:.3?}");
        assert!(found.is_sorted_by(|one, next| one >= next), "{found:?}");
        assert!(found[2] > 0.5 && found[3] < 0.5, "{found:?}");
        let growth = of.inserts("btree", 100);
        let btree = replay(&Below::fast(3), &tree::grow(&growth, &|_| {}).unwrap()).unwrap();
        // What a program takes of an erase.
        let least = 20_000.0 / 8.0 / btree.inserts.erases as f64;
        let found = by_btree(&of, 100, 3, &[3, 11, 28, 34]);
        println!("rs 1: {found:.3?}, at least {least:.3}");
        assert!(least > 1.0 / 3.0 && found.iter().all(|&ratio| ratio > least * 0.95), "{found:?}");
    }

    #[test]
    fn c13_the_programs_of_fast_follow_the_blocks_and_not_the_tree() {
        let of = Experiments::new(Scale::QUICK, 1);
        let fast = Below::fast(of.scale.blocks(LOG_BLOCKS));
        let grown = ["btree", Rival::DiplOverFtl.key(), Rival::MuStar.key()].map(|system| {
            let growth = of.inserts(system, 0);
            let model = rivals::grow(&growth, &|_| {});
            model.unwrap_or_else(|| tree::grow(&growth, &|_| {})).unwrap()
        });
        let mut btrees = Vec::new();
        for tree in &grown {
            let each = programs(&fast, tree).unwrap();
            let own = programs(&fast, &scattered(tree, tree.blocks, 1, 1)).unwrap();
            let btree = programs(&fast, &scattered(&grown[0], tree.blocks, 1, 1)).unwrap();
            println!("{} blocks: {each:.2}, drawn anew {own:.2}, btree {btree:.2}", tree.blocks);
            assert!((0.9..=1.1).contains(&(own / each)), "{each}, {own}");
            btrees.push((tree.blocks, btree));
        }
        btrees.sort_unstable_by_key(|(blocks, _)| *blocks);
        assert!(btrees.is_sorted_by(|one, next| one.1 < next.1), "{btrees:?}");
    }

    #[test]
    fn c15_no_merges_take_less_than_a_third_and_the_buffer_more_the_fewer_log_blocks_there_are() {
        let of = Experiments::new(Scale { records: 30_000, ..Scale::QUICK }, 1);
        let mut buffered = Vec::new();
        for log_blocks in [4, 16, 64] {
            let seconds = removals(&of, log_blocks).map(|Case { growth, below }| {
                let model = rivals::grow(&growth, &|_| {});
                let grown = model.unwrap_or_else(|| tree::grow(&growth, &|_| {})).unwrap();
                replay(&below, &grown).unwrap().removals.seconds
            });
            let [merging, bare, behind] = seconds;
            println!("N={log_blocks}: {seconds:.1?}");
            let no_merges = reduction(bare, merging);
            assert!(no_merges < 100.0 / 3.0, "{no_merges} % less");
            buffered.push(reduction(behind, bare));
        }
        assert!(buffered.is_sorted_by(|few, more| few > more), "{buffered:?}");
    }
}
