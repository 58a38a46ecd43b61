//! Records in a chip image, as people write them: put, get, scan, remove, load.
//!
//! Only [`Store::close`] changes the image on disk; a store that is dropped leaves it unchanged.

mod kind;
mod rows;

pub use crate::opened::CHECKPOINTS;
pub use kind::{Cell, Kind};
pub use nandina_sim::blocks_max;
pub use rows::Rows;

use std::ops::Bound;
use std::path::Path;

use crate::systems::visit;
use nandina::flash::Profile;
use nandina::node::Medium;
use nandina::store::Visitor;
use nandina::{Index, Inserted, Options, Removed, System, ram_needed};
use nandina_sim::{Chip, Image};

use crate::LabError;
use crate::opened::{Job, With, medium_of};

/// The label for the kind of the keys.
pub const KEY_LABEL: &str = "key";
/// The label for the kind of the values.
pub const VALUE_LABEL: &str = "value";
/// The label for the bytes of RAM for nodes with which the index was made, if they were given.
pub const ARENA_LABEL: &str = "arena bytes";
/// The label for the number of records inserted, replaced or removed.
pub const CHANGES_LABEL: &str = "changes";

/// Returns the chip of the image at `path`, and its number of changes if known.
///
/// A change is a record inserted, replaced or removed.
pub fn look(path: &Path) -> Result<(Chip, Option<u64>), LabError> {
    let image = Image::look(path)?;
    let changes = image.labels.get(CHANGES_LABEL).and_then(|count| count.parse().ok());
    Ok((image.clone(), changes))
}

/// An image whose index is in use.
pub struct Store {
    image: Image,
    medium: Medium,
    key: Kind,
    value: Kind,
    arena_bytes: Option<usize>,
}

/// The records of a scan.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ScanRange<'t> {
    /// The lowest key; it need not exist.
    pub from: Option<&'t str>,
    /// The highest key; it need not exist.
    pub to: Option<&'t str>,
    /// The most records that the scan returns.
    pub limit: Option<u64>,
    /// From the highest key down.
    pub down: bool,
}

/// The result of a load.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize)]
pub struct Loaded {
    /// Rows of the file.
    pub rows: u64,
    /// Rows whose key is new.
    pub new: u64,
    /// Records in the index now.
    pub records: u32,
}

impl Store {
    /// Makes an image with an empty index of `system` on a new chip.
    ///
    /// `path` must not exist. The kinds are those of keys and values, of which `options` has the
    /// bytes.
    pub fn create(
        path: &Path,
        profile: Profile,
        system: &str,
        (key, value): (Kind, Kind),
        options: &Options,
    ) -> Result<(), LabError> {
        let mut image = Image::create(path, Chip::new(profile))?;
        let format = Format { chip: &mut image, options };
        visit(system, format).unwrap_or_else(|| Err(LabError::no_system(system)))?;
        let labels = [(KEY_LABEL, key.to_string()), (VALUE_LABEL, value.to_string())];
        image.labels = labels.map(|(name, text)| (name.to_string(), text)).into();
        image.labels.insert(CHANGES_LABEL.into(), "0".into());
        if let Some(bytes) = options.arena_bytes {
            image.labels.insert(ARENA_LABEL.into(), bytes.to_string());
        }
        Ok(image.close()?)
    }

    /// Opens the image at `path` for changing it.
    ///
    /// The image is locked until it is closed or dropped.
    ///
    /// An image without kinds of key and value is shown as hexadecimal digits.
    pub fn open(path: &Path) -> Result<Self, LabError> {
        Self::of(Image::open(path)?)
    }

    /// Opens the image at `path` for reading, even if another program has it open.
    ///
    /// It is dropped, not closed.
    pub fn look(path: &Path) -> Result<Self, LabError> {
        Self::of(Image::look(path)?)
    }

