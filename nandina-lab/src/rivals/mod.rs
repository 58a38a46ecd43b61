//! BFTL, LA-tree and MB-tree with every record on a device: systems to compare the others with.
//!
//! The WPCB-tree paper names them in a table and describes none; each file says what was chosen.
//! They need a device that replaces each page as a whole, as an FTL does, and they use the heap:
//! they are for a lab on a host. They are no systems of [`crate::systems`], whose suite looks into
//! nodes; comparisons and torture take them by name.

mod bftl;
mod engine;
mod la_tree;
mod mb_tree;
mod pages;
mod tree;
mod worst;

use core::convert::Infallible;

use nandina::engine::{Description, Options, Plan};
use nandina::flash::{Capabilities, Flash, Geometry};
use nandina::{OpenError, System};
use nandina_sim::Chip;

use engine::{Rival, RivalIndex};

/// Declares a rival as a system: its engine and its bounds.
macro_rules! system {
    ($(#[$doc:meta])* $name:ident, $of:ident) => {
        $(#[$doc])*
        pub struct $name;

        impl System for $name {
            const DESCRIPTION: Description = <$of::$name<Chip> as Rival<Chip>>::DESCRIPTION;

            type Engine<'b, F: Flash> = RivalIndex<'b, $of::$name<F>, F>;

            fn ram_needed(geometry: &Geometry, options: &Options) -> usize {
                engine::ram_needed::<Chip, $of::$name<Chip>>(geometry, options)
            }

            fn plan(
                geometry: &Geometry,
                _: &Capabilities,
                options: &Options,
                records: u32,
            ) -> Result<Plan, OpenError<Infallible>> {
                engine::plan::<Chip, $of::$name<Chip>, _>(geometry, options, records)
            }
        }
    };
}

system! {
    /// A node is a list of pages, and a page has index units of many nodes.
    Bftl, bftl
}

system! {
    /// Changes wait in pages above the leaves, until lookups have paid for moving them.
    LaTree, la_tree
}

system! {
    /// A leaf has several pages, and the leaf with the most changes is written.
    MbTree, mb_tree
}

nandina::registry![Bftl, LaTree, MbTree];
