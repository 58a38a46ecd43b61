//! `nandina check`: the list of invariants that do not hold, and an exit code for scripts.
//!
//! It does not write the image.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use nandina_lab::LabError;
use nandina_lab::check::check;
use nandina_lab::store::look;

use crate::output::{print, print_json};
use crate::tables::counted;

#[derive(Args)]
pub struct Check {
    /// The image
    image: PathBuf,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Check {
    pub fn run(&self) -> Result<ExitCode, LabError> {
        let (chip, _) = look(&self.image)?;
        let image = self.image.display();
        let found = check(&chip).map_err(|error| LabError(format!("{image}: {error}")))?;
        if self.json {
            print_json(&found)?;
        } else if found.holds {
            let journal = found.journal.filter(|journal| journal.pages > 0).map(|journal| {
                format!(
                    ", {} newer than the last commit in {} of the journal",
                    counted(journal.changes, "change"),
                    counted(journal.pages.into(), "page")
                )
            });
            let journal = journal.unwrap_or_default();
            let mount = found.mount.map(|mount| {
                format!(
                    "; a mount loads {}, makes {} again and writes {}",
                    counted(mount.loaded, "node"),
                    counted(mount.replayed, "change"),
                    counted(mount.written, "node")
                )
            });
            let mount = mount.unwrap_or_default();
            print(&format!(
                "{image}: every invariant holds: {}, {} records in {} valid pages{journal}{mount}; {} pages were read",
                found.system.unwrap_or("-"),
                found.records.unwrap_or(0),
                found.valid_pages.unwrap_or(0),
                found.pages_read
            ))?;
        } else {
            let lines: Vec<_> =
                found.violations.iter().map(|violation| format!("{image}: {violation}")).collect();
            print(&lines.join("\n"))?;
        }
        Ok(ExitCode::from(u8::from(!found.holds)))
    }
}
