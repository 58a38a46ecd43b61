//! Block traces on address mappings: what a workload is, and what each mapping costs on it.
//!
//! Mappings run alone, without a chip (`run`): physical units are given out in write order, as in
//! the paper by Suh, Moon, Efrat, Kim and Lee, and nothing is collected. Or they run in an FTL on a
//! simulated chip (`on_chip`). Figures are of the trace and of the mappings in it, except times,
//! which are of this machine.

mod actions;
pub(crate) mod clock;
mod footprint;
mod host;
mod latency;
mod on_chip;
mod place;
mod run;
mod stats;
mod tally;
mod unit;

pub use actions::Action;
pub(crate) use actions::Actions;
pub use clock::nanoseconds;
pub use host::DeviceWork;
pub use latency::Latency;
pub use nandina_ftl::mapping::MAPPINGS;
pub use nandina_ftl::mapping::registry::Entry;
pub use on_chip::{
    DeviceReport, DeviceSetup, MappingRow, mappings_on_chip, readings_on_chip, replay_on_chip,
};
pub use run::{LeftOut, MappingCost, Report, Setup, readings, replay};
pub use stats::{AddressRow, Content, READINGS, Side, SizeRow, Stats};
pub(crate) use tally::{Tally, content};
pub use unit::Unit;
pub(crate) use unit::canonical;

/// The paper whose sections the list of mappings names.
pub const PAPER: &str = "Suh, Moon, Efrat, Kim, Lee: Memory efficient and scalable address mapping \
                         for flash storage devices, 2014";
