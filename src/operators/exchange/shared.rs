//! A value that all workers of a process share for as long as one of them holds it.

use std::sync::{Arc, Mutex, PoisonError, Weak};

/// A place for a value that the workers of a process share. The first worker that asks for the value makes it; it is
/// dropped when the last worker drops its handle.
///
/// ```
/// use std::sync::Arc;
///
/// use nigh::operators::exchange::Shared;
///
/// let shared: Shared<Vec<u32>> = Shared::default();
/// let first = shared.of(|| vec![1]);
/// let second = shared.of(|| vec![2]);
/// assert!(Arc::ptr_eq(&first, &second));
/// assert_eq!(*second, [1]);
/// ```
#[derive(Debug)]
pub struct Shared<T>(Mutex<Weak<T>>);

impl<T> Default for Shared<T> {
    fn default() -> Shared<T> {
        Shared(Mutex::default())
    }
}

impl<T> Shared<T> {
    /// Returns the value that workers of this process hold now; if none holds one, `make` makes it.
    pub fn of(&self, make: impl FnOnce() -> T) -> Arc<T> {
        let mut shared = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        shared.upgrade().unwrap_or_else(|| {
            let value = Arc::new(make());
            *shared = Arc::downgrade(&value);
            value
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workers_share_one_value_until_the_last_drops_it() {
        let shared: Shared<u32> = Shared::default();
        let first = shared.of(|| 1);
        assert!(Arc::ptr_eq(&first, &shared.of(|| 2)));
        drop(first);
        assert_eq!(*shared.of(|| 3), 3);
    }
}
