//! Integers as keys: bytes that order as the integers do.

/// The key of an unsigned 32-bit integer.
pub const fn from_u32(number: u32) -> [u8; 4] {
    number.to_be_bytes()
}

/// The key of an unsigned 64-bit integer.
pub const fn from_u64(number: u64) -> [u8; 8] {
    number.to_be_bytes()
}

/// The key of a signed 32-bit integer; negative numbers come first.
pub const fn from_i32(number: i32) -> [u8; 4] {
    (number as u32 ^ 1 << 31).to_be_bytes()
}

/// The key of a signed 64-bit integer; negative numbers come first.
pub const fn from_i64(number: i64) -> [u8; 8] {
    (number as u64 ^ 1 << 63).to_be_bytes()
}

/// The integer of a key made by [`from_u32`].
pub const fn to_u32(key: [u8; 4]) -> u32 {
    u32::from_be_bytes(key)
}

/// The integer of a key made by [`from_u64`].
pub const fn to_u64(key: [u8; 8]) -> u64 {
    u64::from_be_bytes(key)
}

/// The integer of a key made by [`from_i32`].
pub const fn to_i32(key: [u8; 4]) -> i32 {
    (u32::from_be_bytes(key) ^ 1 << 31) as i32
}

/// The integer of a key made by [`from_i64`].
pub const fn to_i64(key: [u8; 8]) -> i64 {
    (u64::from_be_bytes(key) ^ 1 << 63) as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_order_as_their_integers() {
        let numbers = [i64::MIN, i64::from(i32::MIN), -256, -1, 0, 1, 255, 256, i64::MAX];
        assert!(numbers.map(from_i64).is_sorted());
        assert_eq!(numbers.map(|number| to_i64(from_i64(number))), numbers);
        let numbers = [i32::MIN, -256, -1, 0, 1, 255, 256, i32::MAX];
        assert!(numbers.map(from_i32).is_sorted());
        assert_eq!(numbers.map(|number| to_i32(from_i32(number))), numbers);
        let numbers = [0, 1, 255, 256, u32::MAX];
        assert!(numbers.map(from_u32).is_sorted());
        assert_eq!(numbers.map(|number| to_u32(from_u32(number))), numbers);
        assert_eq!(to_u64(from_u64(u64::MAX - 1)), u64::MAX - 1);
    }
}
