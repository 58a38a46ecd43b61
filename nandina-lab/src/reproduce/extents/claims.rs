//! A verdict on each claim of the paper: whether it holds here, with our figure.
//!
//! Where a claim does not hold, the words after "because" are the cause, and the figure in them is
//! its test. What was fitted is said to be: on it no verdict is evidence.

use super::hybrid::{FEW, TYPICAL};
use super::lemmas::{BITS, Lemmas};
use super::memory::{Shares, page_map, shares};
use super::published::{
    EMT_NODE, FOUND_MOST, GENERATED_MOST, HMT_BY_PMT, OF_HMT, OF_PMT, OVERLAPPED_MOST, TABLE_2,
};
use super::{Case, SpewCase, hybrid};
use crate::LabError;
use crate::reproduce::Experiment;

/// The verdicts, in the order of the claims.
struct Verdicts(Vec<(String, bool)>);

impl Verdicts {
    fn add(&mut self, id: &str, holds: bool, words: impl AsRef<str>) {
        self.0.push((format!("{id}: {}", words.as_ref()), holds));
    }
}

/// The words, each behind the name of its trace.
fn listed<'c>(cases: &'c [Case], of: impl Fn(&'c Case) -> String) -> String {
    let parts: Vec<_> =
        cases.iter().map(|case| format!("{} {}", case.recipe.key, of(case))).collect();
    parts.join(", ")
}

fn most(values: impl Iterator<Item = f64>) -> f64 {
    values.fold(f64::NEG_INFINITY, f64::max)
}

fn least(values: impl Iterator<Item = f64>) -> f64 {
    values.fold(f64::INFINITY, f64::min)
}

/// The verdicts on all claims.
pub fn experiment(
    cases: &[Case],
    spew: &[SpewCase],
    lemmas: &Lemmas,
    pointer_free: Option<f64>,
    quick: bool,
) -> Result<Experiment, LabError> {
    let mut verdicts = Verdicts(Vec::new());
    against_maps(&mut verdicts, cases, quick)?;
    in_spaces(&mut verdicts, spew)?;
    vet_and_emt(&mut verdicts, cases)?;
    ways(&mut verdicts, cases, pointer_free)?;
    canonical(&mut verdicts, cases)?;
    proofs(&mut verdicts, cases, lemmas);
    times(&mut verdicts, cases)?;
    let title = "The claims of the paper";
    let mut experiment = Experiment::of("claims", title, Vec::new());
    if quick {
        experiment.refusals.push("c2 and c3: they are of whole traces".into());
    }
    if pointer_free.is_none() {
        experiment.refusals.push("c12's cache misses: Figure 13 was not run".into());
    }
    experiment.orderings = verdicts.0;
    Ok(experiment)
}

/// The per cent of VET and of EMT.
fn percents([vet, emt]: [f64; 2]) -> String {
    format!("{vet:.1} and {emt:.1} %")
}

/// Whether ours is within this part of the paper's.
fn near(ours: f64, paper: f64, part: f64) -> bool {
    (ours / paper - 1.0).abs() <= part
}

