//! The formats, a file each. None knows another, and each reads one line at a time.

pub(super) mod blkparse;
pub(super) mod cloudphysics;
pub(super) mod disksim;
pub(super) mod fio;
pub(super) mod fiu;
pub(super) mod msr;
pub(super) mod own;
pub(super) mod spc;
pub(super) mod ssdsim;
