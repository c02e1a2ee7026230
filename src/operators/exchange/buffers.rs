//! The memory of full blocks: cut from slabs of huge pages, kept by the thread that drops a block, and used again for
//! records of any kind. See `kernels::memory` for what that saves.

use std::cell::RefCell;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::kernels::memory::{advise_huge_pages, return_pages};

/// Bytes of the records of a full block. Between 24 and 64 KiB the exchange costs the same; larger ones only
/// take memory, as every sender holds one for each partition.
pub const BLOCK_BYTES: usize = 24 << 10;

/// Words of a full block.
pub(crate) const WORDS: usize = BLOCK_BYTES / 8;
/// Bytes of a line of the cache.
pub(crate) const LINE: usize = 64;
/// Words that are not used behind each block. Blocks fill at nearly the same rate: if each began a whole number of
/// pages behind the other, the ends of thousands of them would meet in a few sets of the cache (2048 of them, on a
/// cache of 2048 sets).
const APART: usize = 24;

/// The memory of a full block. Words, so that records of any alignment fit. It is never freed: its pages are given
/// back.
pub(crate) type BlockMemory = &'static mut [u64; WORDS + APART];

/// Blocks that are made at once: their pages are taken from the system only as they are written to.
const SLAB: usize = 2048;

/// Blocks that a thread keeps at least, of those that it dropped: 6 MiB.
const KEPT: usize = 256;

thread_local! {
    /// Memory of full blocks that this thread dropped, or made.
    static SPARE: Spare = const { Spare(RefCell::new(Vec::new())) };
}

/// What threads left to others.
static LEFT: Mutex<BufferPool> = Mutex::new(BufferPool { kept: Vec::new(), given_back: Vec::new() });

/// Memory of full blocks that nobody uses.
struct BufferPool {
    /// Blocks that have their pages.
    kept: Vec<BlockMemory>,
    /// Blocks whose pages were given back to the system.
    given_back: Vec<BlockMemory>,
}

impl BufferPool {
    /// Puts what is kept in the order of memory.
    fn sort(&mut self) {
        self.kept.sort_unstable_by_key(|full| full.as_ptr());
    }

    /// Gives the pages of so many of the blocks that are kept back to the system.
    fn return_pages(&mut self, blocks: usize) {
        self.sort();
        self.given_back.extend(self.kept.drain(..blocks.min(self.kept.len())));
        // With those before: what one thread left lies between what others did, and huge pages go only whole.
        self.given_back.sort_unstable_by_key(|full| full.as_ptr());
        return_pages(&mut self.given_back);
    }

    /// Takes some blocks; those that have their pages come first.
    fn take(&mut self, most: usize) -> impl Iterator<Item = BlockMemory> {
        let from = if self.kept.is_empty() { &mut self.given_back } else { &mut self.kept };
        from.drain(from.len().saturating_sub(most)..)
    }
}

/// Memory that one thread has at hand.
struct Spare(RefCell<Vec<BlockMemory>>);

impl Spare {
    /// Keeps a block, and leaves some to the others when there are many: who deals is not always who receives.
    fn keep(&self, full: BlockMemory) {
        let mut spare = self.0.borrow_mut();
        spare.push(full);
        if spare.len() >= 2 * KEPT {
            left().kept.extend(spare.drain(KEPT..));
        }
    }

    fn release(&self) {
        left().kept.append(&mut self.0.take());
    }
}

impl Drop for Spare {
    fn drop(&mut self) {
        self.release();
    }
}

fn left() -> MutexGuard<'static, BufferPool> {
    LEFT.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Keeps the memory of a full block that is dropped.
pub(crate) fn keep(full: BlockMemory) {
    // A thread that ends leaves its blocks; what it drops after that is lost to it alone.
    let _ = SPARE.try_with(|spare| spare.keep(full));
}

/// Puts the memory that is kept for blocks, by this thread or left by others, in order: blocks that are begun together then
/// lie side by side.
pub fn sort_spare() {
    SPARE.with(Spare::release);
    left().sort();
}

/// Gives about so many `bytes` of the memory that is kept for blocks, by this thread or left by others, back to the
/// system, and puts the rest in order. When all threads have done so and no block is in use, these are whole huge pages,
/// which others may have at once: memory that the process had before costs a tenth of what is new to it, where a hypervisor
/// must find it first.
pub fn release_spare(bytes: usize) {
    SPARE.with(Spare::release);
    left().return_pages(bytes.div_ceil(size_of::<[u64; WORDS + APART]>()));
}

/// Memory for a full block. It holds what it held, or zeros.
pub(crate) fn fresh() -> BlockMemory {
    SPARE.with(|spare| {
        let mut spare = spare.0.borrow_mut();
        if spare.is_empty() {
            spare.extend(left().take(KEPT));
        }
        if spare.is_empty() {
            let slab = vec![0; SLAB * (WORDS + APART) + LINE / 8].leak();
            advise_huge_pages(slab);
            // Blocks begin with a line of the cache.
            let begin = slab.as_ptr().align_offset(LINE).min(LINE / 8);
            spare.extend(slab[begin..].as_chunks_mut().0);
        }
        spare.pop().expect("a slab has blocks")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::mix;

    #[test]
    fn a_thread_that_releases_has_nothing_at_hand() {
        (0..3).map(|_| fresh()).collect::<Vec<_>>().into_iter().for_each(keep);
        assert!(SPARE.with(|spare| spare.0.borrow().len()) >= 3);
        release_spare(0);
        assert_eq!(SPARE.with(|spare| spare.0.borrow().len()), 0);
    }

    #[test]
    fn so_much_is_given_back_and_the_rest_is_in_order() {
        const BLOCKS: usize = 300;
        let mut kept: Vec<BlockMemory> =
            vec![1; BLOCKS * (WORDS + APART)].leak().as_chunks_mut().0.iter_mut().collect();
        let places: Vec<*const u64> = kept.iter().map(|full| full.as_ptr()).collect();
        kept.sort_by_key(|full| mix(full.as_ptr().addr() as u64));
        let mut left = BufferPool { kept, given_back: Vec::new() };
        let order = |blocks: &[BlockMemory]| blocks.iter().map(|full| full.as_ptr()).collect::<Vec<_>>();
        left.return_pages(0);
        assert_eq!(order(&left.kept), places);
        let mut from = 0;
        for to in [100, 180, BLOCKS] {
            left.return_pages(if to == BLOCKS { usize::MAX } else { to - from });
            assert_eq!((order(&left.given_back), order(&left.kept)), (places[..to].to_vec(), places[to..].to_vec()));
            assert!(left.kept.iter().all(|full| full.iter().all(|word| *word == 1)));
            let given = left.given_back.iter().flat_map(|full| full.iter()).filter(|word| **word == 0).count();
            assert!(!cfg!(target_os = "linux") || given > to * WORDS * 9 / 10, "{given} words of {to} blocks");
            from = to;
        }
        // Who needs blocks takes first what has its pages.
        left.kept.extend(left.given_back.drain(..10));
        assert_eq!([7, 7, 7].map(|most| left.take(most).count()), [7, 3, 7]);
        assert_eq!((left.kept.len(), left.given_back.len()), (0, BLOCKS - 17));
    }
}
