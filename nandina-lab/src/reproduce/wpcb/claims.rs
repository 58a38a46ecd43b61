//! Each claim of the paper, and what shows whether it holds.
//!
//! What is an order or a figure is taken from the experiments of the same report. A property is
//! shown by a test, which is named.

use super::{Experiment, Scale};
use crate::reproduce::{Claim, Row};

/// What shows a claim. A claim has orderings, or a test, or both.
struct Said {
    id: &'static str,
    /// In our words.
    claim: &'static str,
    /// Experiments, and words of their orderings.
    orders: &'static [(&'static str, &'static str)],
    /// Experiments, words of the configuration, and the metric of rows that the paper has as well.
    rows: &'static [(&'static str, &'static str, &'static str)],
    /// Tests of the project, and what else there is to say.
    test: &'static str,
    /// What the tests show, where no ordering says it.
    verdict: Option<&'static str>,
}

/// A claim that tests show.
const fn tested(id: &'static str, claim: &'static str, test: &'static str) -> Said {
    Said { id, claim, orders: &[], rows: &[], test, verdict: Some("holds") }
}

/// A claim that orderings of this report show.
const fn here(
    id: &'static str,
    claim: &'static str,
    orders: &'static [(&'static str, &'static str)],
    rows: &'static [(&'static str, &'static str, &'static str)],
    test: &'static str,
) -> Said {
    Said { id, claim, orders, rows, test, verdict: None }
}

const TIMES: &str = "as printed, against";

/// The claims in the order of their numbers.
const CLAIMS: [Said; 21] = [
    tested(
        "C1",
        "a power failure loses no acknowledged update",
        "nandina torture --systems wpcb --over 'ftl:fast with 2 buffer blocks' --mode exhaustive; \
         nandina-lab over cuts::a_cut_at_every_operation_of_the_chip_loses_nothing",
    ),
    here(
        "C2",
        "leaves that ascending keys filled are not split",
        &[("splits", "ascending keys: wpcb divides no leaf")],
        &[],
        "conformance atomic::a_leaf_that_ascending_keys_filled_is_not_split",
    ),
    tested(
        "C3",
        "the Summary table alone finds a victim",
        "nandina-ftl hybrid transit::figure_6_the_victim_has_the_fewest_pages_and_its_newest_are_written_in_order",
    ),
    Said {
        verdict: Some("in part"),
        ..tested(
            "C4",
            "after a reboot all buffer blocks are merged",
            "nandina-ftl hybrid transit_mounts::converting_all_at_a_mount_as_printed_costs_programs_that_a_reading_mount_saves: \
             a mount only reads, unless told otherwise",
        )
    },
    here(
        "C5",
        "a conversion costs O(pages of a block)",
        &[("figure10", "a conversion writes at most the pages of a block")],
        &[],
        "nandina-ftl hybrid conversions::a_conversion_reads_and_writes_at_most_the_pages_of_its_block",
    ),
    here(
        "C6",
        "a lookup reads each node once",
        &[("section5", "a lookup reads at most as many pages as the tree is high")],
        &[],
        "nandina-lab over lookups::a_lookup_reads_as_many_pages_as_the_tree_is_high_over_every_ftl",
    ),
    here(
        "C7",
        "an insert reads as many nodes as the tree is high",
        &[("section5", "an insert reads")],
        &[("section5", "(1) inserts", "reads")],
        "page buffers keep the root and what was read last",
    ),
    here(
        "C8",
        "ascending keys split the B-tree's leaves every m/2 inserts, three writes each, and not those of WPCB",
        &[
            ("splits", "ascending keys: the B-tree that merges divides"),
            ("splits", "ascending keys: wpcb divides no leaf"),
        ],
        &[
            ("splits", "ascending keys", "leaves divided"),
            ("splits", "ascending keys", "writes of an insert that divides or opens"),
        ],
        "",
    ),
    here(
        "C9",
        "removals merge and rotate nothing; in the B-tree each takes three writes",
        &[("splits", "removals: wpcb"), ("splits", "removals: btree-")],
        &[("splits", "removals", "writes of a removal that merges or rotates")],
        "",
    ),
    here(
        "C10",
        "128 buffer blocks suffice",
        &[("figure10", "beyond C = 128 erases fall by less than a tenth, as printed")],
        &[],
        "",
    ),
    here(
        "C11",
        "WPCB needs the fewest reads, programs and erases at every rs",
        &[("figure11", "as printed needs fewer")],
        &[],
        "",
    ),
    here(
        "C12",
        "erases are half of the others', a third of the B-tree's at rs = 1",
        &[("figure11", "about half of the erases")],
        &[("figure11", "as printed, by", "erases")],
        "cause: c12",
    ),
    here(
        "C13",
        "creation takes 38.7, 50.9 and 67.2 % less time than dIPL's, μ*'s and the B-tree's",
        &[("figure12", "creation: WPCB as printed takes")],
        &[("figure12", TIMES, "creation")],
        "cause: c13, log-blocks",
    ),
    here(
        "C14",
        "searches take 14.3 and 11.1 % less time than dIPL's and μ*'s",
        &[("figure12", "search: WPCB as printed takes")],
        &[("figure12", TIMES, "search")],
        "",
    ),
    here(
        "C15",
        "removals take 57.7, 71.2 and 93.4 % less time than dIPL's, μ*'s and the B-tree's",
        &[("figure12", "delete: WPCB as printed takes")],
        &[("figure12", TIMES, "delete")],
        "cause: c15",
    ),
    here(
        "C16",
        "blocks: half at rs = 1, fewer at 0.5, a few more at 0",
        &[("figure13", "blocks"), ("figure14", "blocks"), ("figure15", "blocks")],
        &[("figure13", "as printed, by", "blocks")],
        "",
    ),
    here(
        "C17",
        "the log area of dIPL overflows more often",
        &[("figure11", "log areas overflow more often")],
        &[],
        "",
    ),
    here(
        "C18",
        "μ* fills pages sooner as the tree grows higher",
        &[("mu-star", "fewer records in a page")],
        &[],
        "",
    ),
    here(
        "C19",
        "the least worn block for each buffer block eases wear",
        &[("fills", "no block has many more erases than the mean")],
        &[],
        "nandina-ftl hybrid transit_wear::the_least_worn_block_for_each_buffer_block_eases_its_wear",
    ),
    here(
        "C20",
        "random writes through an FTL cost about four times sequential ones",
        &[("figure2", "four times")],
        &[("figure2", "FAST", "programs")],
        "",
    ),
    here(
        "C21",
        "the properties of nine trees in Table 2, all 72",
        &[("table2", "printed")],
        &[],
        "",
    ),
];

