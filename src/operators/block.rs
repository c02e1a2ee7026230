//! Blocks: fixed-size records of one partition, exchanged whole.
//!
//! Timely routes a block by its partition number without looking at its records: exchanging record
//! by record costs two to three times the CPU (`Exchange` on `Vec`, measured on this engine).
//! Between processes a block is written and read through the `abomonation` trait, implemented by
//! hand for this owned container:
//!
//! ```text
//! part: u64 | records: u64 | size of a record: u64 | the records' bytes | zeros to a multiple of 8
//! ```
//!
//! All numbers are little-endian; records are [`Pod`], so that every byte is initialised and any
//! bytes are a record. `exhume` checks every length before it reads, copies out, and says `None` to
//! a truncated or hostile block. The crate's `encode` and `decode` are never called: they are
//! unsound (RUSTSEC-2021-0120). The trait's signature makes two methods `unsafe`; no line of theirs is.

use std::io::Write;
use std::sync::Arc;

use abomonation::Abomonation;
use bytemuck::Pod;
use timely::Accountable;
use timely::bytes::arc::Bytes;
use timely::communication::Push;
use timely::container::NoopBuilder;
use timely::dataflow::channels::ContainerBytes;
use timely::dataflow::channels::Message;
use timely::dataflow::channels::pact::DistributorPact;
use timely::dataflow::channels::pushers::exchange::Distributor;

use crate::watch::Watch;

/// Bytes of the records of a full block. Between 24 and 64 KiB the exchange costs the same; larger ones only
/// take memory, as every sender holds one for each partition.
pub const BLOCK_BYTES: usize = 32 << 10;

/// Bytes before the records.
const HEAD: usize = 24;

/// Records of one partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block<T> {
    /// The partition: `part` modulo the number of workers is the receiver.
    pub part: u64,
    /// The records.
    pub records: Vec<T>,
}

/// Builds nothing: blocks are given whole.
pub type BlockBuilder<T> = NoopBuilder<Block<T>>;

impl<T> Default for Block<T> {
    fn default() -> Block<T> {
        Block { part: 0, records: Vec::new() }
    }
}

impl<T> Accountable for Block<T> {
    fn record_count(&self) -> i64 {
        // A block is one thing to progress tracking; an empty one is none.
        i64::from(!self.records.is_empty())
    }
}

#[allow(unsafe_code)] // The trait declares these methods unsafe; their bodies are safe code.
impl<T: Pod> Abomonation for Block<T> {
    unsafe fn entomb<W: Write>(&self, write: &mut W) -> std::io::Result<()> {
        for number in [self.part, self.records.len() as u64, size_of::<T>() as u64] {
            write.write_all(&number.to_le_bytes())?;
        }
        write.write_all(bytemuck::cast_slice(&self.records))
    }

    unsafe fn exhume<'b>(&mut self, bytes: &'b mut [u8]) -> Option<&'b mut [u8]> {
        let number = |at: usize| Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?));
        let (part, count, size) = (number(0)?, usize::try_from(number(8)?).ok()?, number(16)?);
        if size != size_of::<T>() as u64 {
            return None;
        }
        let length = count.checked_mul(size_of::<T>())?;
        if bytes.len() - HEAD < length {
            return None;
        }
        let (body, rest) = bytes[HEAD..].split_at_mut(length);
        self.part = part;
        self.records.clear();
        self.records.extend(body.chunks_exact(size_of::<T>()).map(bytemuck::pod_read_unaligned::<T>));
        Some(rest)
    }

    fn extent(&self) -> usize {
        HEAD + size_of_val(&self.records[..])
    }
}

impl<T: Pod> Block<T> {
    /// Writes the block as it crosses between processes.
    ///
    /// # Errors
    /// As the writer.
    #[allow(unsafe_code)]
    pub fn write<W: Write>(&self, write: &mut W) -> std::io::Result<()> {
        // SAFETY: `entomb` above is safe code; the trait only declares it unsafe.
        unsafe { self.entomb(write) }
    }

    /// Reads a block from bytes that [`Block::write`] wrote; `None` where they are truncated, or of other records.
    #[allow(unsafe_code)]
    pub fn read(bytes: &mut [u8]) -> Option<Block<T>> {
        let mut block = Block::default();
        // SAFETY: `exhume` above is safe code and checks all lengths; the trait only declares it unsafe.
        unsafe { block.exhume(bytes)? };
        Some(block)
    }
}

impl<T: Pod> ContainerBytes for Block<T> {
    fn from_bytes(bytes: Bytes) -> Block<T> {
        // Timely's bytes are shared and `exhume` wants them mutable: one copy.
        let block = Block::read(&mut bytes.to_vec());
        // Peers are authenticated before a byte of theirs is read (launch/join.rs), so that this is a fault in
        // this program or in the machine; timely's signature leaves no other way to say so.
        block.expect("a block from a peer process is truncated or of other records")
    }

    fn length_in_bytes(&self) -> usize {
        self.extent().next_multiple_of(8)
    }

    fn into_bytes<W: Write>(&self, writer: &mut W) {
        let padding = self.length_in_bytes() - self.extent();
        self.write(writer)
            .and_then(|()| writer.write_all(&[0; 8][..padding]))
            .expect("timely gives a buffer of the length asked for");
    }
}

/// Sends whole blocks to the worker that their partition names.
pub struct ByPart;

