//! An MTD device as a chip: the kernel gives geometry and capabilities.
//!
//! Pages and blocks are addressed by offset. Only the table of bad blocks is cached.

use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use nandina::flash::{BlockNumber, Capabilities, Flash, Geometry, PageNumber, Pairing, Reading};

use crate::MtdError;
use crate::kernel::{self, ERASE, Info, MARK, PROGRAM};

/// Bytes of a page on devices that can be written byte by byte.
const PAGE_BYTES_DEFAULT: u32 = 512;

/// An open MTD device.
///
/// On NAND a page is what the kernel writes at once, a block is what it erases. On NOR and RAM the
/// page size is chosen. The index uses the whole device: to keep a part of it, let the kernel
/// partition it.
///
/// The spare area is not used unless [`with_spare`](Self::with_spare) asks for it: with most
/// controllers the ECC does not cover its free bytes, so that a bit that flips there is neither
/// corrected nor reported.
///
/// The kernel erases a block before it marks it as bad, so only blocks without data may be marked.
/// An index keeps to that.
#[derive(Debug)]
pub struct Mtd {
    file: File,
    path: PathBuf,
    geometry: Geometry,
    capabilities: Capabilities,
    is_nand: bool,
    /// The number of wrong bits in a codeword from which a page should be refreshed.
    refresh_bits: u32,
    writable: bool,
    bad: Vec<bool>,
}

