//! The host of an FTL on a simulated chip: it does the requests of a trace, and times them.
//!
//! It works through the trait of every FTL and knows no mapping.

use std::fmt::Display;

use nandina_ftl::ftl::Ftl;
use nandina_ftl::mapping::Mapping;
use nandina_ftl::{LogicalPages, Statistics, Stripe};
use nandina_sim::{Counters, SparseChip};
use serde::Serialize;

use super::clock;
use super::latency::{Latencies, Latency};
use crate::block_trace::Kind;
use crate::layer::Pages;

/// What happened on the chip, whatever the mapping.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct DeviceWork {
    /// Logical pages that requests wrote.
    pub host_writes: u64,
    /// Logical pages that requests read.
    pub host_reads: u64,
    /// Logical pages that trims removed.
    pub host_trims: u64,
    /// Of the pages written, those of which a request named a part: they are read first.
    pub partial_writes: u64,
    /// Pages programmed for each page written; `None` if none was.
    pub write_amplification: Option<f64>,
    /// Pages that garbage collection and wear levelling moved.
    pub moved: u64,
    /// Pages that the FTL wrote about itself. Trims are durable by them.
    pub own: u64,
    /// Merges of a hybrid FTL that copied nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub switch_merges: Option<u64>,
    /// Merges that copied the rest of a block.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub partial_merges: Option<u64>,
    /// Merges that copied a whole block.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub full_merges: Option<u64>,
    /// Chip operations: page reads.
    pub reads: u64,
    /// Chip operations: page programs.
    pub programs: u64,
    /// Chip operations: block erases.
    pub erases: u64,
    /// Erases of the most erased block.
    pub wear_most: u32,
    /// Erases of a block, on average.
    pub wear_mean: f64,
    /// Modelled latency of reads.
    pub read_latency: Latency,
    /// Modelled latency of writes.
    pub write_latency: Latency,
}

/// A request in logical pages.
#[derive(Clone, Copy)]
pub(super) struct PageRequest {
    pub kind: Kind,
    pub start: u32,
    pub end: u32,
    /// Of the first and of the last page, only a part is written.
    pub partial: (bool, bool),
}

/// The chips of a replay, as one.
pub(super) type Chips<'c> = Stripe<'c, SparseChip>;

/// An FTL on a stripe of chips.
pub(super) trait OnChips: LogicalPages {
    /// The chips, each with a clock of its own.
    fn chips(&self) -> &[SparseChip];
}

impl<'c, M: Mapping> OnChips for Ftl<'_, Chips<'c>, M> {
    fn chips(&self) -> &[SparseChip] {
        self.flash().chips()
    }
}

impl<'c> OnChips for Pages<'_, Chips<'c>> {
    fn chips(&self) -> &[SparseChip] {
        Pages::chip(self).chips()
    }
}

/// Operations of all chips.
fn counters(chips: &[SparseChip]) -> Counters {
    chips.iter().map(SparseChip::counters).fold(Counters::default(), |sum, of| sum + of)
}

/// The host of an FTL: it does the requests, and times them.
pub(super) struct Host<'l, L: OnChips> {
    ftl: &'l mut L,
    volatile_trims: bool,
    page: Vec<u8>,
    /// Where several pages are read to.
    pages_read: Vec<u8>,
    /// What is written by requests that are longer than [`SparseChip::zeros`].
    zeros: Vec<u8>,
    failed: Option<L::Error>,
    replayed: u64,
    pages: u64,
    host_reads: u64,
    partial_writes: u64,
    nanoseconds: u64,
    reads: Latencies,
    writes: Latencies,
    formatting: Counters,
    /// What the clock of each chip said when the request began.
    clocks: Vec<u64>,
}

