//! Where the requests of a trace are on a chip, in logical pages.
//!
//! Nothing is replayed here.

use super::footprint::Footprint;
use super::host::PageRequest;
use crate::LabError;
use crate::block_trace::{Account, BlockTrace, Kind, Layout, Request};
use crate::trace::ReadProgress;

/// Where the requests of a trace are, in logical pages.
pub struct Place<'r> {
    pub layout: &'r Layout,
    pub page_bytes: u64,
    /// Pages of the space.
    pub pages: u64,
    /// Those that the trace touches, if the others have no place.
    pub footprint: Option<&'r Footprint>,
}

impl Place<'_> {
    /// Logical pages on the chip.
    pub fn pages_on_chip(&self) -> u64 {
        self.footprint.map_or(self.pages, Footprint::pages).max(1)
    }

    /// The pages that the trace reads or writes.
    pub fn touched(
        &self,
        trace: &BlockTrace,
        account: &Account,
        progress: ReadProgress<'_>,
    ) -> Result<Footprint, LabError> {
        let mut footprint = Footprint::new(self.pages);
        trace.read_again(account, progress, &mut |request| {
            if let (Kind::Read | Kind::Write, Ok((start, end))) =
                (request.kind, self.span_of(request))
            {
                footprint.touch(start, end);
            }
        })?;
        footprint.close();
        Ok(footprint)
    }

    /// The first page of the space that a request concerns, and the end of those pages.
    ///
    /// A trim concerns whole pages, perhaps none. The error is why the request is not used.
    pub fn span_of(&self, request: &Request) -> Result<(u64, u64), &'static str> {
        let bytes = self.page_bytes;
        let first = self.layout.place(request);
        let last = first + request.bytes;
        let (start, end) = match request.kind {
            Kind::Trim => (first.div_ceil(bytes), last / bytes),
            _ => (first / bytes, last.div_ceil(bytes)),
        };
        if end > self.pages { Err("behind the space") } else { Ok((start, end)) }
    }

    /// The pages of a request: none for a flush. The error is why the request is not used.
    pub fn pages_of(&self, request: &Request) -> Result<Option<PageRequest>, &'static str> {
        if request.kind == Kind::Flush {
            return Ok(None);
        }
        let (start, end) = self.span_of(request)?;
        let place = |page| self.footprint.map_or(page, |footprint| footprint.place(page));
        let (start, end) = (place(start), place(end));
        if start >= end {
            return Err("trims of no whole page");
        }
        let (first, bytes) = (self.layout.place(request), self.page_bytes);
        let last = first + request.bytes;
        let partial = (!first.is_multiple_of(bytes), !last.is_multiple_of(bytes));
        Ok(Some(PageRequest { kind: request.kind, start: start as u32, end: end as u32, partial }))
    }
}
