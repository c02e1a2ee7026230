//! Ids and records: document ids, weeks, levels, hashes, and the fixed-size records that workers
//! exchange.
//!
//! All types here are small, `Copy` and ordered. Records that processes exchange are `repr(C)`
//! without padding ([`bytemuck::Pod`]), so the bytes of a block of them are sent as they are
//! (`crates/exchange`). Hashing is explicit and the same on every machine: XXH3 with its published
//! constants, never a randomly seeded hasher.

use std::fmt;
use std::str::FromStr;

use bytemuck::{Pod, Zeroable};
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::{xxh3_64, xxh3_128, xxh3_128_with_seed};

pub use crate::kernels::mix;

#[cfg(target_endian = "big")]
compile_error!("records are hashed and exchanged as little-endian bytes");

/// The low bits of a [`DocId`], which hold the row; the bits above hold the shard.
const ROW_BITS: u32 = 40;

/// The most shards of a store. Their ids have 56 bits, so they are positive as signed 64-bit
/// numbers; and names of files have five digits for the number of a shard.
pub const MAX_SHARDS: u32 = 1 << 16;

/// The id of a document: its shard and its row in the shard's table `urls`.
///
/// The id of a URL never changes. Rows are dense within a shard, so labels and masks of documents
/// are plain arrays. Ids are ordered by shard, then by row.
///
/// ```
/// use nigh_kernels::records::DocId;
/// let doc = DocId::new(3, 17);
/// assert_eq!((doc.shard(), doc.row()), (3, 17));
/// assert!(doc < DocId::new(4, 0));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Pod, Zeroable, Serialize, Deserialize)]
#[repr(transparent)]
pub struct DocId(u64);

impl DocId {
    /// No document, for instance the root of a URL that could not be downloaded. It is larger than
    /// any id.
    pub const NONE: DocId = DocId(u64::MAX >> 1);

    /// The id of a row of a shard. The row must fit in 40 bits, and the shard must be less than
    /// [`MAX_SHARDS`].
    pub const fn new(shard: u32, row: u64) -> DocId {
        debug_assert!(row >> ROW_BITS == 0 && shard < MAX_SHARDS);
        DocId((shard as u64) << ROW_BITS | row)
    }

    /// The shard that holds the document.
    pub const fn shard(self) -> u32 {
        (self.0 >> ROW_BITS) as u32
    }

    /// The worker, of `peers`, that owns the document's shard.
    pub const fn owner(self, peers: usize) -> usize {
        self.shard() as usize % peers
    }

    /// The row within the shard.
    pub const fn row(self) -> u64 {
        self.0 & ((1 << ROW_BITS) - 1)
    }

    /// The id as a value of a table: signed, because Spark reads unsigned 64-bit columns poorly.
    pub const fn to_table(self) -> i64 {
        self.0 as i64
    }

    /// The id of a value of a table.
    pub const fn from_table(value: i64) -> DocId {
        DocId(value as u64)
    }
}

impl fmt::Display for DocId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// A week, which is one crawl: the date that names it.
///
/// ```
/// use nigh_kernels::records::Week;
/// let week: Week = "2024-01-08".parse().unwrap();
/// assert_eq!(week.folder(), "week=2024-01-08");
/// assert!(week < "2024-01-15".parse().unwrap());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Week(jiff::civil::Date);

impl Week {
    /// The name of the folder of the week's tables in a store, in hive style.
    pub fn folder(self) -> String {
        format!("week={self}")
    }

    /// Today's date, UTC.
    pub fn today() -> Week {
        Week(jiff::Timestamp::now().to_zoned(jiff::tz::TimeZone::UTC).date())
    }

    /// The day after it; the last day that there is has none, and stays.
    #[must_use]
    pub fn next_day(self) -> Week {
        Week(self.0.tomorrow().unwrap_or(self.0))
    }

    /// Days since 1970-01-01, as a column of dates has them.
    ///
    /// ```
    /// use nigh_kernels::records::Week;
    /// let week: Week = "2024-01-08".parse().unwrap();
    /// assert_eq!(week.days(), 19_730);
    /// ```
    pub fn days(self) -> i32 {
        (self.0 - jiff::civil::date(1970, 1, 1)).get_days()
    }

