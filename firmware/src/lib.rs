//! Shared by the images: the chip, the link to the host, the measuring, and the work.
//!
//! No system is named here: `build.rs` chooses one for each image.
#![no_std]

pub mod chip;
pub mod host;
pub mod measure;
pub mod records;
pub mod rules;
pub mod smoke;
pub mod work;

include!(concat!(env!("OUT_DIR"), "/system.rs"));

/// The board that the image is for.
pub const BOARD: &str = env!("NANDINA_BOARD");

/// The index that all images use.
pub type Index<'b, 'c> = nandina::Index<'b, &'b mut chip::Chip<'c>, System>;

/// The same before it is opened.
pub type Unopened<'b, 'c> = nandina::Unopened<'b, &'b mut chip::Chip<'c>, System>;
