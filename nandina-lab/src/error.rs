//! Why an experiment could not be run, in one line that says what to do.

/// One line for the user: what is wrong and how to mend it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LabError(pub String);

impl std::fmt::Display for LabError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for LabError {}
