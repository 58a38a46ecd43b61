//! The hybrid FTLs on such a chip.

use nandina::flash::Profile;
use nandina_ftl::hybrid::{Hybrid, Policy, logical_pages_max, ram_needed};
use nandina_lab::torn::Torn;

use super::{Start, Used, live_everywhere};

type Device<'a, P> = Hybrid<'a, &'a mut Torn, P>;

impl<P: Policy> Used for Device<'_, P> {
    fn chip(&self) -> &Torn {
        self.flash()
    }
}

struct Kind<P> {
    policy: P,
    pages: u32,
    ram: Vec<u8>,
}

impl<P: Policy + Copy> Start for Kind<P> {
    fn logical_pages(&self) -> u32 {
        self.pages
    }

    fn with(&mut self, chip: &mut Torn, is_new: bool, work: &mut dyn FnMut(&mut dyn Used)) {
        let start = if is_new { Hybrid::format } else { Hybrid::open };
        work(&mut start(chip, self.policy, self.pages, &mut self.ram).unwrap());
    }
}

/// Tears a write at many places, before few and many changes.
pub fn live<P: Policy + Copy>(
    name: &str,
    policy: P,
    profile: &Profile,
    befores: impl IntoIterator<Item = u32>,
) {
    let Profile { geometry, capabilities, .. } = profile;
    let pages = logical_pages_max(geometry, capabilities, &policy) * 2 / 3;
    let ram = vec![0; ram_needed(geometry, capabilities, &policy, pages)];
    live_everywhere(name, &mut Kind { policy, pages, ram }, profile, befores);
}
