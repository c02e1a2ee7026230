//! Advice to system and processor about memory: huge pages, unused pages, and prefetches.
//!
//! Records are dealt to thousands of blocks at once, and a union-find jumps through hundreds of
//! megabytes. With pages of 4 KiB every step needs the address of another page (2.3 times the time
//! of the pruning phase at 150 M documents), and clearing fresh pages one by one costs one to two
//! seconds per gigabyte. Pages of 2 MiB help with both. On systems other than Linux the functions
//! about pages do nothing.

/// The size of a huge page in bytes, on x86-64 and on aarch64 with pages of 4 KiB.
#[cfg(target_os = "linux")]
const HUGE: usize = 2 << 20;

/// The number of independent places in memory that callers load in one batch: with little code
/// between the loads, the processor has many of them in flight at once.
pub const SIDE_BY_SIDE: usize = 64;

/// Loads some words into the cache, before a branch or another load depends on one of them.
#[inline]
pub fn preload(words: impl Iterator<Item = u64>) {
    std::hint::black_box(words.fold(0, |sum, word| sum ^ word));
}

/// Asks the system for huge pages in memory that was not written to yet, as far as it spans any.
#[allow(unsafe_code)]
pub fn advise_huge_pages<T>(memory: &mut [T]) {
    #[cfg(target_os = "linux")]
    // SAFETY: the bytes are those of `memory`, which is borrowed exclusively; huge pages do not
    // change them.
    unsafe {
        advise(memory.as_mut_ptr().cast(), size_of_val(memory), HUGE, rustix::mm::Advice::LinuxHugepage);
    }
    #[cfg(not(target_os = "linux"))]
    let _ = memory;
}

/// Returns the pages of unused words to the system. Afterwards each word is as it was, or zero.
/// Parts that are adjacent in memory and consecutive in `parts` are returned as one: the system
/// takes a huge page back only as a whole.
#[allow(unsafe_code)]
pub fn return_pages<P: AsMut<[u64]>>(parts: &mut [P]) {
    #[cfg(target_os = "linux")]
    {
        let mut parts = parts.iter_mut().map(|part| part.as_mut().as_mut_ptr_range()).peekable();
        while let Some(mut run) = parts.next() {
            while let Some(next) = parts.next_if(|next| next.start == run.end) {
                run.end = next.end;
            }
            let bytes = run.end.addr() - run.start.addr();
            // SAFETY: every byte of the run is in a part, since each part begins where the previous
            // one ends, and all parts are borrowed exclusively. Returned pages read as zeros, and
            // any bits are a valid word. The pointer has the provenance of the first part only, but
            // it is the system that writes, to which provenance does not matter.
            unsafe {
                advise(run.start.cast(), bytes, rustix::param::page_size(), rustix::mm::Advice::LinuxDontNeed);
            }
        }
    }
    #[cfg(not(target_os = "linux"))]
    let _ = parts;
}

/// Returns what this thread has freed to the system, if the program's allocator is mimalloc; it
/// would keep it for a second, in which the next step takes as much again.
#[cfg(feature = "allocator")]
#[allow(unsafe_code)]
pub fn return_freed() {
    // SAFETY: any thread may call it at any time. Only memory that nothing uses is returned.
    unsafe { libmimalloc_sys::mi_collect(true) };
}

/// Prefetches the cache line of a word that will be written to soon; does nothing if `at` is not an
/// index of `words`. (Non-temporal stores of whole lines were slower: 1.1 times the time of the
/// pruning phase.)
#[inline(always)]
#[allow(unsafe_code)]
pub fn fetch_to_write(words: &[u64], at: usize) {
    #[cfg(target_arch = "x86_64")]
    if let Some(word) = words.get(at) {
        use std::arch::x86_64::{_MM_HINT_ET0, _mm_prefetch};
        // SAFETY: a prefetch has no visible effect, whatever the address; and this address is
        // within `words`.
        unsafe { _mm_prefetch::<_MM_HINT_ET0>(std::ptr::from_ref(word).cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (words, at);
}

/// Gives the system advice about all complete pages of `page` bytes within `bytes` bytes from
/// `begin`. If the system refuses it, nothing changes.
///
/// # Safety
/// The caller has exclusive access to the bytes, and they are valid for it after any change that
/// the advice allows. `page` is a multiple of the system's page size.
#[cfg(target_os = "linux")]
#[allow(unsafe_code)]
unsafe fn advise(begin: *mut u8, bytes: usize, page: usize, advice: rustix::mm::Advice) {
    let skipped = begin.addr().next_multiple_of(page) - begin.addr();
    let length = bytes.saturating_sub(skipped) / page * page;
    if length > 0 {
        // SAFETY: complete pages, so the system rounds nothing up, and all of them the caller's:
        // `skipped + length <= bytes`.
        let _ = unsafe { rustix::mm::madvise(begin.wrapping_add(skipped).cast(), length, advice) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn advice_changes_no_more_than_it_says() {
        for length in [0, 1, 511, 512, 5000, 1 << 20] {
            let mut memory: Vec<u64> = vec![0; length];
            advise_huge_pages(&mut memory);
            assert!(memory.iter().all(|word| *word == 0));
            (0..).zip(&mut memory).for_each(|(at, word)| *word = at);
            advise_huge_pages(&mut memory);
            assert!((0..).zip(&memory).all(|(at, word)| *word == at));
            // Three quarters are returned, in parts that are each smaller than a page, but
            // adjacent.
            let split = length / 4 * 3;
            let (returned, kept) = memory.split_at_mut(split);
            return_pages(&mut returned.chunks_mut(100).collect::<Vec<_>>());
            let zeros = |words: &[u64]| words.iter().skip(1).filter(|word| **word == 0).count();
            assert!((split..).zip(&*kept).all(|(at, word)| *word == at as u64));
            assert!(!cfg!(target_os = "linux") || length < 1 << 20 || zeros(returned) > length / 2);
            assert!((0..).zip(&memory).all(|(at, word)| *word == at || *word == 0));
            memory.fill(7);
            assert!(memory.iter().all(|word| *word == 7));
        }
    }

    #[test]
    fn words_between_the_parts_are_kept() {
        let mut memory: Vec<u64> = (1..=1 << 20).collect();
        let (first, rest) = memory.split_at_mut(300_000);
        let (hole, rest) = rest.split_at_mut(7);
        let (second, rest) = rest.split_at_mut(200_001);
        let (empty, rest) = rest.split_at_mut(0);
        let (third, end) = rest.split_at_mut(300_000);
        let mut parts = [first, second, empty, third];
        for _ in 0..2 {
            return_pages(&mut parts);
            assert!((300_001..).zip(&*hole).chain((800_009..).zip(&*end)).all(|(at, word)| *word == at));
            parts.reverse();
        }
        let zeros = memory.iter().filter(|word| **word == 0).count();
        assert!(!cfg!(target_os = "linux") || zeros > 700_000, "{zeros} words");
    }
}