    fn of(image: Image) -> Result<Self, LabError> {
        let path = image.path().to_path_buf();
        let fail = |what: String| LabError(format!("{}: {what}", path.display()));
        let medium = medium_of(&image).map_err(|error| fail(error.to_string()))?;
        let kind = |label: &str, bytes: u16| match image.labels.get(label) {
            None => Ok(Kind::Hex(bytes)),
            Some(text) => match text.parse::<Kind>() {
                Ok(kind) if kind.bytes() == bytes => Ok(kind),
                _ => Err(fail(format!(
                    "its label '{label}' is '{text}', a kind of {bytes} bytes was expected"
                ))),
            },
        };
        let key = kind(KEY_LABEL, medium.key_bytes)?;
        let value = kind(VALUE_LABEL, medium.value_bytes)?;
        let arena_bytes = match image.labels.get(ARENA_LABEL).map(|text| (text, text.parse())) {
            None => None,
            Some((_, Ok(bytes))) => Some(bytes),
            Some((text, Err(_))) => {
                return Err(fail(format!(
                    "its label '{ARENA_LABEL}' is '{text}', a number was expected"
                )));
            }
        };
        Ok(Self { key, value, arena_bytes, medium, image })
    }

    /// Kinds of the keys and the values.
    pub const fn kinds(&self) -> (Kind, Kind) {
        (self.key, self.value)
    }

    /// Writes the image with all changes.
    pub fn close(self) -> Result<(), LabError> {
        Ok(self.image.close()?)
    }

    /// Inserts a record or replaces the value of `key`. Returns whether the key is new.
    pub fn put(&mut self, key: &str, value: &str) -> Result<bool, LabError> {
        let key = self.key.key(key).map_err(|what| LabError(format!("KEY: {what}")))?;
        let value = self.value.value(value).map_err(|what| LabError(format!("VALUE: {what}")))?;
        let line = 0;
        let rows = Rows { file: String::new(), rows: vec![(key, value, line)] };
        Ok(self.load(&rows, &|_| {})?.new > 0)
    }

    /// The value of `key`.
    pub fn get(&mut self, key: &str) -> Result<Option<Cell>, LabError> {
        let bytes = self.key.key(key).map_err(|what| LabError(format!("KEY: {what}")))?;
        let value = self.with(Get { key: &bytes })?;
        Ok(value.map(|value| self.value.value_cell(&value)))
    }

    /// Removes the record of `key`. Returns whether there was one.
    pub fn remove(&mut self, key: &str) -> Result<bool, LabError> {
        let bytes = self.key.key(key).map_err(|what| LabError(format!("KEY: {what}")))?;
        let removed = self.with(Remove { key: &bytes })?;
        if removed {
            self.count_changes(1);
        }
        Ok(removed)
    }

    /// Inserts or replaces all rows.
    ///
    /// After an error the image must not be closed. `progress` is called with rows.
    pub fn load(&mut self, rows: &Rows, progress: &dyn Fn(u64)) -> Result<Loaded, LabError> {
        let loaded = self.with(Load { rows, progress })?;
        self.count_changes(loaded.rows);
        Ok(loaded)
    }

    /// Passes each record of `range` to `each` until `each` returns `false`.
    ///
    /// Returns the number of records passed.
    pub fn scan(
        &mut self,
        range: &ScanRange<'_>,
        each: &mut dyn FnMut(Cell, Cell) -> bool,
    ) -> Result<u64, LabError> {
        let bound = |option: &str, text: Option<&str>| match text {
            Some(text) => {
                self.key.key(text).map(Some).map_err(|what| LabError(format!("{option}: {what}")))
            }
            None => Ok(None),
        };
        let (from, to) = (bound("--from", range.from)?, bound("--to", range.to)?);
        let (key, value) = (self.key, self.value);
        let mut each = |k: &[u8], v: &[u8]| each(key.key_cell(k), value.value_cell(v));
        let (limit, down) = (range.limit.unwrap_or(u64::MAX), range.down);
        self.with(Scan { from: from.as_deref(), to: to.as_deref(), limit, down, each: &mut each })
    }

