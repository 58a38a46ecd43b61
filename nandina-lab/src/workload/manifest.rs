//! The files of a source tree: read from a list, or made by rule.
//!
//! A list is text, one entry a line in the order in which an archive unpacks them:
//! `type<TAB>bytes<TAB>path`, where the type is `f` for a file, `d` for a directory and `l` for a
//! symbolic link; the root is `.`. It may be compressed with zstd.

use std::collections::{BTreeMap, HashSet};
use std::path::Path;

use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, LogNormal};

use crate::LabError;
use crate::input::decompress;

/// What an entry is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EntryKind {
    /// A file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link; its bytes are its target's name.
    Link,
}

/// A file, directory or link.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Entry {
    /// What it is.
    pub kind: EntryKind,
    /// Its size.
    pub bytes: u64,
    /// Its path from the root, without `./`; empty for the root.
    pub path: String,
}

impl Entry {
    /// Its directory's path and its own name.
    pub fn split(&self) -> (&str, &str) {
        self.path.rsplit_once('/').unwrap_or(("", &self.path))
    }
}

/// Reads a list from a file.
pub fn read(path: &Path) -> Result<Vec<Entry>, LabError> {
    let fail = |what: String| LabError(format!("{}: {what}", path.display()));
    let bytes = std::fs::read(path).map_err(|error| fail(format!("cannot be read: {error}")))?;
    let bytes = decompress(bytes).map_err(fail)?;
    let text = String::from_utf8(bytes)
        .map_err(|_| fail("this is not text: give --manifest a list of files".into()))?;
    parse(&text)
        .map_err(|(line, what)| LabError(format!("{}: line {line}: {what}", path.display())))
}

/// Reads a list. An error is a line, from 1, and what is wrong there.
///
/// Every entry follows its directory, and none appears twice.
pub fn parse(text: &str) -> Result<Vec<Entry>, (usize, String)> {
    let mut entries: Vec<Entry> = Vec::new();
    let mut directories = HashSet::from([String::new()]);
    let mut paths = HashSet::new();
    for (line, text) in (1..).zip(text.lines()) {
        let fail = |what: String| (line, what);
        let mut fields = text.splitn(3, '\t');
        let (Some(kind), Some(bytes), Some(path)) = (fields.next(), fields.next(), fields.next())
        else {
            return Err(fail("expected three fields with tabs between: type, bytes, path".into()));
        };
        let kind = match kind {
            "f" => EntryKind::File,
            "d" => EntryKind::Directory,
            "l" => EntryKind::Link,
            _ => return Err(fail(format!("the type is '{kind}': expected f, d or l"))),
        };
        let bytes: u64 = bytes
            .parse()
            .ok()
            .filter(|&bytes| bytes <= 1 << 40)
            .ok_or_else(|| fail(format!("the size is '{bytes}': expected bytes, 0 to 2^40")))?;
        let path = path.strip_prefix("./").unwrap_or(path).trim_end_matches('/');
        if path == "." && kind == EntryKind::Directory {
            continue;
        }
        let entry = Entry { kind, bytes, path: path.into() };
        let (directory, name) = entry.split();
        if name.is_empty() || name == "." || name == ".." {
            return Err(fail(format!("'{path}' is no path of a file in the tree")));
        }
        if !directories.contains(directory) {
            return Err(fail(format!(
                "'{path}' comes before its directory '{directory}': put directories first"
            )));
        }
        if !paths.insert(entry.path.clone()) {
            return Err(fail(format!("'{path}' is there twice: remove one")));
        }
        if kind == EntryKind::Directory {
            directories.insert(entry.path.clone());
        }
        entries.push(entry);
    }
    if entries.is_empty() {
        return Err((1, "there is no entry in it: give a list with at least one file".into()));
    }
    Ok(entries)
}

/// The number of neighbouring files that are taken together.
///
/// It is the number in a directory, so that a part of a tree has few directories as well.
const RUN: usize = FILES_A_DIRECTORY as usize;

/// Takes `files` of a list's files with the directories that lead to them.
///
/// A shorter list is taken whole. The files are taken in runs of 16 that are spread evenly over the
/// list. Links count as files.
pub fn thin(list: &[Entry], files: u32) -> Vec<Entry> {
    let wanted = files as usize;
    let all: Vec<_> = list.iter().filter(|entry| entry.kind != EntryKind::Directory).collect();
    if wanted >= all.len() {
        return list.to_vec();
    }
    // The last run takes the remainder.
    let (runs, runs_wanted) = ((all.len() / RUN).max(1), wanted.div_ceil(RUN));
    let starts = |run: usize| (run + 1) * runs_wanted / runs > run * runs_wanted / runs;
    let taken = all.iter().enumerate().filter(|(index, _)| starts((index / RUN).min(runs - 1)));
    let kept = taken.take(wanted).map(|(_, entry)| &entry.path[..]).collect();
    with_leading(list, &kept)
}