/// The figures of these rows that the paper has too: its own, and the least and the most of ours.
fn beside<'r>(rows: impl Iterator<Item = &'r Row>) -> Vec<String> {
    let mut found: Vec<(f64, f64, f64, &str)> = Vec::new();
    for row in rows {
        let Some(paper) = row.paper else { continue };
        match found.iter_mut().find(|of| (of.0, of.3) == (paper, row.unit)) {
            None => found.push((paper, row.measured, row.measured, row.unit)),
            Some(of) => (of.1, of.2) = (of.1.min(row.measured), of.2.max(row.measured)),
        }
    }
    let text = |&(paper, least, most, unit): &(f64, f64, f64, &str)| {
        let digits = if unit.starts_with('%') { 1 } else { 3 };
        let range = if least == most { String::new() } else { format!("{least:.digits$} to ") };
        format!("paper {paper:.digits$}, here {range}{most:.digits$} {unit}")
    };
    found.iter().map(text).collect()
}

impl Said {
    /// The orderings that say whether it holds.
    fn found(&self, experiments: &[Experiment]) -> Vec<(String, bool)> {
        let mut all = Vec::new();
        for (id, words) in self.orders {
            let of = experiments.iter().filter(|experiment| experiment.id == *id);
            let of = of.flat_map(|experiment| &experiment.orderings);
            let before = all.len();
            all.extend(of.filter(|(text, _)| text.contains(words)).cloned());
            // A claim without an ordering would hold by itself.
            assert!(all.len() > before, "no ordering of {id} says '{words}'");
        }
        all
    }

    fn judged(&self, experiments: &[Experiment]) -> Claim {
        let found = self.found(experiments);
        let held = found.iter().filter(|(_, holds)| *holds).count();
        let verdict = self.verdict.unwrap_or(match held {
            held if held == found.len() => "holds",
            0 => "does not hold",
            _ => "in part",
        });
        let mut measured = Vec::new();
        if found.len() > 1 {
            measured.push(format!("{held} of {} orderings", found.len()));
        }
        let rows = self.rows.iter().flat_map(|(id, config, metric)| {
            let of = experiments.iter().filter(move |experiment| experiment.id == *id);
            let rows = of.flat_map(|experiment| &experiment.rows);
            rows.filter(move |row| row.metric == *metric && row.config.contains(config))
        });
        measured.extend(beside(rows));
        let mut ids: Vec<&str> = self.orders.iter().map(|(id, _)| *id).collect();
        ids.dedup();
        let shown = [ids.join(", "), self.test.into()];
        let shown: Vec<_> = shown.into_iter().filter(|text| !text.is_empty()).collect();
        let measured = if measured.is_empty() { "-".into() } else { measured.join("; ") };
        let (id, claim, shown_by) = (self.id, self.claim, shown.join("; "));
        Claim { id, claim, shown_by, measured, verdict }
    }
}

/// The verdicts.
pub fn experiment(experiments: &[Experiment], scale: Scale) -> Experiment {
    let title = "The claims of the paper";
    let mut claims = Experiment::of("claims", title, Vec::new());
    claims.claims = CLAIMS.iter().map(|said| said.judged(experiments)).collect();
    if scale.quick {
        claims.notes.push("The verdicts of a quick run are of a smaller tree.".into());
    }
    claims
}
