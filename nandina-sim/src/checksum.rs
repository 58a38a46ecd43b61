//! The unit of a chip's controller that computes checksums.
//!
//! Each page that is read or programmed passes through it, so it takes the fastest way that the
//! processor has.

use crc_fast::{CrcAlgorithm, Digest};

/// A checksum of which no byte has passed.
pub fn begun() -> Digest {
    Digest::new(CrcAlgorithm::Crc32Iscsi)
}

/// The checksum after these pieces have passed, too.
pub fn after(mut sum: Digest, pieces: &[&[u8]]) -> u32 {
    pieces.iter().for_each(|piece| sum.update(piece));
    sum.finalize() as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The check value of CRC-32C, and bytes long enough for every way to compute it.
    #[test]
    fn it_is_crc_32c() {
        let crc = crc::Crc::<u32>::new(&crc::CRC_32_ISCSI);
        assert_eq!(after(begun(), &[b"1234", b"56789"]), 0xE306_9283);
        let bytes: Vec<u8> = (0..20_000u32).map(|byte| (byte * 7 / 8) as u8).collect();
        for length in (0..300).chain([511, 512, 2048, 4096, 8191, 16_384, 20_000]) {
            let (first, rest) = bytes[..length].split_at(length / 3);
            let sum = crc.checksum(&bytes[..length]);
            assert_eq!(after(begun(), &[first, rest]), sum, "{length} bytes");
        }
    }
}
