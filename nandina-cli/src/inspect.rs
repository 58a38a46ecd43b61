//! `nandina inspect`: the content of the chip of an image, as tables or JSON.
//!
//! It does not write the image and computes no figure.

use std::path::PathBuf;

use clap::Args;
use nandina_lab::LabError;
use nandina_lab::inspect::{Inspection, JournalFacts, State, TreeFacts, inspect};
use nandina_lab::store::look;

use crate::output::{print, print_json};
use crate::tables::{counted, table};
use crate::wear::histogram;

/// Losses of a tree that are printed; JSON has them all.
const LOSSES_SHOWN: usize = 10;

#[derive(Args)]
pub struct Inspect {
    /// The image
    image: PathBuf,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Inspect {
    pub fn run(&self) -> Result<(), LabError> {
        let (chip, _) = look(&self.image)?;
        let inspection = inspect(&chip)
            .map_err(|error| LabError(format!("{}: {error}", self.image.display())))?;
        if self.json {
            return print_json(&inspection);
        }
        print(&format!("{}: {}", self.image.display(), text(&inspection)))
    }
}

fn text(inspection: &Inspection) -> String {
    let Inspection { device, blocks, pages_per_block, page_bytes, spare_bytes, .. } = inspection;
    let mut text = format!(
        "{device}, {blocks} blocks of {pages_per_block} pages of {page_bytes} + {spare_bytes} bytes\n{}",
        match inspection.state {
            State::Whole => "The index opens, and every node of its tree can be read.",
            State::Damaged => "The index is DAMAGED.",
            State::Blank => "The chip is blank: every page is erased.",
            State::Foreign => "The chip holds bytes, but no readable page of an index.",
            State::OtherVersion => "The chip holds an index of another format version.",
        }
    );
    if let (Some(refusal), State::Damaged) = (&inspection.refusal, inspection.state) {
        text += &format!("\nIt does not open: {refusal}");
    }
    if let Some(medium) = &inspection.medium {
        let system = medium.system.map_or(format!("system {}", medium.system_code), String::from);
        text += &format!(
            "\n{system}, keys of {} bytes, values of {} bytes, identity {}, newest sequence {}",
            medium.key_bytes, medium.value_bytes, medium.identity, medium.sequence
        );
        if (medium.blocks, u32::from(medium.pages_per_block)) != (*blocks, *pages_per_block) {
            text += &format!(
                "\nIt was made for another chip: {} blocks of {} pages.",
                medium.blocks, medium.pages_per_block
            );
        }
    }
    if let Some(tree) = &inspection.tree {
        let newest = if inspection.journal.is_some() { "last commit" } else { "newest root" };
        text += &format!("\n\nTree of the {newest}\n{}", tree_text(tree));
        text += &inspection.journal.as_ref().map_or_else(String::new, journal_text);
        if let Some(pages @ 1..) = inspection.unexplained_pages {
            text += &format!(
                "\n{pages} damaged pages are newer than the newest root that can be read, and no power cut \
                 explains them: newer changes may be lost."
            );
        }
    } else if inspection.medium.is_some() {
        text += "\n\nNo root of the index can be read.";
    }
    if let Some(tree) = &inspection.older_tree {
        let what = if tree.losses.is_empty() { "that is whole" } else { "that keeps most" };
        text += &format!("\n\nNewest older tree {what}\n{}", tree_text(tree));
    }
    if inspection.state == State::Damaged {
        let mut levels = table(&["level", "decodable pages", "with a root"], 0);
        for level in &inspection.decodable {
            levels.add_row(
                [level.level.into(), level.pages, level.roots].map(|count: u32| count.to_string()),
            );
        }
        text += &format!("\n\nPages of the index that can be decoded\n{levels}");
    }
    text + &format!("\n\nPages\n{}\n\nWear\n{}", pages_text(inspection), wear_text(inspection))
}

fn tree_text(tree: &TreeFacts) -> String {
    let mut levels = table(&["level", "nodes", "records", "mean fill %", "least fill %"], 0);
    for level in &tree.levels {
        levels.add_row([
            level.level.to_string(),
            level.nodes.to_string(),
            level.records.to_string(),
            format!("{:.1}", level.fill_mean_percent),
            format!("{:.1}", level.fill_least_percent),
        ]);
    }
    // The header of a page does not count the records that were appended to it.
    let records = if tree.packed.is_some() {
        format!(
            "{} records as of that commit, {} of them can be reached",
            tree.records, tree.records_reached
        )
    } else if tree.records_reached > tree.records.into() {
        format!("{} records, {} when the newest page was begun", tree.records_reached, tree.records)
    } else {
        format!("{} records, {} of them can be reached", tree.records, tree.records_reached)
    };
    let mut text = format!(
        "root in page {}, sequence {}, height {}, {records}\n{levels}",
        tree.root_page, tree.sequence, tree.height
    );
    if let Some(packed) = tree.packed {
        text += &format!(
            "\n{} hold its nodes, of which a page has at most {}; values are ",
            counted(packed.pages_of_nodes.into(), "page"),
            packed.nodes_max
        );
        text += &match packed.values_in_journal {
            false => "in its leaves".to_string(),
            true => format!(
                "where they were written, in {}",
                counted(packed.pages_of_values.into(), "page")
            ),
        };
    }
    for loss in tree.losses.iter().take(LOSSES_SHOWN) {
        text += &format!("\nlost: page {}, level {}: {}", loss.page, loss.level, loss.reason);
    }
    if tree.losses.len() > LOSSES_SHOWN {
        text += &format!("\nand {} more nodes are lost", tree.losses.len() - LOSSES_SHOWN);
    }
    text
}

/// What is newer than the last commit, and how much of it a mount reads.
fn journal_text(journal: &JournalFacts) -> String {
    let JournalFacts { pages, changes, pages_of_slots, changes_in_slots } = *journal;
    if pages == 0 {
        return "\nNothing is newer: the journal after it is empty.".into();
    }
    let changes = counted(changes, "change");
    let mut text = format!(
        "\nThe journal after it has {changes} in {}, which a mount reads and makes again",
        counted(pages.into(), "page")
    );
    if pages_of_slots > 0 {
        text += &format!(
            "; {} of these changes are in slots of {}",
            changes_in_slots,
            counted(pages_of_slots.into(), "page")
        );
    }
    text + "."
}

fn pages_text(inspection: &Inspection) -> String {
    let pages = &inspection.pages;
    let mut counts = table(&["pages", "count"], 1);
    for (what, count) in [
        ("valid: they hold a node or a value of the tree", pages.valid),
        ("stale: superseded", pages.stale),
        ("of checkpoints, new and old", pages.checkpoints),
        ("of a journal, newer than the last commit", pages.journal),
        ("of an operation that was cut", pages.unfinished),
        ("of an index that was here before", pages.other_index),
        ("erased", pages.erased),
        ("erased, never programmed: they share cells", pages.skipped),
        ("damaged: checksum wrong, or no page of an index", pages.damaged),
        ("unreadable: more wrong bits than the ECC corrects", pages.unreadable),
        ("of another format version", pages.other_version),
        ("all", pages.total),
        ("readable, but to be written anew", pages.corrected),
    ] {
        if count > 0 {
            counts.add_row([what.to_string(), count.to_string()]);
        }
    }
    counts.to_string()
}

fn wear_text(inspection: &Inspection) -> String {
    let text = histogram(&inspection.wear);
    match &inspection.bad_blocks[..] {
        [] => text,
        bad => {
            let numbers: Vec<_> = bad.iter().map(u32::to_string).collect();
            format!("{text}\nbad blocks: {}", numbers.join(", "))
        }
    }
}
