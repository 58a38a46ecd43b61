//! The head of a list that is unpacked and removed for Tables 1 and 2, and what is fitted to them.
//!
//! Two numbers are fitted, each to one figure of the paper: the length of the head to the nodes of
//! its tree, and one bound of the journal to the nodes written where nothing is shrunk.

use super::count::{Settings, Tnc, run};
use crate::LabError;
use crate::workload::manifest::{Entry, EntryKind};
use crate::workload::ubifs::{Change, Volume};

/// The fanout of Table 1.
pub const FANOUT: u64 = 8;

/// Files that are unpacked and removed.
pub struct Sample {
    /// Files, directories and links.
    pub entries: usize,
    /// Of these, files.
    pub files: usize,
    /// Bytes of the files.
    pub bytes: u64,
    /// The changes of unpacking.
    pub made: Vec<Change>,
    /// The changes of removing.
    pub removed: Vec<Change>,
}

impl Sample {
    /// All of a list.
    pub fn of(list: &[Entry]) -> Result<Self, LabError> {
        Self::unpack_while(list, |_| true)
    }

    /// The head whose tree has so many nodes at fanout 8; all of a list that has fewer.
    pub fn with_nodes(list: &[Entry], nodes: u64) -> Result<Self, LabError> {
        let mut tnc = Tnc::new(Settings::unbounded(FANOUT));
        Self::unpack_while(list, |changes| {
            changes.iter().for_each(|change| tnc.change(*change));
            tnc.nodes() < nodes
        })
    }

    /// Unpacks entries while `more` wants more, which is called with the changes of each.
    fn unpack_while(
        list: &[Entry],
        mut more: impl FnMut(&[Change]) -> bool,
    ) -> Result<Self, LabError> {
        let mut volume = Volume::new();
        let mut sample =
            Self { entries: 0, files: 0, bytes: 0, made: Vec::new(), removed: Vec::new() };
        for entry in list {
            volume.unpack(entry)?;
            let changes = volume.take_changes();
            let more = more(&changes);
            sample.made.extend(changes);
            sample.entries += 1;
            sample.files += usize::from(entry.kind == EntryKind::File);
            sample.bytes += entry.bytes;
            if !more {
                break;
            }
        }
        volume.remove_all();
        sample.removed = volume.take_changes();
        Ok(sample)
    }

    /// All changes.
    pub fn changes(&self) -> impl Iterator<Item = &Change> {
        self.made.iter().chain(&self.removed)
    }

    /// The smallest bound of the journal above which at most `nodes` are written, in bytes.
    ///
    /// It is above the records of unpacking, so that one commit comes while files are removed.
    pub fn bound_for(&self, nodes: u64) -> u64 {
        let made = records(&self.made);
        let (mut low, mut high) = (made, made + records(&self.removed));
        while low < high {
            let middle = low.midpoint(high);
            let settings = Settings { journal_bytes: Some(middle), ..Settings::unbounded(FANOUT) };
            if run(settings, self.changes()).written <= nodes {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        low
    }
}

/// Bytes of the records of changes.
pub fn records(changes: &[Change]) -> u64 {
    let bytes = changes.iter().map(|change| match *change {
        Change::Put { bytes, .. } | Change::Remove { bytes, .. } => u64::from(bytes),
        Change::Forget { .. } => 0,
    });
    bytes.sum()
}
