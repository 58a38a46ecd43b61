//! Synthetic traces: fitted to Table 1, the same for the same seed, and labelled.

use std::path::Path;

use nandina_lab::block_trace::make::{
    Choice, GIB, RECIPES, Recipe, Synthetic, by_key, save, write,
};
use nandina_lab::block_trace::{BlockTrace, Choices};
use nandina_lab::replay::{Stats, Unit};

const CHOICE: Choice = Choice { seed: 1, requests: None, space_gib: None };

fn made(recipe: &'static Recipe, choice: Choice) -> Synthetic {
    Synthetic::new(recipe, choice).unwrap()
}

/// What `trace stats` says of the first requests of a trace.
fn stats(folder: &Path, recipe: &'static Recipe, choice: Choice) -> Stats {
    let path = folder.join("made.csv");
    save(made(recipe, choice), &path, &|_| {}).unwrap();
    let trace = BlockTrace::open(&path, Choices::default()).unwrap();
    let stats = Stats::of(&trace, Unit::SECTOR, &|_| {}).unwrap();
    std::fs::remove_file(&path).unwrap();
    stats
}

/// Whether `ours` differs from `paper` by no more than this part of it.
fn close(ours: f64, paper: f64, part: f64) -> bool {
    (ours / paper - 1.0).abs() <= part
}

#[test]
fn the_columns_of_table_1_are_met_by_the_first_requests_already() {
    let folder = tempfile::tempdir().unwrap();
    for recipe in RECIPES {
        let requests = recipe.requests().min(100_000);
        let choice = Choice { requests: Some(requests), ..CHOICE };
        let stats = stats(folder.path(), recipe, choice);
        let key = recipe.key;
        assert_eq!(stats.account.requests, requests, "{key}");
        assert_eq!(stats.address_space_bytes, recipe.space_gib.0 * GIB, "{key}");
        let share = recipe.writes as f64 / recipe.requests() as f64;
        assert!((stats.write_share - share).abs() < 1e-4, "{key}: {}", stats.write_share);
        let kib = |mean: Option<f64>| mean.unwrap() / 1024.0;
        let write = kib(stats.writes.mean_bytes);
        assert!(close(write, recipe.write_kib.0, 0.03), "{key}: a write has {write} KiB");
        if let Some(paper) = recipe.read_kib {
            // Of homes 2,439 of the requests are reads.
            let read = kib(stats.reads.mean_bytes);
            assert!(close(read, paper, 0.06), "{key}: a read has {read} KiB");
        }
    }
}

#[test]
fn spew_has_the_paper_s_mean_in_the_largest_space_too() {
    let folder = tempfile::tempdir().unwrap();
    let recipe = by_key("spew").unwrap();
    let stats = stats(folder.path(), recipe, Choice { space_gib: Some(1024), ..CHOICE });
    assert_eq!(stats.address_space_bytes, 1024 * GIB);
    assert!(close(stats.writes.mean_bytes.unwrap() / 1024.0, recipe.write_kib.1, 0.015));
    assert_eq!((stats.writes.requests, stats.reads.requests), (50_000, 0));
}

#[test]
fn a_seed_gives_one_trace_and_fewer_requests_its_beginning() {
    for recipe in RECIPES {
        let some = |seed, requests| {
            let choice = Choice { seed, requests: Some(requests), ..CHOICE };
            made(recipe, choice).collect::<Vec<_>>()
        };
        let (whole, other) = (some(1, 2_000), some(2, 2_000));
        assert_eq!(whole, some(1, 2_000));
        assert_eq!(whole[..500], some(1, 500));
        assert_ne!(whole[1..], other[1..], "{}", recipe.key);
    }
}

#[test]
fn a_made_trace_says_that_it_is_synthetic_and_mistakes_are_refused() {
    let recipe = by_key("wsf").unwrap();
    let mut text = Vec::new();
    write(made(recipe, Choice { requests: Some(3), ..CHOICE }), &mut text, &|_| {}).unwrap();
    let text = String::from_utf8(text).unwrap();
    let lines: Vec<_> = text.lines().collect();
    assert!(lines[0].starts_with("# synthetic: nandina trace make wsf, seed 1, 32 GiB, 3 req"));
    assert_eq!((lines[1], lines.len()), ("op,start_sectors,length_sectors", 5));
    let refused = |recipe, choice| Synthetic::new(recipe, choice).err().unwrap().to_string();
    let space = |gib| Choice { space_gib: Some(gib), ..CHOICE };
    assert_eq!(refused(recipe, space(64)), "wsf has 32 GiB: leave --space-gib out");
    assert_eq!(refused(by_key("spew").unwrap(), space(8)), "spew has 16 to 1024 GiB");
    let none = Choice { requests: Some(0), ..CHOICE };
    assert_eq!(refused(recipe, none), "a trace has at least 1 request");
}
