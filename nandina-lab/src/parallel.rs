//! Work on a list in two threads.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::LabError;

/// Calls `run` for each item, two at a time. The results are in the order of the items.
pub fn each<T: Sync, R: Send>(
    items: &[T],
    run: impl Fn(&T) -> Result<R, LabError> + Sync,
) -> Result<Vec<R>, LabError> {
    let (next, done) = (AtomicUsize::new(0), Mutex::new(Vec::with_capacity(items.len())));
    let worker = || {
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(item) = items.get(at) else { break };
            let result = run(item);
            done.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).push((at, result));
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(worker);
        worker();
    });
    let mut done = done.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner());
    done.sort_by_key(|&(at, _)| at);
    done.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_in_order_and_an_error_is_returned() {
        let items: Vec<u64> = (0..100).collect();
        let squares = each(&items, |&item| Ok(item * item)).unwrap();
        assert!(items.iter().zip(squares).all(|(&item, square)| square == item * item));
        let fails = |&item: &u64| if item == 70 { Err(LabError("70".into())) } else { Ok(()) };
        assert_eq!(each(&items, fails).unwrap_err().to_string(), "70");
    }
}
