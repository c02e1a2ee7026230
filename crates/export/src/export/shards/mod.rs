//! An export in shards: all records in the order of the inputs, in files of about the same size.
//!
//! ```text
//! each input ─▶ a part in the work folder, as without shards            by several threads
//! parts, in order ─▶ cut ─▶ data-00000-of-00004.jsonl.gz, ...            by one
//! ```
//!
//! A shard gets its name at the end, when it is known how many there are. So an export that was
//! interrupted begins again, unless all shards are whole. Shards of an earlier attempt that are not
//! among the new ones are removed. A part is removed once it was read, but shards and parts
//! together can take twice the space of the export.
//!
//! In reading order: this file (which records are in which shard, and the names), `line_shards`,
//! `parquet`, `stored_columns` (of Parquet files: they must be the same).

mod line_shards;
mod parquet;
mod rule;
mod stored_columns;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use ::parquet::file::reader::{FileReader as _, SerializedFileReader};
use anyhow::{Context as _, Result, bail, ensure};

pub use self::rule::ShardRule;

use self::stored_columns::SameColumns;
use super::dataset::{CARD, Exported, Writing, WrittenDataset, each_file, has_documents, locked, write_card};
use super::place::{ExportFolder, Output, Written, WrittenFile};
use super::rows::{ExportFormat, RowFormat};
use super::verdicts::{Verdict, Verdicts};
use crate::readers::{Input, stored_file};

/// The most shards: names have five digits, so that their order is that of the numbers.
pub const MOST_SHARDS: u64 = 99_999;

/// A file that is cut.
struct CutFile<'a> {
    path: PathBuf,
    input: &'a Input,
    /// Whether the input has another format.
    is_converted: bool,
}

impl CutFile<'_> {
    /// Removes the file.
    fn remove(&self) -> Result<()> {
        std::fs::remove_file(&self.path).with_context(|| format!("cannot remove {}", self.path.display()))
    }
}

/// Which records a shard takes.
struct Filling {
    rule: ShardRule,
    all: u64,
    /// The shard that is filled, its records and its bytes.
    shard: u64,
    records: u64,
    bytes: u64,
}

impl Filling {
    fn new(rule: ShardRule, all: u64) -> Filling {
        Filling { rule, all, shard: 0, records: 0, bytes: 0 }
    }

    /// Whether the next record, of so many bytes, is the first of another shard.
    fn ends_before(&self, bytes: u64) -> bool {
        match self.rule {
            ShardRule::Count(count) => self.records >= self.share(count) && self.shard + 1 < count,
            ShardRule::MostBytes(most) => self.records > 0 && self.bytes + bytes > most,
        }
    }

    /// The records of the shard that is filled, of this number of shards.
    fn share(&self, count: u64) -> u64 {
        let before = |shard: u64| (u128::from(self.all) * u128::from(shard) / u128::from(count)) as u64;
        before(self.shard + 1) - before(self.shard)
    }

    /// Begins another shard.
    fn begin(&mut self) -> Result<()> {
        (self.shard, self.records, self.bytes) = (self.shard + 1, 0, 0);
        ensure!(
            self.shard < MOST_SHARDS,
            "there would be more than {MOST_SHARDS} shards: give a larger --shard-bytes, or --shards"
        );
        Ok(())
    }

    /// Counts a record of the shard.
    fn add(&mut self, bytes: u64) {
        self.records += 1;
        self.bytes += bytes;
    }

    /// Whether shards are left that have no record yet, once there are no more records.
    fn is_short(&self) -> bool {
        matches!(self.rule, ShardRule::Count(count) if self.shard + 1 < count)
    }
}

/// What writes the shards one after the other.
struct Shards<'a> {
    folder: &'a ExportFolder,
    /// The number of the first unfinished file that is free.
    first: usize,
    /// Those that are whole, with their numbers of records.
    written: Vec<(PathBuf, Written, u64)>,
}

impl Shards<'_> {
    /// The file of the next shard.
    fn create(&self) -> Result<Output> {
        Output::create(&self.path()).with_context(|| self.failed())
    }

    /// What a message says of the shard that is written.
    fn failed(&self) -> String {
        format!("cannot write {}, shard {} of the export", self.path().display(), self.written.len() + 1)
    }

    fn path(&self) -> PathBuf {
        self.folder.unfinished(self.first + self.written.len())
    }

    /// Ends the shard that was created last, which has so many records.
    fn end(&mut self, file: Output, records: u64) -> Result<()> {
        let path = self.path();
        let written = file.finish().with_context(|| self.failed())?;
        self.written.push((path, written, records));
        Ok(())
    }
}

