//! Synthetic block traces, fitted to the workloads of a paper whose traces are not at hand.
//!
//! The paper is that by Suh, Moon, Efrat, Kim and Lee. A made trace agrees with the columns of its
//! Table 1 and with what its other figures imply, and with nothing else: it is no recording, and
//! says so in its first line. Requests are made one by one and never held.

mod objects;
mod recipes;
mod spew;
mod write;

pub use recipes::{RECIPES, Recipe, by_key};
pub use write::{save, write};

use super::request::{Kind, Request, SECTOR};
use crate::LabError;
use objects::Objects;
use spew::Spew;

/// Bytes of a GiB: the paper's GB, since its page map takes 1 MB a GB with 4 bytes a page of 4 KB.
pub const GIB: u64 = 1 << 30;

/// What of a recipe is made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Choice {
    /// Seed of everything random.
    pub seed: u64,
    /// How many requests, the first ones of the whole trace; `None` for as many as the paper's.
    pub requests: Option<u64>,
    /// GiB of the space; `None` for the recipe's. Only `spew` has a choice.
    pub space_gib: Option<u64>,
}

/// Where requests of a kind begin and how long they are, in sectors.
enum Places {
    Objects(Objects),
    Spew(Spew),
}

/// How the file of a synthetic trace begins.
pub(super) const SYNTHETIC: &str = "# synthetic: ";

/// A synthetic trace: an iterator over its requests.
///
/// The same recipe, seed and space give the same requests, and fewer requests are the first ones of
/// more.
pub struct Synthetic {
    recipe: &'static Recipe,
    seed: u64,
    space_gib: u64,
    requests: u64,
    next: u64,
    places: Places,
}

impl Synthetic {
    /// Begins a trace. Refuses a space that the recipe does not have, and no requests.
    pub fn new(recipe: &'static Recipe, choice: Choice) -> Result<Self, LabError> {
        let (least, most) = recipe.space_gib;
        let space_gib = choice.space_gib.unwrap_or(least);
        if !(least..=most).contains(&space_gib) {
            return Err(LabError(match least == most {
                true => format!("{} has {least} GiB: leave --space-gib out", recipe.key),
                false => format!("{} has {least} to {most} GiB", recipe.key),
            }));
        }
        let requests = choice.requests.unwrap_or(recipe.requests());
        if requests == 0 {
            return Err(LabError("a trace has at least 1 request".into()));
        }
        let sectors = space_gib * (GIB / SECTOR);
        let places = match &recipe.shape {
            Some(shape) => Places::Objects(Objects::new(shape, sectors, choice.seed)),
            None => Places::Spew(Spew::new(space_gib, choice.seed)),
        };
        Ok(Self { recipe, seed: choice.seed, space_gib, requests, next: 0, places })
    }

    /// Its recipe.
    pub fn recipe(&self) -> &'static Recipe {
        self.recipe
    }

    /// Requests of the whole trace.
    pub fn requests(&self) -> u64 {
        self.requests
    }

    /// Bytes of the space. The first request ends at its end.
    pub fn space_bytes(&self) -> u64 {
        self.space_gib * GIB
    }

    /// One line that says what the trace is.
    pub fn title(&self) -> String {
        format!(
            "nandina trace make {}, seed {}, {} GiB, {} requests, fitted to Table 1 of Suh et al. 2014; \
             not a recording",
            self.recipe.key, self.seed, self.space_gib, self.requests
        )
    }

    /// Whether request `number` is a read: reads are spread evenly over the paper's requests.
    fn is_read(&self, number: u64) -> bool {
        let (reads, all) = (self.recipe.reads, self.recipe.requests());
        let before = |number: u64| u128::from(number) * u128::from(reads) / u128::from(all);
        before(number + 1) > before(number)
    }
}

impl Iterator for Synthetic {
    type Item = Request;

    fn next(&mut self) -> Option<Request> {
        let number = self.next;
        if number == self.requests {
            return None;
        }
        self.next += 1;
        let read = number > 0 && self.is_read(number);
        let (start, length) = match &mut self.places {
            Places::Objects(objects) if read => objects.read(),
            Places::Objects(objects) => objects.write(),
            Places::Spew(spew) => spew.write(),
        };
        // The first request names the end of the space, which traces do not state.
        let start = if number == 0 { self.space_bytes() / SECTOR - length } else { start };
        let kind = if read { Kind::Read } else { Kind::Write };
        let (start, bytes) = (start * SECTOR, length * SECTOR);
        Some(Request { kind, volume: 0, start, bytes, time_ns: None })
    }
}

/// A number of 64 bits that depends on all bits of `value`.
///
/// The finalizer of SplitMix64, so that places need no memory.
fn scattered(value: u64) -> u64 {
    let value = value.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let value = (value ^ (value >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    value ^ (value >> 31)
}
