//! Coverage marks: which rare branches a run of tests has reached.
//!
//! Only a rare cut or fault leads to some branches. Each of them has a mark, `covered!` with its
//! name. With the feature `coverage-marks`, which only tests enable, a mark notes that it was
//! reached, and a test demands that all are (`nandina-lab/tests/marks.rs`). Without the feature a
//! mark is no code and no RAM, and a target needs no atomic memory for it.
//!
//! A crate above the library has marks of its own if its root has a module `marks` with `NAMES` and
//! [`REACHED`].

#[cfg(feature = "coverage-marks")]
use core::sync::atomic::{AtomicBool, Ordering};

/// The names of all marks. Each of them is at one place in the sources.
pub const NAMES: &[&str] = &[
    "a batch that was cut is made by a mount",
    "a block that was opened since a checkpoint has gone bad",
    "a change of tnc is programmed into a slot",
    "a change settles what the mount could not",
    "a checkpoint cannot be erased",
    "a checkpoint is erased when its list ends",
    "a checkpoint is read from several blocks",
    "a checkpoint leads to damage",
    "a checkpoint names the batch that was cut",
    "a checkpoint takes several blocks",
    "a collection settles the root",
    "a directory without room stores fewer bytes of its separators",
    "a leaf owns two ranges because one between them is lost",
    "a listed block is bad",
    "a mount begins again without the newest root",
    "a mount near the reserve writes nothing",
    "a mount with less RAM writes nodes ahead of its commit",
    "a page has the logical address of a newer one",
    "a page that is newer than the checkpoint is lost",
    "a page that reads as erased hides others",
    "a part of a checkpoint cannot be programmed",
    "a session begins with a copy",
    "a session page is torn",
    "a slot of tnc fails, and its change has another page",
    "a step writes a page of the next commit",
    "a torn append cannot be settled",
    "a torn append changes the keys of an inner node",
    "a torn append is settled first",
    "an anchor cannot be erased",
    "an erase silently did nothing",
    "an erase silently left a leaf",
    "an erase silently left a page",
    "an erase silently left a page behind a newest leaf",
    "an erase silently left a page behind those of tnc",
    "an index is read unsettled",
    "garbage collection of tnc moves values",
    "leaves are read unsettled",
    "no anchor can be written",
    "nodes are written ahead of their commit",
    "room ends while a mount settles",
    "settling begins with no room but what is held",
    "settling meets damage that no cut explains",
    "settling needs what was held",
    "the block of the last session page is written again",
    "the chip cannot be written while a mount settles",
    "the end of a block is torn",
    "the erase of a block was begun",
    "the first page of a block is torn",
    "the list of a checkpoint ends while the next one takes its blocks",
    "the list of a checkpoint has ended",
    "the list of gaps is full",
    "the newest block holds no root",
    "the newest commit is a mapped node",
    "the newest leaf is torn",
    "the newest leaf stays where it is, since room is short",
    "the newest page is torn",
    "the newest page is torn, and the first of its block",
    "the newest shadow page is torn",
    "the pointers of a child hold blocks",
    "the root before the newest one is kept",
    "the root is looked for behind a checkpoint",
    "the root of a format is torn",
    "the root of the newest commit is lost",
    "the state before the newest leaf is gone",
    "the tree before the newest root is gone",
    "the victim is the block that the fewest moves empty",
    "trails lead nowhere",
];

/// Which of the library's marks were reached.
pub static REACHED: Reached<{ NAMES.len() }> = Reached::none();

/// Which of `COUNT` marks were reached since the program began.
pub struct Reached<const COUNT: usize> {
    #[cfg(feature = "coverage-marks")]
    each: [AtomicBool; COUNT],
}

impl<const COUNT: usize> Reached<COUNT> {
    /// None of them.
    pub const fn none() -> Self {
        Self {
            #[cfg(feature = "coverage-marks")]
            each: [const { AtomicBool::new(false) }; COUNT],
        }
    }

    /// Notes that the mark at this position was reached.
    #[cfg(feature = "coverage-marks")]
    pub fn note(&self, position: usize) {
        self.each[position].store(true, Ordering::Relaxed);
    }

    /// Those of the `names` whose marks were reached.
    #[cfg(feature = "coverage-marks")]
    pub fn among<'n>(&self, names: &[&'n str]) -> impl Iterator<Item = &'n str> {
        let marks = names.iter().zip(&self.each);
        marks.filter(|(_, reached)| reached.load(Ordering::Relaxed)).map(|(&name, _)| name)
    }
}

/// The position of a name among those of a crate's marks.
///
/// # Panics
///
/// If it is not there: then the crate does not compile.
pub const fn position(names: &[&str], name: &str) -> usize {
    let mut at = 0;
    while at < names.len() {
        if is_same(names[at].as_bytes(), name.as_bytes()) {
            return at;
        }
        at += 1;
    }
    panic!("marks.rs does not list this mark")
}

const fn is_same(one: &[u8], other: &[u8]) -> bool {
    let mut at = 0;
    while at < one.len() && at < other.len() && one[at] == other[at] {
        at += 1;
    }
    at == one.len() && at == other.len()
}

/// Marks a rare branch. The name is one of the crate that has the branch.
#[cfg(feature = "coverage-marks")]
#[doc(hidden)]
#[macro_export]
#[expect(clippy::crate_in_macro_def, reason = "each crate has its own names")]
macro_rules! covered {
    ($name:literal) => {{
        const POSITION: usize = $crate::marks::position(crate::marks::NAMES, $name);
        crate::marks::REACHED.note(POSITION);
    }};
}

/// Marks a rare branch: only its name is checked.
#[cfg(not(feature = "coverage-marks"))]
#[doc(hidden)]
#[macro_export]
#[expect(clippy::crate_in_macro_def, reason = "each crate has its own names")]
macro_rules! covered {
    ($name:literal) => {
        const _: usize = $crate::marks::position(crate::marks::NAMES, $name);
    };
}
