//! The header of a page, with the settings of its index.
//!
//! Nothing is written here.

use core::ops::Deref;

use nandina::node::{Medium, PageFault, PageHeader, PageLayout};

/// What a page says of itself.
#[derive(Clone, Copy)]
pub struct Header {
    page: PageHeader,
    /// The settings of its index.
    pub medium: Medium,
}

impl Header {
    /// Checks a page that was read from the medium, and returns its header.
    pub fn of(layout: &PageLayout, frame: &[u8]) -> Result<Self, PageFault> {
        layout.open(frame).map(|page| Self { page, medium: layout.medium(frame) })
    }
}

impl Deref for Header {
    type Target = PageHeader;

    fn deref(&self) -> &PageHeader {
        &self.page
    }
}
