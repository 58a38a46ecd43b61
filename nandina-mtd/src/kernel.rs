//! The kernel's interface to MTD devices: structs, request numbers, safe calls.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;

pub const PROGRAM: &str = "programming a page";
pub const ERASE: &str = "erasing a block";
pub const MARK: &str = "marking a block as bad";

/// Kinds of devices.
pub const RAM: u8 = 1;
pub const NOR: u8 = 3;
pub const NAND: u8 = 4;
pub const DATAFLASH: u8 = 6;
pub const MLC_NAND: u8 = 8;

/// A flag of devices whose bits can be written one by one.
///
/// They go from 1 to 0, any number of times.
pub const BITS_WRITABLE: u32 = 0x800;

/// The free bytes of the spare area, one after another, wherever the ECC leaves them.
const AUTO_OOB: u8 = 1;

/// `struct mtd_info_user`.
#[repr(C)]
#[derive(Default, Clone, Copy, Debug)]
pub struct Info {
    pub kind: u8,
    pub flags: u32,
    pub size: u32,
    pub erase_bytes: u32,
    pub write_bytes: u32,
    pub oob_bytes: u32,
    pub padding: u64,
}

/// `struct erase_info_user64`.
#[repr(C)]
struct Range {
    start: u64,
    length: u64,
}

/// `struct mtd_write_req`.
#[repr(C)]
struct WriteRequest {
    start: u64,
    main_bytes: u64,
    oob_bytes: u64,
    main: u64,
    oob: u64,
    mode: u8,
    padding: [u8; 7],
}

/// `struct mtd_read_req`.
#[repr(C)]
struct ReadRequest {
    start: u64,
    main_bytes: u64,
    oob_bytes: u64,
    main: u64,
    oob: u64,
    mode: u8,
    padding: [u8; 7],
    health: Health,
}

/// Errors that the ECC met in a read (`struct mtd_read_req_ecc_stats`).
#[repr(C)]
#[derive(Default, Clone, Copy, Debug, PartialEq, Eq)]
pub struct Health {
    pub uncorrectable: u32,
    pub corrected: u32,
    /// Wrong bits in the worst codeword.
    pub most: u32,
}

/// Errors that the ECC met since the device was attached (`struct mtd_ecc_stats`).
#[repr(C)]
#[derive(Default, Clone, Copy, Debug)]
struct Totals {
    corrected: u32,
    uncorrectable: u32,
    bad_blocks: u32,
    table_blocks: u32,
}

const GROUP: u32 = b'M' as u32;
const MEMGETINFO: libc::Ioctl = libc::_IOR::<Info>(GROUP, 1);
const MEMGETBADBLOCK: libc::Ioctl = libc::_IOW::<i64>(GROUP, 11);
const MEMSETBADBLOCK: libc::Ioctl = libc::_IOW::<i64>(GROUP, 12);
const ECCGETSTATS: libc::Ioctl = libc::_IOR::<Totals>(GROUP, 18);
const MEMERASE64: libc::Ioctl = libc::_IOW::<Range>(GROUP, 20);
const MEMWRITE: libc::Ioctl = libc::_IOWR::<WriteRequest>(GROUP, 24);
const MEMREAD: libc::Ioctl = libc::_IOWR::<ReadRequest>(GROUP, 26);

fn answer(result: libc::c_int) -> io::Result<libc::c_int> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// Kind and sizes of the device.
pub fn info(file: &File) -> io::Result<Info> {
    let mut info = Info::default();
    // SAFETY: the request writes one `Info`, which is what the pointer leads to, and keeps no
    // pointer.
    answer(unsafe { libc::ioctl(file.as_raw_fd(), MEMGETINFO, &raw mut info) })?;
    Ok(info)
}

