//! The trees that the paper compares WPCB-tree with, as models that count.
//!
//! They keep keys in RAM and count what their rules read, write and erase; they store nothing and
//! survive no cut. The registry has no such systems: these exist for the paper's figures alone.
//! Their rules are those that the paper and its references state; what was chosen here is named
//! where it is.

mod buffered;
mod lazy;
mod live;
mod logged;
mod model;
mod numbered;
mod numbers;
mod paths;
mod store;
mod tree;
mod units;

use super::growth::{Grown, Growth};
use crate::LabError;
use buffered::{LEAF_PAGES, ibsf, mb, mb_one_page};
use lazy::{CHANGES, Lazy};
use logged::Logged;
use model::{Model, OnFlash};
use paths::Paths;
use store::OwnPages;
use tree::{Rule, Tree};
use units::{IndexUnits, UNITS};

/// A tree that is only counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Rival {
    /// The B-tree that merges and rotates nodes, over an FTL (section 5 of the paper).
    Merging,
    /// μ*-tree, over an FTL.
    MuStar,
    /// In-page logging: the last pages of each block hold log records.
    Ipl,
    /// The same with a log area that takes what the nodes leave.
    Dipl,
    /// The same over an FTL.
    DiplOverFtl,
    /// μ-tree, over an FTL: some 200,000 ascending keys at most.
    Mu,
    /// BFTL: index units of many nodes in each page.
    Bftl,
    /// IBSF: changes in RAM, of which the oldest go first.
    Ibsf,
    /// LA-tree: changes in flash above their nodes.
    La,
    /// The same, each change durable at once.
    LaDurable,
    /// MB-tree: changes in RAM, leaves of several pages.
    Mb,
    /// BFTL whose units have the room of one entry.
    BftlSmall,
    /// MB-tree with leaves of up to 128 pages, so that a header is as large as a node.
    MbLarge,
    /// MB-tree with leaves of one page, without a header.
    MbOnePage,
    /// BFTL with as many units in a page as the system has.
    BftlUnits,
    /// LA-tree with as many changes in a page as the system has.
    LaChanges,
    /// The tree of WPCB-tree alone, to count its divisions.
    WpcbTree,
}

/// Units of a page with room for 128 entries of 8 bytes, as BFTL on a device has them.
const DEVICE_UNITS: usize = 77;

/// Changes of a page with room for a node of 128 such entries, as LA-tree on a device has them.
const DEVICE_CHANGES: usize = 113;

impl Rival {
    /// Those of the paper's figures.
    pub const DRAWN: [Self; 5] =
        [Self::Merging, Self::MuStar, Self::Ipl, Self::Dipl, Self::DiplOverFtl];
    /// All of them.
    pub const ALL: [Self; 17] = [
        Self::Merging,
        Self::MuStar,
        Self::Ipl,
        Self::Dipl,
        Self::DiplOverFtl,
        Self::Mu,
        Self::Bftl,
        Self::Ibsf,
        Self::La,
        Self::LaDurable,
        Self::Mb,
        Self::BftlSmall,
        Self::MbLarge,
        Self::MbOnePage,
        Self::BftlUnits,
        Self::LaChanges,
        Self::WpcbTree,
    ];

