//! The kernels for vectors of 16 or 32 bytes, written once for all such instruction sets.
//!
//! [`Narrow`] is the interface to an instruction set; `avx2` and `pmull` implement it. All
//! functions here are inlined into functions of those files that are compiled for the instructions.
//!
//! - *Words*: 64 bytes become 64 bits: whether each byte is part of a word. Each change of that bit
//!   is a bound. ASCII is classified by comparing vectors; each other character is looked up by its
//!   leading byte.
//! - *Pre-images*: each word is fingerprinted alone, and the fingerprints are joined by products
//!   with `T(l)` = `t^(8l)`. So no shingle waits for the one before it. Time is linear in the bytes
//!   of the text, whatever the length of its words.
//! - *Minima*: images are linear, so the leading byte of an image is a sum of 16 lookups, one for
//!   each nibble of the pre-image, for as many pre-images at once as a vector has bytes. Only a
//!   pre-image whose leading byte is the smallest so far can have the smallest image. These
//!   candidates are evaluated in full; about one in 256 pre-images is a candidate by chance.

use super::polynomials::gf2::POWERS;
use super::words::alphabet::ALPHABET;
use super::{FeatureRuns, Functions, ShingleConstants};

/// An instruction set with vectors of bytes and carry-less products. A value is the proof that this
/// machine has it.
pub(super) trait Narrow: Copy {
    /// 64 bytes, as four lanes of 16.
    type Block: Copy;
    /// Two numbers of 64 bits, or one product of such: the low half first.
    type Pair: Copy;

    /// Loads 64 bytes.
    fn block(self, bytes: &[u8; 64]) -> Self::Block;
    /// The block of four copies of a lane.
    fn lanes(self, lane: &[u8; 16]) -> Self::Block;
    /// The block of 64 copies of a byte.
    fn splat(self, byte: u8) -> Self::Block;
    /// Bitwise or.
    fn or(self, a: Self::Block, b: Self::Block) -> Self::Block;
    /// Bitwise exclusive or.
    fn xor(self, a: Self::Block, b: Self::Block) -> Self::Block;
    /// The difference of each pair of bytes, modulo 256.
    fn subtract(self, a: Self::Block, b: Self::Block) -> Self::Block;
    /// The smaller of each pair of bytes.
    fn smaller(self, a: Self::Block, b: Self::Block) -> Self::Block;
    /// All ones where the byte of `a` is at most that of `b`, else zero.
    fn at_most(self, a: Self::Block, b: Self::Block) -> Self::Block;
    /// The highest bit of each byte; bytes are all ones or zero.
    fn bits(self, a: Self::Block) -> u64;
    /// The smallest byte.
    fn smallest(self, a: Self::Block) -> u8;
    /// The four low and the four high bits of each byte.
    fn nibbles(self, a: Self::Block) -> [Self::Block; 2];
    /// For each index below 16, the byte at that index in the same lane of `table`; for an index
    /// from 128, zero.
    fn lookup(self, table: Self::Block, indices: Self::Block) -> Self::Block;
    /// Interleaves units of two bytes of each pair of lanes: of their first halves, and of their
    /// second halves.
    fn zip_2(self, a: Self::Block, b: Self::Block) -> [Self::Block; 2];
    /// The same with units of four bytes.
    fn zip_4(self, a: Self::Block, b: Self::Block) -> [Self::Block; 2];
    /// The same with units of eight bytes.
    fn zip_8(self, a: Self::Block, b: Self::Block) -> [Self::Block; 2];

    /// A number in both halves.
    fn number(self, x: u64) -> Self::Pair;
    /// As [`lookup`](Narrow::lookup), in one lane.
    fn lookup_lane(self, table: &[u8; 16], indices: &[u8; 16]) -> Self::Pair;
    /// The low half.
    fn low(self, a: Self::Pair) -> u64;
    /// The sum of polynomials.
    fn add(self, a: Self::Pair, b: Self::Pair) -> Self::Pair;
    /// The carry-less product of the low halves.
    fn multiply_low(self, a: Self::Pair, b: Self::Pair) -> Self::Pair;
    /// The carry-less product of the high halves.
    fn multiply_high(self, a: Self::Pair, b: Self::Pair) -> Self::Pair;
}

/// Arithmetic modulo one polynomial, by Barrett's rule (see `gf2`).
#[derive(Clone, Copy)]
struct Modulus<V: Narrow> {
    v: V,
    p: V::Pair,
    mu: V::Pair,
}

impl<V: Narrow> Modulus<V> {
    #[inline(always)]
    fn new(v: V, p: u64, mu: u64) -> Modulus<V> {
        Modulus { v, p: v.number(p), mu: v.number(mu) }
    }

