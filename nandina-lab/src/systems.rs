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
use nandina::flash::{Profile, profile};
use nandina::store::{
    BTree, Description, Mu, MuStar, Rosette, RosetteNor, Tnc, Visitor, Vm, VmOw, Wandering, Wpcb,
};
use nandina_ftl::ftl::DISK;

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

/// A system that the program takes by name.
pub struct Listed {
    /// The name.
    pub key: &'static str,
    /// What it is: the system itself, or the one that runs on an FTL under this name.
    pub system: &'static Description,
    /// What it runs on, where nothing else is chosen.
    pub runs_on: String,
    /// Whether it is a system of this list itself, for every test and report.
    pub is_of_list: bool,
}

/// Every system that can be named, with what it runs on.
///
/// These are the systems of the list, BFTL, LA-tree and MB-tree, and the B-trees with an FTL of
/// their own.
pub fn listed() -> Vec<Listed> {
    let own = |system: &'static Description, is_of_list| {
        let runs_on = match usual_layer(system.key, &profile::SLC) {
            Some(layer) => format!("{}, or another FTL", layer.name()),
            None if system.needs.atomic_rewrite => "an FTL".into(),
            None if system.needs.rewrite => "an FTL or a card".into(),
            None => "the chip".into(),
        };
        Listed { key: system.key, system, runs_on, is_of_list }
    };
    let stacked = |&(key, _): &(&'static str, &str)| {
        let (of, layer) = stack(key)?;
        let system = SYSTEMS.iter().find(|system| system.key == of)?;
        Some(Listed { key, system, runs_on: layer.name(), is_of_list: false })
    };
    let list = SYSTEMS.iter().map(|system| own(system, true));
    let rivals = rivals::SYSTEMS.iter().map(|system| own(system, false));
    list.chain(rivals).chain(STACKS.iter().filter_map(stacked)).collect()
}

/// Whether the system of the list that is named `key` runs over an FTL.
pub fn runs_over_ftls(key: &str) -> bool {
    let runs = |system: &Description| system.needs.missing(&DISK).is_none();
    SYSTEMS.iter().any(|system| system.key == key && runs(system))
}

/// The names of the B-trees with an FTL of their own.
pub fn stacks() -> [&'static str; STACKS.len()] {
    STACKS.map(|(name, _)| name)
}

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
