//! The unit of a mapping: a sector or a page, and requests in units.

use nandina_ftl::mapping::Extent;

/// The size of a logical unit: a power of two of bytes, 512 to 1 MiB.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Unit(u64);

impl Unit {
    /// A sector of 512 bytes, the unit of the paper's figures.
    pub const SECTOR: Unit = Unit(512);
    /// A page of 4,096 bytes.
    pub const PAGE: Unit = Unit(4096);

    /// A unit of this many bytes; `None` unless it is a power of two, 512 to 1 MiB.
    pub fn of(bytes: u64) -> Option<Self> {
        (bytes.is_power_of_two() && (512..=1 << 20).contains(&bytes)).then_some(Self(bytes))
    }

    /// Its bytes.
    pub const fn bytes(self) -> u64 {
        self.0
    }

    /// Units that hold `bytes` bytes.
    pub const fn count(self, bytes: u64) -> u64 {
        bytes.div_ceil(self.0)
    }

    /// The units that have any of these bytes; `None` if a number exceeds 32 bits.
    pub fn covering(self, start: u64, bytes: u64) -> Option<Extent> {
        extent(start / self.0, (start + bytes).div_ceil(self.0))
    }

    /// The units that have only such bytes; `None` if there is none, or a number exceeds 32 bits.
    pub fn inside(self, start: u64, bytes: u64) -> Option<Extent> {
        extent(start.div_ceil(self.0), (start + bytes) / self.0)
    }
}

fn extent(start: u64, end: u64) -> Option<Extent> {
    let (start, end) = (u32::try_from(start).ok()?, u32::try_from(end).ok()?);
    (start < end).then(|| Extent::between(start, end))
}

/// Canonical extents that `extent` consists of (§2.2): aligned rows of a power of two of units.
///
/// `vet` has them only for spaces of up to 31 bits.
pub(crate) fn canonical(extent: Extent) -> u64 {
    let (mut start, end) = (u64::from(extent.start), u64::from(extent.end()));
    let mut count = 0;
    while start < end {
        let largest = 1 << (end - start).ilog2();
        start += if start == 0 { largest } else { largest.min(1 << start.trailing_zeros()) };
        count += 1;
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_covered_outwards_and_trimmed_inwards() {
        let page = Unit::PAGE;
        assert_eq!(page.covering(4095, 2), Some(Extent::new(0, 2)));
        assert_eq!(page.inside(4095, 2), None);
        assert_eq!(page.inside(4095, 4098), Some(Extent::new(1, 1)));
        assert_eq!(Unit::SECTOR.covering(512, 1), Some(Extent::new(1, 1)));
        assert_eq!(Unit::SECTOR.covering(u64::from(u32::MAX) * 512, 512), None);
        assert_eq!((Unit::of(1000), Unit::of(256), Unit::of(1 << 21)), (None, None, None));
    }

    #[test]
    fn an_extent_consists_of_few_canonical_ones() {
        for (start, length, count) in [(0, 8, 1), (8, 8, 1), (4, 8, 2), (1, 7, 3), (3, 1, 1)] {
            assert_eq!(canonical(Extent::new(start, length)), count, "{start} {length}");
        }
        // The longest extent that is aligned at neither end.
        assert_eq!(canonical(Extent::new(1, u32::MAX - 1)), 31 + 31);
    }
}
