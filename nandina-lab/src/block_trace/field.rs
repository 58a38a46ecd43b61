//! Fields of a line as numbers. A mistake names the field, its text and the expected unit.

use super::request::SECTOR;

/// Bytes of a volume, at most: 8 PiB. A thousand of them have addresses of 64 bits.
pub(super) const BYTES_MAX: u64 = 1 << 53;

/// The beginning of a field, in one line.
pub(super) fn shown(text: &str) -> String {
    text.chars().take(30).map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// What is wrong with a field: its number from 1 and name, its text, and what was expected.
pub(super) fn wrong(field: usize, name: &str, text: &str, expected: &str) -> String {
    format!("field {field}, {name}: '{}': {expected} was expected", shown(text))
}

/// The fields of a line, if there are exactly so many as `columns` names.
pub(super) fn exactly<'l, const N: usize>(
    mut fields: impl Iterator<Item = &'l str>,
    columns: &str,
) -> Result<[&'l str; N], String> {
    let mut found = [""; N];
    for (at, field) in found.iter_mut().enumerate() {
        *field = fields.next().ok_or_else(|| number_wrong(&at.to_string(), columns))?;
    }
    match fields.next() {
        None => Ok(found),
        Some(_) => Err(number_wrong(&format!("more than {N}"), columns)),
    }
}

/// What is wrong with a line of another number of fields.
pub(super) fn number_wrong(fields: &str, columns: &str) -> String {
    let s = if fields == "1" { "" } else { "s" };
    format!("{fields} field{s}: {columns} was expected")
}

/// Refuses a field that is no whole number of 32 bits.
pub(super) fn whole(field: usize, name: &str, text: &str) -> Result<(), String> {
    text.parse().map(|_: u32| ()).map_err(|_| wrong(field, name, text, "a whole number"))
}

/// A whole number of bytes.
pub(super) fn bytes(field: usize, name: &str, text: &str) -> Result<u64, String> {
    let number = text.parse().ok().filter(|&bytes: &u64| bytes <= BYTES_MAX);
    number.ok_or_else(|| wrong(field, name, text, "a whole number of bytes, 0 to 2^53,"))
}

/// A whole number of sectors, in bytes.
pub(super) fn sectors(field: usize, name: &str, text: &str) -> Result<u64, String> {
    let number = text.parse().ok().filter(|&sectors: &u64| sectors <= BYTES_MAX / SECTOR);
    number.map(|sectors| sectors * SECTOR).ok_or_else(|| {
        wrong(field, name, text, "a whole number of sectors of 512 bytes, 0 to 2^44,")
    })
}

/// A unit of time in a trace.
#[derive(Clone, Copy)]
pub(super) struct TimeUnit {
    /// Its name in mistakes, in the plural.
    pub name: &'static str,
    /// Nanoseconds.
    pub ns: u64,
}

/// Seconds, milliseconds, microseconds and nanoseconds.
pub(super) const SECONDS: TimeUnit = TimeUnit { name: "seconds", ns: 1_000_000_000 };
pub(super) const MILLISECONDS: TimeUnit = TimeUnit { name: "milliseconds", ns: 1_000_000 };
pub(super) const MICROSECONDS: TimeUnit = TimeUnit { name: "microseconds", ns: 1_000 };
pub(super) const NANOSECONDS: TimeUnit = TimeUnit { name: "nanoseconds", ns: 1 };
/// The unit of Windows' file times.
pub(super) const TICKS: TimeUnit = TimeUnit { name: "steps of 100 ns", ns: 100 };

/// A time as a whole number of `unit`, in nanoseconds.
pub(super) fn whole_time(field: usize, text: &str, unit: TimeUnit) -> Result<Option<u64>, String> {
    let time = text.parse::<u64>().ok().and_then(|time| time.checked_mul(unit.ns));
    // File times are so long that their nanoseconds take all 64 bits until the year 2185.
    time.map(Some)
        .ok_or_else(|| wrong(field, "time", text, &format!("a whole number of {}", unit.name)))
}

/// A time as a number of `unit` with or without decimals, in nanoseconds.
pub(super) fn time(field: usize, text: &str, unit: TimeUnit) -> Result<Option<u64>, String> {
    let plain = text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let time = text.parse::<f64>().ok().filter(|_| plain).map(|time| time * unit.ns as f64);
    match time.filter(|&ns| ns < u64::MAX as f64) {
        Some(ns) => Ok(Some(ns.round() as u64)),
        None => Err(wrong(field, "time", text, &format!("a number of {}", unit.name))),
    }
}
