//! Communication with the host by semihosting.
//!
//! There is a file for the chip's pages, and a report in lines of text.
//!
//! The index never sees it. Unsafe code is here because a call to the host passes addresses.

use core::fmt::{Display, Write};
use core::panic::PanicInfo;

use cortex_m_semihosting::{debug, hio, nr, syscall, syscall1};

/// Does `work`, reports whether it passed, and ends the emulator.
pub fn run(work: impl FnOnce(&mut Report) -> Result<(), &'static str>) -> ! {
    let passed = Report::open().is_some_and(|mut report| {
        let passed = work(&mut report);
        match passed {
            Ok(()) => report.tell("passed", "yes"),
            Err(failure) => report.tell("failed", failure),
        }
        passed.is_ok()
    });
    end(if passed { debug::EXIT_SUCCESS } else { debug::EXIT_FAILURE })
}

/// Reports a panic, and ends the emulator.
pub fn run_failed(info: &PanicInfo<'_>) -> ! {
    if let Some(mut report) = Report::open() {
        report.tell("failed", info);
    }
    end(debug::EXIT_FAILURE)
}

fn end(status: debug::ExitStatus) -> ! {
    debug::exit(status);
    loop {
        cortex_m::asm::wfi();
    }
}

/// The command line that the emulator was given for the image.
///
/// `None` if it is not UTF-8, does not fit in `bytes` with a zero byte at its end, or if there is
/// none.
pub fn command_line(bytes: &mut [u8]) -> Option<&str> {
    let mut block = [bytes.as_mut_ptr() as usize, bytes.len()];
    // SAFETY: the host writes at most `block[1]` bytes to `bytes`, and their number to `block[1]`.
    let failed = unsafe { syscall1(nr::GET_CMDLINE, block.as_mut_ptr() as usize) };
    if failed != 0 {
        return None;
    }
    core::str::from_utf8(bytes.get(..block[1])?).ok()
}

/// A file of the host, open for reading and writing.
pub struct File {
    handle: usize,
}

impl File {
    /// Creates an empty file in the emulator's folder. `name` ends with a zero byte.
    pub fn create(name: &[u8]) -> Option<Self> {
        assert!(name.last() == Some(&0));
        let mode = nr::open::RW_TRUNC_BINARY;
        // SAFETY: the host reads `name`, which ends with a zero byte and lives longer than the
        // call.
        let handle = unsafe { syscall!(OPEN, name.as_ptr(), mode, name.len() - 1) };
        (handle as isize >= 0).then_some(Self { handle })
    }

    fn seek(&self, offset: u32) -> bool {
        // SAFETY: the call takes numbers only.
        unsafe { syscall!(SEEK, self.handle, offset) == 0 }
    }

    /// Fills `bytes` from `offset` on. Returns whether it could.
    pub fn read(&self, offset: u32, bytes: &mut [u8]) -> bool {
        // SAFETY: the host writes at most `bytes.len()` bytes there. It returns how many are
        // missing.
        self.seek(offset)
            && unsafe { syscall!(READ, self.handle, bytes.as_mut_ptr(), bytes.len()) == 0 }
    }

    /// Writes `bytes` from `offset` on. Returns whether it could.
    ///
    /// Where the file ends earlier, zeros fill the gap.
    pub fn write(&self, offset: u32, bytes: &[u8]) -> bool {
        // SAFETY: the host reads `bytes.len()` bytes from there. It returns how many it has not
        // written.
        self.seek(offset)
            && unsafe { syscall!(WRITE, self.handle, bytes.as_ptr(), bytes.len()) == 0 }
    }
}

/// Lines for the program that runs the emulator: a name and its value.
pub struct Report {
    out: hio::HostStream,
}

impl Report {
    /// Opens the output of the emulator. Call it once: each call takes a handle of the host.
    pub fn open() -> Option<Self> {
        hio::hstdout().ok().map(|out| Self { out })
    }

    /// Prints that `name` is `value`.
    pub fn tell(&mut self, name: &str, value: impl Display) {
        let _ = writeln!(self.out, "{name} {value}");
    }

    /// Prints that `name` of `kind` is `value`.
    pub fn tell_of(&mut self, name: &str, kind: &str, value: impl Display) {
        let _ = writeln!(self.out, "{name}_{kind} {value}");
    }
}
