//! What an episode of a swarm knows, and the ends of its sessions.
//!
//! What happens in an episode is in `swarm.rs`, and what happens in one session in `session.rs`.

use nandina::{Index, OpenError, Options, System, ram_needed};
use nandina_sim::ChipError;
use rand::Rng;
use rand_chacha::ChaCha8Rng;

use super::device::{Begun, Ground};
use super::oracle::{Model, Pending};
use super::settings::Settings;
use super::variants::{changed, with_ram_for_nodes};
use super::worn::is_worn_out;
use crate::layer::{Bus, Room};

/// Why a session ended.
pub(super) enum End {
    /// Power failed.
    Cut,
    Done,
    /// The chip is to be formatted over the index.
    Format,
}

/// Opens the index on what a session began with.
pub(super) fn open<'l, S: System>(
    begun: &'l mut Result<Begun<'_>, ChipError>,
    options: &Options,
    ram: &'l mut [u8],
    is_refused: &mut bool,
) -> Result<Index<'l, &'l mut dyn Bus, S>, OpenError<ChipError>> {
    let opened = match begun {
        Ok(begun) => Index::open(begun.bus(), options, ram),
        Err(error) => Err(OpenError::Device(error.clone())),
    };
    *is_refused = matches!(opened, Err(OpenError::Device(ChipError::Layer(_))));
    opened
}

/// An episode of a swarm.
pub(super) struct Life<D> {
    pub settings: Settings,
    pub ground: D,
    pub room: Room,
    pub ram: Vec<u8>,
    pub model: Model,
    /// Changes that may not be durable yet.
    pub pending: Pending,
    pub random: ChaCha8Rng,
    pub version: u32,
    pub operations: u64,
    /// Weak pages that the index refreshed.
    pub refreshed: u64,
    /// Mounts after a cut that began with a checkpoint.
    pub from_checkpoints: u64,
    /// Chip operations of the last mount.
    pub mounting: u64,
    /// Whether a format was begun and did not end.
    ///
    /// Then the chip holds the index of the model, an empty one, or none.
    pub formatting: bool,
    /// Whether an FTL below the index refused the last opening.
    pub is_refused: bool,
}

impl<D: Ground> Life<D> {
    /// Whether more blocks are lost than the chip promises.
    pub fn is_worn_out(&self) -> bool {
        is_worn_out(self.ground.chip())
    }

    /// Whether the index can no longer be opened.
    ///
    /// The FTL of a worn-out chip refuses what a mount of the index writes.
    pub fn is_shut(&self) -> bool {
        self.is_refused && self.is_worn_out()
    }

    /// The options of the next opening, and RAM for them.
    pub fn choose_options<S: System>(&mut self) -> Options {
        if self.settings.changed {
            let before = Options {
                write_cache: [0, 0, 1, 3, 20][self.random.random_range(0..5)],
                write_buffer: self.random.random_range(0..=2),
                ..self.settings.options
            };
            self.settings.options = changed::<S>(&before, &self.ground, &mut self.random);
        }
        let mut options = self.settings.options;
        if self.settings.changed {
            options = with_ram_for_nodes(options);
        }
        self.take_ram::<S>(&options);
        options
    }

    /// Takes RAM for an opening with these options.
    pub fn take_ram<S: System>(&mut self, options: &Options) {
        self.ram = vec![0xA5; ram_needed::<S>(&self.ground.geometry(), options)];
    }
}
