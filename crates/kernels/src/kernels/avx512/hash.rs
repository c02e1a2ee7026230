//! XXH3 of long inputs: the eight sums of the algorithm are one register.
//!
//! The input is cut into stripes of 64 bytes. Each of the eight numbers of a stripe, mixed with
//! eight bytes of the secret, adds the product of its halves to its sum, and itself to the sum
//! beside it. After each block of 16 stripes the sums are scrambled; at the end they are merged
//! into 64 or 128 bits. All constants are those of the published algorithm, for the seed 0.

use std::arch::x86_64::*;

use super::vectors::{all, load, load_bytes, store};

/// The bytes of a stripe.
const STRIPE: usize = 64;
/// The bytes of a block: each stripe of it begins eight bytes later in the secret.
const BLOCK: usize = 16 * STRIPE;

/// The numbers that the algorithm multiplies by.
const PRIMES_32: [u64; 3] = [0x9E37_79B1, 0x85EB_CA77, 0xC2B2_AE3D];
const PRIMES_64: [u64; 5] =
    [0x9E37_79B1_85EB_CA87, 0xC2B2_AE3D_27D4_EB4F, 0x1656_67B1_9E37_79F9, 0x85EB_CA77_C2B2_AE63, 0x27D4_EB2F_1656_67C5];

/// The sums before the first stripe.
const INITIAL: [u64; 8] =
    [PRIMES_32[2], PRIMES_64[0], PRIMES_64[1], PRIMES_64[2], PRIMES_64[3], PRIMES_32[1], PRIMES_64[4], PRIMES_32[0]];

/// The default secret.
const SECRET: [u8; 192] = [
    0xb8, 0xfe, 0x6c, 0x39, 0x23, 0xa4, 0x4b, 0xbe, 0x7c, 0x01, 0x81, 0x2c, 0xf7, 0x21, 0xad, 0x1c, 0xde, 0xd4, 0x6d,
    0xe9, 0x83, 0x90, 0x97, 0xdb, 0x72, 0x40, 0xa4, 0xa4, 0xb7, 0xb3, 0x67, 0x1f, 0xcb, 0x79, 0xe6, 0x4e, 0xcc, 0xc0,
    0xe5, 0x78, 0x82, 0x5a, 0xd0, 0x7d, 0xcc, 0xff, 0x72, 0x21, 0xb8, 0x08, 0x46, 0x74, 0xf7, 0x43, 0x24, 0x8e, 0xe0,
    0x35, 0x90, 0xe6, 0x81, 0x3a, 0x26, 0x4c, 0x3c, 0x28, 0x52, 0xbb, 0x91, 0xc3, 0x00, 0xcb, 0x88, 0xd0, 0x65, 0x8b,
    0x1b, 0x53, 0x2e, 0xa3, 0x71, 0x64, 0x48, 0x97, 0xa2, 0x0d, 0xf9, 0x4e, 0x38, 0x19, 0xef, 0x46, 0xa9, 0xde, 0xac,
    0xd8, 0xa8, 0xfa, 0x76, 0x3f, 0xe3, 0x9c, 0x34, 0x3f, 0xf9, 0xdc, 0xbb, 0xc7, 0xc7, 0x0b, 0x4f, 0x1d, 0x8a, 0x51,
    0xe0, 0x4b, 0xcd, 0xb4, 0x59, 0x31, 0xc8, 0x9f, 0x7e, 0xc9, 0xd9, 0x78, 0x73, 0x64, 0xea, 0xc5, 0xac, 0x83, 0x34,
    0xd3, 0xeb, 0xc3, 0xc5, 0x81, 0xa0, 0xff, 0xfa, 0x13, 0x63, 0xeb, 0x17, 0x0d, 0xdd, 0x51, 0xb7, 0xf0, 0xda, 0x49,
    0xd3, 0x16, 0x55, 0x26, 0x29, 0xd4, 0x68, 0x9e, 0x2b, 0x16, 0xbe, 0x58, 0x7d, 0x47, 0xa1, 0xfc, 0x8f, 0xf8, 0xb8,
    0xd1, 0x7a, 0xd0, 0x31, 0xce, 0x45, 0xcb, 0x3a, 0x8f, 0x95, 0x16, 0x04, 0x28, 0xaf, 0xd7, 0xfb, 0xca, 0xbb, 0x4b,
    0x40, 0x7e,
];

