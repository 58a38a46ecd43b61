//! `mp3`: a music player's storage of 8 GB is filled, then replaced in part.
//!
//! Five times half of the files, drawn at random, are deleted and as much is copied again (Table 4
//! of the μ-Tree paper).
//!
//! There are few deletions for many insertions because of how the items work: a file is copied in
//! write calls of 128 KiB, each an insertion or an append to an indirect item; deleting it takes a
//! few cuts for each item of 4 MB. So insertions count the bytes copied (28 GB by 128 KiB are
//! 213,623) and deletions the files and their items. The paper does not say how large its files
//! were nor how ReiserFS splits a deletion; the mean size and the pointers that a cut takes are
//! chosen so that both counts come out.

use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde::Serialize;

use super::Workload;
use super::filesystem::{Assumptions, Directory, File, FileSystem};
use crate::LabError;

/// How the player is used.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Parameters {
    /// Bytes of the storage.
    pub storage_bytes: u64,
    /// Mean bytes of a file.
    ///
    /// Sizes are drawn evenly from half to one and a half times it.
    pub mean_bytes: u64,
    /// How often half of the files are deleted and copied again.
    pub rounds: u32,
    /// Files in a directory: an album.
    pub album: u32,
    /// Bytes of a write call of the copying program.
    ///
    /// It is the I/O size that ReiserFS recommends.
    pub call_bytes: u64,
    /// Of the file system.
    pub assumptions: Assumptions,
}

impl Parameters {
    /// As many operations as in Table 4.
    pub const FULL: Self = Self {
        storage_bytes: 8_000_000_000,
        mean_bytes: 8_000_000,
        rounds: 5,
        album: 12,
        call_bytes: 128 * 1024,
        assumptions: Assumptions { cached_per_mille: 100, pointers_per_cut: 330 },
    };
    /// A twentieth.
    pub const QUICK: Self = Self { storage_bytes: 400_000_000, ..Self::FULL };

    /// [`Self::QUICK`] or [`Self::FULL`].
    pub const fn of(quick: bool) -> Self {
        if quick { Self::QUICK } else { Self::FULL }
    }
}

/// The work of one run.
pub fn workload(parameters: &Parameters, seed: u64) -> Result<Workload, LabError> {
    let Parameters { storage_bytes, mean_bytes, .. } = *parameters;
    if mean_bytes < 2 || storage_bytes < mean_bytes || storage_bytes > 1_000_000_000_000 {
        return Err(LabError(
            "mp3 needs files of 2 bytes at least, and storage for one of them to 1 TB: choose another \
             --megabytes or --mean-bytes"
                .into(),
        ));
    }
    let mut run = Run {
        system: FileSystem::new(parameters.assumptions, "fill", seed),
        parameters,
        random: ChaCha8Rng::seed_from_u64(seed),
        files: Vec::new(),
        used_bytes: 0,
        copied: 0,
        album: Directory::ROOT,
    };
    run.fill();
    run.system.recorder.phase("replace");
    for _ in 0..parameters.rounds {
        run.files.shuffle(&mut run.random);
        for file in run.files.split_off(run.files.len().div_ceil(2)) {
            run.used_bytes -= file.bytes;
            run.system.delete(file);
        }
        run.fill();
    }
    Workload::new("mp3", run.system.recorder)
}

struct Run<'p> {
    system: FileSystem,
    parameters: &'p Parameters,
    random: ChaCha8Rng,
    files: Vec<File>,
    used_bytes: u64,
    copied: u32,
    album: Directory,
}

impl Run<'_> {
    /// Copies files until the next does not fit. Albums stay when their files are deleted.
    fn fill(&mut self) {
        loop {
            let mean = self.parameters.mean_bytes;
            let bytes = self.random.random_range(mean / 2..=mean + mean / 2);
            if self.used_bytes + bytes > self.parameters.storage_bytes
                || self.system.recorder.is_full()
            {
                return;
            }
            if self.copied.is_multiple_of(self.parameters.album.max(1)) {
                let name = format!("album {}", self.copied / self.parameters.album.max(1));
                self.album = self.system.make_directory(&Directory::ROOT, &name);
            }
            self.copied += 1;
            let name = format!("track {}.mp3", self.copied);
            let mut file = self.system.create(&self.album, &name);
            self.system.write(&mut file, bytes, self.parameters.call_bytes);
            self.used_bytes += bytes;
            self.files.push(file);
        }
    }
}
