//! Figure 13: cache misses of leaves with and without pointers, by cachegrind.
//!
//! The paper counted misses of a processor by PAPI. Here valgrind runs this program itself, on one
//! mapping, and simulates caches of 32 KB and 4 MB. As in the paper all writes come before all
//! reads. What making the requests costs is run apart and subtracted. Without valgrind the figure
//! is left out, with the reason.

use std::path::Path;
use std::process::{Command, Stdio};

use super::measured::actions;
use super::published::{POINTER_FREE_FASTER, TRACES};
use crate::LabError;
use crate::block_trace::make::{Choice, Synthetic, by_key};
use crate::replay::Action;
use crate::reproduce::figure::{Bar, Content, Figure};
use crate::reproduce::{Experiment, Row};
use nandina_ftl::mapping::registry;

/// What a run under valgrind does, as one word: trace, mapping, phases, requests and seed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Probe<'p> {
    trace: &'p str,
    /// `none` to make the requests only.
    mapping: &'p str,
    reads: bool,
    requests: u64,
    seed: u64,
}

impl<'p> Probe<'p> {
    fn word(&self) -> String {
        let Self { trace, mapping, reads, requests, seed } = self;
        format!("{trace},{mapping},{},{requests},{seed}", if *reads { "reads" } else { "writes" })
    }

    fn parse(word: &'p str) -> Option<Self> {
        let mut fields = word.split(',');
        let (trace, mapping) = (fields.next()?, fields.next()?);
        let reads = match fields.next()? {
            "reads" => true,
            "writes" => false,
            _ => return None,
        };
        let (requests, seed) = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
        Some(Self { trace, mapping, reads, requests, seed })
    }
}

/// Does what a run under valgrind does: all writes of a trace on one mapping, then its reads.
///
/// Returns how many requests it made. Refuses a word that names none.
pub fn alone(word: &str) -> Result<u64, LabError> {
    let none = || LabError(format!("'{word}' names no run of a mapping"));
    let Probe { trace, mapping, reads, requests, seed } = Probe::parse(word).ok_or_else(none)?;
    let choice = Choice { seed, requests: Some(requests), space_gib: None };
    let made = Synthetic::new(by_key(trace).ok_or_else(none)?, choice)?;
    let (mut actions, space) = actions(&made)?;
    let all: Vec<_> = made.filter_map(|request| actions.of(&request).ok().flatten()).collect();
    if mapping == "none" {
        return Ok(all.len() as u64);
    }
    let entry = registry::by_name(mapping).ok_or_else(none)?;
    let mut memory = vec![0; (entry.memory)(space, 2 * all.len())];
    let mut map =
        (entry.build)(space, &mut memory).map_err(|refusal| LabError(refusal.to_string()))?;
    let mut units = 0;
    for action in &all {
        if let Action::Write(..) = action {
            action.keep_in(&mut *map);
        }
    }
    for action in all.iter().filter(|_| reads) {
        if let Action::Read(extent) = action {
            // Every extent of a synthetic trace is in its space.
            let _ = map.look_up(*extent, &mut |piece| units += u64::from(piece.length));
        }
    }
    Ok(all.len() as u64 + units.min(1))
}

/// Events that cachegrind counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Events {
    instructions: u64,
    references: u64,
    first_misses: u64,
    last_misses: u64,
}

impl Events {
    /// Reads the totals that cachegrind prints at its end.
    fn parse(text: &str) -> Option<Self> {
        let of = |label: &str| {
            let line =
                text.lines().find_map(|line| line.split_once("== ")?.1.strip_prefix(label))?;
            line.trim_start().split(' ').next()?.replace(',', "").parse().ok()
        };
        Some(Self {
            instructions: of("I   refs:")?,
            references: of("D   refs:")?,
            first_misses: of("D1  misses:")?,
            last_misses: of("LLd misses:")?,
        })
    }

    fn without(self, other: Self) -> Self {
        Self {
            instructions: self.instructions.saturating_sub(other.instructions),
            references: self.references.saturating_sub(other.references),
            first_misses: self.first_misses.saturating_sub(other.first_misses),
            last_misses: self.last_misses.saturating_sub(other.last_misses),
        }
    }

    /// Time in cycles as cachegrind's manual estimates it: 10 for a first miss, 200 for a last one.
    ///
    /// So a miss of the large cache costs 20 of the small one's, as the paper says.
    fn cycles(self) -> f64 {
        let [instructions, first, last] =
            [self.instructions, self.first_misses, self.last_misses].map(|count| count as f64);
        instructions + 10.0 * first + 200.0 * last
    }
}

/// Runs the program under cachegrind; `None` if there is no valgrind.
fn run(program: &Path, probe: Probe<'_>) -> Result<Option<Events>, LabError> {
    let caches = ["--I1=32768,8,64", "--D1=32768,8,64", "--LL=4194304,16,64", "--cache-sim=yes"];
    let mut command = Command::new("valgrind");
    command.arg("--tool=cachegrind").arg("--cachegrind-out-file=/dev/null").args(caches);
    command.arg(program).args(["reproduce", "extents", "--alone", &probe.word()]);
    let output = match command.stdin(Stdio::null()).output() {
        Ok(output) => output,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(LabError(format!("valgrind cannot be run: {error}"))),
    };
    let text = String::from_utf8_lossy(&output.stderr);
    let events = Events::parse(&text).filter(|_| output.status.success());
    events.map(Some).ok_or_else(|| {
        let last = text.lines().last().unwrap_or_default();
        LabError(format!("valgrind printed no totals of {}: {last}", probe.word()))
    })
}

