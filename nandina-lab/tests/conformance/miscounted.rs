//! A checkpoint that counts wrongly, though its checksums are right.
//!
//! A mount from it walks no tree, so it believes the counts. Changes that empty the index, and fill
//! it again, must end or say what is damaged.

use nandina::flash::{Flash, Geometry, PageNumber};
use nandina::node::PageLayout;
use nandina::store::Description;
use nandina::{Index, OpenError, Statistics, System, WriteError};
use nandina_sim::Chip;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::harness::*;

const RECORDS: u32 = 400;

/// Long keys, of which an inner node has few.
const LONG_KEY: usize = 24;

fn long_key(number: u32) -> [u8; LONG_KEY] {
    let mut long = [7; LONG_KEY];
    long[..KEY_BYTES].copy_from_slice(&key(number));
    long
}

/// The bytes that begin each page of a checkpoint, and the kind of such a page.
const PREFIX_BYTES: usize = 16;
const CHECKPOINT: u8 = 2;

/// Where the first page of a checkpoint has what it says of the tree.
const NODES: usize = PREFIX_BYTES + 4;
const OF_RECORDS: usize = PREFIX_BYTES + 8;
const HEIGHT: usize = PREFIX_BYTES + 12;

/// What was made of a checkpoint.
#[derive(Default, Debug)]
struct Met {
    used: u32,
    refused: u32,
    damaged: u32,
}

/// The pages of checkpoints on a chip.
fn checkpoint_pages(chip: &Chip, layout: &PageLayout) -> Vec<PageNumber> {
    let geometry = chip.profile().geometry;
    let mut chip = chip.clone();
    let mut frame = vec![0; layout.frame_bytes()];
    let mut is_part = |&page: &PageNumber| {
        let (main, spare) = frame.split_at_mut(layout.page_bytes());
        chip.read(page, main, spare).is_ok()
            && layout.open(&frame).is_ok_and(|header| header.lowest == 0 && frame[0] == CHECKPOINT)
    };
    (0..geometry.pages()).map(PageNumber).filter(&mut is_part).collect()
}

/// Lets `change` work on the content of these pages of a checkpoint, and makes their checksums
/// right.
///
/// `change` gets the number of the page's part.
fn tamper(
    chip: &mut Chip,
    pages: &[PageNumber],
    layout: &PageLayout,
    change: impl Fn(u16, &mut [u8]),
) {
    let (main_bytes, used) = (layout.page_bytes(), layout.frame_bytes());
    for &page in pages {
        chip.corrupt_page(page, |main, spare| {
            let mut frame = [&*main, &spare[..used - main_bytes]].concat();
            let header = layout.header(&frame);
            let part = u16::from_le_bytes([frame[2], frame[3]]);
            change(part, &mut frame[..layout.area_bytes()]);
            layout.reseal(&mut frame, &header);
            main.copy_from_slice(&frame[..main_bytes]);
            spare[..used - main_bytes].copy_from_slice(&frame[main_bytes..]);
        });
    }
}

/// A chip with few records in a node, and a checkpoint at the end of what it holds.
fn checkpointed<S: System>(case: &Case, ram: &mut [u8]) -> Result<(Chip, Statistics), String> {
    let mut chip = Chip::new(case.profile);
    let mut index = Index::<_, S>::format(&mut chip, &case.options, ram).map_err(text)?;
    for number in 0..RECORDS {
        let number = number * 37 % RECORDS;
        match index.insert(&long_key(number), &value(number, 0)) {
            // Where a page holds a whole path, a tree can hardly grow.
            Err(WriteError::TooHigh { .. }) => break,
            inserted => inserted.map_err(text)?,
        };
    }
    if !S::DESCRIPTION.checkpoints_at_close && !index.checkpoint().map_err(text)? {
        return Err("no checkpoint was written".into());
    }
    let statistics = index.statistics();
    end(index);
    Ok((chip, statistics))
}

/// Empties the index and fills it again, as far as damage permits.
fn empty_and_fill<S: System>(index: &mut Index<'_, &mut Chip, S>, met: &mut Met) -> Outcome {
    for number in 0..RECORDS {
        match index.remove(&long_key(number)) {
            Ok(_) => {}
            Err(WriteError::Corrupt { .. }) => met.damaged += 1,
            Err(error) => return Err(format!("removing {number}: {error}")),
        }
    }
    for number in 0..RECORDS {
        match index.insert(&long_key(number), &value(number, 1)) {
            Ok(_) => {}
            Err(WriteError::Corrupt { .. }) => met.damaged += 1,
            // The counts say how much room there is.
            Err(WriteError::Full { .. } | WriteError::TooHigh { .. }) => {}
            Err(error) => return Err(format!("inserting {number}: {error}")),
        }
    }
    let _ = index.check(|_| {});
    Ok(())
}

