//! One space for all volumes of a trace: one behind the other, in the order of their first request.

use super::account::Account;
use super::request::Request;

/// Each volume begins at a multiple of this, so that pages and their tables stay aligned.
const ALIGNMENT: u64 = 1 << 20;

/// Where each volume begins.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Layout {
    starts: Vec<u64>,
    bytes: u64,
}

impl Layout {
    /// The layout of the volumes of a trace.
    ///
    /// A volume ends behind the last byte that a request names: traces do not state sizes.
    pub fn of(account: &Account) -> Self {
        let mut bytes = 0u64;
        let mut start = |end: u64| {
            let start = bytes.next_multiple_of(ALIGNMENT);
            bytes = start + end;
            start
        };
        let starts = account.volumes.iter().map(|volume| start(volume.end)).collect();
        Self { starts, bytes }
    }

    /// The layout of one volume of this many bytes.
    pub fn single(bytes: u64) -> Self {
        Self { starts: vec![0], bytes }
    }

    /// Bytes of the whole space.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The first byte of the request in the whole space.
    ///
    /// A request to a volume that the trace did not have lies behind the space.
    pub fn place(&self, request: &Request) -> u64 {
        self.starts.get(request.volume).unwrap_or(&self.bytes) + request.start
    }
}
