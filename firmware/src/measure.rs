//! Measures the deepest stack and the instructions of calls of the index, or of a mapping.
//!
//! The driver's instructions are left out.
//!
//! The measuring itself is not counted. Unsafe code is here because a stack is painted and marks
//! are in assembler.
//!
//! Instructions are counted twice: exactly by a plugin of the emulator (`count.c`), which watches
//! for the marks; and by the system timer, which follows instructions if the emulator runs with
//! `-icount`.

use core::arch::{asm, global_asm};
use core::sync::atomic::{AtomicU32, Ordering};

use cortex_m::peripheral::{Peripherals, SYST, syst::SystClkSource};
use cortex_m::register::msp;

use crate::host::Report;

/// Bytes of stack that are painted below each call.
///
/// A call that needs more is reported with all of them.
const WINDOW_BYTES: usize = 4 << 10;

const PAINT: u32 = 0xC5C5_C5C5;

/// The largest value of the system timer, which counts down: 24 bits.
const TICKS: u32 = 0x00FF_FFFF;

/// Instructions of the loop that calibrates the timer.
const CALIBRATION: u32 = 20_000;

/// Makes empty functions for a plugin to see, and their list.
macro_rules! marks {
    ($($kind:ident $mark:ident $name:literal),+ $(,)?) => {
        /// The kinds of calls that are measured.
        #[derive(Clone, Copy, PartialEq, Eq)]
        pub enum Kind {
            $(#[doc = $name] $kind),+
        }

        const KINDS: &[(Kind, &str)] = &[$((Kind::$kind, $name)),+];

        unsafe extern "C" {
            $(fn $mark();)+
            fn mark_restart();
            fn mark_end();
            fn mark_enter();
            fn mark_leave();
        }

        impl Kind {
            #[inline(always)]
            fn mark(self) {
                // SAFETY: the function returns at once and changes nothing.
                match self { $(Self::$kind => unsafe { $mark() }),+ }
            }
        }

        $(global_asm!(mark!($mark));)+
    };
}

/// A function that returns at once, in a section of its own.
macro_rules! mark {
    ($mark:ident) => {
        concat!(
            ".section .text.",
            stringify!($mark),
            ",\"ax\",%progbits\n",
            ".global ",
            stringify!($mark),
            "\n",
            ".type ",
            stringify!($mark),
            ",%function\n",
            ".thumb_func\n",
            stringify!($mark),
            ": bx lr\n",
            ".text\n",
        )
    };
}

marks! {
    Nothing mark_nothing "nothing",
    New mark_new "new",
    Format mark_format "format",
    Mount mark_mount "mount",
    Insert mark_insert "insert",
    Get mark_get "get",
    Remove mark_remove "remove",
    Range mark_range "range",
    Update mark_update "update",
    LookUp mark_look_up "look_up",
}

global_asm!(mark!(mark_restart));
global_asm!(mark!(mark_end));
global_asm!(mark!(mark_enter));
global_asm!(mark!(mark_leave));

/// Timer ticks of the index from the start of the call to the last driver entry.
static INDEX_TICKS: AtomicU32 = AtomicU32::new(0);

/// The timer when the index last resumed.
static SINCE: AtomicU32 = AtomicU32::new(0);

/// Ticks from `since` until now; there were fewer than 2^24.
fn ticks_since(since: u32) -> u32 {
    since.wrapping_sub(SYST::get_current()) & TICKS
}

/// Pauses the index: adds its ticks since it last resumed.
///
/// A call may be longer than the timer counts.
#[inline(always)]
fn pause() {
    let ticks = INDEX_TICKS.load(Ordering::Relaxed) + ticks_since(SINCE.load(Ordering::Relaxed));
    INDEX_TICKS.store(ticks, Ordering::Relaxed);
}

/// Called when the index enters the driver.
#[inline(always)]
pub fn enter_driver() {
    // SAFETY: the function returns at once and changes nothing.
    unsafe { mark_enter() };
    pause();
}

/// Called when the driver returns to the index.
#[inline(always)]
pub fn leave_driver() {
    SINCE.store(SYST::get_current(), Ordering::Relaxed);
    // SAFETY: the function returns at once and changes nothing.
    unsafe { mark_leave() };
}

/// The measurements of one kind of calls.
#[derive(Clone, Copy, Default)]
struct Sum {
    calls: u32,
    ticks: u64,
    stack_bytes: usize,
}

/// The measurements of all kinds.
pub struct Meter {
    sums: [Sum; KINDS.len()],
    calibration_ticks: u32,
}

impl Meter {
    /// Starts the timer and calibrates it.
    pub fn start() -> Option<Self> {
        let mut timer = Peripherals::take()?.SYST;
        timer.set_clock_source(SystClkSource::Core);
        timer.set_reload(TICKS);
        timer.clear_current();
        timer.enable_counter();
        let begin = SYST::get_current();
        // SAFETY: the loop counts a register down, with two instructions each time.
        unsafe { asm!("2: subs {n}, #1", "bne 2b", n = inout(reg) CALIBRATION / 2 => _) };
        let calibration_ticks = ticks_since(begin);
        Some(Self { sums: [Sum::default(); KINDS.len()], calibration_ticks })
    }

    /// Runs `work`, a call of `kind`, and measures it.
    pub fn call<R>(&mut self, kind: Kind, work: impl FnOnce() -> R) -> R {
        let top = msp::read() as usize;
        paint(top);
        INDEX_TICKS.store(0, Ordering::Relaxed);
        SINCE.store(SYST::get_current(), Ordering::Relaxed);
        kind.mark();
        let answer = apart(work);
        // SAFETY: the function returns at once and changes nothing.
        unsafe { mark_end() };
        pause();
        let sum = &mut self.sums[kind as usize];
        sum.calls += 1;
        sum.ticks += u64::from(INDEX_TICKS.load(Ordering::Relaxed));
        sum.stack_bytes = sum.stack_bytes.max(used(top));
        answer
    }

    /// Forgets the instructions but not the stack, for another work.
    pub fn restart(&mut self) {
        // SAFETY: the function returns at once and changes nothing.
        unsafe { mark_restart() };
        for sum in &mut self.sums {
            (sum.calls, sum.ticks) = (0, 0);
        }
        self.call(Kind::Nothing, || ());
    }

    /// Prints all measurements.
    pub fn report(&self, report: &mut Report) {
        report.tell("calibration_instructions", CALIBRATION);
        report.tell("calibration_ticks", self.calibration_ticks);
        report.tell("stack_window_bytes", WINDOW_BYTES);
        for &(kind, name) in KINDS {
            let sum = &self.sums[kind as usize];
            report.tell_of("calls", name, sum.calls);
            report.tell_of("ticks", name, sum.ticks);
            report.tell_of("stack_bytes", name, sum.stack_bytes);
        }
    }
}

/// Runs `work` in a stack frame of its own, apart from the caller's.
#[inline(never)]
fn apart<R>(work: impl FnOnce() -> R) -> R {
    work()
}

/// Paints the window below `top`, except the stack frame of this function.
#[inline(never)]
fn paint(top: usize) {
    let end = msp::read() as usize - 32;
    let mut word = (top - WINDOW_BYTES) as *mut u32;
    while (word as usize) < end {
        // SAFETY: there is no data below the stack pointer; `main` has checked that the window is
        // free.
        unsafe { word.write_volatile(PAINT) };
        word = word.wrapping_add(1);
    }
}

/// Bytes below `top` that were used since they were painted.
#[inline(never)]
fn used(top: usize) -> usize {
    let mut word = (top - WINDOW_BYTES) as *const u32;
    // SAFETY: the window is RAM. It ends at `top` at the latest, where no paint is.
    while (word as usize) < top && unsafe { word.read_volatile() } == PAINT {
        word = word.wrapping_add(1);
    }
    top - word as usize
}

/// Whether enough stack is free to paint the window.
pub fn window_is_free() -> bool {
    unsafe extern "C" {
        static __sheap: u32;
    }
    // SAFETY: only the address is taken; the linker script defines it.
    let lowest = core::ptr::addr_of!(__sheap) as usize;
    msp::read() as usize > lowest + WINDOW_BYTES + 1024
}
