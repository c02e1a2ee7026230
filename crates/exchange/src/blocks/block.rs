//! Blocks: fixed-size records of one partition, exchanged as a whole.
//!
//! Timely routes a block by its partition number and does not look at its records: to exchange
//! record by record costs two to three times the CPU (`Exchange` on `Vec`, measured on this
//! engine).
//!
//! A [`Block`] is bytes and the width of a record: one concrete type, so that timely, its channels
//! and this folder are compiled once and not once for each type of record. A sender and a receiver
//! know the type: a [`Dealer`](super::Dealer) writes records of a type, and [`Block::open`] checks
//! that the records of a block are of that type.
//!
//! Between processes a block is written by [`Abomonation::entomb`] and read by
//! [`Abomonation::exhume`], which is [`Block::read`]. The trait is implemented by hand:
//!
//! ```text
//! part: u64 | common: u64 | from: u32 | width of a record: u32 | tag of their type: u64 | records: u64 | the records' bytes
//! ```
//!
//! All numbers are little-endian. Records are [`Pod`], so every byte is initialised and any bytes
//! are a record. `read` checks every length before it reads, copies the records out, and returns
//! `None` for a truncated or hostile block. The crate's `encode` and `decode` are never called:
//! they are unsound (RUSTSEC-2021-0120). The trait declares `entomb` and `exhume` unsafe; their
//! bodies here are safe code.

use std::cell::RefCell;
use std::io::Write;
use std::marker::PhantomData;
use std::ops::Deref;

use abomonation::Abomonation;
use bytemuck::{Pod, TransparentWrapper};
use timely::Accountable;
use timely::bytes::arc::Bytes;
use timely::communication::Push;
use timely::container::NoopBuilder;
use timely::dataflow::channels::pact::DistributorPact;
use timely::dataflow::channels::pushers::exchange::Distributor;
use timely::dataflow::channels::{ContainerBytes, Message};
use timely::progress::Stamp;

use super::buffers::{BLOCK_BYTES, BlockMemory, WORDS, put_buffer, take_buffer};

/// Bytes before the records.
const HEAD: usize = 40;

/// Bytes from which on a block takes the memory of a full one.
pub(crate) const HALF: usize = BLOCK_BYTES / 2;

thread_local! {
    /// The bytes of the block that this thread is reading: `exhume` wants bytes that may change,
    /// timely's may not.
    static RECEIVED: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// The memory of a block's records.
pub(crate) enum Memory {
    /// That of a full block, from the buffer pool; `None` once it is returned.
    Full(Option<BlockMemory>),
    /// That of a block that was closed early: as many words as it needs.
    Cut(Box<[u64]>),
}

impl Default for Memory {
    fn default() -> Memory {
        Memory::Cut(Box::default())
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        if let Memory::Full(full) = self
            && let Some(full) = full.take()
        {
            put_buffer(full);
        }
    }
}

impl Memory {
    /// Memory for at least this many bytes.
    fn of(bytes: usize) -> Memory {
        match bytes {
            // The pool has memory of full blocks ready: a block that fills half of one takes one.
            HALF..=BLOCK_BYTES => Memory::Full(Some(take_buffer())),
            _ => Memory::Cut(vec![0; bytes.div_ceil(8)].into_boxed_slice()),
        }
    }

    /// Memory with these bytes.
    fn copy_of(bytes: &[u8]) -> Memory {
        let mut memory = Memory::of(bytes.len());
        memory.bytes_mut()[..bytes.len()].copy_from_slice(bytes);
        memory
    }

    fn bytes(&self) -> &[u8] {
        match self {
            Memory::Full(full) => full.as_deref().map_or(&[], |full| bytemuck::cast_slice(&full[..WORDS])),
            Memory::Cut(words) => bytemuck::cast_slice(words),
        }
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        match self {
            Memory::Full(full) => {
                full.as_deref_mut().map_or(&mut [], |full| bytemuck::cast_slice_mut(&mut full[..WORDS]))
            }
            Memory::Cut(words) => bytemuck::cast_slice_mut(words),
        }
    }
}

/// The type of the records of a block, as far as a block knows it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct RecordLayout {
    /// Bytes of a record.
    pub(crate) width: u32,
    /// A hash of the type's name in debug builds and tests; 0 in a release.
    tag: u64,
}

