//! Things that a user chooses by name. A name that is not known gets the list of those that are.

use nandina::flash::profile::{self, Profile};
use nandina_lab::LabError;

/// The chip of this name.
pub fn device(key: &str) -> Result<Profile, LabError> {
    profile::find(key).copied().ok_or_else(|| {
        let known: Vec<_> = profile::PROFILES.iter().map(|profile| profile.key).collect();
        LabError(format!("there is no device '{key}': choose from {}", known.join(", ")))
    })
}
