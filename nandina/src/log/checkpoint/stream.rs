//! What an owner of the log stores in its checkpoints.
//!
//! Nothing is read or written here.

/// The part of a checkpoint that belongs to the owner of the pages.
///
/// It follows what is stored of the blocks. It is written and loaded in pieces, as the pages of the
/// checkpoint divide it.
pub trait Stream {
    /// Whether the checkpoint stores which pages are valid.
    ///
    /// If not, the owner finds that from its own part.
    const STORES_VALID: bool;

    /// Whether each checkpoint of one index has as many bytes as any other.
    const HAS_FIXED_SIZE: bool;

    /// Bytes of the owner's part, as it is now.
    fn bytes(&self) -> usize;

    /// Writes the owner's bytes from `from` on.
    ///
    /// The space after them is filled with 0xFF.
    fn fill(&self, from: usize, out: &mut [u8]);

    /// Forgets what was loaded, because another checkpoint is read.
    fn clear(&mut self);

    /// Takes bytes of a checkpoint.
    ///
    /// They lie at `from` in the owner's part, or past its end. The pieces come in order. Returns
    /// `false` if the checkpoint cannot be used.
    fn load(&mut self, from: usize, bytes: &[u8]) -> bool;

    /// Whether all that was loaded is sound, for a chip of `pages` pages.
    fn is_sound(&mut self, pages: u32) -> bool;
}
