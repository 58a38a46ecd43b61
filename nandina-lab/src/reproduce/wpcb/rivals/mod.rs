//! The trees that the paper compares WPCB-tree with, as models that count.
//!
//! They keep keys in RAM and count what their rules read, write and erase; they store nothing and
//! survive no cut. The registry has no such systems: these exist for the paper's figures alone.
//! Their rules are those that the paper and its references state; what was chosen here is named
//! where it is.

mod logged;
mod paths;
mod store;
mod tree;

use super::cost::Costs;
use super::device::{Event, Events};
use super::growth::{Grown, Growth, Phase};
use super::keys::{Order, keys};
use crate::LabError;
use logged::Logged;
use paths::Paths;
use store::{Store, cost};
use tree::{Rule, Touch, Tree};

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
}

impl Rival {
    /// All of them.
    pub const ALL: [Self; 5] =
        [Self::Merging, Self::MuStar, Self::Ipl, Self::Dipl, Self::DiplOverFtl];

    /// Its name in the column of systems.
    pub const fn key(self) -> &'static str {
        match self {
            Self::Merging => "btree-merging",
            Self::MuStar => "mu-star",
            Self::Ipl => "ipl",
            Self::Dipl => "dipl",
            Self::DiplOverFtl => "dipl-ftl",
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
        }
    }

    /// Whether it writes blocks of raw flash, without an FTL.
    pub const fn is_raw(self) -> bool {
        matches!(self, Self::Ipl | Self::Dipl)
    }

    const fn rule(self) -> Rule {
        match self {
            Self::Merging => Rule::Nodes { merges: true },
            Self::MuStar => Rule::Paths,
            Self::Ipl | Self::Dipl | Self::DiplOverFtl => Rule::Nodes { merges: false },
        }
    }
}

/// What the reports say of these figures.
pub const NOTE: &str = "btree-merging, mu-star, ipl, dipl and dipl-ftl are counting models in RAM, not systems \
    of the registry: they store nothing and survive no cut. ipl and dipl write raw flash, a sector of a \
    quarter of a page for each changed node; dipl-ftl has FAST below it, as the others, and programs a \
    page for each sector.";

/// Each node in a logical page of its own, which an FTL replaces as a whole.
#[derive(Default)]
struct OwnPages {
    end: u32,
}

impl Store for OwnPages {
    fn read(&mut self, nodes: &[u32]) -> u32 {
        // The root is in a page buffer, as it is in the other systems.
        nodes.len() as u32 - 1
    }

    fn write(&mut self, tree: &Tree, events: &mut Events) -> u32 {
        for &(node, touch) in tree.touched() {
            events.push(match touch {
                Touch::Gone => Event::Trim(node),
                Touch::Entry | Touch::Moved | Touch::New { .. } => Event::Write(node),
            });
            self.end = self.end.max(node + 1);
        }
        tree.beside()
    }

    fn pages(&self) -> u32 {
        self.end
    }
}

/// Grows the rival named `growth.system`, if there is one.
pub fn grow(growth: &Growth, progress: &(dyn Fn(u64) + Sync)) -> Option<Result<Grown, LabError>> {
    let rival = Rival::ALL.into_iter().find(|rival| rival.key() == growth.system)?;
    let block_pages = growth.block_pages;
    let mut store: Box<dyn Store> = match rival {
        Rival::Merging => Box::new(OwnPages::default()),
        Rival::MuStar => Box::new(Paths::default()),
        Rival::Ipl => Box::new(Logged::fixed(block_pages)),
        Rival::Dipl => Box::new(Logged::dynamic(block_pages)),
        Rival::DiplOverFtl => Box::new(Logged::over_ftl(block_pages)),
    };
    Some(live(rival, growth, &mut *store, progress))
}

/// One kind of operation on a model.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Work {
    Insert,
    LookUp,
    Remove,
}

fn live(
    rival: Rival,
    growth: &Growth,
    store: &mut dyn Store,
    progress: &(dyn Fn(u64) + Sync),
) -> Result<Grown, LabError> {
    let mut tree = Tree::new(rival.rule());
    let (mut format, mut height, mut costs) = (Events::default(), 1, Costs::default());
    store.write(&tree, &mut format);
    store.raw();
    let mut phase = |tree: &mut Tree, store: &mut dyn Store, keys: &[u32], work| {
        let (mut events, mut reads, mut each) = (Events::default(), 0, Vec::new());
        for chunk in keys.chunks(4096) {
            for &key in chunk {
                tree.descend(key);
                let mut read = store.read(tree.path());
                let was_there = match work {
                    Work::Insert => !tree.insert(key),
                    Work::LookUp => tree.has(key),
                    Work::Remove => tree.remove(key),
                };
                if was_there == (work == Work::Insert) {
                    return Err(LabError(format!("{}: a wrong record", rival.key())));
                }
                if work != Work::LookUp {
                    read += store.write(tree, &mut events);
                }
                height = height.max(tree.height());
                reads += u64::from(read);
                let mut done = store.raw();
                done.reads += u64::from(read);
                each.push(done);
                events.push(Event::End(read));
            }
            progress(chunk.len() as u64);
        }
        let writes = events.iter().filter(|event| matches!(event, Event::Write(_))).count() as u64;
        let cost = cost(&each);
        Ok((Phase { events, reads, writes }, cost))
    };
    let order = keys(growth.records, growth.per_cent, growth.order, growth.seed);
    let (inserts, cost) = phase(&mut tree, store, &order, Work::Insert)?;
    costs.inserts = cost;
    let (nodes, pages, blocks) = (tree.nodes(), store.pages(), store.blocks(growth.block_pages));
    let (mut lookups, mut removals) = (None, None);
    if growth.then_removes {
        let order = keys(growth.records, 0, Order::Mixed, growth.seed ^ 0x5EA7);
        let (looked_up, cost) = phase(&mut tree, store, &order, Work::LookUp)?;
        (lookups, costs.lookups) = (Some(looked_up), cost);
        let (removed, cost) = phase(&mut tree, store, &order, Work::Remove)?;
        (removals, costs.removals) = (Some(removed), cost);
    }
    costs.chip_blocks = blocks;
    let raw = rival.is_raw().then_some(costs);
    let block_pages = growth.block_pages;
    let most_blocks = blocks.max(store.blocks(block_pages));
    Ok(Grown {
        format,
        inserts,
        lookups,
        removals,
        height,
        nodes,
        pages,
        blocks,
        most_blocks,
        block_pages,
        raw,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grown(rival: Rival, records: u32, per_cent: u32) -> Grown {
        let growth = Growth {
            system: rival.key(),
            records,
            per_cent,
            order: Order::Mixed,
            then_removes: true,
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
                assert!(grown.height >= 2 && grown.nodes > 20_000 / 128, "{rival:?}");
                assert_eq!(grown.raw.is_some(), rival.is_raw());
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
