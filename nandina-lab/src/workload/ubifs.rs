//! UBIFS as its index sees it: the keys that each call of a program puts and removes.
//!
//! A key is 8 bytes: the inode's number, the kind in 3 bits, and the number of a block or the hash
//! of a name in 29. So an inode is followed by its blocks of 4 KiB, then by its names if it is a
//! directory. The rules are those of Linux, as far as they reach the tree:
//!
//! - Making a file or a directory puts three records: the name, its inode, the parent's inode.
//! - Each block of 4 KiB that is written is a record; the inode is one more when the file is closed.
//! - Removing a name puts its record as removed, and both inodes again. Then the tree drops the
//!   inode's whole range; the journal has no record of that.
//! - `rm -rf` takes the names of a directory by hash, and a directory before the name that leads to
//!   it.
//!
//! Blocks are written when the file is closed, in order, and are not compressed. A name whose hash
//! is taken gets the next free one. Extended attributes and access times are left out.

use std::collections::{BTreeMap, HashMap};

use serde::Serialize;

use super::manifest::{self, Entry, EntryKind};
use super::{Recorder, Workload, key};
use crate::LabError;

/// Bytes of a key.
pub const KEY_BYTES: usize = 8;

/// A key; its order is that of its bytes, the highest first.
pub type Key = u64;

/// Bytes of a block.
pub const BLOCK_BYTES: u64 = 4096;

/// Kinds of keys, with UBIFS's numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// An inode.
    Inode = 0,
    /// A block of a file.
    Block = 1,
    /// A name in a directory.
    Name = 2,
}

/// Bits of a block's number and of a name's hash.
const LOW_BITS: u32 = 29;
const LOW_MASK: u32 = (1 << LOW_BITS) - 1;

/// The key of a record; `low` is a block's number or a name's hash, below 2^29.
pub const fn key(inode: u32, kind: Kind, low: u32) -> Key {
    (inode as u64) << 32 | (kind as u64) << LOW_BITS | (low & LOW_MASK) as u64
}

/// The keys of an inode, the first and the last that there can be.
pub const fn range(inode: u32) -> (Key, Key) {
    (key(inode, Kind::Inode, 0), (inode as u64) << 32 | u32::MAX as u64)
}

/// UBIFS's hash of a name: `r5`, without the values of `.` and `..`.
pub fn hash(name: &str) -> u32 {
    let hash = key::r5(name) & LOW_MASK;
    if hash <= 2 { hash + 3 } else { hash }
}

/// A change of the tree.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Change {
    /// A record is written: its key is new, or points to another place.
    Put {
        /// Its key.
        key: Key,
        /// Bytes in the journal.
        bytes: u32,
    },
    /// A name is removed, with a record that says so.
    Remove {
        /// Its key.
        key: Key,
        /// Bytes in the journal.
        bytes: u32,
    },
    /// All keys of an inode go, without a record.
    Forget {
        /// The inode.
        inode: u32,
        /// The blocks that it has.
        blocks: u32,
    },
}

/// Bytes of a record of an inode.
const INODE_BYTES: u32 = 160;
/// Bytes before a block's data.
const BLOCK_HEADER_BYTES: u64 = 48;
/// Bytes before a name; a zero follows it.
const NAME_HEADER_BYTES: u64 = 56;

/// Records start at multiples of 8 bytes.
const fn aligned(bytes: u64) -> u32 {
    bytes.next_multiple_of(8) as u32
}

/// The first number of an inode below the root's directory, less one.
const FIRST_INODE: u32 = 64;
const ROOT_INODE: u32 = 1;

/// The most changes, some gigabyte of memory.
const CHANGES_MAX: u64 = 20_000_000;

struct Named {
    inode: u32,
    blocks: u32,
    record_bytes: u32,
    /// Its place in the volume's directories, if it is one.
    directory: Option<usize>,
}

struct Directory {
    inode: u32,
    /// By hash.
    names: BTreeMap<u32, Named>,
}

/// A file system, and the changes of its tree since they were last taken.
pub struct Volume {
    directories: Vec<Directory>,
    /// Directories below the one that is unpacked into, by path.
    paths: HashMap<String, usize>,
    last_inode: u32,
    changes: Vec<Change>,
    total: u64,
}

impl Default for Volume {
    fn default() -> Self {
        Self::new()
    }
}

impl Volume {
    /// An empty file system, into whose directory `linux1` lists are unpacked.
    pub fn new() -> Self {
        let root = Directory { inode: ROOT_INODE, names: BTreeMap::new() };
        let mut volume = Self {
            directories: vec![root],
            paths: HashMap::new(),
            last_inode: FIRST_INODE,
            changes: Vec::new(),
            total: 0,
        };
        volume.put_inode(ROOT_INODE);
        volume.make(0, "linux1", true);
        volume.paths.insert(String::new(), 1);
        volume
    }

