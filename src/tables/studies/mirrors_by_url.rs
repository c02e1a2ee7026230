//! The columns of the tables of the mirrors-by-url job: pairs of hosts that have URLs in common, and their tests (Bharat and Broder 1999).
//!
//! They lie in `mirrors-by-url/TABLE` of the store. Hosts are named as in `documents.host`. A pair is known by its rank in `candidates`.

use crate::tables::columns::{
    Column, Table, booleans, doubles, longs, maybe_booleans, maybe_doubles, maybe_longs, maybe_texts, nullable,
    required, texts,
};

/// `candidates`: one row for each listed pair of hosts, the best ones first.
#[derive(Clone, Debug, PartialEq)]
pub struct CandidateRow {
    /// The number in the list, from 1.
    pub rank: i64,
    /// The host with more URLs, and the other one.
    pub hosts: [String; 2],
    /// The normalised score.
    pub score: f64,
    /// Whether the hosts have one registered domain.
    pub same_domain: bool,
    /// The features that both have.
    pub features: i64,
    /// Those of paths among them.
    pub path_features: i64,
    /// The numbers of URLs of the hosts.
    pub urls: [i64; 2],
    /// The level: `1` to `5`, `mismatch` or `few`.
    pub level: &'static str,
    /// The tests with this outcome: SF, TF, FM, FS, HS, TS, NS, unknown.
    pub outcomes: [i64; 8],
}

impl Table for CandidateRow {
    const NAME: &'static str = "candidates";
    const DESCRIPTION: &'static str =
        "One row for each listed pair of hosts with features in common, in the order of `rank`.";
    const SORTED_BY: Option<&'static str> = Some("rank");

    fn columns(rows: &[Self]) -> Vec<Column> {
        let outcome = |name, description, place: usize| {
            required(name, description, longs(rows.iter().map(move |r| r.outcomes[place])))
        };
        vec![
            required("rank", "the number in the list, from 1", longs(rows.iter().map(|r| r.rank))),
            required(
                "host_a",
                "the host with more URLs; of equally many the one with the smaller name",
                texts(rows.iter().map(|r| r.hosts[0].as_str())),
            ),
            required("host_b", "the other host", texts(rows.iter().map(|r| r.hosts[1].as_str()))),
            required(
                "score",
                "weights of common features, over 1 + 0.1 (ln urls_a + ln urls_b)",
                doubles(rows.iter().map(|r| r.score)),
            ),
            required(
                "same_domain",
                "whether the hosts have one registered domain, as `www.a.example` and `a.example`",
                booleans(rows.iter().map(|r| r.same_domain)),
            ),
            required("features", "features that both hosts have", longs(rows.iter().map(|r| r.features))),
            required(
                "path_features",
                "those of them that are features of paths",
                longs(rows.iter().map(|r| r.path_features)),
            ),
            required("urls_a", "distinct URLs of `host_a`", longs(rows.iter().map(|r| r.urls[0]))),
            required("urls_b", "distinct URLs of `host_b`", longs(rows.iter().map(|r| r.urls[1]))),
            required(
                "level",
                "`1` (same structure, identical content), `2` (equivalent content), `3` (similar content), `4` (partly the same structure), `5` (related content), `mismatch`, or `few` (fewer than three paths could be compared, or no page of one host is known)",
                texts(rows.iter().map(|r| r.level)),
            ),
            outcome("sf", "tests of paths that the source does not have", 0),
            outcome("tf", "tests of paths that the source has and the target does not have", 1),
            outcome("fm", "tests of pages with the same bytes", 2),
            outcome("fs", "tests of other pages whose texts resemble each other wholly", 3),
            outcome("hs", "tests of pages with high resemblance", 4),
            outcome("ts", "tests of pages with some resemblance", 5),
            outcome("ns", "tests of pages without resemblance", 6),
            outcome("unknown", "tests that were not made: it is not known whether a host has the page", 7),
        ]
    }
}

