//! Reads the links of a week whose targets are known, at the workers that own the pages that link.
//! A link to a URL that redirects is one to the page that it leads to. A link of a page that stayed
//! may lead to a page that came later.

use std::collections::VecDeque;
use std::sync::Arc;

use anyhow::{Result, ensure};
use arrow_array::{Array, Int64Array, StringArray};

use super::url_targets::UrlTargets;
use crate::records::DocId;
use crate::state::History;
use crate::structures::Ownership;
use crate::tables::{LinkRow, RowRange, Scan, Table, field};

/// A link of an own page to a page that some week has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OwnLink {
    /// The number of the page.
    pub page: u32,
    /// The page.
    pub doc: DocId,
    /// The page that it links to.
    pub target: DocId,
}

/// The links of own pages, each once.
pub trait LinkSource {
    /// The number of links, at most.
    fn count(&self) -> u64;

    /// Reads some more links, about `count` with those that have no known target. Returns none only
    /// after the last one.
    ///
    /// # Errors
    /// If they cannot be read.
    fn read(&mut self, count: usize) -> Result<Vec<OwnLink>>;
}

/// The links of own pages of a week whose targets are known, from its table.
pub struct LinkReader<'a> {
    history: &'a History,
    number: usize,
    owned: &'a Ownership,
    targets: Arc<UrlTargets>,
    files: VecDeque<(u32, RowRange)>,
    /// The file that is being read, and its shard.
    scan: Option<(u32, RowRange, Scan)>,
    /// Links of own pages, with known targets or without.
    links: u64,
}

impl<'a> LinkReader<'a> {
    /// Opens the table of week number `number`. `targets` are those that it does not have.
    ///
    /// # Errors
    /// If the week lacks some of its files.
    pub fn open(
        history: &'a History,
        number: usize,
        owned: &'a Ownership,
        targets: &Arc<UrlTargets>,
    ) -> Result<LinkReader<'a>> {
        let tables = history.tables(number);
        let mut files = VecDeque::new();
        for shard in owned.shards() {
            files.extend(history.rows(number, &tables, LinkRow::NAME, shard)?.into_iter().map(|rows| (shard, rows)));
        }
        let links = owned.shards().map(|shard| history.links(number, shard)).sum();
        Ok(LinkReader { history, number, owned, targets: targets.clone(), files, scan: None, links })
    }
}

impl LinkSource for LinkReader<'_> {
    fn count(&self) -> u64 {
        self.links
    }

    fn read(&mut self, count: usize) -> Result<Vec<OwnLink>> {
        let (mut links, mut read) = (Vec::new(), 0);
        while read < count || links.is_empty() {
            let Some((shard, rows, scan)) = &mut self.scan else {
                let Some((shard, rows)) = self.files.pop_front() else { break };
                // The URLs of targets are many times as long as their ids.
                let columns: &[&str] = match self.targets.is_empty() {
                    true => &["doc", "target_doc"],
                    false => &["doc", "target_doc", "target_url"],
                };
                let scan = Scan::open(&rows, columns)?;
                self.scan = Some((shard, rows, scan));
                continue;
            };
            let Some(batch) = scan.batch()? else {
                self.scan = None;
                continue;
            };
            read += batch.num_rows();
            let (docs, targets): (&Int64Array, &Int64Array) = (field(&batch, "doc")?, field(&batch, "target_doc")?);
            let urls: Option<&StringArray> =
                if self.targets.is_empty() { None } else { Some(field(&batch, "target_url")?) };
            let mut last = DocId::NONE;
            for row in 0..batch.num_rows() {
                let redirected = urls.and_then(|urls| self.targets.redirected(urls.value(row)));
                let is_redirected = redirected.is_some();
                let known = || match targets.is_valid(row) {
                    true => Some(DocId::from_table(targets.value(row))),
                    false => urls.and_then(|urls| self.targets.late(urls.value(row))),
                };
                let (doc, Some(target)) = (DocId::from_table(docs.value(row)), redirected.or_else(known)) else {
                    continue;
                };
                // A page whose link leads back to itself.
                if is_redirected && doc == target {
                    continue;
                }
                if doc != last {
                    self.history.check(self.number, doc, *shard, rows.path())?;
                    last = doc;
                }
                ensure!(self.owned.knows(target), "{} has a link to the unknown page {target}", rows.path().display());
                links.push(OwnLink { page: self.owned.index(doc) as u32, doc, target });
            }
        }
        Ok(links)
    }
}