/// Writes all records into shards. `done` is called after each input, with the number of those that
/// were read and of all.
///
/// # Errors
/// As [`write_dataset`](super::write_dataset); or if records are neither lines nor Parquet, or two
/// Parquet files differ in their columns.
pub(super) fn write_shards(
    inputs: &[Input],
    verdicts: Verdicts,
    writing: &Writing<'_>,
    rule: ShardRule,
    mut folder: ExportFolder,
    threads: usize,
    done: &(dyn Fn(usize, usize) + Sync),
) -> Result<WrittenDataset> {
    let ending = ending(inputs, writing.format)?;
    if let Some(written) = whole(&folder, ending, writing.card.is_some())? {
        folder.finish()?;
        return Ok(written);
    }
    let all = inputs.iter().filter(|input| has_documents(input)).count();
    let of_parts: Mutex<Vec<(usize, Exported, bool)>> = Mutex::new(Vec::new());
    let part_name = format!("part.{ending}");
    let write = |number: usize, verdicts: &[Verdict]| -> Result<()> {
        let path = folder.unfinished(number);
        let (counts, written) = writing.write(&inputs[number], verdicts, Path::new(&part_name), &path)?;
        let mut of_parts = locked(&of_parts);
        of_parts.push((number, counts, written.is_some()));
        done(of_parts.len(), all);
        Ok(())
    };
    each_file("write", inputs, verdicts, threads, &write)?;
    let mut of_parts = of_parts.into_inner().unwrap_or_else(PoisonError::into_inner);
    of_parts.sort_unstable_by_key(|(number, ..)| *number);
    let mut total = Exported::default();
    of_parts.iter().for_each(|(_, counts, _)| total.merge(*counts));
    // The columns of Parquet are those of a part, also if no part has a row.
    let has_rows = |counts: &Exported| counts.written > 0 || total.written == 0;
    let parts: Vec<CutFile<'_>> = of_parts
        .iter()
        .filter(|(_, counts, is_there)| *is_there && has_rows(counts))
        .map(|(number, ..)| {
            let input = &inputs[*number];
            Ok(CutFile { path: folder.unfinished(*number), input, is_converted: writing.format.of(input)?.is_some() })
        })
        .collect::<Result<_>>()?;
    // The file before the shards is the card.
    let mut shards = Shards { folder: &folder, first: inputs.len() + 1, written: Vec::new() };
    let mut filling = Filling::new(rule, total.written);
    match ending {
        PARQUET => parquet::cut(&parts, &mut filling, &mut shards)?,
        _ => line_shards::cut(&parts, &part_name, &mut filling, &mut shards)?,
    }
    let written = shards.written;
    let records: u64 = written.iter().map(|(.., records)| records).sum();
    ensure!(
        records == total.written,
        "a fault of nigh: the shards have {records} records, and {} were written of the inputs. The folder has none of them; give --out \
         without --shards and --shard-bytes",
        total.written
    );
    let count = written.len();
    let names: BTreeSet<String> = (0..count).map(|number| shard_name(number, count, ending)).collect();
    // Shards of another number, beside these, would have records twice.
    let old = folder.names().filter(|name| count_of_shards(name).is_some() && !names.contains(*name));
    let old: Vec<String> = old.map(str::to_owned).collect();
    folder.remove(&old)?;
    for (number, (unfinished, file, records)) in written.into_iter().enumerate() {
        // What else is counted is with the first one.
        let others = if number == 0 { total } else { Exported::default() };
        let name = shard_name(number, count, ending);
        folder.add(&unfinished, WrittenFile::new(name, Some(file), Exported { written: records, ..others }))?;
    }
    let paths: BTreeSet<&str> = names.iter().map(String::as_str).collect();
    write_card(writing, &mut folder, &paths, &total, inputs.len())?;
    folder.finish()?;
    Ok(WrittenDataset { files: count as u64, counts: total, index: None })
}

/// How many shards there are, as the name of one says; `None` if it is the name of another file.
fn count_of_shards(name: &str) -> Option<usize> {
    let (number, count) = name.strip_prefix("data-")?.split_once("-of-")?;
    number.parse::<usize>().ok()?;
    count.split_once('.')?.0.parse().ok()
}

fn shard_name(number: usize, count: usize, ending: &str) -> String {
    format!("data-{number:05}-of-{count:05}.{ending}")
}

/// What was written before, if all shards, and the card, are in their places.
fn whole(folder: &ExportFolder, ending: &str, has_card: bool) -> Result<Option<WrittenDataset>> {
    let in_place = |name: &str| -> Result<Option<Exported>> {
        let Some(file) = folder.listed(name) else { return Ok(None) };
        Ok(folder.place().has(&file)?.then_some(file.counts))
    };
    // Shards of another number would have records twice.
    let counts: BTreeSet<usize> = folder.names().filter_map(count_of_shards).collect();
    let (Some(count), 1) = (counts.first().copied(), counts.len()) else { return Ok(None) };
    let mut written = WrittenDataset { files: count as u64, ..WrittenDataset::default() };
    if has_card && in_place(CARD)?.is_none() {
        return Ok(None);
    }
    for number in 0..count {
        match in_place(&shard_name(number, count, ending))? {
            Some(counts) => written.counts.merge(counts),
            None => return Ok(None),
        }
    }
    Ok(Some(written))
}

