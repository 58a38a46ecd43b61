//! The model of an index's content, and its comparison with the index.
//!
//! This file does not drive a chip.

use std::collections::BTreeMap;

use nandina::flash::Flash;
use nandina::{Index, Inserted, OpenError, ReadError, Removed, System, WriteError};
use nandina_sim::ChipError;

use super::worn::is_worn_out;
use crate::layer::Bus;

/// The records that an index must hold.
pub type Model = BTreeMap<Vec<u8>, Vec<u8>>;

/// One change.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Change {
    /// Inserts or replaces the record of this number with the value of this version.
    Put(u32, u32),
    /// Removes the record of this number.
    Remove(u32),
}

impl Change {
    /// The number of the record.
    pub const fn number(self) -> u32 {
        match self {
            Self::Put(number, _) | Self::Remove(number) => number,
        }
    }

    /// Makes the change in an index, with values of `value_bytes`.
    ///
    /// Returns whether there was a record of the key before, or `None` if the change is pending.
    pub fn make<F: Flash, S: System>(
        self,
        index: &mut Index<'_, F, S>,
        value_bytes: usize,
    ) -> Result<Option<bool>, WriteError<F::Error>> {
        Ok(match self {
            Self::Put(number, version) => {
                match index.insert(&key(number), &value(number, version, value_bytes))? {
                    Inserted::New => Some(false),
                    Inserted::Replaced => Some(true),
                    _ => None,
                }
            }
            Self::Remove(number) => match index.remove(&key(number))? {
                Removed::Found => Some(true),
                Removed::Absent => Some(false),
                _ => None,
            },
        })
    }

    /// Makes the change in the model, with values of `value_bytes`.
    pub fn apply(self, model: &mut Model, value_bytes: usize) {
        match self {
            Self::Put(number, version) => {
                model.insert(key(number), value(number, version, value_bytes));
            }
            Self::Remove(number) => {
                model.remove(&key(number));
            }
        }
    }
}

/// Lookups that the device may give up before the index is closed.
const TRIES_MAX: u32 = 3;

/// The states that each changed key may have after a cut.
///
/// A key that was changed since the last flush may hold what it held at that flush, or any change
/// since. With a write buffer changes reach the chip in the order of keys, each by itself.
#[derive(Clone, Debug, Default)]
pub struct Pending(BTreeMap<Vec<u8>, Vec<Option<Vec<u8>>>>);

impl Pending {
    /// Records `change` before it is made in an index that holds what `model` does.
    pub fn note(&mut self, model: &Model, change: Change, value_bytes: usize) {
        let key = key(change.number());
        let states = self.0.entry(key.clone()).or_insert_with(|| vec![model.get(&key).cloned()]);
        let mut after = Model::new();
        change.apply(&mut after, value_bytes);
        states.push(after.remove(&key));
    }

    /// Forgets all changes: they are durable, or no longer expected.
    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// Whether every change is durable.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Checks that `found`, the content of an index after a cut, is permitted.
    ///
    /// `model` is its content before.
    pub fn admits(&self, model: &Model, found: &Model) -> Result<(), String> {
        for key in found.keys().chain(model.keys()) {
            let (is, was) = (found.get(key), model.get(key));
            match self.0.get(key) {
                Some(states) if states.iter().any(|state| state.as_ref() == is) => {}
                None if is == was => {}
                Some(states) => {
                    let states: Vec<_> =
                        states.iter().map(|state| shown(state.as_deref())).collect();
                    let is = shown(is.map(Vec::as_slice));
                    return Err(format!("{key:02x?} is {is}, which is none of {states:?}"));
                }
                None => {
                    let (is, was) = (is.map(Vec::as_slice), was.map(Vec::as_slice));
                    return Err(format!("{key:02x?} is {}, it was {}", shown(is), shown(was)));
                }
            }
        }
        Ok(())
    }

