//! BFTL and LA-tree with every record on a device: systems to compare the others with.
//!
//! The WPCB-tree paper names both in a table and describes neither; each file says what was chosen.
//! They need a device that replaces each page as a whole, as an FTL does, and they use the heap:
//! they are for a lab on a host. They are not in the registry, whose suite looks into nodes.

mod bftl;
mod engine;
mod pages;
mod tree;

use core::convert::Infallible;

use nandina::engine::{Description, Options, Plan};
use nandina::flash::{Capabilities, Flash, Geometry};
use nandina::{OpenError, System};

use engine::{Rival, RivalIndex};

/// A node is a list of pages, and a page has index units of many nodes.
pub struct Bftl;

impl System for Bftl {
    const DESCRIPTION: Description = <bftl::Bftl<nandina_sim::Chip> as Rival<_>>::DESCRIPTION;

    type Engine<'b, F: Flash> = RivalIndex<'b, bftl::Bftl<F>, F>;

    fn ram_needed(geometry: &Geometry, options: &Options) -> usize {
        engine::ram_needed(geometry, options)
    }

    fn plan(
        geometry: &Geometry,
        _: &Capabilities,
        options: &Options,
        _: u32,
    ) -> Result<Plan, OpenError<Infallible>> {
        engine::plan(geometry, options)
    }
}
