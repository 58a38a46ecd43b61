//! An MTD device as a chip: geometry and capabilities from what the kernel says, pages and blocks by offset.

use std::fs::{self, File, OpenOptions};
use std::path::{Path, PathBuf};

use nandina::flash::{BlockNumber, Capabilities, Flash, Geometry, PageNumber, Pairing, Reading};

use crate::MtdError;
use crate::kernel::{self, ERASE, Info, PROGRAM};

/// Bytes of a page on devices that can be written byte by byte.
const PAGE_BYTES_DEFAULT: u32 = 512;

/// An open MTD device.
///
/// On NAND a page is what the kernel writes at once, with the bytes of the spare area that the ECC leaves
/// free; a block is what it erases. On NOR and RAM the page size is chosen. All of the device is used: to keep
/// a part of it, let the kernel partition it.
#[derive(Debug)]
pub struct Mtd {
    file: File,
    path: PathBuf,
    geometry: Geometry,
    capabilities: Capabilities,
    /// Wrong bits in a codeword from which a page should be refreshed.
    refresh_bits: u32,
    writable: bool,
    bad: Vec<bool>,
}

impl Mtd {
    /// Opens a device to read and write, with pages of 512 bytes where the device leaves that open.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, MtdError> {
        Self::open_with(path.as_ref(), true, PAGE_BYTES_DEFAULT)
    }

    /// Opens a device to look at. Programs and erases are refused.
    pub fn open_read_only(path: impl AsRef<Path>) -> Result<Self, MtdError> {
        Self::open_with(path.as_ref(), false, PAGE_BYTES_DEFAULT)
    }

    /// Opens a NOR or RAM device with pages of `page_bytes`. On NAND the device's own page size stands.
    pub fn open_with_pages(path: impl AsRef<Path>, page_bytes: u32) -> Result<Self, MtdError> {
        Self::open_with(path.as_ref(), true, page_bytes)
    }

    /// The same device, whose pages share cells as `pairing` says; the kernel does not tell. Default: none do.
    pub const fn with_pairing(mut self, pairing: Pairing) -> Self {
        self.capabilities.pairing = pairing;
        self
    }

    fn open_with(path: &Path, writable: bool, page_bytes: u32) -> Result<Self, MtdError> {
        let call = |what, error| MtdError::Call { path: path.into(), what, error };
        let file = OpenOptions::new()
            .read(true)
            .write(writable)
            .open(path)
            .map_err(|error| call("opening", error))?;
        let info = kernel::info(&file).map_err(|error| call("asking for its sizes", error))?;
        let (geometry, capabilities) = shape(path, &info, page_bytes)
            .map_err(|reason| MtdError::Unsuitable { path: path.into(), reason })?;
        let block_bytes = u64::from(info.erase_bytes);
        let bad = (0..u64::from(geometry.blocks))
            .map(|block| kernel::is_bad(&file, block * block_bytes))
            .collect::<Result<_, _>>()
            .map_err(|error| call("asking for bad blocks", error))?;
        let refresh_bits = attribute(path, "bitflip_threshold").unwrap_or(1).max(1);
        Ok(Self { file, path: path.into(), geometry, capabilities, refresh_bits, writable, bad })
    }

    fn page_offset(&self, page: PageNumber) -> u64 {
        u64::from(page.0) * u64::from(self.geometry.page_bytes)
    }

    fn block_offset(&self, block: BlockNumber) -> u64 {
        self.page_offset(self.geometry.page_in(block, 0))
    }

    fn failed(&self, what: &'static str) -> impl FnOnce(std::io::Error) -> MtdError + use<> {
        let path = self.path.clone();
        move |error| MtdError::Call { path, what, error }
    }

    const fn check_writable(&self) -> Result<(), MtdError> {
        if self.writable { Ok(()) } else { Err(MtdError::ReadOnly) }
    }
}

/// A number that the kernel tells of the device beside its ioctls.
fn attribute(path: &Path, name: &str) -> Option<u32> {
    let device = path.file_name()?.to_str()?;
    let text = fs::read_to_string(format!("/sys/class/mtd/{device}/{name}")).ok()?;
    text.trim().parse().ok()
}