    /// A polynomial of 128 coefficients modulo P, in the low half; the high half is undefined.
    #[inline(always)]
    fn reduce(self, wide: V::Pair) -> V::Pair {
        let v = self.v;
        let quotient = v.add(wide, v.multiply_high(wide, self.mu));
        v.add(wide, v.multiply_high(quotient, self.p))
    }

    /// The image of `x`: `x * t^64` modulo P.
    #[inline(always)]
    fn image(self, x: u64) -> u64 {
        let v = self.v;
        let x = v.number(x);
        let quotient = v.add(x, v.multiply_low(x, self.mu));
        v.low(v.multiply_high(quotient, self.p))
    }

    /// The product of the low halves modulo P, in the low half.
    #[inline(always)]
    fn product(self, a: V::Pair, b: V::Pair) -> V::Pair {
        self.reduce(self.v.multiply_low(a, b))
    }
}

/// The bytes of a text that are read to classify 64 of them: a character that begins in them may
/// end up to 3 bytes later.
pub(super) const READ_AHEAD: usize = 64 + 3;

/// The bounds of words: see [`Kernels::words`](super::Kernels::words).
#[inline(always)]
pub(super) fn words<V: Narrow>(v: V, text: &[u8], bounds: &mut Vec<u32>) {
    let mut padded = [0; READ_AHEAD];
    let mut buffer = PositionBuffer { positions: [0; BUFFERED], count: 0 };
    // `inside`: whether the previous byte was in a word. `begun`: which of the next 64 bytes belong
    // to an alphanumeric character that begins before them.
    let (mut inside, mut begun) = (0, 0);
    let mut at = 0;
    // The bytes after the text are zeros. At least one of them is read, so that the last word has
    // its end.
    while at <= text.len() {
        let rest = &text[at..];
        let bytes = match rest.first_chunk() {
            Some(bytes) => bytes,
            None => {
                padded[..rest.len()].copy_from_slice(rest);
                padded[rest.len()..].fill(0);
                &padded
            }
        };
        let (block, _) = bytes.split_first_chunk().expect("67 bytes begin with 64");
        let block = v.block(block);
        let letters = v.subtract(v.or(block, v.splat(0x20)), v.splat(b'a'));
        let digits = v.subtract(block, v.splat(b'0'));
        let either = v.or(v.at_most(letters, v.splat(25)), v.at_most(digits, v.splat(9)));
        let mut members = v.bits(either) | begun;
        let mut leads = v.bits(v.at_most(v.splat(0xC0), block));
        begun = 0;
        if leads != 0 {
            let alphabet = &*ALPHABET;
            while leads != 0 {
                let lead = leads.trailing_zeros() as usize;
                let character = bytes[lead..].first_chunk().expect("three more bytes are read");
                let run = ((1_u128 << alphabet.leads(*character)) - 1) << lead;
                members |= run as u64;
                begun |= (run >> 64) as u64;
                leads &= leads - 1;
            }
        }
        buffer.push(members ^ (members << 1 | inside), at as u32, bounds);
        inside = members >> 63;
        at += 64;
    }
    bounds.extend_from_slice(&buffer.positions[..buffer.count]);
}

/// The capacity of a [`PositionBuffer`].
const BUFFERED: usize = 512;

/// A buffer for positions, in front of a vector.
struct PositionBuffer {
    positions: [u32; BUFFERED],
    count: usize,
}

impl PositionBuffer {
    /// Adds the positions of set bits, counted from `at`.
    #[inline(always)]
    fn push(&mut self, mut bits: u64, at: u32, bounds: &mut Vec<u32>) {
        if self.count > BUFFERED - 64 {
            bounds.extend_from_slice(&self.positions[..self.count]);
            self.count = 0;
        }
        // Writes eight at once, some of which are overwritten later: the number of bounds differs
        // from block to block, and a branch for each bound would often be mispredicted.
        let mut next = self.count;
        self.count += bits.count_ones() as usize;
        while bits != 0 {
            for position in &mut self.positions[next..next + 8] {
                *position = at + bits.trailing_zeros();
                bits &= bits.wrapping_sub(1);
            }
            next += 8;
        }
    }
}

/// The width of shingles that are joined by a tree of products: that of the default method.
const TREE_WIDTH: usize = 5;