/// Pointer-dependent and pointer-free leaves.
const BOTH: [&str; 2] = ["vet-pointers", "vet"];

/// Figure 13, and by how many per cent pointer-free leaves are faster at most.
pub fn figure_13(
    program: Option<&Path>,
    requests: Option<u64>,
    seed: u64,
    progress: &dyn Fn(u64),
) -> Result<(Experiment, Option<f64>), LabError> {
    let title = "Figure 13: cache misses of VET with and without pointers, by cachegrind (D1 32 KB, LL 4 MB)";
    let mut experiment = Experiment::of("figure13", title, Vec::new());
    let (Some(program), Some(requests)) = (program, requests) else {
        experiment.refusals.push("a quick run leaves cachegrind out".into());
        return Ok((experiment, None));
    };
    let (mut bars, mut most) = (Vec::new(), f64::NEG_INFINITY);
    for trace in TRACES {
        let probe = Probe { trace, mapping: "none", reads: false, requests, seed };
        let Some(made) = run(program, probe)? else {
            experiment.refusals.push(
                "valgrind is not there: install it (Debian: apt-get install valgrind)".into(),
            );
            return Ok((experiment, None));
        };
        progress(requests);
        let mut phases = Vec::new();
        for mapping in BOTH {
            let mut ends = Vec::new();
            for reads in [false, true] {
                ends.extend(run(program, Probe { mapping, reads, ..probe })?);
                progress(requests);
            }
            if let [writes, all] = ends[..] {
                phases.push([writes.without(made), all.without(writes)]);
            }
        }
        let [dependent, free] = phases[..] else { continue };
        for (at, phase) in ["writes", "reads"].into_iter().enumerate() {
            let config = format!("{trace} {phase}");
            for (system, events) in BOTH.into_iter().zip([dependent[at], free[at]]) {
                let mut row = |metric, count: u64, unit| {
                    experiment.rows.push(Row::alone(system, &config, metric, count as f64, unit));
                };
                row("instructions", events.instructions, "");
                row("D1 misses", events.first_misses, "");
                row("LL misses", events.last_misses, "");
                bars.push(Bar {
                    label: format!("{config} {}", if system == "vet" { "PF" } else { "PD" }),
                    parts: vec![events.first_misses as f64, events.last_misses as f64],
                });
            }
            let faster = (dependent[at].cycles() / free[at].cycles() - 1.0) * 100.0;
            let row = Row::beside(
                "vet",
                &config,
                "faster by estimated cycles (paper: at most)",
                POINTER_FREE_FASTER,
                faster,
                "%",
            );
            experiment.rows.push(row);
            most = most.max(faster);
        }
    }
    experiment.figures.push(Figure {
        id: "extents-figure13".into(),
        title: title.into(),
        x: "trace, phase, leaves with (PD) or without (PF) pointers".into(),
        y: "misses".into(),
        content: Content::Bars { parts: ["D1", "LL"].map(String::from).into(), bars },
    });
    Ok((experiment, Some(most)))
}

/// Requests that all runs of Figure 13 make.
pub fn operations(requests: Option<u64>) -> u64 {
    let runs = TRACES.len() * (1 + 2 * BOTH.len());
    requests.unwrap_or(0) * runs as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn totals_of_cachegrind_are_read_and_nothing_else_is_accepted() {
        let text = "==7== \n==7== I   refs:      1,234,567\n==7== I1  misses:        1,024\n\
                    ==7== LLi misses:          900\n==7== D   refs:        456,789  (300,000 rd   + 156,789 wr)\n\
                    ==7== D1  misses:       12,345  ( 10,000 rd   +   2,345 wr)\n\
                    ==7== LLd misses:        2,345  (  2,000 rd   +     345 wr)\n";
        let events = Events::parse(text).unwrap();
        let expected = Events {
            instructions: 1_234_567,
            references: 456_789,
            first_misses: 12_345,
            last_misses: 2_345,
        };
        assert_eq!(events, expected);
        assert_eq!(Events::parse("==7== I   refs: 5\n"), None);
        assert_eq!(events.without(events), Events::default());
    }

    #[test]
    fn a_run_alone_is_described_by_one_word() {
        let probe = Probe { trace: "wsf", mapping: "vet", reads: true, requests: 300, seed: 9 };
        assert_eq!(Probe::parse(&probe.word()), Some(probe));
        assert_eq!(alone(&probe.word()).unwrap(), 301);
        assert_eq!(alone("wsf,none,writes,300,9").unwrap(), 300);
        for wrong in ["", "wsf,vet,both,300,9", "wsf,veto,reads,300,9", "x,vet,reads,3,9"] {
            assert!(alone(wrong).is_err(), "{wrong}");
        }
    }
}
