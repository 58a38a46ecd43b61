//! A file system as its index sees it.
//!
//! Each call of a program searches, inserts, extends and deletes items.
//!
//! The rules are ReiserFS 3's, as its sources of Linux 2.6 have them, as far as they reach the
//! tree:
//!
//! - Every object has a stat-data item. A directory has one item for `.` and `..` together and an
//!   entry for each name, under the name's hash. Objects made in a directory share its id as the
//!   first part of their keys. An object id that became free is given out again, the smallest
//!   first.
//! - A file of up to 3,976 bytes is one direct item. A larger file is indirect items of up to 1,012
//!   pointers to blocks of 4 KiB: one for each 4,145,152 bytes. A file that outgrows its direct
//!   item gets an indirect one for its first block.
//! - A write call that needs new blocks inserts an item or appends to the last one; each call does
//!   so once for each item that it reaches. What it finds room for in the last block costs a search
//!   only.
//! - A file is deleted from its end, in pieces of at most `pointers_per_cut` pointers: the last
//!   piece of an item deletes it, others cut it. Then its name and its stat data go.
//! - Changed metadata is written in place: a search for the stat data.
//! - A call with a path looks up each name on the way from the root, and what it names.
//!
//! Save links, the journal, quotas and access times are left out. Searches for names and stat data
//! that the kernel has in its caches do not happen: `cached_per_mille` says how many, drawn at
//! random.

use std::collections::{BTreeSet, HashMap};

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde::Serialize;

use super::key::{GENERATIONS, Key, Kind, hash, key};
use super::recorder::Recorder;

/// Bytes of a block.
pub const BLOCK_BYTES: u64 = 4096;
/// Bytes of a file that an indirect item points to, at most.
pub const ITEM_BYTES: u64 = 1012 * BLOCK_BYTES;
/// Bytes of a file that is one direct item, at most.
pub const DIRECT_BYTES_MAX: u64 = 3976;

/// What a workload assumes of the file system.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Assumptions {
    /// Cached searches for names and stat data, in a thousand.
    ///
    /// The kernel's caches serve them.
    pub cached_per_mille: u32,
    /// Pointers that one deletion takes off an indirect item, at most; at least 1.
    pub pointers_per_cut: u64,
}

/// A directory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Directory {
    parent: u32,
    object: u32,
    /// Key of its own entry in its parent; the root has none.
    entry: Option<Key>,
}

impl Directory {
    /// The root, with ReiserFS's object ids.
    pub const ROOT: Self = Self { parent: 1, object: 2, entry: None };

    fn stat_data(&self) -> Key {
        key(self.parent, self.object, 0, Kind::StatData)
    }

    fn dots(&self) -> Key {
        key(self.parent, self.object, 1, Kind::Entry)
    }

    fn name(&self, offset: u64) -> Key {
        key(self.parent, self.object, offset, Kind::Entry)
    }
}

/// A file, by the directory that it was made in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct File {
    directory: Directory,
    packed_in: u32,
    object: u32,
    entry: Key,
    /// Its size.
    pub bytes: u64,
}

impl File {
    fn stat_data(&self) -> Key {
        key(self.packed_in, self.object, 0, Kind::StatData)
    }

    fn direct(&self) -> Key {
        key(self.packed_in, self.object, 1, Kind::Direct)
    }

    /// The indirect item that holds the pointer to the block of `byte`.
    fn indirect(&self, byte: u64) -> Key {
        let item = byte / ITEM_BYTES;
        key(self.packed_in, self.object, 1 + item * ITEM_BYTES, Kind::Indirect)
    }

    fn body(&self, byte: u64) -> Key {
        if self.bytes <= DIRECT_BYTES_MAX { self.direct() } else { self.indirect(byte) }
    }
}

/// A file system and the operations on its tree.
pub struct FileSystem {
    /// The recorded operations.
    pub recorder: Recorder,
    assumptions: Assumptions,
    random: ChaCha8Rng,
    next_object: u32,
    free_objects: BTreeSet<u32>,
    /// Every directory but the root, by its object id: what a path leads through.
    directories: HashMap<u32, Directory>,
}

