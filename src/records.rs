//! What flows: document ids, weeks, hashes, and the fixed-size records that workers exchange.
//!
//! Everything here is small, `Copy` and ordered. Records that cross between processes are `repr(C)`
//! without padding ([`bytemuck::Pod`]), so that a block of them is its own wire format
//! (`operators/block.rs`). Hashing is explicit and the same on every machine: XXH3 with its
//! published constants, never a seeded hasher.

use std::fmt;
use std::str::FromStr;

use bytemuck::{Pod, Zeroable};
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::{xxh3_64, xxh3_128};

#[cfg(target_endian = "big")]
compile_error!("records are hashed and exchanged as little-endian bytes");

/// Bits of a [`DocId`] that count rows; the bits above hold the shard.
const ROW_BITS: u32 = 40;

/// The most shards a store can have: ids stay positive as signed 64-bit numbers.
pub const MAX_SHARDS: u32 = 1 << 16;

/// The number of a document: its shard and its row in the shard's url table.
///
/// A URL keeps its id for ever; rows are dense within a shard, so that labels and masks are plain
/// arrays. Ids order by shard first, then by row.
///
/// ```
/// use nigh::records::DocId;
/// let doc = DocId::new(3, 17);
/// assert_eq!((doc.shard(), doc.row()), (3, 17));
/// assert!(doc < DocId::new(4, 0));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Pod, Zeroable, Serialize, Deserialize)]
#[repr(transparent)]
pub struct DocId(u64);

impl DocId {
    /// No document: the root of a URL that could not be downloaded. It is larger than any id.
    pub const NONE: DocId = DocId(u64::MAX >> 1);

    /// The id of a row of a shard. Rows fit 40 bits by construction of the url table.
    pub const fn new(shard: u32, row: u64) -> DocId {
        debug_assert!(row >> ROW_BITS == 0 && shard < MAX_SHARDS);
        DocId((shard as u64) << ROW_BITS | row)
    }

    /// The shard that holds the document.
    pub const fn shard(self) -> u32 {
        (self.0 >> ROW_BITS) as u32
    }

    /// The worker that owns the document's shard.
    pub const fn owner(self, peers: usize) -> usize {
        self.shard() as usize % peers
    }

    /// The row within the shard.
    pub const fn row(self) -> u64 {
        self.0 & ((1 << ROW_BITS) - 1)
    }

    /// The id as tables hold it: signed, since Spark reads unsigned 64-bit columns poorly.
    pub const fn to_table(self) -> i64 {
        self.0 as i64
    }

    /// The id that a table holds.
    pub const fn from_table(value: i64) -> DocId {
        DocId(value as u64)
    }
}

impl fmt::Display for DocId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// One crawl: the date by which a week is named.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Week(jiff::civil::Date);

impl Week {
    /// The folder of the week's tables within a store, in hive style.
    pub fn folder(self) -> String {
        format!("week={self}")
    }
}

impl fmt::Display for Week {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for Week {
    type Err = String;

    fn from_str(text: &str) -> Result<Week, String> {
        // Only the one spelling: a week names a folder, and two spellings would be two folders.
        match text.parse::<jiff::civil::Date>() {
            Ok(date) if date.to_string() == text => Ok(Week(date)),
            _ => Err(format!("`{text}` is not a date written YYYY-MM-DD")),
        }
    }
}

impl TryFrom<String> for Week {
    type Error = String;

    fn try_from(text: String) -> Result<Week, String> {
        text.parse()
    }
}

impl From<Week> for String {
    fn from(week: Week) -> String {
        week.to_string()
    }
}

/// The 128-bit hash of a canonical URL: its top bits name the shard, its order gives the rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct UrlHash(u128);

impl UrlHash {
    /// Hashes a canonical URL.
    pub fn of(canonical: &str) -> UrlHash {
        UrlHash(xxh3_128(canonical.as_bytes()))
    }

    /// The shard among `shards`, a power of two.
    pub fn shard(self, shards: u32) -> u32 {
        debug_assert!(shards.is_power_of_two());
        ((self.0 >> 64) as u64).checked_shr(64 - shards.trailing_zeros()).unwrap_or(0) as u32
    }

    /// The hash as a table holds it: 16 bytes, most significant first, so that byte order is hash order.
    pub fn to_bytes(self) -> [u8; 16] {
        self.0.to_be_bytes()
    }

    /// The hash that a table holds.
    pub fn from_bytes(bytes: [u8; 16]) -> UrlHash {
        UrlHash(u128::from_be_bytes(bytes))
    }

    /// The two halves, for records that are exchanged.
    pub fn halves(self) -> [u64; 2] {
        [(self.0 >> 64) as u64, self.0 as u64]
    }

    /// The hash of two halves.
    pub fn from_halves([high, low]: [u64; 2]) -> UrlHash {
        UrlHash((high as u128) << 64 | low as u128)
    }
}

/// The checksum of a page's raw body, markup included: equal for exact copies.
pub fn checksum(body: &[u8]) -> u128 {
    xxh3_128(body)
}

/// A relation under which pages cluster, from the loosest to the strictest; each lies within the one before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Level {
    /// A chain of pages that agree in at least the job's number of supershingles (Fetterly 2004, section 2).
    Similar,
    /// All supershingles agree.
    Identical,
    /// All supershingles agree and the bodies are the same bytes.
    Exact,
}

impl Level {
    /// All levels, from the loosest to the strictest.
    pub const ALL: [Level; 3] = [Level::Similar, Level::Identical, Level::Exact];

    /// The name that tables hold.
    pub fn name(self) -> &'static str {
        match self {
            Level::Similar => "similar",
            Level::Identical => "identical",
            Level::Exact => "exact",
        }
    }

    /// What a reader calls it.
    pub fn title(self) -> &'static str {
        match self {
            Level::Similar => "very similar",
            Level::Identical => "virtually identical",
            Level::Exact => "exact copy",
        }
    }
}

