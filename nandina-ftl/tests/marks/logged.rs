//! FTLs with log records, as their own checks have them.

#[path = "../logged/host.rs"]
pub mod host;
#[path = "../logged/kinds.rs"]
pub mod kinds;
