//! Hostile media of FTLs: bytes that describe a damaged chip, and an FTL opened on it.

use std::sync::OnceLock;

use nandina::flash::{Geometry, PageNumber, Profile};
use nandina::log::layout_of;
use nandina_ftl::LogicalPages;
use nandina_sim::{Chip, ChipError, TINY};

use super::{Bytes, Outcome};
use crate::layer::{Layer, Pages, Room, Size};

/// Every FTL, and mappings of each sort.
const LAYERS: [&str; 10] = [
    "ftl:page",
    "ftl:compact",
    "ftl:emt",
    "ftl:vet",
    "ftl:block",
    "ftl:bast",
    "ftl:fast",
    "ftl:fast with 2 buffer blocks",
    "ftl:ipl",
    "ftl:dipl",
];

const CHIP: Profile =
    Profile { geometry: Geometry { blocks: 20, pages_per_block: 8, ..TINY.geometry }, ..TINY };

/// Logical pages of an FTL that leaves room for a checkpoint.
const BESIDE_CHECKPOINT: u32 = 48;

/// Chip operations after which the use of a medium counts as an endless loop.
const OPERATIONS_MAX: u64 = 100_000;

/// Changes before the chip is damaged.
const CHANGES: u32 = 240;

/// Opens and uses the FTL on the medium that `data` describes.
///
/// Panics if the FTL does not finish; any other panic is a bug of the FTL.
///
/// The first byte chooses the FTL. The second chooses the medium: an erased chip, or one in use,
/// perhaps with a checkpoint of the mapping. Then come changes to pages: the page, the kind of
/// change, and what that needs; then what the host does.
pub fn mount_ftl_then_use(data: &[u8]) -> Outcome {
    static HEALTHY: [[OnceLock<Chip>; 2]; LAYERS.len()] =
        [const { [const { OnceLock::new() }; 2] }; LAYERS.len()];
    let mut bytes = Bytes(data);
    let which = usize::from(bytes.next()) % LAYERS.len();
    let choice = bytes.next();
    let checkpoint = choice & 0x40 != 0;
    let (layer, size) = layer(LAYERS[which], checkpoint);
    let mut chip = match choice % 4 {
        0 => Chip::new(layer.suited(CHIP)),
        _ => HEALTHY[which][usize::from(checkpoint)]
            .get_or_init(|| healthy(&layer, &size, checkpoint))
            .clone(),
    };
    damage(&mut chip, &mut bytes);
    chip.limit_operations(Some(OPERATIONS_MAX));
    let mut room = Room::default();
    match layer.open(&size, &mut chip, &mut room, false) {
        Err(error) => {
            expect_an_end(&error);
            Outcome::Refused
        }
        Ok(mut disk) => {
            exercise(disk.ftl(), &mut bytes);
            Outcome::Used
        }
    }
}

/// An FTL, which leaves room for a `checkpoint` or takes the whole chip.
fn layer(name: &str, checkpoint: bool) -> (Layer, Size) {
    let layer = Layer::named(name).expect("a known name");
    let layer = match layer.log_blocks() {
        Some(_) => layer.with_log_blocks(2).expect("enough log blocks"),
        None => layer,
    };
    let chip = layer.suited(CHIP);
    let size = layer.size(&chip).expect("a chip that is large enough");
    let size = if checkpoint { layer.sized(&chip, BESIDE_CHECKPOINT) } else { size };
    (layer, size)
}

/// Makes a chip in use, with garbage, holes and moved pages.
fn healthy(layer: &Layer, size: &Size, checkpoint: bool) -> Chip {
    let (mut chip, mut room) = (Chip::new(layer.suited(CHIP)), Room::default());
    let mut disk = layer.open(size, &mut chip, &mut room, true).expect("a new chip");
    let ftl = disk.ftl();
    let (pages, each) = (ftl.logical_pages(), ftl.page_bytes());
    for turn in 0..CHANGES {
        let logical = turn * 37 % pages;
        let done = match turn % 16 {
            7 => ftl.trim(logical, 3.min(pages - logical)),
            _ => ftl.write(logical, &vec![turn as u8; each]),
        };
        done.expect("a healthy chip");
        if checkpoint && turn == CHANGES - 10 {
            ftl.checkpoint().expect("a healthy chip");
        }
    }
    drop(disk);
    chip
}

/// Changes pages by the bytes, in part with checksums that are right again.
fn damage(chip: &mut Chip, bytes: &mut Bytes<'_>) {
    let layout = layout_of(&CHIP.geometry);
    for _ in 0..1 + bytes.next() % 24 {
        if bytes.is_empty() {
            break;
        }
        let page = PageNumber(u32::from(bytes.next()) % CHIP.geometry.pages());
        let kind = bytes.next();
        chip.corrupt_page(page, |main, spare| {
            let used = layout.frame_bytes() - main.len();
            let mut frame = [&*main, &spare[..used]].concat();
            let (mut header, medium) = (layout.header(&frame), layout.medium(&frame));
            match kind % 8 {
                0 => {
                    let at = usize::from(bytes.next_u16()) % frame.len();
                    frame[at] = bytes.next();
                }
                // A word near the start, where pages of the FTL itself have their lists.
                1 => {
                    let at = usize::from(bytes.next()) % 32 * 4;
                    frame[at..at + 4].copy_from_slice(&bytes.next_u32().to_le_bytes());
                }
                2 => header.lowest = bytes.next() % 6,
                3 => header.tag = bytes.next(),
                // The logical page, or what the FTL says about itself.
                4 => header.records = u32::from(bytes.next()),
                5 => header.records = u32::MAX - u32::from(bytes.next() % 8),
                6 => header.sequence = bytes.next_u16().into(),
                _ => frame.fill(bytes.next()),
            }
            if kind & 0x80 == 0 {
                layout.seal(&mut frame, &medium, &header);
            }
            main.copy_from_slice(&frame[..main.len()]);
            spare[..used].copy_from_slice(&frame[main.len()..]);
        });
    }
}

/// Uses the FTL as a host does, in the order that the bytes give.
fn exercise(ftl: &mut Pages<'_, Chip>, bytes: &mut Bytes<'_>) {
    let (pages, each) = (ftl.logical_pages(), ftl.page_bytes());
    let mut page = vec![0; each];
    for logical in 0..pages {
        ended(ftl.read(logical, &mut page));
    }
    for _ in 0..12 {
        let logical = u32::from(bytes.next()) % pages;
        let what = bytes.next();
        match what % 6 {
            0 => ended(ftl.read(logical, &mut page)),
            1 => {
                let count = 1 + u32::from(what / 6) % (pages - logical);
                ended(ftl.trim(logical, count));
                ended(ftl.trim_volatile((logical + 2 * count) % pages, 1));
            }
            2 => ended(ftl.idle(40)),
            3 => ended(ftl.checkpoint()),
            4 => {
                let row = vec![what; each * (2.min(pages - logical) as usize)];
                ended(ftl.write_pages(logical, &row));
            }
            _ => ended(ftl.write(logical, &vec![what; each])),
        }
    }
    // A damaged medium need not be sound.
    let _ = ftl.check();
    for logical in 0..pages {
        ended(ftl.read(logical, &mut page));
    }
}

/// Expects that it was no endless loop, if it failed.
fn ended<T>(done: Result<T, ChipError>) {
    if let Err(error) = done {
        expect_an_end(&error);
    }
}

fn expect_an_end(error: &ChipError) {
    let loops = matches!(error, ChipError::TooMany { .. });
    assert!(!loops, "{OPERATIONS_MAX} chip operations");
}