/// c1 to c5: memory on the traces.
fn against_maps(verdicts: &mut Verdicts, cases: &[Case], quick: bool) -> Result<(), LabError> {
    let shares: Vec<_> = cases.iter().map(shares).collect::<Result<_, _>>()?;
    let by = |vet: f64, emt: f64| format!("{:.1} and {:.1}", 100.0 / vet, 100.0 / emt);
    let all = shares.iter().zip(cases);
    let words: Vec<_> = all
        .map(|(share, case)| format!("{} {}", case.recipe.key, by(share.vet, share.emt)))
        .collect();
    let reached = most(shares.iter().map(|share| 100.0 / share.emt));
    let words = format!("the page map is larger than VET and EMT by {} times", words.join(", "));
    verdicts.add("c1", reached >= 10.0, words);

    for (id, name, printed, part) in [("c2", "PMT", OF_PMT, 1.0), ("c3", "HMT", OF_HMT, HMT_BY_PMT)]
    {
        let compared = shares.iter().zip(cases).zip(printed);
        for ((share, case), [vet, emt]) in compared.filter(|_| !quick) {
            let (ours_vet, ours_emt) = (share.vet / part, share.emt_32 / part);
            let holds = near(ours_vet, vet, 0.15) && near(ours_emt, emt, 0.15);
            let gib = case.recipe.space_gib.0;
            let implied = TABLE_2[3][0] / OF_PMT[3][0] * 100.0;
            let because = match (case.recipe.key, holds) {
                (_, true) => "fitted".to_string(),
                ("wsf", false) => {
                    format!("because 27.9 % of the map of {gib} GB would be {:.1} MB, and Table 2 prints 4.69: its percentages need a map of {implied:.1} MB", 0.279 * gib as f64)
                }
                _ => "because the fit met Table 1, canonical extents and EMT's extents, and not VET's internal nodes as well".into(),
            };
            let of = |logs| {
                [share.vet, share.emt_32].map(|ours| 100.0 * ours / hybrid::share(logs, gib))
            };
            let besides = match id {
                "c3" => format!(
                    "; of the map of our bast or fast with {} {}, with {} {}",
                    FEW.words,
                    percents(of(&FEW)),
                    TYPICAL.words,
                    percents(of(&TYPICAL))
                ),
                _ => String::new(),
            };
            verdicts.add(id, holds, format!(
                "{} of {name}: VET {ours_vet:.1} % (paper {vet}), EMT with nodes of {EMT_NODE} bytes {ours_emt:.1} % ({emt}): {because}{besides}",
                case.recipe.key
            ));
        }
    }
    let largest = most(shares.iter().flat_map(|share| [share.vet, share.emt]));
    let words = format!(
        "an extent map takes at most {largest:.1} % of PMT, and {:.1} % of HMT",
        largest / HMT_BY_PMT
    );
    verdicts.add("c4", largest / HMT_BY_PMT < 100.0, words);
    for (logs, because) in [
        (TYPICAL, ""),
        (
            FEW,
            "because that map has 4 bytes for each block of 64 pages and little else; what it saves is paid in merges",
        ),
    ] {
        let of = |(share, case): (&Shares, &Case)| {
            let hybrid = hybrid::share(&logs, case.recipe.space_gib.0);
            100.0 * share.vet.max(share.emt) / hybrid
        };
        let largest = most(shares.iter().zip(cases).map(of));
        let holds = largest < 100.0;
        let cause = if holds { String::new() } else { format!(": {because}") };
        let words = format!(
            "an extent map takes at most {largest:.1} % of the map of our bast or fast with {}{cause}",
            logs.words
        );
        verdicts.add(&format!("c4 ({})", logs.words), holds, words);
    }
    let ratios: Vec<_> =
        shares.iter().map(|share| (share.vet / share.emt, share.vet / share.emt_32)).collect();
    let [ours, paper] =
        [most(ratios.iter().map(|ratio| ratio.0)), most(ratios.iter().map(|ratio| ratio.1))];
    let words = format!(
        "VET takes at most {paper:.1} times EMT's memory with its nodes of {EMT_NODE} bytes, {ours:.1} times with ours of 24"
    );
    verdicts.add("c5", (2.0..4.0).contains(&paper), words);
    Ok(())
}

