//! Which records an export has, and what was written of an input.

use std::fmt;

use anyhow::{Result, bail};
use parquet::file::metadata::{ParquetMetaData, RowGroupMetaData};
use serde::{Deserialize, Serialize};

use crate::export::texts::Gone;
use crate::export::verdicts::Verdict;
use crate::readers::{Input, Item, Skip, Skipped};

/// A field that records get.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AddedField {
    /// The cluster: the smallest document id of it.
    Cluster,
    /// The records of the cluster.
    Size,
    /// The rank in the cluster, from 1.
    Rank,
    /// Whether the record stays.
    Stays,
    /// The mean of the numbers that the records of the cluster have in a column.
    Score,
    /// The items of a reference that the record matches.
    Matches,
    /// The number of the item that it matches best.
    Item,
    /// The share of the n-grams of that item that it has.
    Containment,
}

/// The value of such a field.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::export) enum AddedValue {
    Long(i64),
    Boolean(bool),
    Double(Option<f64>),
    MaybeLong(Option<i64>),
}

impl AddedField {
    /// Those of annotated records.
    pub const ANNOTATED: [AddedField; 4] = [AddedField::Cluster, AddedField::Size, AddedField::Rank, AddedField::Stays];

    /// Those that say which items of a reference a record matches.
    pub const OF_MATCHES: [AddedField; 3] = [AddedField::Matches, AddedField::Item, AddedField::Containment];

    /// The name of the field.
    pub fn name(self) -> &'static str {
        match self {
            AddedField::Cluster => "nigh_cluster",
            AddedField::Size => "nigh_size",
            AddedField::Rank => "nigh_rank",
            AddedField::Stays => "nigh_stays",
            AddedField::Score => "nigh_score",
            AddedField::Matches => "nigh_matches",
            AddedField::Item => "nigh_item",
            AddedField::Containment => "nigh_containment",
        }
    }

    pub(in crate::export) fn value(self, verdict: &Verdict) -> AddedValue {
        match self {
            AddedField::Cluster => AddedValue::Long(verdict.cluster),
            AddedField::Size => AddedValue::Long(verdict.size as i64),
            AddedField::Rank => AddedValue::Long(verdict.rank as i64),
            AddedField::Stays => AddedValue::Boolean(verdict.stays),
            AddedField::Score => AddedValue::Double(verdict.score),
            AddedField::Matches => AddedValue::Long(verdict.matched.map_or(0, |matched| matched.items as i64)),
            AddedField::Item => AddedValue::MaybeLong(verdict.matched.map(|matched| matched.best)),
            AddedField::Containment => AddedValue::Double(verdict.matched.and_then(|matched| matched.containment)),
        }
    }
}

/// The value as JSON; nothing for a null.
impl fmt::Display for AddedValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AddedValue::Long(value) => write!(f, "{value}"),
            AddedValue::Boolean(value) => write!(f, "{value}"),
            AddedValue::Double(Some(value)) => write!(f, "{value:?}"),
            AddedValue::MaybeLong(Some(value)) => write!(f, "{value}"),
            AddedValue::Double(None) | AddedValue::MaybeLong(None) => Ok(()),
        }
    }
}

/// Which records are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum What {
    /// Those that stay: one of each cluster, and those without a duplicate.
    #[default]
    Kept,
    /// The others.
    Removed,
    /// All, with further fields: the cluster (the smallest document id of it), its size, the rank
    /// in it, and whether the record stays.
    Annotated,
}

impl What {
    /// Whether a record is written.
    pub(in crate::export) fn wants(self, verdict: &Verdict) -> bool {
        match self {
            What::Kept => verdict.stays,
            What::Removed => !verdict.stays,
            What::Annotated => true,
        }
    }
}

/// What was written of an input.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exported {
    /// Records that are documents.
    pub documents: u64,
    /// Those that were written.
    pub written: u64,
    /// Records of WARC and ARC files that are no documents, and were written.
    pub others: u64,
    /// Documents that go, of which a revisit record was written.
    #[serde(default)]
    pub revisits: u64,
    /// Revisits that refer to a record in none of the files that are written.
    #[serde(default)]
    pub outside: u64,
    /// Documents that go, and were written whole: no record that stays has their payload.
    #[serde(default)]
    pub kept_whole: u64,
    /// Records that say of a page which one it is a near-duplicate of.
    #[serde(default)]
    pub near_duplicates: u64,
    /// Records that are no documents of the week, and were not written.
    #[serde(default)]
    pub left_out: LeftOutRecords,
    /// Paragraphs that went from documents that stay.
    #[serde(default)]
    pub paragraphs: u64,
    /// The bytes of their lines.
    #[serde(default)]
    pub paragraph_bytes: u64,
    /// Passages that went from documents that stay, or from which lines did.
    #[serde(default)]
    pub passages: u64,
    /// The bytes by which their texts became shorter.
    #[serde(default)]
    pub passage_bytes: u64,
    /// Documents that match an item of a reference, whether they stay or not, if that is asked for.
    #[serde(default, skip_serializing_if = "is_none")]
    pub matched: u64,
    /// Documents that stay, of which no paragraph or no word was left: they were not written.
    #[serde(default)]
    pub emptied: u64,
}

fn is_none(count: &u64) -> bool {
    *count == 0
}

impl Exported {
    /// Counts a document.
    pub(in crate::export) fn add(&mut self, verdict: &Verdict, what: What) {
        self.documents += 1;
        self.written += u64::from(what.wants(verdict));
        self.matched += u64::from(verdict.matched.is_some());
    }

