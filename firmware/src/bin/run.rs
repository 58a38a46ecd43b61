//! The image that is run: smoke test, fixed work, and a report of their costs.
#![no_std]
#![no_main]

use core::panic::PanicInfo;

use cortex_m_rt::entry;
use nandina::System as _;
use nandina_firmware::chip::{Chip, ChipRam, GEOMETRY};
use nandina_firmware::host::{self, File, Report};
use nandina_firmware::measure::{Meter, window_is_free};
use nandina_firmware::smoke::Failure;
use nandina_firmware::{BOARD, System, rules, smoke, work};

const DESCRIPTION: nandina::store::Description = System::DESCRIPTION;

#[entry]
fn main() -> ! {
    // The entry function runs once, so these are its own.
    static mut CHIP_RAM: ChipRam = ChipRam::new();
    static mut RAM: [u8; work::RAM_BYTES] = [0; work::RAM_BYTES];
    host::run(|report| run(CHIP_RAM, RAM, report))
}

#[inline(never)]
fn run(chip_ram: &mut ChipRam, ram: &mut [u8], report: &mut Report) -> Result<(), Failure> {
    report.tell("board", BOARD);
    report.tell("system", DESCRIPTION.key);
    if !window_is_free() {
        return Err("too little stack is free to measure it");
    }
    let file = File::create(b"chip.bin\0").ok_or("the host cannot make the chip's file")?;
    let mut meter = Meter::start().ok_or("the timer is taken")?;
    let mut chip = Chip::new(file, DESCRIPTION.needs, chip_ram);
    let ram_bytes = work::report_ram(report);
    let ram = ram.get_mut(..ram_bytes).ok_or("RAM_BYTES is less than the system needs")?;
    rules::test(&mut chip, &mut ram[..GEOMETRY.page_bytes as usize])?;
    smoke::test(&mut chip, ram, &mut meter)?;
    report.tell("smoke", "passed");
    work::run(&mut chip, ram, &mut meter, report)?;
    meter.report(report);
    Ok(())
}

#[panic_handler]
fn panic(info: &PanicInfo<'_>) -> ! {
    host::run_failed(info)
}
