//! Section 5.3: three to ten page buffers, without and with a page of write buffer.
//!
//! Figure 10 has the inserts, Figure 11 the queries, on the SD card.
//!
//! The paper's *M* buffers form one LRU. Here they are that many page buffers, or three and a read
//! cache, which is an LRU over the pages that the three do not hold. Both are measured, and the one
//! with the faster inserts is used.

use super::case::{Case, Costs, Mean, Memory};
use super::series::Kind;
use super::{Claims, Scale, board_32};
use crate::reproduce::figure::{Content, Figure, Series};
use crate::reproduce::{Experiment, Row};

const SYSTEMS: [&str; 2] = ["btree", "vm"];
/// The last is not drawn: it shows the effect of more clustering.
const SERIES: [Kind; 3] = [Kind::Random, Kind::Temperature, Kind::MinuteTemperature];
const LOGS: [usize; 2] = [0, 1];

/// The ways to divide `pages` pages.
fn ways(pages: usize) -> Vec<Memory> {
    let mut ways = vec![Memory::buffers(pages)];
    ways.extend((pages > 3).then_some(Memory::cached(pages)));
    ways
}

fn at(system: &'static str, series: Kind, log: usize) -> Case {
    let [card, _] = board_32();
    Case::new(system, card, series).buffering(log)
}

/// The cases of both figures.
pub fn cases(scale: Scale) -> Vec<Case> {
    let mut cases = Vec::new();
    for system in SYSTEMS {
        for series in SERIES {
            for log in LOGS {
                let ways = scale.memories.iter().flat_map(|&pages| ways(pages));
                cases.extend(ways.map(|memory| at(system, series, log).with(memory)));
            }
        }
    }
    cases
}

/// A line of both figures.
///
/// Each point has the paper's *M*, the better memory, an insertion and a query.
struct Line {
    system: &'static str,
    series: Kind,
    log: usize,
    points: Vec<(usize, Memory, Mean, Mean)>,
}

impl Line {
    fn new(costs: &Costs, scale: Scale, system: &'static str, series: Kind, log: usize) -> Self {
        let point = |&pages: &usize| {
            let means = ways(pages).into_iter().filter_map(|memory| {
                let case = at(system, series, log).with(memory);
                let insert = costs.mean(&case, "insert")?;
                Some((pages, memory, insert, costs.mean(&case, "query")?))
            });
            means.min_by(|one, other| one.2.ms.total_cmp(&other.2.ms))
        };
        let points = scale.memories.iter().filter_map(point).collect();
        Self { system, series, log, points }
    }

    fn name(&self) -> String {
        let log = if self.log > 0 { " log1" } else { "" };
        format!("{} {}{log}", self.system, self.series.name())
    }

    /// The gain in throughput from each *M* to the largest, in per cent.
    fn gain(&self, of: fn(&(usize, Memory, Mean, Mean)) -> f64) -> Option<f64> {
        let [first, .., last] = &self.points[..] else { return None };
        Some((of(last) / of(first) - 1.0) * 100.0)
    }
}

/// Figures 10 and 11.
pub fn experiments(costs: &Costs, scale: Scale) -> [Experiment; 2] {
    let mut lines = Vec::new();
    for system in SYSTEMS {
        for series in SERIES {
            lines.extend(LOGS.map(|log| Line::new(costs, scale, system, series, log)));
        }
    }
    lines.retain(|line| !line.points.is_empty());
    let skipped = costs.skipped(&cases(scale));
    let mut inserts = figure_10(costs, &lines);
    let mut queries = figure_11(costs, &lines);
    inserts.experiment.refusals = skipped.clone();
    queries.experiment.refusals = skipped;
    [inserts.done(), queries.done()]
}

fn config(line: &Line, pages: usize, memory: Memory) -> String {
    let Memory { buffers, cached } = memory;
    format!("{} M{pages} ({buffers}+{cached}) L{}", line.series.name(), line.log)
}