/// `tests`: one row for each test of a listed pair.
#[derive(Clone, Debug, PartialEq)]
pub struct PathTestRow {
    /// The pair.
    pub rank: i64,
    /// The host whose path it is.
    pub source: String,
    /// The host on which it is tested.
    pub target: String,
    /// The path, with its query.
    pub path: String,
    /// The outcome, in the study's letters.
    pub outcome: &'static str,
    /// The resemblance of the two pages; `None` if they were not compared.
    pub similarity: Option<f64>,
    /// Whether that is an estimate close to the limit of high resemblance.
    pub near: bool,
}

impl Table for PathTestRow {
    const NAME: &'static str = "tests";
    const DESCRIPTION: &'static str = "One row for each test of a listed pair, in the order of `rank`: the root, then paths of `host_a`, then paths of `host_b`.";
    const SORTED_BY: Option<&'static str> = Some("rank");

    fn columns(rows: &[Self]) -> Vec<Column> {
        vec![
            required("rank", "the pair; joins `candidates.rank`", longs(rows.iter().map(|r| r.rank))),
            required("source", "the host whose path it is", texts(rows.iter().map(|r| r.source.as_str()))),
            required("target", "the host on which it is tested", texts(rows.iter().map(|r| r.target.as_str()))),
            required("path", "the path, with its query", texts(rows.iter().map(|r| r.path.as_str()))),
            required(
                "outcome",
                "`SF`, `TF`, `FM`, `FS`, `HS`, `TS`, `NS` or `unknown`, as the columns of `candidates` say",
                texts(rows.iter().map(|r| r.outcome)),
            ),
            nullable(
                "similarity",
                "share of equal features; 1 for equal bytes; null if the pages were not compared",
                maybe_doubles(rows.iter().map(|r| r.similarity)),
            ),
            required(
                "near",
                "whether the similarity is an estimate within 0.1 of the limit of `HS`, and the outcome so uncertain",
                booleans(rows.iter().map(|r| r.near)),
            ),
        ]
    }
}

/// `levels`: the pairs of each level (Table 1).
#[derive(Clone, Debug, PartialEq)]
pub struct UrlLevelRow {
    /// The level.
    pub level: &'static str,
    /// Listed pairs of the level.
    pub pairs: i64,
    /// The study's number.
    pub published: Option<i64>,
}

impl Table for UrlLevelRow {
    const NAME: &'static str = "levels";
    const DESCRIPTION: &'static str = "The listed pairs of each level (Table 1).";

    fn columns(rows: &[Self]) -> Vec<Column> {
        vec![
            required("level", "the level, as in `candidates`", texts(rows.iter().map(|r| r.level))),
            required("pairs", "listed pairs of the level", longs(rows.iter().map(|r| r.pairs))),
            nullable("published", "the study's number, of 21,820 pairs", maybe_longs(rows.iter().map(|r| r.published))),
        ]
    }
}

/// `ranking`: how many of the first pairs of the list are mirrors (Fig. 1).
#[derive(Clone, Debug, PartialEq)]
pub struct RankingRow {
    /// The share of the list.
    pub prefix: f64,
    /// The pairs in it that have a level or are a mismatch.
    pub pairs: i64,
    /// The share of them of levels 1 to 3.
    pub levels13: Option<f64>,
    /// The share of them of levels 1 to 4.
    pub levels14: Option<f64>,
}

impl Table for RankingRow {
    const NAME: &'static str = "ranking";
    const DESCRIPTION: &'static str =
        "How many of the first pairs of the list are mirrors (Fig. 1): one row for each twentieth of the list.";

    fn columns(rows: &[Self]) -> Vec<Column> {
        vec![
            required("prefix", "the first pairs of the list, as a share of it", doubles(rows.iter().map(|r| r.prefix))),
            required("pairs", "pairs among them that are not `few`", longs(rows.iter().map(|r| r.pairs))),
            nullable(
                "levels13",
                "share of `pairs` with level 1 to 3; null if there are none",
                maybe_doubles(rows.iter().map(|r| r.levels13)),
            ),
            nullable(
                "levels14",
                "share of `pairs` with level 1 to 4; null if there are none",
                maybe_doubles(rows.iter().map(|r| r.levels14)),
            ),
        ]
    }
}