    /// The week of a number of days since 1970-01-01.
    ///
    /// ```
    /// use nigh_kernels::records::Week;
    /// assert_eq!(Week::from_days(19_730).to_string(), "2024-01-08");
    /// ```
    pub fn from_days(days: i32) -> Week {
        Week(jiff::civil::date(1970, 1, 1).saturating_add(jiff::Span::new().days(days)))
    }

    /// The week of a value of a column of dates: the inverse of [`Week::days`]. `None` if there is
    /// no such date.
    pub fn of_days(days: i32) -> Option<Week> {
        jiff::civil::date(1970, 1, 1).checked_add(jiff::Span::new().try_days(days).ok()?).ok().map(Week)
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
        // A week names a folder, and two spellings would be two folders: only one is allowed.
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

/// What a document is, and so what two records have in common if they are the same document.
///
/// ```
/// use nigh_kernels::records::DocumentKey;
/// assert_eq!(DocumentKey::default().to_string(), "url");
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DocumentKey {
    /// The page of a URL.
    #[default]
    Url,
    /// What has an id, which the user gave.
    Id,
    /// A record: a row or line of a file.
    Row,
}

impl fmt::Display for DocumentKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            DocumentKey::Url => "url",
            DocumentKey::Id => "id",
            DocumentKey::Row => "row",
        })
    }
}

/// The 128-bit hash of a document's key: its canonical URL, its id, or its file and place. Its top
/// bits give the shard; the order of the hashes gives the order of the rows.
///
/// ```
/// use nigh_kernels::records::KeyHash;
/// let hash = KeyHash::of("http://example.org/");
/// assert_eq!(KeyHash::from_bytes(hash.to_bytes()), hash);
/// assert_eq!(hash.shard(1), 0);
/// assert_eq!(hash.shard(256), u32::from(hash.to_bytes()[0]));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct KeyHash(u128);

impl KeyHash {
    /// Hashes a canonical URL, or an id.
    pub fn of(key: &str) -> KeyHash {
        KeyHash(xxh3_128(key.as_bytes()))
    }

    /// Hashes the place of a record: the name of its file, and its offset there.
    pub fn of_place(file: &str, offset: u64) -> KeyHash {
        KeyHash(xxh3_128_with_seed(file.as_bytes(), offset))
    }

    /// The shard, of `shards`, which must be a power of two: the top bits of the hash.
    pub fn shard(self, shards: u32) -> u32 {
        debug_assert!(shards.is_power_of_two());
        ((self.0 >> 64) as u64).checked_shr(64 - shards.trailing_zeros()).unwrap_or(0) as u32
    }

    /// The hash as a value of a table: 16 bytes, most significant first, so that byte order is hash
    /// order.
    pub fn to_bytes(self) -> [u8; 16] {
        self.0.to_be_bytes()
    }

    /// The hash of a value of a table.
    pub fn from_bytes(bytes: [u8; 16]) -> KeyHash {
        KeyHash(u128::from_be_bytes(bytes))
    }

    /// The high and the low half, for records that workers exchange.
    pub fn halves(self) -> [u64; 2] {
        [(self.0 >> 64) as u64, self.0 as u64]
    }

    /// The hash with these high and low halves.
    pub fn from_halves([high, low]: [u64; 2]) -> KeyHash {
        KeyHash((high as u128) << 64 | low as u128)
    }
}

/// The checksum of a page's raw body, markup included: equal for exact copies.
pub fn checksum(body: &[u8]) -> u128 {
    crate::kernels::hash_128(body)
}

/// What is kept of a feature: its low 16 bits. Equal features have the same; others have the same
/// once in 65,536 (b-bit minwise hashing: Li and König 2010).
pub type FeatureBits = u16;