    fn count_changes(&mut self, more: u64) {
        // Changes are counted only if they were counted from the beginning: else the figure would
        // be wrong.
        if let Some(label) = self.image.labels.get_mut(CHANGES_LABEL)
            && let Ok(changes) = label.parse::<u64>()
        {
            *label = changes.saturating_add(more).to_string();
        }
    }

    fn with<T>(&mut self, job: impl Job<Output = Result<T, LabError>>) -> Result<T, LabError> {
        let with = With { medium: &self.medium, arena_bytes: self.arena_bytes };
        let result = with.run(&mut self.image, job).and_then(|done| done);
        result.map_err(|error| LabError(format!("{}: {error}", self.image.path().display())))
    }
}

struct Format<'c> {
    chip: &'c mut Chip,
    options: &'c Options,
}

impl Visitor for Format<'_> {
    type Output = Result<(), LabError>;

    fn visit<S: System + 'static>(self) -> Self::Output {
        if let Some(missing) = S::DESCRIPTION.needs.missing(&self.chip.profile().capabilities) {
            return Err(LabError(format!("{}: {missing}", S::DESCRIPTION.key)));
        }
        let mut ram = vec![0; ram_needed::<S>(&self.chip.profile().geometry, self.options)];
        match Index::<_, S>::format(self.chip, self.options, &mut ram) {
            Ok(_) => Ok(()),
            Err(error) => Err(LabError(format!("{}: {error}", S::DESCRIPTION.key))),
        }
    }
}

fn text(error: impl std::fmt::Display) -> LabError {
    LabError(error.to_string())
}

struct Get<'k> {
    key: &'k [u8],
}

impl Job for Get<'_> {
    type Output = Result<Option<Vec<u8>>, LabError>;

    fn run<S: System>(self, index: &mut Index<'_, &mut Chip, S>) -> Self::Output {
        Ok(index.get(self.key).map_err(text)?.map(<[u8]>::to_vec))
    }
}

struct Remove<'k> {
    key: &'k [u8],
}

impl Job for Remove<'_> {
    type Output = Result<bool, LabError>;

    fn run<S: System>(self, index: &mut Index<'_, &mut Chip, S>) -> Self::Output {
        Ok(index.remove(self.key).map_err(text)? == Removed::Found)
    }
}

struct Load<'r> {
    rows: &'r Rows,
    progress: &'r dyn Fn(u64),
}

impl Job for Load<'_> {
    type Output = Result<Loaded, LabError>;

    fn run<S: System>(self, index: &mut Index<'_, &mut Chip, S>) -> Self::Output {
        let mut new = 0;
        for chunk in self.rows.rows.chunks(1024) {
            for (key, value, line) in chunk {
                let inserted = index.insert(key, value).map_err(|error| match line {
                    0 => text(error),
                    line => LabError(format!("at {}, line {line}: {error}", self.rows.file)),
                })?;
                new += u64::from(inserted == Inserted::New);
            }
            (self.progress)(chunk.len() as u64);
        }
        Ok(Loaded { rows: self.rows.len() as u64, new, records: index.len() })
    }
}

struct Scan<'s> {
    from: Option<&'s [u8]>,
    to: Option<&'s [u8]>,
    limit: u64,
    down: bool,
    each: &'s mut dyn FnMut(&[u8], &[u8]) -> bool,
}

impl Job for Scan<'_> {
    type Output = Result<u64, LabError>;

    fn run<S: System>(self, index: &mut Index<'_, &mut Chip, S>) -> Self::Output {
        let bound = |key: Option<_>| key.map_or(Bound::Unbounded, Bound::Included);
        let bounds = (bound(self.from), bound(self.to));
        let range = if self.down { index.range_down(bounds) } else { index.range(bounds) };
        let mut range = range.map_err(text)?;
        let mut taken = 0;
        while taken < self.limit
            && let Some(record) = range.next().map_err(text)?
        {
            taken += 1;
            if !(self.each)(record.0, record.1) {
                break;
            }
        }
        Ok(taken)
    }
}