    /// Its name in the column of systems.
    pub const fn key(self) -> &'static str {
        match self {
            Self::Merging => "btree-merging",
            Self::MuStar => "mu-star",
            Self::Ipl => "ipl",
            Self::Dipl => "dipl",
            Self::DiplOverFtl => "dipl-ftl",
            Self::Mu => "mu-shares",
            Self::Bftl => "bftl",
            Self::Ibsf => "ibsf",
            Self::La => "la",
            Self::LaDurable => "la-durable",
            Self::Mb => "mb",
            Self::BftlSmall => "bftl-small",
            Self::MbLarge => "mb-large",
            Self::MbOnePage => "mb-one-page",
            Self::BftlUnits => "bftl-77",
            Self::LaChanges => "la-113",
            Self::WpcbTree => "wpcb-tree",
        }
    }

    /// Its name as the paper writes it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Merging => "B-tree that merges",
            Self::MuStar => "μ*-tree",
            Self::Ipl => "IPL B-tree",
            Self::Dipl => "dIPL B-tree on raw flash",
            Self::DiplOverFtl => "dIPL B-tree",
            Self::Mu => "μ-tree",
            Self::Bftl => "BFTL",
            Self::Ibsf => "IBSF",
            Self::La => "LA-tree",
            Self::LaDurable => "LA-tree, each change durable",
            Self::Mb => "MB-tree",
            Self::BftlSmall => "BFTL, a unit as small as an entry",
            Self::MbLarge => "MB-tree, leaves of up to 128 pages",
            Self::MbOnePage => "MB-tree, leaves of one page",
            Self::BftlUnits => "BFTL, 77 units in a page",
            Self::LaChanges => "LA-tree, 113 changes in a page",
            Self::WpcbTree => "WPCB-tree, counted",
        }
    }

    /// Whether it writes blocks of raw flash, without an FTL.
    pub const fn is_raw(self) -> bool {
        matches!(self, Self::Ipl | Self::Dipl)
    }

    fn model(self, growth: &Growth) -> Box<dyn Model> {
        let block_pages = growth.block_pages;
        // Changes that RAM has room for, where a tree gathers them.
        let room = (growth.records as usize).div_ceil(1000);
        let tree = |merges| Tree::new(Rule::Nodes { merges });
        let bftl = |units| -> Box<dyn Model> {
            // A whole page at least: less would be written into one anyway.
            let store = IndexUnits::new(room.max(units), units);
            Box::new(OnFlash { tree: tree(true), store })
        };
        match self {
            Self::Merging => Box::new(OnFlash { tree: tree(true), store: OwnPages::default() }),
            Self::MuStar => {
                Box::new(OnFlash { tree: Tree::new(Rule::Paths), store: Paths::default() })
            }
            Self::Mu => {
                Box::new(OnFlash { tree: Tree::new(Rule::Shares), store: Paths::default() })
            }
            Self::Ipl => Box::new(OnFlash { tree: tree(false), store: Logged::fixed(block_pages) }),
            Self::Dipl => {
                Box::new(OnFlash { tree: tree(false), store: Logged::dynamic(block_pages) })
            }
            Self::DiplOverFtl => {
                Box::new(OnFlash { tree: tree(false), store: Logged::over_ftl(block_pages) })
            }
            Self::Bftl => bftl(UNITS),
            Self::BftlSmall => bftl(2 * UNITS),
            Self::BftlUnits => bftl(DEVICE_UNITS),
            Self::MbLarge => Box::new(mb(room, 128)),
            Self::MbOnePage => Box::new(mb_one_page(room)),
            Self::WpcbTree => {
                Box::new(OnFlash { tree: Tree::new(Rule::Ascending), store: OwnPages::default() })
            }
            Self::Ibsf => Box::new(ibsf(room)),
            Self::Mb => Box::new(mb(room, LEAF_PAGES)),
            Self::La => Box::new(Lazy::new(false, CHANGES)),
            Self::LaDurable => Box::new(Lazy::new(true, CHANGES)),
            Self::LaChanges => Box::new(Lazy::new(false, DEVICE_CHANGES)),
        }
    }
}

/// What the reports say of these figures.
pub const NOTE: &str = "btree-merging, mu-star, mu-shares (μ-tree), ipl, dipl, dipl-ftl, bftl, ibsf, mb and la are \
    counting models in RAM, not systems of the registry, which has a mu-star, too (see table2): they store \
    nothing and survive no cut. BFTL, LA-tree and MB-tree on a device are in on-device. ipl and \
    dipl write raw flash, a sector of a quarter of a page for each changed node; dipl-ftl has FAST below \
    it, as the others, and programs a page for each sector.";

