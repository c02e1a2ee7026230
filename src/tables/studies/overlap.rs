//! The columns of the tables of the overlap job: pages or hosts that share chunks of text (Shivakumar and Garcia-Molina 1998).
//!
//! They lie in `overlap/TABLE` of the store. A `chunking` is `document`, `four-lines` or `two-lines`. `doc` joins these tables with those of
//! the job's week.

use crate::tables::columns::{
    Column, Table, doubles, ints, longs, maybe_doubles, maybe_texts, nullable, required, texts,
};

/// `overlap`: pairs of pages that share enough chunks.
#[derive(Clone, Debug, PartialEq)]
pub struct OverlapRow {
    /// The chunking.
    pub chunking: &'static str,
    /// The page with the smaller id.
    pub doc_a: i64,
    /// The other page.
    pub doc_b: i64,
    /// The number of distinct chunks that both have.
    pub shared: i32,
    /// `shared` over the distinct chunks of `doc_a`.
    pub containment_a: f64,
    /// `shared` over the distinct chunks of `doc_b`.
    pub containment_b: f64,
}

impl Table for OverlapRow {
    const NAME: &'static str = "overlap";
    const DESCRIPTION: &'static str = "Pairs of pages that share enough chunks; each pair once. Of pages with one text only the first is here. Pairs of one family are in `families`.";
    const ASCENDING: &'static [&'static str] = &["doc_a"];

    fn columns(rows: &[Self]) -> Vec<Column> {
        vec![
            required("chunking", "document, four-lines or two-lines", texts(rows.iter().map(|r| r.chunking))),
            required("doc_a", "document id", longs(rows.iter().map(|r| r.doc_a))),
            required("doc_b", "document id, larger than doc_a", longs(rows.iter().map(|r| r.doc_b))),
            required("shared", "distinct chunks that both pages have", ints(rows.iter().map(|r| r.shared))),
            required(
                "containment_a",
                "shared over the distinct chunks of doc_a; 1: all of doc_a is in doc_b",
                doubles(rows.iter().map(|r| r.containment_a)),
            ),
            required(
                "containment_b",
                "shared over the distinct chunks of doc_b",
                doubles(rows.iter().map(|r| r.containment_b)),
            ),
        ]
    }
}

/// `host-overlap`: pairs of hosts that share enough chunks.
#[derive(Clone, Debug, PartialEq)]
pub struct HostOverlapRow {
    /// The chunking.
    pub chunking: &'static str,
    /// The host that is first in the alphabet.
    pub host_a: String,
    /// The other host.
    pub host_b: String,
    /// The number of distinct chunks that both have.
    pub shared: i32,
    /// `shared` over the distinct chunks of `host_a`.
    pub containment_a: f64,
    /// `shared` over the distinct chunks of `host_b`.
    pub containment_b: f64,
}

impl Table for HostOverlapRow {
    const NAME: &'static str = "host-overlap";
    const DESCRIPTION: &'static str =
        "Pairs of hosts whose pages share enough chunks, if the job says `unit = \"host\"`; each pair once.";

    fn columns(rows: &[Self]) -> Vec<Column> {
        vec![
            required("chunking", "document, four-lines or two-lines", texts(rows.iter().map(|r| r.chunking))),
            required("host_a", "host", texts(rows.iter().map(|r| r.host_a.as_str()))),
            required("host_b", "host, after host_a in the alphabet", texts(rows.iter().map(|r| r.host_b.as_str()))),
            required("shared", "distinct chunks that both hosts have", ints(rows.iter().map(|r| r.shared))),
            required(
                "containment_a",
                "shared over the distinct chunks of host_a",
                doubles(rows.iter().map(|r| r.containment_a)),
            ),
            required(
                "containment_b",
                "shared over the distinct chunks of host_b",
                doubles(rows.iter().map(|r| r.containment_b)),
            ),
        ]
    }
}

/// `families`: units any two of which overlap, without a row for each pair.
#[derive(Clone, Debug, PartialEq)]
pub struct FamilyRow {
    /// The chunking.
    pub chunking: &'static str,
    /// The name of the family: the smallest id of its members.
    pub family: i64,
    /// The member: a page, or a host's number.
    pub doc: i64,
    /// The host, if hosts are compared.
    pub host: Option<String>,
    /// The chunks of the family's collection that the member has.
    pub weight: i64,
    /// The chunks of the collection.
    pub of: i64,
}

