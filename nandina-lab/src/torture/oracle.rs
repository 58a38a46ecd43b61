//! What an index must hold, and the comparison of the two. Nothing here drives a chip.

use std::collections::BTreeMap;

use nandina::flash::Flash;
use nandina::place::Placement;
use nandina::{Index, OpenError, ReadError};
use nandina_sim::{Chip, ChipError};

/// What an index must hold.
pub type Model = BTreeMap<Vec<u8>, Vec<u8>>;

/// One change.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Change {
    /// Puts the record of this number with the value of this version.
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

    /// Does the change in the model, with values of `value_bytes`.
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

/// What each key may hold after a cut that was changed since the last flush: what it held then, or
/// any change of it since. With a write buffer changes come to the chip in the order of keys, each
/// for itself.
#[derive(Clone, Debug, Default)]
pub struct Pending(BTreeMap<Vec<u8>, Vec<Option<Vec<u8>>>>);

impl Pending {
    /// Notes `change`, which is about to be asked of an index that holds what `model` does.
    pub fn note(&mut self, model: &Model, change: Change, value_bytes: usize) {
        let key = key(change.number());
        let states = self.0.entry(key.clone()).or_insert_with(|| vec![model.get(&key).cloned()]);
        let mut after = Model::new();
        change.apply(&mut after, value_bytes);
        states.push(after.remove(&key));
    }

    /// All changes so far are durable, or none of them is awaited any more.
    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// Whether every change is durable.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether `found`, all that an index holds, may be what it holds after a cut, where `model` is
    /// what it held before.
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

    /// Has `model` hold what the index does, as far as that may be; else says what is wrong.
    /// Answers whether power and the device's patience lasted.
    pub fn settle<S: Placement>(
        &self,
        index: &mut Index<'_, &mut Chip, S>,
        model: &mut Model,
    ) -> Result<bool, String> {
        let mut tries = 0;
        for (key, states) in &self.0 {
            let found = loop {
                match index.get(key) {
                    Ok(found) => break found.map(<[u8]>::to_vec),
                    Err(ReadError::Device(ChipError::PowerLost)) => return Ok(false),
                    Err(ReadError::Device(ChipError::GaveUp)) if tries < TRIES_MAX => tries += 1,
                    Err(ReadError::Device(ChipError::GaveUp)) => return Ok(false),
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

/// A value that tells the number and the version that it belongs to, in every eight of its bytes.
pub fn value(number: u32, version: u32, value_bytes: usize) -> Vec<u8> {
    let word = [number.to_le_bytes(), version.to_le_bytes()].concat();
    word.into_iter().cycle().take(value_bytes).collect()
}

/// Answers what is wrong if the index does not hold just what the model does: every invariant, then
/// all records upwards and downwards.
pub fn compare<F: Flash, S: Placement>(
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

/// A value in a report, by its first bytes: they repeat.
fn shown(value: Option<&[u8]>) -> String {
    value.map_or("absent".into(), |value| format!("{:02x?}", &value[..value.len().min(8)]))
}

/// Why the contents of an index are not known.
#[derive(Debug)]
pub enum Unknown {
    /// Power went, or the device gave a read up.
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

/// All that an index holds, by a scan upwards.
pub fn contents<F: Flash<Error = ChipError>, S: Placement>(
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

/// Whether `open` says that there is no index, or none of the settings that are asked for.
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
