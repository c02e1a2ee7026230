//! A hasher for maps whose keys are document ids or hashes.
//!
//! It mixes 64 bits at a time ([`mix`](crate::records::mix)) and has no random state, so the order
//! of a map is the same on every machine. It does not resist keys that are chosen to collide.

use std::collections::{HashMap, HashSet};
use std::hash::BuildHasherDefault;

/// Hashes a document id: the same on every machine.
#[derive(Default)]
pub struct DocHasher(u64);

impl std::hash::Hasher for DocHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = crate::records::mix(self.0 ^ u64::from(*byte));
        }
    }

    fn write_u64(&mut self, word: u64) {
        self.0 = crate::records::mix(self.0 ^ word);
    }
}

/// A hash map with [`DocHasher`].
pub type ByKey<K, V> = HashMap<K, V, BuildHasherDefault<DocHasher>>;

/// A set of hashes, with [`DocHasher`].
pub type Hashes = HashSet<u64, BuildHasherDefault<DocHasher>>;
