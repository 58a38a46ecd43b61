//! FTLs on damaged media: errors, never a panic or an endless loop.

use std::path::Path;

use nandina_lab::effort::{Share, sample};
use nandina_lab::hostile::{Outcome, mount_ftl_then_use, mutated};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

/// The corpus of the fuzz target, and random changes to it.
#[test]
fn the_fuzz_corpus_of_ftls_and_mutations_of_it_never_panic() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/corpus/mount_ftl_then_use");
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut corpus: Vec<_> = files.map(|path| std::fs::read(path).unwrap()).collect();
    corpus.sort();
    assert!(corpus.len() > 20, "the corpus is gone");
    let mut random = ChaCha8Rng::seed_from_u64(sample());
    let share = Share::one_in(4);
    let more = share.length(20_000) as usize;
    let (mut used, mut refused) = (0, 0);
    for turn in 0..corpus.len() + more {
        let data = &corpus[turn % corpus.len()];
        let mutation = (turn >= corpus.len()).then(|| mutated(data, &mut random));
        match mount_ftl_then_use(mutation.as_deref().unwrap_or(data)) {
            Outcome::Used => used += 1,
            Outcome::Refused => refused += 1,
        }
    }
    let least = share.least(1_000);
    assert!(used > least && refused > least, "{used} used, {refused} refused");
}