/// Pre-images: see [`Kernels::preimages`](super::Kernels::preimages).
#[inline(always)]
pub(super) fn preimages<V: Narrow>(
    v: V,
    shingles: &ShingleConstants,
    text: &[u8],
    bounds: &[u32],
    preimages: &mut Vec<u64>,
) {
    let (words, _) = bounds.as_chunks::<2>();
    if words.is_empty() {
        return;
    }
    let modulus = Modulus::new(v, shingles.polynomial.p, shingles.polynomial.mu);
    // First the fingerprint of each word alone, and after the last word those of the first words
    // again, as the text wraps around. Then the pre-image of each shingle overwrites the
    // fingerprint of its first word, which no later shingle reads.
    preimages.resize(words.len(), 0);
    for (fingerprint, [start, end]) in preimages.iter_mut().zip(words) {
        *fingerprint = word(modulus, text, *start as usize, *end as usize);
    }
    for i in 0..shingles.width - 1 {
        preimages.push(preimages[i]);
    }
    if shingles.width == TREE_WIDTH {
        join_by_tree(modulus, &shingles.powers, words, preimages);
    } else {
        join_by_chain(modulus, &shingles.powers, shingles.width, words, preimages);
    }
    preimages.truncate(words.len());
}

/// The indices for a lookup that reverses the first `l` bytes of 16 and clears the others: those
/// from `16 - l` on.
const REVERSED: [u8; 32] = {
    let mut reversed = [0; 32];
    let mut i = 0;
    while i < 32 {
        // From 15 down to 0, then from 255 down: zero in a lookup.
        reversed[i] = 15_u8.wrapping_sub(i as u8);
        i += 1;
    }
    reversed
};

/// The fingerprint of the word at `start..end`.
#[inline(always)]
fn word<V: Narrow>(modulus: Modulus<V>, text: &[u8], start: usize, end: usize) -> u64 {
    let v = modulus.v;
    let length = end - start;
    if length <= 16
        && let Some(bytes) = text[start..].first_chunk()
    {
        let order = REVERSED[16 - length..].first_chunk().expect("16 indices follow the first 16");
        return v.low(modulus.reduce(v.lookup_lane(bytes, order)));
    }
    let (first, rest) = text[start..end].split_at(length % 8);
    let (rest, _) = rest.as_chunks::<8>();
    let first = first.iter().fold(0, |number, byte| number << 8 | u64::from(*byte));
    rest.iter().fold(first, |fingerprint, bytes| modulus.image(fingerprint) ^ u64::from_be_bytes(*bytes))
}

/// The length of word `i` with the NUL before it; after the last word comes the first.
#[inline(always)]
fn length(words: &[[u32; 2]], i: usize) -> usize {
    let [start, end] = words[if i < words.len() { i } else { i % words.len() }];
    (end - start) as usize + 1
}

/// `T(l)` = `t^(8l)` modulo P.
#[inline(always)]
fn power<V: Narrow>(modulus: Modulus<V>, powers: &[u64; POWERS], l: usize) -> V::Pair {
    let v = modulus.v;
    if l < POWERS {
        return v.number(powers[l]);
    }
    // The leading binary digits of l from the table, then digit by digit.
    let digits = l.ilog2() + 1 - POWERS.ilog2();
    let mut power = v.number(powers[l >> digits]);
    for i in (0..digits).rev() {
        power = modulus.product(power, power);
        if l >> i & 1 == 1 {
            power = modulus.product(power, v.number(powers[1]));
        }
    }
    power
}

/// Joins each five consecutive words to a shingle. With `W_k` the fingerprint of word `k` and `l_k`
/// its length with a NUL:
///
/// ```text
/// Q_k = W_k T(l_{k+1}) + W_{k+1}
/// x_k = Q_k T(l_{k+2} + l_{k+3} + l_{k+4}) + Q_{k+2} T(l_{k+4}) + W_{k+4}
/// ```
#[inline(always)]
fn join_by_tree<V: Narrow>(modulus: Modulus<V>, powers: &[u64; POWERS], words: &[[u32; 2]], preimages: &mut [u64]) {
    let v = modulus.v;
    // W_i T(l_{i+1}) + W_{i+1}, in the low half.
    let joined = |preimages: &[u64], i: usize, power| {
        v.add(modulus.product(v.number(preimages[i]), power), v.number(preimages[i + 1]))
    };
    let mut two = [v.number(0); 3];
    for (i, two) in two.iter_mut().enumerate() {
        *two = joined(preimages, i, power(modulus, powers, length(words, i + 1)));
    }
    let mut lengths = [length(words, 2), length(words, 3)];
    for k in 0..words.len() {
        let last = length(words, k + 4);
        let behind_two = power(modulus, powers, lengths[0] + lengths[1] + last);
        let behind_four = power(modulus, powers, last);
        let sum = v.add(v.multiply_low(two[0], behind_two), v.multiply_low(two[2], behind_four));
        // These do not read preimages[k], which is overwritten next.
        two = [two[1], two[2], joined(preimages, k + 3, behind_four)];
        preimages[k] = v.low(modulus.reduce(sum)) ^ preimages[k + 4];
        lengths = [lengths[1], last];
    }
}

