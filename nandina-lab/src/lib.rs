//! The lab: runs every system of the registry on the same work, on simulated chips, and reports
//! what it cost in chip operations and modelled time. It also keeps records in chip images, and
//! looks into any. It prints nothing and knows no system by name.

pub mod analysis;
pub mod check;
pub mod compare;
pub mod effort;
pub mod fit;
pub mod hostile;
pub mod input;
pub mod inspect;
pub mod reproduce;
pub mod run;
pub mod store;
pub mod torture;
pub mod trace;
pub mod wear;
pub mod work;
pub mod workload;

mod cost;
mod error;
mod hand_on;
mod opened;

pub use error::LabError;
