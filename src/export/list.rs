//! A list of records instead of their contents: what to remove from a dataset that stays where it is.

use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result};
use arrow_array::builder::{BooleanBuilder, Int64Builder, StringBuilder};
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{DataType, Field, Schema};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::properties::WriterProperties;

use super::exported::What;
use super::verdicts::{Names, Verdict, Verdicts};

/// Rows of a batch.
const BATCH: usize = 8192;

/// Writes the list of the records that are wanted, in the order of the inputs, whose names are `inputs`: rows of Parquet if the name of the file ends
/// in `.parquet`, and otherwise lines of text, each with the id of a record, or its URL, or its file and place with a tab between. Returns the
/// number of records, and of those in the list.
///
/// The file gets its name when it is whole.
///
/// # Errors
/// If the verdicts cannot be read, or the file not be written.
pub fn write_list(path: &Path, inputs: &[String], verdicts: &mut Verdicts, what: What) -> Result<(u64, u64)> {
    let failed = || format!("cannot write {}", path.display());
    let mut unfinished = path.as_os_str().to_owned();
    unfinished.push(".unfinished");
    let file = File::create(&unfinished).with_context(failed)?;
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
    let file =
        if is_parquet { rows(file, inputs, &mut next) } else { lines(file, inputs, &mut next) }.with_context(failed)?;
    file.sync_all().with_context(failed)?;
    std::fs::rename(&unfinished, path).with_context(failed)?;
    Ok((all, listed))
}

/// The next record of a list.
type Next<'a> = &'a mut dyn FnMut() -> Result<Option<Verdict>>;

fn lines(file: File, inputs: &[String], next: Next<'_>) -> Result<File> {
    let mut out = BufWriter::with_capacity(1 << 20, file);
    while let Some(Verdict { file, offset, names, .. }) = next()? {
        let Names { id, url } = names.map_or_else(Names::default, |names| *names);
        match id.or(url) {
            Some(name) => writeln!(out, "{name}")?,
            None => writeln!(out, "{}\t{offset}", inputs[file as usize])?,
        }
    }
    Ok(out.into_inner().map_err(std::io::IntoInnerError::into_error)?)
}

fn rows(file: File, inputs: &[String], next: Next<'_>) -> Result<File> {
    let field = |name: &str, kind, is_nullable| Field::new(name, kind, is_nullable);
    let schema = Arc::new(Schema::new(vec![
        field("file", DataType::Utf8, false),
        field("offset", DataType::Int64, false),
        field("id", DataType::Utf8, true),
        field("url", DataType::Utf8, true),
        field("doc", DataType::Int64, false),
        field("cluster", DataType::Int64, false),
        field("size", DataType::Int64, false),
        field("rank", DataType::Int64, false),
        field("stays", DataType::Boolean, false),
    ]));
    let properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(3)?))
        .set_created_by(format!("nigh {}", env!("CARGO_PKG_VERSION")))
        .build();
    let mut writer = ArrowWriter::try_new(file, schema.clone(), Some(properties))?;
    loop {
        let mut texts: [StringBuilder; 3] = Default::default();
        let mut longs: [Int64Builder; 5] = Default::default();
        let mut stay = BooleanBuilder::new();
        let mut count = 0;
        while count < BATCH
            && let Some(verdict) = next()?
        {
            count += 1;
            let Names { id, url } = verdict.names.map_or_else(Names::default, |names| *names);
            texts[0].append_value(&inputs[verdict.file as usize]);
            texts[1].append_option(id);
            texts[2].append_option(url);
            let numbers =
                [verdict.offset as i64, verdict.doc, verdict.cluster, verdict.size as i64, verdict.rank as i64];
            longs.iter_mut().zip(numbers).for_each(|(column, number)| column.append_value(number));
            stay.append_value(verdict.stays);
        }
        if count == 0 {
            return Ok(writer.into_inner()?);
        }
        let [file, id, url] = texts.map(|mut column| Arc::new(column.finish()) as ArrayRef);
        let [offset, doc, cluster, size, rank] = longs.map(|mut column| Arc::new(column.finish()) as ArrayRef);
        let stays = Arc::new(stay.finish());
        writer.write(&RecordBatch::try_new(
            schema.clone(),
            vec![file, offset, id, url, doc, cluster, size, rank, stays],
        )?)?;
    }
}