impl Mtd {
    /// Opens a device to read and write.
    ///
    /// Pages have 512 bytes where the device leaves that open.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, MtdError> {
        Self::open_with(path.as_ref(), true, PAGE_BYTES_DEFAULT)
    }

    /// Opens a device to read. Programs and erases are refused.
    pub fn open_read_only(path: impl AsRef<Path>) -> Result<Self, MtdError> {
        Self::open_with(path.as_ref(), false, PAGE_BYTES_DEFAULT)
    }

    /// Opens a NOR or RAM device with pages of `page_bytes`.
    ///
    /// On NAND the device's own page size applies.
    pub fn open_with_pages(path: impl AsRef<Path>, page_bytes: u32) -> Result<Self, MtdError> {
        Self::open_with(path.as_ref(), true, page_bytes)
    }

    /// Sets which pages share cells; the kernel does not report it.
    ///
    /// Default: none, and on what the kernel calls MLC NAND pages three apart, as on most such
    /// chips; check the datasheet.
    pub const fn with_pairing(mut self, pairing: Pairing) -> Self {
        self.capabilities.pairing = pairing;
        self
    }

    /// Uses the free bytes of a NAND device's spare area (`oobavail`) beside each page.
    ///
    /// Use it only where the ECC covers these bytes as it covers the page: otherwise rule 12 of
    /// [`Flash`](nandina::flash::Flash) is broken, and a single flipped bit there loses a page.
    /// Linux 6.1 or later is needed. An index that was formatted with the spare area is opened with
    /// it.
    pub fn with_spare(mut self) -> Result<Self, MtdError> {
        if !self.is_nand {
            return Err(self.unsuitable("only NAND has a spare area"));
        }
        let spare_bytes = attribute(&self.file, "oobavail").unwrap_or(0) as u32;
        let (mut main, mut spare) =
            (vec![0; self.geometry.page_bytes as usize], vec![0; spare_bytes as usize]);
        kernel::read(&self.file, 0, &mut main, &mut spare)
            .map_err(self.failed("reading a page with its spare area"))?;
        self.geometry.spare_bytes = spare_bytes;
        Ok(self)
    }

    fn unsuitable(&self, reason: &str) -> MtdError {
        MtdError::Unsuitable { path: self.path.clone(), reason: reason.into() }
    }

    fn open_with(path: &Path, writable: bool, page_bytes: u32) -> Result<Self, MtdError> {
        let call = |what, error| MtdError::Call { path: path.into(), what, error };
        let file = OpenOptions::new()
            .read(true)
            .write(writable)
            .open(path)
            .map_err(|error| call("opening", error))?;
        let info = kernel::info(&file).map_err(|error| call("asking for its sizes", error))?;
        // The ioctl truncates the size to 32 bits.
        let size = attribute(&file, "size").unwrap_or_else(|| u64::from(info.size));
        let (geometry, capabilities) = shape(&info, size, page_bytes)
            .map_err(|reason| MtdError::Unsuitable { path: path.into(), reason })?;
        let block_bytes = u64::from(info.erase_bytes);
        let bad = (0..u64::from(geometry.blocks))
            .map(|block| kernel::is_bad(&file, block * block_bytes))
            .collect::<Result<_, _>>()
            .map_err(|error| call("asking for bad blocks", error))?;
        let refresh_bits = attribute(&file, "bitflip_threshold").unwrap_or(1).max(1) as u32;
        let (path, is_nand) = (path.into(), is_nand(&info));
        Ok(Self { file, path, geometry, capabilities, is_nand, refresh_bits, writable, bad })
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

/// A number of the device from sysfs, beside the ioctls.
///
/// It is found by the device's number, so that links and read-only nodes (`/dev/mtd0ro`: odd
/// numbers) lead to it too.
fn attribute(file: &File, name: &str) -> Option<u64> {
    let device = libc::minor(file.metadata().ok()?.rdev()) / 2;
    let text = fs::read_to_string(format!("/sys/class/mtd/mtd{device}/{name}")).ok()?;
    text.trim().parse().ok()
}

const fn is_nand(info: &Info) -> bool {
    matches!(info.kind, kernel::NAND | kernel::MLC_NAND)
}

/// The geometry and capabilities of a device of `size` bytes.
///
/// An error is the reason why it cannot carry an index.
fn shape(info: &Info, size: u64, page_bytes: u32) -> Result<(Geometry, Capabilities), String> {
    let is_nand = is_nand(info);
    if !is_nand && !matches!(info.kind, kernel::NOR | kernel::RAM | kernel::DATAFLASH) {
        return Err(format!("MTD kind {} is neither NAND, NOR, DataFlash nor RAM", info.kind));
    }
    let fixed = is_nand || info.kind == kernel::DATAFLASH;
    let page_bytes = if fixed { info.write_bytes } else { page_bytes };
    let whole = page_bytes > 0
        && page_bytes.is_multiple_of(info.write_bytes.max(1))
        && info.erase_bytes.is_multiple_of(page_bytes);
    if !whole || info.erase_bytes / page_bytes < 2 {
        return Err(format!(
            "a block of {} bytes, written in units of {}, does not hold two or more pages of {page_bytes}",
            info.erase_bytes, info.write_bytes
        ));
    }
    let blocks = size / u64::from(info.erase_bytes);
    let pages_per_block = info.erase_bytes / page_bytes;
    let (1.., Ok(_)) = (blocks, u32::try_from(blocks * u64::from(pages_per_block))) else {
        return Err(format!("{blocks} blocks of {pages_per_block} pages are none or too many"));
    };
    let geometry = Geometry { page_bytes, spare_bytes: 0, pages_per_block, blocks: blocks as u32 };
    let bits_writable = !is_nand && info.flags & kernel::BITS_WRITABLE != 0;
    let capabilities = Capabilities {
        programs_per_page: if bits_writable { None } else { Some(1) },
        in_order: is_nand,
        pairing: if info.kind == kernel::MLC_NAND { Pairing::DistanceThree } else { Pairing::None },
        rewrite: false,
        atomic_rewrite: false,
        // The kernel does not say whether the ECC survives it.
        overwrite: false,
        part_reads: false,
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

    fn reports_corrections(&self) -> bool {
        self.is_nand
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

    fn overwrite(&mut self, _: PageNumber, _: u32, _: &[u8]) -> Result<(), MtdError> {
        Err(MtdError::NoOverwrite)
    }

    fn is_bad(&mut self, block: BlockNumber) -> Result<bool, MtdError> {
        Ok(self.bad.get(block.0 as usize).copied().unwrap_or(true))
    }

    fn mark_bad(&mut self, block: BlockNumber) -> Result<(), MtdError> {
        self.check_writable()?;
        // Even if the mark fails, the block is not used again while the device is open.
        if let Some(bad) = self.bad.get_mut(block.0 as usize) {
            *bad = true;
        }
        match kernel::mark_bad(&self.file, self.block_offset(block)) {
            // NOR and RAM have no such marks.
            Err(error) if error.raw_os_error() == Some(libc::EOPNOTSUPP) => Ok(()),
            marked => marked.map_err(self.failed(MARK)),
        }
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
        let nand =
            Info { kind: kernel::NAND, erase_bytes: 1 << 17, write_bytes: 2048, ..Info::default() };
        let (geometry, capabilities) = shape(&nand, 1 << 28, 512).unwrap();
        assert_eq!(
            (geometry.page_bytes, geometry.pages_per_block, geometry.blocks),
            (2048, 64, 2048)
        );
        assert!(capabilities.in_order && capabilities.programs_per_page == Some(1));
        assert_eq!(capabilities.pairing, Pairing::None);
        let cells_shared = shape(&Info { kind: kernel::MLC_NAND, ..nand }, 1 << 28, 512).unwrap().1;
        assert_eq!(cells_shared.pairing, Pairing::DistanceThree);
        let flags = kernel::BITS_WRITABLE;
        let nor = Info { kind: kernel::NOR, flags, write_bytes: 1, erase_bytes: 4096, ..nand };
        let (geometry, capabilities) = shape(&nor, 1 << 20, 512).unwrap();
        assert_eq!(
            (geometry.page_bytes, geometry.pages_per_block, geometry.spare_bytes),
            (512, 8, 0)
        );
        assert_eq!(capabilities.programs_per_page, None);
        assert!(shape(&nor, 1 << 20, 1000).is_err() && shape(&nor, 1 << 20, 0).is_err());
        assert!(shape(&Info { kind: 0, ..nand }, 1 << 28, 512).is_err());
        // NOR with an ECC of its own: units of 16 bytes, each written once.
        let coded = Info { write_bytes: 16, flags: 0, ..nor };
        let (geometry, capabilities) = shape(&coded, 1 << 20, 512).unwrap();
        assert_eq!((geometry.page_bytes, capabilities.programs_per_page), (512, Some(1)));
        assert!(shape(&coded, 1 << 20, 8).is_err());
    }

    #[test]
    fn systems_that_a_device_cannot_carry_are_known_before_they_run() {
        let nand =
            Info { kind: kernel::NAND, erase_bytes: 1 << 17, write_bytes: 2048, ..Info::default() };
        let flags = kernel::BITS_WRITABLE;
        let nor = Info { kind: kernel::NOR, flags, write_bytes: 1, erase_bytes: 4096, ..nand };
        let lacking = |info| {
            let capabilities = shape(&info, 1 << 28, 512).unwrap().1;
            let lacks = |system: &&nandina::store::Description| {
                system.needs.missing(&capabilities).is_some()
            };
            nandina::store::SYSTEMS.iter().filter(lacks).map(|system| system.key).collect()
        };
        let (on_nand, on_nor): (Vec<_>, Vec<_>) = (lacking(nand), lacking(nor));
        assert_eq!(on_nand, ["btree", "vm-ow", "wpcb", "rosette-nor"]);
        assert_eq!(on_nor, ["btree", "vm-ow", "wpcb", "rosette-nor"]);
    }

    #[test]
    fn large_devices_keep_their_size_and_too_large_ones_are_refused() {
        let nand =
            Info { kind: kernel::NAND, erase_bytes: 1 << 18, write_bytes: 4096, ..Info::default() };
        assert_eq!(shape(&nand, 1 << 33, 512).unwrap().0.blocks, 1 << 15);
        assert!(shape(&nand, 1 << 44, 512).is_err() && shape(&nand, 0, 512).is_err());
    }
}
