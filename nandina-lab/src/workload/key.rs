//! The keys of a file system's items, as bytes whose order is ReiserFS's.
//!
//! ```text
//! 0 directory u32   object id of the directory that the item's object was made in
//! 4 object u32      object id
//! 8 offset u60, type u4   where in the object the item starts, then its kind
//! ```
//!
//! Numbers are big-endian. 16 bytes are what ReiserFS's keys of format 3.6 take; its order is by
//! directory, object, offset and type, and so is the order of these bytes (on disk it stores the
//! type before the offset and compares it after). The keys are not compressed: with values of 4
//! bytes, 202 entries fill a page of 4 KiB, and the trees come out as high as in the paper.

/// Bytes of a key.
pub const KEY_BYTES: usize = 16;

/// A key as bytes.
pub type Key = [u8; KEY_BYTES];

/// Kinds of items, with ReiserFS's numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// An object's metadata, one item for each object, at offset 0.
    StatData = 0,
    /// Pointers to blocks of a file.
    Indirect = 1,
    /// The bytes of a small file.
    Direct = 2,
    /// A name in a directory; the offset is the name's hash.
    Entry = 3,
}

/// The key of an item.
pub fn key(directory: u32, object: u32, offset: u64, kind: Kind) -> Key {
    let mut key = [0; KEY_BYTES];
    key[..4].copy_from_slice(&directory.to_be_bytes());
    key[4..8].copy_from_slice(&object.to_be_bytes());
    key[8..].copy_from_slice(&(offset << 4 | kind as u64).to_be_bytes());
    key
}

/// Names with the same hash are distinguished by these low bits of the offset.
pub const GENERATIONS: u64 = 128;

/// The hash `r5` of a name, all 32 bits: the default of ReiserFS and of UBIFS.
pub(super) fn r5(name: &str) -> u32 {
    name.bytes().map(u32::from).fold(0u32, |hash, byte| {
        hash.wrapping_add(byte << 4).wrapping_add(byte >> 4).wrapping_mul(11)
    })
}

/// ReiserFS's default hash of a name (`r5`).
///
/// Its low bits have room for the generation.
pub fn hash(name: &str) -> u64 {
    // Offsets 1 and 2 are those of `.` and `..`.
    let hash = u64::from(r5(name)) & 0x7FFF_FF80;
    if hash == 0 { GENERATIONS } else { hash }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_order_by_directory_object_offset_and_kind() {
        let ordered = [
            key(1, 2, 0, Kind::StatData),
            key(1, 2, 1, Kind::Entry),
            key(1, 2, 0x7FFF_FF80, Kind::Entry),
            key(2, 3, 0, Kind::StatData),
            key(2, 3, 1, Kind::Indirect),
            key(2, 3, 1, Kind::Direct),
            key(2, 3, 1 << 40, Kind::Indirect),
            key(2, 4, 0, Kind::StatData),
            key(3, 1, 0, Kind::StatData),
        ];
        assert!(ordered.is_sorted_by(|a, b| a < b));
    }

    #[test]
    fn hashes_leave_room_for_generations_and_keep_neighbours_close() {
        assert_eq!(hash("a") % GENERATIONS, 0);
        assert_ne!(hash(""), 0);
        assert_ne!(hash("1000"), hash("1009"));
        assert!(hash("1009") - hash("1000") < 1 << 16, "names that count on are near each other");
    }
}
