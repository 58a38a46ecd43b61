//! The data sets: random records, and sensor series as a secondary index.
//!
//! The series are those of the folder `data` of EmbedDB (<https://github.com/ubco-db/EmbedDB>). A
//! missing file is a reason to skip, not an error.

use std::path::Path;

use crate::LabError;
use crate::input;
use crate::work::{Operation, Phase, SCAN_RECORDS, Work};

/// The data sets, by name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Random keys of 4 bytes, records of 16 (Figure 5).
    Random,
    /// Random keys of 4 bytes, records of 8.
    RandomSmall,
    /// Temperature of a weather station, mostly by the hour, as in section 5.2.
    Temperature,
    /// Temperature of another station, by the minute.
    MinuteTemperature,
    /// Wind speed of the first station, of which there are few different values.
    Wind,
}

/// Where a sensor series comes from.
struct Source {
    file: &'static str,
    column: &'static str,
}

impl Kind {
    /// Every data set.
    pub const ALL: [Self; 5] =
        [Self::Random, Self::RandomSmall, Self::Temperature, Self::MinuteTemperature, Self::Wind];

    /// Its name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Random => "random",
            Self::RandomSmall => "random-8B",
            Self::Temperature => "temperature",
            Self::MinuteTemperature => "minute-temperature",
            Self::Wind => "wind",
        }
    }

    const fn source(self) -> Option<Source> {
        let (file, column) = match self {
            Self::Random | Self::RandomSmall => return None,
            Self::Temperature => ("sea100K.bin", "v1"),
            Self::MinuteTemperature => ("uwa500K_only_100K.bin", "v1"),
            Self::Wind => ("sea100K.bin", "v3"),
        };
        Some(Source { file, column })
    }

    /// The series of this kind; there is one for each.
    pub fn find(self, all: &[Series]) -> &Series {
        all.iter().find(|series| series.kind == self).unwrap_or(&all[0])
    }

    /// The rows of this kind, without any phase, or why they are missing.
    ///
    /// A sensor's records are entries of a secondary index: the key is the value, four bytes, and
    /// the row number, four bytes; values are empty.
    pub fn rows(self, rows: u32, seed: u64, sensors: Option<&Path>) -> Result<Work, String> {
        let text = |error: LabError| error.0;
        let Some(Source { file, column }) = self.source() else {
            let value_bytes = if self == Self::Random { 12 } else { 4 };
            return Work::random_rows(rows, 4, value_bytes, seed).map_err(text);
        };
        let name = self.name();
        let Some(sensors) = sensors else {
            return Err(format!("{name}: give --sensors DIR, a folder with {file}"));
        };
        // The file as published, or compressed.
        let packed = sensors.join(format!("{file}.zst"));
        let path = if packed.exists() { packed } else { sensors.join(file) };
        if !path.exists() {
            return Err(format!("{name}: {} is not there: give another --sensors", path.display()));
        }
        let records = input::read(&path, Some(column), Some("key"), Some(4), None)
            .map_err(|error| error.to_string())?
            .first(rows as usize)
            .with_row_numbers();
        let keys = (0..records.len()).flat_map(|row| records.key(row)).copied().collect();
        Work::from_rows(8, 0, keys, Vec::new()).map_err(text)
    }
}

/// A data set with the work that is done on it.
pub struct Series {
    /// Which it is.
    pub kind: Kind,
    /// The work, or why there is none.
    ///
    /// It has inserts of all rows in order, as many queries in that order, and scans of a hundred
    /// records.
    pub work: Result<Work, String>,
}

impl Series {
    /// Makes the data set with `rows` records.
    pub fn new(kind: Kind, rows: u32, seed: u64, sensors: Option<&Path>) -> Self {
        let work = kind.rows(rows, seed, sensors).map(|mut work| {
            let rows = work.rows() as u32;
            let scan = |row| Operation::Scan { row, records: SCAN_RECORDS };
            work.phases = vec![
                Phase::new("insert", (0..rows).map(Operation::Insert).collect()),
                Phase::new("query", (0..rows).map(Operation::Lookup).collect()),
                Phase::new("scan", (0..rows).step_by(rows as usize / 100).map(scan).collect()),
            ];
            work
        });
        Self { kind, work }
    }

    /// Operations of a run of it.
    pub fn operations(&self) -> u64 {
        self.work.as_ref().map_or(0, Work::operations)
    }
}