/// c6 and c7: memory on Spew.
fn in_spaces(verdicts: &mut Verdicts, spew: &[SpewCase]) -> Result<(), LabError> {
    let (Some(first), Some(last)) = (spew.first(), spew.last()) else { return Ok(()) };
    let used = |case: &SpewCase, map: &str| Ok::<_, LabError>(case.whole.of(map)?.used as f64);
    let growth = |map| Ok::<_, LabError>(used(last, map)? / used(first, map)?);
    let (vet, emt) = (growth("vet")?, growth("emt")?);
    let spaces = last.space_gib as f64 / first.space_gib as f64;
    let words = format!(
        "in a space {spaces} times as large VET grows to {vet:.2} and EMT to {emt:.2} of its memory, PMT to {spaces}"
    );
    verdicts.add("c6", vet < 3.0 && emt < 3.0, words);
    let (vet, emt) = (used(last, "vet")?, used(last, "emt")?);
    let page = page_map(last.space_gib);
    let words = format!(
        "in the largest space PMT is {:.0} times EMT and {:.0} times VET",
        page / emt,
        page / vet
    );
    verdicts.add("c7 (page map)", page / emt >= 100.0, words);
    let entries = |map| Ok::<_, LabError>(last.whole.of(map)?.entries as f64);
    let words = format!(
        "there VET takes {:.1} times EMT's memory (paper 7): {:.1} nodes of 20 bytes for each extent of 24; with nodes of {EMT_NODE} bytes {:.1} times",
        vet / emt,
        entries("vet")? / entries("emt")?,
        vet / (entries("emt")? * EMT_NODE)
    );
    verdicts.add("c7 (VET by EMT)", near(vet / emt, 7.0, 0.25), words);
    Ok(())
}

/// c8 and c9: times of VET and EMT.
fn vet_and_emt(verdicts: &mut Verdicts, cases: &[Case]) -> Result<(), LabError> {
    let ratios: Vec<_> = cases
        .iter()
        .map(|case| {
            let (vet, emt) = (case.whole.of("vet")?, case.whole.of("emt")?);
            let of = |ours: [f64; 2], by: [f64; 2]| [0, 1].map(|at| ours[at] / by[at]);
            Ok::<_, LabError>((of(vet.ns, emt.ns), of(vet.look_up_ns, emt.look_up_ns)))
        })
        .collect::<Result<_, _>>()?;
    let words = |of: &dyn Fn(usize) -> f64| {
        let one = |(at, case): (usize, &Case)| format!("{} {:.2}", case.recipe.key, of(at));
        cases.iter().enumerate().map(one).collect::<Vec<_>>().join(", ")
    };
    let write = |at: usize| ratios[at].0[0];
    let slowest = least((0..ratios.len()).map(write));
    let mut text =
        format!("a write to VET takes {} of EMT's time (paper: up to 10)", words(&write));
    if slowest < 1.0 {
        let worst = (0..cases.len()).min_by(|&a, &b| write(a).total_cmp(&write(b)));
        if let Some(case) = worst.and_then(|at| cases.get(at)) {
            let (vet, emt) = (case.small.of("vet")?, case.small.of("emt")?);
            text += &format!(
                ": because each of {}'s writes descends a tree of {} extents, of which the caches hold a part; \
                 while there are {} extents, the ratio is {:.2}",
                case.recipe.key,
                case.whole.of("emt")?.entries,
                emt.entries,
                vet.ns[0] / emt.ns[0]
            );
        }
    }
    verdicts.add("c8", slowest > 1.0, text);
    let read = |at: usize| ratios[at].0[1];
    let [hit, hole] = [0, 1].map(|which| words(&|at: usize| ratios[at].1[which]));
    let slowest_read = most((0..ratios.len()).map(read));
    let holds = slowest_read < 1.0;
    let text = format!("VET reads in {} of EMT's time", words(&read));
    let text = match holds {
        true => text,
        false => format!(
            "{text}: because it depends on what reads meet: a mapped unit takes {hit} of EMT's time, one in a hole {hole}"
        ),
    };
    verdicts.add("c9", holds, text);
    Ok(())
}

