//! Records and pages as bytes.
//!
//! This module reads no chip and does not know how a tree changes.

pub mod appended;
mod gaps;
mod header;
mod page;
mod scheme;
mod shape;
pub(crate) mod slot;
mod sorted;
mod tags;

pub use crate::checksum::Sum;
pub use gaps::Gaps;
pub(crate) use header::{CHECKPOINT, SESSION_END, SESSION_START};
pub use header::{HEADER_BYTES, Medium, ONE_BY_ONE, PageHeader, TAG_MAX, VERSION};
pub use page::{PageFault, PageLayout};
pub use scheme::{PageSharing, SplitCommit, UpdateScheme};
pub use shape::Shape;
pub use sorted::{Node, NodeMut};

/// The pointer of an inner node to a child in the same page.
///
/// A page is sealed before its own number is known, and a copied page keeps its meaning.
pub const SAME_PAGE: u32 = u32::MAX;

/// Bytes of a pointer to a child.
pub const POINTER_BYTES: usize = 4;
