//! Savings: what a crawl would have been without the pages below some prefixes (Cho 2000, section
//! 5).
//!
//! A page is *lost* if it is below a prefix, and so are all pages of its cluster: the crawl would
//! have nothing like it.

use std::rc::Rc;

use anyhow::Result;
use arrow_array::{Int64Array, StringArray};
use nigh_exchange::{Context, LocalAnswers, all_to_all, lookup};
use serde::{Deserialize, Serialize};

use super::clustered::{ClusteredPages, TrivialClusters, clustered_pages};
use super::directories::{directories, directory_hash};
use crate::records::DocId;
use crate::state::History;
use crate::structures::{ByKey, Ownership};
use crate::tables::{DocumentRow, Scan, Table, field};

/// A crawl with and without the pages below the prefixes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Savings {
    /// The pages of the crawl.
    pub pages: u64,
    /// Those below a prefix.
    pub skipped: u64,
    /// Their bytes.
    pub skipped_bytes: u64,
    /// Pages with replicas: in clusters of several pages.
    pub similar_before: u64,
    /// Pages with replicas, of those that are left.
    pub similar_after: u64,
    /// Pages, without one of each cluster.
    pub duplicates_before: u64,
    /// The same of the pages that are left.
    pub duplicates_after: u64,
    /// Skipped pages of clusters of which no page is left.
    pub lost: u64,
}

/// The savings of a week, and those of each prefix.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Judgement {
    /// All prefixes together.
    pub all: Savings,
    /// By prefix: the pages below it, and those that would be lost.
    pub of_prefixes: Vec<[u64; 2]>,
    /// By prefix of a principal copy: the pages below it.
    pub of_principals: Vec<u64>,
}

/// Judges prefixes by week number `number`; of nested ones the outermost counts. The pages below
/// `principals` are only counted. All workers give the same prefixes, and get the same judgement.
///
/// # Errors
/// If a file cannot be read or contradicts itself (names it), or a worker of this process failed.
pub fn judge(
    cx: &mut Context,
    history: &History,
    number: usize,
    owned: &Ownership,
    clusters: &TrivialClusters,
    [prefixes, principals]: [&[&str]; 2],
) -> Result<Judgement> {
    let pages = clustered_pages(cx, history, number, owned, clusters)?;
    let mut own = Judgement {
        of_prefixes: vec![[0; 2]; prefixes.len()],
        of_principals: vec![0; principals.len()],
        ..Judgement::default()
    };
    let skipped = skipped(history, number, owned, [prefixes, principals], &mut own)?;
    // Of each own root: the skipped pages of its cluster.
    let mut dealer = cx.dealer();
    let root = |page: u32| pages.roots[page as usize];
    for (page, _) in skipped.iter().filter(|(page, _)| root(*page) != DocId::NONE) {
        dealer.deal(owned.owner(root(*page)) as u64, owned.index(root(*page)) as u32);
    }
    let mut of_root = vec![0u32; owned.len()];
    for block in all_to_all(cx, dealer)? {
        block.records().iter().for_each(|root| of_root[*root as usize] += 1);
    }
    own.all.count(owned, &pages, &of_root);
    let (in_clusters, alone): (Vec<_>, Vec<_>) = skipped.iter().partition(|(page, _)| root(*page) != DocId::NONE);
    let mut lose = |prefix: u32| own.of_prefixes[prefix as usize][1] += 1;
    alone.iter().for_each(|(_, prefix)| lose(*prefix));
    own.all.lost += alone.len() as u64;
    let is_lost: Vec<bool> = of_root.iter().zip(&pages.sizes).map(|(skipped, size)| skipped == size).collect();
    let local = LocalAnswers::own(cx, move |root: usize| [is_lost[root].into()]);
    let roots: Rc<Vec<DocId>> = Rc::new(in_clusters.iter().map(|(page, _)| root(*page)).collect());
    let questions = || {
        let roots = roots.clone();
        (0..roots.len()).map(move |at| roots[at])
    };
    lookup(cx, owned, questions, &local, |at, [is_lost]| {
        if is_lost > 0 {
            lose(in_clusters[at].1);
        }
    })?;
    own.gather(cx)
}