/// c10 to c12: the ways to build VET.
fn ways(
    verdicts: &mut Verdicts,
    cases: &[Case],
    pointer_free: Option<f64>,
) -> Result<(), LabError> {
    let ratio = |way: &str, of: fn(&super::measured::Cost) -> f64| {
        let ratio =
            |case: &Case| Ok::<_, LabError>(of(case.ways.of(way)?) / of(case.ways.of("vet")?));
        cases.iter().map(ratio).collect::<Result<Vec<_>, _>>()
    };
    let words = |ratios: &[f64]| {
        let one = |(case, ratio): (&Case, &f64)| format!("{} {ratio:.2}", case.recipe.key);
        cases.iter().zip(ratios).map(one).collect::<Vec<_>>().join(", ")
    };
    let above = |ratios: &[f64]| ratios.iter().all(|&ratio| ratio > 1.0);
    let lis = ratio("vet-lis", |cost| cost.used as f64)?;
    verdicts.add("c10 (memory)", above(&lis), format!("LIS takes {} of BIS's memory", words(&lis)));
    let lis = ratio("vet-lis", |cost| cost.ns[0])?;
    verdicts.add(
        "c10 (writes)",
        above(&lis),
        format!("LIS writes in {} of BIS's time (paper: 0.92 on wdev)", words(&lis)),
    );
    let lis = ratio("vet-lis", |cost| cost.ns[1])?;
    let work = ratio("vet-lis", |cost| cost.work[1])?;
    let mut text = format!("LIS reads in {} of BIS's time", words(&lis));
    if !above(&lis) {
        text += &format!(
            ": because a search looks at the same lengths in both, and ends later only by longer chains: it touches {} of BIS's entries",
            words(&work)
        );
    }
    verdicts.add("c10 (reads)", above(&lis), text);
    for (table, name) in [("vet-cuckoo", "cuckoo-hash"), ("vet-intrusive", "uthash")] {
        let memory = ratio(table, |cost| cost.used as f64)?;
        let mut text = format!("{name} takes {} of myhash's memory", words(&memory));
        if !above(&memory) {
            text += ": because its nodes are 12 bytes without the chain's two words, so that it takes less where its buckets, a power of two, are more than three fifths full";
        }
        verdicts.add("c11 (memory)", above(&memory), text);
        for (at, side) in ["writes", "reads"].into_iter().enumerate() {
            let of: fn(&super::measured::Cost) -> f64 =
                if at == 0 { |cost| cost.ns[0] } else { |cost| cost.ns[1] };
            let work: fn(&super::measured::Cost) -> f64 =
                if at == 0 { |cost| cost.work[0] } else { |cost| cost.work[1] };
            let (time, work) = (ratio(table, of)?, ratio(table, work)?);
            let mut text = format!("{name} {side} in {} of myhash's time", words(&time));
            let why = match table {
                "vet-cuckoo" => {
                    "more, but four lie side by side, and no chain leads from one to the next"
                }
                _ => "and a removal does not walk the chain",
            };
            if !above(&time) {
                text += &format!(": because it touches {} of its entries, {why}", words(&work));
            }
            verdicts.add(&format!("c11 ({side})"), above(&time), text);
        }
    }
    let pointers = ratio("vet-pointers", |cost| cost.ns[0])?;
    let reads = ratio("vet-pointers", |cost| cost.ns[1])?;
    let text = format!(
        "with pointers writes take {} and reads {} of the time without (paper: up to 1.1)",
        words(&pointers),
        words(&reads)
    );
    verdicts.add("c12 (time)", most(pointers.iter().chain(&reads).copied()) > 1.0, text);
    if let Some(faster) = pointer_free {
        let text = format!(
            "by misses and instructions of cachegrind leaves without pointers are up to {faster:.1} % faster (paper: about 10)"
        );
        verdicts.add("c12 (caches)", faster > 0.0, text);
    }
    Ok(())
}