/// Checks that inputs that are written in this format can have shards in common.
///
/// # Errors
/// If an input is written in a format that has no shards, or two in different ones, or two Parquet
/// files differ in their columns. Or if a Parquet file cannot be read.
pub fn check_shards(inputs: &[Input], format: ExportFormat) -> Result<()> {
    if ending(inputs, format)? != PARQUET {
        return Ok(());
    }
    let mut columns = SameColumns::default();
    for input in inputs.iter().filter(|input| RowFormat::of(input.format) == Some(RowFormat::Parquet)) {
        // One that is damaged has no documents, or is named when it is written.
        let Ok(file) = SerializedFileReader::new(stored_file(input)?) else { continue };
        columns.check(file.metadata().file_metadata(), input)?;
    }
    Ok(())
}

/// The ending of shards of Parquet.
const PARQUET: &str = "parquet";

/// The ending of the shards: all inputs are written in one format, and lines are compressed as the
/// first input is.
///
/// # Errors
/// If an input is written in a format that has no shards, or two in different ones.
fn ending(inputs: &[Input], format: ExportFormat) -> Result<&'static str> {
    let mut found: Option<(bool, &Input)> = None;
    let mut ending = "jsonl";
    for input in inputs.iter().filter(|input| has_documents(input)) {
        let own = RowFormat::of(input.format);
        let is_parquet = match format.of(input)?.or(own) {
            Some(RowFormat::Jsonl) => false,
            Some(RowFormat::Parquet) => true,
            None => bail!(
                "{} is {}, and shards are JSON Lines or Parquet: give --format jsonl or parquet, or leave out \
                 --shards and --shard-bytes",
                input.name,
                input.format
            ),
        };
        match found {
            Some((before, first)) if before != is_parquet => bail!(
                "{} is {}, and {} is {}: shards have one format, give --format jsonl or parquet",
                first.name,
                first.format,
                input.name,
                input.format
            ),
            Some(_) => {}
            None => {
                found = Some((is_parquet, input));
                ending = match input.name.rsplit('.').next() {
                    _ if is_parquet => PARQUET,
                    // What is converted is not compressed.
                    _ if own != Some(RowFormat::Jsonl) => "jsonl",
                    Some("gz" | "GZ") => "jsonl.gz",
                    Some("zst" | "ZST") => "jsonl.zst",
                    _ => "jsonl",
                };
            }
        }
    }
    Ok(ending)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The records of each shard, given the bytes of all records.
    fn shards(rule: ShardRule, bytes: &[u64]) -> Vec<u64> {
        let mut filling = Filling::new(rule, bytes.len() as u64);
        let mut shards = vec![0];
        for bytes in bytes {
            while filling.ends_before(*bytes) {
                filling.begin().unwrap();
                shards.push(0);
            }
            filling.add(*bytes);
            *shards.last_mut().unwrap() += 1;
        }
        while filling.is_short() {
            filling.begin().unwrap();
            shards.push(0);
        }
        shards
    }

    #[test]
    fn the_name_of_a_shard_has_the_number_of_all() {
        assert_eq!(count_of_shards(&shard_name(3, 17, "jsonl.gz")), Some(17));
        for name in ["README.md", "data-x-of-00002.jsonl", "data-00001-of-2", "data-00001.jsonl"] {
            assert_eq!(count_of_shards(name), None, "{name}");
        }
    }

    #[test]
    fn shards_have_as_many_records_or_at_most_so_many_bytes() {
        assert_eq!(shards(ShardRule::Count(3), &[1; 10]), [3, 3, 4]);
        assert_eq!(shards(ShardRule::Count(3), &[1; 3]), [1, 1, 1]);
        assert_eq!(shards(ShardRule::Count(4), &[1; 2]), [0, 1, 0, 1]);
        assert_eq!(shards(ShardRule::Count(2), &[]), [0, 0]);
        assert_eq!(shards(ShardRule::MostBytes(10), &[4, 4, 4, 20, 1, 1, 9, 1]), [2, 1, 1, 2, 2]);
        assert_eq!(shards(ShardRule::MostBytes(1), &[]), [0]);
        let mut filling = Filling::new(ShardRule::MostBytes(1), 1 << 20);
        assert!((1..MOST_SHARDS).all(|_| filling.begin().is_ok()));
        assert!(filling.begin().unwrap_err().to_string().contains("more than 99999 shards"));
    }
}
