//! Nandina: a durable sorted map on raw flash, in a few KB of RAM, without heap.
//!
//! Keys and values have fixed sizes, chosen when the medium is formatted. Keys order as bytes, and
//! [`key`] turns integers into such bytes. The *system* decides how a changed node reaches the
//! chip. It is a type parameter, one of those in [`store`]; [`store::SYSTEMS`] lists them all.
//!
//! ```
//! use nandina::store::Mu;
//! use nandina::{Index, Options, Removed, key, ram_needed};
//! use nandina_sim::{Chip, TINY};
//!
//! let mut chip = Chip::new(TINY); // or any driver that implements nandina::flash::Flash
//! let options = Options::new(4, 8);
//! let mut ram = [0u8; 4096];
//! assert!(ram_needed::<Mu>(&TINY.geometry, &options) <= ram.len());
//!
//! let mut index = Index::<_, Mu>::format(&mut chip, &options, &mut ram).unwrap();
//! index.insert(&key::from_u32(7), b"seventh!").unwrap();
//! index.insert(&key::from_u32(9), b"ninth!!!").unwrap();
//! assert_eq!(index.get(&key::from_u32(7)).unwrap(), Some(&b"seventh!"[..]));
//!
//! let low = key::from_u32(8);
//! let mut range = index.range(&low..).unwrap();
//! assert_eq!(range.next().unwrap(), Some((&key::from_u32(9)[..], &b"ninth!!!"[..])));
//! assert_eq!(range.next().unwrap(), None);
//!
//! assert_eq!(index.remove(&key::from_u32(7)).unwrap(), Removed::Found);
//!
//! // Power may be cut at any instant: every change that returned `Ok` is still there.
//! let mut index = Index::<_, Mu>::open(&mut chip, &options, &mut ram).unwrap();
//! assert_eq!(index.len(), 1);
//! ```
#![no_std]
#![forbid(unsafe_code)]

#[doc(hidden)]
#[macro_use]
pub mod marks;

pub mod blocks;
mod bytes;
mod cache;
mod checksum;
pub mod engine;
mod error;
pub mod flash;
pub mod gc;
mod index;
pub mod key;
pub mod log;
pub mod node;
mod rosette;
mod rosette_nor;
pub mod space;
pub mod store;
mod tnc;
pub mod tree;

/// The stores under their earlier name.
#[doc(hidden)]
pub use store as place;

#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
struct Readme;

#[cfg(doctest)]
#[doc = include_str!("../../docs/GUIDE.md")]
struct Guide;

pub use blocks::{GcPolicy, LivenessTracking, WearPolicy};
pub use engine::{
    Batches, Change, Cost, Eviction, Folds, Inserted, NodeCounters, Options, OptionsFor, Plan,
    Removed, Statistics, System, Violation,
};
pub use error::{BadOption, Damage, Fault, OpenError, PairError, ReadError, WriteError};
pub use gc::Idle;
pub use gc::RelocationMode;
pub use index::{Index, KeyBounds, Pairs, Range, Records, Unopened, plan, ram_needed};
pub use tree::{identify, ram_to_identify};