/// c13 and c14: canonical extents.
fn canonical(verdicts: &mut Verdicts, cases: &[Case]) -> Result<(), LabError> {
    let generated = most(cases.iter().map(|case| case.counts.generated_mean()));
    let text = format!(
        "a write generates {} canonical extents (fitted; paper: at most {GENERATED_MOST})",
        listed(cases, |case| format!("{:.2}", case.counts.generated_mean()))
    );
    verdicts.add("c13 (generated)", generated <= GENERATED_MOST, text);
    type Means = fn(&super::counts::Counts) -> [f64; 2];
    let sides: [(&str, f64, Means, &str); 2] = [
        (
            "a write overlaps",
            OVERLAPPED_MOST,
            |counts| counts.overlapped_means(),
            "what is generated is overlapped later or still there, so finance's 2.79 a write and 1.45 overlapped would leave 11 million leaves behind, which do not fit into 15 MB",
        ),
        (
            "a read finds",
            FOUND_MOST,
            |counts| counts.found_means(),
            "a read meets the leaves that writes of 2.79 canonical extents leave",
        ),
    ];
    for (does, paper, of, because) in sides {
        let [extents, leaves] =
            [0, 1].map(|at| listed(cases, |case| format!("{:.2}", of(&case.counts)[at])));
        let largest = [0, 1].map(|at| most(cases.iter().map(|case| of(&case.counts)[at])));
        let text = format!("{does} {extents} whole extents (fitted; paper: at most {paper})");
        verdicts.add("c13 (whole)", largest[0] <= paper * 1.02, text);
        let holds = largest[1] <= paper;
        let cause = if holds {
            String::new()
        } else {
            format!(": because {because}; whole extents fit the printed number")
        };
        verdicts.add("c13 (canonical)", holds, format!("{does} {leaves} canonical extents{cause}"));
    }
    let mut order: Vec<_> = cases.iter().collect();
    order.sort_by(|a, b| a.counts.generated_mean().total_cmp(&b.counts.generated_mean()));
    let touched = |case: &&Case| Ok::<_, LabError>(case.whole.of("vet")?.work[0]);
    let work: Vec<_> = order.iter().map(touched).collect::<Result<_, _>>()?;
    let names: Vec<_> = order
        .iter()
        .zip(&work)
        .map(|(case, work)| {
            format!("{} {:.2}: {work:.1}", case.recipe.key, case.counts.generated_mean())
        })
        .collect();
    let text = format!(
        "canonical extents that a write generates, and entries that it touches: {}",
        names.join(", ")
    );
    verdicts.add("c14 (work)", work.is_sorted(), text);
    let memory: Vec<_> = order
        .iter()
        .map(|case| Ok(case.whole.of("vet")?.used))
        .collect::<Result<Vec<_>, LabError>>()?;
    let text = "fewer canonical extents go with less memory";
    let text = match memory.is_sorted() {
        true => text.to_string(),
        false => format!(
            "{text}: because memory follows how many extents there are; homes generates the fewest a write and holds the most, in Table 2 too"
        ),
    };
    verdicts.add("c14 (memory)", memory.is_sorted(), text);
    Ok(())
}

