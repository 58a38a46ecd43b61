//! No write buffer: what `batch.rs` beside this has, where the feature `write-buffer` is off. Nothing ever waits, and
//! all that is known of that when a program is compiled takes neither code nor RAM.

use core::marker::PhantomData;

use super::Options;

/// Changes that wait: none.
#[derive(Default)]
pub struct Batch<'b>(PhantomData<&'b mut [u8]>);

/// Whether this library has a write buffer.
pub const IS_BUILT: bool = false;

pub const fn ram_needed(_page_bytes: usize, _pages: usize) -> usize {
    0
}

pub const fn waiting_max(_page_bytes: usize, _options: &Options) -> usize {
    0
}

impl<'b> Batch<'b> {
    pub const fn new(_bytes: &'b mut [u8], _options: &Options) -> Self {
        Self(PhantomData)
    }

    pub const fn is_used(&self) -> bool {
        false
    }

    pub const fn len(&self) -> usize {
        0
    }

    pub const fn capacity(&self) -> usize {
        0
    }

    pub const fn takes(&self, _key: &[u8]) -> bool {
        false
    }

    pub const fn is_due(&self) -> bool {
        false
    }

    pub const fn tick(&mut self) -> bool {
        false
    }

    pub const fn key(&self, _at: usize) -> &[u8] {
        &[]
    }

    pub const fn puts_at(&self, _at: usize) -> bool {
        false
    }

    pub const fn value(&self, _at: usize) -> Option<&[u8]> {
        None
    }

    pub const fn search(&self, _key: &[u8]) -> Result<usize, usize> {
        Err(0)
    }

    pub const fn below(&self, _key: &[u8]) -> usize {
        0
    }

    pub const fn take(&mut self, _key: &[u8], _value: Option<&[u8]>) {}

    pub const fn drop_between(&mut self, _from: usize, _to: usize) {}

    pub const fn forget(&mut self, _key: &[u8]) -> Option<bool> {
        None
    }

    pub const fn puts_with(&self, _key: &[u8]) -> u32 {
        1
    }

    pub const fn granted(&self) -> u32 {
        0
    }

    pub const fn grant(&mut self, _puts: u32) {}

    pub const fn root_records(&self) -> u32 {
        u32::MAX
    }

    pub const fn set_root_records(&mut self, _records: u32) {}
}
