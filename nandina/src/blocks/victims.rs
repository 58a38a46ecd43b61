//! Policies for choosing the block to collect next.

/// How the block to collect is chosen.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub enum GcPolicy {
    /// The block with the fewest valid pages.
    ///
    /// With [`WearPolicy::Circular`](crate::WearPolicy::Circular), the next in turn that gains
    /// room.
    #[default]
    Fewest,
    /// Cost-benefit: the block with the highest (1 - *u*) *a* / 2*u*.
    ///
    /// *u* is its share of valid pages, and *a* its age: the pages programmed since it was opened
    /// (Rosenblum and Ousterhout, 1992, section 3.6). Takes four bytes of RAM for each block, and
    /// each choice looks at every block. Ages of blocks that were written before the checkpoint of
    /// a mount are unknown and count as equal.
    CostBenefit,
    /// The block with the most pages superseded since the index was opened.
    ///
    /// Only this many blocks are tracked, 1 to 64: the bookkeeping of the μ-Tree paper, section
    /// 5.1. A hint in the spare area of the block's last page says which of its pages may be valid,
    /// and each of these is looked for from the root. Where the spare area has no room for the
    /// hint, every page is looked for. Takes six bytes of RAM for each tracked block. Only for
    /// systems that write paths, and with the feature `paper-modes` of this library. This is for
    /// comparison: the paper does it to save the table of all blocks, which this library keeps for
    /// the sake of its limits, and it costs reads.
    Tracked(u8),
    /// The best of this many blocks drawn at random, 1 to 255.
    ///
    /// The one with the fewest valid pages is the best. Each choice takes as long on any chip, and
    /// no RAM (Van Houdt, SIGMETRICS 2013: d choices). If none of them gains room, the block with
    /// the fewest valid pages of all is taken. Idle steps draw anew for each page that they move.
    /// With the feature `sampled-victims` of this library.
    #[cfg(feature = "sampled-victims")]
    Sampled(u8),
}

/// The most blocks that can be tracked.
pub const TRACKED_MAX: u8 = 64;
