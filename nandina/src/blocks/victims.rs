//! How the block that is collected next is chosen.

/// How the block to collect is chosen.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Victims {
    /// The one with the fewest valid pages of all; with [`Wear::Circular`](crate::Wear::Circular)
    /// the next in turn that gains room.
    #[default]
    Fewest,
    /// The one with the highest (1 - *u*) *a* / 2*u*, where *u* is its share of valid pages and *a*
    /// its age: pages programmed since it was opened (Rosenblum and Ousterhout, 1992, section 3.6).
    /// Takes four bytes of RAM for each block. Ages of blocks that were written before the
    /// checkpoint of a mount are not known and taken to be alike.
    CostBenefit,
    /// The one of which most pages were superseded since the index was opened, out of so many
    /// blocks as are kept count of, 1 to 64: the bookkeeping of the μ-Tree paper, section 5.1.
    /// Which of its pages are valid is told by a hint in the spare area of its last page, and
    /// tested by looking for each of these from the root. Where the spare area has no room for the
    /// hint, every page is tested. Takes six bytes of RAM for each block that is kept count of.
    /// Only for systems that write paths, and with the feature `paper-modes` of this library. For
    /// comparison: the paper does it to save the account of all blocks, which this library keeps
    /// for the sake of its limits, and it costs reads.
    Tracked(u8),
}

/// The most blocks that are kept count of.
pub const TRACKED_MAX: u8 = 64;
