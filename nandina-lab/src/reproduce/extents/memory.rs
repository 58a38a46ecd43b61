//! Memory beside the page map and the hybrid map: Figures 15 and 16.
//!
//! The page map has 4 bytes for each 4 KB of the space. The formula of the hybrid map is not in the
//! paper; its percentages say that it is 7/16 of the page map. Beside it are the maps of our own
//! hybrid FTLs (`hybrid`).

use super::published::{
    EMT_NODE, HMT_BY_PMT, OF_HMT, OF_PMT, SPEW_PMT_BY_EXTENTS, SPEW_VET_BY_EMT,
};
use super::{Case, SpewCase, bars, hybrid};
use crate::LabError;
use crate::reproduce::figure::{Bar, Content, Figure, Series};
use crate::reproduce::{Experiment, Row};

/// Bytes of the page map of a space of so many GiB: 1 MiB for each.
pub fn page_map(space_gib: u64) -> f64 {
    (space_gib << 20) as f64
}

/// EMT's and VET's bytes in per cent of the page map, as the paper and as we count EMT.
pub struct Shares {
    /// VET with nodes of 20 bytes.
    pub vet: f64,
    /// EMT with our nodes of 24 bytes, and with nodes of [`EMT_NODE`].
    pub emt: f64,
    pub emt_32: f64,
    /// `compact`.
    pub compact: f64,
}

/// The shares of the page map on a trace.
pub fn shares(case: &Case) -> Result<Shares, LabError> {
    let page = page_map(case.recipe.space_gib.0) / 100.0;
    let emt = case.whole.of("emt")?;
    Ok(Shares {
        vet: case.whole.of("vet")?.used as f64 / page,
        emt: emt.used as f64 / page,
        emt_32: emt.entries as f64 * EMT_NODE / page,
        compact: case.whole.of("compact")?.used as f64 / page,
    })
}

/// Figure 15.
pub fn figure_15(cases: &[Case]) -> Result<Experiment, LabError> {
    let title = "Figure 15: memory in per cent of the page map (PMT), of the hybrid map (HMT, 7/16 of PMT), and of the maps of our hybrid FTLs";
    let (mut rows, mut drawn) = (Vec::new(), Vec::new());
    for (case, (pmt, hmt)) in cases.iter().zip(OF_PMT.into_iter().zip(OF_HMT)) {
        let (key, shares) = (case.recipe.key, shares(case)?);
        rows.push(Row::beside("vet", key, "of PMT", pmt[0], shares.vet, "%"));
        rows.push(Row::beside("emt", key, "of PMT, nodes of 32 bytes", pmt[1], shares.emt_32, "%"));
        rows.push(Row::alone("emt", key, "of PMT, ours of 24 bytes", shares.emt, "%"));
        rows.push(Row::alone("compact", key, "of PMT", shares.compact, "%"));
        rows.push(Row::beside("vet", key, "of HMT", hmt[0], shares.vet / HMT_BY_PMT, "%"));
        rows.push(Row::beside(
            "emt",
            key,
            "of HMT, nodes of 32 bytes",
            hmt[1],
            shares.emt_32 / HMT_BY_PMT,
            "%",
        ));
        let gib = case.recipe.space_gib.0;
        let hmt = HMT_BY_PMT * page_map(gib) / f64::from(1 << 20);
        rows.push(Row::alone("hybrid", key, "HMT, 7/16 of PMT", hmt, "MB"));
        rows.extend(hybrid::rows(key, gib));
        for (system, ours) in
            [("vet", shares.vet), ("emt", shares.emt), ("compact", shares.compact)]
        {
            let mut of = |metric, logs| {
                let part = ours / hybrid::share(logs, gib);
                rows.push(Row::alone(system, key, metric, 100.0 * part, "%"));
            };
            of("of the map of bast or fast, 16 log blocks", &hybrid::FEW);
            of("of that with log blocks of 30 % of the space", &hybrid::TYPICAL);
        }
        // `fast-16` has 16 log blocks. HMT and 30 % log blocks are far higher: only rows have them.
        let few = hybrid::share(&hybrid::FEW, gib);
        let heights = [
            ("VET", shares.vet),
            ("EMT", shares.emt),
            ("compact", shares.compact),
            ("fast-16", few),
        ];
        drawn.extend(
            heights.map(|(bar, height)| Bar { label: format!("{key} {bar}"), parts: vec![height] }),
        );
    }
    let y = "per cent of the page map";
    let figure = bars("extents-figure15", title, "trace and mapping", y, &[y], drawn);
    Ok(Experiment { figures: vec![figure], ..Experiment::of("figure15", title, rows) })
}

/// Figure 16.
pub fn figure_16(spew: &[SpewCase]) -> Result<Experiment, LabError> {
    let title = "Figure 16: memory on Spew in spaces from 16 GB to 1 TB";
    let mut rows = Vec::new();
    let few = "bast, fast: 16 log blocks";
    let typical = "bast, fast: 30 % log blocks";
    let names = ["PMT", "HMT", typical, few, "VET", "EMT", "compact"];
    let mut series = names.map(|name| Series { name: name.into(), points: Vec::new() });
    for SpewCase { space_gib, whole, counts } in spew {
        let config = format!("{space_gib} GB");
        let page = page_map(*space_gib);
        let (vet, emt) = (whole.of("vet")?.used as f64, whole.of("emt")?.used as f64);
        let compact = whole.of("compact")?.used as f64;
        let hybrid = |logs| hybrid::share(logs, *space_gib) / 100.0 * page;
        let (few, typical) = (hybrid(&hybrid::FEW), hybrid(&hybrid::TYPICAL));
        let drawn = [page, HMT_BY_PMT * page, typical, few, vet, emt, compact];
        for (series, bytes) in series.iter_mut().zip(drawn) {
            series.points.push((*space_gib as f64, bytes.log10()));
        }
        let mib = f64::from(1 << 20);
        rows.push(Row::alone("page", &config, "memory, PMT", page / mib, "MB"));
        rows.push(Row::alone("hybrid", &config, "HMT, 7/16 of PMT", HMT_BY_PMT * page / mib, "MB"));
        rows.extend(hybrid::rows(&config, *space_gib));
        rows.push(Row::alone("vet", &config, "memory", vet / mib, "MB"));
        rows.push(Row::alone("emt", &config, "memory", emt / mib, "MB"));
        rows.push(Row::alone("compact", &config, "memory", compact / mib, "MB"));
        rows.push(Row::alone("emt", &config, "extents at the end", counts.end as f64, ""));
        let largest = *space_gib == 1024;
        let row = |system, metric, paper: f64, ours| match largest {
            true => Row::beside(system, &config, metric, paper, ours, ""),
            false => Row::alone(system, &config, metric, ours, ""),
        };
        rows.push(row("vet", "VET by EMT", SPEW_VET_BY_EMT, vet / emt));
        rows.push(row("page", "PMT by EMT (paper: up to)", SPEW_PMT_BY_EXTENTS, page / emt));
        rows.push(Row::alone("page", &config, "PMT by VET", page / vet, ""));
    }
    let figure = Figure {
        id: "extents-figure16".into(),
        title: title.into(),
        x: "GB of the space".into(),
        y: "bytes, as a power of ten".into(),
        content: Content::Lines { logarithmic: true, series: series.into() },
    };
    Ok(Experiment { figures: vec![figure], ..Experiment::of("figure16", title, rows) })
}
