//! Numbers that are the same on every machine, for long streams of changes.
//!
//! Tests and examples share it: what they pin does not depend on a library's generator.

/// A linear congruential generator. Its high bits are used.
pub struct Numbers(pub u64);

impl Numbers {
    /// The next number below `most`.
    pub fn below(&mut self, most: u32) -> u32 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (((self.0 >> 33) * u64::from(most)) >> 31) as u32
    }
}