fn figure_10<'c>(costs: &'c Costs, lines: &[Line]) -> Claims<'c> {
    let title = "Figure 10: inserts with three to ten page buffers (page buffers + read cache), on the SD card";
    let mut claims = Claims::new(costs, "figure10", title, &[]);
    for line in lines {
        for (pages, memory, insert, _) in &line.points {
            let config = config(line, *pages, *memory);
            let mut row = |metric, value, unit| {
                let row = Row::alone(line.system, &config, metric, value, unit);
                claims.experiment.rows.push(row);
            };
            row("reads_per_insert", insert.reads, "pages");
            row("writes_per_insert", insert.writes, "pages");
            row("inserts_a_second", insert.a_second(), "1/s");
        }
        let Some(gain) = line.gain(|point| point.2.a_second()) else { continue };
        let (range, metric) = match (line.system, line.series, line.log) {
            ("btree", Kind::Random, 0) => ((5.0, 25.0), "throughput gained by M10 (5 to 25)"),
            ("vm", Kind::Random, 0) => ((3.0, 14.0), "throughput gained by M10 (3 to 14)"),
            (_, Kind::Temperature | Kind::MinuteTemperature, 0) => {
                ((0.0, 5.0), "throughput gained by M10 (less than 5)")
            }
            _ => ((gain, gain), "throughput gained by M10"),
        };
        let config = format!("{} L{}", line.series.name(), line.log);
        let row = if line.log == 0 {
            Row::in_range(line.system, &config, metric, range, gain, "%")
        } else {
            Row::alone(line.system, &config, metric, gain, "%")
        };
        claims.experiment.rows.push(row);
        let writes = line.points.iter().map(|point| point.2.writes);
        let (least, most) = writes.fold((f64::MAX, 0.0), |(least, most): (f64, f64), writes| {
            (least.min(writes), most.max(writes))
        });
        let claim = format!("{}: more buffers do not change the writes (to 2 %)", line.name());
        claims.claim(claim, most <= 1.02 * least);
        let claim = format!("{}: more buffers make inserts no slower", line.name());
        claims.claim(claim, gain >= 0.0);
    }
    for line in lines.iter().filter(|line| line.log == 1) {
        let without = lines.iter().find(|other| {
            other.log == 0 && (other.system, other.series) == (line.system, line.series)
        });
        if let Some(without) = without
            && let (Some(with), Some(most)) = (line.points.first(), without.points.last())
        {
            let claim = format!(
                "{}: a page of write buffer does more than seven of page buffers",
                line.name()
            );
            claims.claim(claim, with.2.ms < most.2.ms);
        }
    }
    let y = "inserts a second, by the chip's latencies";
    let figure = figure("vmtree-figure10", "Inserts by memory, SD card", y, lines, |point| {
        point.2.a_second()
    });
    claims.experiment.figures.push(figure);
    claims
}

fn figure_11<'c>(costs: &'c Costs, lines: &[Line]) -> Claims<'c> {
    let title = "Figure 11: queries with three to ten page buffers (page buffers + read cache), on the SD card";
    let mut claims = Claims::new(costs, "figure11", title, &[]);
    for line in lines {
        for (pages, memory, _, query) in &line.points {
            let config = config(line, *pages, *memory);
            let row = Row::alone(line.system, &config, "reads_per_query", query.reads, "pages");
            claims.experiment.rows.push(row);
        }
        if let Some(gain) = line.gain(|point| 1.0 / point.3.reads) {
            let claim = format!("{}: ten buffers save reads of queries", line.name());
            claims.claim(claim, gain > 0.0);
        }
        let reads = |at: usize| line.points.get(at).map(|point| point.3.reads);
        if let (0, Some(three), Some(four)) = (line.log, reads(0), reads(1)) {
            let claim = format!("{}: a fourth buffer saves reads of queries", line.name());
            claims.claim(claim, four < three);
        }
        if line.log == 1 {
            let without = lines.iter().find(|other| {
                other.log == 0 && (other.system, other.series) == (line.system, line.series)
            });
            let same = without.is_some_and(|without| {
                let pairs = without.points.iter().zip(&line.points);
                pairs
                    .into_iter()
                    .all(|(one, other)| (other.3.reads / one.3.reads - 1.0).abs() < 0.05)
            });
            claims.claim(
                format!("{}: the write buffer changes no query (to 5 %)", line.name()),
                same,
            );
        }
    }
    let y = "queries a second, by the chip's latencies";
    let figure = figure("vmtree-figure11", "Queries by memory, SD card", y, lines, |point| {
        point.3.a_second()
    });
    claims.experiment.figures.push(figure);
    claims
}

fn figure(
    id: &str,
    title: &str,
    y: &str,
    lines: &[Line],
    of: fn(&(usize, Memory, Mean, Mean)) -> f64,
) -> Figure {
    let series = lines
        .iter()
        .filter(|line| line.series != Kind::MinuteTemperature)
        .map(|line| Series {
            name: line.name(),
            points: line.points.iter().map(|point| (point.0 as f64, of(point))).collect(),
        })
        .collect();
    Figure {
        id: id.into(),
        title: title.into(),
        x: "pages of RAM (M)".into(),
        y: y.into(),
        content: Content::Lines { logarithmic: false, series },
    }
}
