//! Sightings: values sent by their hashes in five bytes each, to find those that occur twice at
//! least.
//!
//! ```text
//! record: 24 bits of the hash of a value, and in 16 bits
//! the number of its holder minus that of the record before     5 bytes, to the value's partition
//! reply: number of a holder of a value that occurs twice       4 bytes, back to the sender
//! ```
//!
//! A value that occurs once may be reported as one that occurs twice; one that does is never
//! missed: see [`Counters`].

use anyhow::Result;
use bytemuck::{Pod, Zeroable};
use nigh_exchange::{Dealer, Partition};

use crate::structures::Counters;

/// A value at one holder: 24 bits of its hash, other than those that chose the partition, and the
/// holder's number at its sender minus that of the record before it.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct Sighting {
    rest: [u8; 3],
    gap: [u8; 2],
}

impl Sighting {
    /// A record of a value: the high 24 bits of `hash` are kept.
    #[inline]
    pub fn new(hash: u32, gap: u16) -> Sighting {
        let [_, a, b, c] = hash.to_le_bytes();
        Sighting { rest: [a, b, c], gap: gap.to_le_bytes() }
    }

    /// The 24 bits of the hash, at the top of a word.
    #[inline]
    fn hash(self) -> u32 {
        let [a, b, c] = self.rest;
        u32::from_le_bytes([0, a, b, c])
    }

    #[inline]
    fn gap(self) -> u32 {
        u16::from_le_bytes(self.gap).into()
    }
}

/// Finds the values of a partition that occur twice.
#[derive(Default)]
pub(crate) struct SharedFinder {
    counters: Counters,
    /// Room for the numbers of the holders of one block whose values occur twice.
    shared: Vec<u32>,
}

impl SharedFinder {
    /// Sends to each sender the numbers of its holders whose value in this partition occurs twice
    /// at least.
    ///
    /// # Errors
    /// If blocks that were spilled cannot be read.
    pub fn find(&mut self, sightings: &Partition<'_, Sighting>, dealer: &mut Dealer<u32>) -> Result<()> {
        self.counters.clear(sightings.count());
        self.find_counted(sightings, dealer)
    }

    /// As [`SharedFinder::find`], with 2^`bits` slots for the values. Then which values are
    /// reported by mistake does not depend on how many other records the partition has.
    ///
    /// # Errors
    /// As [`SharedFinder::find`].
    pub fn find_in_slots(
        &mut self,
        sightings: &Partition<'_, Sighting>,
        bits: u32,
        dealer: &mut Dealer<u32>,
    ) -> Result<()> {
        self.counters.clear_to(bits);
        self.find_counted(sightings, dealer)
    }

    fn find_counted(&mut self, sightings: &Partition<'_, Sighting>, dealer: &mut Dealer<u32>) -> Result<()> {
        let SharedFinder { counters, shared } = self;
        sightings.blocks(|block| block.records().iter().for_each(|record| counters.add(record.hash())))?;
        sightings.blocks(|block| {
            let records = block.records();
            shared.resize(records.len().max(shared.len()), 0);
            // Written without a branch: a fifth of them are shared.
            let (mut own, mut count) = (block.common as u32, 0);
            for record in records {
                own += record.gap();
                shared[count] = own;
                count += usize::from(counters.again(record.hash()));
            }
            shared[..count].iter().for_each(|own| dealer.deal(block.from.into(), *own));
        })
    }
}
