//! Names of pages for people: the URLs and titles of a few, and the refusal of a job with too many
//! pairs.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use anyhow::{Error, Result, anyhow};
use arrow_array::{Int64Array, StringArray};
use nigh_exchange::Context;

use super::units::Units;
use crate::config::Chunking;
use crate::operators::set_join::TooManyPairs;
use crate::records::DocId;
use crate::state::History;
use crate::structures::Ownership;
use crate::tables::{DocumentRow, Names, Scan, Table, field};

/// The URL and the title of a page.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PageName {
    /// The URL.
    pub url: String,
    /// The title.
    pub title: String,
}

/// The names of some pages of the last week, the same at every worker. All workers ask for the same
/// pages.
///
/// # Errors
/// If a file cannot be read, or a worker of this process failed.
pub fn page_names(
    cx: &mut Context,
    history: &History,
    owned: &Ownership,
    wanted: &[DocId],
) -> Result<BTreeMap<DocId, PageName>> {
    let number = history.weeks.len() - 1;
    let tables = history.tables(number);
    let mut own = Vec::new();
    for shard in owned.shards().filter(|shard| wanted.iter().any(|doc| doc.shard() == *shard)) {
        for rows in history.rows(number, &tables, DocumentRow::NAME, shard)? {
            Scan::open(&rows, &[&["doc", "title"][..], &Names::COLUMNS].concat())?.for_each(|batch| {
                let docs: &Int64Array = field(batch, "doc")?;
                let titles: &StringArray = field(batch, "title")?;
                let names = Names::of(batch)?;
                for (row, doc) in docs.values().iter().enumerate() {
                    let doc = DocId::from_table(*doc);
                    if wanted.contains(&doc) {
                        own.push((doc, names.name(row).into_owned(), titles.value(row).to_owned()));
                    }
                }
                Ok(())
            })?;
        }
    }
    let all = cx.sorted(own)?;
    Ok(all.into_iter().map(|(doc, url, title)| (doc, PageName { url, title })).collect())
}

/// The text for the user if an error says that there are too many pairs: with the pages of the most
/// frequent chunks. All workers call it.
///
/// # Errors
/// If a file cannot be read, or a worker of this process failed.
pub fn refusal(
    cx: &mut Context,
    error: Error,
    chunking: Chunking,
    units: &Units,
    history: &History,
    owned: &Ownership,
) -> Result<Error> {
    let too_many = match error.downcast::<TooManyPairs>() {
        Ok(too_many) => too_many,
        Err(error) => return Ok(error),
    };
    let examples: Vec<DocId> =
        too_many.elements.iter().map(|column| DocId::from_table(column.example as i64)).collect();
    // The first page of a unit names it.
    let own = examples.iter().filter(|unit| units.owned.has(**unit));
    let own = own.map(|unit| (*unit, units.first[units.owned.index(*unit)])).collect();
    let first_of: BTreeMap<DocId, DocId> = cx.sorted(own)?.into_iter().collect();
    let wanted: Vec<DocId> = first_of.values().copied().collect();
    let names = page_names(cx, history, owned, &wanted)?;
    let mut text = format!(
        "too many pairs for the chunks `{}`: up to {}, and `max-pairs` allows {}",
        chunking.name(),
        too_many.pairs,
        too_many.most
    );
    if !examples.is_empty() {
        text += "\nMost of them are of these, each with its first page:";
    }
    for (element, unit) in too_many.elements.iter().zip(&examples) {
        let url = first_of.get(unit).and_then(|doc| names.get(doc)).map_or("", |name| name.url.as_str());
        let _ = write!(text, "\n{:>12} pairs of {} pages or hosts: {url}", element.pairs, element.sets);
    }
    text += "\nRaise `max-pairs` or the threshold, or lower `family`: pairs of families are not listed";
    Ok(anyhow!(text))
}
