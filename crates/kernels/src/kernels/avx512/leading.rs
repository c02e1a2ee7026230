//! The leading bytes of images, 64 at a time.
//!
//! Multiplication by a constant is linear over bits: the leading byte of an image is the sum of
//! eight bit matrices times the bytes of the pre-image. The bytes of 64 pre-images are transposed
//! to eight planes, which all functions share.

use std::arch::x86_64::*;
use std::mem::MaybeUninit;

use super::vectors::{all, load, load_bytes};
use crate::kernels::polynomials::gf2::LANES;

/// The number of blocks of 64 pre-images in a chunk: their leading bytes and planes stay in the
/// first-level cache.
pub(super) const BLOCKS: usize = 8;

/// The planes of a block: byte `s` of plane `j` is byte `j` of pre-image `s`.
pub(super) type Planes = [__m512i; 8];

/// The index of the byte in which `smallest_of_eight` returns the smallest byte of each of eight
/// vectors.
pub(super) const SMALLEST: [u8; LANES] = [0, 16, 32, 48, 8, 24, 40, 56];
/// The index of the leading byte of each of eight numbers.
pub(super) const LEADING: [u8; LANES] = [7, 15, 23, 31, 39, 47, 55, 63];

/// Writes the leading bytes of all images. Returns for each function a vector of the smallest ones,
/// position by position.
#[inline]
#[target_feature(enable = "avx512vbmi,avx512vl,gfni")]
pub(super) fn leading_bytes(
    planes: &[Planes],
    matrices: &[[u64; 8]],
    leading: &mut [[MaybeUninit<__m512i>; LANES]; BLOCKS],
) -> [__m512i; LANES] {
    let mut smallest = [all(u64::MAX); LANES];
    let (pairs, single) = planes.as_chunks::<2>();
    // Two blocks at a time: a matrix is loaded once for both.
    for (pair, [first, second]) in pairs.iter().enumerate() {
        let [to_first, to_second] = &mut leading.as_chunks_mut::<2>().0[pair];
        for (i, matrices) in matrices.iter().enumerate() {
            let (a, b) = (product(first, matrices), product(second, matrices));
            to_first[i].write(a);
            to_second[i].write(b);
            smallest[i] = _mm512_min_epu8(smallest[i], _mm512_min_epu8(a, b));
        }
    }
    if let [last] = single {
        for (i, matrices) in matrices.iter().enumerate() {
            let a = product(last, matrices);
            leading[planes.len() - 1][i].write(a);
            smallest[i] = _mm512_min_epu8(smallest[i], a);
        }
    }
    smallest
}

/// The leading bytes of 64 images: the sum of eight matrices times eight planes.
#[inline]
#[target_feature(enable = "avx512vbmi,avx512vl,gfni")]
pub(super) fn product(planes: &Planes, matrices: &[u64; 8]) -> __m512i {
    let times = |j: usize| _mm512_gf2p8affine_epi64_epi8::<0>(planes[j], all(matrices[j]));
    let sum = |a, b, c| _mm512_ternarylogic_epi64::<0x96>(a, b, c);
    let (a, b) = (sum(times(0), times(1), times(2)), sum(times(3), times(4), times(5)));
    sum(a, b, _mm512_xor_si512(times(6), times(7)))
}

/// The smallest byte of each of eight vectors, at the indices of `SMALLEST`.
#[inline]
#[target_feature(enable = "avx512vbmi,avx512vl,gfni")]
pub(super) fn smallest_of_eight(vectors: &[__m512i; LANES]) -> __m512i {
    let [a, b, c, d, e, f, g, h] = *vectors;
    let halves = |a, b| _mm512_min_epu8(_mm512_shuffle_i64x2::<0x44>(a, b), _mm512_shuffle_i64x2::<0xEE>(a, b));
    let quarters = |a, b| _mm512_min_epu8(_mm512_shuffle_i64x2::<0x88>(a, b), _mm512_shuffle_i64x2::<0xDD>(a, b));
    let (low, high) = (quarters(halves(a, b), halves(c, d)), quarters(halves(e, f), halves(g, h)));
    let eighths = _mm512_min_epu8(_mm512_unpacklo_epi64(low, high), _mm512_unpackhi_epi64(low, high));
    let fours = _mm512_min_epu8(eighths, _mm512_srli_epi64::<32>(eighths));
    let twos = _mm512_min_epu8(fours, _mm512_srli_epi64::<16>(fours));
    _mm512_min_epu8(twos, _mm512_srli_epi64::<8>(twos))
}

/// Transposes 64 pre-images to planes.
#[inline]
#[target_feature(enable = "avx512vbmi,avx512vl,gfni")]
pub(super) fn transposed(block: &[u64; 64]) -> Planes {
    let (eights, _) = block.as_chunks::<8>();
    // First, in each vector of eight pre-images, byte `s` of word `j` becomes byte `j` of pre-image
    // `s` ...
    let order = load_bytes(&BYTES);
    let of = |i: usize| _mm512_permutexvar_epi8(order, load(&eights[i]));
    // ... then the words of eight vectors are transposed as an 8 by 8 matrix: in pairs, in fours,
    // in eights.
    let rows = |i: usize| {
        let (a, b) = (of(i), of(i + 1));
        (_mm512_unpacklo_epi64(a, b), _mm512_unpackhi_epi64(a, b))
    };
    let [(a0, a1), (b0, b1), (c0, c1), (d0, d1)] = [rows(0), rows(2), rows(4), rows(6)];
    let columns = |a, b, c, d| {
        let (low, low_next) = (_mm512_shuffle_i64x2::<0x88>(a, b), _mm512_shuffle_i64x2::<0xDD>(a, b));
        let (high, high_next) = (_mm512_shuffle_i64x2::<0x88>(c, d), _mm512_shuffle_i64x2::<0xDD>(c, d));
        [
            _mm512_shuffle_i64x2::<0x88>(low, high),
            _mm512_shuffle_i64x2::<0x88>(low_next, high_next),
            _mm512_shuffle_i64x2::<0xDD>(low, high),
            _mm512_shuffle_i64x2::<0xDD>(low_next, high_next),
        ]
    };
    let ([p0, p2, p4, p6], [p1, p3, p5, p7]) = (columns(a0, b0, c0, d0), columns(a1, b1, c1, d1));
    [p0, p1, p2, p3, p4, p5, p6, p7]
}

/// The permutation of bytes with `8 * s + j` at index `8 * j + s`.
const BYTES: [u8; 64] = {
    let mut order = [0; 64];
    let mut i = 0;
    while i < 64 {
        order[i] = 8 * (i as u8 % 8) + i as u8 / 8;
        i += 1;
    }
    order
};
