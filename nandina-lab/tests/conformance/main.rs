//! The conformance suite: every check runs for every system of the registry.
//!
//! A check that concerns some systems only, or whose bound depends on how a system writes, asks the
//! description of the system for it, never its key.
//!
//! A check takes a system and returns what is wrong. `canary` holds systems that are broken on
//! purpose; the suite must detect each of them.

mod analysis;
mod anchors;
mod atomic;
mod batches;
mod blamed;
mod buffer;
mod buffer_costs;
mod buffer_power;
mod caches;
mod canary;
mod checkpoints;
mod close;
mod deaf;
mod decay;
mod evictions;
mod faults;
mod folds;
mod formats;
mod full;
mod geometry;
mod golden;
mod hardships;
mod harness;
mod hostile;
mod idle;
mod left_over;
mod lost_nodes;
mod media;
mod mended;
mod merge;
mod miscounted;
mod model;
mod mounts;
mod newest;
mod open;
mod options;
mod pairs;
mod plan;
mod power;
mod promise;
mod ranges;
mod rebalancing;
mod reserve;
mod rollback;
mod rosette;
mod searched;
mod session_ends;
mod sessions;
mod settling;
mod torn;
mod trusting;
mod unmarked;
mod unopened;
mod victims;
mod voided;
mod wear;
mod whole;
