//! Requests to objects: rows of sectors that are written again and again.
//!
//! What an object is follows from its number alone, so that none is kept. Low numbers are written
//! more often. Objects lie side by side in areas, which are scattered over the space.

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::scattered;

/// Sizes in sectors, each with its share in a thousand. Shares add up to 1,000.
pub type Sizes = &'static [(u64, u64)];

/// How objects lie, and how they are written and read.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// How many objects there are.
    pub objects: u64,
    /// Objects of an area, side by side.
    pub per_area: u64,
    /// Sectors from one object of an area to the next, at least the largest size.
    pub pitch: u64,
    /// The part of the space, in a thousand, that holds `inside` of a thousand areas.
    pub window: u64,
    /// Areas that lie in the window, in a thousand. The others lie anywhere.
    pub inside: u64,
    /// How uneven writes are: 1 for all objects alike, more for more to the low numbers.
    pub skew: f64,
    /// Sizes of objects.
    pub sizes: Sizes,
    /// Objects that begin at a multiple of the power of two below their size, in a thousand.
    pub natural: u64,
    /// Objects that begin at a multiple of 8 sectors, in a thousand. The others begin anywhere.
    pub paged: u64,
    /// Writes of a part of an object, in a thousand.
    pub partial: u64,
    /// Parts begin and end at multiples of this many sectors from the object's start.
    pub grain: u64,
    /// Sizes of reads.
    pub reads: Sizes,
    /// Reads of an object, in a thousand. The others read anywhere.
    pub found: u64,
}

/// The requests to the objects of a shape.
pub struct Objects {
    shape: &'static Shape,
    sectors: u64,
    salt: u64,
    random: ChaCha8Rng,
}

/// An object: its first sector and its sectors.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Object {
    start: u64,
    length: u64,
}

/// The golden ratio's fraction of 2^64: its multiples are spread evenly.
const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;

impl Objects {
    /// Objects in a space of `sectors` sectors.
    pub fn new(shape: &'static Shape, sectors: u64, seed: u64) -> Self {
        let random = ChaCha8Rng::seed_from_u64(seed);
        Self { shape, sectors, salt: scattered(seed), random }
    }

    /// A write: the whole of an object, or a part.
    pub fn write(&mut self) -> (u64, u64) {
        let object = self.object();
        let parts = object.length / self.shape.grain;
        if parts < 2 || self.random.random_range(0..1000) >= self.shape.partial {
            return (object.start, object.length);
        }
        let first = self.random.random_range(0..parts);
        let count = self.random.random_range(1..=(parts - first).min(parts - 1));
        (object.start + first * self.shape.grain, count * self.shape.grain)
    }

    /// A read: from the start of an object, or anywhere.
    pub fn read(&mut self) -> (u64, u64) {
        let length = size(self.shape.reads, self.random.random());
        let start = if self.random.random_range(0..1000) < self.shape.found {
            self.object().start
        } else {
            self.random.random_range(0..self.sectors / 8) * 8
        };
        (start.min(self.sectors - length), length)
    }

    /// An object, low numbers more often.
    fn object(&mut self) -> Object {
        let share = self.random.random::<f64>().powf(self.shape.skew);
        let number = (share * self.shape.objects as f64) as u64;
        self.at(number.min(self.shape.objects - 1))
    }

    /// The object of this number.
    fn at(&self, number: u64) -> Object {
        let Shape { per_area, pitch, window, inside, .. } = *self.shape;
        let area = scattered(self.salt ^ (number / per_area));
        let length = size(self.shape.sizes, number.wrapping_mul(GOLDEN));
        let room = if area % 1000 < inside { self.sectors / 1000 * window } else { self.sectors };
        // An area ends before the space does.
        let places = (room / pitch).saturating_sub(per_area).max(1);
        let area = scattered(area) % places * pitch;
        let mixed = scattered(self.salt.wrapping_add(number << 20));
        let slack = pitch - length;
        let step = match mixed % 1000 {
            share if share < self.shape.natural => 1 << length.ilog2(),
            share if share < self.shape.natural + self.shape.paged => 8,
            _ => 1,
        };
        let shift = scattered(mixed) % (slack / step + 1) * step;
        Object { start: area + number % per_area * pitch + shift, length }
    }
}

/// The size at this place of the distribution, 0 for the first and 2^64 - 1 for the last.
fn size(sizes: Sizes, place: u64) -> u64 {
    let mut share = ((u128::from(place) * 1000) >> 64) as u64;
    for &(size, of) in sizes {
        if share < of {
            return size;
        }
        share -= of;
    }
    1
}

#[cfg(test)]
mod tests {
    use super::super::RECIPES;
    use super::*;

    #[test]
    fn shapes_are_possible_and_objects_stay_in_their_space() {
        for recipe in RECIPES {
            let Some(shape) = &recipe.shape else { continue };
            for sizes in [shape.sizes, shape.reads] {
                assert_eq!(sizes.iter().map(|&(_, share)| share).sum::<u64>(), 1000);
            }
            assert!(shape.sizes.iter().all(|&(size, _)| size <= shape.pitch), "{}", recipe.key);
            let sectors = recipe.space_gib.0 << 21;
            let objects = Objects::new(shape, sectors, 1);
            for number in (0..shape.objects).step_by(97).chain([shape.objects - 1]) {
                let Object { start, length } = objects.at(number);
                assert!(start + length <= sectors, "{} {number}", recipe.key);
                assert_eq!(objects.at(number), Object { start, length });
            }
        }
    }
}
