//! The image that is run: smoke test, fixed work, and a report of their costs.
#![no_std]
#![no_main]

use core::panic::PanicInfo;

use cortex_m_rt::entry;
use cortex_m_semihosting::debug;
use nandina::System as _;
use nandina_firmware::chip::{Chip, ChipRam, GEOMETRY};
use nandina_firmware::host::{File, Report};
use nandina_firmware::measure::{Meter, window_is_free};
use nandina_firmware::smoke::Failure;
use nandina_firmware::{BOARD, System, rules, smoke, work};

const DESCRIPTION: nandina::store::Description = System::DESCRIPTION;

#[entry]
fn main() -> ! {
    // The entry function runs once, so these are its own.
    static mut CHIP_RAM: ChipRam = ChipRam::new();
    static mut RAM: [u8; work::RAM_BYTES] = [0; work::RAM_BYTES];
    let passed = Report::open().is_some_and(|mut report| {
        let passed = run(CHIP_RAM, RAM, &mut report);
        match passed {
            Ok(()) => report.tell("passed", "yes"),
            Err(failure) => report.tell("failed", failure),
        }
        passed.is_ok()
    });
    debug::exit(if passed { debug::EXIT_SUCCESS } else { debug::EXIT_FAILURE });
    loop {
        cortex_m::asm::wfi();
    }
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
    if let Some(mut report) = Report::open() {
        report.tell("failed", info);
    }
    debug::exit(debug::EXIT_FAILURE);
    loop {
        cortex_m::asm::wfi();
    }
}
