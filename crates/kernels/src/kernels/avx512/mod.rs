//! The level of x86-64 processors with AVX-512, GFNI and VPCLMULQDQ: Zen 4 and Ice Lake servers,
//! and later ones.
//!
//! In reading order: `vectors` (loads, stores, products and reductions of eight numbers at a time),
//! `blanks`, `words`, `join`, `preimages`, `minima` (which uses `leading` and `candidates`),
//! `supershingles`, `places` (lookups in the bit set), `hash` (XXH3).

mod blanks;
mod candidates;
mod hash;
mod join;
mod leading;
mod minima;
mod places;
mod preimages;
mod supershingles;
mod vectors;
mod words;

use super::{Kernels, markup};

/// Whether this machine has all instructions of the level.
pub(super) fn detected() -> bool {
    is_x86_feature_detected!("avx2")
        && is_x86_feature_detected!("fma")
        && is_x86_feature_detected!("f16c")
        && is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512dq")
        && is_x86_feature_detected!("avx512vl")
        && is_x86_feature_detected!("avx512cd")
        && is_x86_feature_detected!("avx512vbmi")
        && is_x86_feature_detected!("avx512vbmi2")
        && is_x86_feature_detected!("gfni")
        && is_x86_feature_detected!("vpclmulqdq")
        && is_x86_feature_detected!("pclmulqdq")
        && is_x86_feature_detected!("bmi1")
        && is_x86_feature_detected!("bmi2")
        && is_x86_feature_detected!("lzcnt")
        && is_x86_feature_detected!("popcnt")
}

/// The table of the level; [`available`](super::available) lists it only if [`detected`] returns
/// true.
pub(super) static KERNELS: Kernels = Kernels {
    name: "avx512",
    // SAFETY: `available` returns this table only if `detected` returns true; likewise below.
    put_blanks: |text, spaced| unsafe { blanks::put_blanks(text, spaced) },
    // SAFETY: as above.
    words: |text, bounds| unsafe { words::words(text, bounds) },
    // SAFETY: as above.
    join: |text, line_end, bounds, joined| unsafe { join::join(text, line_end, bounds, joined) },
    // SAFETY: as above.
    preimages: |shingles, text, bounds, out| unsafe { preimages::preimages(shingles, text, bounds, out) },
    // SAFETY: as above.
    minima: |functions, preimages, minima| unsafe { minima::minima(functions, preimages, minima) },
    // SAFETY: as above.
    supershingles: |runs, features, out| unsafe { supershingles::supershingles(runs, features, out) },
    // SAFETY: as above.
    marks: |page, marks| unsafe { markup::avx512(page, marks) },
    // SAFETY: as above.
    held: |set, words, out| unsafe { places::held(set, words, out) },
    // SAFETY: as above.
    hash_64: |bytes| unsafe { hash::hash_64(bytes) },
    // SAFETY: as above.
    hash_128: |bytes| unsafe { hash::hash_128(bytes) },
};
