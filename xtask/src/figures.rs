//! The figures of one system, or mapping, on one board: named numbers, and the bounds of some.
//!
//! It is independent of how they were measured.

use crate::count::Counts;
use crate::emulate::Said;

/// Calls whose stack is measured, and except for `remove` their instructions.
const CALLS: [&str; 7] = ["new", "format", "mount", "insert", "get", "remove", "range"];

/// Calls of a mapping, whose stack and instructions are measured.
const MAPPING_CALLS: [&str; 3] = ["update", "look_up", "remove"];

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

fn text<'s>(said: &'s Said, name: &str) -> Result<&'s String, String> {
    said.get(name).ok_or_else(|| format!("the image did not say {name}"))
}

fn number(said: &Said, name: &str) -> Result<u64, String> {
    text(said, name)?.parse().map_err(|_| format!("the image said no number for {name}"))
}

/// How a mapping is named among the systems.
pub fn name_of_mapping(name: &str) -> String {
    format!("map:{name}")
}

/// Combines the report of a mapping and the plugin's counts if there are any.
pub fn mapping_row(said: &Said, counts: Option<&Counts>) -> Result<Row, String> {
    let mut figures = Vec::new();
    for name in ["entries", "used_bytes", "peak_bytes"] {
        figures.push((name.to_owned(), number(said, name)?));
    }
    for call in MAPPING_CALLS {
        figures.push((format!("stack_{call}_bytes"), stack(said, call)?));
    }
    for call in MAPPING_CALLS {
        figures.push((format!("{call}_instructions"), instructions(said, counts, call)?));
    }
    let system = name_of_mapping(text(said, "mapping")?);
    Ok(Row { board: text(said, "board")?.clone(), system, figures })
}

/// The deepest stack of a call.
fn stack(said: &Said, call: &str) -> Result<u64, String> {
    let bytes = number(said, &format!("stack_bytes_{call}"))?;
    if bytes >= number(said, "stack_window_bytes")? {
        return Err(format!("{call} takes more stack than is measured"));
    }
    Ok(bytes)
}

/// The mean instructions of a call: the plugin's, or else the timer's.
fn instructions(said: &Said, counts: Option<&Counts>, call: &str) -> Result<u64, String> {
    let calls = number(said, &format!("calls_{call}"))?;
    let timed = timed(said, call)?;
    let counted = counts.map(|counts| counted(counts, call, calls)).transpose()?;
    let reads = number(said, &format!("reads_{call}")).unwrap_or(0);
    // Reading the timer takes instructions itself, some tens a call, and some for each read of
    // the chip.
    if let Some(counted) = counted
        && timed.abs_diff(counted) > counted / 50 + 200 * calls + 16 * reads
    {
        return Err(format!("{call}: the plugin counts {counted} instructions, the timer {timed}"));
    }
    Ok(counted.unwrap_or(timed) / calls.max(1))
}

/// Combines the image's report, its size, and the plugin's counts if there are any.
pub fn row(said: &Said, code_bytes: u64, counts: Option<&Counts>) -> Result<Row, String> {
    let number = |name: &str| number(said, name);
    let mut figures = Vec::new();
    let mut ram_bytes = 0;
    for part in ["buffer", "bitmap", "table", "struct"] {
        let name = format!("{part}_bytes");
        ram_bytes += number(&name)?;
        figures.push((name.clone(), number(&name)?));
    }
    figures.push(("ram_bytes".to_owned(), ram_bytes));
    let mut deepest = 0;
    for call in CALLS {
        let bytes = stack(said, call)?;
        deepest = deepest.max(bytes);
        figures.push((format!("stack_{call}_bytes"), bytes));
    }
    figures.push(("stack_bytes".to_owned(), deepest));
    figures.push(("code_bytes".to_owned(), code_bytes));
    for name in ["records", "height"] {
        figures.push((name.to_owned(), number(name)?));
    }
    for call in CALLS.into_iter().filter(|&call| call != "remove") {
        figures.push((format!("{call}_instructions"), instructions(said, counts, call)?));
    }
    for call in ["mount", "insert", "get", "range"] {
        for operation in ["reads", "programs", "rewrites", "erases"] {
            figures.push((format!("{call}_{operation}"), number(&format!("{operation}_{call}"))?));
        }
    }
    let (board, system) = (text(said, "board")?.clone(), text(said, "system")?.clone());
    Ok(Row { board, system, figures })
}

/// Instructions by the timer, which was calibrated with a known number of them.
fn timed(said: &Said, call: &str) -> Result<u64, String> {
    let ticks = number(said, &format!("ticks_{call}"))?;
    let known = number(said, "calibration_instructions")?;
    Ok(ticks * known / number(said, "calibration_ticks")?.max(1))
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
        assert_eq!(row.get("stack_bytes"), Some(1026));
        // 80,000 ticks of 1.25 instructions in 10 calls.
        assert_eq!(row.get("insert_instructions"), Some(10_000));
        assert_eq!(row.get("nothing_of_that_name"), None);
        let over: Vec<_> = row.over().iter().map(|(bound, by)| (bound.figure, *by)).collect();
        assert_eq!(over, [("code_bytes", 40_000), ("stack_bytes", 1026)]);
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
    fn a_mapping_has_memory_stack_and_instructions() {
        let mut said = said();
        let mut say = |name: &str, value: &str| said.insert(name.to_owned(), value.to_owned());
        say("mapping", "compact");
        for (place, name) in ["entries", "used_bytes", "peak_bytes"].into_iter().enumerate() {
            say(name, &(7 + place).to_string());
        }
        for call in MAPPING_CALLS {
            say(&format!("stack_bytes_{call}"), "300");
            say(&format!("calls_{call}"), "4");
            say(&format!("ticks_{call}"), "8000");
        }
        let row = mapping_row(&said, None).unwrap();
        assert_eq!(row.of(), ("microbit", "map:compact"));
        assert_eq!((row.get("entries"), row.get("peak_bytes")), (Some(7), Some(9)));
        // 8,000 ticks of 1.25 instructions in 4 calls.
        assert_eq!(row.get("look_up_instructions"), Some(2_500));
        said.remove("calls_update");
        assert!(mapping_row(&said, None).unwrap_err().contains("calls_update"));
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