/// A relation whose connected components are clusters, from the loosest to the strictest. Pages
/// related at one level are also related at all looser ones.
///
/// ```
/// use nigh_kernels::records::Level;
/// assert_eq!(Level::ALL.map(Level::name), ["similar", "identical", "exact"]);
/// assert_eq!(Level::Identical.title(), "virtually identical");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Level {
    /// Very similar: at least the job's number of supershingles agree, which is 2 of 6 in Fetterly
    /// 2004, section 2.
    Similar,
    /// Virtually identical: all supershingles agree.
    Identical,
    /// Exact copies: all supershingles agree, and the bodies are the same bytes.
    Exact,
}

impl Level {
    /// All levels, from the loosest to the strictest.
    pub const ALL: [Level; 3] = [Level::Similar, Level::Identical, Level::Exact];

    /// The name in tables and in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Level::Similar => "similar",
            Level::Identical => "identical",
            Level::Exact => "exact",
        }
    }

    /// The study's term, for the user.
    pub fn title(self) -> &'static str {
        match self {
            Level::Similar => "very similar",
            Level::Identical => "virtually identical",
            Level::Exact => "exact copy",
        }
    }
}

/// A 128-bit key by which records are exchanged and grouped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Pod, Zeroable)]
#[repr(C)]
pub struct Key {
    high: u64,
    low: u64,
}

impl Key {
    /// The key of a sequence of words in the key space `space`: equal words in two spaces have
    /// different keys.
    pub fn of(space: u64, words: &[u64]) -> Key {
        let hash = xxhash_rust::xxh3::xxh3_128_with_seed(bytemuck::cast_slice(words), space);
        Key { high: (hash >> 64) as u64, low: hash as u64 }
    }

    /// The key made of two hashes, which must be independent of each other.
    pub fn of_hashes(high: u64, low: u64) -> Key {
        Key { high, low }
    }

    /// The bits that give the partition of the key.
    pub fn partition_bits(self) -> u64 {
        self.high
    }

    /// The bits that give the place of the key within its partition; independent of
    /// [`Key::partition_bits`].
    pub fn table_bits(self) -> u64 {
        self.low
    }
}

/// An edge of the graph whose connected components are clusters, or a label of it: `doc` and `root`
/// are in one component.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
pub struct Edge {
    /// The document; its owner receives the record.
    pub doc: DocId,
    /// Another document of the same component.
    pub root: DocId,
}

/// Mixes the bits of a word that is a hash already, at the cost of one multiplication. The high and
/// the low half of the result serve as two hashes.
#[inline]
pub fn spread(word: u64) -> u64 {
    let product = word.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    product ^ (product >> 32)
}

/// A 64-bit hash of a sequence of words, the same on every machine. Words are taken in pairs, and
/// the halves of the 128-bit product of each pair are combined (after Wang Yi's wyhash).
#[inline]
pub fn fold(words: &[u64]) -> u64 {
    // The study's vectors have six words. With the length known, the compiler computes all products
    // in parallel.
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
    for pair in words.chunks(2) {
        // Each place has its own constants, so that equal words at two places have different
        // products.
        place = place.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let second = if pair.len() == 2 { pair[1] } else { 0 };
        sum = sum.rotate_left(29) ^ product(pair[0] ^ place, second ^ place.rotate_left(32));
    }
    product(sum ^ 0x8BB8_4B93_962E_ACC9, place)
}

/// A hash of bytes as 16 hexadecimal digits, which names parameters, inputs and runs in manifests
/// and messages.
pub fn short_hash(bytes: &[u8]) -> String {
    format!("{:016x}", xxh3_64(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shard_is_the_top_of_the_hash() {
        let hash = KeyHash(0xABCD << 112);
        assert_eq!(hash.shard(1), 0);
        assert_eq!(hash.shard(2), 1);
        assert_eq!(hash.shard(16), 0xA);
        assert_eq!(hash.shard(65536), 0xABCD);
    }

    #[test]
    fn a_hash_comes_back_from_its_bytes_and_its_halves() {
        let hash = KeyHash::of("http://example.org/");
        assert_eq!(KeyHash::from_bytes(hash.to_bytes()), hash);
        assert_eq!(KeyHash::from_halves(hash.halves()), hash);
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
