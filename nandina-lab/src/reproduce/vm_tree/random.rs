//! Section 5.1: inserts and lookups of ten thousand random records of 16 bytes.
//!
//! Figure 6 is on the 32-bit board, Figure 7 on the 16-bit board.

use nandina::flash::Profile;

use super::case::{Case, Costs};
use super::series::Kind;
use super::{Claims, SYSTEMS, bars, board_16, board_32};
use crate::reproduce::{Experiment, Row};

/// Pages of the write buffer in Figure 6.
const LOGS: [usize; 4] = [0, 1, 2, 4];

fn figure_6_cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for chip in board_32() {
        for pages in LOGS {
            cases.extend(
                SYSTEMS.map(|system| Case::new(system, chip, Kind::Random).buffering(pages)),
            );
        }
    }
    cases
}

fn figure_7_cases() -> Vec<Case> {
    let [card, nand] = board_16();
    let systems = [("btree", card), ("vm", card), ("vm", nand)];
    let case = |pages| {
        systems.map(|(system, chip)| Case::new(system, chip, Kind::Random).buffering(pages))
    };
    [0, 1].into_iter().flat_map(case).collect()
}

/// The DataFlash, if it erased a block page by page.
///
/// Each page would take as long as in an erase-then-write.
fn erased_by_page() -> Profile {
    let [_, mut chip] = board_32();
    chip.timing.erase_ns = u64::from(chip.geometry.pages_per_block) * chip.timing.rewrite_extra_ns;
    chip
}

/// A card whose random writes are as fast as sequential ones.
fn without_random(mut chip: Profile) -> Profile {
    chip.timing.random_program_extra_ns = 0;
    chip
}

/// The DataFlash, if it programmed a page without erase in half the time.
fn programmed_fast() -> Profile {
    let [_, mut chip] = board_32();
    chip.timing.program_ns /= 2;
    chip.timing.rewrite_extra_ns += chip.timing.program_ns;
    chip
}

/// A run in which the suspected cause of a difference is changed.
struct Suspect {
    what: &'static str,
    chip: Profile,
    system: &'static str,
    metric: &'static str,
    paper: f64,
}

const SLOWER: &str = "time by btree's";

fn suspects() -> [Suspect; 4] {
    let ([card_32, _], [card_16, _]) = (board_32(), board_16());
    let vm = |what, chip, paper| Suspect { what, chip, system: "vm", metric: SLOWER, paper };
    [
        vm("sd, random writes as fast", without_random(card_32), 1.0),
        vm("sd-2k, random writes as fast", without_random(card_16), 1.091),
        vm("dataflash, erased page by page", erased_by_page(), 1.02),
        Suspect {
            what: "dataflash, program in 1.5 ms",
            chip: programmed_fast(),
            system: "vm-ow",
            metric: "throughput by btree's",
            paper: 4.0,
        },
    ]
}

impl Suspect {
    /// The run, and the B-tree's.
    fn cases(&self) -> [Case; 2] {
        [self.system, "btree"].map(|system| Case::new(system, self.chip, Kind::Random))
    }
}

fn suspect_cases() -> Vec<Case> {
    suspects().iter().flat_map(Suspect::cases).collect()
}

/// The cases of the figures.
pub fn cases() -> Vec<Case> {
    [figure_6_cases(), figure_7_cases(), suspect_cases()].concat()
}

/// The differences from the paper, with the suspected causes changed.
pub fn causes(costs: &Costs) -> Experiment {
    let title = "Figures 6 and 7 with the suspected causes of their differences changed";
    let mut claims = Claims::new(costs, "causes", title, &suspect_cases());
    for suspect in suspects() {
        let [system, btree] = suspect.cases();
        if let Some((ours, btree)) = claims.pair(&system, &btree, "insert") {
            let Suspect { what, system, metric, paper, .. } = suspect;
            let slower = ours.ms / btree.ms;
            let ratio = if metric == SLOWER { slower } else { 1.0 / slower };
            claims.experiment.rows.push(Row::beside(system, what, metric, paper, ratio, "ratio"));
        }
    }
    claims.done()
}

/// Rows of an insertion and of a query.
pub fn rows(costs: &Costs, case: &Case) -> Vec<Row> {
    let mut rows = Vec::new();
    if let Some(insert) = costs.mean(case, "insert") {
        let config = case.config();
        let mut row =
            |metric, value, unit| rows.push(Row::alone(case.system, &config, metric, value, unit));
        row("reads_per_insert", insert.reads, "pages");
        row("writes_per_insert", insert.writes, "pages");
        row("inserts_a_second", insert.a_second(), "1/s");
        if let Some(query) = costs.mean(case, "query") {
            row("reads_per_query", query.reads, "pages");
        }
    }
    rows
}

