//! What the machine is told about memory: which pages should be huge, what is not needed for now, and what will be
//! looked at or written to soon.
//!
//! Records are dealt to thousands of blocks at once, and a union-find hops through hundreds of megabytes: with pages
//! of 4 KiB every step asks for another page's address (2.3 times the time of the pruning phase at 150 M documents),
//! and clearing fresh pages one by one costs one to two seconds a gigabyte. Pages of 2 MiB help with both. Where
//! the system takes no advice, none is given.

/// Bytes of a huge page on x86-64, and on aarch64 with pages of 4 KiB.
#[cfg(target_os = "linux")]
const HUGE: usize = 2 << 20;

/// Places in memory that are looked at side by side: with little between the loads many of them are under way at once.
pub const SIDE_BY_SIDE: usize = 64;

/// Looks at some words, so that they are near when a branch, or the next load, depends on one of them.
#[inline]
pub fn look(words: impl Iterator<Item = u64>) {
    std::hint::black_box(words.fold(0, |sum, word| sum ^ word));
}

/// Asks for huge pages where memory that was not written to yet spans any.
#[allow(unsafe_code)]
pub fn huge<T>(memory: &mut [T]) {
    #[cfg(target_os = "linux")]
    // SAFETY: the bytes are those of `memory`, which is borrowed alone; huge pages leave them as they are.
    unsafe {
        advise(memory.as_mut_ptr().cast(), size_of_val(memory), HUGE, rustix::mm::Advice::LinuxHugepage);
    }
    #[cfg(not(target_os = "linux"))]
    let _ = memory;
}

/// Gives the pages of words that are not needed for now back to the system. They hold what they held, or zeros. Parts
/// that lie side by side, and follow each other in `parts`, are given back as one: the system takes a huge page back only as
/// a whole.
#[allow(unsafe_code)]
pub fn give_back<P: AsMut<[u64]>>(parts: &mut [P]) {
    #[cfg(target_os = "linux")]
    {
        let mut parts = parts.iter_mut().map(|part| part.as_mut().as_mut_ptr_range()).peekable();
        while let Some(mut run) = parts.next() {
            while let Some(next) = parts.next_if(|next| next.start == run.end) {
                run.end = next.end;
            }
            let bytes = run.end.addr() - run.start.addr();
            // SAFETY: every byte of the run is one of a part, since each part begins where the one before it ends, and all parts
            // are borrowed alone; pages that are given back read as zeros, and any bits are a word. That the pointer is that of
            // the first part means nothing to the system, which is who writes.
            unsafe {
                advise(run.start.cast(), bytes, rustix::param::page_size(), rustix::mm::Advice::LinuxDontNeed);
            }
        }
    }
    #[cfg(not(target_os = "linux"))]
    let _ = parts;
}

/// Fetches the line of the cache that holds a word, to be written to soon. (Stores past the caches, a line at a time,
/// were slower here: 1.1 times the time of the pruning phase.)
#[inline(always)]
#[allow(unsafe_code)]
pub fn fetch_to_write(words: &[u64], at: usize) {
    #[cfg(target_arch = "x86_64")]
    if let Some(word) = words.get(at) {
        use std::arch::x86_64::{_MM_HINT_ET0, _mm_prefetch};
        // SAFETY: a prefetch changes nothing that a program can see, whatever the address; and this one is within
        // `words`.
        unsafe { _mm_prefetch::<_MM_HINT_ET0>(std::ptr::from_ref(word).cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (words, at);
}

/// Advises about all whole pages of `page` bytes within some memory. A refusal changes nothing.
///
/// # Safety
/// The caller has the `bytes` from `begin` on for itself, and what the advice makes of them is still what it takes them for.
/// `page` is a multiple of the system's pages.
#[cfg(target_os = "linux")]
#[allow(unsafe_code)]
unsafe fn advise(begin: *mut u8, bytes: usize, page: usize, advice: rustix::mm::Advice) {
    let skipped = begin.addr().next_multiple_of(page) - begin.addr();
    let length = bytes.saturating_sub(skipped) / page * page;
    if length > 0 {
        // SAFETY: whole pages of the system, which rounds nothing up, and all of the caller's bytes: `skipped + length <= bytes`.
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
            huge(&mut memory);
            assert!(memory.iter().all(|word| *word == 0));
            (0..).zip(&mut memory).for_each(|(at, word)| *word = at);
            huge(&mut memory);
            assert!((0..).zip(&memory).all(|(at, word)| *word == at));
            // Parts of which none has a whole page, but all together do, and some others.
            let split = length / 4 * 3;
            let (some, others) = memory.split_at_mut(split);
            give_back(&mut some.chunks_mut(100).collect::<Vec<_>>());
            let given = |words: &[u64]| words.iter().skip(1).filter(|word| **word == 0).count();
            assert!((split..).zip(&*others).all(|(at, word)| *word == at as u64));
            assert!(!cfg!(target_os = "linux") || length < 1 << 20 || given(some) > length / 2);
            assert!((0..).zip(&memory).all(|(at, word)| *word == at || *word == 0));
            memory.fill(7);
            assert!(memory.iter().all(|word| *word == 7));
        }
    }

    #[test]
    fn what_lies_between_parts_is_kept() {
        let mut memory: Vec<u64> = (1..=1 << 20).collect();
        let (first, rest) = memory.split_at_mut(300_000);
        let (hole, rest) = rest.split_at_mut(7);
        let (second, rest) = rest.split_at_mut(200_001);
        let (none, rest) = rest.split_at_mut(0);
        let (third, other_hole) = rest.split_at_mut(300_000);
        let mut parts = [first, second, none, third];
        for _ in 0..2 {
            give_back(&mut parts);
            assert!((300_001..).zip(&*hole).chain((800_009..).zip(&*other_hole)).all(|(at, word)| *word == at));
            parts.reverse();
        }
        let given = memory.iter().filter(|word| **word == 0).count();
        assert!(!cfg!(target_os = "linux") || given > 700_000, "{given} words");
    }
}
