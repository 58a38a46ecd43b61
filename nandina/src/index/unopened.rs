//! An index in its place, before it is opened.
//!
//! It exists for the stack: [`Index::open`] builds an index in its own frame, mounts it there, and
//! moves it to its caller last. Here an index is mounted where it stays. Nothing is read or
//! written before one of the two calls.

use super::Index;
use crate::engine::{Chosen, Engine, System};
use crate::error::OpenError;
use crate::flash::Flash;

/// An index that knows nothing of its chip yet.
///
/// Where RAM is scarce, put this where the index shall stay, and open it there. The deepest stack
/// of [`open`](Self::open) and [`format`](Self::format) is less than that of [`Index::open`] and
/// [`Index::format`] by the size of an `Index`; all else is the same.
///
/// ```
/// use nandina::{Index, OpenError, Options, Unopened, flash::Flash, store::Vm};
///
/// fn records<F: Flash>(chip: F, ram: &mut [u8]) -> Result<u32, OpenError<F::Error>> {
///     let mut place = Unopened::<_, Vm>::new(chip, &Options::new(4, 4), ram)?;
///     let index = match place.open() {
///         Err(OpenError::Blank) => place.format()?,
///         opened => opened?,
///     };
///     Ok(index.len())
/// }
/// ```
pub struct Unopened<'b, F: Flash, S: System> {
    index: Index<'b, F, S>,
}

impl<'b, F: Flash, S: System> Unopened<'b, F, S> {
    /// Checks the options and the chip's capabilities, and divides the RAM.
    ///
    /// The errors are those of [`Index::open`] that do not depend on what the chip holds. Cost: no
    /// chip operation.
    #[inline(never)]
    pub fn new(
        flash: F,
        options: &impl Chosen<S>,
        ram: &'b mut [u8],
    ) -> Result<Self, OpenError<F::Error>> {
        let options = options.options();
        S::Engine::check_options(&flash, options, ram)?;
        Ok(Self { index: Index { engine: S::Engine::new(flash, options, ram) } })
    }

    /// Opens the index on the chip, as [`Index::open`] does.
    ///
    /// After an error it may be called again. If the index is open already, it is mounted again;
    /// [`flush`](Index::flush) it before, or pending changes may be lost.
    pub fn open(&mut self) -> Result<&mut Index<'b, F, S>, OpenError<F::Error>> {
        self.index.engine.open()?;
        Ok(&mut self.index)
    }

    /// Makes an empty index on the chip, as [`Index::format`] does.
    ///
    /// After an error it may be called again. If an index is open, all of it is gone, pending
    /// changes included.
    pub fn format(&mut self) -> Result<&mut Index<'b, F, S>, OpenError<F::Error>> {
        self.index.engine.format()?;
        Ok(&mut self.index)
    }

    /// Ends the use of the index and returns the chip, as [`Index::close`] does.
    ///
    /// If the index was not opened, nothing is written.
    pub fn close(self) -> F {
        self.index.close()
    }
}
