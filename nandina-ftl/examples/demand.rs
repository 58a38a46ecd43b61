//! Prints what a map on demand costs on its own chip, by the RAM that it has.
//!
//! A block trace is replayed twice on the map, without the host's pages. Translation pages are in
//! an FTL on a chip of the given profile, with 25 % of spare pages:
//! `cargo run --release -p nandina-ftl --example demand -- FILE`.

use std::path::Path;

use nandina::flash::profile::SLC;
use nandina::flash::{Geometry, Profile};
use nandina_ftl::ftl::{Ftl, blocks_needed, logical_page_bytes, ram_needed, space_of};
use nandina_ftl::mapping::demand::{Demand, OnPages};
use nandina_ftl::mapping::{Extent, Mapping, Page, Space};
use nandina_lab::block_trace::{BlockTrace, Choices, Kind, Layout};
use nandina_lab::replay::Unit;
use nandina_sim::SparseChip;

/// The share of a page map's bytes that the map has.
const SHARES: [usize; 5] = [64, 32, 16, 8, 4];

type OnChip<'a> = OnPages<Ftl<'a, SparseChip, Page<'a>>>;

fn main() {
    let Some(file) = std::env::args().nth(1) else {
        eprintln!("name a block trace");
        std::process::exit(2);
    };
    let mut requests = Vec::new();
    let read = BlockTrace::open(Path::new(&file), Choices::default())
        .and_then(|trace| trace.read(&|_| {}, &mut |request| requests.push(*request)));
    let layout = match read {
        Ok(account) => Layout::of(&account),
        Err(error) => {
            eprintln!("{error}");
            std::process::exit(1);
        }
    };
    let logical = u32::try_from(Unit::PAGE.count(layout.bytes())).expect("pages of 32 bits");
    let space = Space { logical, physical: logical + logical / 4 };
    let changes: Vec<_> = requests
        .iter()
        .filter_map(|request| {
            let extent = Unit::PAGE.covering(layout.place(request), request.bytes)?;
            Some((request.kind, extent))
        })
        .collect();
    println!("{} requests, {} bytes of a page map", changes.len(), 4 * logical);
    println!(
        "{:>10} {:>9} {:>10} {:>10} {:>9} {:>9}",
        "RAM bytes", "entries", "map reads", "map writes", "programs", "erases"
    );
    for share in SHARES {
        row(space, 4 * logical as usize / share, &changes);
    }
}

fn row(space: Space, bytes: usize, changes: &[(Kind, Extent)]) {
    let needed = OnChip::pages_needed(space, logical_page_bytes(&SLC.geometry)).expect("4 KB");
    let blocks = blocks_needed(&SLC.geometry, &SLC.capabilities, needed + needed / 4);
    let profile = Profile { geometry: Geometry { blocks, ..SLC.geometry }, ..SLC };
    let directory = space_of(&profile.geometry, &profile.capabilities, needed);
    let (mut ram, mut places) =
        (vec![0; ram_needed(&profile.geometry)], vec![0; Page::bytes_needed(directory)]);
    let places = Page::new(directory, &mut places).expect("the memory suffices");
    let ftl = Ftl::format(SparseChip::new(profile), places, needed, &mut ram).expect("a new chip");
    let mut memory = vec![0; bytes];
    let pages = OnPages::new(ftl).expect("pages of 2 KiB");
    let mut map = Demand::new(space, &mut memory, pages).expect("the memory suffices");
    let mut next = 0;
    for _ in 0..2 {
        for &(kind, extent) in changes {
            let done = match kind {
                Kind::Read => map.look_up(extent, &mut |_| {}),
                Kind::Trim => map.remove(extent, &mut |_| {}),
                Kind::Flush => Ok(()),
                Kind::Write => {
                    next = if space.physical - next < extent.length { 0 } else { next };
                    next += extent.length;
                    map.update(extent, next - extent.length, &mut |_| {})
                }
            };
            done.expect("the extent is in the space");
        }
    }
    let (work, entries) = (map.work(), map.entries());
    let done = map.pages().statistics();
    assert!(!map.pages().has_failed());
    println!(
        "{bytes:>10} {entries:>9} {:>10} {:>10} {:>9} {:>9}",
        work.flash_reads, work.flash_writes, done.programmed, done.erases
    );
}
