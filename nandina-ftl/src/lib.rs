//! A flash translation layer, and address mappings for it, each behind one trait.
//!
//! A flash translation layer (FTL) writes a logical page wherever the chip has room. A *mapping*
//! remembers where. [`ftl`] is the layer; it names no mapping. [`LogicalPages`] is what a host
//! needs of any such layer. A [`Stripe`] makes several chips one. [`mapping`] holds the mappings of
//! the paper by Suh, Moon, Efrat, Kim and Lee (*Memory efficient and scalable address mapping for
//! flash storage devices*), their opponents, and one of our own. No mapping knows chips, pages'
//! contents or garbage collection.
//!
//! ```
//! use nandina_ftl::mapping::{Extent, Mapping, Page, Space};
//!
//! let mut memory = [0u8; 400]; // 4 bytes a unit
//! let space = Space { logical: 100, physical: 1 << 20 };
//! let mut map = Page::new(space, &mut memory)?;
//! map.update(Extent::new(8, 4), 500, &mut |_| {})?;
//!
//! let mut superseded = Vec::new();
//! map.update(Extent::new(10, 6), 700, &mut |run| superseded.push((run.logical, run.physical)))?;
//! assert_eq!(superseded, [(10, 502)]);
//!
//! let mut found = Vec::new();
//! map.look_up(Extent::new(8, 10), &mut |piece| found.push((piece.length, piece.physical)))?;
//! assert_eq!(found, [(2, Some(500)), (6, Some(700)), (2, None)]);
//! # Ok::<(), nandina_ftl::mapping::Refusal>(())
//! ```
#![no_std]
#![forbid(unsafe_code)]

#[cfg(any(feature = "std", test))]
extern crate std;

pub mod ftl;
pub mod hybrid;
pub mod logged;
mod logical;
pub mod mapping;
#[doc(hidden)]
pub mod marks;
mod stripe;
pub mod transit;
mod write_cost;

pub use logical::{LogicalPages, Statistics};
pub use stripe::{BadStripe, Stripe, stripe_capabilities, stripe_geometry};
pub use write_cost::WriteCost;
