//! The columns of the tables of the mirrors-by-url job: pairs of hosts that have URLs in common,
//! and their tests (Bharat and Broder 1999).
//!
//! They lie in `mirrors-by-url/TABLE` of the store. Hosts are named as in `documents.host`. A pair
//! is known by its rank in `candidates`.

use nigh_derive::Table;
use serde::{Deserialize, Serialize};

use crate::tables::store_table::{ResultTables, StoreTable};

/// The tables, in the order of their names.
pub(super) const TABLES: ResultTables = ResultTables {
    folder: "mirrors-by-url",
    name_pages: true,
    read_chunks: false,
    tables: &[
        StoreTable::of::<CandidateRow>(),
        StoreTable::of::<ComparedRow>(),
        StoreTable::of::<UrlDomainRow>(),
        StoreTable::of::<UrlGroupRow>(),
        StoreTable::of::<UrlLevelRow>(),
        StoreTable::of::<ProbeRow>(),
        StoreTable::of::<RankingRow>(),
        StoreTable::of::<PathTestRow>(),
    ],
};

/// One row for each listed pair of hosts with features in common, in the order of `rank`.
#[derive(Clone, Debug, PartialEq, Table)]
#[table(name = "candidates")]
pub struct CandidateRow {
    /// The number in the list, from 1.
    #[column(sorted)]
    pub rank: i64,
    /// The host with more URLs, and the other one.
    #[columns(
        host_a = "the host with more URLs; of equally many the one with the smaller name",
        host_b = "the other host"
    )]
    pub hosts: [String; 2],
    /// Weights of common features, over 1 + 0.1 (ln urls_a + ln urls_b).
    pub score: f64,
    /// Whether the hosts have one registered domain, as `www.a.example` and `a.example`.
    pub same_domain: bool,
    /// Features that both hosts have.
    pub features: i64,
    /// Those of them that are features of paths.
    pub path_features: i64,
    /// The numbers of URLs of the hosts.
    #[columns(urls_a = "distinct URLs of `host_a`", urls_b = "distinct URLs of `host_b`")]
    pub urls: [i64; 2],
    /// `1` (same structure, identical content), `2` (equivalent content), `3` (similar content),
    /// `4` (partly the same structure), `5` (related content), `mismatch`, `dns-failure` (the name
    /// of a host does not resolve), `server-failure` (a host does not answer, or with errors only),
    /// or `few` (fewer than three paths could be compared, or no page of one host is known).
    pub level: &'static str,
    /// What does not work at the hosts.
    #[columns(
        failure_a = "what does not work at `host_a`: `dns`, `connection` or `server-error`; null if it answers, or nothing tells",
        failure_b = "that of `host_b`"
    )]
    pub failures: [Option<&'static str>; 2],
    /// The tests with this outcome: SF, TF, FM, FS, HS, TS, NS, unknown.
    #[columns(
        sf = "tests of paths that the source does not have",
        tf = "tests of paths that the source has and the target does not have",
        fm = "tests of pages with the same bytes",
        fs = "tests of other pages whose texts resemble each other wholly",
        hs = "tests of pages with high resemblance",
        ts = "tests of pages with some resemblance",
        ns = "tests of pages without resemblance",
        unknown = "tests that were not made: it is not known whether a host has the page"
    )]
    pub outcomes: [i64; 8],
}

/// One row for each test of a listed pair, in the order of `rank`: the root, then paths of
/// `host_a`, then paths of `host_b`.
#[derive(Clone, Debug, PartialEq, Table)]
#[table(name = "tests")]
pub struct PathTestRow {
    /// The pair; joins `candidates.rank`.
    #[column(sorted)]
    pub rank: i64,
    /// The host whose path it is.
    pub source: String,
    /// The host on which it is tested.
    pub target: String,
    /// The path, with its query.
    pub path: String,
    /// `SF`, `TF`, `FM`, `FS`, `HS`, `TS`, `NS` or `unknown`, as the columns of `candidates` say.
    pub outcome: &'static str,
    /// Share of equal features; 1 for equal bytes; null if the pages were not compared.
    pub similarity: Option<f64>,
    /// Whether the similarity is an estimate within 0.1 of the limit of `HS`, and the outcome so
    /// uncertain.
    pub near: bool,
}

/// The listed pairs of each level (Table 1).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Table)]
#[table(name = "levels")]
pub struct UrlLevelRow {
    /// The level, as in `candidates`.
    pub level: String,
    /// Listed pairs of the level.
    pub pairs: u64,
    /// The study's number, of 21,820 pairs. Of its other 7,516 candidates, DNS and server failures,
    /// it is not known how many are which: null.
    pub published: Option<u64>,
}