/// The files and links of these paths, with the directories that lead to them.
fn with_leading(list: &[Entry], kept: &HashSet<&str>) -> Vec<Entry> {
    let mut leading = HashSet::new();
    for path in kept {
        let mut above = path.rsplit_once('/');
        while let Some((directory, _)) = above.filter(|(directory, _)| leading.insert(*directory)) {
            above = directory.rsplit_once('/');
        }
    }
    let is_kept = |entry: &&Entry| match entry.kind {
        EntryKind::Directory => leading.contains(&entry.path[..]),
        EntryKind::File | EntryKind::Link => kept.contains(&entry.path[..]),
    };
    list.iter().filter(is_kept).cloned().collect()
}

/// Draws whole directories by seed until their files have `bytes`.
///
/// A directory comes with the files in it, not with those below, and with the directories that lead
/// to it. One that would pass `bytes` is left out, and so are those whose files have fewer than
/// `mean_bytes` on average; at 99 % the drawing ends. A shorter list is taken whole.
pub fn sample(list: &[Entry], bytes: u64, mean_bytes: u64, seed: u64) -> Vec<Entry> {
    let mut directories: BTreeMap<&str, Vec<&Entry>> = BTreeMap::new();
    for entry in list.iter().filter(|entry| entry.kind != EntryKind::Directory) {
        directories.entry(entry.split().0).or_default().push(entry);
    }
    let total = |files: &[&Entry]| files.iter().map(|entry| entry.bytes).sum::<u64>();
    let is_drawn = |files: &Vec<&Entry>| total(files) >= mean_bytes * files.len() as u64;
    let mut drawn: Vec<_> = directories.into_values().filter(is_drawn).collect();
    drawn.shuffle(&mut ChaCha8Rng::seed_from_u64(seed));
    let (mut kept, mut sum) = (HashSet::new(), 0);
    for files in drawn {
        let more = total(&files);
        if sum + more <= bytes {
            sum += more;
            kept.extend(files.iter().map(|entry| &entry.path[..]));
        }
        if sum >= bytes - bytes / 100 {
            break;
        }
    }
    with_leading(list, &kept)
}

/// Files for each directory, as in source trees of kernels.
const FILES_A_DIRECTORY: u32 = 16;
/// Median bytes of a file, and the spread of their logarithms.
///
/// Nine tenths are below 30,000 bytes.
const MEDIAN_BYTES: f64 = 4_000.0;
const SPREAD: f64 = 1.56;
const BYTES_MAX: u64 = 1 << 20;
const DEPTH_MAX: usize = 7;

