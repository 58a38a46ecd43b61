//! What the FTL below an index did in a torture, and what it must have done.
//!
//! A torture says nothing about a conversion or a merge that it never met. So it counts these in
//! all sessions of all runs, also in those that end with a cut, but for a cut while the index is
//! opened. It fails if one is missing.
//! Nothing here changes a run.

use serde::Serialize;

use crate::layer::{FtlWork, Layer};

/// Counts of what an FTL did while an index worked on it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Events {
    /// Page writes that a buffer block took.
    pub appends: u64,
    /// Buffer blocks that were full when a page of theirs was written.
    pub full_blocks: u64,
    /// Buffer blocks that were converted to make room for another one.
    pub victims: u64,
    /// Buffer blocks that a mount found: they are closed.
    pub closed_blocks: u64,
    /// Switch merges.
    pub switches: u64,
    /// Partial merges.
    pub partial_merges: u64,
    /// Full merges.
    pub full_merges: u64,
    /// Partial merges of logical blocks of which the buffer had pages that count.
    pub partial_merges_buffered: u64,
    /// Full merges of such logical blocks.
    pub full_merges_buffered: u64,
    /// Pages of nodes that vanished: they were trimmed.
    pub trimmed: u64,
}

impl Events {
    /// Adds what an FTL did since it was opened, if there is one.
    pub fn note(&mut self, work: Option<&FtlWork>) {
        let Some(work) = work else { return };
        let merges = work.merges.unwrap_or_default();
        self.add(&Self {
            appends: work.conversions.taken,
            full_blocks: work.conversions.full,
            victims: work.conversions.victims,
            closed_blocks: work.conversions.found,
            switches: merges.switch,
            partial_merges: merges.partial,
            full_merges: merges.full,
            partial_merges_buffered: merges.partial_buffered,
            full_merges_buffered: merges.full_buffered,
            trimmed: work.statistics.host_trims,
        });
    }

    /// Adds other counts.
    pub fn add(&mut self, other: &Self) {
        let Self {
            appends,
            full_blocks,
            victims,
            closed_blocks,
            switches,
            partial_merges,
            full_merges,
            partial_merges_buffered,
            full_merges_buffered,
            trimmed,
        } = other;
        self.appends += appends;
        self.full_blocks += full_blocks;
        self.victims += victims;
        self.closed_blocks += closed_blocks;
        self.switches += switches;
        self.partial_merges += partial_merges;
        self.full_merges += full_merges;
        self.partial_merges_buffered += partial_merges_buffered;
        self.full_merges_buffered += full_merges_buffered;
        self.trimmed += trimmed;
    }

    /// Each event, and how often it was met.
    pub const fn all(&self) -> [(&'static str, u64); 10] {
        [
            ("an append to a buffer block", self.appends),
            ("a full buffer block", self.full_blocks),
            ("a victim", self.victims),
            ("a closed buffer block after a mount", self.closed_blocks),
            ("a switch", self.switches),
            ("a partial merge", self.partial_merges),
            ("a partial merge with a page in the buffer", self.partial_merges_buffered),
            ("a full merge", self.full_merges),
            ("a full merge with a page in the buffer", self.full_merges_buffered),
            ("a page of a vanished node", self.trimmed),
        ]
    }

    /// The events of a layer that a torture of a B-tree did not meet.
    ///
    /// A block map has full merges alone, a page map none. The improved buffer completes blocks by
    /// full merges, and neighbours share its blocks: other merges and victims may be missing there.
    pub fn missing(&self, layer: &Layer) -> impl Iterator<Item = &'static str> {
        let buffer = layer.transit().is_some();
        let is_improved = layer.transit().is_some_and(|transit| !transit.as_printed);
        let (logs, hybrid) = (layer.log_blocks().is_some(), layer.is_hybrid());
        let of_buffer = [buffer, buffer, buffer && !is_improved, buffer];
        let logs = logs && !is_improved;
        let of_logs = [logs, logs, logs && buffer];
        let of_merges = of_logs.into_iter().chain([hybrid, hybrid && buffer]);
        let expected = of_buffer.into_iter().chain(of_merges).chain([true]);
        let all = self.all().into_iter().zip(expected);
        all.filter(|&((_, count), is_expected)| is_expected && count == 0)
            .map(|((event, _), _)| event)
    }
}
