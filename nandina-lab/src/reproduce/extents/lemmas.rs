//! Section 5: each lemma on small maps whose work is counted exactly.
//!
//! Figures here are counts. They are the same on every machine.

use nandina_ftl::mapping::registry::by_name;
use nandina_ftl::mapping::{Extent, Mapping, Space};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::LabError;
use crate::replay::canonical;
use crate::reproduce::{Experiment, Row};

/// Bits of the spaces, the largest last.
pub const BITS: [u32; 4] = [8, 16, 24, 31];
/// Extents in a map, the most last.
const EXTENTS: [usize; 3] = [1 << 10, 1 << 13, 1 << 16];
/// Look-ups of which the mean is taken.
const LOOK_UPS: usize = 10_000;

/// What the claims need of the lemmas.
#[derive(Clone, Debug, Default)]
pub struct Lemmas {
    /// Lemma 5.1, for each of [`BITS`]: most nodes for an aligned extent, LIS and BIS.
    pub nodes: Vec<[u64; 2]>,
    /// Lemma 5.4, for each of [`BITS`]: most canonical extents.
    pub canonical: Vec<u64>,
    /// Lemma 5.3, for each of [`BITS`]: entries of a look-up of one unit in VET.
    pub query: Vec<f64>,
    /// Lemma 5.2, for each of [`BITS`]: entries of the worst write into an empty VET, LIS and BIS.
    pub update: Vec<[u64; 2]>,
    /// Of these, entries that are touched to pass what is not mapped.
    pub holes: Vec<u64>,
    /// Lemma 5.6, for each of the spaces from 2^16 on: entries of a look-up in the y-fast trie.
    pub y_fast: Vec<f64>,
    /// Lemma 5.6: its bytes for an extent, for each of [`EXTENTS`].
    pub y_fast_bytes: Vec<f64>,
    /// Lemma 5.7, for each of [`EXTENTS`]: nodes of a look-up in the balanced tree.
    pub balanced: Vec<f64>,
}

fn space(bits: u32) -> Space {
    Space { logical: 1 << bits, physical: u32::MAX - 1 }
}

/// The extent with the most canonical ones: it is aligned at neither end.
fn worst(bits: u32) -> Extent {
    Extent::new(1, (1 << bits) - 2)
}

/// Makes a mapping with room for `runs` extents, and uses it.
fn with<R>(
    name: &str,
    space: Space,
    runs: usize,
    use_it: impl FnOnce(&mut dyn Mapping) -> R,
) -> Result<R, LabError> {
    let entry = by_name(name).ok_or_else(|| LabError(format!("no mapping '{name}'")))?;
    let mut memory = vec![0; (entry.memory)(space, runs)];
    let map = (entry.build)(space, &mut memory);
    let mut map = map.map_err(|refusal| LabError(format!("{name}: {refusal}")))?;
    Ok(use_it(&mut *map))
}

/// Writes an extent; there is room for it.
fn write(map: &mut dyn Mapping, extent: Extent) {
    let done = map.update(extent, extent.start, &mut |_| {});
    assert_eq!(done, Ok(()), "there is room for {extent:?}");
}

/// Entries and nodes for a look-up of a written unit, and bytes for an extent.
///
/// `count` extents of one unit are written at random places first.
fn look_ups(name: &str, bits: u32, count: usize, seed: u64) -> Result<(f64, f64), LabError> {
    with(name, space(bits), 2 * count + 1000, |map| {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        // Even units, so that no two touch.
        let units: Vec<_> =
            (0..count).map(|_| random.random_range(0..1_u32 << (bits - 1)) * 2).collect();
        units.iter().for_each(|&unit| write(map, Extent::new(unit, 1)));
        let work = |map: &dyn Mapping| map.work().probes + map.work().nodes;
        let before = work(map);
        for number in 0..LOOK_UPS {
            let unit = units[number * 7919 % count];
            assert_eq!(map.look_up(Extent::new(unit, 1), &mut |_| {}), Ok(()));
        }
        let mean = (work(map) - before) as f64 / LOOK_UPS as f64;
        let mut runs = 0;
        map.walk(&mut |_| runs += 1);
        (mean, map.bytes().used as f64 / f64::from(runs))
    })
}

