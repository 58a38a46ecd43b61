//! The bytes of a chip image: a header, the description as JSON, then each page.
//!
//! Pages that were not written are neither read nor written, so a file system keeps them as holes.
//!
//! ```text
//!  0 magic "NdChip\r\n"
//!  8 version u32
//! 12 bytes of the description u32
//! 16 CRC-32C of the description u32
//! 20 the description; the first page is at the next multiple of 4096
//! ```

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};

use crc::Crc;
use nandina::flash::{Geometry, PageNumber};

use super::description::Description;
use super::{ImageErrorKind, Labels};
use crate::Chip;

/// Version of the format.
const VERSION: u32 = 1;

const MAGIC: [u8; 8] = *b"NdChip\r\n";
const HEADER_BYTES: usize = 20;

/// Alignment of the first page in bytes: file systems leave out holes of this size.
const ALIGN: u64 = 4096;

/// The longest description that is read: a chip of a million worn blocks takes less.
const DESCRIPTION_MAX: u32 = 512 << 20;

const CHECKSUM: Crc<u32> = Crc::<u32>::new(&crc::CRC_32_ISCSI);

fn pages_at(description_bytes: u64) -> u64 {
    (HEADER_BYTES as u64 + description_bytes).next_multiple_of(ALIGN)
}

fn page_bytes(geometry: &Geometry) -> u64 {
    u64::from(geometry.page_bytes) + u64::from(geometry.spare_bytes)
}

fn length(description_bytes: u64, geometry: &Geometry) -> u64 {
    pages_at(description_bytes) + u64::from(geometry.pages()) * page_bytes(geometry)
}

/// Writes `chip` into the empty `file`.
pub fn write(file: &mut File, chip: &Chip, labels: &Labels) -> io::Result<()> {
    let description =
        serde_json::to_vec(&Description::of(chip, labels)).map_err(io::Error::other)?;
    let bytes = u32::try_from(description.len()).ok().filter(|&bytes| bytes <= DESCRIPTION_MAX);
    let bytes = bytes.ok_or_else(|| io::Error::other("the chip's description is too long"))?;
    let mut header = [0; HEADER_BYTES];
    header[..8].copy_from_slice(&MAGIC);
    header[8..12].copy_from_slice(&VERSION.to_le_bytes());
    header[12..16].copy_from_slice(&bytes.to_le_bytes());
    header[16..].copy_from_slice(&CHECKSUM.checksum(&description).to_le_bytes());
    file.write_all(&header)?;
    file.write_all(&description)?;
    let geometry = &chip.profile.geometry;
    let mut pages = Pages { file, geometry, start: pages_at(bytes.into()), position: None };
    for (number, block) in chip.blocks.iter().enumerate() {
        for index in (0..geometry.pages_per_block).map(PageNumber) {
            if let Some(bytes) = block.page_bytes(index) {
                pages.seek(number, index)?;
                pages.file.write_all(bytes)?;
            }
        }
    }
    file.set_len(length(bytes.into(), geometry))
}

/// Reads a chip and its labels.
pub fn read(file: &mut File) -> Result<(Chip, Labels), ImageErrorKind> {
    let found = file.metadata()?.len();
    let mut header = Vec::new();
    file.take(HEADER_BYTES as u64).read_to_end(&mut header)?;
    if !header.starts_with(&MAGIC) {
        return Err(ImageErrorKind::NotAnImage);
    }
    let Ok(header) = <[u8; HEADER_BYTES]>::try_from(header) else {
        return Err(ImageErrorKind::Length { expected: HEADER_BYTES as u64, found });
    };
    let number = |at: usize| {
        u32::from_le_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]])
    };
    if number(8) != VERSION {
        return Err(ImageErrorKind::Version { expected: VERSION, found: number(8) });
    }
    let (bytes, stored) = (number(12), number(16));
    if bytes > DESCRIPTION_MAX || pages_at(bytes.into()) > found {
        return Err(ImageErrorKind::Length { expected: pages_at(bytes.into()), found });
    }
    let mut description = vec![0; bytes as usize];
    file.read_exact(&mut description)?;
    let computed = CHECKSUM.checksum(&description);
    if computed != stored {
        return Err(ImageErrorKind::Checksum { computed, stored });
    }
    let description: Description = serde_json::from_slice(&description)
        .map_err(|error| ImageErrorKind::Description(error.to_string()))?;
    let geometry = description.geometry()?;
    let expected = length(bytes.into(), &geometry);
    if found != expected {
        return Err(ImageErrorKind::Length { expected, found });
    }
    let (mut chip, labels, written) = description.into_chip()?;
    let mut pages =
        Pages { file, geometry: &geometry, start: pages_at(bytes.into()), position: None };
    for (number, written) in written {
        let block = chip.blocks.change(number);
        for (index, _) in written.into_iter().enumerate().filter(|&(_, written)| written) {
            let index = PageNumber(index as u32);
            pages.seek(number, index)?;
            pages.file.read_exact(block.cells_mut(index))?;
        }
    }
    Ok((chip, labels))
}

/// The pages in the file, one after another.
struct Pages<'f> {
    file: &'f mut File,
    geometry: &'f Geometry,
    start: u64,
    /// The page at the file's current position.
    position: Option<u64>,
}

impl Pages<'_> {
    /// Seeks to a page. The caller then reads or writes exactly its bytes.
    fn seek(&mut self, block: usize, index: PageNumber) -> io::Result<()> {
        let page = block as u64 * u64::from(self.geometry.pages_per_block) + u64::from(index.0);
        if self.position != Some(page) {
            self.file.seek(SeekFrom::Start(self.start + page * page_bytes(self.geometry)))?;
        }
        self.position = Some(page + 1);
        Ok(())
    }
}
