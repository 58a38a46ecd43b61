//! The systems that the lab runs: those of the library, and stores of one's own.
//!
//! Everything in the lab and the program that lists or chooses a system does it here. To add a
//! store of one's own, name its file and its type below (docs/OWN-STORE.md).

#[cfg(feature = "example-store")]
#[path = "../own/leaf_pairs.rs"]
mod leaf_pairs;

#[cfg(feature = "example-store")]
pub use leaf_pairs::LeafPairs;

use nandina::System;
use nandina::flash::Profile;
use nandina::store::{
    BTree, Description, Mu, MuStar, Rosette, RosetteNor, Tnc, Visitor, Vm, VmOw, Wandering, Wpcb,
};

use crate::layer::{Layer, TransitBuffer};
use crate::rivals;

#[cfg(not(feature = "example-store"))]
nandina::registry![Wandering, Mu, BTree, Vm, VmOw, Wpcb, Rosette, RosetteNor, Tnc, MuStar];
#[cfg(feature = "example-store")]
nandina::registry![
    Wandering, Mu, BTree, Vm, VmOw, Wpcb, Rosette, RosetteNor, Tnc, MuStar, LeafPairs
];

/// Runs `visitor` with the system of this key, which may be a rival ([`crate::rivals`]).
pub fn visit_any<V: Visitor>(key: &str, visitor: V) -> Option<V::Output> {
    if rivals::SYSTEMS.iter().any(|system| system.key == key) {
        rivals::visit(key, visitor)
    } else {
        visit(key, visitor)
    }
}

/// Whether a system is a store of one's own, and none of the library.
pub fn is_own(system: &Description) -> bool {
    #[cfg(feature = "example-store")]
    if system.key == <LeafPairs as System>::DESCRIPTION.key {
        return true;
    }
    let _ = system;
    false
}

/// The B-trees that the WPCB-tree paper names by the FTL below them: their names, and the FTLs.
const STACKS: [(&str, &str); 2] = [("ipl", "ftl:ipl"), ("dipl", "ftl:dipl")];

/// The system of this name, and the FTL on which it is that: `btree` on an FTL of its own.
pub fn stack(name: &str) -> Option<(&'static str, Layer)> {
    let (_, layer) = STACKS.iter().find(|(stack, _)| *stack == name)?;
    Some((<BTree as System>::DESCRIPTION.key, Layer::named(layer).ok()?))
}

/// Buffer blocks of the WPCB-tree, where the chip has eight times as many blocks or more.
///
/// WPCB-tree paper, section 6.2.
const BUFFER_BLOCKS: u32 = 128;

/// The FTL that the system named `key` stands on where nothing else is chosen.
///
/// `None` for systems that stand on the chip itself, and for chips that can carry the system.
pub fn usual_layer(key: &str, chip: &Profile) -> Option<Layer> {
    let wpcb = <Wpcb as System>::DESCRIPTION;
    if key != wpcb.key || chip.capabilities.rewrite {
        return None;
    }
    let blocks = BUFFER_BLOCKS.min(chip.geometry.blocks / 8).max(1);
    let transit = TransitBuffer { blocks, as_printed: false };
    Layer::named("ftl:fast").and_then(|layer| layer.with_transit(transit)).ok()
}
