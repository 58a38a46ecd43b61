//! Whole numbers and bits among bytes, as they are stored on the medium and in tables in RAM: the lowest
//! byte, and the lowest bit of a byte, first.

pub const fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

pub const fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

pub const fn bit(bytes: &[u8], at: usize) -> bool {
    bytes[at / 8] & (1 << (at % 8)) != 0
}

pub const fn set_bit(bytes: &mut [u8], at: usize, to: bool) {
    let (byte, bit) = (&mut bytes[at / 8], 1 << (at % 8));
    *byte = if to { *byte | bit } else { *byte & !bit };
}

/// How many of the bits from `from` to before `to` are set.
pub fn count_bits(bytes: &[u8], from: usize, to: usize) -> u32 {
    let (first, last) = (from.div_ceil(8).min(to.div_ceil(8)), to / 8);
    if first > last {
        return (from..to).filter(|&at| bit(bytes, at)).count() as u32;
    }
    let edges = (from..first * 8).chain(last * 8..to);
    let edges = edges.filter(|&at| bit(bytes, at)).count() as u32;
    edges + bytes[first..last].iter().map(|byte| byte.count_ones()).sum::<u32>()
}