impl<T: Pod> Distributor<Block<T>> for ByPart {
    fn partition<Time: Clone, P: Push<Message<Time, Block<T>>>>(
        &mut self,
        block: &mut Block<T>,
        time: &Time,
        pushers: &mut [P],
    ) {
        let worker = (block.part % pushers.len() as u64) as usize;
        Message::push_at(block, time.clone(), &mut pushers[worker]);
    }

    fn flush<Time: Clone, P: Push<Message<Time, Block<T>>>>(&mut self, _time: &Time, _pushers: &mut [P]) {}
}

/// The contract by which blocks reach the owner of their partition.
pub fn by_part() -> DistributorPact<fn(usize) -> ByPart> {
    DistributorPact(|_| ByPart)
}

/// Collects records into blocks, one open block a partition.
pub struct Dealer<T> {
    open: Vec<Vec<T>>,
    full: Vec<Block<T>>,
    watch: Arc<Watch>,
}

impl<T: Pod> Dealer<T> {
    /// A dealer to `parts` partitions.
    pub fn new(parts: usize, watch: &Arc<Watch>) -> Dealer<T> {
        let open = (0..parts).map(|_| Vec::new()).collect();
        Dealer { open, full: Vec::new(), watch: watch.clone() }
    }

    /// Adds a record to a partition.
    #[inline]
    pub fn deal(&mut self, part: usize, record: T) {
        let capacity = const { BLOCK_BYTES / size_of::<T>() };
        let open = &mut self.open[part];
        if open.capacity() == 0 {
            open.reserve_exact(capacity);
        }
        open.push(record);
        if open.len() == capacity {
            self.close(part);
        }
    }

    fn close(&mut self, part: usize) {
        let mut records = std::mem::take(&mut self.open[part]);
        if records.len() < records.capacity() / 2 {
            // A block that is closed early must not keep the memory of a full one.
            records.shrink_to_fit();
        }
        self.watch.add_exchanged(size_of_val(&records[..]) as u64);
        self.full.push(Block { part: part as u64, records });
    }

    /// The blocks that are full.
    pub fn full(&mut self) -> impl Iterator<Item = Block<T>> {
        self.full.drain(..)
    }

    /// All blocks, full or not; the dealer is empty after it.
    pub fn finish(&mut self) -> impl Iterator<Item = Block<T>> {
        for part in 0..self.open.len() {
            if !self.open[part].is_empty() {
                self.close(part);
            }
        }
        self.full.drain(..)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::{DocId, Edge};
    use proptest::prelude::*;

    fn block(count: u64) -> Block<Edge> {
        let edge = |i| Edge { doc: DocId::new(1, i), root: DocId::new(0, i) };
        Block { part: 7, records: (0..count).map(edge).collect() }
    }

    fn written(block: &Block<Edge>) -> Vec<u8> {
        let mut bytes = Vec::new();
        block.into_bytes(&mut bytes);
        bytes
    }

    #[test]
    fn a_block_survives_the_wire() {
        for count in [0, 1, 2, 1000] {
            let mut bytes = written(&block(count));
            assert_eq!(bytes.len(), block(count).length_in_bytes());
            assert_eq!(Block::read(&mut bytes), Some(block(count)));
        }
    }

    #[test]
    fn a_truncated_block_is_refused_at_every_length() {
        let bytes = written(&block(5));
        for length in 0..bytes.len() {
            assert_eq!(Block::<Edge>::read(&mut bytes[..length].to_vec()), None, "{length}");
        }
    }

    #[test]
    fn hostile_lengths_are_refused() {
        for count in [6, u64::MAX, u64::MAX / 16 + 1, 1 << 60, 1 << 32] {
            let mut bytes = written(&block(5));
            bytes[8..16].copy_from_slice(&count.to_le_bytes());
            assert_eq!(Block::<Edge>::read(&mut bytes), None, "{count}");
        }
        let mut bytes = written(&block(5));
        bytes[16] = 24;
        assert_eq!(Block::<Edge>::read(&mut bytes), None, "records of another size");
    }

    proptest! {
        #[test]
        fn a_mangled_block_is_refused_or_is_what_its_bytes_say(
            count in 0u64..20, at in 0usize..400, byte: u8, length in 0usize..400,
        ) {
            let mut bytes = written(&block(count));
            let at = at % bytes.len();
            bytes[at] = byte;
            bytes.truncate(length);
            if let Some(block) = Block::<Edge>::read(&mut bytes.clone()) {
                let whole = HEAD + block.records.len() * 16;
                prop_assert_eq!(&written(&block)[..whole], &bytes[..whole]);
            }
        }
    }

    #[test]
    fn a_dealer_loses_nothing() {
        let mut dealer = Dealer::new(3, &Arc::default());
        let mut blocks = Vec::new();
        for i in 0..10_000u64 {
            dealer.deal((i % 3) as usize, i);
            blocks.extend(dealer.full());
        }
        blocks.extend(dealer.finish());
        assert!(blocks.iter().all(|b| b.records.len() * 8 <= BLOCK_BYTES && !b.records.is_empty()));
        assert!(blocks.iter().all(|b| b.records.iter().all(|i| i % 3 == b.part)));
        let mut all: Vec<u64> = blocks.into_iter().flat_map(|b| b.records).collect();
        all.sort_unstable();
        assert!(all.into_iter().eq(0..10_000));
    }
}
