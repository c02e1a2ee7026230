//! The columns of the tables of the mirrors job: pairs of hosts that have many pages in common (Fetterly 2004, sections 2 and 4).
//!
//! They lie in `mirrors/TABLE` of the store. A `week` is a date, as in the folder names of weeks; hosts are named as in `documents.host`, by
//! which these tables join those of weeks.

use crate::records::Week;
use crate::tables::columns::{
    Column, Table, booleans, dates, longs, maybe_doubles, maybe_longs, nullable, required, texts,
};

/// `pairs`: one row for each pair of hosts that share enough pages, with its class.
#[derive(Clone, Debug, PartialEq)]
pub struct MirrorPairRow {
    /// The week.
    pub week: Week,
    /// The host with more pages that have near-duplicates; the first of a pair. In class `redirect` the host that redirects.
    pub host_a: String,
    /// The other host; the same one in class `auto`.
    pub host_b: String,
    /// `auto`, `unresolved`, `farm`, `kept`, `alias` or `redirect`.
    pub class: &'static str,
    /// Whether the names differ only in a leading `www.`.
    pub www: bool,
    /// The pages of the first host in clusters with pages of the second.
    pub pages_a: i64,
    /// The pages of the second host in clusters with pages of the first.
    pub pages_b: i64,
    /// Clusters with pages of both.
    pub clusters: i64,
    /// The pages that count for the pair.
    pub size: i64,
    /// Pages of the second host that match the first one by URL: see [`MATCHES`](crate::operators::mirrors::MATCHES).
    pub matched: [i64; 5],
    /// Whether the pair is confirmed by URLs.
    pub mirror: bool,
    /// URLs of one of the hosts that redirect to the other, if they are most of its URLs.
    pub redirects: i64,
    /// The share of the paths of the first host that the second one has, and of the second that the first one has.
    pub coverage: [Option<f64>; 2],
}

impl MirrorPairRow {
    /// A row of two hosts without any number.
    pub fn new(week: Week, host_a: String, host_b: String, class: &'static str) -> MirrorPairRow {
        MirrorPairRow {
            week,
            host_a,
            host_b,
            class,
            www: false,
            pages_a: 0,
            pages_b: 0,
            clusters: 0,
            size: 0,
            matched: [0; 5],
            mirror: false,
            redirects: 0,
            coverage: [None, None],
        }
    }
}

impl Table for MirrorPairRow {
    const NAME: &'static str = "pairs";
    const DESCRIPTION: &'static str =
        "One row for each pair of hosts that share enough pages, in the order of `week`, `host_a` and `host_b`.";

    fn columns(rows: &[Self]) -> Vec<Column> {
        let matched = |place: usize| longs(rows.iter().map(move |r| r.matched[place]));
        let coverage = |place: usize| maybe_doubles(rows.iter().map(move |r| r.coverage[place]));
        vec![
            required("week", "the week", dates(rows.iter().map(|r| r.week))),
            required(
                "host_a",
                "the host with more pages that have near-duplicates; in class `redirect` the host that redirects",
                texts(rows.iter().map(|r| r.host_a.as_str())),
            ),
            required(
                "host_b",
                "the other host; in class `auto` the same one",
                texts(rows.iter().map(|r| r.host_b.as_str())),
            ),
            required(
                "class",
                "`auto` (one host), `unresolved` (one has no address), `farm` (one cluster on very many hosts; only its first host is paired), `alias` (another name of a host), `kept` (a candidate for a mirror), or `redirect` (a host that redirects to the other and shares too few pages)",
                texts(rows.iter().map(|r| r.class)),
            ),
            required("www", "whether the names differ only in a leading `www.`", booleans(rows.iter().map(|r| r.www))),
            required(
                "pages_a",
                "pages of `host_a` in clusters with pages of `host_b`",
                longs(rows.iter().map(|r| r.pages_a)),
            ),
            required(
                "pages_b",
                "pages of `host_b` in clusters with pages of `host_a`",
                longs(rows.iter().map(|r| r.pages_b)),
            ),
            required("clusters", "clusters with pages of both", longs(rows.iter().map(|r| r.clusters))),
            required(
                "size",
                "pages that count for the pair: the smaller of the two numbers, or `pages_b` if `pairs = \"root\"`",
                longs(rows.iter().map(|r| r.size)),
            ),
            required(
                "matched1",
                "pages of `host_b` with the last arc of the path of a page of `host_a` in their cluster",
                matched(0),
            ),
            required("matched2", "the same for the last two arcs, or all of them if there are fewer", matched(1)),
            required("matched3", "the same for three arcs", matched(2)),
            required("matched4", "the same for four arcs", matched(3)),
            required("matched_path", "the same for the whole path", matched(4)),
            required(
                "mirror",
                "whether the class is `kept` and `matched4` is enough",
                booleans(rows.iter().map(|r| r.mirror)),
            ),
            required(
                "redirects",
                "URLs of one host that redirect to the other, if they are most of its URLs; else 0",
                longs(rows.iter().map(|r| r.redirects)),
            ),
            nullable(
                "coverage_a",
                "share of the paths of `host_a` that `host_b` has; null if it is no mirror",
                coverage(0),
            ),
            nullable(
                "coverage_b",
                "share of the paths of `host_b` that `host_a` has; null if it is no mirror",
                coverage(1),
            ),
        ]
    }
}

