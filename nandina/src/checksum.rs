//! The checksum of a page: CRC-32C (Castagnoli).
//!
//! Where the processor has an instruction for it, as hosts do, the feature `std` uses that; the
//! bytes on the medium are the same.

/// Computes the checksum of pieces of a page: CRC-32C, as if they were one.
///
/// A driver may have a unit for it.
pub type Sum<'s> = dyn FnMut(&[&[u8]]) -> u32 + 's;

/// CRC-32C over the concatenation of some pieces of a page.
#[cfg(feature = "std")]
pub fn of(pieces: &[&[u8]]) -> u32 {
    pieces.iter().fold(0, |sum, piece| crc32c::crc32c_append(sum, piece))
}

/// CRC-32C over the concatenation of some pieces of a page.
///
/// Its table takes 1 KiB of constants.
#[cfg(not(feature = "std"))]
pub fn of(pieces: &[&[u8]]) -> u32 {
    static CHECKSUM: crc::Crc<u32> = crc::Crc::<u32>::new(&crc::CRC_32_ISCSI);
    let mut digest = CHECKSUM.digest();
    for piece in pieces {
        digest.update(piece);
    }
    digest.finalize()
}

#[cfg(test)]
mod tests {
    /// The check value of CRC-32C: RFC 3720, appendix B.4, and all CRC catalogues.
    #[test]
    fn it_is_crc_32c_with_and_without_the_processors_help() {
        assert_eq!(super::of(&[b"1234", b"56789"]), 0xE306_9283);
        assert_eq!(super::of(&[&[0; 32], &[]]), 0x8A91_36AA);
        assert_eq!(super::of(&[&[], &[0xFF; 32]]), 0x62A8_AB43);
    }
}
