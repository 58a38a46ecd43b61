//! Records and pages as bytes: nothing here reads a chip, and nothing here knows how a tree changes.

pub mod appended;
pub(crate) mod checksum;
mod gaps;
mod page;
mod sorted;
mod tags;

pub use gaps::Gaps;
pub use page::{HEADER_BYTES, Medium, PageFault, PageHeader, PageLayout, VERSION};
pub(crate) use page::{SESSION_END, SESSION_START};
pub use sorted::{Node, NodeMut, Shape};

/// The pointer of an inner node to a child that stands in the same page.
///
/// A page is sealed before its own number is known, and a copied page keeps its meaning.
pub const SAME_PAGE: u32 = u32::MAX;

/// Bytes of a pointer to a child.
pub const POINTER_BYTES: usize = 4;
