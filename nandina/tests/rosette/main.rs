//! The trails of `rosette`: a mount that reads few pages finds what one finds that reads all.

mod costs;
mod cuts;
mod damage;
mod lives;
#[path = "../random/mod.rs"]
mod random;
mod room;
mod ways;
