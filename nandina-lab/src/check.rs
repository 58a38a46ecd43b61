//! Checks every invariant of the index on a chip.
//!
//! It combines the index's own check with a walk that shares no code with it. It works on a copy:
//! the chip is neither written nor repaired.

use crate::systems::key_of;
use nandina::{Index, System, Violation};
use nandina_sim::Chip;
use serde::Serialize;

use crate::LabError;
use crate::cost::NodeCost;
use crate::inspect::{JournalFacts, Pages, TreeFacts, walk};
use crate::opened::{Job, copy_to_look_at, medium_of, with_index};

/// The result of a check.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Check {
    /// Whether everything holds.
    pub holds: bool,
    /// Key of the system, if the chip names a known one.
    pub system: Option<&'static str>,
    /// Records in the index, by its own count.
    pub records: Option<u32>,
    /// Valid pages, by the index's own count.
    pub valid_pages: Option<u32>,
    /// Changes that are newer than the newest root, if the system has a journal.
    pub journal: Option<JournalFacts>,
    /// What a mount did with nodes, if the system keeps changed ones in RAM.
    pub mount: Option<NodeCost>,
    /// Pages of the chip that were read.
    pub pages_read: u32,
    /// Each invariant that does not hold, with its page.
    pub violations: Vec<String>,
}

/// Checks the newest index on `chip`. A chip without an index is a violation as well.
pub fn check(chip: &Chip) -> Result<Check, LabError> {
    let mut check = Check {
        holds: false,
        system: None,
        records: None,
        valid_pages: None,
        journal: None,
        mount: None,
        pages_read: 0,
        violations: Vec::new(),
    };
    let medium = match medium_of(chip) {
        Ok(medium) => medium,
        Err(error) => {
            check.violations.push(error.to_string());
            return Ok(check);
        }
    };
    check.system = key_of(medium.system);
    let mut pages = Pages::read(chip)?;
    check.pages_read = pages.found.len() as u32;
    let root = pages.newest().and_then(|newest| pages.roots(&newest).first().copied());
    let tree = root.map(|root| walk(&mut pages, root)).transpose()?.map(|walk| walk.facts);
    check.journal = root.map(|root| pages.journal_behind(root)).transpose()?.flatten();
    let replays = check.journal.is_some_and(|journal| journal.pages > 0);
    let behind = replays || pages.has_half_made_batch();
    let mut copy = copy_to_look_at(chip);
    let own = Own { programs: copy.counters().programs };
    match with_index(&mut copy, &medium, own) {
        Ok(own) => {
            check.records = Some(own.records);
            check.valid_pages = Some(own.valid_pages);
            check.mount = own.mount;
            check.violations.extend(own.violations.iter().cloned());
            compare(&own, tree.as_ref(), behind, &mut check.violations);
            if own.unexplained_pages > 0 {
                check.violations.push(format!(
                    "{} damaged pages are newer than the newest root, and no power cut explains them: newer \
                     changes may be lost",
                    own.unexplained_pages
                ));
            }
        }
        Err(error) => check.violations.push(format!("the index does not open: {error}")),
    }
    for loss in tree.iter().flat_map(|tree| &tree.losses) {
        let what = format!("page {}, level {}: {}", loss.page, loss.level, loss.reason);
        check.violations.push(what);
    }
    check.holds = check.violations.is_empty();
    Ok(check)
}

/// The index's own figures.
struct Answer {
    records: u32,
    scanned: Result<u32, String>,
    valid_pages: u32,
    unexplained_pages: u32,
    /// The mount wrote nodes of a tree whose changes are made in RAM.
    committed: bool,
    mount: Option<NodeCost>,
    violations: Vec<String>,
}

/// Asks the index on a copy of a chip with so many `programs`.
struct Own {
    programs: u64,
}

impl Job for Own {
    type Output = Answer;

    fn run<S: System>(self, index: &mut Index<'_, &mut Chip, S>) -> Answer {
        let mount = index.node_counters().as_ref().map(NodeCost::of);
        let mut violations = Vec::new();
        let checked = index.check(|violation: Violation| violations.push(violation.to_string()));
        if let Err(error) = checked {
            violations.push(format!("the check came to an end: {error}"));
        }
        let scanned = index.range(..).and_then(nandina::Range::count);
        Answer {
            records: index.len(),
            scanned: scanned.map_err(|error| error.to_string()),
            valid_pages: index.statistics().valid_pages,
            unexplained_pages: index.statistics().unexplained_pages,
            committed: S::DESCRIPTION.replays()
                && index.flash().counters().programs > self.programs,
            mount,
            violations,
        }
    }
}

/// Compares the index's own figures with those of the independent walk.
///
/// Changes `behind` the newest root are in no tree on the chip. Pages of the nodes that they touch
/// are not valid any more, nor are those that a mount wrote anew.
fn compare(own: &Answer, tree: Option<&TreeFacts>, behind: bool, violations: &mut Vec<String>) {
    match &own.scanned {
        Ok(scanned) if *scanned == own.records => {}
        Ok(scanned) => violations.push(format!(
            "a scan finds {scanned} records, the index says that it has {}",
            own.records
        )),
        Err(error) => violations.push(format!("a scan came to an end: {error}")),
    }
    let Some(tree) = tree else {
        violations.push("the index opens, but no root was found on the chip".into());
        return;
    };
    if !behind && tree.records_reached != u64::from(own.records) {
        violations.push(format!(
            "the leaves hold {} records, the index says that it has {}",
            tree.records_reached, own.records
        ));
    }
    if !behind && !own.committed && tree.valid_pages != own.valid_pages {
        violations.push(format!(
            "{} pages hold readable nodes, the index counts {} as valid",
            tree.valid_pages, own.valid_pages
        ));
    }
}
