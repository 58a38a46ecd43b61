//! The workloads of Table 1, and the shapes that were fitted to them.
//!
//! Fitted to: the columns of Table 1; canonical extents that a write generates (Fig. 12); the bytes
//! of VET with BIS at the end (Table 2) with nodes of 20 bytes; the bytes of EMT, which the
//! percentages of §6.3.1 imply, with nodes of 32 bytes; the extents that a write overlaps.

use super::objects::Shape;

/// A workload of Table 1, and how one like it is made.
#[derive(Debug)]
pub struct Recipe {
    /// By which users choose it: the paper's name in lower case.
    pub key: &'static str,
    /// What the paper says it is.
    pub description: &'static str,
    /// Least and most GiB of its address space.
    pub space_gib: (u64, u64),
    /// Writes.
    pub writes: u64,
    /// Mean size of a write in KiB, in the least and in the most space.
    pub write_kib: (f64, f64),
    /// Reads.
    pub reads: u64,
    /// Mean size of a read in KiB.
    pub read_kib: Option<f64>,
    /// The objects that requests name; `None` for `spew`.
    pub(super) shape: Option<Shape>,
}

impl Recipe {
    /// Writes and reads.
    pub const fn requests(&self) -> u64 {
        self.writes + self.reads
    }
}

/// The recipe of that key.
pub fn by_key(key: &str) -> Option<&'static Recipe> {
    RECIPES.iter().find(|recipe| recipe.key == key)
}

/// Every recipe, in the order of Table 1.
pub static RECIPES: &[Recipe] = &[
    Recipe {
        key: "finance",
        description: "OLTP application",
        space_gib: (644, 644),
        writes: 8_200_000,
        write_kib: (3.7, 3.7),
        reads: 2_500_000,
        read_kib: Some(2.5),
        shape: Some(Shape {
            objects: 92_000,
            per_area: 400,
            pitch: 18,
            window: 50,
            inside: 700,
            skew: 2.0,
            sizes: &[(2, 110), (4, 150), (8, 370), (16, 370)],
            natural: 0,
            paged: 0,
            partial: 340,
            grain: 1,
            reads: &[(2, 300), (4, 400), (8, 250), (16, 50)],
            found: 930,
        }),
    },
    Recipe {
        key: "homes",
        description: "MS exchange servers",
        space_gib: (542, 542),
        writes: 16_000_000,
        write_kib: (4.0, 4.0),
        reads: 400_000,
        read_kib: Some(12.0),
        shape: Some(Shape {
            objects: 690_000,
            per_area: 16,
            pitch: 8,
            window: 1000,
            inside: 1000,
            skew: 2.0,
            sizes: &[(8, 1000)],
            natural: 1000,
            paged: 0,
            partial: 0,
            grain: 8,
            reads: &[(8, 500), (24, 250), (48, 125), (64, 125)],
            found: 450,
        }),
    },
    Recipe {
        key: "wdev",
        description: "MS exchange servers",
        space_gib: (51, 51),
        writes: 1_100_000,
        write_kib: (8.2, 8.2),
        reads: 230_000,
        read_kib: Some(12.6),
        shape: Some(Shape {
            objects: 16_500,
            per_area: 32,
            pitch: 64,
            window: 100,
            inside: 900,
            skew: 2.0,
            sizes: &[(8, 510), (16, 320), (32, 105), (64, 65)],
            natural: 700,
            paged: 160,
            partial: 30,
            grain: 8,
            reads: &[(8, 360), (16, 250), (32, 210), (64, 180)],
            found: 450,
        }),
    },
    Recipe {
        key: "wsf",
        description: "web surfing activity on PC",
        space_gib: (32, 32),
        writes: 300_000,
        write_kib: (22.5, 22.5),
        reads: 93_000,
        read_kib: Some(19.8),
        shape: Some(Shape {
            objects: 52_000,
            per_area: 64,
            pitch: 128,
            window: 1000,
            inside: 1000,
            skew: 1.5,
            sizes: &[(8, 287), (24, 250), (40, 250), (128, 213)],
            natural: 0,
            paged: 740,
            partial: 20,
            grain: 8,
            reads: &[(8, 260), (32, 310), (64, 430)],
            found: 950,
        }),
    },
    Recipe {
        key: "spew",
        description: "Spew workload generator",
        space_gib: (16, 1024),
        writes: 50_000,
        write_kib: (83.8, 376.8),
        reads: 0,
        read_kib: None,
        shape: None,
    },
];
