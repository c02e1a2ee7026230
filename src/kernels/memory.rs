//! What the machine is told about memory: which pages should be huge, and what will be written to soon.
//!
//! Records are dealt to thousands of blocks at once, and a union-find hops through hundreds of megabytes: with pages
//! of 4 KiB every step asks for another page's address (2.3 times the time of the pruning phase at 150 M documents),
//! and clearing fresh pages one by one costs one to two seconds a gigabyte. Pages of 2 MiB help with both. Advice
//! changes nothing else, and where the system has none to take, nothing is said.

/// Bytes of a huge page on x86-64, and on aarch64 with pages of 4 KiB.
#[cfg(target_os = "linux")]
const HUGE: usize = 2 << 20;

/// Asks for huge pages where memory that was not written to yet spans any.
pub fn huge<T>(memory: &mut [T]) {
    #[cfg(target_os = "linux")]
    within(memory, HUGE, rustix::mm::Advice::LinuxHugepage);
    #[cfg(not(target_os = "linux"))]
    let _ = memory;
}

/// Gives the pages of words that are not needed for now back to the system. They hold what they held, or zeros.
pub fn give_back(memory: &mut [u64]) {
    #[cfg(target_os = "linux")]
    within(memory, rustix::param::page_size(), rustix::mm::Advice::LinuxDontNeed);
    #[cfg(not(target_os = "linux"))]
    let _ = memory;
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

/// Advises about all whole pages of `page` bytes within some memory.
#[cfg(target_os = "linux")]
#[allow(unsafe_code)]
fn within<T>(memory: &mut [T], page: usize, advice: rustix::mm::Advice) {
    let bytes = size_of_val(memory);
    let begin = memory.as_mut_ptr() as usize;
    let skipped = begin.next_multiple_of(page) - begin;
    let length = bytes.saturating_sub(skipped) / page * page;
    if length == 0 {
        return;
    }
    // SAFETY: the range lies within `memory` (`skipped + length <= bytes`), which is borrowed alone. Huge pages leave
    // its content as it is; pages given back (`give_back`, words only) read as zeros, and any bits are a word. A
    // refusal changes nothing.
    let _ = unsafe { rustix::mm::madvise(memory.as_mut_ptr().cast::<u8>().add(skipped).cast(), length, advice) };
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
            give_back(&mut memory);
            assert!((0..).zip(&memory).all(|(at, word)| *word == at || *word == 0));
            let given = memory.iter().skip(1).filter(|word| **word == 0).count();
            assert!(!cfg!(target_os = "linux") || length < 1 << 20 || given > length / 2, "{given} words given back");
            memory.fill(7);
            assert!(memory.iter().all(|word| *word == 7));
        }
    }
}
