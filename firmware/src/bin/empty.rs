//! The image that measures what every program takes: start-up alone.
#![no_std]
#![no_main]

use core::panic::PanicInfo;

use cortex_m_rt::entry;

#[entry]
fn main() -> ! {
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