/// The geometry and capabilities of a device, or why it cannot carry an index.
fn shape(path: &Path, info: &Info, page_bytes: u32) -> Result<(Geometry, Capabilities), String> {
    let is_nand = matches!(info.kind, kernel::NAND | kernel::MLC_NAND);
    if !is_nand && !matches!(info.kind, kernel::NOR | kernel::RAM | kernel::DATAFLASH) {
        return Err(format!("MTD kind {} is neither NAND, NOR, DataFlash nor RAM", info.kind));
    }
    let page_bytes = if info.write_bytes > 1 { info.write_bytes } else { page_bytes };
    let whole = page_bytes > 0 && info.erase_bytes.is_multiple_of(page_bytes);
    if !whole || info.erase_bytes / page_bytes < 2 {
        return Err(format!(
            "a block of {} bytes does not hold two or more pages of {page_bytes}",
            info.erase_bytes
        ));
    }
    let geometry = Geometry {
        page_bytes,
        spare_bytes: if is_nand { attribute(path, "oobavail").unwrap_or(0) } else { 0 },
        pages_per_block: info.erase_bytes / page_bytes,
        blocks: info.size / info.erase_bytes,
    };
    let capabilities = Capabilities {
        programs_per_page: if is_nand { Some(1) } else { None },
        in_order: is_nand,
        pairing: Pairing::None,
        rewrite: false,
        bad_blocks_per_mille: if is_nand { 20 } else { 0 },
    };
    Ok((geometry, capabilities))
}

impl Flash for Mtd {
    type Error = MtdError;

    fn geometry(&self) -> Geometry {
        self.geometry
    }

    fn capabilities(&self) -> Capabilities {
        self.capabilities
    }

    fn read(
        &mut self,
        page: PageNumber,
        main: &mut [u8],
        spare: &mut [u8],
    ) -> Result<Reading, MtdError> {
        let health = kernel::read(&self.file, self.page_offset(page), main, spare)
            .map_err(self.failed("reading a page"))?;
        if health.uncorrectable > 0 {
            return Err(MtdError::Uncorrectable(page));
        }
        Ok(if health.most >= self.refresh_bits { Reading::Corrected } else { Reading::Clean })
    }

    fn program(&mut self, page: PageNumber, main: &[u8], spare: &[u8]) -> Result<(), MtdError> {
        self.check_writable()?;
        kernel::program(&self.file, self.page_offset(page), main, spare)
            .map_err(self.failed(PROGRAM))
    }

    fn erase(&mut self, block: BlockNumber) -> Result<(), MtdError> {
        self.check_writable()?;
        let bytes = u64::from(self.geometry.page_bytes * self.geometry.pages_per_block);
        kernel::erase(&self.file, self.block_offset(block), bytes).map_err(self.failed(ERASE))
    }

    fn rewrite(&mut self, _: PageNumber, _: &[u8], _: &[u8]) -> Result<(), MtdError> {
        Err(MtdError::NoRewrite)
    }

    fn is_bad(&mut self, block: BlockNumber) -> Result<bool, MtdError> {
        Ok(self.bad.get(block.0 as usize).copied().unwrap_or(true))
    }

    fn mark_bad(&mut self, block: BlockNumber) -> Result<(), MtdError> {
        self.check_writable()?;
        kernel::mark_bad(&self.file, self.block_offset(block))
            .map_err(self.failed("marking a block as bad"))?;
        if let Some(bad) = self.bad.get_mut(block.0 as usize) {
            *bad = true;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_mtd_device_is_refused_with_its_name() {
        let error = Mtd::open("/nowhere/mtd0").unwrap_err().to_string();
        assert!(error.starts_with("/nowhere/mtd0: opening: "), "{error}");
        let error = Mtd::open_read_only("/dev/null").unwrap_err().to_string();
        assert!(error.starts_with("/dev/null: asking for its sizes: "), "{error}");
    }

    #[test]
    fn devices_are_shaped_by_their_kind() {
        let path = Path::new("/dev/mtd-none");
        let nand = Info {
            kind: kernel::NAND,
            size: 1 << 28,
            erase_bytes: 1 << 17,
            write_bytes: 2048,
            ..Info::default()
        };
        let (geometry, capabilities) = shape(path, &nand, 512).unwrap();
        assert_eq!(
            (geometry.page_bytes, geometry.pages_per_block, geometry.blocks),
            (2048, 64, 2048)
        );
        assert!(capabilities.in_order && capabilities.programs_per_page == Some(1));
        let ram = Info { kind: kernel::RAM, write_bytes: 1, erase_bytes: 4096, ..nand };
        let (geometry, capabilities) = shape(path, &ram, 512).unwrap();
        assert_eq!(
            (geometry.page_bytes, geometry.pages_per_block, geometry.spare_bytes),
            (512, 8, 0)
        );
        assert_eq!(capabilities.programs_per_page, None);
        assert!(shape(path, &ram, 1000).is_err() && shape(path, &ram, 0).is_err());
        assert!(shape(path, &Info { kind: 0, ..nand }, 512).is_err());
    }
}
