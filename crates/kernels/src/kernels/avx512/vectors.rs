//! Vectors of 64 bytes: loads, stores, and arithmetic in GF(2) on eight numbers at once.

use std::arch::x86_64::*;

/// Loads eight numbers.
#[inline]
#[target_feature(enable = "avx512f")]
pub(super) fn load(from: &[u64; 8]) -> __m512i {
    // SAFETY: the 64 bytes are those of `from`; the load needs no alignment.
    unsafe { _mm512_loadu_si512(from.as_ptr().cast()) }
}

/// Loads the first eight numbers; if there are fewer, pads them with zeros.
#[inline]
#[target_feature(enable = "avx512f")]
pub(super) fn load_first(from: &[u64]) -> __m512i {
    match from.first_chunk() {
        Some(eight) => load(eight),
        // SAFETY: the mask excludes the lanes beyond the end of `from`.
        None => unsafe { _mm512_maskz_loadu_epi64((1 << from.len()) - 1, from.as_ptr().cast()) },
    }
}

/// Loads 64 bytes.
#[inline]
#[target_feature(enable = "avx512f")]
pub(super) fn load_bytes(from: &[u8; 64]) -> __m512i {
    // SAFETY: as in `load`.
    unsafe { _mm512_loadu_si512(from.as_ptr().cast()) }
}

/// Loads fewer than 64 bytes, and pads them with zeros.
#[inline]
#[target_feature(enable = "avx512bw")]
pub(super) fn load_first_bytes(from: &[u8]) -> __m512i {
    let present = !(u64::MAX << from.len().min(63));
    // SAFETY: the mask excludes the bytes beyond the end of `from`.
    unsafe { _mm512_maskz_loadu_epi8(present, from.as_ptr().cast()) }
}

/// Loads 16 bytes.
#[inline]
#[target_feature(enable = "avx512f")]
pub(super) fn load_word(from: &[u8; 16]) -> __m128i {
    // SAFETY: as in `load`, for 16 bytes.
    unsafe { _mm_loadu_si128(from.as_ptr().cast()) }
}

/// Stores eight numbers.
#[inline]
#[target_feature(enable = "avx512f")]
pub(super) fn store(to: &mut [u64; 8], vector: __m512i) {
    // SAFETY: the 64 bytes are those of `to`; the store needs no alignment.
    unsafe { _mm512_storeu_si512(to.as_mut_ptr().cast(), vector) }
}

/// Stores 64 bytes.
#[inline]
#[target_feature(enable = "avx512f")]
pub(super) fn store_bytes(to: &mut [u8; 64], vector: __m512i) {
    // SAFETY: as in `store`.
    unsafe { _mm512_storeu_si512(to.as_mut_ptr().cast(), vector) }
}

/// Stores sixteen positions.
#[inline]
#[target_feature(enable = "avx512f")]
pub(super) fn store_positions(to: &mut [u32; 16], vector: __m512i) {
    // SAFETY: as in `store`.
    unsafe { _mm512_storeu_si512(to.as_mut_ptr().cast(), vector) }
}

/// The same number eight times.
#[inline]
#[target_feature(enable = "avx512f")]
pub(super) fn all(x: u64) -> __m512i {
    _mm512_set1_epi64(x.cast_signed())
}

/// The same byte 64 times.
#[inline]
#[target_feature(enable = "avx512f")]
pub(super) fn all_bytes(x: u8) -> __m512i {
    _mm512_set1_epi8(x.cast_signed())
}

/// The high and the low halves of eight products of 128 bits.
#[inline]
#[target_feature(enable = "avx512f,vpclmulqdq")]
pub(super) fn multiply(a: __m512i, b: __m512i) -> (__m512i, __m512i) {
    let even = _mm512_clmulepi64_epi128::<0x00>(a, b);
    let odd = _mm512_clmulepi64_epi128::<0x11>(a, b);
    (_mm512_unpackhi_epi64(even, odd), _mm512_unpacklo_epi64(even, odd))
}

/// Eight images: `x * t^64` modulo `t^64 + p`, by Barrett's rule (see `gf2`).
#[inline]
#[target_feature(enable = "avx512f,vpclmulqdq")]
pub(super) fn images(x: __m512i, p: __m512i, mu: __m512i) -> __m512i {
    let quotient = _mm512_xor_si512(x, multiply(x, mu).0);
    multiply(quotient, p).1
}

/// The image of one number.
#[inline]
#[target_feature(enable = "avx512f,pclmulqdq")]
pub(super) fn image(x: u64, p: u64, mu: u64) -> u64 {
    let constants = _mm_set_epi64x(p.cast_signed(), mu.cast_signed());
    let x = _mm_cvtsi64_si128(x.cast_signed());
    let high = _mm_clmulepi64_si128::<0x00>(x, constants);
    let quotient = _mm_xor_si128(x, _mm_unpackhi_epi64(high, high));
    _mm_cvtsi128_si64(_mm_clmulepi64_si128::<0x10>(quotient, constants)).cast_unsigned()
}

/// The product of two numbers modulo `t^64 + p`.
#[inline]
#[target_feature(enable = "avx512f,pclmulqdq")]
pub(super) fn product(a: u64, b: u64, p: u64, mu: u64) -> u64 {
    let wide = _mm_clmulepi64_si128::<0x00>(_mm_cvtsi64_si128(a.cast_signed()), _mm_cvtsi64_si128(b.cast_signed()));
    let high = _mm_cvtsi128_si64(_mm_unpackhi_epi64(wide, wide)).cast_unsigned();
    image(high, p, mu) ^ _mm_cvtsi128_si64(wide).cast_unsigned()
}
