//! The unit of a chip's controller that computes checksums.
//!
//! Each page that is read or programmed passes through it, so it takes the fastest way that the
//! processor has.

use crc_fast::{CrcAlgorithm, Digest};

/// The fewest bytes for which the way that folds them takes less time than the instruction alone.
const FOLDED_MIN: usize = 256;

/// The checksum of no byte.
pub const NONE: u32 = 0;

/// The checksum of these pieces behind the bytes that have the checksum `sum`.
pub fn after(sum: u32, pieces: &[&[u8]]) -> u32 {
    pieces.iter().fold(sum, |sum, piece| match piece.len() {
        0..FOLDED_MIN => crc32c::crc32c_append(sum, piece),
        _ => {
            // The state of a digest is the checksum before its final inversion.
            let mut digest = Digest::new_with_init_state(CrcAlgorithm::Crc32Iscsi, (!sum).into());
            digest.update(piece);
            digest.finalize() as u32
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The check value of CRC-32C, and bytes long enough for every way to compute it.
    #[test]
    fn it_is_crc_32c() {
        let crc = crc::Crc::<u32>::new(&crc::CRC_32_ISCSI);
        assert_eq!(after(NONE, &[b"1234", b"56789"]), 0xE306_9283);
        let bytes: Vec<u8> = (0..20_000u32).map(|byte| (byte * 7 / 8) as u8).collect();
        for length in (0..300).chain([511, 512, 2048, 4096, 8191, 16_384, 20_000]) {
            let (first, rest) = bytes[..length].split_at(length / 3);
            let sum = crc.checksum(&bytes[..length]);
            assert_eq!(after(NONE, &[first, rest]), sum, "{length} bytes");
        }
    }
}
