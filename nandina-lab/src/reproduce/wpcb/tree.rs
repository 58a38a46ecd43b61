//! An index in RAM: the pages that it reads and writes while records come and go.
//!
//! Each lookup is checked, so a wrong index gives an error and never a figure.

use nandina::store::Visitor;
use nandina::{Index, Options, Removed, System, ram_needed};

use super::device::{Device, Event};
use super::growth::{Grown, Growth, Phase};
use super::keys::{Order, keys};
use crate::LabError;
use crate::systems::visit;

/// Runs the index.
pub fn grow(growth: &Growth, progress: &(dyn Fn(u64) + Sync)) -> Result<Grown, LabError> {
    visit(growth.system, Grow { growth, progress })
        .unwrap_or_else(|| Err(LabError::no_system(growth.system)))
}

struct Grow<'g> {
    growth: &'g Growth,
    progress: &'g (dyn Fn(u64) + Sync),
}

impl Visitor for Grow<'_> {
    type Output = Result<Grown, LabError>;

    fn visit<S: System + 'static>(self) -> Self::Output {
        self.run::<S>().map_err(|error| LabError(format!("{}: {error}", self.growth.system)))
    }
}

/// Blocks of the device for this many records, if all leaves are half full.
fn blocks_for(records: u32, block_pages: u32) -> u32 {
    records.div_ceil(60 * block_pages) * 9 / 8 + 4
}

/// Does `operation` for each key.
fn phase<S: System>(
    index: &mut Index<'_, &mut Device, S>,
    keys: &[u32],
    progress: &(dyn Fn(u64) + Sync),
    mut operation: impl FnMut(&mut Index<'_, &mut Device, S>, &[u8]) -> Result<(), String>,
) -> Result<Phase, String> {
    let mut reads = 0;
    for chunk in keys.chunks(4096) {
        for key in chunk {
            operation(index, &key.to_be_bytes())?;
            reads += u64::from(index.flash().end_operation());
        }
        progress(chunk.len() as u64);
    }
    let events = index.flash().take_events();
    let writes = events.iter().filter(|event| matches!(event, Event::Write(_))).count() as u64;
    Ok(Phase { events, reads, writes })
}

impl Grow<'_> {
    fn run<S: System + 'static>(&self) -> Result<Grown, String> {
        let Growth { records, per_cent, order, seed, then_removes, block_pages, .. } = *self.growth;
        let text = |error: &dyn std::fmt::Display| error.to_string();
        let mut device = Device::new(blocks_for(records, block_pages), block_pages);
        let options = Options::new(4, 4);
        let mut ram = vec![0; ram_needed::<S>(&nandina::flash::Flash::geometry(&device), &options)];
        let mut index =
            Index::<_, S>::format(&mut device, &options, &mut ram).map_err(|error| text(&error))?;
        let format = index.flash().take_events();
        index.flash().end_operation();
        index.flash().take_events();
        let mut height = 0;
        let order = keys(records, per_cent, order, seed);
        let inserts = phase(&mut index, &order, self.progress, |index, key| {
            index.insert(key, key).map_err(|error| text(&error))?;
            height = height.max(index.statistics().height);
            Ok(())
        })?;
        let nodes = index.statistics().valid_pages;
        let pages = index.flash().pages();
        let blocks = pages.div_ceil(block_pages);
        let (mut lookups, mut removals) = (None, None);
        if then_removes {
            let order = keys(records, 0, Order::Mixed, seed ^ 0x5EA7);
            lookups = Some(phase(&mut index, &order, self.progress, |index, key| {
                match index.get(key).map_err(|error| text(&error))? {
                    Some(value) if value == key => Ok(()),
                    _ => Err("a lookup found another value than was inserted".into()),
                }
            })?);
            removals = Some(phase(&mut index, &order, self.progress, |index, key| {
                match index.remove(key).map_err(|error| text(&error))? {
                    Removed::Found => Ok(()),
                    _ => Err("a record was gone before its removal".into()),
                }
            })?);
        }
        // Removals take no new page.
        let (most_blocks, raw) = (blocks, None);
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
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_leaf_has_room_for_128_entries() {
        let nodes = |records| {
            let order = Order::Mixed;
            let growth = Growth {
                system: "btree",
                records,
                per_cent: 100,
                order,
                then_removes: false,
                block_pages: 64,
                seed: 1,
            };
            let grown = grow(&growth, &|_| {}).unwrap();
            (grown.height, grown.nodes)
        };
        assert_eq!(nodes(128), (1, 1));
        assert_eq!(nodes(129), (2, 3));
    }
}