    /// Sets `model` to the content of the index, if that is permitted.
    ///
    /// Else it returns what is wrong.
    ///
    /// Returns `false` if power failed, the device gave up too often, or the FTL below the index
    /// refused what a mount writes, because its chip is worn out.
    pub fn settle<B: Bus + ?Sized, S: System>(
        &self,
        index: &mut Index<'_, &mut B, S>,
        model: &mut Model,
    ) -> Result<bool, String> {
        let mut tries = 0;
        for (key, states) in &self.0 {
            let found = loop {
                let get = index.get(key).map(|found| found.map(<[u8]>::to_vec));
                match get {
                    Ok(found) => break found,
                    Err(ReadError::Device(ChipError::PowerLost)) => return Ok(false),
                    Err(ReadError::Device(ChipError::GaveUp)) if tries < TRIES_MAX => tries += 1,
                    Err(ReadError::Device(ChipError::GaveUp)) => return Ok(false),
                    Err(ReadError::Device(ChipError::Layer(_)))
                        if is_worn_out(index.flash().simulated()) =>
                    {
                        return Ok(false);
                    }
                    Err(error) => return Err(text(error)),
                }
            };
            if !states.contains(&found) {
                return Err(format!("{key:02x?} is {found:02x?}, which is none of {states:02x?}"));
            }
            match found {
                Some(value) => drop(model.insert(key.clone(), value)),
                None => drop(model.remove(key)),
            }
        }
        Ok(true)
    }
}

/// The key of a number.
pub fn key(number: u32) -> Vec<u8> {
    nandina::key::from_u32(number).to_vec()
}

/// A value that contains its number and version, in every eight of its bytes.
pub fn value(number: u32, version: u32, value_bytes: usize) -> Vec<u8> {
    let word = [number.to_le_bytes(), version.to_le_bytes()].concat();
    word.into_iter().cycle().take(value_bytes).collect()
}

/// Returns an error if the index differs from the model.
///
/// It checks every invariant, then all records upwards and downwards.
pub fn compare<F: Flash, S: System>(
    index: &mut Index<'_, F, S>,
    model: &Model,
) -> Result<(), String> {
    let mut violations = Vec::new();
    index.check(|violation| violations.push(violation.to_string())).map_err(text)?;
    if !violations.is_empty() {
        return Err(format!("invariants: {violations:?}"));
    }
    if index.len() as usize != model.len() {
        return Err(format!("{} records, the model has {}", index.len(), model.len()));
    }
    let mut range = index.range(..).map_err(text)?;
    for (key, value) in model {
        if range.next().map_err(text)? != Some((&key[..], &value[..])) {
            return Err(format!("scan upwards differs at {key:02x?}"));
        }
    }
    if range.next().map_err(text)?.is_some() {
        return Err("scan upwards goes on after the last record".into());
    }
    let mut range = index.range_down(..).map_err(text)?;
    for (key, value) in model.iter().rev() {
        if range.next().map_err(text)? != Some((&key[..], &value[..])) {
            return Err(format!("scan downwards differs at {key:02x?}"));
        }
    }
    if range.next().map_err(text)?.is_some() {
        return Err("scan downwards goes on after the first record".into());
    }
    Ok(())
}

/// A value in a report: its first bytes, since they repeat.
fn shown(value: Option<&[u8]>) -> String {
    value.map_or("absent".into(), |value| format!("{:02x?}", &value[..value.len().min(8)]))
}

/// Why the contents of an index are not known.
#[derive(Debug)]
pub enum Unknown {
    /// Power failed, or the device gave a read up.
    Stopped(ChipError),
    /// The index is wrong.
    Wrong(String),
}

impl From<ReadError<ChipError>> for Unknown {
    fn from(error: ReadError<ChipError>) -> Self {
        match error {
            ReadError::Device(error @ (ChipError::PowerLost | ChipError::GaveUp)) => {
                Self::Stopped(error)
            }
            error => Self::Wrong(text(error)),
        }
    }
}

/// Reads all records of an index by a scan upwards.
pub fn contents<F: Flash<Error = ChipError>, S: System>(
    index: &mut Index<'_, F, S>,
) -> Result<Model, Unknown> {
    let mut found = Model::new();
    let mut range = index.range(..)?;
    while let Some((key, value)) = range.next()? {
        if found.last_key_value().is_some_and(|(last, _)| &last[..] >= key) {
            return Err(Unknown::Wrong(format!("scan upwards does not rise at {key:02x?}")));
        }
        found.insert(key.to_vec(), value.to_vec());
    }
    Ok(found)
}

/// Whether the error of `open` means that there is no index.
///
/// An index with other settings than the requested ones counts as none.
pub const fn says_none<E>(error: &OpenError<E>) -> bool {
    matches!(
        error,
        OpenError::Blank
            | OpenError::NotNandina
            | OpenError::Corrupt { .. }
            | OpenError::Version { .. }
            | OpenError::Mismatch { .. }
    )
}

/// An error in words for a report.
pub fn text(error: impl std::fmt::Debug) -> String {
    format!("{error:?}")
}
