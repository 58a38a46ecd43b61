//! `nandina image`: records in a file that is a simulated chip.
//!
//! A command that fails leaves the file unchanged, unless only its result could not be printed; one
//! that only reads does not write it.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, Subcommand};
use nandina::Options;
use nandina::engine::KEY_BYTES_MAX;
use nandina_lab::LabError;
use nandina_lab::store::{CHECKPOINTS, Cell, Kind, Rows, ScanRange, Store, blocks_max};

use serde_json::json;

use crate::choose::device;
use crate::output::{self, complain, print, print_json, written};
use crate::progress::Progress;
use crate::settings::NodeSettings;

/// KIND is u32, i32, u64, i64, text:N (UTF-8, padded with zero bytes to N) or hex:N (exactly N
/// bytes).
#[derive(Subcommand)]
pub enum Image {
    /// Makes an image with an empty index
    Create(Create),
    /// Inserts a record or replaces the value of its key; each run mounts again and costs an erase
    Put(Put),
    /// Prints the value of a key; exit code 1 if it is absent
    Get(One),
    /// Removes a record; exit code 1 if the key is absent
    Remove(One),
    /// Prints records in the order of their keys, as CSV with a header
    Scan(Scan),
    /// Inserts or replaces all rows of a CSV file, or none: a bad line leaves the image unchanged
    Load(Load),
}

#[derive(Args)]
pub struct Create {
    /// The image; it must not exist
    image: PathBuf,
    /// Chip to simulate; `nandina devices` lists them
    #[arg(long)]
    device: String,
    /// Blocks of the chip, 1 to 1,048,576, fewer if a block has more than 16 pages [default: as the
    /// device has]
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=1_048_576))]
    blocks: Option<u32>,
    /// System that writes the tree; `nandina systems` lists them
    #[arg(long)]
    system: String,
    /// Kind of the keys: u32, i32, u64, i64, text:N or hex:N, at most 64 bytes
    #[arg(long, value_name = "KIND")]
    key: String,
    /// Kind of the values, as for keys, as long as two records fit in a leaf, or one in a page of
    /// a journal
    #[arg(long, value_name = "KIND")]
    value: String,
    /// Use checkpoints, so that opening reads what was written since the last one and not a page of
    /// every block; they take four blocks and some room beside, much of a chip of few blocks
    #[arg(long)]
    checkpoints: bool,
    #[command(flatten)]
    nodes: NodeSettings,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Args)]
pub struct Put {
    /// The image
    image: PathBuf,
    /// The key, of the image's kind
    #[arg(allow_negative_numbers = true)]
    key: String,
    /// The value, of the image's kind
    #[arg(allow_negative_numbers = true)]
    value: String,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Args)]
pub struct One {
    /// The image
    image: PathBuf,
    /// The key, of the image's kind
    #[arg(allow_negative_numbers = true)]
    key: String,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Args)]
pub struct Scan {
    /// The image
    image: PathBuf,
    /// Lowest key to print; it need not exist
    #[arg(long, value_name = "KEY", allow_negative_numbers = true)]
    from: Option<String>,
    /// Highest key to print; it need not exist
    #[arg(long, value_name = "KEY", allow_negative_numbers = true)]
    to: Option<String>,
    /// Records to print at most [default: all]
    #[arg(long)]
    limit: Option<u64>,
    /// From the highest key down
    #[arg(long)]
    down: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Args)]