impl FileSystem {
    /// A file system with a root directory.
    pub fn new(assumptions: Assumptions, first_phase: &'static str, seed: u64) -> Self {
        let mut recorder = Recorder::new(seed);
        recorder.phase(first_phase);
        recorder.insert(Directory::ROOT.stat_data());
        recorder.insert(Directory::ROOT.dots());
        let random = ChaCha8Rng::seed_from_u64(seed ^ 0xCAC4E);
        Self {
            recorder,
            assumptions,
            random,
            next_object: 3,
            free_objects: BTreeSet::new(),
            directories: HashMap::new(),
        }
    }

    fn new_object(&mut self) -> u32 {
        self.free_objects.pop_first().unwrap_or_else(|| {
            self.next_object += 1;
            self.next_object - 1
        })
    }

    /// Searches, unless the kernel's caches serve it.
    fn search_cached(&mut self, key: Key) {
        if self.random.random_range(0..1000) >= self.assumptions.cached_per_mille {
            self.recorder.search(key);
        }
    }

    /// Walks from the root to a directory: each name on the way, and what it names.
    fn walk(&mut self, directory: &Directory) {
        let mut next = Some(*directory);
        while let Some(Directory { entry: Some(entry), parent, .. }) = next {
            self.search_cached(entry);
            if let Some(directory) = next {
                self.search_cached(directory.stat_data());
            }
            next = self.directories.get(&parent).copied();
        }
    }

    /// Looks for an absent name.
    pub fn look_for_absent(&mut self, directory: &Directory, name: &str) {
        self.walk(directory);
        let key = self.free_name(directory, name);
        self.search_cached(key);
    }

    /// The key under which an absent name would be stored.
    fn free_name(&self, directory: &Directory, name: &str) -> Key {
        let hash = hash(name);
        let mut keys = (0..GENERATIONS).map(|generation| directory.name(hash + generation));
        let free = keys.find(|key| !self.recorder.has(key));
        // That many names of one hash do not occur; ReiserFS would refuse the name.
        free.unwrap_or_else(|| directory.name(hash + GENERATIONS))
    }

    /// Makes a name: checks that it is free, and inserts it.
    fn add_name(&mut self, directory: &Directory, name: &str) -> Key {
        let entry = self.free_name(directory, name);
        self.search_cached(entry);
        self.recorder.search(entry);
        self.recorder.insert(entry);
        self.recorder.search(directory.stat_data());
        entry
    }

    /// Makes a directory.
    pub fn make_directory(&mut self, parent: &Directory, name: &str) -> Directory {
        self.walk(parent);
        let object = self.new_object();
        let mut new = Directory { parent: parent.object, object, entry: None };
        self.recorder.search(new.stat_data());
        self.recorder.insert(new.stat_data());
        self.recorder.search(new.dots());
        self.recorder.insert(new.dots());
        new.entry = Some(self.add_name(parent, name));
        self.directories.insert(object, new);
        new
    }

    /// Deletes an empty directory.
    pub fn remove_directory(&mut self, parent: &Directory, directory: Directory) {
        let Some(entry) = directory.entry else {
            return;
        };
        self.walk(&directory);
        self.recorder.search(entry);
        self.recorder.delete(entry);
        self.recorder.search(parent.stat_data());
        self.recorder.search(directory.dots());
        self.recorder.delete(directory.dots());
        self.recorder.search(directory.stat_data());
        self.recorder.delete(directory.stat_data());
        self.directories.remove(&directory.object);
        self.free_objects.insert(directory.object);
    }

    /// Makes an empty file.
    pub fn create(&mut self, directory: &Directory, name: &str) -> File {
        self.walk(directory);
        let object = self.new_object();
        let packed_in = directory.object;
        let stat_data = key(packed_in, object, 0, Kind::StatData);
        self.recorder.search(stat_data);
        self.recorder.insert(stat_data);
        let entry = self.add_name(directory, name);
        self.recorder.search(stat_data);
        File { directory: *directory, packed_in, object, entry, bytes: 0 }
    }

