//! The mappings: from extents of logical units to physical ones (§2.1).
//!
//! A unit is a sector or a page; no mapping asks which. Each mapping is a file or a folder, and
//! knows none of the others. [`contract`] says what they have in common. The list of them is in
//! [`registry`].

mod compact;
pub mod contract;
pub mod demand;
pub mod emt;
mod extent;
mod hashing;
pub mod learned;
mod memory;
mod page;
mod page_2;
mod refusal;
pub mod registry;
pub mod vet;

pub use compact::Compact;
pub use contract::{Broken, Bytes, Mapping, Scheme, Work};
pub(crate) use extent::Joined;
pub use extent::{Extent, Piece, Run, Space};
pub use page::Page;
pub use page_2::Page2;
pub use refusal::Refusal;
pub use registry::MAPPINGS;
