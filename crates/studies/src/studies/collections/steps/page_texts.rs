//! The texts of some own pages: what tables say of collections, clusters and prefixes.

use anyhow::{Result, ensure};
use arrow_array::{Int64Array, StringArray};

use crate::records::DocId;
use crate::state::History;
use crate::structures::{ByKey, CompactSort, Ownership};
use crate::tables::{DocumentRow, Scan, Table, field};

/// The texts of a page.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PageText {
    /// The URL.
    pub url: String,
    /// Its host.
    pub host: String,
    /// The title.
    pub title: String,
}

/// The texts of own pages, by page.
#[derive(Debug, Default)]
pub struct PageTexts(ByKey<u64, PageText>);

impl PageTexts {
    /// Reads those of some own pages of week number `number`.
    ///
    /// # Errors
    /// If a file cannot be read (names it), or the week lacks one of the pages.
    pub fn read(history: &History, number: usize, owned: &Ownership, mut wanted: Vec<DocId>) -> Result<PageTexts> {
        wanted.sort_rows();
        wanted.dedup();
        let tables = history.tables(number);
        let mut texts: ByKey<u64, PageText> = ByKey::default();
        for shard in owned.shards().filter(|shard| wanted.iter().any(|doc| doc.shard() == *shard)) {
            for rows in history.rows(number, &tables, DocumentRow::NAME, shard)? {
                Scan::open(&rows, &["doc", "url", "host", "title"])?.for_each(|batch| {
                    let docs: &Int64Array = field(batch, "doc")?;
                    let [urls, hosts, titles]: [&StringArray; 3] =
                        [field(batch, "url")?, field(batch, "host")?, field(batch, "title")?];
                    for (row, doc) in docs.values().iter().enumerate() {
                        if wanted.binary_search(&DocId::from_table(*doc)).is_ok() {
                            let [url, host, title] = [urls, hosts, titles].map(|texts| texts.value(row).to_owned());
                            texts.insert(*doc as u64, PageText { url, host, title });
                        }
                    }
                    Ok(())
                })?;
            }
        }
        let (found, all, week) = (texts.len(), wanted.len(), history.weeks[number].week);
        ensure!(found == all, "the table `documents` of week {week} lacks {} pages that `clusters` has", all - found);
        Ok(PageTexts(texts))
    }

    /// The texts of a page that was wanted.
    pub fn of(&self, page: DocId) -> &PageText {
        &self.0[&(page.to_table() as u64)]
    }
}
