//! What requests mean to a mapping: extents in units, and physical units in write order.

use nandina_ftl::mapping::{Extent, Mapping, Space};

use super::unit::Unit;
use crate::LabError;
use crate::block_trace::{Account, BlockTrace, Kind, Layout, Request};
use crate::trace::ReadProgress;

/// What a request means to a mapping.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Action {
    /// Look the extent up.
    Read(Extent),
    /// Map the extent to the physical units from this one on.
    Write(Extent, u32),
    /// Remove the extent.
    Trim(Extent),
}

impl Action {
    /// Changes `map` as the action says, if it changes anything.
    ///
    /// A refusal is passed over: `map` has room for everything, and counts are made elsewhere.
    pub fn keep_in(self, map: &mut dyn Mapping) {
        let _ = match self {
            Self::Read(_) => Ok(()),
            Self::Write(extent, physical) => map.update(extent, physical, &mut |_| {}),
            Self::Trim(extent) => map.remove(extent, &mut |_| {}),
        };
    }
}

/// Physical units that there are at least: numbers of 28 bits.
const PHYSICAL_LEAST: u64 = (1 << 28) - 1;

/// Why a request means nothing to a mapping although it has bytes.
const BEHIND: &str = "behind the space";
const NO_WHOLE_UNIT: &str = "trims of no whole unit";

/// Turns the requests of a trace into actions.
pub struct Actions {
    layout: Layout,
    unit: Unit,
    space: Space,
    /// The next physical unit.
    next: u32,
}

impl Actions {
    /// Makes actions for a space of `space_bytes`; `None` for as much as the trace names.
    ///
    /// The physical space is twice the logical one, at least 2^28 - 1 units. Refuses a space whose
    /// units have no numbers of 32 bits.
    pub fn new(layout: Layout, unit: Unit, space_bytes: Option<u64>) -> Result<Self, LabError> {
        let bytes = space_bytes.unwrap_or(layout.bytes());
        let logical = unit.count(bytes).max(1);
        let most = u64::from(u32::MAX) - 1;
        if logical > most {
            return Err(LabError(format!(
                "{logical} units of {} bytes: a mapping holds {most}: choose a larger --unit, or one --volume",
                unit.bytes()
            )));
        }
        let physical = (2 * logical).clamp(PHYSICAL_LEAST, most);
        let space = Space { logical: logical as u32, physical: physical as u32 };
        Ok(Self { layout, unit, space, next: 0 })
    }

    /// The logical and the physical space, in units.
    pub fn space(&self) -> Space {
        self.space
    }

    /// The action of a request: none for a flush. The error is why the request is not used.
    ///
    /// A write takes the next physical units in a row; where the space ends, it begins again.
    pub fn of(&mut self, request: &Request) -> Result<Option<Action>, &'static str> {
        if request.kind == Kind::Flush {
            return Ok(None);
        }
        let start = self.layout.place(request);
        let covering = self.unit.covering(start, request.bytes);
        let covering = covering.filter(|extent| self.space.admit(*extent).is_ok()).ok_or(BEHIND)?;
        Ok(Some(match request.kind {
            Kind::Trim => {
                Action::Trim(self.unit.inside(start, request.bytes).ok_or(NO_WHOLE_UNIT)?)
            }
            Kind::Write => {
                if self.space.physical - self.next < covering.length {
                    self.next = 0;
                }
                let physical = self.next;
                self.next += covering.length;
                Action::Write(covering, physical)
            }
            Kind::Read | Kind::Flush => Action::Read(covering),
        }))
    }
}

/// Reads a trace once, for its counts and the layout of its volumes.
pub fn survey(
    trace: &BlockTrace,
    progress: ReadProgress<'_>,
) -> Result<(Account, Layout), LabError> {
    let account = trace.read(progress, &mut |_| {})?;
    let layout = Layout::of(&account);
    Ok((account, layout))
}
