//! Leaves without a tree: which of them owns which keys, by what the pages say.
//!
//! The newest leaf whose range holds a key owns it. No directory is read, for it is in RAM only, and
//! pages that a mount would exclude after a cut are taken as they are.

use std::ops::Bound;

use nandina::flash::PageNumber;
use nandina::node::Node;
use nandina::{Index, System};
use nandina_sim::Chip;

use super::reader::Reader;
use super::walk::{LevelFacts, Walker};
use crate::LabError;
use crate::opened::{Job, with_index};

/// A leaf, and the ranges of keys that it owns.
type Owner = (PageNumber, Vec<Gap>);

/// A range of keys without an owner: its first key, and the first key behind it.
type Gap = (Vec<u8>, Option<Vec<u8>>);

impl Walker<'_> {
    /// Gives each leaf, from the newest on, the keys that no newer one owns.
    pub fn run_leaves(&mut self) -> Result<(), LabError> {
        let Some(reader) = self.reader else { return Ok(()) };
        let area_bytes = self.pages.layout.area_bytes();
        let shape = self.shape(1);
        let mut level = LevelFacts::empty(1);
        let (owners, gaps) = self.owners(reader)?;
        for (page, owned) in owners {
            let area = self.pages.bytes(page)?[..area_bytes].to_vec();
            let Some(node) = Node::parse(&area, shape) else {
                self.lose(page.0, 1, "a node has more records than fit");
                continue;
            };
            let place = |key: &[u8]| node.search(key).unwrap_or_else(|at| at);
            let records: usize = owned
                .iter()
                .map(|(low, high)| {
                    let end = high.as_ref().map_or(node.count(), |high| place(high));
                    end.saturating_sub(place(low))
                })
                .sum();
            level.add(records, shape.capacity(area_bytes));
            self.valid.insert(page.0);
        }
        if !gaps.is_empty() {
            self.lose(self.facts.root_page, 1, "no leaf that can be read owns some keys");
        }
        self.end_leaves(level);
        Ok(())
    }

    /// Does the same for leaves that are blocks; an index counts the records in their logs.
    pub fn run_leaf_blocks(&mut self) -> Result<(), LabError> {
        let Some(reader) = self.reader else { return Ok(()) };
        let mut level = LevelFacts::empty(1);
        let (owners, gaps) = self.owners(reader)?;
        let ranges: Vec<_> = owners.iter().flat_map(|(_, owned)| owned).cloned().collect();
        let medium = self.root.medium;
        let counts = with_index(&mut self.pages.copy(), &medium, Counts(ranges)).and_then(|it| it);
        let Ok(counts) = counts else {
            self.lose(self.facts.root_page, 1, "the index does not open, or a leaf is damaged");
            return Ok(());
        };
        if !gaps.is_empty() {
            self.lose(self.facts.root_page, 1, "no leaf that can be read owns some keys");
        }
        let record_bytes = usize::from(medium.key_bytes) + usize::from(medium.value_bytes);
        let block_pages = u32::from(medium.pages_per_block);
        let block_bytes = self.pages.layout.page_bytes() * block_pages as usize;
        let mut counts = counts.into_iter();
        for (page, owned) in owners {
            let records: usize = counts.by_ref().take(owned.len()).sum();
            level.add(records, block_bytes / record_bytes.max(1));
            self.valid.extend(page.0..page.0 + block_pages);
        }
        // A leaf records how many records were in order when it was written.
        self.facts.records = u32::try_from(level.records).unwrap_or(u32::MAX);
        self.end_leaves(level);
        Ok(())
    }

    /// The leaves that own keys, from the newest on, and the keys that none owns.
    fn owners(&mut self, reader: Reader) -> Result<(Vec<Owner>, Vec<Gap>), LabError> {
        let (root, area_bytes) = (self.root, self.pages.layout.area_bytes());
        let key_bytes = usize::from(root.medium.key_bytes);
        let mut leaves: Vec<_> = self
            .pages
            .readable()
            .filter(|(_, header)| {
                (header.identity, header.medium, header.height) == (root.identity, root.medium, 1)
                    && header.sequence <= root.sequence
            })
            .map(|(page, header)| (header.sequence, page))
            .collect();
        leaves.sort_unstable_by(|a, b| b.cmp(a));
        let mut owners = Vec::new();
        let mut gaps: Vec<Gap> = vec![(vec![0; key_bytes], None)];
        for (_, page) in leaves {
            if gaps.is_empty() {
                break;
            }
            let area = &self.pages.bytes(page)?[..area_bytes];
            let Some((low, high)) = (reader.nodes.range_in)(area, key_bytes) else { continue };
            let (owned, left) = divide(&gaps, low, high);
            if !owned.is_empty() {
                owners.push((page, owned));
            }
            gaps = left;
        }
        Ok((owners, gaps))
    }

    fn end_leaves(&mut self, mut level: LevelFacts) {
        level.finish();
        self.facts.height = if level.nodes > 1 { 2 } else { 1 };
        self.facts.levels = vec![level];
    }
}

/// Counts the records of each range.
struct Counts(Vec<Gap>);

impl Job for Counts {
    type Output = Result<Vec<usize>, LabError>;

    fn run<S: System>(self, index: &mut Index<'_, &mut Chip, S>) -> Self::Output {
        let count = |(low, high): Gap| {
            let bounds = (
                Bound::Included(&low[..]),
                match &high {
                    Some(high) => Bound::Excluded(&high[..]),
                    None => Bound::Unbounded,
                },
            );
            let counted = index.range(bounds).and_then(|range| range.count());
            counted.map(|count| count as usize).map_err(|error| LabError(error.to_string()))
        };
        self.0.into_iter().map(count).collect()
    }
}

/// The parts of `gaps` inside of a range, and those outside of it.
fn divide(gaps: &[Gap], low: &[u8], high: Option<&[u8]>) -> (Vec<Gap>, Vec<Gap>) {
    let (mut inside, mut outside) = (Vec::new(), Vec::new());
    for (start, end) in gaps {
        let is_apart = end.as_ref().is_some_and(|end| &end[..] <= low)
            || high.is_some_and(|high| high <= &start[..]);
        if is_apart {
            outside.push((start.clone(), end.clone()));
            continue;
        }
        if &start[..] < low {
            outside.push((start.clone(), Some(low.to_vec())));
        }
        let cut = match (high, end) {
            (Some(high), Some(end)) if high < &end[..] => Some(high),
            (Some(high), None) => Some(high),
            _ => None,
        };
        let first = if &start[..] < low { low.to_vec() } else { start.clone() };
        inside.push((first, cut.map(<[u8]>::to_vec).or_else(|| end.clone())));
        if let Some(cut) = cut {
            outside.push((cut.to_vec(), end.clone()));
        }
    }
    (inside, outside)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_takes_its_part_of_what_has_no_owner() {
        let gap = |low: u8, high: Option<u8>| (vec![low], high.map(|high| vec![high]));
        let all = [gap(0, None)];
        let (inside, outside) = divide(&all, &[3], Some(&[7]));
        assert_eq!(
            (inside, outside.clone()),
            (vec![gap(3, Some(7))], vec![gap(0, Some(3)), gap(7, None)])
        );
        let (inside, outside) = divide(&outside, &[2], None);
        assert_eq!(inside, [gap(2, Some(3)), gap(7, None)]);
        assert_eq!(outside, [gap(0, Some(2))]);
        assert_eq!(divide(&outside, &[2], Some(&[9])), (vec![], vec![gap(0, Some(2))]));
    }
}
