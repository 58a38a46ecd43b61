//! Measures what the simulator adds to moving bytes.
//!
//! Run it with `cargo bench -p nandina-sim --bench pages`. With `-- --check` it fails if a page
//! read or a page program takes more than one and a half times a bare copy. No test depends on
//! time.
//!
//! Copy and chip move pages of 4,096 bytes over working sets of the same size and layout: a read
//! against a copy out of the set, a program against a copy into it. The chip also moves the whole
//! spare area of 128 bytes, and its programs include the erases between them. The sides take turns
//! in every round and the median of the rounds' ratios counts, so that a busy machine slows both.

use std::hint::black_box;
use std::process::ExitCode;
use std::time::Instant;

use nandina::flash::profile::MLC;
use nandina::flash::{BlockNumber, Flash, Geometry, PageNumber, Profile};
use nandina_sim::Chip;

const PAGE: usize = MLC.geometry.page_bytes as usize;
const SPARE: usize = MLC.geometry.spare_bytes as usize;
/// Bytes from page to page, for the copy as in the chip.
const STRIDE: usize = PAGE + SPARE;
const RATIO_MOST: f64 = 1.5;
const ROUNDS: usize = 51;
/// Pages in one measurement, at least: fewer would measure the clock.
const PAGES_LEAST: u32 = 8192;

/// The pages that are gone through again and again.
struct Set {
    name: &'static str,
    blocks: u32,
    pages_per_block: u32,
}

const SETS: [Set; 3] = [
    Set { name: "4 pages, 16 KiB", blocks: 1, pages_per_block: 4 },
    Set { name: "a block, 512 KiB", blocks: 1, pages_per_block: 128 },
    Set { name: "the chip, 64 MiB", blocks: 128, pages_per_block: 128 },
];

impl Set {
    fn pages(&self) -> u32 {
        self.blocks * self.pages_per_block
    }

    fn chip(&self) -> Chip {
        let Self { blocks, pages_per_block, .. } = *self;
        Chip::new(Profile { geometry: Geometry { blocks, pages_per_block, ..MLC.geometry }, ..MLC })
    }
}

/// One side of a comparison: the bare copy or the chip.
trait Side {
    fn read(&mut self, page: u32, main: &mut [u8], spare: &mut [u8]);
    fn program(&mut self, page: u32, main: &[u8], spare: &[u8]);
}

struct Copy(Vec<u8>);

impl Side for Copy {
    fn read(&mut self, page: u32, main: &mut [u8], _: &mut [u8]) {
        main.copy_from_slice(&self.0[page as usize * STRIDE..][..PAGE]);
    }

    fn program(&mut self, page: u32, main: &[u8], _: &[u8]) {
        self.0[page as usize * STRIDE..][..PAGE].copy_from_slice(main);
    }
}

impl Side for Chip {
    fn read(&mut self, page: u32, main: &mut [u8], spare: &mut [u8]) {
        Flash::read(self, PageNumber(page), main, spare).unwrap();
    }

    fn program(&mut self, page: u32, main: &[u8], spare: &[u8]) {
        let pages = self.geometry().pages_per_block;
        if page.is_multiple_of(pages) {
            self.erase(BlockNumber(page / pages)).unwrap();
        }
        Flash::program(self, PageNumber(page), main, spare).unwrap();
    }
}

/// Nanoseconds a page of passes over `pages` pages with `step`.
///
/// There are enough passes to be measurable.
fn nanoseconds(pages: u32, passes: u32, mut step: impl FnMut(u32)) -> f64 {
    let start = Instant::now();
    for _ in 0..passes {
        (0..pages).for_each(&mut step);
    }
    start.elapsed().as_nanos() as f64 / f64::from(pages * passes)
}

/// Nanoseconds of a read and of a program.
fn times(side: &mut impl Side, pages: u32, passes: u32) -> [f64; 2] {
    // A copy is faster between bytes at equal offsets in their cache lines, so every offset takes
    // its turn.
    let place = |page: u32| page as usize % 4 * 16;
    let (mut main, mut spare) = (vec![7; place(3) + PAGE], vec![7; SPARE]);
    let program = nanoseconds(pages, passes, |page| {
        side.program(page, black_box(&main[place(page)..][..PAGE]), black_box(&spare));
    });
    let read = nanoseconds(pages, passes, |page| {
        side.read(page, black_box(&mut main[place(page)..][..PAGE]), black_box(&mut spare));
    });
    [read, program]
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Prints a line for reads and one for programs.
///
/// Returns whether the ratios are small enough.
fn print(name: &str, rounds: &[[[f64; 2]; 2]]) -> bool {
    let mut small = true;
    for (index, operation) in ["read", "program"].into_iter().enumerate() {
        let middle =
            |value: &dyn Fn(&[[f64; 2]; 2]) -> f64| median(rounds.iter().map(value).collect());
        let copy = middle(&|[copy, _]| copy[index]);
        let chip = middle(&|[_, chip]| chip[index]);
        let ratio = middle(&|[copy, chip]| chip[index] / copy[index]);
        println!("{name:<22}{operation:<10}{copy:>12.1}{chip:>12.1}{ratio:>9.2}");
        small &= ratio <= RATIO_MOST;
    }
    small
}

fn main() -> ExitCode {
    let mut rounds = SETS.map(|_| Vec::new());
    for _ in 0..ROUNDS {
        // New memory in every round, because its position in the caches is chance.
        for (set, rounds) in SETS.iter().zip(&mut rounds) {
            let (pages, passes) = (set.pages(), PAGES_LEAST.div_ceil(set.pages()));
            let (mut copy, mut chip) = (Copy(vec![0; pages as usize * STRIDE]), set.chip());
            // The first pass would measure how the system provides memory.
            times(&mut copy, pages, 1);
            times(&mut chip, pages, 1);
            rounds.push([times(&mut copy, pages, passes), times(&mut chip, pages, passes)]);
        }
    }
    println!("{:<22}{:<10}{:>12}{:>12}{:>9}", "pages", "", "memcpy, ns", "chip, ns", "ratio");
    let mut small = true;
    for (set, rounds) in SETS.iter().zip(&rounds) {
        small &= print(set.name, rounds);
    }
    let check = std::env::args().any(|argument| argument == "--check");
    if check && !small {
        eprintln!("a ratio is above {RATIO_MOST}");
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}
