//! What stands between an index and the simulated chip under torture: the chip itself, or a wrapper
//! that is broken on purpose so that the torture can be seen to catch it.

use nandina::flash::{Flash, Profile};
use nandina::place::Placement;
use nandina::{Options, Validity, Victims};
use nandina_sim::{Chip, ChipError};

/// `profile`, able to do what system `S` needs of a chip, whatever it could do before.
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

/// `options` without what system `S` lacks, and with as many page buffers as it needs.
pub fn fitted<S: Placement>(options: Options) -> Options {
    let system = S::DESCRIPTION;
    let paths = system.writes_paths;
    // What is counted or staged by page, or replaced in place, is not searched for.
    let counted = matches!(options.victims, Victims::Tracked(_));
    let staged = options.write_cache > 0 || options.checkpoints.is_some() || counted;
    let searched = !(system.in_place || (paths && staged));
    Options {
        page_buffers: options.page_buffers.map(|buffers| buffers.max(system.buffers_min)),
        write_cache: if paths { options.write_cache } else { 0 },
        checkpoints: options.checkpoints.filter(|_| paths),
        validity: if searched { options.validity } else { Validity::Marked },
        // Checkpoints are for blocks whose erases are counted.
        wear: options.wear.filter(|_| !paths || options.checkpoints.is_none()),
        victims: match options.victims {
            Victims::Tracked(_) if !paths => Victims::Fewest,
            victims => victims,
        },
        ..options
    }
}

/// Any device around a simulated chip, as one type: an index on `&mut dyn Bus` is compiled
/// once for each system, not once more for each device.
pub trait Bus: Flash<Error = ChipError> {
    /// The chip behind it, to look at.
    fn simulated(&self) -> &Chip;
}

impl<D: Device> Bus for D {
    fn simulated(&self) -> &Chip {
        self.chip()
    }
}

/// A device with a simulated chip in it.
pub trait Device: Flash<Error = ChipError> + Clone + Send + Sync {
    /// The chip, to look at.
    fn chip(&self) -> &Chip;

    /// The chip, to tamper with.
    fn chip_mut(&mut self) -> &mut Chip;

    /// An index is about to be opened or formatted.
    fn opening(&self) {}

    /// It was, and returned.
    fn opened(&self) {}

    /// Power comes back: what was in RAM is lost.
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
