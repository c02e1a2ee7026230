//! Which document of a cluster stays, by a policy with a name.

use serde::{Deserialize, Serialize};

/// Which document of a cluster stays, and is `canonical` in the tables. Of equal ones it is that
/// with the smallest document id.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Policy {
    /// The first in the order of the inputs.
    #[default]
    First,
    /// The one with the most words, and of these the one with the most bytes.
    Longest,
    /// The one that was fetched last; one without a date comes last.
    Newest,
    /// The one with the shortest URL; one without a URL comes last.
    ShortestUrl,
    /// The first of each host: records without a host are of one host.
    PerHost,
    /// The root of the cluster, the smallest document id: the same page from week to week, as long
    /// as it is there.
    Root,
}

/// What a policy knows of a document.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DocumentFacts<'a> {
    /// The number of its input, in the order of the inputs.
    pub file: u32,
    /// Its place there.
    pub offset: u64,
    /// Its words.
    pub words: u64,
    /// The bytes of its body.
    pub bytes: u64,
    /// When it was fetched, in microseconds since 1970.
    pub fetched: Option<i64>,
    /// The length of its URL in bytes.
    pub url_bytes: Option<u32>,
    /// The host of its URL.
    pub host: Option<&'a str>,
    /// The week of its batch, in days since 1970.
    pub crawled: i32,
}

impl Policy {
    /// The names of all policies.
    pub(super) const NAMES: [&'static str; 6] = ["first", "longest", "newest", "shortest-url", "per-host", "root"];

    const ALL: [Policy; 6] =
        [Policy::First, Policy::Longest, Policy::Newest, Policy::ShortestUrl, Policy::PerHost, Policy::Root];

    /// The name in jobs.
    pub fn name(self) -> &'static str {
        Policy::NAMES[self as usize]
    }

    /// The policy with this name.
    pub fn of_name(name: &str) -> Option<Policy> {
        Policy::ALL.into_iter().find(|policy| policy.name() == name)
    }

    /// The columns of `documents` that it needs.
    pub(super) fn table_columns(self) -> &'static [&'static str] {
        match self {
            Policy::First => &["doc", "file", "offset", "crawled"],
            Policy::PerHost => &["doc", "file", "offset", "crawled", "host"],
            Policy::Longest => &["doc", "words", "bytes"],
            Policy::Newest => &["doc", "fetched"],
            Policy::ShortestUrl => &["doc", "url"],
            Policy::Root => &["doc"],
        }
    }

    /// The order of a document in its cluster: the smallest stays.
    ///
    /// ```
    /// use nigh_store::config::{DocumentFacts, Policy};
    ///
    /// let empty = DocumentFacts::default();
    /// let short = DocumentFacts { offset: 9, words: 5, bytes: 20, fetched: Some(-1), ..empty };
    /// let long = DocumentFacts { file: 1, words: 7, fetched: None, url_bytes: Some(30), ..short };
    /// let first = |policy: Policy| if policy.order(&short) < policy.order(&long) { short } else { long };
    /// assert_eq!([Policy::First, Policy::Newest].map(first), [short, short]);
    /// assert_eq!([Policy::Longest, Policy::ShortestUrl].map(first), [long, long]);
    /// ```
    pub fn order(self, document: &DocumentFacts<'_>) -> [u64; 2] {
        match self {
            Policy::First | Policy::PerHost => [document.file.into(), document.offset],
            Policy::Longest => [u64::MAX - document.words, u64::MAX - document.bytes],
            // Times before 1970 are negative.
            Policy::Newest => match document.fetched {
                Some(fetched) => [0, u64::MAX - (fetched as u64 ^ (1 << 63))],
                None => [1, 0],
            },
            Policy::ShortestUrl => match document.url_bytes {
                Some(bytes) => [0, bytes.into()],
                None => [1, 0],
            },
            Policy::Root => [0, 0],
        }
    }
}
