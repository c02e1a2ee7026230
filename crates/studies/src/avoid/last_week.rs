//! The pages and links of a week, read as often as there are questions about them.

use anyhow::{Result, ensure};
use arrow_array::{Array as _, Int64Array, StringArray};

use crate::operators::scan::LateTargets;
use crate::records::DocId;
use crate::state::{History, WeekTables};
use crate::structures::Ownership;
use crate::tables::{ClusterRow, LinkRow, MissingRow, Scan, Table as _, field};

/// The columns of pages.
const PAGE_COLUMNS: [&str; 7] = ["doc", "url", "host", "similar_root", "similar_size", "exact_root", "exact_size"];

/// A page.
pub(super) struct WeekPage<'a> {
    /// Its number, below [`LastWeek::urls`].
    pub number: usize,
    pub doc: DocId,
    pub url: &'a str,
    pub host: &'a str,
    /// The unit that it belongs to: the number of the root of its cluster of very similar pages. A
    /// page without such a cluster is a unit of its own.
    pub unit: u64,
    /// The pages of the unit.
    pub size: u64,
    /// The number of the root of its cluster of exact copies, if there are others.
    pub exact: Option<u64>,
}

/// A link of a page.
pub(super) struct UrlLink<'a> {
    /// The number of the page that links.
    pub page: usize,
    /// The canonical URL that it links to.
    pub url: &'a str,
    /// The number of that page, if this week or an earlier one has it.
    pub target: Option<usize>,
}

/// The last week of a history.
pub(super) struct LastWeek<'a> {
    pub history: &'a History,
    pub tables: WeekTables,
    owned: Ownership,
    /// The documents of URLs that came after a page that links to them.
    late: LateTargets,
}

impl<'a> LastWeek<'a> {
    /// Opens the last week.
    ///
    /// # Errors
    /// If a file cannot be read: names it.
    pub fn open(history: &'a History) -> Result<LastWeek<'a>> {
        let number = history.weeks.len() - 1;
        let owned = Ownership::new(0, 1, history.rows_by_shard());
        let late = LateTargets::of_all(history, number, &owned)?;
        Ok(LastWeek { history, tables: history.tables(number), owned, late })
    }

    fn number(&self) -> usize {
        self.history.weeks.len() - 1
    }

    /// The URLs that this week or an earlier one has seen.
    pub fn urls(&self) -> usize {
        self.owned.len()
    }

    /// The number of a document, if it is known.
    pub fn number_of(&self, doc: DocId) -> Option<usize> {
        self.owned.knows(doc).then(|| self.owned.index(doc))
    }

    /// Calls `each` with all pages.
    ///
    /// # Errors
    /// If a file cannot be read or contradicts itself: names it.
    pub fn each(&self, mut each: impl FnMut(&WeekPage<'_>) -> Result<()>) -> Result<()> {
        for shard in self.owned.shards() {
            for rows in self.history.rows(self.number(), &self.tables, ClusterRow::NAME, shard)? {
                Scan::open(&rows, &PAGE_COLUMNS)?.for_each(|batch| {
                    let [urls, hosts]: [&StringArray; 2] = [field(batch, "url")?, field(batch, "host")?];
                    let docs: &Int64Array = field(batch, "doc")?;
                    let [roots, sizes]: [&Int64Array; 2] =
                        [field(batch, "similar_root")?, field(batch, "similar_size")?];
                    let [exact, copies]: [&Int64Array; 2] = [field(batch, "exact_root")?, field(batch, "exact_size")?];
                    for row in 0..batch.num_rows() {
                        let [doc, root, exact] = [docs, roots, exact].map(|ids| DocId::from_table(ids.value(row)));
                        self.history.check(self.number(), doc, shard, rows.path())?;
                        for root in [root, exact] {
                            ensure!(self.owned.knows(root), "{} has the unknown root {root}", rows.path().display());
                        }
                        let number = self.owned.index(doc);
                        let size = sizes.value(row) as u64;
                        each(&WeekPage {
                            number,
                            doc,
                            url: urls.value(row),
                            host: hosts.value(row),
                            unit: if size > 1 { self.owned.index(root) } else { number } as u64,
                            size: size.max(1),
                            exact: (copies.value(row) > 1).then(|| self.owned.index(exact) as u64),
                        })?;
                    }
                    Ok(())
                })?;
            }
        }
        Ok(())
    }

    /// Calls `each` with all links.
    ///
    /// # Errors
    /// As [`LastWeek::each`].
    pub fn each_link(&self, mut each: impl FnMut(&UrlLink<'_>)) -> Result<()> {
        for shard in self.owned.shards() {
            for rows in self.history.rows(self.number(), &self.tables, LinkRow::NAME, shard)? {
                Scan::open(&rows, &["doc", "target_url", "target_doc"])?.for_each(|batch| {
                    let (docs, targets): (&Int64Array, &Int64Array) =
                        (field(batch, "doc")?, field(batch, "target_doc")?);
                    let urls: &StringArray = field(batch, "target_url")?;
                    for row in 0..batch.num_rows() {
                        let doc = DocId::from_table(docs.value(row));
                        self.history.check(self.number(), doc, shard, rows.path())?;
                        let target = match targets.is_valid(row) {
                            true => Some(DocId::from_table(targets.value(row))),
                            false => self.late.of(urls.value(row)),
                        };
                        each(&UrlLink {
                            page: self.owned.index(doc),
                            url: urls.value(row),
                            target: target.and_then(|target| self.number_of(target)),
                        });
                    }
                    Ok(())
                })?;
            }
        }
        Ok(())
    }

    /// Calls `each` with the URLs of earlier weeks that this one has no page of, and that did not
    /// fail: the crawl did not ask for them.
    ///
    /// # Errors
    /// As [`LastWeek::each`].
    pub fn each_not_seen(&self, mut each: impl FnMut(&str)) -> Result<()> {
        for rows in self.tables.all(MissingRow::NAME) {
            Scan::open(rows, &["url", "reason"])?.for_each(|batch| {
                let [urls, reasons]: [&StringArray; 2] = [field(batch, "url")?, field(batch, "reason")?];
                let rows = (0..batch.num_rows()).filter(|row| urls.is_valid(*row) && reasons.value(*row) == NOT_SEEN);
                rows.for_each(|row| each(urls.value(row)));
                Ok(())
            })?;
        }
        Ok(())
    }
}

/// The reason in `missing` of a URL that the crawl has no record of.
const NOT_SEEN: &str = "not seen";
