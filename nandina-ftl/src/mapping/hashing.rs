//! One hash function for all tables, so that runs are the same everywhere.
//!
//! It resists no adversary: keys are places in a space, not input of strangers.

/// A number each of whose bits depends on all bits of `key`.
pub(super) fn hash(key: u32) -> u32 {
    let mixed = (key ^ (key >> 16)).wrapping_mul(0x7FEB_352D);
    let mixed = (mixed ^ (mixed >> 15)).wrapping_mul(0x846C_A68B);
    mixed ^ (mixed >> 16)
}

/// The hash function as the tables of libraries take it.
#[cfg(feature = "std")]
#[derive(Default)]
pub(super) struct Mixed(u64);

/// Makes [`Mixed`] for a table.
#[cfg(feature = "std")]
pub(super) type Hashing = core::hash::BuildHasherDefault<Mixed>;

#[cfg(feature = "std")]
impl core::hash::Hasher for Mixed {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.write_u32(u32::from(byte)));
    }

    fn write_u32(&mut self, key: u32) {
        let low = hash(key ^ self.0 as u32);
        self.0 = u64::from(hash(low ^ 0x9E37_79B9)) << 32 | u64::from(low);
    }

    fn write_u64(&mut self, key: u64) {
        self.write_u32(key as u32);
        self.write_u32((key >> 32) as u32);
    }
}