/// How many of the first pairs of the list are mirrors (Fig. 1): one row for each twentieth of the
/// list.
#[derive(Clone, Debug, PartialEq, Table)]
#[table(name = "ranking")]
pub struct RankingRow {
    /// The first pairs of the list, as a share of it.
    pub prefix: f64,
    /// Pairs among them of levels 1 to 5, and mismatches.
    pub pairs: i64,
    /// Share of `pairs` with level 1 to 3; null if there are none.
    pub levels13: Option<f64>,
    /// Share of `pairs` with level 1 to 4; null if there are none.
    pub levels14: Option<f64>,
}

/// Mirrors in two top-level domains (Table 3): one row for each group of levels and pair of
/// domains, most pairs first.
#[derive(Clone, Debug, PartialEq, Table)]
#[table(name = "domains")]
pub struct UrlDomainRow {
    /// The levels: `1-3`, `4` or `5`.
    pub group: &'static str,
    /// The top-level domains, the smaller one first.
    #[columns(
        domain_a = "the last label of one host's name; `address` if it has none",
        domain_b = "that of the other one"
    )]
    pub domains: [String; 2],
    /// Pairs of hosts.
    pub pairs: i64,
    /// Share of the pairs of the group in two domains.
    pub share: f64,
}

/// URLs of unknown tests, each once, for a crawler: the answers come back as `input` of the job. No
/// download of them is known that ended with a page, a redirect, or status 404 or 410.
#[derive(Clone, Debug, PartialEq, Table)]
#[table(name = "probes")]
pub struct ProbeRow {
    /// The best pair with such a test; joins `candidates.rank`.
    #[column(sorted)]
    pub rank: i64,
    /// The URL: `https` if all sampled paths of the host have that scheme, else `http`.
    pub url: String,
}

/// Hosts that are mirrors of each other by levels 1 to 4, directly or through others: one row for
/// each host.
#[derive(Clone, Debug, PartialEq, Table)]
#[table(name = "groups")]
pub struct UrlGroupRow {
    /// Number of the group, from 1, in the order of the names of preferred hosts.
    pub group: i64,
    /// A host of the group.
    pub host: String,
    /// Its distinct URLs.
    pub urls: i64,
    /// Whether it is the one of the group to keep: the first in the order of hosts, see
    /// docs/avoid.md.
    pub preferred: bool,
}

/// Mirrors that the mirrors job finds by content or this job by URL, side by side, in the order of
/// names; then directories that the collections job finds to be copies. Both jobs must have run
/// before for the same week.
#[derive(Clone, Debug, PartialEq, Table)]
#[table(name = "compared")]
pub struct ComparedRow {
    /// `host` for two whole hosts, or `directory`.
    pub kind: &'static str,
    /// The hosts. Of hosts, the smaller name first; of directories, that of the principal
    /// collection.
    #[columns(
        host_a = "one host: the smaller name, or the host of the principal collection",
        host_b = "the other one"
    )]
    pub hosts: [String; 2],
    /// The directories; `None` for whole hosts.
    #[columns(
        prefix_a = "the directory of the principal collection; null for hosts",
        prefix_b = "the directory of the copy; null for hosts"
    )]
    pub prefixes: Option<[String; 2]>,
    /// The collections with these directories.
    #[columns(
        collection_a = "the principal collection; joins `collections/collections`; null for hosts",
        collection_b = "the copy"
    )]
    pub collections: Option<[i64; 2]>,
    /// Whether they are mirrors by content, as `mirrors/pairs.mirror`; null if there are no tables
    /// of that job for the week.
    pub by_content: Option<bool>,
    /// Whether the hosts are mirrors by URL: a listed pair of level 1 to 4.
    pub by_url: bool,
    /// The class of the hosts in `mirrors/pairs`; null if they are not there.
    pub class: Option<String>,
    /// The number of the hosts in `candidates`; null if they are not listed, and for directories.
    pub rank: Option<i64>,
    /// The level there.
    pub level: Option<&'static str>,
    /// The score there.
    pub score: Option<f64>,
    /// Clusters with pages of both: of very similar pages; for directories of those of the
    /// collections job.
    pub shared: i64,
    /// A page of either in the first of these clusters.
    #[columns(
        example_a = "the URL of a page of the first in one of these clusters; null if there is none",
        example_b = "the URL of a page of the second in the same cluster"
    )]
    pub examples: Option<[String; 2]>,
}
