//! What the workers of one process share in memory: one value of each type, for as long as one of
//! them holds it.

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// The values that the workers of a process share. A process makes one of these for all of its
/// workers. The first worker that asks for a value of a type makes it, and it is dropped with the
/// last handle, so no value stays from one step to the next.
///
/// ```
/// use std::sync::Arc;
///
/// use nigh_exchange::SharedValues;
///
/// let shared = SharedValues::default();
/// let first: Arc<Vec<u32>> = shared.of(|| vec![1]);
/// let second = shared.of(|| vec![2]);
/// assert!(Arc::ptr_eq(&first, &second));
/// assert_eq!((&*second, *shared.of(|| 3u64)), (&vec![1], 3));
/// ```
#[derive(Debug, Default)]
pub struct SharedValues(Mutex<HashMap<TypeId, Weak<dyn Any + Send + Sync>>>);

impl SharedValues {
    /// Returns the value of this type that workers of the process hold now; if none holds one,
    /// `make` makes it.
    pub fn of<T: Any + Send + Sync>(&self, make: impl FnOnce() -> T) -> Arc<T> {
        let mut values = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let held = values.get(&TypeId::of::<T>()).and_then(Weak::upgrade);
        if let Some(Ok(value)) = held.map(Arc::downcast) {
            return value;
        }
        let value = Arc::new(make());
        let weak: Weak<T> = Arc::downgrade(&value);
        values.insert(TypeId::of::<T>(), weak);
        value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workers_share_one_value_until_the_last_drops_it() {
        let shared = SharedValues::default();
        let first = shared.of(|| 1u32);
        assert!(Arc::ptr_eq(&first, &shared.of(|| 2u32)));
        drop(first);
        assert_eq!(*shared.of(|| 3u32), 3);
    }
}