/// Whether the block at `offset` is bad. `false` on devices without bad blocks.
pub fn is_bad(file: &File, offset: u64) -> io::Result<bool> {
    let offset = offset as i64;
    // SAFETY: the request reads one 64-bit offset, which is what the pointer leads to.
    match answer(unsafe { libc::ioctl(file.as_raw_fd(), MEMGETBADBLOCK, &raw const offset) }) {
        Ok(bad) => Ok(bad > 0),
        Err(error) if error.raw_os_error() == Some(libc::EOPNOTSUPP) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Marks the block at `offset` as bad.
pub fn mark_bad(file: &File, offset: u64) -> io::Result<()> {
    let offset = offset as i64;
    // SAFETY: the request reads one 64-bit offset, which is what the pointer leads to.
    answer(unsafe { libc::ioctl(file.as_raw_fd(), MEMSETBADBLOCK, &raw const offset) })?;
    Ok(())
}

/// Erases `length` bytes from `offset` on: whole blocks.
pub fn erase(file: &File, start: u64, length: u64) -> io::Result<()> {
    let range = Range { start, length };
    // SAFETY: the request reads one `Range`, which is what the pointer leads to.
    answer(unsafe { libc::ioctl(file.as_raw_fd(), MEMERASE64, &raw const range) })?;
    Ok(())
}

/// Programs the page at `start`, and free bytes of its spare area with it.
pub fn program(file: &File, start: u64, main: &[u8], oob: &[u8]) -> io::Result<()> {
    if oob.is_empty() {
        return file.write_all_at(main, start);
    }
    let request = WriteRequest {
        start,
        main_bytes: main.len() as u64,
        oob_bytes: oob.len() as u64,
        main: main.as_ptr() as u64,
        oob: oob.as_ptr() as u64,
        mode: AUTO_OOB,
        padding: [0; 7],
    };
    // SAFETY: the request reads one `WriteRequest`, and through it just the bytes of `main` and
    // `oob`, which live as long as the call.
    answer(unsafe { libc::ioctl(file.as_raw_fd(), MEMWRITE, &raw const request) })?;
    Ok(())
}

/// Reads the page at `start`, and free bytes of its spare area with it.
pub fn read(file: &File, start: u64, main: &mut [u8], oob: &mut [u8]) -> io::Result<Health> {
    let mut request = ReadRequest {
        start,
        main_bytes: main.len() as u64,
        oob_bytes: oob.len() as u64,
        main: main.as_mut_ptr() as u64,
        oob: oob.as_mut_ptr() as u64,
        mode: AUTO_OOB,
        padding: [0; 7],
        health: Health::default(),
    };
    // SAFETY: the request reads and writes one `ReadRequest`, and through it writes just the bytes
    // of `main` and `oob`, which are borrowed for as long as the call.
    let Err(error) = answer(unsafe { libc::ioctl(file.as_raw_fd(), MEMREAD, &raw mut request) })
    else {
        return Ok(request.health);
    };
    let health = request.health;
    match error.raw_os_error() {
        // The bytes were read and corrected.
        Some(libc::EUCLEAN) => Ok(health),
        // The bytes were read and are wrong.
        Some(libc::EBADMSG) => Ok(Health { uncorrectable: health.uncorrectable.max(1), ..health }),
        // Kernels before 6.1 do not know the request, drivers without a spare area do not serve it.
        Some(libc::ENOTTY | libc::EOPNOTSUPP) if oob.is_empty() => read_main(file, start, main),
        _ => Err(error),
    }
}

fn totals(file: &File) -> io::Result<Totals> {
    let mut totals = Totals::default();
    // SAFETY: the request writes one `Totals`, which is what the pointer leads to, and keeps no
    // pointer.
    answer(unsafe { libc::ioctl(file.as_raw_fd(), ECCGETSTATS, &raw mut totals) })?;
    Ok(totals)
}

/// Reads main data by the call that every kernel has.
///
/// The call returns wrong bytes without an error, so the totals before and after it are compared.
/// They are of the whole device and do not say how the flipped bits spread over the codewords: all
/// are assumed to be in one, so a page is refreshed early, never late.
fn read_main(file: &File, start: u64, main: &mut [u8]) -> io::Result<Health> {
    let before = totals(file)?;
    file.read_exact_at(main, start)?;
    let after = totals(file)?;
    let corrected = after.corrected.wrapping_sub(before.corrected);
    let uncorrectable = after.uncorrectable.wrapping_sub(before.uncorrectable);
    Ok(Health { uncorrectable, corrected, most: corrected })
}

#[cfg(test)]
mod tests {
    use std::mem::offset_of;

    use super::*;

    /// Request numbers as the kernel's headers give them on most 64-bit machines.
    ///
    /// MIPS and PowerPC have others.
    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64"))]
    #[test]
    fn requests_have_the_kernels_numbers() {
        let numbers = [
            (MEMGETINFO, 0x8020_4D01u64),
            (MEMGETBADBLOCK, 0x4008_4D0B),
            (MEMSETBADBLOCK, 0x4008_4D0C),
            (ECCGETSTATS, 0x8010_4D12),
            (MEMERASE64, 0x4010_4D14),
            (MEMWRITE, 0xC030_4D18),
            (MEMREAD, 0xC040_4D1A),
        ];
        for (ours, kernels) in numbers {
            // Its width differs between C libraries; its 32 bits do not.
            assert_eq!(ours as u32, kernels as u32, "{kernels:x}");
        }
    }

    #[test]
    fn structs_are_laid_out_as_the_kernels() {
        assert_eq!((size_of::<Info>(), size_of::<Range>(), size_of::<Totals>()), (32, 16, 16));
        assert_eq!((offset_of!(Info, flags), offset_of!(Info, size)), (4, 8));
        assert_eq!((offset_of!(Info, write_bytes), offset_of!(Info, padding)), (16, 24));
        assert_eq!((offset_of!(WriteRequest, mode), size_of::<WriteRequest>()), (40, 48));
        assert_eq!((offset_of!(ReadRequest, mode), offset_of!(ReadRequest, health)), (40, 48));
        assert_eq!((offset_of!(Totals, uncorrectable), offset_of!(Health, most)), (4, 8));
    }
}