    /// Finds a file by its path and gets its metadata.
    pub fn stat(&mut self, file: &File) {
        self.walk(&file.directory);
        self.search_cached(file.entry);
        self.search_cached(file.stat_data());
    }

    /// Opens a file and reads all of it.
    ///
    /// Each block takes a search, as blocks are mapped one by one, and noting the time takes one
    /// more.
    pub fn read(&mut self, file: &File) {
        self.stat(file);
        for block in 0..file.bytes.div_ceil(BLOCK_BYTES) {
            if self.recorder.is_full() {
                return;
            }
            self.recorder.search(file.body(block * BLOCK_BYTES));
        }
        self.recorder.search(file.stat_data());
    }

    /// Appends `bytes` to an open file, in write calls of `call_bytes`.
    pub fn write(&mut self, file: &mut File, bytes: u64, call_bytes: u64) {
        let end = file.bytes + bytes;
        while file.bytes < end && !self.recorder.is_full() {
            self.write_call(file, call_bytes.max(1).min(end - file.bytes));
            self.recorder.search(file.stat_data());
        }
    }

    fn write_call(&mut self, file: &mut File, bytes: u64) {
        let (from, to) = (file.bytes, file.bytes + bytes);
        file.bytes = to;
        if to <= DIRECT_BYTES_MAX {
            self.recorder.search(file.direct());
            return self.put(file.direct());
        }
        if from > 0 && from <= DIRECT_BYTES_MAX {
            self.recorder.search(file.direct());
            self.put(file.indirect(0));
            self.recorder.search(file.direct());
            self.recorder.delete(file.direct());
        }
        let mut mapped = from.next_multiple_of(BLOCK_BYTES);
        if mapped > from {
            self.recorder.search(file.indirect(from));
        }
        while mapped < to {
            let item = file.indirect(mapped);
            self.recorder.search(item);
            self.put(item);
            mapped = to.min((mapped / ITEM_BYTES + 1) * ITEM_BYTES);
        }
    }

    fn put(&mut self, item: Key) {
        if self.recorder.has(&item) {
            self.recorder.append(item);
        } else {
            self.recorder.insert(item);
        }
    }

    /// Gives a file another name in its directory.
    pub fn rename(&mut self, file: &mut File, name: &str) {
        self.stat(file);
        let directory = file.directory;
        let entry = self.add_name(&directory, name);
        self.recorder.search(file.entry);
        self.recorder.delete(file.entry);
        self.recorder.search(directory.stat_data());
        file.entry = entry;
    }

    /// Deletes a file.
    pub fn delete(&mut self, file: File) {
        self.stat(&file);
        self.recorder.search(file.entry);
        self.recorder.delete(file.entry);
        self.recorder.search(file.directory.stat_data());
        self.recorder.search(file.stat_data());
        self.truncate(&file);
        self.recorder.search(file.stat_data());
        self.recorder.delete(file.stat_data());
        self.free_objects.insert(file.object);
    }

    fn truncate(&mut self, file: &File) {
        if file.bytes == 0 {
            return;
        }
        if file.bytes <= DIRECT_BYTES_MAX {
            self.recorder.search(file.direct());
            self.recorder.delete(file.direct());
            return;
        }
        for item in (0..file.bytes.div_ceil(ITEM_BYTES)).rev() {
            let key = file.indirect(item * ITEM_BYTES);
            let bytes = (file.bytes - item * ITEM_BYTES).min(ITEM_BYTES);
            let pieces =
                bytes.div_ceil(BLOCK_BYTES).div_ceil(self.assumptions.pointers_per_cut.max(1));
            for _ in 1..pieces {
                self.recorder.search(key);
                self.recorder.cut(key);
                self.recorder.search(file.stat_data());
            }
            self.recorder.search(key);
            self.recorder.delete(key);
        }
    }
}
