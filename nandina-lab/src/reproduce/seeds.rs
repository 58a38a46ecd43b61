//! One reproduction of several that differ in their seed: the mean of each figure.
//!
//! Of three and more the lowest and the highest figure do not count. Nothing is run here.

use super::figure::{Content, Figure};
use super::{Experiment, Reproduction, Row};
use crate::LabError;

/// The mean of figures; of three and more, without the lowest and the highest.
pub(super) fn mean_of_middle(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    let middle = if figures.len() > 2 { &figures[1..figures.len() - 1] } else { &figures[..] };
    middle.iter().sum::<f64>() / middle.len().max(1) as f64
}

/// The mean of reproductions with different seeds.
///
/// A claim holds if it holds with each seed. Names, notes, and what a table of claims says was
/// measured are those of the first. The error says
/// which experiment has other figures with another seed.
pub fn mean(mut of: Vec<Reproduction>) -> Result<Reproduction, LabError> {
    let count = of.len();
    let mut mean = of.first().cloned().ok_or_else(|| LabError("there is no run".into()))?;
    mean.seeds = count as u64;
    for (at, experiment) in mean.experiments.iter_mut().enumerate() {
        let all: Vec<&mut Experiment> =
            of.iter_mut().filter_map(|run| run.experiments.get_mut(at)).collect();
        let is_alike = |other: &&mut Experiment| {
            let is_row_alike = |(one, other): (&Row, &Row)| {
                (one.system, one.metric, one.unit) == (other.system, other.metric, other.unit)
            };
            other.id == experiment.id
                && other.rows.len() == experiment.rows.len()
                && other.orderings.len() == experiment.orderings.len()
                && other.rows.iter().zip(&experiment.rows).all(is_row_alike)
        };
        if all.len() < count || !all.iter().all(is_alike) {
            let id = experiment.id;
            return Err(LabError(format!("{id} has other figures with another seed")));
        }
        for (at, row) in experiment.rows.iter_mut().enumerate() {
            row.measured = mean_of_middle(all.iter().map(|run| run.rows[at].measured).collect());
            if row.paper.is_some() {
                // Of a range it is the nearest value.
                let papers = all.iter().filter_map(|run| run.rows[at].paper).collect();
                let paper = mean_of_middle(papers);
                let has_verdict = row.verdict.is_some();
                let Row { system, config, metric, measured, unit, .. } = row.clone();
                *row = Row::beside(system, &config, metric, paper, measured, unit);
                if !has_verdict {
                    (row.ratio, row.verdict) = (None, None);
                }
            }
        }
        for (at, (claim, holds)) in experiment.orderings.iter_mut().enumerate() {
            let held = all.iter().filter(|run| run.orderings[at].1).count();
            *holds = held == count;
            if held > 0 && !*holds {
                *claim += &format!(" ({held} of {count} seeds)");
            }
        }
        for (at, claim) in experiment.claims.iter_mut().enumerate() {
            let verdict = |run: &&mut Experiment| run.claims.get(at).map(|claim| claim.verdict);
            if all.iter().any(|run| verdict(run) != Some(claim.verdict)) {
                claim.verdict = "depends on the seed";
            }
        }
        for (at, figure) in experiment.figures.iter_mut().enumerate() {
            let others: Vec<&Figure> = all.iter().filter_map(|run| run.figures.get(at)).collect();
            take_means(figure, &others);
        }
    }
    Ok(mean)
}

/// Makes the heights of a figure the means, where each seed has the same places.
fn take_means(figure: &mut Figure, all: &[&Figure]) {
    match &mut figure.content {
        Content::Lines { series, .. } => {
            for (line, series) in series.iter_mut().enumerate() {
                for (at, point) in series.points.iter_mut().enumerate() {
                    let found = all.iter().filter_map(|figure| match &figure.content {
                        Content::Lines { series, .. } => series.get(line)?.points.get(at),
                        Content::Bars { .. } => None,
                    });
                    let heights: Vec<_> =
                        found.filter(|found| found.0 == point.0).map(|found| found.1).collect();
                    if heights.len() == all.len() {
                        point.1 = mean_of_middle(heights);
                    }
                }
            }
        }
        Content::Bars { bars, .. } => {
            for (at, bar) in bars.iter_mut().enumerate() {
                for (part, height) in bar.parts.iter_mut().enumerate() {
                    let found = all.iter().filter_map(|figure| match &figure.content {
                        Content::Bars { bars, .. } => bars.get(at)?.parts.get(part).copied(),
                        Content::Lines { .. } => None,
                    });
                    let heights: Vec<_> = found.collect();
                    if heights.len() == all.len() {
                        *height = mean_of_middle(heights);
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reproduce::Claim;
    use crate::reproduce::figure::Series;

    fn run(seed: u64, measured: f64, holds: bool) -> Reproduction {
        let rows = vec![
            Row::beside("mu", "rs 0", "programs", 2.0, measured, "an insert"),
            Row::alone("mu", "rs 0", "erases", 10.0 * measured, "an insert"),
        ];
        let mut experiment = Experiment::of("figure1", "A figure", rows);
        experiment.orderings.push(("one is fewer".into(), holds));
        experiment.claims = ["C1", "C2"]
            .into_iter()
            .map(|id| Claim {
                id,
                claim: "one is fewer",
                shown_by: "figure1".into(),
                measured: String::new(),
                verdict: if holds || id == "C2" { "holds" } else { "does not hold" },
            })
            .collect();
        let series = vec![Series { name: "mu".into(), points: vec![(1.0, measured)] }];
        experiment.figures.push(Figure {
            id: "figure1".into(),
            title: String::new(),
            x: String::new(),
            y: String::new(),
            content: Content::Lines { logarithmic: false, series },
        });
        Reproduction {
            paper: "mu-tree",
            seed,
            seeds: 1,
            quick: false,
            scale: "full",
            experiments: vec![experiment],
        }
    }

    #[test]
    fn the_lowest_and_the_highest_do_not_count_and_a_claim_holds_with_each_seed() {
        let runs = [(1, 1.0), (2, 9.0), (3, 2.0), (4, 3.0), (5, 2.5)];
        let runs = runs.map(|(seed, measured)| run(seed, measured, seed != 2));
        let found = mean(runs.to_vec()).unwrap();
        assert_eq!((found.seed, found.seeds), (1, 5));
        let [experiment] = &found.experiments[..] else { panic!("{found:?}") };
        assert_eq!((experiment.rows[0].measured, experiment.rows[1].measured), (2.5, 25.0));
        assert_eq!(experiment.rows[0].ratio, Some(1.25));
        assert_eq!(experiment.rows[0].verdict, Some("higher"));
        assert_eq!(experiment.orderings, [("one is fewer (4 of 5 seeds)".into(), false)]);
        let verdicts: Vec<_> = experiment.claims.iter().map(|claim| claim.verdict).collect();
        assert_eq!(verdicts, ["depends on the seed", "holds"]);
        let Content::Lines { series, .. } = &experiment.figures[0].content else { panic!() };
        assert_eq!(series[0].points, [(1.0, 2.5)]);
        assert_eq!(mean(vec![run(1, 4.0, true), run(2, 5.0, true)]).unwrap().seeds, 2);
    }

    #[test]
    fn runs_with_other_figures_are_refused() {
        let mut other = run(2, 1.0, true);
        other.experiments[0].rows.pop();
        let error = mean(vec![run(1, 1.0, true), other]).unwrap_err();
        assert_eq!(error.0, "figure1 has other figures with another seed");
        assert!(mean(vec![]).is_err());
    }
}
