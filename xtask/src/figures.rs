//! The figures of one system on one board: named numbers, and the bounds of some.
//!
//! It is independent of how they were measured.

use crate::count::Counts;
use crate::emulate::Said;

/// Calls whose stack is measured, and except for `remove` their instructions.
const CALLS: [&str; 6] = ["format", "mount", "insert", "get", "remove", "range"];

/// The upper bound of a figure.
pub struct Bound {
    pub figure: &'static str,
    pub most: u64,
}

/// Bounds of every system on every board.
pub const BOUNDS: [Bound; 3] = [
    Bound { figure: "ram_bytes", most: 3_141 },
    Bound { figure: "code_bytes", most: 32 << 10 },
    Bound { figure: "stack_bytes", most: 1 << 10 },
];

/// The figures of one system on one board, in the order in which they are written.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Row {
    pub board: String,
    pub system: String,
    pub figures: Vec<(String, u64)>,
}

impl Row {
    /// Returns the figure of this name.
    pub fn get(&self, name: &str) -> Option<u64> {
        self.figures.iter().find(|(known, _)| known == name).map(|&(_, value)| value)
    }

    /// The board and the system of the row.
    pub fn of(&self) -> (&str, &str) {
        (&self.board, &self.system)
    }

    /// The bounds that it exceeds, with its figures.
    pub fn over(&self) -> Vec<(&'static Bound, u64)> {
        let taken = |bound: &'static Bound| Some((bound, self.get(bound.figure)?));
        BOUNDS.iter().filter_map(taken).filter(|(bound, value)| *value > bound.most).collect()
    }
}

/// Combines the image's report, its size, and the plugin's counts if there are any.
pub fn row(said: &Said, code_bytes: u64, counts: Option<&Counts>) -> Result<Row, String> {
    let text = |name: &str| said.get(name).ok_or_else(|| format!("the image did not say {name}"));
    let number = |name: &str| {
        text(name)?.parse::<u64>().map_err(|_| format!("the image said no number for {name}"))
    };
    let mut figures = Vec::new();
    let mut ram_bytes = 0;
    for part in ["buffer", "bitmap", "table", "struct"] {
        let name = format!("{part}_bytes");
        ram_bytes += number(&name)?;
        figures.push((name.clone(), number(&name)?));
    }
    figures.push(("ram_bytes".to_owned(), ram_bytes));
    let window_bytes = number("stack_window_bytes")?;
    let mut deepest = 0;
    for call in CALLS {
        let bytes = number(&format!("stack_bytes_{call}"))?;
        if bytes >= window_bytes {
            return Err(format!("{call} takes more stack than is measured"));
        }
        deepest = deepest.max(bytes);
        figures.push((format!("stack_{call}_bytes"), bytes));
    }
    figures.push(("stack_bytes".to_owned(), deepest));
    figures.push(("code_bytes".to_owned(), code_bytes));
    for name in ["records", "height"] {
        figures.push((name.to_owned(), number(name)?));
    }
    for call in CALLS.into_iter().filter(|&call| call != "remove") {
        let calls = number(&format!("calls_{call}"))?;
        let timed = timed(number(&format!("ticks_{call}"))?, &number)?;
        let counted = counts.map(|counts| counted(counts, call, calls)).transpose()?;
        // Reading the timer takes instructions itself, some tens a call and more for each chip
        // operation.
        if let Some(counted) = counted
            && timed.abs_diff(counted) > counted / 50 + 200 * calls
        {
            return Err(format!(
                "{call}: the plugin counts {counted} instructions, the timer {timed}"
            ));
        }
        let total = counted.unwrap_or(timed);
        figures.push((format!("{call}_instructions"), total / calls.max(1)));
    }
    for call in ["mount", "insert", "get", "range"] {
        for operation in ["reads", "programs", "rewrites", "erases"] {
            figures.push((format!("{call}_{operation}"), number(&format!("{operation}_{call}"))?));
        }
    }
    Ok(Row { board: text("board")?.clone(), system: text("system")?.clone(), figures })
}

