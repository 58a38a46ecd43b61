//! The stores: each folder is one way to write a tree, with its systems.
//!
//! A store writes nodes ([`Placement`]), and says what follows from its way of writing
//! ([`WritePolicy`](crate::tree::WritePolicy)): how the tree is found again after a cut, what a
//! mount writes anew, how many pages may be valid, which options exist, and what the worst call
//! costs. Nothing of one store is known in another one or in the tree.

mod appended;
mod in_place;
mod mapped;
mod page_commits;
mod paths;
mod plan;
mod registry;

pub use appended::VmOw;
pub use in_place::{BTree, Wpcb};
pub use mapped::Vm;
pub use paths::{Mu, MuStar, Wandering};
pub use registry::{SYSTEMS, Visitor, key_of, visit};

pub use crate::engine::{Description, PageSharing, SplitCommit, UpdateScheme};
pub use crate::rosette::Rosette;
#[cfg(feature = "coverage-marks")]
pub use crate::rosette::{Led, Way};
pub use crate::rosette_nor::RosetteNor;
pub use crate::space::{Appends, InPlace, Kind, Maps, Paths, Space};
pub use crate::tnc::Tnc;
pub use crate::tree::{
    Halves, Level, Origin, PlaceFault, Placement, Written, node_in, node_mut_in,
};