    fn change(&mut self, change: Change) {
        self.total += 1;
        self.changes.push(change);
    }

    fn put_inode(&mut self, inode: u32) {
        self.change(Change::Put { key: key(inode, Kind::Inode, 0), bytes: INODE_BYTES });
    }

    /// Makes a file or a directory; returns the hash that it got.
    fn make(&mut self, parent: usize, name: &str, is_directory: bool) -> u32 {
        self.last_inode += 1;
        let inode = self.last_inode;
        let directory = is_directory.then_some(self.directories.len());
        if is_directory {
            self.directories.push(Directory { inode, names: BTreeMap::new() });
        }
        let record_bytes = aligned(NAME_HEADER_BYTES + name.len() as u64 + 1);
        let Directory { inode: parent, names } = &mut self.directories[parent];
        let (parent, mut hash) = (*parent, hash(name));
        while names.contains_key(&hash) {
            hash = (hash + 1) & LOW_MASK;
        }
        names.insert(hash, Named { inode, blocks: 0, record_bytes, directory });
        self.change(Change::Put { key: key(parent, Kind::Name, hash), bytes: record_bytes });
        self.put_inode(inode);
        self.put_inode(parent);
        hash
    }

    /// Makes an entry of a list, which comes after its directory.
    ///
    /// More than 20,000,000 changes are an error.
    pub fn unpack(&mut self, entry: &Entry) -> Result<(), LabError> {
        let (directory, name) = entry.split();
        let parent = *self.paths.get(directory).ok_or_else(|| {
            LabError(format!("the list has no directory '{directory}' before what is in it"))
        })?;
        match entry.kind {
            EntryKind::Directory => {
                self.paths.insert(entry.path.clone(), self.directories.len());
                self.make(parent, name, true);
            }
            // The target of a link is in its inode.
            EntryKind::Link => {
                self.make(parent, name, false);
            }
            EntryKind::File => {
                let blocks = entry.bytes.div_ceil(BLOCK_BYTES);
                if self.total + blocks > CHANGES_MAX {
                    return Err(LabError(format!(
                        "the list makes more than {CHANGES_MAX} changes: choose fewer or smaller files"
                    )));
                }
                let hash = self.make(parent, name, false);
                self.write(parent, hash, entry.bytes);
            }
        }
        Ok(())
    }

    /// Writes a new file and closes it.
    fn write(&mut self, parent: usize, hash: u32, bytes: u64) {
        let Some(file) = self.directories[parent].names.get_mut(&hash) else {
            return;
        };
        file.blocks = bytes.div_ceil(BLOCK_BYTES) as u32;
        let (inode, blocks) = (file.inode, file.blocks);
        for block in 0..blocks {
            let data = (bytes - u64::from(block) * BLOCK_BYTES).min(BLOCK_BYTES);
            let key = key(inode, Kind::Block, block);
            self.change(Change::Put { key, bytes: aligned(BLOCK_HEADER_BYTES + data) });
        }
        self.put_inode(inode);
    }

    /// Removes everything below the root, depth first, by hash.
    pub fn remove_all(&mut self) {
        // A directory, and its names that are left.
        let mut path = vec![0];
        self.paths.clear();
        while let Some(&at) = path.last() {
            let below = self.directories[at].names.first_key_value().map(|(_, named)| named);
            match below {
                Some(Named { directory: Some(below), .. })
                    if !self.directories[*below].names.is_empty() =>
                {
                    path.push(*below);
                }
                Some(_) => self.unlink_first(at),
                None => {
                    path.pop();
                }
            }
        }
    }

    /// Removes the first name of a directory, and what it names.
    fn unlink_first(&mut self, at: usize) {
        let parent = self.directories[at].inode;
        if let Some((hash, named)) = self.directories[at].names.pop_first() {
            let key = key(parent, Kind::Name, hash);
            self.change(Change::Remove { key, bytes: named.record_bytes });
            self.put_inode(named.inode);
            self.put_inode(parent);
            self.change(Change::Forget { inode: named.inode, blocks: named.blocks });
        }
    }

    /// The changes since the last call.
    pub fn take_changes(&mut self) -> Vec<Change> {
        std::mem::take(&mut self.changes)
    }
}

/// What is unpacked.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Parameters {
    /// Files of the tree: made by rule, or that many of a list's.
    pub files: u32,
}

impl Parameters {
    /// 30,000 files, about as many as a kernel of 2009 has, or a twentieth.
    pub const fn of(quick: bool) -> Self {
        Self { files: if quick { 1_500 } else { 30_000 } }
    }
}

