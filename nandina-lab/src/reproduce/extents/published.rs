//! The paper's values, with the place of each.
//!
//! What is printed stays as printed, also where the paper contradicts itself.

/// The paper's traces, in its order.
pub const TRACES: [&str; 4] = ["finance", "homes", "wdev", "wsf"];

/// Table 2: MB of VET with BIS and with LIS.
pub const TABLE_2: [[f64; 2]; 4] = [[15.07, 16.89], [23.25, 28.50], [1.15, 1.63], [4.69, 6.03]];

/// Table 3: µs of a write and of a read, with BIS and with LIS.
pub const TABLE_3: [[[f64; 2]; 2]; 4] = [
    [[16.84, 2.17], [24.63, 2.47]],
    [[4.43, 0.99], [8.25, 1.07]],
    [[10.29, 0.95], [9.44, 1.00]],
    [[9.64, 1.44], [12.97, 1.53]],
];

/// Table 4: MB, µs of a write, µs of a read, in `cuckoo-hash`, `uthash` and `myhash`.
pub const TABLE_4: [[[f64; 3]; 3]; 4] = [
    [[18.06, 17.66, 1.78], [36.03, 19.05, 2.24], [15.07, 16.84, 2.17]],
    [[27.75, 4.93, 1.18], [54.73, 5.20, 1.43], [23.25, 4.43, 0.99]],
    [[1.37, 12.59, 1.11], [2.74, 18.07, 1.36], [1.15, 10.29, 0.95]],
    [[5.59, 10.85, 1.51], [10.99, 13.48, 2.00], [4.69, 9.64, 1.44]],
];

/// §6.3.1, Fig. 15: per cent of the page map, of VET and of EMT.
pub const OF_PMT: [[f64; 2]; 4] = [[2.3, 0.7], [4.3, 3.7], [2.3, 0.9], [27.9, 9.5]];

/// §6.3.1, Fig. 15: per cent of the hybrid map, of VET and of EMT. 19.5 does not fit to 9.5.
pub const OF_HMT: [[f64; 2]; 4] = [[5.3, 1.6], [9.8, 8.5], [5.2, 2.1], [63.8, 19.5]];

/// The hybrid map by the page map.
///
/// The paper does not print its formula. Its percentages of the one and of the other map divide
/// to 0.437 to 0.438, which is 7/16.
pub const HMT_BY_PMT: f64 = 7.0 / 16.0;

/// §5.2.3, Fig. 12: canonical extents that a write generates, of the trace with the most: finance.
pub const GENERATED_MOST: f64 = 2.79;
/// §5.2.1, Fig. 12: what a write overlaps is less than this.
pub const OVERLAPPED_MOST: f64 = 1.45;
/// §5.2.2, Fig. 12: what a read finds is at most this.
pub const FOUND_MOST: f64 = 1.19;

/// §6.3.2: VET by EMT at 1 TB, and the page map by the extent maps.
pub const SPEW_VET_BY_EMT: f64 = 7.0;
pub const SPEW_PMT_BY_EXTENTS: f64 = 100.0;

/// §6.2.1, Fig. 13: speed and L2 hits that PF-VET gains over PD-VET at most, in per cent.
pub const POINTER_FREE_FASTER: f64 = 10.0;

/// Bytes of a node of the paper's EMT, for which its percentages are explained best.
///
/// An assumption: on homes each extent is one leaf of VET; with leaves and internal nodes of 20
/// bytes, VET's 23.25 MB and EMT's 3.7 % agree from about 28 bytes on.
pub const EMT_NODE: f64 = 32.0;
