//! The name of a case: everything that is needed to replay it exactly.
//!
//! ```text
//! exhaustive/mu/seed 1/30 x 40/412 ones/7 before      two cuts, each at a chip operation of its session
//! linear/mu/seed 1/30 x 40 lean checkpoints 2/9 ones  one cut, in a run of other settings
//! linear/mu/seed 1/30 x 40 unstable formats/2/9 ones  one cut, with hardships
//! swarm/wandering/seed 77                             an episode, whose seed decides everything
//! swarm/wandering/seed 77 unstable                    an episode with hardships
//! ```

use std::fmt;
use std::str::FromStr;

use nandina_sim::{Cut, Tear};

use super::{CutRun, Hardships, Mode};
use crate::LabError;

/// A cut: how many chip operations of its session come before it, and what it does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CutPoint {
    /// Chip operations before the one that is cut.
    pub operation: u64,
    /// Where in it power fails.
    pub cut: Cut,
}

/// The name of a case.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CaseId {
    /// The mode.
    pub mode: Mode,
    /// Key of the system.
    pub system: String,
    /// The seed.
    pub seed: u64,
    /// The run that is cut; `None` in a swarm.
    pub run: Option<CutRun>,
    /// The hardships of a swarm; a run has its own.
    pub hardships: Hardships,
    /// The cuts, in order.
    pub cuts: Vec<CutPoint>,
}

const CUTS: [(&str, Cut); 5] = [
    ("before", Cut::Before),
    ("mixture", Cut::Inside(Tear::Mixture)),
    ("ones", Cut::Inside(Tear::Ones)),
    ("unreadable", Cut::Inside(Tear::Unreadable)),
    ("after", Cut::After),
];

impl fmt::Display for CaseId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/seed {}", self.mode.key(), self.system, self.seed)?;
        f.write_str(&self.hardships.words())?;
        if let Some(CutRun { records, value_bytes, lean, checkpoints, hardships }) = self.run {
            write!(f, "/{records} x {value_bytes}{}", if lean { " lean" } else { "" })?;
            f.write_str(&hardships.words())?;
            if let Some(every) = checkpoints {
                write!(f, " checkpoints {every}")?;
            }
        }
        for point in &self.cuts {
            let (name, _) = CUTS.iter().find(|(_, cut)| *cut == point.cut).unwrap_or(&CUTS[0]);
            write!(f, "/{} {name}", point.operation)?;
        }
        Ok(())
    }
}

impl FromStr for CaseId {
    type Err = LabError;

    fn from_str(name: &str) -> Result<Self, LabError> {
        let parsed = || {
            let mut parts = name.split('/');
            let mode = parts.next()?;
            let mode = Mode::ALL.into_iter().find(|known| known.key() == mode)?;
            let system = parts.next()?.to_string();
            let (seed, hardships) = behind_number(parts.next()?.strip_prefix("seed ")?)?;
            let mut case = Self { mode, system, seed, run: None, hardships, cuts: Vec::new() };
            if mode != Mode::Swarm {
                if hardships.any() {
                    return None;
                }
                case.run = Some(run_of(parts.next()?)?);
            }
            let cuts_max = match mode {
                Mode::None | Mode::Swarm => 0,
                Mode::Linear => 1,
                Mode::Exhaustive => 2,
            };
            for part in parts {
                if case.cuts.len() == cuts_max {
                    return None;
                }
                let (operation, name) = part.split_once(' ')?;
                let (_, cut) = CUTS.iter().find(|(known, _)| *known == name)?;
                case.cuts.push(CutPoint { operation: operation.parse().ok()?, cut: *cut });
            }
            // One case has one name.
            (case.to_string() == name).then_some(case)
        };
        parsed().ok_or_else(|| {
            LabError(format!(
                "'{name}' is no name of a case: write it as a failing run prints it, such as \
                 'exhaustive/mu/seed 1/30 x 40/412 ones/7 before' or 'swarm/mu/seed 77'"
            ))
        })
    }
}

/// The run in a case's name.
fn run_of(name: &str) -> Option<CutRun> {
    let (records, rest) = name.split_once(" x ")?;
    let records = records.parse().ok().filter(|records| (1..100_000).contains(records))?;
    let (rest, checkpoints) = match rest.split_once(" checkpoints ") {
        Some((rest, every)) => (rest, Some(every.parse().ok()?)),
        None => (rest, None),
    };
    let (lean, rest) = match rest.split_once(" lean") {
        Some((value_bytes, words)) => (true, format!("{value_bytes}{words}")),
        None => (false, rest.to_string()),
    };
    let (value_bytes, hardships) = behind_number(&rest)?;
    let value_bytes = usize::try_from(value_bytes).ok()?;
    Some(CutRun { records, value_bytes, lean, checkpoints, hardships })
}

/// A number and the hardships that follow it.
fn behind_number(text: &str) -> Option<(u64, Hardships)> {
    let digits = text.find(' ').unwrap_or(text.len());
    Some((text[..digits].parse().ok()?, Hardships::of_words(&text[digits..])?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_they_are_written() {
        for name in [
            "swarm/mu/seed 77",
            "none/mu/seed 0/30 x 40",
            "linear/wandering/seed 3/197 x 12/9 mixture",
            "exhaustive/mu/seed 1/30 x 40/412 ones/7 before",
            "exhaustive/mu/seed 1/30 x 40 lean/412 unreadable/7 after",
            "linear/mu/seed 1/30 x 40 checkpoints 1/412 unreadable",
            "none/mu/seed 1/30 x 40 lean checkpoints 12",
            "swarm/mu/seed 77 unstable changed errors",
            "linear/mu/seed 1/30 x 40 unstable/412 unreadable",
            "exhaustive/mu/seed 1/30 x 40 lean unstable buffered changed formats errors checkpoints 3",
        ] {
            assert_eq!(name.parse::<CaseId>().unwrap().to_string(), name);
        }
        for name in [
            "",
            "swarm",
            "swarm/mu/77",
            "linear/mu/seed 1",
            "linear/mu/seed 1/3 x 4/ones",
            "linear/mu/seed 1/0 x 4",
            "linear/mu/seed 1/30 x 40 checkpoints",
            "linear/mu/seed 1/30 x 40 checkpoints lean",
            "linear/mu/seed 1/30 x 40 checkpoints 2 lean",
            "swarm/mu/seed 77 harsh",
            "swarm/mu/seed 77  unstable",
            "linear/mu/seed 1 unstable/30 x 40",
            "linear/mu/seed 1/30 x 40 changed unstable",
            "linear/mu/seed 1/30 x 40 unstable lean",
            "swarm/mu/seed 77/9 ones",
            "swarm/mu/seed 77/",
            "none/mu/seed 0/30 x 40/9 ones",
            "linear/mu/seed 3/197 x 12/9 ones/7 ones",
            "exhaustive/mu/seed 3/197 x 12/9 ones/7 ones/5 ones",
        ] {
            assert!(name.parse::<CaseId>().is_err(), "{name}");
        }
    }
}