/// The work of unpacking a tree and removing it: phases `untar` and `remove`.
///
/// A range that the tree drops is a deletion for each key in it.
pub fn workload(
    parameters: &Parameters,
    list: Option<&[Entry]>,
    seed: u64,
) -> Result<Workload, LabError> {
    let entries = match list {
        Some(list) => manifest::thin(list, parameters.files),
        None => manifest::by_rule(parameters.files, seed),
    };
    let mut volume = Volume::new();
    let mut recorder = Recorder::<KEY_BYTES>::new(seed);
    recorder.phase("untar");
    for entry in &entries {
        volume.unpack(entry)?;
        record(&mut recorder, volume.take_changes());
    }
    recorder.phase("remove");
    volume.remove_all();
    record(&mut recorder, volume.take_changes());
    Workload::new("ubifs", recorder)
}

fn record(recorder: &mut Recorder<KEY_BYTES>, changes: Vec<Change>) {
    for change in changes {
        match change {
            Change::Put { key, .. } if recorder.has(&key.to_be_bytes()) => {
                recorder.append(key.to_be_bytes());
            }
            Change::Put { key, .. } => recorder.insert(key.to_be_bytes()),
            Change::Remove { key, .. } => recorder.delete(key.to_be_bytes()),
            Change::Forget { inode, blocks } => {
                recorder.delete(key(inode, Kind::Inode, 0).to_be_bytes());
                for block in 0..blocks {
                    recorder.delete(key(inode, Kind::Block, block).to_be_bytes());
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changes_of(list: &str) -> (Vec<Change>, Vec<Change>) {
        let mut volume = Volume::new();
        for entry in manifest::parse(list).unwrap() {
            volume.unpack(&entry).unwrap();
        }
        let made = volume.take_changes();
        volume.remove_all();
        (made, volume.take_changes())
    }

    #[test]
    fn keys_order_an_inode_before_its_blocks_before_its_names() {
        let ordered = [
            key(65, Kind::Inode, 0),
            key(65, Kind::Block, 0),
            key(65, Kind::Block, LOW_MASK),
            key(65, Kind::Name, 3),
            key(65, Kind::Name, LOW_MASK),
            key(66, Kind::Inode, 0),
        ];
        assert!(ordered.is_sorted_by(|a, b| a < b));
        let (first, last) = range(65);
        assert!(first == ordered[0] && (ordered[4]..ordered[5]).contains(&last));
        assert_eq!(key(1, Kind::Name, 5), 0x1_4000_0005);
    }

    #[test]
    fn a_file_of_two_blocks_is_six_changes_and_its_removal_four() {
        let (made, removed) = changes_of("f\t5000\ta\n");
        // The root's inode, and three for `linux1`.
        let name = key(65, Kind::Name, hash("a"));
        let put = |key, bytes| Change::Put { key, bytes };
        let inode = |inode| put(key(inode, Kind::Inode, 0), 160);
        assert_eq!(
            made[4..],
            [
                put(name, 64),
                inode(66),
                inode(65),
                put(key(66, Kind::Block, 0), 48 + 4096),
                put(key(66, Kind::Block, 1), 48 + 904),
                inode(66),
            ]
        );
        let forget = Change::Forget { inode: 66, blocks: 2 };
        assert_eq!(
            removed[..4],
            [Change::Remove { key: name, bytes: 64 }, inode(66), inode(65), forget]
        );
        assert_eq!(removed.len(), 8, "then `linux1` goes");
    }

    #[test]
    fn removal_is_depth_first_and_by_hash() {
        let (_, removed) = changes_of("d\t0\td\nf\t0\td/x\nf\t0\td/y\nf\t0\te\n");
        let forgotten: Vec<_> = removed
            .iter()
            .filter_map(|change| match change {
                Change::Forget { inode, .. } => Some(*inode),
                _ => None,
            })
            .collect();
        assert!(hash("x") < hash("y") && hash("d") < hash("e"));
        assert_eq!(forgotten, [67, 68, 66, 69, 65]);
    }

    #[test]
    fn names_of_one_hash_in_a_directory_have_two_keys() {
        let names = ["01A", "00L"];
        let list = names.map(|name| format!("f\t0\t{name}\n")).concat();
        let (made, removed) = changes_of(&list);
        let keys: std::collections::HashSet<_> = made
            .iter()
            .filter_map(|change| match change {
                Change::Put { key, .. } if key >> LOW_BITS & 7 == 2 => Some(*key),
                _ => None,
            })
            .collect();
        assert_eq!((keys.len(), hash(names[0]) == hash(names[1])), (3, true));
        let gone = removed.iter().filter(|change| matches!(change, Change::Remove { .. }));
        assert_eq!(gone.count(), 3);
    }

    #[test]
    fn the_work_inserts_each_key_once_and_deletes_it_again() {
        let made = workload(&Parameters { files: 200 }, None, 3).unwrap();
        let phases: Vec<_> = made.work.phases.iter().map(|phase| &phase.name[..]).collect();
        assert_eq!((phases, made.work.key_bytes), (vec!["untar", "remove"], 8));
        // Only the root's inode is left, and it was never deleted.
        assert_eq!(u64::from(made.work.most_at_once()), made.counts.deletions + 1);
    }
}
