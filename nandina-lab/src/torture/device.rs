//! The device between an index and the simulated chip under torture.
//!
//! It is the chip itself, an FTL on it, or a wrapper that is broken on purpose to show that the
//! torture detects it.

use nandina::flash::{Capabilities, Flash, Geometry, Profile};
use nandina::{GcPolicy, LivenessTracking, Options, System};
use nandina_ftl::LogicalPages;
use nandina_ftl::ftl::DISK;
use nandina_sim::{Chip, ChipError};

use crate::LabError;
use crate::layer::{Bus, Layer, OVER, OnFtl, Room, Size};

/// Returns `profile` with the capabilities that system `S` needs added.
pub fn suited<S: System>(mut profile: Profile) -> Profile {
    let needs = S::DESCRIPTION.needs;
    let capabilities = &mut profile.capabilities;
    capabilities.rewrite |= needs.rewrite;
    capabilities.atomic_rewrite |= needs.atomic_rewrite;
    capabilities.overwrite |= needs.overwrite;
    capabilities.in_order &= !needs.any_order;
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
pub fn fitted<S: System>(options: Options) -> Options {
    let system = S::DESCRIPTION;
    let paths = system.root_commits();
    // Pages that are counted or staged one by one, or replaced in place, are not searched for.
    let counted = matches!(options.victims, GcPolicy::Tracked(_));
    let staged = options.write_cache > 0 || options.checkpoints.is_some() || counted;
    let checkpoints = options.checkpoints.filter(|_| system.checkpoints);
    let searched = system.collects() && !(paths && staged) && checkpoints.is_none();
    Options {
        page_buffers: options.page_buffers.map(|buffers| buffers.max(system.buffers_min)),
        write_cache: if system.has_write_cache() { options.write_cache } else { 0 },
        checkpoints,
        read_cache: if system.has_read_cache() { options.read_cache } else { 0 },
        write_buffer: if system.has_write_buffer() { options.write_buffer } else { 0 },
        validity: if searched { options.validity } else { LivenessTracking::Marked },
        // Checkpoints are for blocks whose erases are counted.
        wear: options.wear.filter(|_| checkpoints.is_none()),
        victims: match options.victims {
            GcPolicy::Tracked(_) if !paths => GcPolicy::Fewest,
            victims => victims,
        },
        ..options
    }
}

impl<D: Device> Bus for D {
    fn simulated(&self) -> &Chip {
        self.chip()
    }

    fn opening(&self) {
        Device::opening(self);
    }

    fn opened(&self) {
        Device::opened(self);
    }
}

/// Log blocks of FAST under torture, which is to merge often; and of BAST, which merges a log block
/// in part only if another logical block needs it.
const LOG_BLOCKS: [u32; 2] = [3, 1];

/// The key of the system and the FTL in a name such as `btree over ftl:fast`.
///
/// Chips are small: there are no more spare pages than the FTL needs, and few log blocks unless the
/// name says how many.
pub fn parts_of(name: &str) -> Result<(&str, Option<Layer>), LabError> {
    let Some((system, layer)) = name.split_once(OVER) else { return Ok((name, None)) };
    let layer = Layer::named(layer)?.with_over_provisioning(0);
    let layer = match layer.log_blocks() {
        Some(_) if !layer.names_log_blocks() => {
            let [of_fast, of_bast] = LOG_BLOCKS;
            layer.with_log_blocks(of_bast).or_else(|_| layer.with_log_blocks(of_fast))?
        }
        _ => layer,
    };
    Ok((system, Some(layer)))
}

/// What an index under torture is opened on: a device, or an FTL on a chip.
pub trait Ground: Clone + Send + Sync {
    /// The chip, for inspection.
    fn chip(&self) -> &Chip;

    /// The chip, for changing its state.
    fn chip_mut(&mut self) -> &mut Chip;

    /// The geometry that an index sees.
    fn geometry(&self) -> Geometry;

    /// The FTL, if there is one.
    fn layer(&self) -> Option<Layer> {
        None
    }

    /// The capabilities that an index sees.
    fn capabilities_seen(&self) -> Capabilities {
        self.layer().map_or(self.chip().profile().capabilities, |_| DISK)
    }

    /// Begins a session: opens what lies above the chip, or formats the chip for it.
    ///
    /// `room` is its memory, which a cut empties.
    fn begin<'d>(&'d mut self, room: &'d mut Room, formats: bool) -> Result<Begun<'d>, ChipError>;

    /// Restores power; the content of RAM is lost.
    fn restore_power(&mut self);
}

/// The device of a session.
pub enum Begun<'d> {
    /// A device that needs no opening.
    Device(&'d mut (dyn Bus + 'd)),
    /// An FTL that was opened.
    Ftl(Box<OnFtl<'d>>),
}

impl Begun<'_> {
    /// The device.
    pub fn bus(&mut self) -> &mut dyn Bus {
        match self {
            Self::Device(bus) => *bus,
            Self::Ftl(disk) => &mut **disk,
        }
    }

    /// Returns what is wrong with the FTL, if there is one.
    pub fn check(&mut self) -> Result<(), String> {
        let Self::Ftl(disk) = self else { return Ok(()) };
        let unexplained = disk.inspect().statistics().unexplained_blocks;
        if unexplained > 0 {
            return Err(format!("FTL: no cut explains the damage in {unexplained} blocks"));
        }
        OnFtl::ftl(disk).check()
    }
}

impl<D: Device> Ground for D {
    fn chip(&self) -> &Chip {
        Device::chip(self)
    }

    fn chip_mut(&mut self) -> &mut Chip {
        Device::chip_mut(self)
    }

    fn geometry(&self) -> Geometry {
        Flash::geometry(self)
    }

    fn begin<'d>(&'d mut self, _: &'d mut Room, _: bool) -> Result<Begun<'d>, ChipError> {
        Ok(Begun::Device(self))
    }

    fn restore_power(&mut self) {
        Device::restore_power(self);
    }
}

/// A chip with an FTL on it, which each session opens.
#[derive(Clone)]
pub struct Layered {
    chip: Chip,
    layer: Layer,
    size: Size,
}

impl Layered {
    /// An FTL on `chip`, with so many logical pages, for which the chip has room.
    pub fn new(chip: Chip, layer: Layer, logical_pages: u32) -> Self {
        let size = layer.sized(chip.profile(), logical_pages);
        Self { chip, layer, size }
    }
}

impl Ground for Layered {
    fn chip(&self) -> &Chip {
        &self.chip
    }

    fn chip_mut(&mut self) -> &mut Chip {
        &mut self.chip
    }

    fn geometry(&self) -> Geometry {
        self.size.profile.geometry
    }

    fn layer(&self) -> Option<Layer> {
        Some(self.layer)
    }

    fn begin<'d>(&'d mut self, room: &'d mut Room, formats: bool) -> Result<Begun<'d>, ChipError> {
        let disk = self.layer.open(&self.size, &mut self.chip, room, formats)?;
        Ok(Begun::Ftl(Box::new(disk)))
    }

    fn restore_power(&mut self) {
        self.chip.restore_power();
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
