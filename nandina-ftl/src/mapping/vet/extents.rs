//! Where a leaf keeps its physical units: inside, or behind a pointer (§6.2.1).
//!
//! *Pointer-free* leaves keep their physical unit. *Pointer-dependent* ones lead to the extent that
//! was written, which all leaves of that write share; it is dropped with the last of them. What a
//! later write cuts out of an extent has no leaf any more, so the extent stays as it was written.

use crate::mapping::memory::{WORD, set_word, word};
use crate::mapping::{Broken, Bytes, Refusal, Run};

/// What a leaf's word means.
pub trait Extents {
    /// The word for a run that is about to be stored.
    fn add(&mut self, run: Run) -> u32;

    /// The word of a new leaf at `start`, in what has `word` and begins at `from`.
    fn share(&mut self, word: u32, from: u32, start: u32) -> u32;

    /// The physical unit of a leaf that begins at `start`.
    fn physical(&self, word: u32, start: u32) -> u32;

    /// A leaf with this word was dropped.
    fn drop_leaf(&mut self, word: u32);

    /// Refuses with [`Refusal::Full`] if `more` further runs do not fit.
    fn room(&self, more: usize) -> Result<(), Refusal>;

    /// Memory besides the table.
    fn bytes(&self) -> Bytes;

    /// Checks that extents and the given number of leaves agree.
    fn check(&self, leaves: usize) -> Result<(), Broken>;
}

/// Pointer-free: a leaf's word is its first physical unit.
pub struct Inline;

impl Extents for Inline {
    fn add(&mut self, run: Run) -> u32 {
        run.physical
    }

    fn share(&mut self, word: u32, from: u32, start: u32) -> u32 {
        word + (start - from)
    }

    fn physical(&self, word: u32, _start: u32) -> u32 {
        word
    }

    fn drop_leaf(&mut self, _word: u32) {}

    fn room(&self, _more: usize) -> Result<(), Refusal> {
        Ok(())
    }

    fn bytes(&self) -> Bytes {
        Bytes::default()
    }

    fn check(&self, _leaves: usize) -> Result<(), Broken> {
        Ok(())
    }
}

/// No extent.
const NONE: u32 = u32::MAX;

/// The words of an extent.
const START: usize = 0;
const LENGTH: usize = 1;
const PHYSICAL: usize = 2;
const LEAVES: usize = 3;
const WORDS: usize = 4;

/// Pointer-dependent: a leaf's word is the number of an extent.
pub struct Pointed<'m> {
    memory: &'m mut [u8],
    free: u32,
    made: usize,
    extents: usize,
}

impl<'m> Pointed<'m> {
    /// Bytes of an extent.
    pub const EXTENT: usize = WORDS * WORD;

    /// No extents. There is room for one for each 16 bytes of `memory`.
    pub fn new(memory: &'m mut [u8]) -> Self {
        Pointed { memory, free: NONE, made: 0, extents: 0 }
    }

    fn field(&self, extent: u32, field: usize) -> u32 {
        word(self.memory, extent as usize * WORDS + field)
    }

    fn set(&mut self, extent: u32, field: usize, value: u32) {
        set_word(self.memory, extent as usize * WORDS + field, value);
    }
}

impl Extents for Pointed<'_> {
    fn add(&mut self, run: Run) -> u32 {
        let extent = if self.free == NONE {
            self.made += 1;
            (self.made - 1) as u32
        } else {
            let extent = self.free;
            self.free = self.field(extent, START);
            extent
        };
        self.extents += 1;
        self.set(extent, START, run.logical);
        self.set(extent, LENGTH, run.length);
        self.set(extent, PHYSICAL, run.physical);
        self.set(extent, LEAVES, 0);
        extent
    }

    fn share(&mut self, word: u32, _from: u32, _start: u32) -> u32 {
        self.set(word, LEAVES, self.field(word, LEAVES) + 1);
        word
    }

    fn physical(&self, word: u32, start: u32) -> u32 {
        self.field(word, PHYSICAL) + (start - self.field(word, START))
    }

    fn drop_leaf(&mut self, word: u32) {
        let leaves = self.field(word, LEAVES) - 1;
        self.set(word, LEAVES, leaves);
        if leaves == 0 {
            self.set(word, START, self.free);
            self.free = word;
            self.extents -= 1;
        }
    }

    fn room(&self, more: usize) -> Result<(), Refusal> {
        let needed = (self.extents + more) * Self::EXTENT;
        if needed <= self.memory.len() { Ok(()) } else { Err(Refusal::Full { needed }) }
    }

    fn bytes(&self) -> Bytes {
        let used = self.made * Self::EXTENT;
        Bytes { used, reserved: self.memory.len(), peak: used }
    }

    fn check(&self, leaves: usize) -> Result<(), Broken> {
        let (mut free, mut count) = (self.free, 0);
        while free != NONE && count <= self.made {
            count += 1;
            free = self.field(free, START);
        }
        if count + self.extents != self.made {
            return Err(Broken("an extent is neither in use nor in the list of free ones"));
        }
        let counts = (0..self.made as u32).map(|extent| self.field(extent, LEAVES) as usize);
        if counts.sum::<usize>() != leaves {
            return Err(Broken("extents count other leaves than there are"));
        }
        Ok(())
    }
}
