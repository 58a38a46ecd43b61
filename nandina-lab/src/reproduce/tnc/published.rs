//! The paper's values, with the place of each.
//!
//! What is printed stays as printed, also where the paper contradicts itself.

/// Table 1: the shrink ratios in per cent.
pub const RATIOS: [u64; 3] = [25, 50, 75];

/// Table 1: the buffers in nodes.
pub const BUFFERS: [u64; 5] = [5_000, 10_000, 15_000, 20_000, 25_000];

/// Table 1: nodes without and with TNC, by ratio and by buffer; fanout 8.
///
/// 2,225,334 is printed twice; the share beside the second belongs to about 2,174,000.
pub const TABLE_1: [[(u64, u64); 5]; 3] = [
    [
        (2_161_091, 38_298),
        (2_211_627, 31_623),
        (2_191_395, 24_632),
        (2_244_013, 20_010),
        (2_192_044, 12_492),
    ],
    [
        (2_163_769, 36_273),
        (2_250_872, 31_570),
        (2_225_334, 22_583),
        (2_225_334, 20_002),
        (2_183_596, 12_457),
    ],
    [
        (2_215_993, 36_759),
        (2_290_769, 32_578),
        (2_244_385, 29_956),
        (2_238_633, 20_002),
        (2_205_709, 12_958),
    ],
];

/// Section 8, parameter list: the most nodes at fanout 8. Table 2 prints 23,189.
pub const NODES: u64 = 23_158;

/// Table 1, without a shrink: the fewest nodes written.
pub const NEVER_SHRUNK: u64 = 12_457;

/// A row of Table 2.
pub struct Fanout {
    /// Most children of a node.
    pub fanout: u64,
    /// Nodes without TNC, with it, and at most in RAM.
    pub nodes: [u64; 3],
    /// MiB of RAM at most.
    pub ram: f64,
    /// MiB written, as printed.
    ///
    /// From fanout 64 on these are no products of the other columns: they count up by one.
    pub flash: f64,
}

/// Table 2.
pub const TABLE_2: [Fanout; 7] = [
    Fanout { fanout: 4, nodes: [1_134_784, 48_392, 64_801], ram: 10.88, flash: 8.12 },
    Fanout { fanout: 8, nodes: [2_168_308, 12_405, 23_189], ram: 6.72, flash: 3.6 },
    Fanout { fanout: 16, nodes: [1_304_212, 3_577, 9_662], ram: 5.16, flash: 1.91 },
    Fanout { fanout: 32, nodes: [1_024_363, 1_317, 4_669], ram: 4.77, flash: 1.35 },
    Fanout { fanout: 64, nodes: [1_140_118, 3_420, 3_671], ram: 7.34, flash: 2.35 },
    Fanout { fanout: 128, nodes: [767_005, 1_245, 1_586], ram: 6.27, flash: 3.35 },
    Fanout { fanout: 256, nodes: [930_236, 1_641, 980], ram: 7.7, flash: 4.35 },
];

/// Table 3: the fanouts.
pub const FANOUTS: [u64; 4] = [8, 16, 32, 64];

/// Table 3: MB of files, and the most nodes at each fanout.
pub const TABLE_3: [(u64, [u64; 4]); 6] = [
    (50, [3_302, 1_456, 703, 351]),
    (100, [6_364, 2_818, 1_355, 671]),
    (200, [12_925, 4_620, 2_224, 1_106]),
    (400, [23_518, 8_978, 4_282, 2_861]),
    (600, [43_320, 18_426, 8_846, 5_840]),
    (800, [44_948, 22_070, 12_273, 8_527]),
];

/// Bytes of the paper's smallest buffer: 5,000 nodes of 304.
pub const SMALLEST_BYTES: u64 = 1_520_000;
