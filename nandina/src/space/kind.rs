//! The kinds of systems, as far as what they ask of their space differs: known when a program is compiled, so that a
//! system takes neither code nor RAM for what only others do. No system is named here.

use super::cache::{Staging, Written};
use super::{Checkpoints, Space, Wear};

/// What a system asks of its space.
pub trait Kind: Sized {
    /// A table tells where nodes stand whose parents know them by another page.
    const MAPS: bool = false;

    /// Logical pages are replaced in place.
    const IN_PLACE: bool = false;

    /// Records are appended to pages that were programmed before.
    const APPENDS: bool = false;

    /// Each change writes new pages up to the root. A write cache, checkpoints and hints are for these.
    const PATHS: bool = false;

    /// How worn blocks are spared, if the options do not tell.
    const WEAR: Wear = Wear::Circular;

    /// What is known of the checkpoints on the chip.
    type Checkpoints: From<Checkpoints>;

    /// The account of pages that are staged.
    type Written: Written;

    /// The space, if paths are written in it.
    fn paths<'s, 'b, F>(space: &'s Space<'b, F, Self>) -> Option<&'s Space<'b, F, Paths>> {
        let _ = space;
        None
    }

    /// The space, if paths are written in it, to change.
    fn paths_mut<'s, 'b, F>(
        space: &'s mut Space<'b, F, Self>,
    ) -> Option<&'s mut Space<'b, F, Paths>> {
        let _ = space;
        None
    }
}

/// Each change writes new pages up to the root.
pub struct Paths;

/// A change writes new pages, and mappings lead to them.
pub struct Maps;

/// A change replaces logical pages.
pub struct InPlace;

/// A change is appended to pages that were programmed before.
pub struct Appends;

/// There is no such thing.
pub struct Nothing;

impl From<Checkpoints> for Nothing {
    fn from(_: Checkpoints) -> Self {
        Self
    }
}

impl Kind for Paths {
    const PATHS: bool = true;
    const WEAR: Wear = Wear::Counted;
    type Checkpoints = Checkpoints;
    type Written = Staging;

    fn paths<'s, 'b, F>(space: &'s Space<'b, F, Self>) -> Option<&'s Space<'b, F, Paths>> {
        Some(space)
    }

    fn paths_mut<'s, 'b, F>(
        space: &'s mut Space<'b, F, Self>,
    ) -> Option<&'s mut Space<'b, F, Paths>> {
        Some(space)
    }
}

impl Kind for Maps {
    const MAPS: bool = true;
    type Checkpoints = Nothing;
    type Written = Nothing;
}

impl Kind for InPlace {
    const IN_PLACE: bool = true;
    type Checkpoints = Nothing;
    type Written = Nothing;
}

impl Kind for Appends {
    const APPENDS: bool = true;
    type Checkpoints = Nothing;
    type Written = Nothing;
}
