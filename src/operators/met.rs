//! What was met lately while documents are gone over, in tables of fixed size that forget: whoever asks does some work
//! twice where they forgot, and never misses any.

use super::keyed::MOST_HOLDERS;
use crate::records::{DocId, Key, fold};

/// The bits of a slot that count the holders that were sent.
const SENT: u64 = 0xFF;

/// What was met while documents are gone over.
pub(super) struct Met {
    /// Vectors met lately, in a direct-mapped cache, each with a document that has it.
    vectors: Vec<(u64, DocId)>,
    /// Of keys met lately, in a direct-mapped table: bits that tell the key, and how many of its holders were sent. Where
    /// keys drive each other out, more are sent than would do.
    sent: Vec<u64>,
}

impl Met {
    /// For about so many keys that may be met.
    pub(super) fn new(keys: u64) -> Met {
        let slots = keys.next_power_of_two().clamp(1 << 8, 1 << 19) as usize;
        Met { vectors: vec![(0, DocId::NONE); 1 << 16], sent: vec![0; slots] }
    }

    /// Whether a smaller document with the same vector was met: it holds the same keys. (Told by 64 bits of a hash: one
    /// pair of different vectors in 2^64 is taken for the same.)
    pub(super) fn knows(&mut self, vector: &[u64], doc: DocId) -> bool {
        let hash = fold(vector);
        let slots = self.vectors.len();
        let slot = &mut self.vectors[hash as usize % slots];
        let known = slot.0 == hash && slot.1 < doc;
        if !known {
            *slot = (hash, doc);
        }
        known
    }

    /// Whether another holder of a key is to be sent.
    pub(super) fn sends(&mut self, key: Key) -> bool {
        let slots = self.sent.len();
        let slot = &mut self.sent[key.table_bits() as usize % slots];
        // The last bits count; the others and the slot are 64 bits of the key at least.
        if (*slot ^ key.partition_bits()) & !SENT != 0 {
            *slot = key.partition_bits() & !SENT;
        }
        let sends = *slot & SENT < MOST_HOLDERS as u64;
        *slot += u64::from(sends);
        sends
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::mix;

    #[test]
    fn a_few_holders_of_every_key_are_sent() {
        // More keys than there are slots: they drive each other out.
        for keys in [1, 200, 5000u64] {
            let mut met = Met::new(0);
            let mut sent = vec![0; keys as usize];
            for _ in 0..100 {
                for key in 0..keys {
                    sent[key as usize] += usize::from(met.sends(Key::of(1, &[key])));
                }
            }
            assert!(sent.iter().all(|sent| *sent >= MOST_HOLDERS), "{keys} keys");
            assert!(keys > 1 || sent[0] == MOST_HOLDERS);
        }
    }

    #[test]
    fn a_vector_is_known_from_the_smaller_document_on() {
        let mut met = Met::new(0);
        let vector = |number: u64| [mix(number), number];
        let doc = |row| DocId::new(0, row);
        assert!(!met.knows(&vector(1), doc(5)));
        assert!(met.knows(&vector(1), doc(6)) && met.knows(&vector(1), doc(7)));
        assert!(!met.knows(&vector(1), doc(4)), "a smaller one is not dropped for a larger one");
        assert!(!met.knows(&vector(2), doc(8)));
    }
}