impl RecordLayout {
    /// The type `T`.
    pub(crate) fn of<T: Pod>() -> RecordLayout {
        let tag = if cfg!(debug_assertions) { tag(std::any::type_name::<T>()) } else { 0 };
        RecordLayout { width: size_of::<T>() as u32, tag }
    }
}

/// FNV-1a: the same in every process.
fn tag(name: &str) -> u64 {
    name.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

/// Records of one partition, as bytes.
#[derive(Default)]
pub struct Block {
    /// The partition: `part` modulo the number of workers is the receiver.
    pub part: u64,
    /// A number that all records of the block have in common; its meaning is the sender's and the
    /// receiver's agreement.
    pub common: u64,
    /// The worker that dealt the records.
    pub from: u32,
    /// The number of records.
    pub(crate) count: usize,
    pub(crate) record: RecordLayout,
    pub(crate) memory: Memory,
}

/// Builds nothing: operators emit whole blocks.
pub type BlockBuilder = NoopBuilder<Block>;

impl Clone for Block {
    fn clone(&self) -> Block {
        Block { memory: Memory::copy_of(self.bytes()), ..*self }
    }
}

impl Accountable for Block {
    fn record_count(&self) -> i64 {
        // Progress tracking counts a block as one record, and an empty block as none.
        i64::from(self.count > 0)
    }
}

impl Block {
    /// Bytes of the records.
    pub fn bytes(&self) -> &[u8] {
        &self.memory.bytes()[..self.count * self.record.width as usize]
    }

    /// Opens the block as records of the type `T`.
    ///
    /// # Panics
    /// If the records are of another width or, in debug builds and tests, of another type. Peers
    /// are authenticated before a byte of theirs is read (crates/launch), so that is a
    /// fault in this program.
    pub fn open<T: Pod>(self) -> BlockOf<T> {
        self.check::<T>();
        BlockOf::wrap(self)
    }

    /// Opens the block as [`Block::open`] does, and leaves it where it is.
    pub(crate) fn view<T: Pod>(&self) -> &BlockOf<T> {
        self.check::<T>();
        BlockOf::wrap_ref(self)
    }

    fn check<T: Pod>(&self) {
        let (found, wanted) = (self.record, RecordLayout::of::<T>());
        // An empty block has no type.
        assert!(
            found == wanted || self.count == 0,
            "a block has records of {} bytes (type {:x}), not of {} bytes ({:x}, {})",
            found.width,
            found.tag,
            wanted.width,
            wanted.tag,
            std::any::type_name::<T>()
        );
    }

    /// Copies records that are given as bytes into a block; `None` if the bytes are not a whole
    /// number of records.
    pub(crate) fn of_bytes(part: u64, common: u64, from: u32, record: RecordLayout, bytes: &[u8]) -> Option<Block> {
        let count = match record.width as usize {
            0 => return bytes.is_empty().then(|| Block { part, common, from, ..Block::default() }),
            width if bytes.len().is_multiple_of(width) => bytes.len() / width,
            _ => return None,
        };
        Some(Block { part, common, from, count, record, memory: Memory::copy_of(bytes) })
    }

    /// Reads the block that begins these bytes, as [`Abomonation::entomb`] wrote it. Returns it and
    /// its length in bytes; `None` if it is truncated or has lengths that cannot be.
    pub fn read(bytes: &[u8]) -> Option<(Block, usize)> {
        let (head, rest) = bytes.split_at_checked(HEAD)?;
        let word = |at: usize| Some(u64::from_le_bytes(head.get(at..at + 8)?.try_into().ok()?));
        let (part, common, from_and_width, tag) = (word(0)?, word(8)?, word(16)?, word(24)?);
        let record = RecordLayout { width: (from_and_width >> 32) as u32, tag };
        let count = usize::try_from(word(32)?).ok()?;
        let length = count.checked_mul(record.width as usize)?;
        let block = Block::of_bytes(part, common, from_and_width as u32, record, rest.get(..length)?)?;
        (block.count == count).then_some((block, HEAD + length))
    }

    /// Copies records into a block.
    pub fn of_records<T: Pod>(part: u64, common: u64, from: u32, records: &[T]) -> Block {
        let memory = Memory::copy_of(bytemuck::cast_slice(records));
        Block { part, common, from, count: records.len(), record: RecordLayout::of::<T>(), memory }
    }
}

/// A block whose records are of the type `T`: what [`Block::open`] returns. It has the fields of
/// its block.
#[derive(TransparentWrapper)]
#[transparent(Block)]
#[repr(transparent)]
pub struct BlockOf<T> {
    block: Block,
    records: PhantomData<T>,
}

impl<T> Deref for BlockOf<T> {
    type Target = Block;

    fn deref(&self) -> &Block {
        &self.block
    }
}

impl<T: Pod> BlockOf<T> {
    /// The block without the type of its records.
    pub(crate) fn into_block(self) -> Block {
        self.block
    }

    /// The records.
    pub fn records(&self) -> &[T] {
        bytemuck::cast_slice(self.bytes())
    }
}

#[allow(unsafe_code)] // The trait declares these methods unsafe; their bodies are safe code.
impl Abomonation for Block {
    unsafe fn entomb<W: Write>(&self, write: &mut W) -> std::io::Result<()> {
        write.write_all(&self.part.to_le_bytes())?;
        write.write_all(&self.common.to_le_bytes())?;
        write.write_all(&self.from.to_le_bytes())?;
        write.write_all(&self.record.width.to_le_bytes())?;
        write.write_all(&self.record.tag.to_le_bytes())?;
        write.write_all(&(self.count as u64).to_le_bytes())?;
        write.write_all(self.bytes())
    }

    unsafe fn exhume<'b>(&mut self, bytes: &'b mut [u8]) -> Option<&'b mut [u8]> {
        let (block, length) = Block::read(bytes)?;
        *self = block;
        bytes.get_mut(length..)
    }

    fn extent(&self) -> usize {
        HEAD + self.bytes().len()
    }
}