impl Table for FamilyRow {
    const NAME: &'static str = "families";
    const DESCRIPTION: &'static str = "Members of families: any two of one family share at least weight + weight - of chunks. For `document` a family is the pages with one text.";
    const ASCENDING: &'static [&'static str] = &["doc"];

    fn columns(rows: &[Self]) -> Vec<Column> {
        vec![
            required("chunking", "document, four-lines or two-lines", texts(rows.iter().map(|r| r.chunking))),
            required("family", "the smallest doc of the family", longs(rows.iter().map(|r| r.family))),
            required(
                "doc",
                "document id of the member; for hosts a number that only these tables have",
                longs(rows.iter().map(|r| r.doc)),
            ),
            nullable("host", "the member, if hosts are compared", maybe_texts(rows.iter().map(|r| r.host.as_deref()))),
            required(
                "weight",
                "chunks of the family's collection that the member has",
                longs(rows.iter().map(|r| r.weight)),
            ),
            required("of", "chunks of the collection", longs(rows.iter().map(|r| r.of))),
        ]
    }
}

/// `family-chunks`: the collections of families.
#[derive(Clone, Debug, PartialEq)]
pub struct FamilyChunkRow {
    /// The chunking.
    pub chunking: &'static str,
    /// The name of the family: the smallest id of its members.
    pub family: i64,
    /// A chunk of the collection.
    pub chunk: i64,
}

impl Table for FamilyChunkRow {
    const NAME: &'static str = "family-chunks";
    const DESCRIPTION: &'static str = "The collection of each family: the chunks of which its members have most. Families of `document` have none. The next week's pages join families by them.";
    const UNIQUE: &'static [&'static str] = &["chunk"];

    fn columns(rows: &[Self]) -> Vec<Column> {
        vec![
            required("chunking", "four-lines or two-lines", texts(rows.iter().map(|r| r.chunking))),
            required("family", "as in `families`", longs(rows.iter().map(|r| r.family))),
            required("chunk", "64-bit hash of a chunk", longs(rows.iter().map(|r| r.chunk))),
        ]
    }
}

/// `components`: pages that overlap, directly or over others.
#[derive(Clone, Debug, PartialEq)]
pub struct ComponentRow {
    /// The chunking.
    pub chunking: &'static str,
    /// The name of the component: the smallest id of its members.
    pub component: i64,
    /// The member: a page, or a host's number.
    pub doc: i64,
    /// The host, if hosts are compared.
    pub host: Option<String>,
}

impl Table for ComponentRow {
    const NAME: &'static str = "components";
    const DESCRIPTION: &'static str = "Members of components: units that overlap, directly or over others, copies included. Units that overlap with no other are not here.";
    const ASCENDING: &'static [&'static str] = &["doc"];

    fn columns(rows: &[Self]) -> Vec<Column> {
        vec![
            required("chunking", "document, four-lines or two-lines", texts(rows.iter().map(|r| r.chunking))),
            required("component", "the smallest doc of the component", longs(rows.iter().map(|r| r.component))),
            required(
                "doc",
                "document id of the member; for hosts the number that `families` has, too",
                longs(rows.iter().map(|r| r.doc)),
            ),
            nullable("host", "the member, if hosts are compared", maybe_texts(rows.iter().map(|r| r.host.as_deref()))),
        ]
    }
}

/// `replicas`: pages by how many others overlap with them (Fig. 1).
#[derive(Clone, Debug, PartialEq)]
pub struct ReplicaRow {
    /// The chunking.
    pub chunking: &'static str,
    /// A range of numbers of replicas.
    pub replicas: &'static str,
    /// Pages with so many replicas.
    pub documents: i64,
    /// Their share of all pages.
    pub share: Option<f64>,
    /// Pages in components with so many others.
    pub by_cluster: i64,
    /// The study's share.
    pub published: Option<f64>,
}

impl Table for ReplicaRow {
    const NAME: &'static str = "replicas";
    const DESCRIPTION: &'static str = "Pages by the number of other pages that overlap with them, copies included (Fig. 1). With `unit = \"host\"` these are hosts.";

