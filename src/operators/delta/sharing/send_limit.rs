//! How many holders of a key were sent while documents are gone over, in a table of fixed size that forgets: where it
//! forgot, some are sent that need not be, and none is missed.

use super::key_groups::MOST_HOLDERS;
use crate::records::Key;

/// The bits of a slot that count the holders that were sent.
const SENT: u64 = 0xFF;

/// Of keys met lately, in a direct-mapped table: bits that tell the key, and how many of its holders were sent. Where keys
/// drive each other out, more are sent than would do.
pub(crate) struct SendLimit(Vec<u64>);

impl SendLimit {
    /// For about so many keys that may be met.
    pub(crate) fn new(keys: u64) -> SendLimit {
        SendLimit(vec![0; keys.next_power_of_two().clamp(1 << 8, 1 << 19) as usize])
    }

    /// Whether another holder of a key is to be sent.
    pub(crate) fn sends(&mut self, key: Key) -> bool {
        let slots = self.0.len();
        let slot = &mut self.0[key.table_bits() as usize % slots];
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

    #[test]
    fn a_few_holders_of_every_key_are_sent() {
        // More keys than there are slots: they drive each other out.
        for keys in [1, 200, 5000u64] {
            let mut table = SendLimit::new(0);
            let mut sent = vec![0; keys as usize];
            for _ in 0..100 {
                for key in 0..keys {
                    sent[key as usize] += usize::from(table.sends(Key::of(1, &[key])));
                }
            }
            assert!(sent.iter().all(|sent| *sent >= MOST_HOLDERS), "{keys} keys");
            assert!(keys > 1 || sent[0] == MOST_HOLDERS);
        }
    }
}
