//! Settings of an index that several commands take.

use clap::Args;
use nandina::{Options, Validity, Victims};

use crate::arguments::{size, validity, victims};

#[derive(Args)]
pub struct Settings {
    /// Pages of the read cache, 0 to 65,535
    #[arg(long, default_value_t = 0, value_parser = size(0..=65_535))]
    read_cache: usize,
    /// Pages of the write cache, 0 to 65,535; changes are durable when it is flushed
    #[arg(long, default_value_t = 0, value_parser = size(0..=65_535))]
    write_cache: usize,
    /// Pages of the write buffer, in which changes wait to be applied leaf by leaf, 0 to 65,535;
    /// they are durable when it is flushed
    #[arg(long, value_name = "PAGES", default_value_t = 0, value_parser = size(0..=65_535))]
    write_buffer: usize,
    /// How garbage collection chooses a block: fewest (valid pages), cost-benefit, or tracked:N,
    /// the μ-Tree paper's bounded bookkeeping of N blocks
    #[arg(long, default_value = "fewest", value_parser = victims)]
    victims: Victims,
    /// How valid pages are tracked: marked (a bit for each page) or searched (a count for each
    /// block, and reads to find its pages)
    #[arg(long, default_value = "marked", value_parser = validity)]
    validity: Validity,
    /// Blocks from one checkpoint to the next, 1 to 12 [default: no checkpoints]
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=12))]
    checkpoints: Option<u32>,
}

impl Settings {
    /// Returns `options` with these settings.
    pub const fn of(&self, options: Options) -> Options {
        let Self { read_cache, write_cache, write_buffer, victims, validity, checkpoints } = *self;
        Options { read_cache, write_cache, write_buffer, victims, validity, checkpoints, ..options }
    }
}