fn layout_of(case: &Case) -> PageLayout {
    let Geometry { page_bytes, spare_bytes, .. } = case.profile.geometry;
    PageLayout::new(page_bytes as usize, spare_bytes as usize)
}

struct Miscounted;

impl Miscounted {
    fn with<S: System>(
        case: &Case,
        ((healthy, pages), ram): ((&Chip, &[PageNumber]), &mut [u8]),
        change: impl Fn(u16, &mut [u8]),
        met: &mut Met,
    ) -> Outcome {
        let mut chip = healthy.clone();
        tamper(&mut chip, pages, &layout_of(case), change);
        match Index::<_, S>::open(&mut chip, &case.options, ram) {
            Err(OpenError::Corrupt { .. }) => met.refused += 1,
            Err(error) => return Err(format!("it was not opened: {error}")),
            Ok(mut index) => {
                met.used += u32::from(index.statistics().from_checkpoint);
                empty_and_fill(&mut index, met)?;
            }
        }
        Ok(())
    }
}

impl Check for Miscounted {
    fn concerns(&self, system: &Description) -> bool {
        system.checkpoints
    }

    fn run<S: System + 'static>(&self) -> Outcome {
        let mut case = Case::new(SMALL.with_blocks(40));
        case.options.key_bytes = LONG_KEY;
        case.options.checkpoints = Some(4);
        let case = case.suited::<S>();
        let mut ram = case.ram::<S>();
        let (healthy, is) = checkpointed::<S>(&case, &mut ram)?;
        let pages = checkpoint_pages(&healthy, &layout_of(&case));
        let healthy = (&healthy, &pages[..]);
        let mut met = Met::default();
        let (nodes, height) = (is.inner_nodes, u32::from(is.height));
        if S::DESCRIPTION.has_inner_nodes() && height < 3 {
            return Err(format!("a tree of height {height} has one inner node"));
        }
        let counts = [
            0,
            1,
            height - 1,
            height,
            nodes / 2,
            nodes.saturating_sub(1),
            nodes,
            nodes + 1,
            2 * nodes,
        ]
        .into_iter()
        .chain([0x7F, 0xFFF, 1 << 16, 1 << 31, u32::MAX - 1, u32::MAX]);
        for (at, what) in [(NODES, "nodes"), (OF_RECORDS, "records")] {
            for count in counts.clone() {
                let set = |part, bytes: &mut [u8]| {
                    if part == 0 {
                        bytes[at..at + 4].copy_from_slice(&count.to_le_bytes());
                    }
                };
                Self::with::<S>(&case, (healthy, &mut ram), set, &mut met)
                    .map_err(|error| format!("{count} {what}: {error}"))?;
            }
        }
        for height in 0..=255 {
            let set = |part, bytes: &mut [u8]| {
                if part == 0 {
                    bytes[HEIGHT] = height;
                }
            };
            Self::with::<S>(&case, (healthy, &mut ram), set, &mut met)
                .map_err(|error| format!("height {height}: {error}"))?;
        }
        // Which pages are valid, how often blocks were erased, and what the owner stores.
        let mut random = ChaCha8Rng::seed_from_u64(seed());
        for _ in 0..Share::one_in(4).length(600) {
            let (of, bits) = (random.random_range(0..4), random.random_range(1..=255));
            let place: usize = random.random_range(0..case.profile.geometry.page_bytes as usize);
            let set = |part, bytes: &mut [u8]| {
                if part == of && place >= PREFIX_BYTES && place < bytes.len() {
                    bytes[place] ^= bits;
                }
            };
            Self::with::<S>(&case, (healthy, &mut ram), set, &mut met)
                .map_err(|error| format!("byte {place} of part {of} by {bits}: {error}"))?;
        }
        println!("{}: {met:?}", S::DESCRIPTION.key);
        if met.used < 10 {
            return Err(format!("{met:?} shows little"));
        }
        Ok(())
    }
}

#[test]
fn an_index_that_a_checkpoint_counts_wrongly_is_emptied_or_reported() {
    for_one_system_in(8, &Miscounted);
}
