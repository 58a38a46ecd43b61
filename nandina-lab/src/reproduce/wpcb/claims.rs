//! Each claim of the paper, and what shows whether it holds.

use super::{Experiment, Scale};

/// What shows a claim.
enum Shown {
    /// All orderings of these experiments whose text contains these words.
    Here(&'static [&'static str], &'static str),
    /// A test of the project, or a report of its own.
    Elsewhere(&'static str),
}

use Shown::{Elsewhere, Here};

/// The claims in the order of their numbers: where, in our words, and what shows them.
const CLAIMS: [(&str, &str, Shown); 21] = [
    (
        "C1",
        "a power failure loses no acknowledged update",
        Elsewhere(
            "nandina torture --systems wpcb --over 'ftl:fast with 2 buffer blocks' --mode exhaustive",
        ),
    ),
    (
        "C2",
        "leaves that ascending keys filled are not split",
        Elsewhere("conformance atomic::a_leaf_that_ascending_keys_filled_is_not_split"),
    ),
    (
        "C3",
        "the Summary table alone finds a victim",
        Elsewhere("nandina-ftl hybrid transit::figure_6"),
    ),
    (
        "C4",
        "after a reboot all buffer blocks are merged",
        Elsewhere(
            "nandina-ftl hybrid transit_mounts::converting_all_at_a_mount; a mount reads only, unless told otherwise",
        ),
    ),
    (
        "C5",
        "a conversion costs O(pages of a block)",
        Elsewhere("nandina-ftl hybrid transit::the_summary_table and the counts of Figure 10"),
    ),
    (
        "C6",
        "a lookup reads each node once",
        Elsewhere("nandina-ftl hybrid transit::a_page_is_read_once_with_the_buffer_as_without"),
    ),
    (
        "C7",
        "an insert reads as many nodes as the tree is high",
        Elsewhere("section5 of this report: fewer, because of page buffers"),
    ),
    (
        "C8",
        "ascending keys split the B-tree's leaves, and not those of WPCB",
        Here(&["figure13"], "half of the blocks of B-tree that merges"),
    ),
    (
        "C9",
        "removals merge and rotate nothing",
        Elsewhere("section5 of this report: writes of a removal"),
    ),
    ("C10", "128 buffer blocks suffice", Here(&["figure10"], "beyond C = 128")),
    (
        "C11",
        "WPCB needs the fewest reads, programs and erases at every rs",
        Here(&["figure11"], "as printed needs fewer"),
    ),
    (
        "C12",
        "erases are half of the others', a third of the B-tree's at rs = 1",
        Here(&["figure11"], "about half of the erases"),
    ),
    (
        "C13",
        "creation takes 38.7, 50.9 and 67.2 % less time than dIPL's, μ*'s and the B-tree's",
        Here(&["figure12"], "creation: WPCB as printed takes"),
    ),
    (
        "C14",
        "searches take 14.3 and 11.1 % less time than dIPL's and μ*'s",
        Here(&["figure12"], "search: WPCB as printed takes"),
    ),
    (
        "C15",
        "removals take 57.7, 71.2 and 93.4 % less time than dIPL's, μ*'s and the B-tree's",
        Here(&["figure12"], "delete: WPCB as printed takes"),
    ),
    (
        "C16",
        "blocks: half at rs = 1, fewer at 0.5, a few more at 0",
        Here(&["figure13", "figure14", "figure15"], "blocks"),
    ),
    (
        "C17",
        "the log area of dIPL overflows more often",
        Here(&["figure11"], "log areas overflow more often"),
    ),
    (
        "C18",
        "μ* fills pages sooner as the tree grows higher",
        Here(&["mu-star"], "fewer records in a page"),
    ),
    (
        "C19",
        "the least worn block for each buffer block eases wear",
        Elsewhere(
            "nandina-ftl hybrid transit_wear::the_least_worn_block_for_each_buffer_block_eases_its_wear; wear in fills of this report",
        ),
    ),
    (
        "C20",
        "random writes through an FTL cost about four times sequential ones",
        Here(&["figure2"], "four times"),
    ),
    ("C21", "the properties of nine trees in Table 2, all 72", Here(&["table2"], "printed")),
];

/// The verdicts.
pub fn experiment(experiments: &[Experiment], scale: Scale) -> Experiment {
    let title = "The claims of the paper";
    let mut claims = Experiment::of("claims", title, Vec::new());
    for (id, claim, shown) in CLAIMS {
        match shown {
            Here(ids, words) => {
                let found = experiments.iter().filter(|found| ids.contains(&found.id));
                let found = found.flat_map(|found| &found.orderings);
                let mut of: Vec<bool> = found
                    .filter(|(text, _)| text.contains(words))
                    .map(|(_, holds)| *holds)
                    .collect();
                // A claim without an ordering would hold by itself.
                assert!(!of.is_empty(), "no ordering of {ids:?} says '{words}'");
                of.dedup();
                claims
                    .orderings
                    .push((format!("{id}: {claim} ({})", ids.join(", ")), of == [true]));
            }
            Elsewhere(shown) => claims.notes.push(format!("{id}: {claim}: {shown}")),
        }
    }
    if scale.quick {
        claims.notes.push("The verdicts of a quick run are of a smaller tree.".into());
    }
    claims
}
