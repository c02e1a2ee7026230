//! The tables and the summary of the collections job.
//!
//! Small tables are written by worker 0. Rows about a page are among those of its shard: those of a
//! collection in the shard of its first page, those of a similar cluster in that of its entry page.

use std::collections::BTreeMap;

use anyhow::Result;
use nigh_exchange::Context;

use super::judge::JudgedLists;
use super::steps::{ClusteredPages, CollectionPage, PageTexts, Prefixes, collection_prefix};
use super::{
    Collections, CollectionsSummary, LargestCollections, Merge, PUBLISHED_LARGEST, PUBLISHED_SAVINGS, ReplicaLevel,
    SimilarCount,
};
use crate::records::DocId;
use crate::state::replace;
use crate::stats::ratio;
use crate::structures::{CompactSort, Ownership};
use crate::studies::StudyPlan;
use crate::studies::overlap::{REPLICAS, replica_class};
use crate::studies::shards::ShardRows;
use crate::tables::studies::collections::{
    AvoidRow, CollectionClusterRow, CollectionPageRow, CollectionReplicaRow, CollectionRow, CollectionSavingRow,
    CollectionSizeRow, JudgedRow,
};

/// The number of similar clusters that the summary describes.
const LARGEST: usize = 20;

/// What one worker counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
pub(super) struct CollectionsCounts {
    pub documents: u64,
    pub clustered: u64,
    pub trivial: u64,
    pub links: u64,
    pub pairs: u64,
    pub merged: u64,
    pub ambiguous: u64,
    pub clusters: u64,
    pub noise: u64,
    pub collections: u64,
    pub pages: u64,
    pub replicas: [u64; REPLICAS.len()],
}

impl CollectionsCounts {
    /// Counts own pages and trivial clusters.
    pub fn count_pages(&mut self, pages: &ClusteredPages, owned: &Ownership) {
        for (page, doc) in owned.docs().enumerate().filter(|(page, _)| pages.hosts[*page] > 0) {
            self.documents += 1;
            self.clustered += u64::from(pages.roots[page] != DocId::NONE);
            self.trivial += u64::from(pages.roots[page] == doc);
            self.replicas[replica_class(u64::from(pages.sizes[page]).saturating_sub(1))] += 1;
        }
    }

    fn add(&mut self, other: &CollectionsCounts) {
        self.documents += other.documents;
        self.clustered += other.clustered;
        self.trivial += other.trivial;
        self.links += other.links;
        self.pairs += other.pairs;
        self.merged += other.merged;
        self.ambiguous += other.ambiguous;
        self.clusters += other.clusters;
        self.noise += other.noise;
        self.collections += other.collections;
        self.pages += other.pages;
        self.replicas.iter_mut().zip(other.replicas).for_each(|(sum, part)| *sum += part);
    }
}

/// Writes the tables.
pub(super) struct CollectionWriter<'a> {
    pub plan: &'a StudyPlan,
    pub job: &'a Collections,
    /// The number of the job's week.
    pub number: usize,
    pub owned: &'a Ownership,
    /// The commit of the overlap job whose components are taken, if they are.
    pub overlap: Option<u64>,
    pub texts: &'a PageTexts,
    pub prefixes: &'a Prefixes,
}

