//! Where the pages of documents are in the crawl files, so that they can be read again.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, bail};
use arrow_array::{Array as _, Date32Array, FixedSizeBinaryArray, Int64Array, StringArray};
use nigh_exchange::Context;

use super::week::IngestedWeek;
use crate::features::Fingerprinter;
use crate::kernels;
use crate::kernels::Polynomials;
use crate::operators::ingest::kept_shingles;
use crate::operators::verify::{FilesAgain, IfMissing, PagePlace, ReadAgain, read_again};
use crate::readers::{Input, is_passing};
use crate::records::{DocId, DocumentKey, KeyHash, Week};
use crate::tables::{RowRange, Scan, field};

/// Where the pages of some own documents are, and how many words they have.
#[derive(Debug, Default)]
pub struct PagePlaces {
    /// The places, in no particular order.
    pub places: Vec<PagePlace>,
    /// The words of each.
    pub words: Vec<u64>,
}

/// Finds the places of documents of a week, which ascend, in `rows` of the table `documents`.
/// `documents` says what they are known by, `inputs` are the crawl files of the week, and `root`
/// gives the root under which the set of a document is gathered. What an earlier week read from a
/// pipe is not in a pipe of this one.
///
/// # Errors
/// If a table cannot be read; or names a crawl file that is not among the inputs, and must not be
/// missing.
pub fn places(
    rows: impl Iterator<Item = RowRange>,
    (week, documents, inputs): (Week, DocumentKey, &[Input]),
    wanted: &[DocId],
    root: impl Fn(DocId) -> DocId,
    if_missing: IfMissing,
) -> Result<PagePlaces> {
    let names: BTreeMap<&str, (u64, bool)> =
        (0..).zip(inputs).map(|(number, input)| (input.name.as_str(), (number, input.is_of_this_run()))).collect();
    let mut found = PagePlaces::default();
    for rows in rows {
        Scan::open(rows, &["doc", "id", "url", "record_url", "checksum", "words", "file", "offset", "crawled"])?.for_each(|batch| {
            let (docs, offsets): (&Int64Array, &Int64Array) = (field(batch, "doc")?, field(batch, "offset")?);
            let texts = |name| field::<StringArray>(batch, name);
            let (ids, urls, files) = (texts("id")?, texts("url")?, texts("file")?);
            let record_urls = texts("record_url")?;
            let weeks: &Date32Array = field(batch, "crawled")?;
            let (checksums, words): (&FixedSizeBinaryArray, &Int64Array) =
                (field(batch, "checksum")?, field(batch, "words")?);
            for row in 0..batch.num_rows() {
                let doc = DocId::from_table(docs.value(row));
                if wanted.binary_search(&doc).is_err() {
                    continue;
                }
                let name = files.value(row);
                let crawled = Week::from_days(weeks.value(row));
                let file = names.get(name).filter(|(_, is_of_this_run)| !is_of_this_run || crawled == week);
                let file = match (file, if_missing) {
                    (Some((file, _)), _) => *file,
                    (None, IfMissing::LeaveOut) => continue,
                    (None, IfMissing::Fail { otherwise }) if names.contains_key(name) || is_passing(name) => bail!(
                        "pages of week {crawled} must be read again, and they came from standard input or a pipe ({name}), which nothing gives \
                         again: {otherwise}; or make the store again from files"
                    ),
                    (None, IfMissing::Fail { otherwise }) => bail!(
                        "{name} is not at hand, and its pages must be read again: put the crawl files of the week back, under the names that they \
                         had; or {otherwise}"
                    ),
                };
                let sum = checksums.value(row).try_into().context("a checksum has 16 bytes")?;
                found.words.push(words.value(row) as u64);
                found.places.push(PagePlace {
                    file,
                    offset: offsets.value(row) as u64,
                    doc,
                    root: root(doc),
                    key: match documents {
                        DocumentKey::Url => KeyHash::of(if record_urls.is_valid(row) { record_urls } else { urls }.value(row)),
                        DocumentKey::Id => KeyHash::of(ids.value(row)),
                        DocumentKey::Row => KeyHash::of_place(name, offsets.value(row) as u64),
                    }
                    .halves(),
                    checksum: KeyHash::from_bytes(sum).halves(),
                });
            }
            Ok(())
        })?;
    }
    Ok(found)
}

/// The files that this worker reads again for the places of all workers.
///
/// # Errors
/// If a worker of this process failed.
pub(crate) fn files_again(
    cx: &mut Context,
    week: &IngestedWeek<'_>,
    polynomials: &Polynomials,
    places: Vec<PagePlace>,
    if_missing: IfMissing,
) -> Result<FilesAgain> {
    let plan = week.plan;
    // A week that is computed again from its own tables has no waves, and no shingles.
    let inputs = plan.inputs_again();
    let wave_of = |input: usize| plan.waves.iter().position(|(first, end)| (*first..*end).contains(&input));
    let kept = |input: usize| {
        let wave = wave_of(input).unwrap_or_default();
        let pieces = if plan.keep.shingles { plan.pieces(&inputs[input]) } else { Vec::new() }.into_iter();
        pieces.map(|piece| kept_shingles(week.unfinished, wave, input, piece)).collect()
    };
    let watch = &cx.watch().clone();
    let again = ReadAgain {
        documents: plan.method.documents,
        inputs: &inputs,
        reading: &plan.reading,
        fingerprinter: Fingerprinter::new(&plan.method, polynomials, 0, kernels::chosen()?)?,
        kept: (0..inputs.len()).map(kept).collect(),
        if_missing,
        watch,
    };
    read_again(cx, again, places)
}