/// c15 to c20: the lemmas.
fn proofs(verdicts: &mut Verdicts, cases: &[Case], lemmas: &Lemmas) {
    let nodes = BITS.iter().zip(&lemmas.nodes);
    let holds = nodes.clone().all(|(&bits, &[lis, bis])| {
        lis <= u64::from(bits) + 1 && bis <= u64::from((bits + 2).next_power_of_two().ilog2()) + 1
    });
    let text: Vec<_> =
        nodes.map(|(bits, [lis, bis])| format!("2^{bits}: {lis} and {bis}")).collect();
    verdicts.add(
        "c15",
        holds,
        format!("most nodes for a canonical extent with LIS and BIS: {}", text.join(", ")),
    );
    let canonical = BITS.iter().zip(&lemmas.canonical);
    let holds = canonical.clone().all(|(&bits, &most)| most <= 2 * u64::from(bits));
    let text: Vec<_> = canonical.map(|(bits, most)| format!("2^{bits}: {most}")).collect();
    verdicts.add("c16", holds, format!("most canonical extents of an extent: {}", text.join(", ")));
    let text: Vec<_> =
        BITS.iter().zip(&lemmas.query).map(|(bits, mean)| format!("2^{bits}: {mean:.1}")).collect();
    let (first, last) = (lemmas.query[0], lemmas.query[BITS.len() - 1]);
    let logs = f64::from(BITS[BITS.len() - 1]) / f64::from(BITS[0]);
    let holds = last / first < logs.log2() + 1.0;
    verdicts.add(
        "c17 (query)",
        holds,
        format!("entries for a look-up of one unit: {}", text.join(", ")),
    );
    for (at, way) in ["LIS", "BIS"].into_iter().enumerate() {
        let last = BITS.len() - 1;
        let [small, large] = [0, last].map(|of| lemmas.update[of][at]);
        let holes = [0, last].map(|of| lemmas.holes[of]);
        let inserted = [small.saturating_sub(holes[0]), large.saturating_sub(holes[1])];
        let growth = |of: [u64; 2]| of[1] as f64 / of[0].max(1) as f64;
        let grown = growth([small, large]);
        let holds = grown <= 1.1 * logs;
        let mut text = format!(
            "{way}: the worst write into an empty map touches {small} entries in 2^8 units and {large} in 2^31, {grown:.0} times as many, where log U is {logs:.1} times as large"
        );
        if !holds {
            text += &format!(
                ": because a hole ends behind the prefix that failed first, of half the bits, so that {} and {} of them are for passing holes, which grow as the square root of U; without them {} and {}, {:.1} times as many, since 2 log U - 2 canonical extents are inserted, and the proof counts one",
                holes[0],
                holes[1],
                inserted[0],
                inserted[1],
                growth(inserted)
            );
        }
        verdicts.add("c17 (update)", holds, text);
    }
    let changed = |case: &Case| {
        (case.counts.deleted + case.counts.modified) as f64 / case.counts.writes.max(1) as f64
    };
    let text = listed(cases, |case| format!("{:.2}", changed(case)));
    let holds = most(cases.iter().map(changed)) <= 4.0;
    verdicts.add(
        "c18",
        holds,
        format!("extents deleted or modified for each insertion: {text} (a proof gives 4 at most)"),
    );
    let [small, large] = [lemmas.y_fast[0], lemmas.y_fast[lemmas.y_fast.len() - 1]];
    let bytes: Vec<_> = lemmas.y_fast_bytes.iter().map(|bytes| format!("{bytes:.0}")).collect();
    let linear = most(lemmas.y_fast_bytes.iter().copied())
        <= 1.5 * least(lemmas.y_fast_bytes.iter().copied());
    let text = format!(
        "a look-up in the y-fast trie touches {small:.1} entries in 2^16 units and {large:.1} in 2^31; an extent takes {} bytes with 1,024, 8,192 and 65,536 of them",
        bytes.join(", ")
    );
    verdicts.add("c19", large <= small + 2.0 && linear, text);
    let nodes: Vec<_> = lemmas.balanced.iter().map(|nodes| format!("{nodes:.1}")).collect();
    let deepest = most(lemmas.balanced.iter().copied());
    let text = format!(
        "nodes for a look-up in the balanced tree with 1,024, 8,192 and 65,536 extents: {}",
        nodes.join(", ")
    );
    verdicts.add("c20", deepest <= 1.44 * Lemmas::log_most() + 2.0, text);
}

/// c21: mean times.
fn times(verdicts: &mut Verdicts, cases: &[Case]) -> Result<(), LabError> {
    let vet: Vec<_> =
        cases.iter().map(|case| Ok(case.whole.of("vet")?.ns)).collect::<Result<_, LabError>>()?;
    let us = |at: usize| most(vet.iter().map(|ns| ns[at])) / 1e3;
    let text = format!(
        "a write takes at most {:.2} µs and a read {:.2} µs in the mean, on this machine, which is not the paper's",
        us(0),
        us(1)
    );
    verdicts.add("c21", us(0) <= 25.0 && us(1) <= 2.5, text);
    Ok(())
}