#[allow(unsafe_code)] // Calls of the two methods above.
impl ContainerBytes for Block {
    fn from_bytes(bytes: Bytes) -> Block {
        let mut block = Block::default();
        let is_whole = RECEIVED.with_borrow_mut(|received| {
            received.clear();
            received.extend_from_slice(&bytes);
            // SAFETY: `exhume` of a block is safe code; it refuses bytes that are not a block.
            unsafe { block.exhume(received) }.is_some()
        });
        // Peers are authenticated before a byte of theirs is read (crates/launch), so
        // this is a fault in this program or in the machine; timely's signature has no error.
        assert!(is_whole, "a block from a peer process is truncated or damaged");
        block
    }

    fn length_in_bytes(&self) -> usize {
        // Timely wants a multiple of 8; the bytes after the records are zeros.
        self.extent().next_multiple_of(8)
    }

    fn into_bytes<W: Write>(&self, writer: &mut W) {
        let padding = self.length_in_bytes() - self.extent();
        // SAFETY: `entomb` of a block is safe code.
        unsafe { self.entomb(writer) }
            .and_then(|()| writer.write_all(&[0; 8][..padding]))
            .expect("timely gives a buffer of the length asked for");
    }
}

/// Sends whole blocks to the worker that their partition names.
pub struct ByPart;

