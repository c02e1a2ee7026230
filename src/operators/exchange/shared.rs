//! What the workers of a process share for a while.

use std::sync::{Arc, Mutex, PoisonError, Weak};

/// Where the workers of a process find something that they share: the first that asks makes it, and it goes with the
/// last that lets it go.
#[derive(Debug)]
pub struct Shared<T>(Mutex<Weak<T>>);

impl<T> Default for Shared<T> {
    fn default() -> Shared<T> {
        Shared(Mutex::default())
    }
}

impl<T> Shared<T> {
    /// What the workers of this process have at the moment, made by `make` where none of them has any.
    pub fn of(&self, make: impl FnOnce() -> T) -> Arc<T> {
        let mut shared = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        shared.upgrade().unwrap_or_else(|| {
            let made = Arc::new(make());
            *shared = Arc::downgrade(&made);
            made
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workers_have_the_same_one_until_the_last_lets_it_go() {
        let shared: Shared<u32> = Shared::default();
        let first = shared.of(|| 1);
        assert!(Arc::ptr_eq(&first, &shared.of(|| 2)));
        drop(first);
        assert_eq!(*shared.of(|| 3), 3);
    }
}
