//! The send limit: caps the unchanged holders of a key that a worker sends to the key's owner.
//!
//! A table of fixed size counts the holders that were sent for each key. Keys that meet in a slot
//! evict each other, and an evicted key's count starts again at 0: then more holders are sent than
//! needed, and never too few.

use super::key_groups::MOST_HOLDERS;
use crate::records::Key;

/// The bits of a slot that count the holders that were sent.
const SENT: u64 = 0xFF;

/// A direct-mapped table of keys, 8 bytes for each slot: bits that identify the key, and the count
/// of holders sent for it.
pub(crate) struct SendLimit(Vec<u64>);

impl SendLimit {
    /// A table for about `keys` of them: 2^8 to 2^19 slots.
    pub(crate) fn new(keys: u64) -> SendLimit {
        SendLimit(vec![0; keys.next_power_of_two().clamp(1 << 8, 1 << 19) as usize])
    }

    /// Whether another holder of a key is to be sent.
    pub(crate) fn sends(&mut self, key: Key) -> bool {
        let slots = self.0.len();
        let slot = &mut self.0[key.table_bits() as usize % slots];
        // The last eight bits count. The other bits and the slot's number are at least 64 bits of
        // the key.
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

    #[test]
    fn a_few_holders_of_every_key_are_sent() {
        // Up to 5000 keys in 256 slots: they evict each other.
        for keys in [1, 200, 5000u64] {
            let mut limit = SendLimit::new(0);
            let mut sent = vec![0; keys as usize];
            for _holder in 0..100 {
                for key in 0..keys {
                    sent[key as usize] += usize::from(limit.sends(Key::of(1, &[key])));
                }
            }
            assert!(sent.iter().all(|sent| *sent >= MOST_HOLDERS), "{keys} keys");
            assert!(keys > 1 || sent[0] == MOST_HOLDERS);
        }
    }
}
