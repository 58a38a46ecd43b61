//! The kernel's interface to MTD devices: its structs, its request numbers, and safe calls of them. The
//! layouts are those of the kernel's `mtd/mtd-abi.h`. Nothing here knows of indexes.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;

pub const PROGRAM: &str = "programming a page";
pub const ERASE: &str = "erasing a block";

/// Kinds of devices.
pub const RAM: u8 = 1;
pub const NOR: u8 = 3;
pub const NAND: u8 = 4;
pub const DATAFLASH: u8 = 6;
pub const MLC_NAND: u8 = 8;

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

/// What the ECC had to do for a read (`struct mtd_read_req_ecc_stats`).
#[repr(C)]
#[derive(Default, Clone, Copy, Debug, PartialEq, Eq)]
pub struct Health {
    pub uncorrectable: u32,
    pub corrected: u32,
    /// Wrong bits in the worst codeword.
    pub most: u32,
}

/// A request number: direction (1: to the kernel, 2: from it), `M`, the number, the size of the struct.
const fn request<T>(direction: u64, number: u64) -> libc::Ioctl {
    (direction << 30 | (size_of::<T>() as u64) << 16 | (b'M' as u64) << 8 | number) as libc::Ioctl
}

const MEMGETINFO: libc::Ioctl = request::<Info>(2, 1);
const MEMGETBADBLOCK: libc::Ioctl = request::<i64>(1, 11);
const MEMSETBADBLOCK: libc::Ioctl = request::<i64>(1, 12);
const MEMERASE64: libc::Ioctl = request::<Range>(1, 20);
const MEMWRITE: libc::Ioctl = request::<WriteRequest>(3, 24);
const MEMREAD: libc::Ioctl = request::<ReadRequest>(3, 26);

fn answer(result: libc::c_int) -> io::Result<libc::c_int> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// Kind and sizes of the device.
pub fn info(file: &File) -> io::Result<Info> {
    let mut info = Info::default();
    // SAFETY: the request writes one `Info`, which is what the pointer leads to, and keeps no pointer.
    answer(unsafe { libc::ioctl(file.as_raw_fd(), MEMGETINFO, &raw mut info) })?;
    Ok(info)
}

/// Whether the block at `offset` is bad. Devices without bad blocks do not know the call.
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
    // SAFETY: the request reads one `WriteRequest`, and through it just the bytes of `main` and `oob`, which
    // live as long as the call.
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
    // SAFETY: the request reads and writes one `ReadRequest`, and through it writes just the bytes of `main`
    // and `oob`, which are borrowed for as long as the call.
    let result = answer(unsafe { libc::ioctl(file.as_raw_fd(), MEMREAD, &raw mut request) });
    match result.map_err(|error| (error.raw_os_error(), error)) {
        Ok(_) => Ok(request.health),
        // The bytes were read and corrected; or they were read and are wrong, as the health says.
        Err((Some(libc::EUCLEAN | libc::EBADMSG), _)) => Ok(request.health),
        // Kernels before 6.1 have no such request: bytes without a word on their health.
        Err((Some(libc::ENOTTY | libc::EOPNOTSUPP), _)) if oob.is_empty() => {
            file.read_exact_at(main, start).map(|()| Health::default())
        }
        Err((_, error)) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The numbers that the kernel's headers give on 64-bit machines.
    #[test]
    fn requests_have_the_kernels_numbers() {
        let numbers = [
            (MEMGETINFO, 0x8020_4D01u64),
            (MEMGETBADBLOCK, 0x4008_4D0B),
            (MEMSETBADBLOCK, 0x4008_4D0C),
            (MEMERASE64, 0x4010_4D14),
            (MEMWRITE, 0xC030_4D18),
            (MEMREAD, 0xC040_4D1A),
        ];
        for (ours, kernels) in numbers {
            assert_eq!(ours, kernels, "{kernels:x}");
        }
    }
}