/// `domains`: the top-level domains of mirrors on two of them (Table 3).
#[derive(Clone, Debug, PartialEq)]
pub struct UrlDomainRow {
    /// `1-3`, `4` or `5`.
    pub group: &'static str,
    /// The top-level domains, the smaller one first.
    pub domains: [String; 2],
    /// Pairs of the group with these.
    pub pairs: i64,
    /// The share of all pairs of the group with two different ones.
    pub share: f64,
}

impl Table for UrlDomainRow {
    const NAME: &'static str = "domains";
    const DESCRIPTION: &'static str = "Mirrors in two top-level domains (Table 3): one row for each group of levels and pair of domains, most pairs first.";

    fn columns(rows: &[Self]) -> Vec<Column> {
        vec![
            required("group", "the levels: `1-3`, `4` or `5`", texts(rows.iter().map(|r| r.group))),
            required(
                "domain_a",
                "the last label of one host's name; `address` if it has none",
                texts(rows.iter().map(|r| r.domains[0].as_str())),
            ),
            required("domain_b", "that of the other one", texts(rows.iter().map(|r| r.domains[1].as_str()))),
            required("pairs", "pairs of hosts", longs(rows.iter().map(|r| r.pairs))),
            required("share", "share of the pairs of the group in two domains", doubles(rows.iter().map(|r| r.share))),
        ]
    }
}

/// `probes`: what a crawler would fetch, so that more tests can be made.
#[derive(Clone, Debug, PartialEq)]
pub struct ProbeRow {
    /// The best pair with a test of the URL.
    pub rank: i64,
    /// The URL: `https` if all sampled paths of the host have that scheme, else `http`.
    pub url: String,
}

impl Table for ProbeRow {
    const NAME: &'static str = "probes";
    const DESCRIPTION: &'static str = "URLs of unknown tests, each once, for a crawler: the answers come back as `input` of the job. No download of them is known that ended with a page, a redirect, or status 404 or 410.";
    const SORTED_BY: Option<&'static str> = Some("rank");

    fn columns(rows: &[Self]) -> Vec<Column> {
        vec![
            required(
                "rank",
                "the best pair with such a test; joins `candidates.rank`",
                longs(rows.iter().map(|r| r.rank)),
            ),
            required(
                "url",
                "the URL: `https` if all sampled paths of the host have that scheme, else `http`",
                texts(rows.iter().map(|r| r.url.as_str())),
            ),
        ]
    }
}

/// `groups`: hosts that are mirrors of each other, directly or through others.
#[derive(Clone, Debug, PartialEq)]
pub struct UrlGroupRow {
    /// The number of the group, from 1, in the order of the names of their preferred hosts.
    pub group: i64,
    /// A host.
    pub host: String,
    /// Its URLs.
    pub urls: i64,
    /// Whether it has most URLs, of equally many the smallest name.
    pub preferred: bool,
}

impl Table for UrlGroupRow {
    const NAME: &'static str = "groups";
    const DESCRIPTION: &'static str =
        "Hosts that are mirrors of each other by levels 1 to 4, directly or through others: one row for each host.";

    fn columns(rows: &[Self]) -> Vec<Column> {
        vec![
            required(
                "group",
                "number of the group, from 1, in the order of the names of preferred hosts",
                longs(rows.iter().map(|r| r.group)),
            ),
            required("host", "a host of the group", texts(rows.iter().map(|r| r.host.as_str()))),
            required("urls", "its distinct URLs", longs(rows.iter().map(|r| r.urls))),
            required(
                "preferred",
                "whether it has the most URLs of its group; of equally many the smallest name",
                booleans(rows.iter().map(|r| r.preferred)),
            ),
        ]
    }
}

