//! The clock of a replay: processor time of this thread, where the system has such a clock.
//!
//! So what else runs on the machine does not count. Elsewhere it is the time that has passed.

/// Nanoseconds since a time that does not change while the program runs.
#[cfg(target_os = "linux")]
pub fn nanoseconds() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Nanoseconds since the first call.
#[cfg(not(target_os = "linux"))]
pub fn nanoseconds() -> u64 {
    static FIRST: std::sync::OnceLock<std::time::Instant> = std::sync::OnceLock::new();
    FIRST.get_or_init(std::time::Instant::now).elapsed().as_nanos() as u64
}
