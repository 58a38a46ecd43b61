//! `rosette-nor` compared with a map: in peace, under cuts at every operation, and under faults.

mod costs;
mod cuts;
mod formats;
mod full;
mod model;
#[path = "../random/mod.rs"]
mod random;
mod rejects;
mod series;
mod swarms;
