//! Reads of logical pages, one or several in a row.
//!
//! Data is read into the caller's memory, without a copy where the spare area holds the header.
//! Nothing is written.

use nandina::flash::{Flash, PageNumber};
use nandina::log::Log;
use nandina::node::{PageFault, PageHeader};
use nandina::{Damage, Fault};

use super::bytes::Kind;
use super::error::damage_of;
use super::{Ftl, FtlError};
use crate::mapping::{Mapping, Piece};

impl<F: Flash, M: Mapping> Ftl<'_, F, M> {
    /// Reads a logical page.
    ///
    /// Returns `false` for one that was never written, or was trimmed; `bytes` are all ones then.
    /// Cost: one read.
    pub fn read(&mut self, logical: u32, bytes: &mut [u8]) -> Result<bool, FtlError<F::Error>> {
        self.expect_page(bytes.len())?;
        Ok(self.read_pages(logical, bytes)? > 0)
    }

    /// Reads logical pages from `logical` on, as many as `bytes` has room for.
    ///
    /// Returns how many of them hold something. The bytes of one that was never written, or was
    /// trimmed, are all ones. After an error, which concerns the first page that cannot be read,
    /// `bytes` are undefined.
    ///
    /// Cost: one read for each page that holds something; the mapping is asked once.
    pub fn read_pages(
        &mut self,
        logical: u32,
        bytes: &mut [u8],
    ) -> Result<u32, FtlError<F::Error>> {
        let extent = self.expect_pages(logical, bytes)?;
        self.mount_if_in_doubt()?;
        let (log, places, each) =
            (&mut self.log, self.places, bytes.len() / extent.length as usize);
        let mut pages = bytes.chunks_exact_mut(each);
        let (mut held, mut failed) = (0, Ok(()));
        self.mapping.look_up(extent, &mut |Piece { logical, length, physical }| {
            for (at, bytes) in (0..length).zip(pages.by_ref()) {
                if failed.is_err() {
                    return;
                }
                let holds = match physical {
                    Some(place) => read_page(log, places.page(place + at), logical + at, bytes),
                    None => Ok(false),
                };
                match holds {
                    Ok(true) => held += 1,
                    Ok(false) => bytes.fill(0xFF),
                    Err(fault) => failed = Err(fault),
                }
            }
        })?;
        Ok(failed.map(|()| held)?)
    }

    /// What `page` holds, which is read into page buffer `frame`.
    pub(super) fn read_kind(
        &mut self,
        page: PageNumber,
        frame: usize,
    ) -> Result<Kind, Fault<F::Error>> {
        kind_of(page, self.log.read_raw(page, frame)?)
    }
}

/// Reads logical page `logical` from `page`. Returns `false` if it was trimmed.
fn read_page<F: Flash>(
    log: &mut Log<'_, F>,
    page: PageNumber,
    logical: u32,
    bytes: &mut [u8],
) -> Result<bool, Fault<F::Error>> {
    match kind_of(page, log.read_outside(page, bytes)?)? {
        Kind::Data(found) if found == logical => Ok(true),
        Kind::Hole(found) if found == logical => Ok(false),
        _ => Err(Fault::Corrupt { page, reason: Damage::OtherIndex }),
    }
}

/// What a page that was read holds.
fn kind_of<E>(page: PageNumber, read: Result<PageHeader, PageFault>) -> Result<Kind, Fault<E>> {
    match read {
        Ok(header) => Ok(Kind::of(header.lowest, header.records)),
        Err(fault) => Err(Fault::Corrupt { page, reason: damage_of(fault) }),
    }
}
