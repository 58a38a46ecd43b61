//! The account of a trace: every request is in one of its counts, and no line is lost.

use std::fmt;

use serde::Serialize;

use super::request::{Kind, Request};

/// Requests that are not used, and why.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Refused {
    /// Why.
    pub reason: &'static str,
    /// How many.
    pub requests: u64,
}

impl Refused {
    /// Counts a request that is not used for this reason.
    pub fn count(all: &mut Vec<Self>, reason: &'static str) {
        match all.iter_mut().find(|refused| refused.reason == reason) {
            Some(refused) => refused.requests += 1,
            None => all.push(Self { reason, requests: 1 }),
        }
    }
}

/// Lines that are no requests.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Aside {
    /// What they are.
    pub what: &'static str,
    /// How many.
    pub lines: u64,
}

/// A disk, partition or file with addresses of its own.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Volume {
    /// As the trace calls it; empty if the format has no volumes.
    pub name: String,
    /// Requests to it, without those refused.
    pub requests: u64,
    /// The byte behind the last one that a request names.
    pub end: u64,
}

/// Counts of a trace.
#[derive(Clone, Default, PartialEq, Eq, Debug, Serialize)]
pub struct Account {
    /// Requests, counted as their lines were read.
    pub requests: u64,
    /// Reads among them.
    pub reads: u64,
    /// Writes among them.
    pub writes: u64,
    /// Trims among them.
    pub trims: u64,
    /// Flushes among them.
    pub flushes: u64,
    /// Requests that are not used.
    pub refused: Vec<Refused>,
    /// Lines that are no requests, besides empty ones and comments.
    pub asides: Vec<Aside>,
    /// Volumes in the order of their first request.
    pub volumes: Vec<Volume>,
}

impl Account {
    /// Counts a request that is used.
    pub(super) fn count(&mut self, request: &Request) {
        match request.kind {
            Kind::Read => self.reads += 1,
            Kind::Write => self.writes += 1,
            Kind::Trim => self.trims += 1,
            Kind::Flush => self.flushes += 1,
        }
        let volume = &mut self.volumes[request.volume];
        volume.requests += 1;
        volume.end = volume.end.max(request.start + request.bytes);
    }

    /// Counts a request that is not used.
    pub(super) fn refuse(&mut self, reason: &'static str) {
        Refused::count(&mut self.refused, reason);
    }

    /// Counts a line that is no request.
    pub(super) fn aside(&mut self, what: &'static str) {
        match self.asides.iter_mut().find(|aside| aside.what == what) {
            Some(aside) => aside.lines += 1,
            None => self.asides.push(Aside { what, lines: 1 }),
        }
    }

    /// Requests that are not used, for any reason.
    pub fn refused(&self) -> u64 {
        self.refused.iter().map(|refused| refused.requests).sum()
    }

    /// Whether every request is in exactly one count.
    pub fn is_complete(&self) -> bool {
        let used = self.reads + self.writes + self.trims + self.flushes;
        let of_volumes: u64 = self.volumes.iter().map(|volume| volume.requests).sum();
        self.requests == used + self.refused() && used == of_volumes
    }

    /// The lines that are no requests, in words: `, besides 3 other actions`.
    pub(super) fn besides(&self) -> String {
        let asides: Vec<_> =
            self.asides.iter().map(|Aside { what, lines }| format!("{lines} {what}")).collect();
        if asides.is_empty() { String::new() } else { format!(", besides {}", asides.join(", ")) }
    }
}

impl fmt::Display for Account {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Account { requests, reads, writes, trims, flushes, .. } = self;
        write!(f, "{requests} requests = {reads} reads + {writes} writes + {trims} trims")?;
        write!(f, " + {flushes} flushes + {} refused", self.refused())?;
        if !self.refused.is_empty() {
            let reasons = self.refused.iter();
            let reasons: Vec<_> = reasons
                .map(|Refused { reason, requests }| format!("{requests} {reason}"))
                .collect();
            write!(f, " ({})", reasons.join(", "))?;
        }
        f.write_str(&self.besides())
    }
}