pub struct Load {
    /// The image
    image: PathBuf,
    /// CSV with a header; it may be compressed with zstd
    file: PathBuf,
    /// Column that is the key [default: the first]
    #[arg(long, value_name = "COLUMN")]
    key: Option<String>,
    /// Column that is the value [default: the first that is not the key]
    #[arg(long, value_name = "COLUMN")]
    value: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Image {
    pub fn run(&self) -> Result<ExitCode, LabError> {
        match self {
            Self::Create(arguments) => arguments.run(),
            Self::Put(arguments) => arguments.run(),
            Self::Get(arguments) => arguments.get(),
            Self::Remove(arguments) => arguments.remove(),
            Self::Scan(arguments) => arguments.run(),
            Self::Load(arguments) => arguments.run(),
        }
    }
}

/// Prints `text`, or `object` where JSON is requested.
fn answer(json: bool, object: &serde_json::Value, text: &str) -> Result<ExitCode, LabError> {
    if json {
        print_json(object)?;
    } else {
        print(text)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Prints the result of a change; an error says that the image was changed.
fn changed(json: bool, object: &serde_json::Value, text: &str) -> Result<ExitCode, LabError> {
    answer(json, object, text)
        .map_err(|error| LabError(format!("the image was changed as asked, but {error}")))
}

impl Create {
    fn run(&self) -> Result<ExitCode, LabError> {
        let mut profile = device(&self.device)?;
        if let Some(blocks) = self.blocks {
            let most = blocks_max(&profile);
            if blocks > most {
                let what = format!(
                    "--blocks {blocks} is too many for {}: choose 1 to {most}",
                    profile.key
                );
                return Err(LabError(what));
            }
            profile = profile.with_blocks(blocks);
        }
        let kind = |option: &str, text: &str| {
            text.parse::<Kind>().map_err(|what| LabError(format!("{option} {text}: {what}")))
        };
        let key = match self.key.parse::<Kind>() {
            Ok(key) if (1..=KEY_BYTES_MAX).contains(&key.bytes().into()) => key,
            _ => {
                return Err(LabError(format!(
                    "--key {}: choose u32, i32, u64, i64, text:N or hex:N, N being bytes, 1 to {KEY_BYTES_MAX}",
                    self.key
                )));
            }
        };
        let value = kind("--value", &self.value)?;
        let options = Options {
            checkpoints: self.checkpoints.then_some(CHECKPOINTS),
            ..Options::new(key.bytes().into(), value.bytes().into())
        };
        let options = self.nodes.of(options, &self.system)?;
        Store::create(&self.image, profile, &self.system, (key, value), &options)?;
        let (key, value) = (key.to_string(), value.to_string());
        let blocks = profile.geometry.blocks;
        let object = json!({
            "image": shown(&self.image), "device": profile.key, "blocks": blocks,
            "system": self.system, "key": key, "value": value,
        });
        let text = format!(
            "{}: an empty index of {} on {}, {blocks} blocks, keys {key}, values {value}",
            shown(&self.image),
            self.system,
            profile.key,
        );
        changed(self.json, &object, &text)
    }
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}

impl Put {
    fn run(&self) -> Result<ExitCode, LabError> {
        let mut store = Store::open(&self.image)?;
        let new = store.put(&self.key, &self.value)?;
        store.close()?;
        let text = if new { "put" } else { "replaced" };
        changed(self.json, &json!({ "new": new }), text)
    }
}

impl One {
    fn get(&self) -> Result<ExitCode, LabError> {
        match Store::look(&self.image)?.get(&self.key)? {
            Some(value) => answer(self.json, &json!({ "value": value }), &value.to_string()),
            None => self.absent(&json!({ "value": null })),
        }
    }

    fn remove(&self) -> Result<ExitCode, LabError> {
        let mut store = Store::open(&self.image)?;
        if !store.remove(&self.key)? {
            return self.absent(&json!({ "removed": false }));
        }
        store.close()?;
        changed(self.json, &json!({ "removed": true }), "removed")
    }

    fn absent(&self, object: &serde_json::Value) -> Result<ExitCode, LabError> {
        if self.json {
            print_json(object)?;
        } else {
            complain(&format!("{}: there is no key '{}'", shown(&self.image), self.key));
        }
        Ok(ExitCode::from(1))
    }
}

#[derive(serde::Serialize)]
struct Record {
    key: Cell,
    value: Cell,
}

impl Scan {
    fn run(&self) -> Result<ExitCode, LabError> {
        let mut store = Store::look(&self.image)?;
        let range = ScanRange {
            from: self.from.as_deref(),
            to: self.to.as_deref(),
            limit: self.limit,
            down: self.down,
        };
        if self.json {
            let mut records = Vec::new();
            store.scan(&range, &mut |key, value| {
                records.push(Record { key, value });
                true
            })?;
            print_json(&records)?;
            return Ok(ExitCode::SUCCESS);
        }
        let mut writer = csv::Writer::from_writer(output::standard()?);
        let header = ["key", "value"];
        let (mut begun, mut result) = (false, Ok(()));
        // Output that cannot be written ends the scan.
        store.scan(&range, &mut |key, value| {
            if !begun {
                result = writer.write_record(header);
                begun = true;
            }
            if result.is_ok() {
                result = writer.write_record([key.to_string(), value.to_string()]);
            }
            result.is_ok()
        })?;
        if !begun {
            result = writer.write_record(header);
        }
        let result = result.map_err(|error| match error.into_kind() {
            csv::ErrorKind::Io(error) => error,
            other => std::io::Error::other(format!("{other:?}")),
        });
        written(result.and_then(|()| writer.flush()))?;
        Ok(ExitCode::SUCCESS)
    }
}

impl Load {
    fn run(&self) -> Result<ExitCode, LabError> {
        let mut store = Store::open(&self.image)?;
        let (key, value) = store.kinds();
        let rows =
            Rows::read(&self.file, (self.key.as_deref(), key), (self.value.as_deref(), value))?;
        let progress = Progress::new(rows.len() as u64);
        let result = store.load(&rows, &|rows| progress.advance(rows));
        progress.finish();
        let loaded = result?;
        store.close()?;
        let object = json!({
            "rows": loaded.rows, "new": loaded.new, "replaced": loaded.rows - loaded.new,
            "records": loaded.records,
        });
        let text = format!(
            "{} rows: {} new keys, {} replaced; {} records now",
            loaded.rows,
            loaded.new,
            loaded.rows - loaded.new,
            loaded.records
        );
        changed(self.json, &object, &text)
    }
}