    /// Counts what goes from the text of a document that stays, and the document itself if nothing
    /// is left.
    pub(in crate::export) fn add_gone(&mut self, verdict: &Verdict, before: &str, after: Option<&str>) {
        let bytes = before.len().saturating_sub(after.map_or(0, str::len)) as u64;
        match &verdict.gone {
            Gone::Nothing => {}
            Gone::Paragraphs(lines) => {
                self.paragraphs += lines.len() as u64;
                self.paragraph_bytes += bytes;
            }
            // No whole line of them went.
            Gone::Passages(..) if after == Some(before) => {}
            Gone::Passages(passages, _) => {
                self.passages += passages.len() as u64;
                self.passage_bytes += bytes;
            }
        }
        if after.is_none() {
            self.emptied += 1;
            self.written -= 1;
        }
    }

    /// Adds the counts of another input.
    pub fn merge(&mut self, other: Exported) {
        self.documents += other.documents;
        self.written += other.written;
        self.others += other.others;
        self.revisits += other.revisits;
        self.outside += other.outside;
        self.kept_whole += other.kept_whole;
        self.near_duplicates += other.near_duplicates;
        self.left_out.merge(other.left_out);
        self.paragraphs += other.paragraphs;
        self.paragraph_bytes += other.paragraph_bytes;
        self.passages += other.passages;
        self.passage_bytes += other.passage_bytes;
        self.matched += other.matched;
        self.emptied += other.emptied;
    }
}

/// Records that are no documents of the week, and were not written, by the reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftOutRecords {
    /// Pages that are not of the week: they were deleted, or a later capture replaced them, or
    /// another one had their id or URL before, or the run rejected it.
    pub not_of_week: u64,
    /// Downloads that returned no page, such as answers of another status than 200.
    pub failed: u64,
    /// Answers that say that a page is what it was before.
    pub revisits: u64,
    /// Records of media types, or of schemes, that are not compared.
    pub media_types: u64,
    /// Requests and metadata of what is left out, and WARC records that belong to no page.
    pub attached: u64,
    /// Bad ones.
    pub bad: u64,
}

impl LeftOutRecords {
    /// Counts an item that is no document of the week.
    pub(in crate::export) fn add(&mut self, item: &Item) {
        *match item {
            Item::Page(_) | Item::Skip(Skipped { why: Skip::Head, .. }) => &mut self.not_of_week,
            Item::Failed(_) => &mut self.failed,
            Item::Revisit(_) => &mut self.revisits,
            Item::Skip(Skipped { why: Skip::MediaType | Skip::Scheme, .. }) => &mut self.media_types,
            Item::Skip(Skipped { why: Skip::RecordType, .. }) => &mut self.attached,
            Item::Reject(_) => &mut self.bad,
        } += 1;
    }

    /// The counts, and what they are counts of.
    pub fn reasons(&self) -> [(u64, &'static str); 6] {
        [
            (
                self.not_of_week,
                "pages that are not of the week (deleted, replaced, or with an id or URL that is bad or that another had before)",
            ),
            (self.failed, "downloads that returned no page"),
            (self.revisits, "answers that a page is what it was before"),
            (self.media_types, "records of media types or schemes that are not compared"),
            (self.attached, "requests and metadata of what is left out"),
            (self.bad, "bad records"),
        ]
    }

    fn merge(&mut self, other: LeftOutRecords) {
        self.not_of_week += other.not_of_week;
        self.failed += other.failed;
        self.revisits += other.revisits;
        self.media_types += other.media_types;
        self.attached += other.attached;
        self.bad += other.bad;
    }
}

/// The error of an input that is not what the week was made from.
pub(in crate::export) fn changed(input: &Input, offset: u64) -> anyhow::Error {
    anyhow::anyhow!(
        "{} has changed since the week was made: it does not have the record of the week at {offset}. Restore the file, or make the week again",
        input.name
    )
}

/// The error of an input that was annotated.
pub(in crate::export) fn annotated_before(input: &Input, field: AddedField) -> anyhow::Error {
    let names = AddedField::ANNOTATED.map(AddedField::name);
    let names = if names.contains(&field.name()) { names.join(", ") } else { field.name().to_owned() };
    anyhow::anyhow!(
        "{} has `{}` already: annotate the files that it was made from, or take its columns {names} away",
        input.name,
        field.name()
    )
}

/// Checks that rows have none of the fields that they get.
///
/// # Errors
/// If they have one.
pub(in crate::export) fn check_unannotated<'a>(
    mut names: impl Iterator<Item = &'a str>,
    fields: &[AddedField],
    input: &Input,
) -> Result<()> {
    match names.find_map(|name| fields.iter().find(|field| field.name() == name)) {
        Some(field) => Err(annotated_before(input, *field)),
        None => Ok(()),
    }
}

/// Checks that no column of a Parquet file is encrypted.
///
/// # Errors
/// If one is; the message names it.
pub(in crate::export) fn check_plain(metadata: &ParquetMetaData, input: &Input) -> Result<()> {
    let columns = metadata.row_groups().iter().flat_map(RowGroupMetaData::columns);
    match columns.into_iter().find(|column| column.crypto_metadata().is_some()) {
        Some(column) => bail!(
            "the column `{}` of {} is encrypted, and is not written without its key: --list has what is to be removed",
            column.column_path().string(),
            input.name
        ),
        None => Ok(()),
    }
}