/// Figure 6.
pub fn figure_6(costs: &Costs) -> Experiment {
    let cases = figure_6_cases();
    let title =
        "Figure 6: random records of 16 bytes on the 32-bit board, by pages of write buffer";
    let mut claims = Claims::new(costs, "figure6", title, &cases);
    claims.experiment.rows = cases.iter().flat_map(|case| rows(costs, case)).collect();
    let [card, dataflash] = board_32();
    let at = |system, chip| Case::new(system, chip, Kind::Random);
    let config = "sd random M3 L0";
    if let Some((vm, btree)) = claims.pair(&at("vm", card), &at("btree", card), "insert") {
        let ratio = vm.operations() / btree.operations();
        let range = (0.97, 1.03);
        let rows = &mut claims.experiment.rows;
        let metric = "operations by btree's (within 3 %)";
        rows.push(Row::in_range("vm", config, metric, range, ratio, "ratio"));
        let metric = "time by btree's (within 3 %, with processor)";
        rows.push(Row::in_range("vm", config, metric, range, vm.ms / btree.ms, "ratio"));
        let claim = "sd: VMTree's chip operations are within 3 % of the B-tree's, or fewer";
        claims.claim(claim, ratio <= 1.03);
    }
    if let Some((ow, btree)) = claims.pair(&at("vm-ow", card), &at("btree", card), "insert") {
        let metric = "time by btree's";
        let rows = &mut claims.experiment.rows;
        rows.push(Row::beside("vm-ow", config, metric, 1.08, ow.ms / btree.ms, "ratio"));
    }
    let config = "dataflash random M3 L0";
    let (vm, btree) = (at("vm", dataflash), at("btree", dataflash));
    if let Some((vm, btree)) = claims.pair(&vm, &btree, "insert") {
        let rows = &mut claims.experiment.rows;
        let metric = "time by btree's";
        rows.push(Row::beside("vm", config, metric, 1.02, vm.ms / btree.ms, "ratio"));
        let ratio = vm.operations() / btree.operations();
        let metric = "operations by btree's (time within 2 %)";
        rows.push(Row::in_range("vm", config, metric, (0.98, 1.02), ratio, "ratio"));
    }
    if let Some((ow, btree)) = claims.pair(&at("vm-ow", dataflash), &btree, "insert") {
        let rows = &mut claims.experiment.rows;
        let metric = "throughput by btree's";
        rows.push(Row::beside("vm-ow", config, metric, 4.0, btree.ms / ow.ms, "ratio"));
        claims.claim("dataflash: VMTree-OW inserts fastest of all", {
            let others = SYSTEMS[..2].iter().map(|system| at(system, dataflash));
            others.filter_map(|case| costs.mean(&case, "insert")).all(|other| ow.ms < other.ms)
        });
    }
    for chip in board_32() {
        for system in SYSTEMS {
            let by_log = LOGS.map(|pages| at(system, chip).buffering(pages));
            let inserts: Vec<_> =
                by_log.iter().filter_map(|case| costs.mean(case, "insert")).collect();
            if inserts.len() == LOGS.len() {
                let claim =
                    format!("{} {system}: a larger write buffer costs fewer operations", chip.key);
                let falls = |small: &_, large: &_| operations(large) < operations(small);
                claims.claim(claim, inserts.is_sorted_by(falls));
            }
        }
        let queries: Vec<_> = SYSTEMS
            .iter()
            .filter_map(|system| costs.mean(&at(system, chip), "query"))
            .map(|query| query.reads)
            .collect();
        if queries.len() > 1 {
            let claim =
                format!("{}: a query reads as many pages in every variant (to 2 %)", chip.key);
            claims
                .claim(claim, queries.iter().all(|reads| (reads / queries[0] - 1.0).abs() <= 0.02));
        }
    }
    let label = |case: &Case| format!("{} L{} {}", case.chip.key, case.write_buffer, case.system);
    let throughput = |case: &Case| Some(costs.mean(case, "insert")?.a_second());
    let drawn = claims.bars(&cases, label, throughput);
    let (title, x) = ("Inserts of random records, 32-bit board", "device, pages of write buffer");
    let y = "inserts a second, by the chip's latencies";
    claims.experiment.figures.push(bars("vmtree-figure6", title, x, y, drawn));
    claims.done()
}

fn operations(mean: &super::Mean) -> f64 {
    mean.operations()
}

/// Figure 7: pairs by reads, writes and time.
pub fn figure_7(costs: &Costs) -> Experiment {
    let cases = figure_7_cases();
    let title = "Figure 7: random records of 16 bytes on the 16-bit board";
    let mut claims = Claims::new(costs, "figure7", title, &cases);
    claims.experiment.rows = cases.iter().flat_map(|case| rows(costs, case)).collect();
    let [card, nand] = board_16();
    let at = |system, chip| Case::new(system, chip, Kind::Random);
    let config = "sd-2k random M3 L0";
    if let Some((vm, btree)) = claims.pair(&at("vm", card), &at("btree", card), "insert") {
        let pairs = [
            ("reads by btree's", 1.022, vm.reads / btree.reads),
            ("writes by btree's", 1.005, vm.writes / btree.writes),
            ("time by btree's (with processor)", 1.091, vm.ms / btree.ms),
        ];
        let row = |(metric, paper, ours)| Row::beside("vm", config, metric, paper, ours, "ratio");
        claims.experiment.rows.extend(pairs.map(row));
    }
    let (on_nand, on_card) = (at("vm", nand), at("vm", card));
    if let Some((on_nand, on_card)) = claims.pair(&on_nand, &on_card, "insert") {
        let ratio = on_nand.operations() / on_card.operations();
        let config = "nand-2k random M3 L0";
        let metric = "operations by those on the card";
        claims.experiment.rows.push(Row::beside("vm", config, metric, 1.0, ratio, "ratio"));
        claims.claim("VMTree is faster on NAND than on the card", on_nand.ms < on_card.ms);
        if let Some(btree) = costs.mean(&at("btree", card), "insert") {
            let claim = "VMTree on NAND is faster than the B-tree on the card";
            claims.claim(claim, on_nand.ms < btree.ms);
        }
    }
    let label = |case: &Case| format!("{} L{} {}", case.chip.key, case.write_buffer, case.system);
    let throughput = |case: &Case| Some(costs.mean(case, "insert")?.a_second());
    let drawn = claims.bars(&cases, label, throughput);
    let (title, x) = ("Inserts of random records, 16-bit board", "device, pages of write buffer");
    let y = "inserts a second, by the chip's latencies";
    claims.experiment.figures.push(bars("vmtree-figure7", title, x, y, drawn));
    claims.done()
}
