//! The image that measures the code size of one system.
//!
//! It is a program that uses every operation of the index on a NOR chip in the address space. It is
//! never run. Unsafe code is here because a register has an address.
#![no_std]
#![no_main]

use core::panic::PanicInfo;

use cortex_m_rt::entry;
use nandina::flash::{
    BlockNumber, Capabilities, ErrorKind, Flash, FlashError, Geometry, PageNumber, Pairing, Reading,
};
use nandina::{Inserted, OpenError, Removed, System as _, Unopened};
use nandina_firmware::chip::GEOMETRY;
use nandina_firmware::records::{KEY_BYTES, VALUE_BYTES};
use nandina_firmware::{System, work};

/// Addresses unknown to the compiler.
const PAGES: usize = 0x6000_0000;
const COMMAND: usize = 0x4000_F000;

#[derive(Debug)]
struct Failed;

impl FlashError for Failed {
    fn kind(&self) -> ErrorKind {
        ErrorKind::ProgramFailed
    }
}

/// Writes a register. Fails unless the chip reports success.
fn command(word: u32) -> Result<(), Failed> {
    let register = COMMAND as *mut u32;
    // SAFETY: a register may be written and read; this image is never run.
    let status = unsafe {
        register.write_volatile(word);
        register.read_volatile()
    };
    if status == 0 { Ok(()) } else { Err(Failed) }
}

/// A chip that shows its pages in the address space: about the smallest driver.
struct Mapped;

impl Mapped {
    fn write(page: PageNumber, main: &[u8]) -> Result<(), Failed> {
        let at = (PAGES + page.0 as usize * GEOMETRY.page_bytes as usize) as *mut u8;
        for (place, &byte) in main.iter().enumerate() {
            // SAFETY: as above.
            unsafe { at.wrapping_add(place).write_volatile(byte) };
        }
        command(page.0)
    }
}

impl Flash for Mapped {
    type Error = Failed;

    fn geometry(&self) -> Geometry {
        GEOMETRY
    }

    fn capabilities(&self) -> Capabilities {
        let needs = System::DESCRIPTION.needs;
        Capabilities {
            programs_per_page: if needs.overwrite { None } else { Some(needs.programs_per_page) },
            in_order: false,
            pairing: Pairing::None,
            rewrite: needs.rewrite,
            atomic_rewrite: needs.atomic_rewrite,
            overwrite: needs.overwrite,
            part_reads: false,
            bad_blocks_per_mille: 0,
        }
    }

    fn read(&mut self, page: PageNumber, main: &mut [u8], _: &mut [u8]) -> Result<Reading, Failed> {
        let at = (PAGES + page.0 as usize * GEOMETRY.page_bytes as usize) as *const u8;
        for (place, byte) in main.iter_mut().enumerate() {
            // SAFETY: as above.
            *byte = unsafe { at.wrapping_add(place).read_volatile() };
        }
        Ok(Reading::Clean)
    }

    fn program(&mut self, page: PageNumber, main: &[u8], _: &[u8]) -> Result<(), Failed> {
        Self::write(page, main)
    }

    fn erase(&mut self, block: BlockNumber) -> Result<(), Failed> {
        command(block.0)
    }

    fn rewrite(&mut self, page: PageNumber, main: &[u8], _: &[u8]) -> Result<(), Failed> {
        Self::write(page, main)
    }

    fn overwrite(&mut self, page: PageNumber, offset: u32, bytes: &[u8]) -> Result<(), Failed> {
        command(offset)?;
        Self::write(page, bytes)
    }
}

/// Serves commands from outside, for ever. Returns only on a failure.
fn serve(ram: &mut [u8]) -> Option<()> {
    let mut place = Unopened::<_, System>::new(Mapped, &work::OPTIONS, ram).ok()?;
    let index = match place.open() {
        Err(OpenError::Blank) => place.format().ok()?,
        opened => opened.ok()?,
    };
    let mut key = [0; KEY_BYTES];
    let mut value = [0; VALUE_BYTES];
    loop {
        Mapped.read_request(&mut key);
        Mapped.read_request(&mut value);
        let answer = match value[0] {
            0 => u32::from(index.insert(&key, &value).ok()? == Inserted::New),
            1 => u32::from(index.remove(&key).ok()? == Removed::Found),
            2 => index.get(&key).ok()?.map_or(0, |value| u32::from(value[1])),
            3 => index.range(&key[..]..).ok()?.next().ok()?.map_or(0, |(key, _)| u32::from(key[0])),
            4 => index
                .range_down(..&key[..])
                .ok()?
                .next()
                .ok()?
                .map_or(0, |(key, _)| u32::from(key[0])),
            _ => {
                index.flush().ok()?;
                index.len()
            }
        };
        command(answer).ok()?;
    }
}

impl Mapped {
    fn read_request(&self, bytes: &mut [u8]) {
        for byte in bytes {
            // SAFETY: as above.
            *byte = unsafe { (COMMAND as *const u8).read_volatile() };
        }
    }
}

#[entry]
fn main() -> ! {
    static mut RAM: [u8; work::RAM_BYTES] = [0; work::RAM_BYTES];
    serve(RAM);
    loop {
        cortex_m::asm::wfi();
    }
}

#[panic_handler]
fn panic(_: &PanicInfo<'_>) -> ! {
    loop {
        cortex_m::asm::wfi();
    }
}
