//! `postmark`: the benchmark PostMark 1.5, a mail server's small files.
//!
//! Katcher, Network Appliance, 1997 to 2001.
//!
//! Its rules: `files` files are made, each of a size drawn evenly from 500 to 10,000 bytes (9.77
//! KiB). A transaction reads a file or appends to one, 5 to 5, then makes a file or deletes one, 5
//! to 5; files are drawn evenly. An append adds 1 byte up to what is missing to 10,000; a file of
//! that size is left alone. At most twice `files` files are there at a time. At the end all are
//! deleted. Names count on; with two subdirectories or more, each file is made in one that is drawn
//! evenly. PostMark hands over blocks of 512 bytes, which the C library gathers in a buffer.
//!
//! The paper names neither files nor transactions. PostMark's defaults, 500 each, would give two
//! thousandths of the paper's operations. Those of [`Parameters::FULL`] give its insertions and
//! deletions within 3 %: insertions are a little too few and deletions a little too many, since a
//! file is deleted with three items whatever was appended to it, and PostMark's own proportions
//! leave no freedom for more appends. The share of searches that the caches serve is chosen for the
//! paper's retrievals.

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde::Serialize;

use super::Workload;
use super::filesystem::{Assumptions, Directory, File, FileSystem};
use crate::LabError;

/// PostMark's parameters, and the assumptions beside them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Parameters {
    /// Files at the start, at least 1. PostMark's default: 500.
    pub files: u32,
    /// Transactions. PostMark's default: 500.
    pub transactions: u32,
    /// Smallest and largest size of a file in bytes, the largest larger. PostMark's default.
    pub bytes: (u64, u64),
    /// Of ten transactions, those that read rather than append. PostMark's default: 5.
    pub reads_in_ten: u32,
    /// Of ten transactions, those that make a file rather than delete one. PostMark's default: 5.
    pub creates_in_ten: u32,
    /// Subdirectories; fewer than 2 are none. PostMark's default: 0.
    pub subdirectories: u32,
    /// Bytes of the C library's buffer: what reaches the file system in one call.
    pub buffer_bytes: u64,
    /// Of the file system.
    pub assumptions: Assumptions,
}

impl Parameters {
    /// PostMark's defaults.
    pub const DEFAULT: Self = Self {
        files: 500,
        transactions: 500,
        bytes: (500, 10_000),
        reads_in_ten: 5,
        creates_in_ten: 5,
        subdirectories: 0,
        buffer_bytes: 4096,
        assumptions: Assumptions { cached_per_mille: 0, pointers_per_cut: 1012 },
    };
    /// As many operations as in Table 4.
    pub const FULL: Self = Self {
        files: 15_000,
        transactions: 225_000,
        assumptions: Assumptions { cached_per_mille: 160, ..Self::DEFAULT.assumptions },
        ..Self::DEFAULT
    };
    /// A twentieth.
    pub const QUICK: Self = Self { files: 750, transactions: 11_250, ..Self::FULL };

    /// [`Self::QUICK`] or [`Self::FULL`].
    pub const fn of(quick: bool) -> Self {
        if quick { Self::QUICK } else { Self::FULL }
    }
}

/// Where the files are made, from the root.
const WORKING_DIRECTORY: [&str; 2] = ["mail", "postmark"];

/// The work of one run.
pub fn workload(parameters: &Parameters, seed: u64) -> Result<Workload, LabError> {
    let Parameters { files, transactions, bytes: (low, high), subdirectories, .. } = *parameters;
    if !(1..=1_000_000).contains(&files) || transactions > 10_000_000 || low == 0 || low >= high {
        return Err(LabError(
            "postmark needs 1 to 1,000,000 files, at most 10,000,000 transactions, and a largest size above \
             the smallest, which is 1 at least: choose other --files, --transactions, --smallest or --largest"
                .into(),
        ));
    }
    let mut run = Run {
        system: FileSystem::new(parameters.assumptions, "create", seed),
        parameters,
        random: ChaCha8Rng::seed_from_u64(seed),
        table: vec![None; 2 * files as usize],
        next_slot: 0,
        directory: Directory::ROOT,
        subdirectories: Vec::new(),
        created: 0,
        there: 0,
    };
    for name in WORKING_DIRECTORY {
        run.directory = run.system.make_directory(&run.directory, name);
    }
    for number in 0..if subdirectories > 1 { subdirectories } else { 0 } {
        let made = run.system.make_directory(&run.directory, &format!("s{number}"));
        run.subdirectories.push(made);
    }
    for _ in 0..files {
        run.create();
    }
    run.system.recorder.phase("transactions");
    for _ in 0..transactions {
        // PostMark stops here: `out of files!`
        if run.there == 0 || run.system.recorder.is_full() {
            break;
        }
        run.transaction();
    }
    run.system.recorder.phase("delete");
    for slot in 0..run.table.len() {
        run.delete(slot);
    }
    for subdirectory in std::mem::take(&mut run.subdirectories) {
        run.system.remove_directory(&run.directory, subdirectory);
    }
    Workload::new("postmark", run.system.recorder)
}

struct Run<'p> {
    system: FileSystem,
    parameters: &'p Parameters,
    random: ChaCha8Rng,
    table: Vec<Option<File>>,
    next_slot: usize,
    directory: Directory,
    subdirectories: Vec<Directory>,
    created: u32,
    there: u32,
}

impl Run<'_> {
    fn transaction(&mut self) {
        let slot = self.used_slot();
        if self.random.random_range(0..10) < self.parameters.reads_in_ten {
            if let Some(file) = &self.table[slot] {
                self.system.read(file);
            }
        } else {
            self.append(slot);
        }
        if self.random.random_range(0..10) < self.parameters.creates_in_ten {
            self.create();
        } else {
            let slot = self.used_slot();
            self.delete(slot);
        }
    }

    /// Draws a slot with a file as PostMark does. At least one must exist.
    fn used_slot(&mut self) -> usize {
        loop {
            let slot = self.random.random_range(0..self.table.len());
            if self.table[slot].is_some() {
                return slot;
            }
        }
    }

    /// The next slot, or the first free one if that is taken.
    fn free_slot(&mut self) -> Option<usize> {
        let next = self.next_slot;
        let slot = match self.table.get(next) {
            Some(None) => next,
            _ => self.table.iter().position(Option::is_none)?,
        };
        self.next_slot = slot + 1;
        Some(slot)
    }

    fn create(&mut self) {
        let Some(slot) = self.free_slot() else {
            return;
        };
        self.created += 1;
        let directory = match self.subdirectories.len() {
            0 => self.directory,
            count => self.subdirectories[self.random.random_range(0..count)],
        };
        let (low, high) = self.parameters.bytes;
        let bytes = self.random.random_range(low..high);
        let mut file = self.system.create(&directory, &self.created.to_string());
        self.system.write(&mut file, bytes, self.parameters.buffer_bytes);
        self.table[slot] = Some(file);
        self.there += 1;
    }

    fn append(&mut self, slot: usize) {
        let high = self.parameters.bytes.1;
        let Some(file) = self.table[slot].as_mut().filter(|file| file.bytes < high) else {
            return;
        };
        let bytes = self.random.random_range(1..=high - file.bytes);
        self.system.stat(file);
        self.system.write(file, bytes, self.parameters.buffer_bytes);
    }

    fn delete(&mut self, slot: usize) {
        if let Some(file) = self.table[slot].take() {
            self.system.delete(file);
            self.there -= 1;
        }
    }
}
