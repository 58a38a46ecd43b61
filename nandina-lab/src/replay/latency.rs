//! Modelled latencies of requests: exact mean and maximum, quantiles within 1 %.

use hdrhistogram::Histogram;
use serde::Serialize;

/// Digits that the histogram keeps of a latency.
const DIGITS: u8 = 2;

/// The latencies of requests on a chip, in nanoseconds of its clock.
pub struct Latencies {
    histogram: Histogram<u64>,
    sum: u64,
}

/// A summary of latencies, in microseconds.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize)]
pub struct Latency {
    /// The mean.
    pub mean_us: f64,
    /// Half of the requests took no longer.
    pub p50_us: f64,
    /// 99 % of the requests took no longer.
    pub p99_us: f64,
    /// 99.9 % of the requests took no longer.
    pub p999_us: f64,
    /// The longest.
    pub max_us: f64,
}

impl Latencies {
    pub fn new() -> Self {
        let histogram = Histogram::new(DIGITS).expect("two digits are allowed");
        Self { histogram, sum: 0 }
    }

    pub fn add(&mut self, nanoseconds: u64) {
        // It grows as needed: a new one holds any number.
        let _ = self.histogram.record(nanoseconds);
        self.sum += nanoseconds;
    }

    pub fn summary(&self) -> Latency {
        let us = |nanoseconds: u64| nanoseconds as f64 / 1e3;
        let at = |quantile: f64| us(self.histogram.value_at_quantile(quantile));
        Latency {
            mean_us: us(self.sum) / self.histogram.len().max(1) as f64,
            p50_us: at(0.5),
            p99_us: at(0.99),
            p999_us: at(0.999),
            max_us: us(self.histogram.max()),
        }
    }
}
