//! What every mapping does: the trait [`Mapping`], its accounts.
//!
//! No mapping is named here. The trait can be used as `dyn Mapping`. What a mapping finds and
//! changes is in [`Scheme`]; extents and room are checked here alone.

use core::fmt;

use super::extent::{Extent, Piece, Run, Space};
use super::refusal::Refusal;

/// An invariant of a mapping that does not hold, in words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Broken(pub &'static str);

/// Memory of a mapping, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bytes {
    /// In use: entries, directories, slack inside of them, and free lists.
    ///
    /// Containers of libraries do not tell their bytes. Theirs are a lower bound, which the
    /// mapping documents.
    pub used: usize,
    /// Taken from the caller, or the limit where a container of a library allocates.
    pub reserved: usize,
    /// The most that `used` ever was.
    pub peak: usize,
}

/// Exact work since the mapping was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// Entries of a table that were read or written, or calls of a library.
    pub probes: u64,
    /// Nodes of a tree, or records of a leaf, that were visited.
    pub nodes: u64,
    /// Bytes that were moved to other places, or encoded again, to make or close room.
    pub moved: u64,
    /// Pages that were read from flash besides those of the host; 0 for a mapping all in RAM.
    pub flash_reads: u64,
    /// Pages that were written to flash besides those of the host; 0 for a mapping all in RAM.
    pub flash_writes: u64,
}

/// How a mapping finds and changes what it stores.
///
/// Call [`Mapping`] instead: it checks the extent and the room first. Here an extent has units, and
/// they are in the space.
pub trait Scheme {
    /// Passes the pieces of `extent` to `found`, in order; together they cover it.
    fn find(&mut self, extent: Extent, found: &mut dyn FnMut(Piece));

    /// Refuses with [`Refusal::Full`] if a change of `extent` does not fit.
    ///
    /// `adds` is false if the extent is only removed.
    fn room(&self, extent: Extent, adds: bool) -> Result<(), Refusal>;

    /// Maps `extent` to the physical units from `physical` on, or to none. There is room for that.
    ///
    /// Passes what this supersedes to `superseded`, in order.
    fn replace(&mut self, extent: Extent, physical: Option<u32>, superseded: &mut dyn FnMut(Run));
}

/// Leads from logical to physical units.
///
/// Pieces and runs are passed in rising order of logical units. Two neighbours may continue one
/// another: how finely they are divided differs between mappings, what they say does not.
pub trait Mapping: Scheme {
    /// The space that the mapping was made for.
    fn space(&self) -> Space;

    /// Passes the pieces of `extent` to `found`, in order; together they cover it.
    ///
    /// Units that are not mapped are holes. Refuses with [`Refusal::Outside`].
    fn look_up(&mut self, extent: Extent, found: &mut dyn FnMut(Piece)) -> Result<(), Refusal> {
        self.space().admit(extent)?;
        self.find(extent, found);
        Ok(())
    }

    /// Maps `extent` to the physical units from `physical` on.
    ///
    /// Every part of a run that this supersedes is passed to `superseded`, in order, with the
    /// physical units that it had. Refuses with any [`Refusal`], and has then changed nothing and
    /// passed no run.
    fn update(
        &mut self,
        extent: Extent,
        physical: u32,
        superseded: &mut dyn FnMut(Run),
    ) -> Result<(), Refusal> {
        self.space().admit_run(extent, physical)?;
        self.room(extent, true)?;
        self.replace(extent, Some(physical), superseded);
        Ok(())
    }

    /// Turns `extent` into a hole.
    ///
    /// The rest is as in [`Self::update`]. A removal can need memory, because it can divide a run.
    fn remove(&mut self, extent: Extent, superseded: &mut dyn FnMut(Run)) -> Result<(), Refusal> {
        self.space().admit(extent)?;
        self.room(extent, false)?;
        self.replace(extent, None, superseded);
        Ok(())
    }

    /// Whether an `update` of this extent will be accepted, wherever it is stored.
    ///
    /// Ask before programming a page. The refusal is that of the update, and where an update is
    /// accepted a removal is too. Costs no more than the update.
    fn admits(&self, extent: Extent) -> Result<(), Refusal> {
        self.space().admit(extent)?;
        self.room(extent, true)
    }

    /// Passes every run of the mapping to `visit`, in order.
    fn walk(&self, visit: &mut dyn FnMut(Run));

    /// How many entries the mapping keeps: units, nodes, extents or records.
    fn entries(&self) -> usize;

    /// The memory of the mapping.
    fn bytes(&self) -> Bytes;

    /// The work that the calls so far have cost.
    fn work(&self) -> Work;

    /// Checks every invariant of the mapping. The cost rises at least with its entries.
    fn check(&self) -> Result<(), Broken>;
}

/// A mapping that is borrowed or boxed is one as well.
macro_rules! forward {
    ($to:ty) => {
        impl<M: Scheme + ?Sized> Scheme for $to {
            fn find(&mut self, extent: Extent, found: &mut dyn FnMut(Piece)) {
                (**self).find(extent, found);
            }

            fn room(&self, extent: Extent, adds: bool) -> Result<(), Refusal> {
                (**self).room(extent, adds)
            }

            fn replace(
                &mut self,
                extent: Extent,
                physical: Option<u32>,
                superseded: &mut dyn FnMut(Run),
            ) {
                (**self).replace(extent, physical, superseded);
            }
        }

        impl<M: Mapping + ?Sized> Mapping for $to {
            fn space(&self) -> Space {
                (**self).space()
            }

            fn look_up(
                &mut self,
                extent: Extent,
                found: &mut dyn FnMut(Piece),
            ) -> Result<(), Refusal> {
                (**self).look_up(extent, found)
            }

            fn update(
                &mut self,
                extent: Extent,
                physical: u32,
                superseded: &mut dyn FnMut(Run),
            ) -> Result<(), Refusal> {
                (**self).update(extent, physical, superseded)
            }

            fn remove(
                &mut self,
                extent: Extent,
                superseded: &mut dyn FnMut(Run),
            ) -> Result<(), Refusal> {
                (**self).remove(extent, superseded)
            }

            fn admits(&self, extent: Extent) -> Result<(), Refusal> {
                (**self).admits(extent)
            }

            fn walk(&self, visit: &mut dyn FnMut(Run)) {
                (**self).walk(visit);
            }

            fn entries(&self) -> usize {
                (**self).entries()
            }

            fn bytes(&self) -> Bytes {
                (**self).bytes()
            }

            fn work(&self) -> Work {
                (**self).work()
            }

            fn check(&self) -> Result<(), Broken> {
                (**self).check()
            }
        }
    };
}

forward!(&mut M);
#[cfg(feature = "std")]
forward!(std::boxed::Box<M>);

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl core::error::Error for Broken {}
