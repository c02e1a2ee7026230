//! The pages of the week, short ones included: their hosts, and when they were fetched.

use std::collections::BTreeMap;

use anyhow::Result;
use arrow_array::{Array, Int64Array, StringArray, TimestampMicrosecondArray};

use crate::records::{DocId, checksum};
use crate::state::History;
use crate::structures::Ownership;
use crate::tables::{DocumentRow, Scan, Table, field};
use crate::text::domain;

/// The own pages of a week, by own number: 8 bytes for every known URL of the worker's shards, and
/// 16 for times if they are asked for.
#[derive(Clone, Debug, Default)]
pub struct WeekPages {
    /// A hash of the host, which is never 0: [`without_host`] for a page without one; 0 if the week
    /// has no such page.
    pub hosts: Vec<u64>,
    /// By the hash of a host of own pages: that of its site, which is its registered domain. Pages
    /// that are not known by URL have no host, and no site.
    pub sites: BTreeMap<u64, u64>,
    /// When the page was fetched, in microseconds, if that is asked for and known.
    pub fetched: Vec<Option<i64>>,
}

/// A hash of a host, which is never 0.
pub(super) fn host_hash(host: &str) -> u64 {
    (checksum(host.as_bytes()) as u64).max(1)
}

/// The hash that stands for the host of pages that are not known by URL, and have none.
pub fn without_host() -> u64 {
    host_hash("")
}

impl WeekPages {
    /// Reads the own pages of week number `number`.
    ///
    /// # Errors
    /// If a file cannot be read or contradicts itself: names it.
    pub fn read(history: &History, number: usize, owned: &Ownership, with_times: bool) -> Result<WeekPages> {
        let mut pages = WeekPages { hosts: vec![0; owned.len()], ..WeekPages::default() };
        let mut columns = vec!["doc", "host"];
        if with_times {
            pages.fetched = vec![None; owned.len()];
            columns.push("fetched");
        }
        let tables = history.tables(number);
        for shard in owned.shards() {
            for rows in history.rows(number, &tables, DocumentRow::NAME, shard)? {
                Scan::open(&rows, &columns)?.for_each(|batch| {
                    let (docs, hosts): (&Int64Array, &StringArray) = (field(batch, "doc")?, field(batch, "host")?);
                    for (row, doc) in docs.values().iter().enumerate() {
                        let doc = DocId::from_table(*doc);
                        history.check(number, doc, shard, rows.path())?;
                        let host = host_hash(hosts.value(row));
                        pages.hosts[owned.index(doc)] = host;
                        if hosts.is_valid(row) {
                            pages.sites.entry(host).or_insert_with(|| host_hash(domain(hosts.value(row))));
                        }
                    }
                    if with_times {
                        let times: &TimestampMicrosecondArray = field(batch, "fetched")?;
                        for (row, doc) in docs.values().iter().enumerate().filter(|(row, _)| times.is_valid(*row)) {
                            pages.fetched[owned.index(DocId::from_table(*doc))] = Some(times.value(row));
                        }
                    }
                    Ok(())
                })?;
            }
        }
        Ok(pages)
    }
}
