//! The columns of the tables of the overlap job: pages or hosts that share chunks of text
//! (Shivakumar and Garcia-Molina 1998).
//!
//! They lie in `overlap/TABLE` of the store. A `chunking` is `document`, `four-lines` or
//! `two-lines`. `doc` joins these tables with those of the job's week.

use nigh_derive::Table;

use crate::tables::store_table::{ResultTables, StoreTable};

/// The tables, in the order of their names.
pub(super) const TABLES: ResultTables = ResultTables {
    folder: "overlap",
    name_pages: true,
    read_chunks: true,
    tables: &[
        StoreTable::of::<ComponentRow>(),
        StoreTable::of::<FamilyRow>(),
        StoreTable::of::<FamilyChunkRow>(),
        StoreTable::of::<HostOverlapRow>(),
        StoreTable::of::<MostRow>(),
        StoreTable::of::<OverlapRow>(),
        StoreTable::of::<ReasonRow>(),
        StoreTable::of::<ReplicaRow>(),
        StoreTable::of::<SavingRow>(),
    ],
};

/// Pairs of pages that share enough chunks; each pair once. Of pages with one text only the first
/// is here. Pairs of one family are in `families`.
#[derive(Clone, Debug, PartialEq, Table)]
#[table(name = "overlap")]
pub struct OverlapRow {
    /// Document, four-lines or two-lines.
    pub chunking: &'static str,
    /// Document id.
    ///
    /// The smaller id of the pair.
    #[column(ascending)]
    pub doc_a: i64,
    /// Document id, larger than doc_a.
    pub doc_b: i64,
    /// Distinct chunks that both pages have.
    pub shared: i32,
    /// Shared over the distinct chunks of doc_a; 1: all of doc_a is in doc_b.
    pub containment_a: f64,
    /// Shared over the distinct chunks of doc_b.
    pub containment_b: f64,
}

/// Pairs of hosts whose pages share enough chunks, if the job says `unit = "host"`; each pair once.
#[derive(Clone, Debug, PartialEq, Table)]
#[table(name = "host-overlap")]
pub struct HostOverlapRow {
    /// Document, four-lines or two-lines.
    pub chunking: &'static str,
    /// Host.
    pub host_a: String,
    /// Host, after host_a in the alphabet.
    pub host_b: String,
    /// Distinct chunks that both hosts have.
    pub shared: i32,
    /// Shared over the distinct chunks of host_a.
    pub containment_a: f64,
    /// Shared over the distinct chunks of host_b.
    pub containment_b: f64,
}

/// Members of families: any two of one family share at least weight + weight - of chunks. For
/// `document` a family is the pages with one text.
#[derive(Clone, Debug, PartialEq, Table)]
#[table(name = "families")]
pub struct FamilyRow {
    /// Document, four-lines or two-lines.
    pub chunking: &'static str,
    /// The smallest doc of the family.
    pub family: i64,
    /// Document id of the member; for hosts a number that only these tables have.
    #[column(ascending)]
    pub doc: i64,
    /// The member, if hosts are compared.
    pub host: Option<String>,
    /// Chunks of the family's collection that the member has.
    pub weight: i64,
    /// Chunks of the collection.
    pub of: i64,
}

/// The collection of each family: the chunks of which its members have most. Families of `document`
/// have none. The next week's pages join families by them.
#[derive(Clone, Debug, PartialEq, Table)]
#[table(name = "family-chunks")]
pub struct FamilyChunkRow {
    /// Four-lines or two-lines.
    pub chunking: &'static str,
    /// As in `families`.
    pub family: i64,
    /// 64-bit hash of a chunk.
    #[column(unique)]
    pub chunk: i64,
}

/// Members of components: units that overlap, directly or over others, copies included. Units that
/// overlap with no other are not here.
#[derive(Clone, Debug, PartialEq, Table)]
#[table(name = "components")]
pub struct ComponentRow {
    /// Document, four-lines or two-lines.
    pub chunking: &'static str,
    /// The smallest doc of the component.
    pub component: i64,
    /// Document id of the member; for hosts the number that `families` has, too.
    #[column(ascending)]
    pub doc: i64,
    /// The member, if hosts are compared.
    pub host: Option<String>,
}

/// Pages by the number of other pages that overlap with them, copies included (Fig. 1). With
/// `unit = "host"` these are hosts.
#[derive(Clone, Debug, PartialEq, Table)]
#[table(name = "replicas")]
pub struct ReplicaRow {
    /// Document, four-lines or two-lines.
    pub chunking: &'static str,
    /// Number of other pages: 0, 1, 2, 3-9, 10-99, 100-999 or 1000 and more.
    pub replicas: &'static str,
    /// Pages that so many pages overlap with.
    pub documents: i64,
    /// Documents over all pages with chunks; null without pages.
    pub share: Option<f64>,
    /// Pages that are in a component with so many others.
    pub by_cluster: i64,
    /// The study's share, where it has one.
    pub published: Option<f64>,
}

/// What a crawl could leave out, if it kept one page of each component of pages that overlap: one
/// row for each chunking.
#[derive(Clone, Debug, PartialEq, Table)]
#[table(name = "savings")]
pub struct SavingRow {
    /// Document, four-lines or two-lines.
    pub chunking: &'static str,
    /// Pages with chunks; hosts if hosts are compared.
    pub documents: i64,
    /// Pages that are not the first of their component.
    pub copies: i64,
    /// Copies over documents; null without pages.
    pub share: Option<f64>,
    /// Bytes of the copies, markup included.
    pub bytes: i64,
    /// The study's share.
    pub published: Option<f64>,
}

/// The 20 largest components of pages, or of hosts, that overlap: for each chunking.
#[derive(Clone, Debug, PartialEq, Table)]
#[table(name = "most")]
pub struct MostRow {
    /// Document, four-lines or two-lines.
    pub chunking: &'static str,
    /// 1 for the component with the most members.
    pub rank: i32,
    /// Pages of the component.
    pub documents: i64,
    /// Distinct hosts of these pages.
    pub hosts: i64,
    /// Machines: hosts with an IP address in common are on one, directly or over other hosts; hosts
    /// without an address are not counted.
    pub machines: i64,
    /// Title of the first page.
    pub title: String,
    /// URL of the first page.
    pub url: String,
    /// Document id of the first page.
    pub doc: i64,
}

/// The copies of `savings` by where they are, compared with the first page of their component.
#[derive(Clone, Debug, PartialEq, Table)]
#[table(name = "reasons")]
pub struct ReasonRow {
    /// Document, four-lines or two-lines.
    pub chunking: &'static str,
    /// Same-host; same-machine: another host with the same IP address; other.
    pub reason: &'static str,
    /// Copies with this reason.
    pub documents: i64,
}
