//! A list of records instead of their contents: what to remove from a dataset that stays where it
//! is.

use std::ffi::OsString;
use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use arrow_array::builder::{BooleanBuilder, Float64Builder, Int64Builder, StringBuilder};
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{DataType, Field, Schema};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::properties::WriterProperties;

use super::output::{Output, sync_parent};
use super::workplace::Workplace;
use super::written_files::{ExportKey, WrittenFile, WrittenFiles};
use crate::export::dataset::{Exported, What};
use crate::export::verdicts::{RecordKey, Verdict, Verdicts};
use crate::records::DocumentKey;

/// Rows of a batch.
const BATCH: usize = 8192;

/// The file of a list, and what nigh needs beside it: a hidden file that says what the list was
/// when it was written, and a hidden folder to work in, which goes when the list is whole.
pub struct ListFile {
    path: PathBuf,
    written: PathBuf,
    key: ExportKey,
    before: Vec<WrittenFile>,
    work: Workplace,
}

impl ListFile {
    /// Checks that there is no such file, or that it is a list as nigh wrote it: then it will be
    /// replaced.
    ///
    /// # Errors
    /// If something else is there, or another export writes the file; or its folder cannot be
    /// written.
    pub fn open(path: &Path, key: &ExportKey) -> Result<ListFile> {
        let name = path.file_name().with_context(|| format!("--list {} has no name of a file", path.display()))?;
        let hidden = |end: &str| {
            let mut hidden = OsString::from(".");
            hidden.push(name);
            hidden.push(end);
            path.with_file_name(hidden)
        };
        let written = hidden(".nigh-export.jsonl");
        let check = || -> Result<Vec<WrittenFile>> {
            // Also without a list: it is replaced.
            let before = WrittenFiles::read(&written)?;
            let Ok(found) = std::fs::symlink_metadata(path) else { return Ok(Vec::new()) };
            ensure!(found.is_file(), "{} is a link, folder or device: give another --list", path.display());
            ensure!(
                before.as_ref().map_or(Ok(false), |before| before.has(path))?,
                "{} was not written by nigh, or has changed since: give another --list, or remove it",
                path.display()
            );
            Ok(before.map_or_else(Vec::new, |before| before.files))
        };
        check()?;
        let work = Workplace::take(hidden(".nigh-export-work"), path)?;
        // Another export may have come and gone in between.
        let before = check()?;
        Ok(ListFile { path: path.to_owned(), written, key: key.clone(), before, work })
    }

    /// A folder for runs of sorts, which goes when the list is whole.
    pub fn scratch(&self) -> PathBuf {
        self.work.scratch()
    }

    /// Writes the list of the records that are wanted, in the order of the inputs, whose names are
    /// `inputs`: rows of Parquet if the name of the file ends in `.parquet`, and otherwise lines of
    /// text, each with the id of a record, or its URL, or its file and place with a tab between.
    /// `documents` is what records are known by. Returns the number of records, and of those in the
    /// list.
    ///
    /// # Errors
    /// If the verdicts cannot be read, or the file not be written; or if a line could stand for
    /// another record: names the record.
    pub fn write(
        self,
        inputs: &[String],
        documents: DocumentKey,
        verdicts: &mut Verdicts,
        what: What,
    ) -> Result<(u64, u64)> {
        let ListFile { path, written, key, before, work } = self;
        let failed = || format!("cannot write {}", path.display());
        let unfinished = work.unfinished(0);
        let file = Output::create(&unfinished).with_context(failed)?;
        let (mut all, mut listed) = (0, 0);
        let mut next = || -> Result<Option<Verdict>> {
            loop {
                let Some(verdict) = verdicts.record()? else { return Ok(None) };
                all += 1;
                if what.wants(&verdict) {
                    listed += 1;
                    return Ok(Some(verdict));
                }
            }
        };
        let is_parquet = path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("parquet"));
        let file = if is_parquet {
            rows(file, inputs, key.score.is_some(), &mut next)
        } else {
            lines(file, (&path, inputs), documents, &mut next)
        };
        let of_list = file.with_context(failed)?.finish().with_context(failed)?;
        let counts = Exported { documents: all, written: listed, ..Exported::default() };
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        // Until the list is in its place, the one before it is known, too.
        let new = WrittenFile::new(name, Some(of_list), counts);
        let files = before.into_iter().chain([new.clone()]).collect();
        WrittenFiles { key: key.clone(), files }.write(&work, &written)?;
        std::fs::rename(&unfinished, &path).and_then(|()| sync_parent(&path)).with_context(failed)?;
        WrittenFiles { key, files: vec![new] }.write(&work, &written)?;
        Ok((all, listed))
    }
}

