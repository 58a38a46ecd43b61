//! What the conversion of one buffer block costs on the chip, against the pages of a block.

use nandina::flash::{Geometry, Profile};
use nandina_ftl::LogicalPages;
use nandina_ftl::hybrid::{
    Bast, Buffer, Conversions, Fast, Hybrid, Merges, Policy, SequentialRule, Transit,
    logical_pages_max, ram_needed,
};
use nandina_sim::{Chip, TINY};

/// Pages of a block.
const BLOCKS: [u32; 5] = [2, 4, 8, 16, 64];

/// Reads, programs and erases of one write that converts a buffer block, less those of the write.
type Cost = (u64, u64, u64);

/// Converts blocks of which `appended` pages were appended, and `newest` of them count.
///
/// Calls `saw` with each conversion that no merge below went with.
fn convert<P: Policy>(
    policy: P,
    block_pages: u32,
    (appended, newest): (u32, u32),
    mut saw: impl FnMut(Cost, Conversions),
) {
    let geometry = Geometry { blocks: 40, pages_per_block: block_pages, ..TINY.geometry };
    let profile = Profile { geometry, ..TINY };
    let capabilities = profile.capabilities;
    let most = logical_pages_max(&geometry, &capabilities, &policy);
    let mut ram = vec![0; ram_needed(&geometry, &capabilities, &policy, most)];
    let mut chip = Chip::new(profile);
    let mut ftl = Hybrid::format(&mut chip, policy, most, &mut ram).unwrap();
    for logical_block in 0..6 {
        // The newest are the first pages of the block, each replaced until all are appended.
        for at in 0..appended {
            let page = logical_block * block_pages + at % newest;
            ftl.write(page, &[at as u8; 512]).unwrap();
        }
        let (before, done, merges) = (ftl.flash().counters(), ftl.conversions(), ftl.merges());
        // The one buffer block is another's, so it is converted.
        ftl.write((logical_block + 10) * block_pages, &[7; 512]).unwrap();
        let cost = ftl.flash().counters() - before;
        let Conversions { blocks, appended, newest, .. } = ftl.conversions();
        let one = Conversions {
            blocks: blocks - done.blocks,
            appended: appended - done.appended,
            newest: newest - done.newest,
            ..Conversions::default()
        };
        let Merges { switch, partial, full, .. } = ftl.merges();
        if (switch, partial, full) == (merges.switch, merges.partial, merges.full) {
            saw((cost.reads, cost.programs - 1, cost.erases), one);
        }
    }
    for logical_block in 0..6 {
        for at in 0..newest {
            let (mut page, last) = ([0; 512], (0..appended).rfind(|last| last % newest == at));
            assert!(ftl.read(logical_block * block_pages + at, &mut page).unwrap());
            assert_eq!(page, [last.unwrap() as u8; 512], "block {logical_block}, page {at}");
        }
    }
}

/// The pages that are appended to a buffer block, and those of them that count.
fn fillings(block_pages: u32) -> Vec<(u32, u32)> {
    let of = |appended: u32| [1, appended.div_ceil(2), appended].map(|newest| (appended, newest));
    let mut all: Vec<_> =
        [1, block_pages.div_ceil(2), block_pages].into_iter().flat_map(of).collect();
    all.sort_unstable();
    all.dedup();
    all
}

#[test]
fn a_conversion_reads_and_writes_at_most_the_pages_of_its_block() {
    let printed = Buffer::as_printed(1);
    let newest_only = Buffer { reads_newest_only: true, ..printed };
    let fast = Fast { log_blocks: 8, sequential: SequentialRule::FirstPage };
    let bast = Bast { log_blocks: 8 };
    for block_pages in BLOCKS {
        let mut seen = 0;
        for filling in fillings(block_pages) {
            for buffer in [printed, newest_only] {
                let mut saw = |(reads, programs, erases): Cost, one: Conversions| {
                    let (appended, newest) = (u64::from(filling.0), u64::from(filling.1));
                    let what = format!("{block_pages} pages a block, {filling:?}, {one:?}");
                    assert_eq!((one.blocks, one.appended, one.newest), (1, appended, newest));
                    // As printed, each page of the buffer block is read, and each that counts is
                    // written below. The block is erased.
                    let read = if buffer.reads_newest_only { newest } else { appended };
                    assert_eq!((reads, programs, erases), (read, newest, 1), "{what}");
                    assert!(reads <= u64::from(block_pages) && programs <= reads, "{what}");
                    seen += 1;
                };
                convert(Transit { over: fast, buffer }, block_pages, filling, &mut saw);
                convert(Transit { over: bast, buffer }, block_pages, filling, &mut saw);
            }
        }
        println!("{block_pages} pages a block: {seen} conversions");
        assert!(seen >= 24, "{block_pages} pages a block: {seen} conversions");
    }
}
