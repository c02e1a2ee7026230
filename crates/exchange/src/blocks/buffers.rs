//! The buffer pool: the memory of full blocks.
//!
//! Buffers are cut from slabs of huge pages. The thread that drops a block keeps its buffer, and
//! uses it again for records of any kind; what is more than it needs goes to a pool of all threads.
//! See `kernels::memory` for what that saves.

use std::cell::RefCell;
use std::sync::{Mutex, MutexGuard, PoisonError};

use nigh_kernels::kernels::memory::{advise_huge_pages, return_pages};

/// Bytes of the records of a full block. Between 24 and 64 KiB the exchange costs the same; larger
/// blocks only take more memory, since every sender has one for each partition. Blocks of a half or
/// a quarter were not faster.
pub const BLOCK_BYTES: usize = 24 << 10;

/// Words of a full block.
pub(crate) const WORDS: usize = BLOCK_BYTES / 8;
/// Bytes of a line of the cache.
pub(crate) const LINE: usize = 64;
/// Unused words after each buffer. Blocks fill at nearly the same rate: if all buffers began a
/// whole number of pages apart, the write positions of thousands of blocks would fall into a few
/// sets of the cache (2048 blocks, on a cache of 2048 sets).
const APART: usize = 24;

/// The memory of a full block, in words, so that records of any alignment fit. It is never freed;
/// its pages can be returned to the system.
pub(crate) type BlockMemory = &'static mut [u64; WORDS + APART];

/// Buffers that are made at once. The system provides their pages when they are first written to.
const SLAB: usize = 2048;

/// Buffers that a thread keeps for itself: 6 MiB.
const KEPT: usize = 256;

thread_local! {
    /// Memory of full blocks that this thread dropped, or made.
    static SPARE: Spare = const { Spare(RefCell::new(Vec::new())) };
}

/// The buffers of all threads together.
static POOL: Mutex<BufferPool> = Mutex::new(BufferPool { kept: Vec::new(), returned: Vec::new() });

/// Buffers that no thread has.
struct BufferPool {
    /// Buffers that have their pages.
    kept: Vec<BlockMemory>,
    /// Buffers whose pages were returned to the system.
    returned: Vec<BlockMemory>,
}

impl BufferPool {
    /// Sorts the buffers by address.
    fn sort(&mut self) {
        self.kept.sort_unstable_by_key(|full| full.as_ptr());
    }

    /// Returns the pages of the first `blocks` buffers to the system.
    fn return_pages(&mut self, blocks: usize) {
        self.sort();
        self.returned.extend(self.kept.drain(..blocks.min(self.kept.len())));
        // Together with the buffers returned before: those of one thread lie between those of
        // others, and only whole huge pages can be returned.
        self.returned.sort_unstable_by_key(|full| full.as_ptr());
        return_pages(&mut self.returned);
    }

    /// Takes at most `most` buffers; those that have their pages come first.
    fn take(&mut self, most: usize) -> impl Iterator<Item = BlockMemory> {
        let from = if self.kept.is_empty() { &mut self.returned } else { &mut self.kept };
        from.drain(from.len().saturating_sub(most)..)
    }
}

/// The buffers of one thread.
struct Spare(RefCell<Vec<BlockMemory>>);

impl Spare {
    /// Keeps a buffer, and moves some to the pool when there are many: a thread that drops blocks
    /// may not be one that fills them.
    fn keep(&self, full: BlockMemory) {
        let mut spare = self.0.borrow_mut();
        spare.push(full);
        if spare.len() >= 2 * KEPT {
            pool().kept.extend(spare.drain(KEPT..));
        }
    }

    fn release(&self) {
        pool().kept.append(&mut self.0.take());
    }
}

impl Drop for Spare {
    fn drop(&mut self) {
        self.release();
    }
}

fn pool() -> MutexGuard<'static, BufferPool> {
    POOL.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Keeps the buffer of a block that is dropped.
pub(crate) fn put_buffer(full: BlockMemory) {
    // A thread that ends moves its buffers to the pool. A buffer that it drops even later is
    // leaked.
    let _ = SPARE.try_with(|spare| spare.keep(full));
}

/// Moves the buffers of this thread to the pool and sorts the pool by address, so that blocks that
/// are begun together lie side by side.
pub fn sort_spare() {
    SPARE.with(Spare::release);
    pool().sort();
}

/// Moves the buffers of this thread to the pool, returns about `bytes` of the pool to the system,
/// and sorts the rest. When all threads have done so and no block is in use, whole huge pages are
/// returned, and other steps can have them at once: memory that the process had before costs a
/// tenth of new memory, which a hypervisor must provide first.
pub fn release_spare(bytes: usize) {
    SPARE.with(Spare::release);
    pool().return_pages(bytes.div_ceil(size_of::<[u64; WORDS + APART]>()));
}

/// A buffer for a full block. Its content is arbitrary.
pub(crate) fn take_buffer() -> BlockMemory {
    SPARE.with(|spare| {
        let mut spare = spare.0.borrow_mut();
        if spare.is_empty() {
            spare.extend(pool().take(KEPT));
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
    use nigh_kernels::records::mix;

    #[test]
    fn a_thread_that_releases_has_nothing_at_hand() {
        (0..3).map(|_| take_buffer()).collect::<Vec<_>>().into_iter().for_each(put_buffer);
        assert!(SPARE.with(|spare| spare.0.borrow().len()) >= 3);
        release_spare(0);
        assert_eq!(SPARE.with(|spare| spare.0.borrow().len()), 0);
    }

    #[test]
    fn so_much_is_returned_and_the_rest_is_in_order() {
        const BLOCKS: usize = 300;
        let mut kept: Vec<BlockMemory> =
            vec![1; BLOCKS * (WORDS + APART)].leak().as_chunks_mut().0.iter_mut().collect();
        let places: Vec<*const u64> = kept.iter().map(|full| full.as_ptr()).collect();
        kept.sort_by_key(|full| mix(full.as_ptr().addr() as u64));
        let mut left = BufferPool { kept, returned: Vec::new() };
        let order = |blocks: &[BlockMemory]| blocks.iter().map(|full| full.as_ptr()).collect::<Vec<_>>();
        left.return_pages(0);
        assert_eq!(order(&left.kept), places);
        let mut from = 0;
        for to in [100, 180, BLOCKS] {
            left.return_pages(if to == BLOCKS { usize::MAX } else { to - from });
            assert_eq!((order(&left.returned), order(&left.kept)), (places[..to].to_vec(), places[to..].to_vec()));
            assert!(left.kept.iter().all(|full| full.iter().all(|word| *word == 1)));
            let given = left.returned.iter().flat_map(|full| full.iter()).filter(|word| **word == 0).count();
            assert!(!cfg!(target_os = "linux") || given > to * WORDS * 9 / 10, "{given} words of {to} blocks");
            from = to;
        }
        // Buffers that have their pages are taken first.
        left.kept.extend(left.returned.drain(..10));
        assert_eq!([7, 7, 7].map(|most| left.take(most).count()), [7, 3, 7]);
        assert_eq!((left.kept.len(), left.returned.len()), (0, BLOCKS - 17));
    }
}
