//! Hybrid FTLs, as their own checks have them.

#[path = "../hybrid/host.rs"]
pub mod host;
#[path = "../hybrid/kinds.rs"]
pub mod kinds;