/// Joins each `width` consecutive words to a shingle, one word after the other.
#[inline(always)]
fn join_by_chain<V: Narrow>(
    modulus: Modulus<V>,
    powers: &[u64; POWERS],
    width: usize,
    words: &[[u32; 2]],
    preimages: &mut [u64],
) {
    let v = modulus.v;
    for k in 0..words.len() {
        let mut joined = v.number(preimages[k]);
        for (i, fingerprint) in preimages[k..k + width].iter().enumerate().skip(1) {
            let power = power(modulus, powers, length(words, k + i));
            joined = v.add(modulus.product(joined, power), v.number(*fingerprint));
        }
        preimages[k] = v.low(joined);
    }
}

/// Up to this many pre-images, all images are evaluated in full. With AVX2 that takes 115 ns per
/// pre-image; a block, full or not, takes 1700 ns.
const FEW: usize = 14;
/// The number of blocks of pre-images in a chunk; the nibbles of a block take 1 KiB.
const BLOCKS: usize = 8;

/// Minima: see [`Kernels::minima`](super::Kernels::minima).
///
/// Without vectors it is
///
/// ```text
/// for each chunk of 512 pre-images, for each function f:
///     for each x in the chunk: leading[x] = sum over j of nibbles[f][j][nibble j of x]     the leading byte of f(x)
///     least = min(leading)
///     if least > leading byte of f(best[f]): continue
///     for each x in the chunk with leading[x] == least:
///         if f(x) <= f(best[f]): best[f] = x
/// ```
#[inline(always)]
pub(super) fn minima<V: Narrow>(v: V, functions: &Functions, preimages: &[u64], minima: &mut [u64]) {
    if let [only] = preimages {
        minima.fill(*only);
        return;
    }
    if preimages.len() <= FEW {
        for (i, minimum) in minima.iter_mut().take(functions.count()).enumerate() {
            let function = Modulus::new(v, functions.p[i], functions.mu[i]);
            (_, *minimum) = smallest(function, preimages.iter().copied(), (u64::MAX, 0));
        }
        return;
    }
    let mut planes = [[v.splat(0); 16]; BLOCKS];
    let mut leading = [v.splat(0); BLOCKS];
    for (number, chunk) in preimages.chunks(64 * BLOCKS).enumerate() {
        let (whole, rest) = chunk.as_chunks::<64>();
        for (planes, block) in planes.iter_mut().zip(whole) {
            *planes = nibbles(v, block);
        }
        let mut blocks = whole.len();
        // The positions of the last block that hold a pre-image, as bits. The others hold a copy of
        // one, which cannot lower the minimum.
        let mut last = u64::MAX;
        if !rest.is_empty() {
            let mut block = [rest[0]; 64];
            block[..rest.len()].copy_from_slice(rest);
            planes[blocks] = nibbles(v, &block);
            blocks += 1;
            last = v.bits(v.at_most(v.block(&ORDER), v.splat(rest.len() as u8 - 1)));
        }
        for (i, minimum) in minima.iter_mut().take(functions.count()).enumerate() {
            let tables = &functions.nibbles[i];
            let mut least = v.splat(u8::MAX);
            // Two blocks at once, so that a table is loaded once for both.
            let (pairs, single) = planes[..blocks].as_chunks::<2>();
            for (leading, planes) in leading.as_chunks_mut::<2>().0.iter_mut().zip(pairs) {
                *leading = leading_bytes(v, tables, planes);
                least = v.smaller(least, v.smaller(leading[0], leading[1]));
            }
            if let [planes] = single {
                [leading[blocks - 1]] = leading_bytes(v, tables, std::array::from_ref(planes));
                least = v.smaller(least, leading[blocks - 1]);
            }
            let function = Modulus::new(v, functions.p[i], functions.mu[i]);
            let mut best = if number == 0 { (u64::MAX, 0) } else { (function.image(*minimum), *minimum) };
            let least = v.smallest(least);
            if least > (best.0 >> 56) as u8 {
                continue;
            }
            let least = v.splat(least);
            // Computes all masks before the first branch that depends on one.
            let mut masks = [0; BLOCKS];
            for (mask, leading) in masks.iter_mut().zip(&leading[..blocks]) {
                *mask = v.bits(v.at_most(*leading, least));
            }
            masks[blocks - 1] &= last;
            for (block, mask) in masks[..blocks].iter().enumerate() {
                let mut candidates = *mask;
                while candidates != 0 {
                    let at = 64 * block + ORDER[candidates.trailing_zeros() as usize] as usize;
                    best = smallest(function, [chunk[at]].into_iter(), best);
                    candidates &= candidates - 1;
                }
            }
            (_, *minimum) = best;
        }
    }
}

