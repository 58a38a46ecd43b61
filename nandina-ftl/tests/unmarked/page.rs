//! The FTL with a page map on such a chip.

use nandina::flash::Profile;
use nandina_ftl::ftl::{Ftl, logical_pages_max, ram_needed, space_of};
use nandina_ftl::mapping::Page;
use nandina_lab::torn::Torn;

use super::{Start, Used, live_everywhere};

type Device<'a> = Ftl<'a, &'a mut Torn, Page<'a>>;

impl Used for Device<'_> {
    fn chip(&self) -> &Torn {
        self.flash()
    }
}

struct Kind {
    profile: Profile,
    pages: u32,
    ram: Vec<u8>,
    map: Vec<u8>,
}

impl Start for Kind {
    fn logical_pages(&self) -> u32 {
        self.pages
    }

    fn with(&mut self, chip: &mut Torn, is_new: bool, work: &mut dyn FnMut(&mut dyn Used)) {
        let space = space_of(&self.profile.geometry, &self.profile.capabilities, self.pages);
        let map = Page::new(space, &mut self.map).unwrap();
        let start = if is_new { Ftl::format } else { Ftl::open };
        work(&mut start(chip, map, self.pages, &mut self.ram).unwrap());
    }
}

/// Tears a write at many places, before few and many changes.
pub fn live(profile: Profile, befores: impl IntoIterator<Item = u32>) {
    let Profile { geometry, capabilities, .. } = profile;
    let pages = logical_pages_max(&geometry, &capabilities) * 2 / 3;
    let (ram, map) = (vec![0; ram_needed(&geometry)], vec![0; 4 * pages as usize]);
    live_everywhere("page", &mut Kind { profile, pages, ram, map }, &profile, befores);
}
