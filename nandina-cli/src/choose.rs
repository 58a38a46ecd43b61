//! Things that a user chooses by name. An unknown name is refused with the list of known ones.

use nandina::flash::profile::{self, Profile};
use nandina_lab::LabError;
use nandina_lab::systems::SYSTEMS;

/// Returns the chip of this name.
pub fn device(key: &str) -> Result<Profile, LabError> {
    profile::find(key).copied().ok_or_else(|| {
        let known: Vec<_> = profile::PROFILES.iter().map(|profile| profile.key).collect();
        LabError(format!("there is no device '{key}': choose from {}", known.join(", ")))
    })
}

/// Returns the systems of these names; all of them if `keys` is empty.
pub fn systems(keys: &[String]) -> Result<Vec<&'static str>, LabError> {
    let known: Vec<_> = SYSTEMS.iter().map(|system| system.key).collect();
    if keys.is_empty() {
        return Ok(known);
    }
    let system = |key: &String| {
        known.iter().copied().find(|known| known == key).ok_or_else(|| {
            let known = known.join(", ");
            LabError(format!("there is no system '{key}': choose from {known}"))
        })
    };
    keys.iter().map(system).collect()
}