/// The leading bytes of the images of `N` blocks of pre-images, given by their nibbles.
#[inline(always)]
fn leading_bytes<V: Narrow, const N: usize>(
    v: V,
    tables: &[[u8; 16]; 16],
    planes: &[[V::Block; 16]; N],
) -> [V::Block; N] {
    let mut sums = [v.splat(0); N];
    for (j, table) in tables.iter().enumerate() {
        let table = v.lanes(table);
        for (sum, planes) in sums.iter_mut().zip(planes) {
            *sum = v.xor(*sum, v.lookup(table, planes[j]));
        }
    }
    sums
}

/// The smallest image and its pre-image, among these pre-images and the best (image, pre-image) so
/// far.
#[inline(always)]
fn smallest<V: Narrow>(function: Modulus<V>, preimages: impl Iterator<Item = u64>, mut best: (u64, u64)) -> (u64, u64) {
    for x in preimages {
        let image = function.image(x);
        // Not `<`: the first image may be all ones, like the initial `best`. Equal images are equal
        // pre-images.
        if image <= best.0 {
            best = (image, x);
        }
    }
    best
}

/// The number of the pre-image at each position of the planes of [`nibbles`].
const ORDER: [u8; 64] = {
    let mut order = [0; 64];
    let mut at = 0;
    while at < 64 {
        order[at] = (8 * (at / 2 % 8) + 2 * (at / 16) + at % 2) as u8;
        at += 1;
    }
    order
};

/// The nibbles of 64 pre-images: block `j` has nibble `j` of each, in the order of [`ORDER`].
#[inline(always)]
fn nibbles<V: Narrow>(v: V, preimages: &[u64; 64]) -> [V::Block; 16] {
    let bytes: &[[u8; 64]; 8] = bytemuck::cast_ref(preimages);
    // First the bytes of the two pre-images of each lane are interleaved, then lanes of two, four
    // and eight blocks.
    let beside = v.lanes(&[0, 8, 1, 9, 2, 10, 3, 11, 4, 12, 5, 13, 6, 14, 7, 15]);
    let [a, b, c, d, e, f, g, h] = bytes.each_ref().map(|block| v.lookup(v.block(block), beside));
    let ([ab_0, ab_4], [cd_0, cd_4]) = (v.zip_2(a, b), v.zip_2(c, d));
    let ([ef_0, ef_4], [gh_0, gh_4]) = (v.zip_2(e, f), v.zip_2(g, h));
    let ([ad_0, ad_2], [ad_4, ad_6]) = (v.zip_4(ab_0, cd_0), v.zip_4(ab_4, cd_4));
    let ([eh_0, eh_2], [eh_4, eh_6]) = (v.zip_4(ef_0, gh_0), v.zip_4(ef_4, gh_4));
    let ([p0, p1], [p2, p3]) = (v.zip_8(ad_0, eh_0), v.zip_8(ad_2, eh_2));
    let ([p4, p5], [p6, p7]) = (v.zip_8(ad_4, eh_4), v.zip_8(ad_6, eh_6));
    let ([n0, n1], [n2, n3], [n4, n5], [n6, n7]) = (v.nibbles(p0), v.nibbles(p1), v.nibbles(p2), v.nibbles(p3));
    let ([n8, n9], [na, nb], [nc, nd], [ne, nf]) = (v.nibbles(p4), v.nibbles(p5), v.nibbles(p6), v.nibbles(p7));
    [n0, n1, n2, n3, n4, n5, n6, n7, n8, n9, na, nb, nc, nd, ne, nf]
}

/// Supershingles: see [`Kernels::supershingles`](super::Kernels::supershingles).
#[inline(always)]
pub(super) fn supershingles<V: Narrow>(v: V, runs: &FeatureRuns, features: &[u64], supershingles: &mut Vec<u64>) {
    let modulus = Modulus::new(v, runs.polynomial.p, runs.polynomial.mu);
    for run in features.chunks_exact(runs.length) {
        // One reduction for the sum of all products.
        let mut sum = v.number(0);
        for (feature, weight) in run.iter().zip(&runs.weights) {
            sum = v.add(sum, v.multiply_low(v.number(*feature), v.number(*weight)));
        }
        supershingles.push(v.low(modulus.reduce(sum)));
    }
}