/// Makes a source tree of `files` files by rule.
///
/// There is one directory for every 16 files, each inside one drawn from those before it, none
/// deeper than 7; the files of a directory are few or many (exponential); sizes are log-normal; 45
/// % are C sources, 40 % headers.
pub fn by_rule(files: u32, seed: u64) -> Vec<Entry> {
    let mut random = ChaCha8Rng::seed_from_u64(seed ^ 0x7EE);
    // The parameters are constants in the permitted range.
    let sizes = LogNormal::new(MEDIAN_BYTES.ln(), SPREAD);
    let size = |random: &mut ChaCha8Rng| {
        let drawn = sizes.map_or(MEDIAN_BYTES, |sizes| sizes.sample(random));
        (drawn as u64).clamp(1, BYTES_MAX)
    };
    let (mut entries, mut directories) = (Vec::new(), vec![String::new()]);
    let mut left = files;
    while left > 0 {
        let parent = directories[random.random_range(0..directories.len())].clone();
        if parent.split('/').count() >= DEPTH_MAX {
            continue;
        }
        let separator = if parent.is_empty() { "" } else { "/" };
        let directory = format!("{parent}{separator}directory{}", directories.len());
        entries.push(Entry { kind: EntryKind::Directory, bytes: 0, path: directory.clone() });
        let share = -(1.0 - random.random::<f64>()).ln() * f64::from(FILES_A_DIRECTORY);
        let here = (share.round() as u32).min(left);
        left -= here;
        for number in 0..here {
            let ending = match random.random_range(0..100) {
                0..45 => ".c",
                45..85 => ".h",
                _ => "",
            };
            let path = format!("{directory}/part{number}{ending}");
            entries.push(Entry { kind: EntryKind::File, bytes: size(&mut random), path });
        }
        directories.push(directory);
    }
    entries
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_read_in_its_order() {
        let text = "d\t0\t.\nd\t0\t./a\nf\t12\t./a/b.c\nl\t3\t./c\n";
        let entries = parse(text).unwrap();
        let paths: Vec<_> = entries.iter().map(|entry| &entry.path[..]).collect();
        assert_eq!(paths, ["a", "a/b.c", "c"]);
        assert_eq!(entries[1].split(), ("a", "b.c"));
        assert_eq!((entries[1].bytes, entries[2].kind), (12, EntryKind::Link));
    }

    #[test]
    fn a_sample_is_of_whole_directories_and_as_large_as_asked_for() {
        let list = by_rule(2_000, 3);
        let bytes = |list: &[Entry]| list.iter().map(|entry| entry.bytes).sum::<u64>();
        let one = sample(&list, 3_000_000, 0, 1);
        assert!((2_970_000..=3_000_000).contains(&bytes(&one)), "{}", bytes(&one));
        let is_file = |entry: &&Entry| entry.kind == EntryKind::File;
        let inside = |list: &[Entry], directory: &str| {
            list.iter().filter(is_file).filter(|entry| entry.split().0 == directory).count()
        };
        let mut paths = HashSet::from([""]);
        for entry in &one {
            let (directory, _) = entry.split();
            assert!(paths.contains(directory), "{directory}");
            if entry.kind == EntryKind::Directory {
                paths.insert(&entry.path);
            } else {
                assert_eq!(inside(&one, directory), inside(&list, directory), "{directory}");
            }
        }
        assert_ne!(one, sample(&list, 3_000_000, 0, 2));
        let files = |list: &[Entry]| list.iter().filter(is_file).count();
        assert!(files(&sample(&list, 3_000_000, 16_000, 1)) < files(&one));
        assert_eq!(files(&sample(&list, 1 << 40, 0, 1)), files(&list));
    }

    #[test]
    fn a_thinned_list_has_so_many_files_and_the_way_to_them() {
        let list = by_rule(1_000, 1);
        for files in [1, 7, 500, 999] {
            let thin = thin(&list, files);
            let count = thin.iter().filter(|entry| entry.kind == EntryKind::File).count();
            assert_eq!(count, files as usize);
            assert!(thin.iter().all(|entry| list.contains(entry)));
            let text: String = thin
                .iter()
                .map(|Entry { kind, bytes, path }| {
                    let kind = if *kind == EntryKind::File { 'f' } else { 'd' };
                    format!("{kind}\t{bytes}\t{path}\n")
                })
                .collect();
            assert_eq!(parse(&text).unwrap(), thin, "each stands behind its directory");
            let holds = |path: &str| thin.iter().any(|entry| entry.split().0 == path);
            let mut directories = thin.iter().filter(|entry| entry.kind == EntryKind::Directory);
            assert!(directories.all(|directory| holds(&directory.path)), "none is empty");
        }
        assert_eq!(thin(&list, 1_000), list);
        assert_eq!(thin(&list, u32::MAX), list);
        assert!(thin(&list, 0).is_empty());
    }

    #[test]
    fn mistakes_are_told_by_line() {
        for (text, line, word) in [
            ("", 1, "no entry"),
            ("f\t1", 1, "three fields"),
            ("f\t1\ta\nx\t1\tb", 2, "'x'"),
            ("f\tmany\ta", 1, "'many'"),
            ("f\t99999999999999\ta", 1, "2^40"),
            ("f\t1\ta/b", 1, "before its directory 'a'"),
            ("f\t1\ta\nf\t1\t./a", 2, "twice"),
            ("f\t1\t.", 1, "no path"),
            ("d\t0\ta\nf\t1\ta/..", 2, "no path"),
        ] {
            let (at, what) = parse(text).unwrap_err();
            assert_eq!(at, line, "{text:?}: {what}");
            assert!(what.contains(word), "{text:?}: {what}");
        }
    }

    #[test]
    fn a_tree_by_rule_is_like_a_source_tree_and_its_seed_decides() {
        let entries = by_rule(8_000, 1);
        assert_eq!(entries, by_rule(8_000, 1));
        assert_ne!(entries, by_rule(8_000, 2));
        let mut sizes: Vec<u64> = entries
            .iter()
            .filter(|entry| entry.kind == EntryKind::File)
            .map(|entry| entry.bytes)
            .collect();
        sizes.sort_unstable();
        assert_eq!(sizes.len(), 8_000);
        assert!((3_500..4_500).contains(&sizes[4_000]), "median {}", sizes[4_000]);
        assert!((25_000..35_000).contains(&sizes[7_200]), "nine tenths {}", sizes[7_200]);
        let directories = entries.len() - sizes.len();
        assert!((400..600).contains(&directories), "{directories} directories");
        let list: String = entries
            .iter()
            .map(|entry| {
                let kind = if entry.kind == EntryKind::File { 'f' } else { 'd' };
                format!("{kind}\t{}\t./{}\n", entry.bytes, entry.path)
            })
            .collect();
        assert_eq!(parse(&list).unwrap(), entries);
    }
}
