//! The lab: runs every system on the same work and reports the cost.
//!
//! Work runs on simulated chips; the cost is in chip operations and modelled time. The lab also
//! keeps records in chip images and inspects any image. It prints no output and knows no system by
//! name.

pub mod analysis;
pub mod block_trace;
pub mod check;
pub mod compare;
pub mod effort;
pub mod fit;
pub mod hostile;
pub mod input;
pub mod inspect;
pub mod layer;
pub mod replay;
pub mod reproduce;
pub mod rivals;
pub mod run;
pub mod store;
pub mod subject;
pub mod systems;
pub mod torn;
pub mod torture;
pub mod trace;
pub mod wear;
pub mod work;
pub mod workload;

mod cost;
mod error;
mod hand_on;
mod opened;
mod parallel;

pub use error::LabError;
