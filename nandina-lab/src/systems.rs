//! The systems that the lab runs: those of the library, and stores of one's own.
//!
//! Everything in the lab and the program that lists or chooses a system does it here. To add a
//! store of one's own, name its file and its type below (docs/OWN-STORE.md).

#[cfg(feature = "example-store")]
#[path = "../own/leaf_pairs.rs"]
mod leaf_pairs;

#[cfg(feature = "example-store")]
pub use leaf_pairs::LeafPairs;

use nandina::store::{BTree, Mu, Vm, VmOw, Wandering};

#[cfg(not(feature = "example-store"))]
nandina::registry![Wandering, Mu, BTree, Vm, VmOw];
#[cfg(feature = "example-store")]
nandina::registry![Wandering, Mu, BTree, Vm, VmOw, LeafPairs];