impl<'l, L: OnChips> Host<'l, L>
where
    L::Error: Display,
{
    pub fn new(ftl: &'l mut L, volatile_trims: bool) -> Self {
        let (formatting, page_bytes) = (counters(ftl.chips()), ftl.page_bytes());
        let clocks = vec![0; ftl.chips().len()];
        Self {
            ftl,
            volatile_trims,
            page: vec![0; page_bytes],
            pages_read: Vec::new(),
            zeros: Vec::new(),
            failed: None,
            replayed: 0,
            pages: 0,
            host_reads: 0,
            partial_writes: 0,
            nanoseconds: 0,
            reads: Latencies::new(),
            writes: Latencies::new(),
            formatting,
            clocks,
        }
    }

    pub fn run(&mut self, batch: &[PageRequest]) {
        let begin = clock::nanoseconds();
        for request in batch {
            if self.failed.is_some() {
                return;
            }
            for (clock, chip) in self.clocks.iter_mut().zip(self.ftl.chips()) {
                *clock = chip.time().total();
            }
            self.failed = self.make(request).err();
            // Chips work at the same time: a request takes as long as the one with the most work.
            let chips = self.ftl.chips().iter().zip(&self.clocks);
            let taken = chips.map(|(chip, clock)| chip.time().total() - clock).max().unwrap_or(0);
            match request.kind {
                Kind::Read => self.reads.add(taken),
                _ => self.writes.add(taken),
            }
            self.pages += u64::from(request.end - request.start);
        }
        self.replayed += batch.len() as u64;
        self.nanoseconds += clock::nanoseconds() - begin;
    }

    fn make(&mut self, request: &PageRequest) -> Result<(), L::Error> {
        let PageRequest { kind, start, end, partial } = *request;
        match kind {
            Kind::Read => {
                self.host_reads += u64::from(end - start);
                let bytes = (end - start) as usize * self.ftl.page_bytes();
                if self.pages_read.len() < bytes {
                    self.pages_read.resize(bytes, 0);
                }
                self.ftl.read_pages(start, &mut self.pages_read[..bytes])?;
            }
            Kind::Write => {
                let ends =
                    [(partial.0, start), (partial.1 && !(partial.0 && end - start == 1), end - 1)];
                for (_, page) in ends.into_iter().filter(|(is_partial, _)| *is_partial) {
                    self.partial_writes += 1;
                    self.ftl.read(page, &mut self.page)?;
                }
                let bytes = (end - start) as usize * self.page.len();
                let mut zeros = SparseChip::zeros(bytes);
                if zeros.len() < bytes {
                    self.zeros.resize(bytes.max(self.zeros.len()), 0);
                    zeros = &self.zeros[..bytes];
                }
                self.ftl.write_pages(start, zeros)?;
            }
            Kind::Trim if self.volatile_trims => self.ftl.trim_volatile(start, end - start)?,
            Kind::Trim => self.ftl.trim(start, end - start)?,
            Kind::Flush => {}
        }
        Ok(())
    }

    /// What was done. The error is why a request failed.
    pub fn finish(self) -> Result<Done, String> {
        if let Some(error) = self.failed {
            return Err(error.to_string());
        }
        let chips = self.ftl.chips();
        let wear = || chips.iter().map(SparseChip::wear);
        Ok(Done {
            counters: counters(chips) - self.formatting,
            wear: (
                wear().map(|wear| wear.most).max().unwrap_or(0),
                wear().map(|wear| wear.mean).sum::<f64>() / chips.len() as f64,
            ),
            statistics: self.ftl.statistics(),
            replayed: self.replayed,
            pages: self.pages,
            host_reads: self.host_reads,
            partial_writes: self.partial_writes,
            nanoseconds: self.nanoseconds,
            latency: (self.reads.summary(), self.writes.summary()),
        })
    }
}

/// What the FTL and the chip made of the trace.
#[derive(Clone)]
pub(super) struct Done {
    pub counters: Counters,
    pub wear: (u32, f64),
    pub statistics: Statistics,
    pub replayed: u64,
    pub pages: u64,
    pub host_reads: u64,
    pub partial_writes: u64,
    pub nanoseconds: u64,
    pub latency: (Latency, Latency),
}

impl Done {
    /// Whether the chip did what it did in another run.
    pub fn is_as(&self, other: &Self) -> bool {
        self.counters == other.counters
            && self.statistics == other.statistics
            && self.latency == other.latency
            && self.replayed == other.replayed
    }

    /// The figures of a report.
    pub fn work(&self) -> DeviceWork {
        let written = self.statistics.host_writes;
        DeviceWork {
            host_writes: written,
            host_reads: self.host_reads,
            host_trims: self.statistics.host_trims,
            partial_writes: self.partial_writes,
            write_amplification: (written > 0)
                .then(|| self.counters.programs as f64 / written as f64),
            moved: self.statistics.moved,
            switch_merges: None,
            partial_merges: None,
            full_merges: None,
            own: self.statistics.own,
            reads: self.counters.reads,
            programs: self.counters.programs,
            erases: self.counters.erases,
            wear_most: self.wear.0,
            wear_mean: self.wear.1,
            read_latency: self.latency.0,
            write_latency: self.latency.1,
        }
    }
}