/// The own pages below prefixes, by number, each with the number of the prefix. Counts pages and
/// bytes.
fn skipped(
    history: &History,
    number: usize,
    owned: &Ownership,
    [prefixes, principals]: [&[&str]; 2],
    own: &mut Judgement,
) -> Result<Vec<(u32, u32)>> {
    let by_hash =
        |texts: &[&str]| -> ByKey<u64, u32> { texts.iter().map(|text| directory_hash(text)).zip(0..).collect() };
    let [prefixes, principals] = [prefixes, principals].map(by_hash);
    let mut skipped = Vec::new();
    let tables = history.tables(number);
    for shard in owned.shards() {
        for rows in history.rows(number, &tables, DocumentRow::NAME, shard)? {
            Scan::open(&rows, &["doc", "url", "bytes"])?.for_each(|batch| {
                let (docs, urls): (&Int64Array, &StringArray) = (field(batch, "doc")?, field(batch, "url")?);
                let bytes: &Int64Array = field(batch, "bytes")?;
                own.all.pages += batch.num_rows() as u64;
                for row in 0..batch.num_rows() {
                    let of =
                        |map: &ByKey<u64, u32>| directories(urls.value(row)).find_map(|of| map.get(&of.hash).copied());
                    if let Some(prefix) = of(&prefixes) {
                        own.all.skipped += 1;
                        own.all.skipped_bytes += bytes.value(row) as u64;
                        own.of_prefixes[prefix as usize][0] += 1;
                        skipped.push((owned.index(DocId::from_table(docs.value(row))) as u32, prefix));
                    }
                    // A page may be below several of these.
                    if !principals.is_empty() {
                        let of_page = directories(urls.value(row)).filter_map(|of| principals.get(&of.hash));
                        of_page.for_each(|principal| own.of_principals[*principal as usize] += 1);
                    }
                }
                Ok(())
            })?;
        }
    }
    Ok(skipped)
}

impl Savings {
    /// Counts clusters whose roots are own pages.
    fn count(&mut self, owned: &Ownership, pages: &ClusteredPages, of_root: &[u32]) {
        for (page, _) in owned.docs().enumerate().filter(|(page, doc)| pages.roots[*page] == *doc) {
            let (size, skipped) = (u64::from(pages.sizes[page]), u64::from(of_root[page]));
            let left = size - skipped;
            self.similar_before += size;
            self.duplicates_before += size - 1;
            self.similar_after += if left > 1 { left } else { 0 };
            self.duplicates_after += left.saturating_sub(1);
            self.lost += if left == 0 { size } else { 0 };
        }
    }

    fn add(&mut self, other: &Savings) {
        self.pages += other.pages;
        self.skipped += other.skipped;
        self.skipped_bytes += other.skipped_bytes;
        self.similar_before += other.similar_before;
        self.similar_after += other.similar_after;
        self.duplicates_before += other.duplicates_before;
        self.duplicates_after += other.duplicates_after;
        self.lost += other.lost;
    }
}

impl Judgement {
    /// Nothing known of some prefixes.
    pub fn unknown(count: usize) -> Judgement {
        Judgement { all: Savings::default(), of_prefixes: vec![[0; 2]; count], of_principals: vec![0; count] }
    }

    /// The sum of those of all workers.
    fn gather(self, cx: &mut Context) -> Result<Judgement> {
        let mut sum = Judgement {
            all: Savings::default(),
            of_prefixes: vec![[0; 2]; self.of_prefixes.len()],
            of_principals: vec![0; self.of_principals.len()],
        };
        cx.concat(vec![self.all])?.iter().for_each(|of_worker| sum.all.add(of_worker));
        let own = self.of_prefixes.iter().enumerate().filter(|(_, counts)| counts[0] > 0);
        let own = own.map(|(prefix, counts)| (prefix, *counts)).collect();
        for (prefix, [pages, lost]) in cx.concat(own)? {
            sum.of_prefixes[prefix][0] += pages;
            sum.of_prefixes[prefix][1] += lost;
        }
        let own = self.of_principals.iter().enumerate().filter(|(_, pages)| **pages > 0);
        let own = own.map(|(other, pages)| (other, *pages)).collect();
        for (other, pages) in cx.concat(own)? {
            sum.of_principals[other] += pages;
        }
        Ok(sum)
    }
}