impl Distributor<Block> for ByPart {
    fn partition<Time: Clone, P: Push<Message<Time, Block>>>(
        &mut self,
        block: &mut Block,
        stamp: &Stamp<Time>,
        pushers: &mut [P],
    ) {
        // One without a time would not hold back the end of its round.
        debug_assert_eq!(stamp.len(), 1, "a block has one time");
        let worker = (block.part % pushers.len() as u64) as usize;
        Message::push_at(block, stamp.clone(), &mut pushers[worker]);
    }

    fn flush<Time: Clone, P: Push<Message<Time, Block>>>(&mut self, _stamp: &Stamp<Time>, _pushers: &mut [P]) {}
}

/// The contract by which blocks reach the owner of their partition.
pub fn by_part() -> DistributorPact<fn(usize) -> ByPart> {
    DistributorPact(|_| ByPart)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use nigh_kernels::records::{DocId, Edge};
    use proptest::prelude::*;
    use timely::bytes::arc::BytesMut;

    use super::*;
    use crate::blocks::buffers::release_spare;
    use crate::blocks::dealer::Dealer;

    fn block(count: u64) -> BlockOf<Edge> {
        let edges: Vec<Edge> = (0..count).map(|i| Edge { doc: DocId::new(1, i), root: DocId::new(0, i) }).collect();
        Block::of_records(7, 1 << 40, 3, &edges).open()
    }

    /// What `exhume` makes of some bytes.
    #[allow(unsafe_code)]
    fn exhumed(bytes: &[u8]) -> Option<BlockOf<Edge>> {
        let (mut block, mut bytes) = (Block::default(), bytes.to_vec());
        // SAFETY: `exhume` of a block is safe code.
        unsafe { block.exhume(&mut bytes) }?;
        Some(block.open())
    }

    fn written(block: &Block) -> Vec<u8> {
        let mut bytes = Vec::new();
        block.into_bytes(&mut bytes);
        bytes
    }

    #[test]
    fn a_block_survives_the_wire() {
        for count in [0, 1, 2, 1000, 1536, 5000] {
            let bytes = written(&block(count));
            assert_eq!(bytes.len(), block(count).length_in_bytes());
            let read = exhumed(&bytes).unwrap();
            assert_eq!((read.part, read.common, read.from), (7, 1 << 40, 3));
            assert_eq!(read.records(), block(count).records());
            let read = Block::from_bytes(BytesMut::from(bytes).freeze()).open::<Edge>();
            assert_eq!((read.part, read.common, read.from), (7, 1 << 40, 3));
            assert_eq!(read.records(), block(count).records());
        }
    }

    #[test]
    fn a_truncated_block_is_refused_at_every_length() {
        let bytes = written(&block(5));
        for length in 0..bytes.len() {
            assert!(exhumed(&bytes[..length]).is_none(), "{length}");
        }
    }

    #[test]
    #[should_panic(expected = "a block from a peer process is truncated")]
    fn timely_gets_no_truncated_block() {
        let mut bytes = written(&block(5));
        bytes.truncate(100);
        Block::from_bytes(BytesMut::from(bytes).freeze());
    }

    #[test]
    fn hostile_lengths_are_refused() {
        for count in [6, u64::MAX, u64::MAX / 16 + 1, 1 << 60, 1 << 32] {
            let mut bytes = written(&block(5));
            bytes[32..40].copy_from_slice(&count.to_le_bytes());
            assert!(exhumed(&bytes).is_none(), "{count}");
        }
        let mut bytes = written(&block(5));
        bytes[20] = 24;
        assert!(exhumed(&bytes).is_none(), "wider records than there are bytes");
        bytes[20] = 0;
        assert!(exhumed(&bytes).is_none(), "records without bytes");
    }

    #[test]
    #[should_panic(expected = "a block has records of 8 bytes")]
    fn records_of_another_width_are_refused() {
        let mut bytes = written(&block(6));
        bytes[20] = 8;
        exhumed(&bytes);
    }

    #[test]
    #[should_panic(expected = "a block has records of 16 bytes")]
    fn records_of_another_type_are_refused() {
        let mut bytes = written(&block(6));
        bytes[24] ^= 1;
        exhumed(&bytes);
    }

    #[test]
    #[should_panic(expected = "not of 16 bytes")]
    fn records_of_the_same_width_and_another_type_are_refused() {
        Block::of_records(0, 0, 0, &[[1u64, 2]]).open::<Edge>();
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
            if let Some((block, whole)) = Block::read(&bytes) {
                prop_assert_eq!(&written(&block)[..whole], &bytes[..whole]);
            }
        }
    }

    fn dealt<T: Pod + Ord + std::fmt::Debug>(record: impl Fn(u64) -> T) {
        for count in [0, 1, 5, 16, 17, 40, 100, 10_000, 40_000u64] {
            let mut dealer = Dealer::new(1, 3, &Arc::default());
            let mut blocks = Vec::new();
            for i in 0..count {
                dealer.deal(i % 3, record(i));
                blocks.extend(dealer.full());
            }
            blocks.extend(dealer.finish());
            let blocks: Vec<BlockOf<T>> = blocks.into_iter().map(Block::open).collect();
            assert!(blocks.iter().all(|b| b.bytes().len() <= BLOCK_BYTES && !b.records().is_empty() && b.from == 1));
            for part in 0..3 {
                let of_part = blocks.iter().filter(|block| block.part == part).flat_map(|block| block.records());
                let wanted: Vec<T> = (part..count).step_by(3).map(&record).collect();
                assert_eq!(of_part.copied().collect::<Vec<T>>(), wanted, "{count} records, in order");
            }
        }
    }

    #[test]
    fn a_dealer_loses_nothing_of_any_size() {
        dealt(|i| i as u8);
        dealt(|i| i as u32);
        dealt(|i| [i as u8; 5]);
        dealt(|i| i);
        dealt(|i| [i as u32; 3]);
        dealt(|i| [i; 2]);
        dealt(|i| [i; 3]);
        dealt(|i| [i; 4]);
        dealt(|i| [i; 5]);
    }

    #[test]
    fn gaps_of_numbers_may_be_wide() {
        let numbers = [5, 6, 6, 65_541, 131_077, (1 << 31), (1 << 31) + 65_535];
        let mut dealer = Dealer::new(0, 8, &Arc::default());
        dealer.turn_to(4..6);
        numbers.iter().for_each(|number| dealer.deal_gap(5, *number, |gap| gap));
        let blocks: Vec<BlockOf<u16>> = dealer.finish().map(Block::open).collect();
        assert!(blocks.iter().all(|block| block.part == 5 && block.records()[0] == 0));
        let numbers_of = |block: &BlockOf<u16>| {
            let base = block.common as u32;
            block
                .records()
                .iter()
                .scan(base, |at, gap| {
                    *at += u32::from(*gap);
                    Some(*at)
                })
                .collect::<Vec<u32>>()
        };
        assert_eq!(blocks.iter().flat_map(numbers_of).collect::<Vec<u32>>(), numbers);
        assert_eq!(blocks.len(), 3, "a new block where the gap does not fit");
        // More than a block holds: the next one begins with a base of its own.
        let numbers: Vec<u32> = (0..30_000).map(|number| 7 * number).collect();
        numbers.iter().for_each(|number| dealer.deal_gap(4, *number, |gap| gap));
        let blocks: Vec<BlockOf<u16>> = dealer.finish().map(Block::open).collect();
        assert!(blocks.len() > 1);
        assert_eq!(blocks.iter().flat_map(numbers_of).collect::<Vec<u32>>(), numbers);
    }

    #[test]
    fn memory_is_used_again() {
        let first = block(1536);
        let memory = first.bytes().as_ptr();
        drop(first);
        let again = block(1536);
        assert_eq!(again.bytes().as_ptr(), memory);
        assert_eq!(again.records(), block(1536).records());
        let other = std::thread::spawn(|| block(1536)).join().unwrap();
        drop(other);
        release_spare(usize::MAX);
        assert_eq!(again.records(), block(1536).records());
    }
}