/// `classes`: how many pairs there are of each class.
#[derive(Clone, Debug, PartialEq)]
pub struct MirrorClassRow {
    /// The week.
    pub week: Week,
    /// The class, `raw` for all of them, or a part of `kept`.
    pub class: &'static str,
    /// Pairs of the class.
    pub pairs: i64,
    /// The study's number for its first week.
    pub published: Option<i64>,
}

impl Table for MirrorClassRow {
    const NAME: &'static str = "classes";
    const DESCRIPTION: &'static str = "The number of pairs of each class: one row for each week and class.";

    fn columns(rows: &[Self]) -> Vec<Column> {
        vec![
            required("week", "the week", dates(rows.iter().map(|r| r.week))),
            required(
                "class",
                "`raw` (the sum of the next five), `auto`, `alias`, `unresolved`, `farm` (with the pairs that are not listed), `kept`; of the kept ones `kept-www`, `kept-last-arc` and `kept-last-four-arcs` (enough pages match); and `redirect`",
                texts(rows.iter().map(|r| r.class)),
            ),
            required("pairs", "pairs of the class", longs(rows.iter().map(|r| r.pairs))),
            nullable(
                "published",
                "the study's number, for its first week",
                maybe_longs(rows.iter().map(|r| r.published)),
            ),
        ]
    }
}

/// `sizes`: mirrors by size (Fig. 12 and 13).
#[derive(Clone, Debug, PartialEq)]
pub struct MirrorSizeRow {
    /// The week.
    pub week: Week,
    /// The size of a pair.
    pub size: i64,
    /// Mirrors of this size.
    pub pairs: i64,
}

impl Table for MirrorSizeRow {
    const NAME: &'static str = "sizes";
    const DESCRIPTION: &'static str = "Pairs of mirrors by size (Fig. 12 and 13): one row for each week and size.";

    fn columns(rows: &[Self]) -> Vec<Column> {
        vec![
            required("week", "the week", dates(rows.iter().map(|r| r.week))),
            required("size", "the size of a pair, as in `pairs`", longs(rows.iter().map(|r| r.size))),
            required("pairs", "pairs of mirrors of this size", longs(rows.iter().map(|r| r.pairs))),
        ]
    }
}

/// `changes`: how much mirrored pages change, by the size of the mirror (Fig. 11).
#[derive(Clone, Debug, PartialEq)]
pub struct MirrorChangeRow {
    /// The class of sizes.
    pub class: &'static str,
    /// The kind of change.
    pub change: &'static str,
    /// Pairs of successive downloads with this change.
    pub pairs: i64,
    /// `pairs` over all pairs of the class; null if there are none.
    pub share: Option<f64>,
}

impl Table for MirrorChangeRow {
    const NAME: &'static str = "changes";
    const DESCRIPTION: &'static str =
        "How much pages of mirrors change (Fig. 11): one row for each class of sizes and kind of change.";

    fn columns(rows: &[Self]) -> Vec<Column> {
        vec![
            required(
                "class",
                "the size of the largest pair that the page counts for in the first week, as a class like `11-100`",
                texts(rows.iter().map(|r| r.class)),
            ),
            required(
                "change",
                "`complete`, `large`, `medium`, `small`, `no-text-change` or `no-change`, as in `evolution/change-classes`",
                texts(rows.iter().map(|r| r.change)),
            ),
            required("pairs", "pairs of successive downloads with this change", longs(rows.iter().map(|r| r.pairs))),
            nullable(
                "share",
                "share of the change among the pairs of the class",
                maybe_doubles(rows.iter().map(|r| r.share)),
            ),
        ]
    }
}

/// `groups`: hosts that are mirrors of each other, directly or through others, with the one to keep.
#[derive(Clone, Debug, PartialEq)]
pub struct MirrorGroupRow {
    /// The week.
    pub week: Week,
    /// The number of the group, from 1, in the order of the names of preferred hosts.
    pub group: i64,
    /// A host of the group.
    pub host: String,
    /// All of its pages.
    pub pages: i64,
    /// Whether it is the one with the most pages; of equally many, the first by name.
    pub preferred: bool,
    /// The number of its addresses.
    pub addresses: i64,
}

