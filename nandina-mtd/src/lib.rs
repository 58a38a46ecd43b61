//! Linux MTD devices, `/dev/mtdN`, as chips that carry a Nandina index.
//!
//! [`Mtd`] reads the geometry from the kernel, moves pages with their spare area, erases blocks,
//! and uses the kernel's bad-block marks. It keeps only the table of bad blocks in RAM, and never
//! touches another device. Only Linux has such devices; elsewhere this crate is empty.
//!
//! ```no_run
//! use nandina::{Index, Options, ram_needed, store::Mu};
//! use nandina::flash::Flash;
//! use nandina_mtd::Mtd;
//!
//! let mtd = Mtd::open("/dev/mtd0")?;
//! let options = Options::new(4, 8);
//! let mut ram = vec![0; ram_needed::<Mu>(&mtd.geometry(), &options)];
//! let mut index = Index::<_, Mu>::format(mtd, &options, &mut ram)?;
//! index.insert(&7u32.to_be_bytes(), &[1; 8])?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![cfg(target_os = "linux")]

mod device;
mod error;
mod kernel;

pub use device::Mtd;
pub use error::MtdError;