/// The next record of a list.
type Next<'a> = &'a mut dyn FnMut() -> Result<Option<Verdict>>;

fn lines(file: Output, (path, inputs): (&Path, &[String]), documents: DocumentKey, next: Next<'_>) -> Result<Output> {
    let mut out = BufWriter::with_capacity(1 << 20, file);
    let remedy = || format!("give --list {}, which has each in columns", path.with_extension("parquet").display());
    while let Some(Verdict { file, offset, names, revisiting, .. }) = next()? {
        let RecordKey { id, url } = names.map_or_else(RecordKey::default, |names| *names);
        let input = &inputs[file as usize];
        // The URL of the record may be that of another document, which stays.
        let (what, line) = match (id, revisiting.map(|document| document.url).or(url)) {
            (Some(id), _) => ("id", id),
            (None, Some(url)) => ("URL", url),
            (None, None) => ("file", format!("{input}\t{offset}")),
        };
        ensure!(
            documents != DocumentKey::Row || what == "file",
            "records of this store are known by file and place, and the {what} {line:?} of the one at {offset} of {input} may be that of a \
             record that stays: {}",
            remedy()
        );
        // Some readers end a line at each of these.
        ensure!(
            !line.contains(['\n', '\r']),
            "the {what} {line:?} has a line break, and would be other lines of the list: {}",
            remedy()
        );
        writeln!(out, "{line}")?;
    }
    Ok(out.into_inner().map_err(std::io::IntoInnerError::into_error)?)
}

fn rows(file: Output, inputs: &[String], has_score: bool, next: Next<'_>) -> Result<Output> {
    let field = |name: &str, kind, is_nullable| Field::new(name, kind, is_nullable);
    let mut fields = vec![
        field("file", DataType::Utf8, false),
        field("offset", DataType::Int64, false),
        field("id", DataType::Utf8, true),
        field("url", DataType::Utf8, true),
        field("doc", DataType::Int64, false),
        field("cluster", DataType::Int64, false),
        field("size", DataType::Int64, false),
        field("rank", DataType::Int64, false),
        field("stays", DataType::Boolean, false),
    ];
    fields.extend(has_score.then(|| field("score", DataType::Float64, true)));
    let schema = Arc::new(Schema::new(fields));
    let properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(3)?))
        .set_created_by(format!("nigh {}", env!("CARGO_PKG_VERSION")))
        .build();
    let mut writer = ArrowWriter::try_new(file, schema.clone(), Some(properties))?;
    loop {
        let mut texts: [StringBuilder; 3] = Default::default();
        let mut longs: [Int64Builder; 5] = Default::default();
        let (mut stay, mut scores) = (BooleanBuilder::new(), Float64Builder::new());
        let mut count = 0;
        while count < BATCH
            && let Some(verdict) = next()?
        {
            count += 1;
            let RecordKey { id, url } = verdict.names.map_or_else(RecordKey::default, |names| *names);
            texts[0].append_value(&inputs[verdict.file as usize]);
            texts[1].append_option(id);
            texts[2].append_option(verdict.revisiting.map(|document| document.url).or(url));
            let numbers =
                [verdict.offset as i64, verdict.doc, verdict.cluster, verdict.size as i64, verdict.rank as i64];
            longs.iter_mut().zip(numbers).for_each(|(column, number)| column.append_value(number));
            stay.append_value(verdict.stays);
            scores.append_option(verdict.score);
        }
        if count == 0 {
            return Ok(writer.into_inner()?);
        }
        let [file, id, url] = texts.map(|mut column| Arc::new(column.finish()) as ArrayRef);
        let [offset, doc, cluster, size, rank] = longs.map(|mut column| Arc::new(column.finish()) as ArrayRef);
        let stays = Arc::new(stay.finish());
        let mut columns: Vec<ArrayRef> = vec![file, offset, id, url, doc, cluster, size, rank, stays];
        columns.extend(has_score.then(|| Arc::new(scores.finish()) as ArrayRef));
        writer.write(&RecordBatch::try_new(schema.clone(), columns)?)?;
    }
}