/// Grows the rival named `growth.system`, if there is one.
pub fn grow(growth: &Growth, progress: &(dyn Fn(u64) + Sync)) -> Option<Result<Grown, LabError>> {
    let rival = Rival::ALL.into_iter().find(|rival| rival.key() == growth.system)?;
    Some(live::live(rival, growth, progress))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use rand::{Rng, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    use super::super::device::Events;
    use super::super::keys::Order;
    use super::model::Work;
    use super::*;

    fn grown(rival: Rival, records: u32, per_cent: u32) -> Grown {
        let growth = Growth {
            system: rival.key(),
            records,
            per_cent,
            order: Order::Mixed,
            then_removes: true,
            looks_up: false,
            block_pages: 64,
            seed: 1,
        };
        grow(&growth, &|_| {}).unwrap().unwrap()
    }

    #[test]
    fn all_records_are_found_and_removed() {
        for rival in Rival::ALL {
            for per_cent in [0, 50, 100] {
                let grown = grown(rival, 20_000, per_cent);
                // Of LA-tree, most inserts are in flash above the tree.
                let is_lazy = matches!(rival, Rival::La | Rival::LaDurable | Rival::LaChanges);
                assert!(is_lazy || grown.nodes > 20_000 / 128, "{rival:?}");
                assert!(grown.height >= 2, "{rival:?}");
                assert_eq!(grown.raw.is_some(), rival.is_raw());
            }
        }
    }

    #[test]
    fn a_tree_with_too_many_levels_for_its_page_is_refused() {
        let growth = Growth {
            system: Rival::Mu.key(),
            records: 400_000,
            per_cent: 100,
            order: Order::Mixed,
            then_removes: false,
            looks_up: false,
            block_pages: 64,
            seed: 1,
        };
        let error = grow(&growth, &|_| {}).unwrap().err().unwrap();
        assert_eq!(error.0, "μ-tree: a page of 128 entries has room for 6 levels");
    }

    #[test]
    fn every_answer_is_that_of_a_map() {
        let growth = Growth {
            system: "",
            records: 20_000,
            per_cent: 0,
            order: Order::Mixed,
            then_removes: true,
            looks_up: false,
            block_pages: 8,
            seed: 1,
        };
        for rival in Rival::ALL {
            let (mut model, mut map) = (rival.model(&growth), BTreeMap::new());
            let (mut rng, mut events) = (ChaCha8Rng::seed_from_u64(3), Events::default());
            model.format(&mut events);
            // It grows, and then it shrinks.
            for step in 0..60_000_u32 {
                let key: u32 = rng.random_range(0..20_000);
                let work = match rng.random_range(0..4) {
                    0 => Work::LookUp,
                    1 if step < 30_000 => Work::Remove,
                    2 if step >= 30_000 => Work::Insert,
                    _ if step < 30_000 => Work::Insert,
                    _ => Work::Remove,
                };
                let was_there = match work {
                    Work::LookUp => map.contains_key(&key),
                    Work::Insert => map.insert(key, ()).is_some(),
                    Work::Remove => map.remove(&key).is_some(),
                };
                let (answer, _) = model.work(work, key, &mut events);
                assert_eq!(answer, was_there, "{rival:?}, step {step}, {work:?} {key}");
            }
            for key in 0..20_000 {
                let (answer, _) = model.work(Work::LookUp, key, &mut events);
                assert_eq!(answer, map.contains_key(&key), "{rival:?}, {key}");
            }
        }
    }

    #[test]
    fn a_merge_of_in_page_logging_copies_sixty_nodes_for_sixteen_sectors() {
        let costs = grown(Rival::Ipl, 100_000, 0).raw.unwrap().inserts;
        let (programs, erases) = (costs.each(costs.programs), costs.each(costs.erases));
        assert!((4.2..5.0).contains(&programs), "{programs}");
        assert!((0.055..0.07).contains(&erases), "{erases}");
    }

    #[test]
    fn a_dynamic_log_area_needs_a_third_of_that() {
        let costs = grown(Rival::Dipl, 100_000, 0).raw.unwrap().inserts;
        let (programs, erases) = (costs.each(costs.programs), costs.each(costs.erases));
        assert!((1.2..1.6).contains(&programs), "{programs}");
        assert!(erases < 0.015, "{erases}");
    }
}
