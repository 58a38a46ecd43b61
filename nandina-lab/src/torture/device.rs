//! The device between an index and the simulated chip under torture.
//!
//! It is the chip itself, or a wrapper that is broken on purpose to show that the torture detects
//! it.

use nandina::flash::{Flash, Profile};
use nandina::store::Placement;
use nandina::{Options, Validity, Victims};
use nandina_sim::{Chip, ChipError};

/// Returns `profile` with the capabilities that system `S` needs added.
pub fn suited<S: Placement>(mut profile: Profile) -> Profile {
    let needs = S::DESCRIPTION.needs;
    let capabilities = &mut profile.capabilities;
    capabilities.rewrite |= needs.rewrite;
    capabilities.overwrite |= needs.overwrite;
    if needs.no_bad_blocks {
        capabilities.bad_blocks_per_mille = 0;
    }
    if capabilities.programs_per_page.is_some_and(|allowed| allowed < needs.programs_per_page) {
        capabilities.programs_per_page = Some(needs.programs_per_page);
    }
    profile
}

/// Returns `options` adapted to system `S`.
///
/// They lack what `S` does not have, and get as many page buffers as it needs.
pub fn fitted<S: Placement>(options: Options) -> Options {
    let system = S::DESCRIPTION;
    let paths = system.writes_paths;
    // Pages that are counted or staged one by one, or replaced in place, are not searched for.
    let counted = matches!(options.victims, Victims::Tracked(_));
    let staged = options.write_cache > 0 || options.checkpoints.is_some() || counted;
    let checkpoints = options.checkpoints.filter(|_| system.checkpoints);
    let searched = !(system.in_place || (paths && staged) || checkpoints.is_some());
    Options {
        page_buffers: options.page_buffers.map(|buffers| buffers.max(system.buffers_min)),
        write_cache: if paths { options.write_cache } else { 0 },
        checkpoints,
        validity: if searched { options.validity } else { Validity::Marked },
        // Checkpoints are for blocks whose erases are counted.
        wear: options.wear.filter(|_| checkpoints.is_none()),
        victims: match options.victims {
            Victims::Tracked(_) if !paths => Victims::Fewest,
            victims => victims,
        },
        ..options
    }
}

/// Any device around a simulated chip, as one type.
///
/// An index on `&mut dyn Bus` is compiled once for each system, not once more for each device.
pub trait Bus: Flash<Error = ChipError> {
    /// The chip behind it, for inspection.
    fn simulated(&self) -> &Chip;
}

impl<D: Device> Bus for D {
    fn simulated(&self) -> &Chip {
        self.chip()
    }
}

/// A device with a simulated chip in it.
pub trait Device: Flash<Error = ChipError> + Clone + Send + Sync {
    /// The chip, for inspection.
    fn chip(&self) -> &Chip;

    /// The chip, for changing its state.
    fn chip_mut(&mut self) -> &mut Chip;

    /// Called before an index is opened or formatted.
    fn opening(&self) {}

    /// Called after the opening or format has returned.
    fn opened(&self) {}

    /// Restores power; the content of RAM is lost.
    fn restore_power(&mut self) {
        self.chip_mut().restore_power();
    }
}

impl Device for Chip {
    fn chip(&self) -> &Chip {
        self
    }

    fn chip_mut(&mut self) -> &mut Chip {
        self
    }
}