impl Lemmas {
    /// Counts everything.
    pub fn count(seed: u64) -> Result<Self, LabError> {
        let mut lemmas = Self::default();
        for bits in BITS {
            let mut nodes = [0; 2];
            let mut update = [0; 2];
            for (at, name) in ["vet-lis", "vet"].into_iter().enumerate() {
                for level in 0..bits {
                    // Not at 0, where every level is aligned.
                    let length = 1 << level;
                    let made = with(name, space(bits), 10, |map| {
                        write(
                            map,
                            Extent::new(if length < 1 << (bits - 1) { length } else { 0 }, length),
                        );
                        map.entries() as u64
                    })?;
                    nodes[at] = nodes[at].max(made);
                }
                update[at] = with(name, space(bits), 100, |map| {
                    write(map, worst(bits));
                    map.work().probes
                })?;
            }
            lemmas.nodes.push(nodes);
            lemmas.update.push(update);
            lemmas.holes.push(with("vet", space(bits), 100, |map| {
                assert_eq!(map.look_up(worst(bits), &mut |_| {}), Ok(()));
                map.work().probes
            })?);
            // The extent that is aligned at neither end; in the least space every extent.
            let mut most = canonical(worst(bits));
            if bits == BITS[0] {
                let ends = |start| start + 1..=1_u32 << bits;
                let all = (0..1 << bits).flat_map(|start| ends(start).map(move |end| (start, end)));
                most = all
                    .map(|(start, end)| canonical(Extent::between(start, end)))
                    .max()
                    .unwrap_or(most);
            }
            lemmas.canonical.push(most);
            lemmas.query.push(look_ups("vet", bits, 100, seed)?.0);
            if bits >= 16 {
                lemmas.y_fast.push(look_ups("emt-yfast", bits, EXTENTS[1], seed)?.0);
            }
        }
        for count in EXTENTS {
            lemmas.y_fast_bytes.push(look_ups("emt-yfast", 31, count, seed)?.1);
            lemmas.balanced.push(look_ups("emt", 31, count, seed)?.0);
        }
        Ok(lemmas)
    }

    /// The figures as a table.
    pub fn experiment(&self) -> Experiment {
        let mut rows = Vec::new();
        let config = |bits: u32| format!("space of 2^{bits} units");
        for (at, bits) in BITS.into_iter().enumerate() {
            let config = config(bits);
            for (way, system) in ["vet-lis", "vet"].into_iter().enumerate() {
                let nodes = self.nodes[at][way] as f64;
                rows.push(Row::alone(
                    system,
                    &config,
                    "most nodes for a canonical extent",
                    nodes,
                    "nodes",
                ));
                let update = self.update[at][way] as f64;
                rows.push(Row::alone(
                    system,
                    &config,
                    "entries for the worst write",
                    update,
                    "entries",
                ));
            }
            let holes = self.holes[at] as f64;
            rows.push(Row::alone("vet", &config, "of these to pass holes", holes, "entries"));
            let most = self.canonical[at] as f64;
            rows.push(Row::alone("vet", &config, "most canonical extents", most, "extents"));
            rows.push(Row::alone(
                "vet",
                &config,
                "entries for a look-up, 100 extents",
                self.query[at],
                "entries",
            ));
        }
        for (bits, entries) in BITS.into_iter().skip(1).zip(&self.y_fast) {
            let metric = "entries for a look-up, 8,192 extents";
            rows.push(Row::alone("emt-yfast", &config(bits), metric, *entries, "entries"));
        }
        for (at, count) in EXTENTS.into_iter().enumerate() {
            let config = format!("{count} extents of one unit");
            let bytes = self.y_fast_bytes[at];
            rows.push(Row::alone("emt-yfast", &config, "bytes for an extent", bytes, "bytes"));
            rows.push(Row::alone(
                "emt",
                &config,
                "nodes for a look-up",
                self.balanced[at],
                "nodes",
            ));
        }
        Experiment::of("lemmas", "Section 5: the lemmas, by exact counts", rows)
    }

    /// The base-two logarithm of the most extents of [`EXTENTS`].
    pub fn log_most() -> f64 {
        (EXTENTS[2] as f64).log2()
    }
}
