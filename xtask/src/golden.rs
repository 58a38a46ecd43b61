//! The golden figures: reads, writes and compares them.
//!
//! Only this file writes a file of the repository, and only on demand.
//!
//! The file names the compiler, since sizes and instructions depend on it. With that compiler every
//! figure must be equal; with another, differences are reported and only the bounds are checked. A
//! bound that the golden figures themselves exceed is reported, not checked.

use std::path::Path;

use crate::figures::Row;

const HEAD: &str = "\
# What each system takes on each board: cargo xtask firmware compares, cargo xtask firmware --bless writes.
# Instructions are means per call, chip operations are totals of the fixed work (firmware/src/work.rs).
# The work of address mappings, map:NAME, is that of firmware/mappings/src/main.rs.
";

/// The golden figures.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Golden {
    pub compiler: String,
    pub rows: Vec<Row>,
}

impl Golden {
    /// Reads them; `None` if there are none yet.
    pub fn read(path: &Path) -> Result<Option<Self>, String> {
        match std::fs::read_to_string(path) {
            Ok(text) => Self::parse(&text).map(Some).map_err(|line| {
                format!("{}: this is no line of golden figures: {line}", path.display())
            }),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(format!("{}: {error}", path.display())),
        }
    }

    fn parse(text: &str) -> Result<Self, String> {
        let mut golden = Self { compiler: String::new(), rows: Vec::new() };
        for line in text.lines().filter(|line| !line.starts_with('#') && !line.is_empty()) {
            let bad = || line.to_owned();
            let (first, rest) = line.split_once(' ').ok_or_else(bad)?;
            if let Some((name, value)) = line.trim_start().split_once(' ')
                && first.is_empty()
            {
                let row = golden.rows.last_mut().ok_or_else(bad)?;
                row.figures.push((name.to_owned(), value.parse().map_err(|_| bad())?));
            } else if first == "compiler" {
                golden.compiler = rest.to_owned();
            } else {
                let (board, system) = (first.to_owned(), rest.to_owned());
                golden.rows.push(Row { board, system, figures: Vec::new() });
            }
        }
        Ok(golden)
    }

    fn print(&self) -> String {
        let mut text = format!("{HEAD}\ncompiler {}\n", self.compiler);
        for row in &self.rows {
            text.push_str(&format!("\n{} {}\n", row.board, row.system));
            for (name, value) in &row.figures {
                text.push_str(&format!("  {name} {value}\n"));
            }
        }
        text
    }

    /// Writes them.
    pub fn write(&self, path: &Path) -> Result<(), String> {
        std::fs::write(path, self.print()).map_err(|error| format!("{}: {error}", path.display()))
    }
}

/// The result of a comparison.
#[derive(Default, PartialEq, Eq, Debug)]
pub struct Verdict {
    /// Differences to report.
    pub warnings: Vec<String>,
    /// Differences that fail the comparison.
    pub failures: Vec<String>,
}

/// Compares `rows`, built by `compiler`, with the golden figures.
///
/// Unless instructions were `counted` exactly, they may differ by a fiftieth.
pub fn compare(golden: Option<&Golden>, compiler: &str, rows: &[Row], counted: bool) -> Verdict {
    let mut verdict = Verdict::default();
    let known = golden.map_or("", |golden| golden.compiler.as_str());
    if known != compiler {
        verdict.warnings.push(format!(
            "the golden figures are of `{known}`, these of `{compiler}`: only the bounds are demanded"
        ));
    }
    for row in rows {
        let before = golden.and_then(|golden| golden.rows.iter().find(|of| of.of() == row.of()));
        let name = format!("{} {}", row.board, row.system);
        for (bound, value) in row.over() {
            let text = format!("{name}: over: {} {value}, bound {}", bound.figure, bound.most);
            let was_over = before.and_then(|before| before.get(bound.figure)) > Some(bound.most);
            if was_over { &mut verdict.warnings } else { &mut verdict.failures }.push(text);
        }
        let differences =
            if known == compiler { &mut verdict.failures } else { &mut verdict.warnings };
        let Some(before) = before else {
            differences.push(format!("{name}: no golden figures"));
            continue;
        };
        let names = row.figures.iter().chain(&before.figures).map(|(figure, _)| figure);
        let mut seen = Vec::new();
        for figure in names {
            let (golden, now) = (before.get(figure), row.get(figure));
            let nearly = !counted && figure.ends_with("_instructions") && near(golden, now);
            if golden != now && !nearly && !seen.contains(&figure) {
                let show = |value: Option<u64>| value.map_or("none".to_owned(), |v| v.to_string());
                differences.push(format!("{name}: {figure} {} -> {}", show(golden), show(now)));
                seen.push(figure);
            }
        }
    }
    verdict
}

