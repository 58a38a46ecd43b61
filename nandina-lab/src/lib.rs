//! The lab: runs every system of the registry on the same work, on simulated chips, and reports what it
//! cost in chip operations and modelled time. It prints nothing and knows no system by name.

pub mod compare;
pub mod hostile;
pub mod input;
pub mod reproduce;
pub mod run;
pub mod torture;
pub mod work;

mod error;

pub use error::LabError;
