//! Systems above FTLs: what they cost on the chip below, what is refused, and that cuts lose
//! nothing.

mod costs;
mod cuts;
mod events;
mod full;
mod hostile;
mod lookups;
mod worst;