/// Whether two means of instructions are equal within the timer's precision.
fn near(golden: Option<u64>, now: Option<u64>) -> bool {
    matches!((golden, now), (Some(golden), Some(now)) if golden.abs_diff(now) <= golden / 50 + 200)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::{row, tests::said};

    fn golden(code_bytes: u64) -> Golden {
        let rows = vec![row(&said(), code_bytes, None).unwrap()];
        Golden { compiler: "rustc 1 (of a day)".to_owned(), rows }
    }

    #[test]
    fn golden_figures_are_read_as_they_were_written() {
        let golden = golden(1);
        assert_eq!(Golden::parse(&golden.print()), Ok(golden));
        assert!(Golden::parse("compiler x\n  code_bytes 1\n").is_err());
        assert!(Golden::parse("compiler x\nmicrobit mu\n  code_bytes much\n").is_err());
    }

    #[test]
    fn with_the_same_compiler_every_figure_must_be_equal() {
        let golden = golden(1);
        let same = compare(Some(&golden), &golden.compiler, &golden.rows, true);
        // The stack of the example is over its bound, and was before.
        assert_eq!((same.warnings.len(), same.failures.len()), (1, 0), "{same:?}");
        let rows = [row(&said(), 2, None).unwrap()];
        let other = compare(Some(&golden), &golden.compiler, &rows, true);
        assert_eq!(other.failures, ["microbit mu: code_bytes 1 -> 2"]);
        let fewer = [Row { figures: rows[0].figures[..3].to_vec(), ..rows[0].clone() }];
        let fewer = compare(Some(&golden), &golden.compiler, &fewer, true);
        assert!(fewer.failures.contains(&"microbit mu: code_bytes 1 -> none".to_owned()));
        let unknown = compare(None, &golden.compiler, &rows, true);
        assert_eq!(unknown.warnings.len(), 2, "{unknown:?}");
    }

    #[test]
    fn with_another_compiler_only_the_bounds_are_demanded() {
        let golden = golden(1);
        let rows = [row(&said(), 2, None).unwrap()];
        let verdict = compare(Some(&golden), "rustc 2", &rows, true);
        assert!(verdict.failures.is_empty() && verdict.warnings.len() == 3, "{verdict:?}");
        let rows = [row(&said(), 33_000, None).unwrap()];
        let verdict = compare(Some(&golden), "rustc 2", &rows, true);
        assert_eq!(verdict.failures, ["microbit mu: over: code_bytes 33000, bound 32768"]);
    }

    #[test]
    fn the_timer_may_be_a_little_off_and_no_more() {
        let golden = golden(1);
        let shifted = |by: u64| {
            let mut rows = golden.rows.clone();
            for (name, value) in &mut rows[0].figures {
                *value += if name == "get_instructions" { by } else { 0 };
            }
            rows
        };
        let failures =
            |by, counted| compare(Some(&golden), &golden.compiler, &shifted(by), counted).failures;
        assert!(failures(300, false).is_empty());
        assert_eq!(failures(900, false).len(), 1);
        assert_eq!(failures(1, true).len(), 1);
    }
}
