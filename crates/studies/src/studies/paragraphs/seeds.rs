//! Seeds: from the URLs of a job to the pages of its week.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, ensure};
use arrow_array::{Int64Array, StringArray};
use nigh_exchange::Context;

use crate::records::{DocId, KeyHash};
use crate::state::History;
use crate::structures::Ownership;
use crate::tables::{DocumentRow, Scan, Table, field};
use crate::text::canonical;

/// The pages of the last week with these URLs, in the order of the URLs, each once; the same at
/// every worker.
///
/// # Errors
/// If a text is not a URL, or the week has no such page: names it. If a file cannot be read, or a
/// worker of this process failed.
pub(super) fn seed_pages(
    cx: &mut Context,
    history: &History,
    owned: &Ownership,
    seeds: &[String],
) -> Result<Vec<DocId>> {
    let shards = history.last().rows.len() as u32;
    let mut wanted: BTreeMap<String, usize> = BTreeMap::new();
    for (place, seed) in seeds.iter().enumerate() {
        let url = canonical(seed).with_context(|| format!("seeds: {seed} is not the URL of a page"))?;
        wanted.entry(url.as_str().to_owned()).or_insert(place);
    }
    let number = history.weeks.len() - 1;
    let tables = history.tables(number);
    let mut own = Vec::new();
    for shard in owned.shards().filter(|shard| wanted.keys().any(|url| KeyHash::of(url).shard(shards) == *shard)) {
        for rows in history.rows(number, &tables, DocumentRow::NAME, shard)? {
            Scan::open(&rows, &["doc", "url"])?.for_each(|batch| {
                let (docs, urls): (&Int64Array, &StringArray) = (field(batch, "doc")?, field(batch, "url")?);
                for (row, doc) in docs.values().iter().enumerate() {
                    own.extend(wanted.get(urls.value(row)).map(|place| (*place, DocId::from_table(*doc))));
                }
                Ok(())
            })?;
        }
    }
    let found: BTreeMap<usize, DocId> = cx.sorted(own)?.into_iter().collect();
    for (url, place) in &wanted {
        let week = history.last().week;
        ensure!(found.contains_key(place), "seeds: week {week} has no page with the URL {url}");
    }
    Ok(found.into_values().collect())
}