impl CollectionWriter<'_> {
    /// Writes the tables about own pages.
    pub fn write_members(&self, members: &[CollectionPage], pages: &ClusteredPages) -> Result<()> {
        let mut files = ShardRows::new(self.plan, self.owned);
        for page in members {
            let row = CollectionPageRow {
                doc: page.doc.to_table(),
                cluster: page.cluster.to_table(),
                collection: page.collection.to_table(),
                root: pages.roots[self.owned.index(page.doc)].to_table(),
            };
            files.push(page.doc.shard(), row)?;
        }
        files.finish()?;
        let mut files = ShardRows::new(self.plan, self.owned);
        for page in members.iter().filter(|page| page.doc == page.collection) {
            let text = self.texts.of(page.doc);
            let row = CollectionRow {
                cluster: page.cluster.to_table(),
                collection: page.collection.to_table(),
                host: text.host.clone(),
                prefix: collection_prefix(&text.url, self.prefixes, page.collection).to_owned(),
                pages: page.pages.into(),
                in_links: page.in_links.into(),
                principal: page.is_principal(),
            };
            files.push(page.doc.shard(), row)?;
        }
        files.finish()?;
        let mut files = ShardRows::new(self.plan, self.owned);
        for page in members.iter().filter(|page| page.doc == page.entry) {
            let text = self.texts.of(page.doc);
            let row = CollectionClusterRow {
                cluster: page.cluster.to_table(),
                size: page.size.into(),
                cardinality: page.cardinality.into(),
                pages: page.of_cluster.into(),
                collections: page.collections.into(),
                noise: page.size < self.job.least_size,
                title: text.title.clone(),
                url: text.url.clone(),
            };
            files.push(page.doc.shard(), row)?;
        }
        files.finish()
    }

    /// Writes the small tables and the list, and makes the summary, at worker 0.
    pub fn write(
        &self,
        cx: &mut Context,
        members: &[CollectionPage],
        mut counts: CollectionsCounts,
        judged: &JudgedLists,
    ) -> Result<Option<CollectionsSummary>> {
        let mut sizes: BTreeMap<(u32, u32), u64> = BTreeMap::new();
        let mut largest = Vec::new();
        for page in members.iter().filter(|page| page.doc == page.entry) {
            *sizes.entry((page.cardinality, page.size)).or_default() += 1;
            counts.clusters += 1;
            counts.noise += u64::from(page.size < self.job.least_size);
            counts.collections += u64::from(page.collections);
            counts.pages += u64::from(page.of_cluster);
            if page.size >= self.job.least_size {
                let rank = [page.cardinality, page.size, page.of_cluster].map(|count| u32::MAX - count);
                largest.push((rank, page.doc));
            }
        }
        largest.sort_rows();
        largest.truncate(LARGEST);
        let own = largest.into_iter().map(|(rank, entry)| {
            let text = self.texts.of(entry);
            (rank, entry, text.url.clone(), text.title.clone())
        });
        let largest = cx.sorted(own.collect())?;
        let index = cx.index();
        let own = sizes.into_iter().map(|(of, clusters)| (of, index, clusters)).collect();
        let sizes = cx.sorted(own)?;
        let mut sum = CollectionsCounts::default();
        cx.concat(vec![counts])?.iter().for_each(|own| sum.add(own));
        if index > 0 {
            return Ok(None);
        }
        let mut of_size: BTreeMap<(u32, u32), i64> = BTreeMap::new();
        sizes.iter().for_each(|(of, _, clusters)| *of_size.entry(*of).or_default() += *clusters as i64);
        self.plan.write(of_size.into_iter().map(|((cardinality, size), clusters)| CollectionSizeRow {
            cardinality: cardinality.into(),
            size: size.into(),
            clusters,
        }))?;
        let largest = largest.into_iter().take(LARGEST).map(|(rank, _, url, title)| {
            let [cardinality, size, pages] = rank.map(|count| u64::from(u32::MAX - count));
            LargestCollections { cardinality, size, pages, title, url }
        });
        let summary = self.summary(&sum, largest.collect(), judged);
        self.write_lists(&summary, judged)?;
        Ok(Some(summary))
    }

    /// Writes the replicas, the lists and the savings.
    fn write_lists(&self, summary: &CollectionsSummary, judged: &JudgedLists) -> Result<()> {
        let replicas = summary.replicas.iter().zip(REPLICAS).map(|(row, similar)| CollectionReplicaRow {
            similar,
            documents: row.documents as i64,
            share: row.share,
        });
        self.plan.write(replicas)?;
        let avoid = judged.list.iter().map(|listed| AvoidRow {
            prefix: listed.of.prefix.clone(),
            host: listed.of.host.clone(),
            principal_url: listed.of.principal.clone(),
            pages: listed.of.pages as i64,
            copies: listed.of.copies as i64,
            bytes: listed.of.bytes as i64,
            named: listed.of.named as i64,
            since: listed.since,
            week: listed.week,
        });
        self.plan.write(avoid)?;
        let list: String = judged.list.iter().map(|listed| format!("{}\n", listed.of.prefix)).collect();
        replace(&self.plan.results().file("avoid.txt"), list.as_bytes())?;
        let verdicts = judged.former.prefixes.iter().zip(&judged.verdicts).enumerate();
        let rows = verdicts.map(|(number, (listed, verdict))| {
            let [pages, lost] = judged.judgement.of_prefixes[number].map(|count| count as i64);
            JudgedRow {
                prefix: listed.of.prefix.clone(),
                host: listed.of.host.clone(),
                principal_url: listed.of.principal.clone(),
                former: [listed.of.pages, listed.of.copies, listed.of.bytes, listed.of.named]
                    .map(|number| number as i64),
                since: listed.since,
                week: listed.week,
                pages,
                lost,
                principal_pages: judged.judgement.of_principals[number] as i64,
                verdict: verdict.name(),
            }
        });
        self.plan.write(rows)?;
        self.plan.write(summary.savings.iter().cloned())
    }

    fn summary(
        &self,
        counts: &CollectionsCounts,
        largest: Vec<LargestCollections>,
        judged: &JudgedLists,
    ) -> CollectionsSummary {
        let (history, job) = (&self.plan.history, self.job);
        let week = history.weeks[self.number].week;
        let savings = judged.savings.iter().map(|(listed, prefixes, week, of)| CollectionSavingRow {
            listed: *listed,
            week: *week,
            prefixes: *prefixes,
            pages: of.pages,
            skipped: of.skipped,
            bytes: of.skipped_bytes,
            similar_before: ratio(of.similar_before, of.pages).unwrap_or_default(),
            similar_after: ratio(of.similar_after, of.pages - of.skipped).unwrap_or_default(),
            duplicates_before: of.duplicates_before,
            duplicates_after: of.duplicates_after,
            lost: of.lost,
        });
        let replicas = counts
            .replicas
            .iter()
            .map(|documents| SimilarCount { documents: *documents, share: ratio(*documents, counts.documents) });
        CollectionsSummary {
            store: history.store.clone(),
            method: history.method.clone(),
            first: week,
            last: week,
            week_commit: history.weeks[self.number].made,
            overlap_commit: self.overlap,
            level: job.level,
            chunking: (job.level == ReplicaLevel::Overlap).then_some(job.chunking),
            merge: job.merge,
            share: (job.merge == Merge::Share).then_some(job.share.0),
            least_size: job.least_size,
            documents: counts.documents,
            clustered: counts.clustered,
            trivial: counts.trivial,
            links: counts.links,
            pairs: counts.pairs,
            merged: counts.merged,
            clusters: counts.clusters,
            noise: counts.noise,
            collections: counts.collections,
            pages: counts.pages,
            ambiguous: counts.ambiguous,
            replicas: replicas.collect(),
            largest,
            published_largest: PUBLISHED_LARGEST.to_vec(),
            avoided: judged.list.len() as u64,
            dropped: judged.verdicts.iter().filter(|verdict| !verdict.stays()).count() as u64,
            former: judged.former.week,
            savings: savings.collect(),
            published_savings: PUBLISHED_SAVINGS,
        }
    }
}
