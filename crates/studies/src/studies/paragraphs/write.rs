//! The tables of the paragraphs job that have rows of each shard.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use arrow_array::{Int64Array, StringArray};

use super::Paragraphs;
use super::genealogy::{Birth, Lifetime, Parent};
use super::steps::{RepeatedParagraph, WeekDuplicates};
use crate::operators::output::ClusterSizes;
use crate::records::DocId;
use crate::structures::Ownership;
use crate::studies::StudyPlan;
use crate::studies::shards::ShardRows;
use crate::tables::studies::genealogy::{BornPageRow, LifetimeRow, ParentRow};
use crate::tables::studies::paragraphs::{BoilerplateRow, NearPageRow, ParagraphPageRow};
use crate::tables::{DocumentRow, Names, Scan, Table, field};

/// Writes the tables of own shards.
pub(super) struct ParagraphsWriter<'a> {
    pub plan: &'a StudyPlan,
    pub job: &'a Paragraphs,
    pub owned: &'a Ownership,
}

impl ParagraphsWriter<'_> {
    /// Writes the pages of own shards. `connected` and `boilerplate` are by own number.
    pub fn write_pages(
        &self,
        found: &WeekDuplicates,
        sizes: &ClusterSizes,
        connected: &[bool],
        boilerplate: &[u32],
    ) -> Result<()> {
        let mut files = ShardRows::new(self.plan, self.owned);
        for (page, doc) in self.owned.docs().enumerate().filter(|(page, _)| found.paragraphs[*page] > 0) {
            let row = ParagraphPageRow {
                doc: doc.to_table(),
                paragraphs: found.paragraphs[page] as i32,
                root: found.roots[page].to_table(),
                size: sizes.members(found.roots[page]) as i64,
                connected: connected[page],
                boilerplate: boilerplate[page] as i32,
            };
            files.push(doc.shard(), row)?;
        }
        files.finish()
    }

    /// Writes the pages in clusters of near-duplicates, of own shards.
    pub fn write_near(&self, roots: &[Vec<DocId>], sizes: &[ClusterSizes]) -> Result<()> {
        let mut files = ShardRows::new(self.plan, self.owned);
        for shard in self.owned.shards() {
            for ((near, roots), sizes) in self.job.near.iter().zip(roots).zip(sizes) {
                let pages = self.owned.of_shard(shard).zip(0..);
                for (root, row) in pages.map(|(page, row)| (roots[page], row)).filter(|(root, _)| *root != DocId::NONE)
                {
                    let size = sizes.members(root) as i64;
                    if size > 1 {
                        let doc = DocId::new(shard, row).to_table();
                        files.push(shard, NearPageRow { near: near.0, doc, root: root.to_table(), size })?;
                    }
                }
            }
        }
        files.finish()
    }

    /// Writes the repeated paragraphs whose examples are own pages; they are sorted by example.
    pub fn write_boilerplate(&self, repeated: &[RepeatedParagraph]) -> Result<()> {
        let mut files = ShardRows::new(self.plan, self.owned);
        for of_shard in repeated.chunk_by(|a, b| a.doc.shard() == b.doc.shard()) {
            let names = self.names(of_shard[0].doc.shard(), of_shard)?;
            for repeated in of_shard {
                let doc = repeated.doc;
                let (url, host) = names.get(&doc).with_context(|| format!("the table `documents` lacks {doc}"))?;
                let row = BoilerplateRow {
                    paragraph: repeated.paragraph as i64,
                    documents: repeated.documents as i64,
                    hosts: repeated.hosts as i64,
                    host: host.clone(),
                    on_host: repeated.on_host as i64,
                    doc: doc.to_table(),
                    url: url.clone(),
                    place: repeated.place as i32,
                };
                files.push(doc.shard(), row)?;
            }
        }
        files.finish()
    }

    /// Writes the births of own shards, and their parents; both are in the order of pages.
    pub fn write_births(&self, births: &[Birth], parents: &[Parent]) -> Result<()> {
        let mut files = ShardRows::new(self.plan, self.owned);
        let share = |count: u32, of: u32| f64::from(count) / f64::from(of.max(1));
        for Birth { doc, paragraphs, inherited, parents } in births.iter().copied() {
            let row = BornPageRow {
                doc: doc.to_table(),
                paragraphs: paragraphs as i32,
                inherited: inherited as i32,
                share: share(inherited, paragraphs),
                parents: parents as i32,
            };
            files.push(doc.shard(), row)?;
        }
        files.finish()?;
        let mut files = ShardRows::new(self.plan, self.owned);
        for parent in parents {
            let birth = births.binary_search_by_key(&parent.doc, |birth| birth.doc).ok();
            let row = ParentRow {
                doc: parent.doc.to_table(),
                rank: parent.rank as i32,
                parent: parent.parent.to_table(),
                same_host: parent.is_same_host == Some(true),
                adds: parent.adds as i32,
                shared: parent.shared as i32,
                share: share(parent.shared, birth.map_or(0, |birth| births[birth].paragraphs)),
                share_of_parent: share(parent.shared, parent.of_parent),
            };
            files.push(parent.doc.shard(), row)?;
        }
        files.finish()
    }

    /// Writes the lifetimes that `make` gives, by own shard; returns what it returns.
    pub fn write_lifetimes<T>(
        &self,
        make: impl FnOnce(&mut dyn FnMut(u32, Lifetime) -> Result<()>) -> Result<T>,
    ) -> Result<T> {
        let mut files = ShardRows::new(self.plan, self.owned);
        let made = make(&mut |shard, lifetime| files.push(shard, LifetimeRow::from(lifetime)))?;
        files.finish()?;
        Ok(made)
    }

    /// The URLs and hosts of the examples of one shard.
    fn names(&self, shard: u32, repeated: &[RepeatedParagraph]) -> Result<BTreeMap<DocId, (String, String)>> {
        let (history, number) = (&self.plan.history, self.plan.history.weeks.len() - 1);
        let (tables, mut names) = (history.tables(number), BTreeMap::new());
        for rows in history.rows(number, &tables, DocumentRow::NAME, shard)? {
            Scan::open(&rows, &[&["doc", "host"][..], &Names::COLUMNS].concat())?.for_each(|batch| {
                let docs: &Int64Array = field(batch, "doc")?;
                let hosts: &StringArray = field(batch, "host")?;
                let of_rows = Names::of(batch)?;
                for (row, doc) in docs.values().iter().enumerate() {
                    let doc = DocId::from_table(*doc);
                    if repeated.binary_search_by_key(&doc, |repeated| repeated.doc).is_ok() {
                        names.insert(doc, (of_rows.name(row).into_owned(), hosts.value(row).to_owned()));
                    }
                }
                Ok(())
            })?;
        }
        Ok(names)
    }
}
