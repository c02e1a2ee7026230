//! Hash maps whose keys are document ids or already hashed: the hash is one multiplication, the same on every machine.

use std::collections::HashMap;
use std::hash::BuildHasherDefault;

/// Hashes a document id, the same on every machine.
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

pub(crate) type ByKey<K, V> = HashMap<K, V, BuildHasherDefault<DocHasher>>;
