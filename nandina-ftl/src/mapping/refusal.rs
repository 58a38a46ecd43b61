//! Why a mapping refuses a call.
//!
//! A mapping never fails half way: it refuses first.

use core::fmt;

/// Why a mapping refused a call. A refused call has changed nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The extent is empty, or it ends behind the logical space.
    Outside,
    /// The physical numbers end behind the physical space.
    Physical,
    /// The space is larger than this kind of mapping can hold.
    Space {
        /// The most logical units that it holds.
        logical_max: u32,
    },
    /// The memory does not suffice for the change, whatever else it is used for.
    Full {
        /// Bytes of memory in all with which this call is accepted.
        needed: usize,
    },
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::Outside => f.write_str("the extent is empty or ends behind the space"),
            Refusal::Physical => f.write_str("the physical units end behind their space"),
            Refusal::Space { logical_max } => {
                write!(f, "the mapping holds {logical_max} logical units at most")
            }
            Refusal::Full { needed } => write!(f, "the mapping needs {needed} bytes"),
        }
    }
}

impl core::error::Error for Refusal {}