/// A 128-bit key that exchanges and groups records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Pod, Zeroable)]
#[repr(C)]
pub struct Key {
    high: u64,
    low: u64,
}

impl Key {
    /// The key of some words, under a `space` of its own: equal words of two spaces give different keys.
    pub fn of(space: u64, words: &[u64]) -> Key {
        let hash = xxhash_rust::xxh3::xxh3_128_with_seed(bytemuck::cast_slice(words), space);
        Key { high: (hash >> 64) as u64, low: hash as u64 }
    }

    /// The key that is two hashes, independent of each other.
    pub fn of_hashes(high: u64, low: u64) -> Key {
        Key { high, low }
    }

    /// The bits by which keys are dealt to partitions.
    pub fn partition_bits(self) -> u64 {
        self.high
    }

    /// The bits by which keys are placed within a partition: independent of the former.
    pub fn table_bits(self) -> u64 {
        self.low
    }
}

/// An edge of the graph whose components are clusters, or a label: `doc` belongs with `root`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
pub struct Edge {
    /// The document, to whose owner the record goes.
    pub doc: DocId,
    /// A document that it belongs with.
    pub root: DocId,
}

/// Spreads the bits of a word: the same on every machine (the finalizer of SplitMix64).
pub fn mix(word: u64) -> u64 {
    let mut z = word.wrapping_add(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// Spreads the bits of a word that is a hash already, for one multiplication: its high and its low half then serve as
/// two hashes.
#[inline]
pub fn spread(word: u64) -> u64 {
    let product = word.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    product ^ (product >> 32)
}

/// A 64-bit hash of some words, in their order: the same on every machine. Words are taken in twos, and the 128-bit
/// product of the two is folded (after Wang Yi's wyhash).
#[inline]
pub fn fold(words: &[u64]) -> u64 {
    // The study's vectors: where the compiler knows the length, all products run side by side.
    match <&[u64; 6]>::try_from(words) {
        Ok(six) => fold_all(six),
        Err(_) => fold_all(words),
    }
}

#[inline(always)]
fn fold_all(words: &[u64]) -> u64 {
    let product = |a: u64, b: u64| {
        let product = u128::from(a) * u128::from(b);
        product as u64 ^ (product >> 64) as u64
    };
    let (mut sum, mut place) = (words.len() as u64, 0x2D35_8DCC_AA6C_78A5u64);
    for two in words.chunks(2) {
        // Each place has numbers of its own, so that equal words of two places differ.
        place = place.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let second = if two.len() == 2 { two[1] } else { 0 };
        sum = sum.rotate_left(29) ^ product(two[0] ^ place, second ^ place.rotate_left(32));
    }
    product(sum ^ 0x8BB8_4B93_962E_ACC9, place)
}

/// A short hexadecimal hash of some bytes, to name parameters in manifests and messages.
pub fn short_hash(bytes: &[u8]) -> String {
    format!("{:016x}", xxh3_64(bytes))
}

/// A length of time as a person is told it.
pub fn age(seconds: i64) -> String {
    match seconds.max(0) {
        seconds @ 0..120 => format!("{seconds} s"),
        seconds @ 120..7200 => format!("{} min", seconds / 60),
        seconds => format!("{} h", seconds / 3600),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_are_told_in_the_unit_that_fits() {
        assert_eq!([-5, 0, 119, 120, 7199, 7200].map(age), ["0 s", "0 s", "119 s", "2 min", "119 min", "2 h"]);
    }

    #[test]
    fn the_shard_is_the_top_of_the_hash() {
        let hash = UrlHash(0xABCD << 112);
        assert_eq!(hash.shard(1), 0);
        assert_eq!(hash.shard(2), 1);
        assert_eq!(hash.shard(16), 0xA);
        assert_eq!(hash.shard(65536), 0xABCD);
    }

    #[test]
    fn a_hash_survives_its_table_and_its_record() {
        let hash = UrlHash::of("http://example.org/");
        assert_eq!(UrlHash::from_bytes(hash.to_bytes()), hash);
        assert_eq!(UrlHash::from_halves(hash.halves()), hash);
    }

    #[test]
    fn ids_are_positive_in_tables() {
        let last = DocId::new(MAX_SHARDS - 1, (1 << ROW_BITS) - 1);
        assert!(last.to_table() > 0);
        assert_eq!(DocId::from_table(last.to_table()), last);
    }

    #[test]
    fn a_week_has_one_spelling() {
        assert_eq!("2024-01-08".parse::<Week>().unwrap().folder(), "week=2024-01-08");
        for wrong in ["2024-1-8", "20240108", "2024-02-30", "week", ""] {
            assert!(wrong.parse::<Week>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn folded_words_differ_by_value_place_and_number() {
        let mut all = std::collections::BTreeSet::new();
        let mut count = 0;
        for length in 0..8usize {
            for seed in 0..200u64 {
                for swap in 0..length.max(1) {
                    let mut words: Vec<u64> = (0..length as u64).map(|i| mix(seed << 8 | i)).collect();
                    if swap > 0 {
                        words.swap(0, swap);
                    }
                    if length > 0 || seed == 0 {
                        all.insert((fold(&words) >> 20, length));
                        count += 1;
                    }
                }
            }
        }
        assert_eq!(all.len(), count, "no two agree, not even in 44 bits");
        assert_ne!(fold(&[0]), fold(&[0, 0]));
    }

    #[test]
    fn keys_of_two_spaces_differ() {
        assert_ne!(Key::of(0, &[1, 2]), Key::of(1, &[1, 2]));
    }
}