    fn columns(rows: &[Self]) -> Vec<Column> {
        vec![
            required("chunking", "document, four-lines or two-lines", texts(rows.iter().map(|r| r.chunking))),
            required(
                "replicas",
                "number of other pages: 0, 1, 2, 3-9, 10-99, 100-999 or 1000 and more",
                texts(rows.iter().map(|r| r.replicas)),
            ),
            required("documents", "pages that so many pages overlap with", longs(rows.iter().map(|r| r.documents))),
            nullable(
                "share",
                "documents over all pages with chunks; null without pages",
                maybe_doubles(rows.iter().map(|r| r.share)),
            ),
            required(
                "by_cluster",
                "pages that are in a component with so many others",
                longs(rows.iter().map(|r| r.by_cluster)),
            ),
            nullable(
                "published",
                "the study's share, where it has one",
                maybe_doubles(rows.iter().map(|r| r.published)),
            ),
        ]
    }
}

/// `savings`: what a crawl could leave out.
#[derive(Clone, Debug, PartialEq)]
pub struct SavingRow {
    /// The chunking.
    pub chunking: &'static str,
    /// All pages.
    pub documents: i64,
    /// Pages less components.
    pub copies: i64,
    /// `copies / documents`.
    pub share: Option<f64>,
    /// The bytes of the copies.
    pub bytes: i64,
    /// The study's share.
    pub published: Option<f64>,
}

impl Table for SavingRow {
    const NAME: &'static str = "savings";
    const DESCRIPTION: &'static str = "What a crawl could leave out, if it kept one page of each component of pages that overlap: one row for each chunking.";

    fn columns(rows: &[Self]) -> Vec<Column> {
        vec![
            required("chunking", "document, four-lines or two-lines", texts(rows.iter().map(|r| r.chunking))),
            required(
                "documents",
                "pages with chunks; hosts if hosts are compared",
                longs(rows.iter().map(|r| r.documents)),
            ),
            required("copies", "pages that are not the first of their component", longs(rows.iter().map(|r| r.copies))),
            nullable("share", "copies over documents; null without pages", maybe_doubles(rows.iter().map(|r| r.share))),
            required("bytes", "bytes of the copies, markup included", longs(rows.iter().map(|r| r.bytes))),
            nullable("published", "the study's share", maybe_doubles(rows.iter().map(|r| r.published))),
        ]
    }
}

/// `most`: the largest components.
#[derive(Clone, Debug, PartialEq)]
pub struct MostRow {
    /// The chunking.
    pub chunking: &'static str,
    /// The rank, from 1.
    pub rank: i32,
    /// Pages of the component.
    pub documents: i64,
    /// Distinct hosts of these pages.
    pub hosts: i64,
    /// Distinct addresses of these pages.
    pub machines: i64,
    /// The title of the first page.
    pub title: String,
    /// The URL of the first page.
    pub url: String,
    /// The first page.
    pub doc: i64,
}

impl Table for MostRow {
    const NAME: &'static str = "most";
    const DESCRIPTION: &'static str =
        "The 20 largest components of pages, or of hosts, that overlap: for each chunking.";

    fn columns(rows: &[Self]) -> Vec<Column> {
        vec![
            required("chunking", "document, four-lines or two-lines", texts(rows.iter().map(|r| r.chunking))),
            required("rank", "1 for the component with the most members", ints(rows.iter().map(|r| r.rank))),
            required("documents", "pages of the component", longs(rows.iter().map(|r| r.documents))),
            required("hosts", "distinct hosts of these pages", longs(rows.iter().map(|r| r.hosts))),
            required("machines", "distinct IP addresses of these pages", longs(rows.iter().map(|r| r.machines))),
            required("title", "title of the first page", texts(rows.iter().map(|r| r.title.as_str()))),
            required("url", "URL of the first page", texts(rows.iter().map(|r| r.url.as_str()))),
            required("doc", "document id of the first page", longs(rows.iter().map(|r| r.doc))),
        ]
    }
}

/// `reasons`: why pages overlap.
#[derive(Clone, Debug, PartialEq)]
pub struct ReasonRow {
    /// The chunking.
    pub chunking: &'static str,
    /// The reason.
    pub reason: &'static str,
    /// Pages with this reason.
    pub documents: i64,
}

impl Table for ReasonRow {
    const NAME: &'static str = "reasons";
    const DESCRIPTION: &'static str =
        "The copies of `savings` by where they are, compared with the first page of their component.";

    fn columns(rows: &[Self]) -> Vec<Column> {
        vec![
            required("chunking", "document, four-lines or two-lines", texts(rows.iter().map(|r| r.chunking))),
            required(
                "reason",
                "same-host; same-machine: another host with the same IP address; other",
                texts(rows.iter().map(|r| r.reason)),
            ),
            required("documents", "copies with this reason", longs(rows.iter().map(|r| r.documents))),
        ]
    }
}