/// Where the secrets of a scramble, of the last stripe, and of the two merges begin.
const SCRAMBLE: usize = SECRET.len() - STRIPE;
const LAST: usize = SCRAMBLE - 7;
const MERGE_LOW: usize = 11;
const MERGE_HIGH: usize = SCRAMBLE - 11;

/// The XXH3-64 of more than 240 bytes.
#[target_feature(enable = "avx512f,avx512bw,avx512dq")]
pub(super) fn hash_64(bytes: &[u8]) -> u64 {
    merged(&sums(bytes), MERGE_LOW, (bytes.len() as u64).wrapping_mul(PRIMES_64[0]))
}

/// The XXH3-128 of more than 240 bytes.
#[target_feature(enable = "avx512f,avx512bw,avx512dq")]
pub(super) fn hash_128(bytes: &[u8]) -> u128 {
    let (sums, length) = (sums(bytes), bytes.len() as u64);
    let low = merged(&sums, MERGE_LOW, length.wrapping_mul(PRIMES_64[0]));
    let high = merged(&sums, MERGE_HIGH, !length.wrapping_mul(PRIMES_64[1]));
    u128::from(high) << 64 | u128::from(low)
}

/// The sums over all stripes of more than 64 bytes.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq")]
fn sums(bytes: &[u8]) -> [u64; 8] {
    // At least one byte is left after the whole blocks, and after the whole stripes of the rest:
    // the last stripe is added apart.
    let (blocks, rest) = bytes.split_at((bytes.len() - 1) / BLOCK * BLOCK);
    let mut sums = load(&INITIAL);
    for block in blocks.as_chunks::<BLOCK>().0 {
        for (number, stripe) in block.as_chunks().0.iter().enumerate() {
            sums = add(sums, stripe, 8 * number);
        }
        let shifted = _mm512_srli_epi64::<47>(sums);
        let mixed = _mm512_ternarylogic_epi64::<0x96>(sums, shifted, secret(SCRAMBLE));
        sums = _mm512_mullo_epi64(mixed, all(PRIMES_32[0]));
    }
    for (number, stripe) in rest[..rest.len() - 1].as_chunks().0.iter().enumerate() {
        sums = add(sums, stripe, 8 * number);
    }
    sums = add(sums, bytes.last_chunk().expect("the input is longer than a stripe"), LAST);
    let mut all_sums = [0; 8];
    store(&mut all_sums, sums);
    all_sums
}

/// Adds a stripe, with the secret from `at` on.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq")]
fn add(sums: __m512i, stripe: &[u8; STRIPE], at: usize) -> __m512i {
    let stripe = load_bytes(stripe);
    let keyed = _mm512_xor_si512(stripe, secret(at));
    let product = _mm512_mul_epu32(keyed, _mm512_srli_epi64::<32>(keyed));
    // Each number goes to the sum beside it.
    let beside = _mm512_shuffle_epi32::<0x4E>(stripe);
    _mm512_add_epi64(sums, _mm512_add_epi64(product, beside))
}

/// 64 bytes of the secret.
#[inline]
#[target_feature(enable = "avx512f")]
fn secret(at: usize) -> __m512i {
    load_bytes(SECRET[at..].first_chunk().expect("a place of the secret with 64 bytes after it"))
}

/// Merges the sums into 64 bits.
#[inline]
fn merged(sums: &[u64; 8], at: usize, start: u64) -> u64 {
    let (keys, _) = SECRET[at..].as_chunks::<8>();
    let keyed = |number: usize| sums[number] ^ u64::from_le_bytes(keys[number]);
    let folded = |pair: usize| {
        let product = u128::from(keyed(2 * pair)) * u128::from(keyed(2 * pair + 1));
        product as u64 ^ (product >> 64) as u64
    };
    let sum = (0..4).fold(start, |sum, pair| sum.wrapping_add(folded(pair)));
    let mixed = (sum ^ sum >> 37).wrapping_mul(0x1656_6791_9E37_79F9);
    mixed ^ mixed >> 32
}