/// Instructions by the timer, which was calibrated with a known number of them.
fn timed(ticks: u64, number: &impl Fn(&str) -> Result<u64, String>) -> Result<u64, String> {
    let (known, took) = (number("calibration_instructions")?, number("calibration_ticks")?);
    Ok(ticks * known / took.max(1))
}

/// Instructions by the plugin, without those of an empty call.
fn counted(counts: &Counts, call: &str, calls: u64) -> Result<u64, String> {
    let of = |name| counts.get(name).copied().ok_or_else(|| format!("the plugin lacks {name}"));
    let ((seen, total), (empty_calls, empty)) = (of(call)?, of("nothing")?);
    if seen != calls {
        return Err(format!("{call}: the plugin saw {seen} calls of {calls}"));
    }
    Ok(total.saturating_sub(seen * empty / empty_calls.max(1)))
}

#[cfg(test)]
pub mod tests {
    use super::*;

    pub fn said() -> Said {
        let mut said = Said::new();
        let mut say = |name: &str, value: &str| said.insert(name.to_owned(), value.to_owned());
        say("board", "microbit");
        say("system", "mu");
        for part in ["buffer", "bitmap", "table", "struct"] {
            say(&format!("{part}_bytes"), "100");
        }
        say("stack_window_bytes", "6144");
        say("calibration_instructions", "20000");
        say("calibration_ticks", "16000");
        for (place, call) in CALLS.into_iter().enumerate() {
            say(&format!("stack_bytes_{call}"), &(1020 + place).to_string());
            say(&format!("calls_{call}"), "10");
            say(&format!("ticks_{call}"), "80000");
            for operation in ["reads", "programs", "rewrites", "erases"] {
                say(&format!("{operation}_{call}"), "3");
            }
        }
        say("records", "10");
        say("height", "2");
        said
    }

    #[test]
    fn figures_are_sums_maxima_and_means() {
        let row = row(&said(), 40_000, None).unwrap();
        assert_eq!(row.of(), ("microbit", "mu"));
        assert_eq!(row.get("ram_bytes"), Some(400));
        assert_eq!(row.get("stack_bytes"), Some(1025));
        // 80,000 ticks of 1.25 instructions in 10 calls.
        assert_eq!(row.get("insert_instructions"), Some(10_000));
        assert_eq!(row.get("nothing_of_that_name"), None);
        let over: Vec<_> = row.over().iter().map(|(bound, by)| (bound.figure, *by)).collect();
        assert_eq!(over, [("code_bytes", 40_000), ("stack_bytes", 1025)]);
    }

    #[test]
    fn the_plugin_counts_and_the_timer_must_agree() {
        let counts = |insert| {
            let mut counts: Counts =
                CALLS.into_iter().map(|call| (call.to_owned(), (10, 99_000))).collect();
            counts.insert("insert".to_owned(), insert);
            counts.insert("nothing".to_owned(), (2, 4));
            counts
        };
        let taken = row(&said(), 1, Some(&counts((10, 99_020)))).unwrap();
        assert_eq!(taken.get("insert_instructions"), Some(9900));
        let disagrees = row(&said(), 1, Some(&counts((10, 200_000)))).unwrap_err();
        assert!(disagrees.contains("the timer 100000"), "{disagrees}");
        let missed = row(&said(), 1, Some(&counts((9, 99_020)))).unwrap_err();
        assert!(missed.contains("9 calls of 10"), "{missed}");
    }

    #[test]
    fn what_is_missing_or_not_measured_is_an_error() {
        let mut silent = said();
        silent.remove("records");
        assert!(row(&silent, 1, None).unwrap_err().contains("records"));
        let mut deep = said();
        deep.insert("stack_bytes_mount".to_owned(), "6144".to_owned());
        assert!(row(&deep, 1, None).unwrap_err().contains("mount"));
    }
}
