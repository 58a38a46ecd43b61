//! `rosette-nor` compared with a map: in peace, under cuts at every operation, and under faults.

mod costs;
mod cuts;
mod formats;
mod full;
mod model;
mod rejects;
mod series;
mod swarms;