/// `compared`: mirrors by content and by URL side by side, and mirrored directories.
#[derive(Clone, Debug, PartialEq)]
pub struct ComparedRow {
    /// `host` or `directory`.
    pub kind: &'static str,
    /// The hosts. Of hosts, the smaller name first; of directories, that of the principal collection.
    pub hosts: [String; 2],
    /// The directories; `None` for whole hosts.
    pub prefixes: Option<[String; 2]>,
    /// The collections with these directories.
    pub collections: Option<[i64; 2]>,
    /// Whether they are mirrors by content; `None` if that is not known.
    pub by_content: Option<bool>,
    /// Whether the hosts are mirrors by URL: levels 1 to 4.
    pub by_url: bool,
    /// The class in the tables of the mirrors job.
    pub class: Option<String>,
    /// The number in `candidates`.
    pub rank: Option<i64>,
    /// The level there.
    pub level: Option<&'static str>,
    /// The score there.
    pub score: Option<f64>,
    /// Clusters of similar pages with pages of both.
    pub shared: i64,
    /// A page of either in the first of these clusters.
    pub examples: Option<[String; 2]>,
}

impl Table for ComparedRow {
    const NAME: &'static str = "compared";
    const DESCRIPTION: &'static str = "Mirrors that the mirrors job finds by content or this job by URL, side by side, in the order of names; then directories that the collections job finds to be copies. Both jobs must have run before for the same week.";

    fn columns(rows: &[Self]) -> Vec<Column> {
        let of_pairs = |of: fn(&ComparedRow) -> &Option<[String; 2]>, place: usize| {
            maybe_texts(rows.iter().map(move |r| of(r).as_ref().map(|pair| pair[place].as_str())))
        };
        vec![
            required("kind", "`host` for two whole hosts, or `directory`", texts(rows.iter().map(|r| r.kind))),
            required(
                "host_a",
                "one host: the smaller name, or the host of the principal collection",
                texts(rows.iter().map(|r| r.hosts[0].as_str())),
            ),
            required("host_b", "the other one", texts(rows.iter().map(|r| r.hosts[1].as_str()))),
            nullable(
                "prefix_a",
                "the directory of the principal collection; null for hosts",
                of_pairs(|r| &r.prefixes, 0),
            ),
            nullable("prefix_b", "the directory of the copy; null for hosts", of_pairs(|r| &r.prefixes, 1)),
            nullable(
                "collection_a",
                "the principal collection; joins `collections/collections`; null for hosts",
                maybe_longs(rows.iter().map(|r| r.collections.map(|pair| pair[0]))),
            ),
            nullable("collection_b", "the copy", maybe_longs(rows.iter().map(|r| r.collections.map(|pair| pair[1])))),
            nullable(
                "by_content",
                "whether they are mirrors by content, as `mirrors/pairs.mirror`; null if there are no tables of that job for the week",
                maybe_booleans(rows.iter().map(|r| r.by_content)),
            ),
            required(
                "by_url",
                "whether the hosts are mirrors by URL: a listed pair of level 1 to 4",
                booleans(rows.iter().map(|r| r.by_url)),
            ),
            nullable(
                "class",
                "the class of the hosts in `mirrors/pairs`; null if they are not there",
                maybe_texts(rows.iter().map(|r| r.class.as_deref())),
            ),
            nullable(
                "rank",
                "the number of the hosts in `candidates`; null if they are not listed, and for directories",
                maybe_longs(rows.iter().map(|r| r.rank)),
            ),
            nullable("level", "the level there", maybe_texts(rows.iter().map(|r| r.level))),
            nullable("score", "the score there", maybe_doubles(rows.iter().map(|r| r.score))),
            required(
                "shared",
                "clusters with pages of both: of very similar pages; for directories of those of the collections job",
                longs(rows.iter().map(|r| r.shared)),
            ),
            nullable(
                "example_a",
                "the URL of a page of the first in one of these clusters; null if there is none",
                of_pairs(|r| &r.examples, 0),
            ),
            nullable("example_b", "the URL of a page of the second in the same cluster", of_pairs(|r| &r.examples, 1)),
        ]
    }
}