impl Table for MirrorGroupRow {
    const NAME: &'static str = "groups";
    const DESCRIPTION: &'static str =
        "Hosts that are mirrors of each other, directly or through others: one row for each week and host.";

    fn columns(rows: &[Self]) -> Vec<Column> {
        vec![
            required("week", "the week", dates(rows.iter().map(|r| r.week))),
            required("group", "number of the group in its week, from 1", longs(rows.iter().map(|r| r.group))),
            required("host", "a host of the group", texts(rows.iter().map(|r| r.host.as_str()))),
            required("pages", "its pages in the week", longs(rows.iter().map(|r| r.pages))),
            required(
                "preferred",
                "whether it has the most pages of the group; the first by name of equally many",
                booleans(rows.iter().map(|r| r.preferred)),
            ),
            required("addresses", "number of its IP addresses", longs(rows.iter().map(|r| r.addresses))),
        ]
    }
}

/// `mirrored`: the pages that mirrors have in common.
#[derive(Clone, Debug, PartialEq)]
pub struct MirroredRow {
    /// The week.
    pub week: Week,
    /// Pages in a cluster with a page of a mirror of their host.
    pub pages: i64,
    /// All pages of the week.
    pub documents: i64,
    /// `pages` over `documents`; null if there are none.
    pub share: Option<f64>,
}

impl Table for MirroredRow {
    const NAME: &'static str = "mirrored";
    const DESCRIPTION: &'static str = "The pages that mirrors have in common: one row for each week.";

    fn columns(rows: &[Self]) -> Vec<Column> {
        vec![
            required("week", "the week", dates(rows.iter().map(|r| r.week))),
            required(
                "pages",
                "pages in a cluster with a page of a mirror of their host",
                longs(rows.iter().map(|r| r.pages)),
            ),
            required("documents", "all pages of the week", longs(rows.iter().map(|r| r.documents))),
            nullable("share", "`pages` over `documents`", maybe_doubles(rows.iter().map(|r| r.share))),
        ]
    }
}

/// `spans`: from when to when two hosts are mirrors.
#[derive(Clone, Debug, PartialEq)]
pub struct MirrorSpanRow {
    /// The host whose name comes first.
    pub host_a: String,
    /// The other host.
    pub host_b: String,
    /// The first of the weeks.
    pub first: Week,
    /// The last of the weeks.
    pub last: Week,
    /// How many weeks of the store there are from the first to the last.
    pub weeks: i64,
    /// Whether a week of the job follows in which they are no mirrors.
    pub ended: bool,
}

impl Table for MirrorSpanRow {
    const NAME: &'static str = "spans";
    const DESCRIPTION: &'static str =
        "From when to when two hosts are mirrors: one row for each pair and run of successive weeks.";

    fn columns(rows: &[Self]) -> Vec<Column> {
        vec![
            required("host_a", "the host whose name comes first", texts(rows.iter().map(|r| r.host_a.as_str()))),
            required("host_b", "the other host", texts(rows.iter().map(|r| r.host_b.as_str()))),
            required("first", "the first of the weeks", dates(rows.iter().map(|r| r.first))),
            required("last", "the last of the weeks", dates(rows.iter().map(|r| r.last))),
            required("weeks", "number of weeks", longs(rows.iter().map(|r| r.weeks))),
            required(
                "ended",
                "whether the next week of the job has no such pair",
                booleans(rows.iter().map(|r| r.ended)),
            ),
        ]
    }
}

/// `lags`: how long changes take from one mirror to another.
#[derive(Clone, Debug, PartialEq)]
pub struct MirrorLagRow {
    /// The host that had a change first.
    pub host: String,
    /// Its mirror.
    pub copy: String,
    /// After how many weeks of the store the mirror had it; 0 in the same week; null if not until the last one.
    pub weeks: Option<i64>,
    /// Changes of pages.
    pub changes: i64,
}

impl Table for MirrorLagRow {
    const NAME: &'static str = "lags";
    const DESCRIPTION: &'static str = "How long changes of pages take from a host to its mirror: one row for each pair, direction and number of weeks.";

    fn columns(rows: &[Self]) -> Vec<Column> {
        vec![
            required("host", "the host with a change", texts(rows.iter().map(|r| r.host.as_str()))),
            required(
                "copy",
                "its mirror, which has a page of the same path",
                texts(rows.iter().map(|r| r.copy.as_str())),
            ),
            nullable(
                "weeks",
                "weeks until the mirror's page has the same features; 0: the same week; null: not until the last week",
                maybe_longs(rows.iter().map(|r| r.weeks)),
            ),
            required("changes", "changes of pages", longs(rows.iter().map(|r| r.changes))),
        ]
    }
}
