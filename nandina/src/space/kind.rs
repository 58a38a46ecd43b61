//! The kinds of systems, as far as they differ in what they need of their space.
//!
//! The kind is known when a program is compiled, so that a system takes neither code nor RAM for
//! features that only others use. No system is named here.

use super::memory::{LastProgrammed, Memory};
use super::session::Sessions;
use super::{Checkpoints, Space};
use crate::blocks::Wear;
#[cfg(not(feature = "read-cache"))]
use crate::cache::NoCache;
#[cfg(feature = "read-cache")]
use crate::cache::NoStaging;
use crate::cache::{Cache, Cached, Staging};
use crate::log::{Codec, GAP};

/// The needs of a system.
pub trait Kind: Sized {
    /// A mapping table translates the logical addresses of nodes that have moved.
    const MAPS: bool = false;

    /// Logical pages are replaced in place.
    const IN_PLACE: bool = false;

    /// Records are appended to pages that were programmed before.
    const APPENDS: bool = false;

    /// Pages of appended records are read, of this system or another.
    ///
    /// Checking them takes code.
    const READS_APPENDED: bool = Self::APPENDS || cfg!(feature = "other-systems");

    /// Each change writes new pages up to the root.
    ///
    /// Write cache, checkpoints and hints exist only for these systems.
    const PATHS: bool = false;

    /// Sequence numbers that a mount skips.
    const GAP: u64 = GAP;

    /// How erases are spread over the blocks, if the options do not say.
    const WEAR: Wear = Wear::Circular;

    /// The state of the checkpoints on the chip.
    type Checkpoints: From<Checkpoints>;

    /// The page caches beside the buffer pool.
    type Cache<'b>: Cached<'b>;

    /// Whether there can be a read cache.
    const CACHES: bool = cfg!(feature = "read-cache");

    /// What such a system remembers of its writes.
    type Memory: Memory;

    /// The space, if its system writes paths.
    fn paths<'s, 'b, F>(space: &'s Space<'b, F, Self>) -> Option<&'s Space<'b, F, Paths>> {
        let _ = space;
        None
    }

    /// The space, mutable, if its system writes paths.
    fn paths_mut<'s, 'b, F>(
        space: &'s mut Space<'b, F, Self>,
    ) -> Option<&'s mut Space<'b, F, Paths>> {
        let _ = space;
        None
    }
}

/// A cache of pages that were read.
#[cfg(feature = "read-cache")]
type ReadCache<'b> = Cache<'b, NoStaging>;
#[cfg(not(feature = "read-cache"))]
type ReadCache<'b> = NoCache;

/// A change writes new pages up to the root.
pub struct Paths;

/// A change writes new pages, and mappings lead to them.
pub struct Maps;

/// A change replaces logical pages in place.
pub struct InPlace;

/// A change is appended to pages that were programmed earlier.
pub struct Appends;

/// Reads of one page of appended records before it counts as unreadable.
///
/// An append that was cut may make a page fail that holds older records, and the next read of it
/// may succeed (rule 6 of the media contract).
pub(super) const PATIENCE: u32 = 13;

/// How the pages of such a system are sealed and checked.
pub(super) struct CodecOf<K>(core::marker::PhantomData<K>);

impl<K: Kind> CodecOf<K> {
    pub const CODEC: &'static Codec = &Codec {
        seal: |layout, page, header, sum| layout.seal_as(page, header, K::APPENDS, sum),
        check: |layout, page, sum| layout.check_as(page, K::READS_APPENDED, sum),
        reads_max: if K::APPENDS { PATIENCE } else { 1 },
    };
}

/// Takes the place of a feature that a system does not have.
#[derive(Default)]
pub struct Nothing;

impl Memory for Nothing {}

impl From<Checkpoints> for Nothing {
    fn from(_: Checkpoints) -> Self {
        Self
    }
}

impl Kind for Paths {
    const PATHS: bool = true;
    const WEAR: Wear = Wear::Counted;
    type Checkpoints = Checkpoints;
    type Cache<'b> = Cache<'b, Staging<'b>>;
    const CACHES: bool = true;
    type Memory = Nothing;

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
    type Cache<'b> = ReadCache<'b>;
    type Memory = Nothing;
}

impl Kind for InPlace {
    const IN_PLACE: bool = true;
    /// The session leaves the gap when it begins.
    const GAP: u64 = 0;
    type Checkpoints = Nothing;
    type Cache<'b> = ReadCache<'b>;
    type Memory = Sessions;
}

/// Nothing is written, and pages of any system are read.
pub struct Any;

impl Kind for Any {
    const READS_APPENDED: bool = true;
    type Checkpoints = Nothing;
    type Cache<'b> = ReadCache<'b>;
    type Memory = Nothing;
}

impl Kind for Appends {
    const APPENDS: bool = true;
    type Checkpoints = Nothing;
    type Cache<'b> = ReadCache<'b>;
    type Memory = LastProgrammed;
}
