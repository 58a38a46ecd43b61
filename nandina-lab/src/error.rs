//! Why an experiment could not be run, in one line that says what to do.

/// One line for the user: what is wrong and what to do.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LabError(pub String);

impl LabError {
    /// The error for a `key` that no system of the registry has.
    pub(crate) fn no_system(key: &str) -> Self {
        let known: Vec<_> = crate::systems::SYSTEMS.iter().map(|system| system.key).collect();
        Self(format!("there is no system '{key}': choose from {}", known.join(", ")))
    }
}

impl From<nandina_sim::ImageError> for LabError {
    fn from(error: nandina_sim::ImageError) -> Self {
        Self(error.to_string())
    }
}

impl std::fmt::Display for LabError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for LabError {}
