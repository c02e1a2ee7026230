//! Turns the rows of a Parquet file into items: pages and rejects.

use std::borrow::Cow;
use std::fs::File;
use std::sync::Arc;

use ::parquet::errors::{ParquetError, Result as ParquetResult};
use ::parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData, ParquetMetaDataReader};
use anyhow::{Context as _, bail};

use super::column::Column;
use super::file::{ChunkedFile, ColumnPages, TOO_LONG};
use crate::readers::fields::{self, Date};
use crate::readers::item::{Item, Nothing, Reader, Reject, RejectedFile};
use crate::readers::pieces::{InputPiece, cut};
use crate::readers::rows::page_row::{PageFields, PageRow, check_once};
use crate::reading::{Columns, Reading, TextColumns};
use nigh_text::contained::contained;

/// Reads the pages of one Parquet file.
pub struct ParquetReader {
    file: Arc<ChunkedFile>,
    metadata: ParquetMetaData,
    columns: PageFields<usize>,
    reading: Reading,
    name: String,
    bytes: u64,
    /// The row group to open next, and the one after the last.
    next_group: usize,
    end: usize,
    /// The number, in the file, of the first row to read.
    first_row: u64,
    /// The number, in the file, of the first row of that group.
    next_group_row: u64,
    /// The columns of the open row group.
    group: Option<Box<PageFields<Column>>>,
    /// The number, in the file, of the next row.
    row: u64,
    damage: Option<GroupDamage>,
}

/// A damaged row group, of which rows are still to be rejected.
struct GroupDamage {
    reason: String,
    rows: u64,
}

/// Makes the reader of a local file, named `name` in errors. A file that is not a whole Parquet
/// file is one reject.
///
/// # Errors
/// If the file cannot be read, or lacks a column of the job.
pub fn open(file: File, name: &str, reading: &Reading) -> anyhow::Result<Box<dyn Reader>> {
    open_piece(file, name, reading, InputPiece::WHOLE)
}

/// As [`open`], for some of the row groups. The reject of a file that is not whole is in its first
/// piece.
///
/// # Errors
/// As [`open`].
pub fn open_piece(file: File, name: &str, reading: &Reading, piece: InputPiece) -> anyhow::Result<Box<dyn Reader>> {
    Ok(match open_columns(file, name, reading)? {
        Ok(reader) => Box::new(reader.of_piece(piece)),
        Err(damaged) if piece.number == 0 => Box::new(damaged),
        Err(_) => Box::new(Nothing),
    })
}

/// Checks that a file can be read, and has the columns of the job. Returns whether it has that of
/// the URLs; `None` if it is not a whole Parquet file.
///
/// # Errors
/// As [`open`].
pub fn check(file: File, name: &str, reading: &Reading) -> anyhow::Result<Option<bool>> {
    Ok(open_columns(file, name, reading)?.ok().map(|reader| reader.columns.url.is_some()))
}

/// The names of the columns of a file, and which of those whose values are kept it has; `None` if
/// it is not a whole Parquet file.
///
/// # Errors
/// As [`open`].
pub fn columns(file: File, name: &str, reading: &Reading) -> anyhow::Result<Option<(Vec<String>, Vec<bool>)>> {
    Ok(open_columns(file, name, reading)?.ok().map(|reader| {
        let schema = reader.metadata.file_metadata().schema_descr();
        let names = schema.columns().iter().map(|column| column.path().string()).collect();
        (names, reader.columns.values.iter().map(Option::is_some).collect())
    }))
}

/// Why a file cannot be read: the first page of each column of the job that is not decoded, for
/// each compression that the column has.
///
/// # Errors
/// As [`open`].
pub fn damage(file: File, name: &str, reading: &Reading) -> anyhow::Result<Option<String>> {
    let reader = match open_columns(file, name, reading)? {
        Ok(reader) => reader,
        Err(mut damaged) => {
            return Ok(damaged.next()?.and_then(|item| match item {
                Item::Reject(reject) => Some(reject.reason),
                _ => None,
            }));
        }
    };
    let leaves: Vec<usize> = reader.columns.all().copied().collect();
    let mut seen = Vec::new();
    for group in reader.metadata.row_groups() {
        for leaf in &leaves {
            let Some(column) = group.columns().get(*leaf) else { continue };
            if column.crypto_metadata().is_some() {
                return Ok(Some(encrypted(column)));
            }
            let kind = (*leaf, column.compression());
            if group.num_rows() == 0 || seen.contains(&kind) {
                continue;
            }
            seen.push(kind);
            let rows = group.num_rows().max(0) as u64;
            let decoded = contained(|| {
                ColumnPages::new(&reader.file, column, rows, reading.max_decoded_bytes)?.next().transpose().map(drop)
            });
            if let Some(error) = reader.file.take_failure() {
                return Err(error).with_context(|| format!("cannot read {name}"));
            }
            let reason = match decoded {
                Ok(Ok(())) => continue,
                Ok(Err(error)) => cause(&error),
                Err(cause) => format!("parquet: damaged row group: {cause}"),
            };
            return Ok(Some(format!(
                "{reason} (column `{}`, {})",
                column.column_path().string(),
                column.compression()
            )));
        }
    }
    Ok(None)
}

fn open_columns(file: File, name: &str, reading: &Reading) -> anyhow::Result<Result<ParquetReader, RejectedFile>> {
    let failed = || format!("cannot read {name}");
    let file = Arc::new(ChunkedFile::new(file).with_context(failed)?);
    let metadata = contained(|| ParquetMetaDataReader::new().parse_and_finish(&*file));
    if let Some(error) = file.take_failure() {
        return Err(error).with_context(failed);
    }
    let reason = match metadata {
        Ok(Ok(metadata)) => return Ok(Ok(ParquetReader::new(file, metadata, name, reading)?)),
        Ok(Err(_)) if file.is_encrypted() => "parquet: an encrypted file".to_owned(),
        Ok(Err(_)) => "parquet: not a whole file".to_owned(),
        Err(cause) => format!("parquet: not a whole file: {cause}"),
    };
    Ok(Err(RejectedFile::new(reason, file.bytes())))
}

impl ParquetReader {
    fn new(file: Arc<ChunkedFile>, metadata: ParquetMetaData, name: &str, reading: &Reading) -> anyhow::Result<Self> {
        let names = &reading.columns;
        if names.text.is_empty() && names.html.is_none() {
            bail!("cannot read pages from {name}: set `text` or `html` in [cluster.read.columns]");
        }
        let schema = metadata.file_metadata().schema_descr();
        let find = |column: &String| {
            let paths = || schema.columns().iter().map(|column| column.path().string());
            let Some(leaf) = paths().position(|path| path == *column) else {
                bail!(
                    "{name} has no column `{column}` (its columns: {}); set the names in [cluster.read.columns], or by --id, --url and --text",
                    paths().collect::<Vec<_>>().join(", ")
                );
            };
            let found = schema.column(leaf);
            let of_path = schema.columns().iter().filter(|other| other.path() == found.path());
            check_once(name, column, of_path.count())?;
            if found.max_rep_level() > 0 {
                bail!("the column `{column}` of {name} is a list: name a column with one value in each row");
            }
            Ok(leaf)
        };
        let Columns { id, url, html, ip, date, values, .. } = names.clone();
        let has_url = || schema.columns().iter().any(|column| column.path().string() == names.url());
        let url = url.or_else(|| has_url().then(|| names.url().to_owned()));
        let has = |name: &String| schema.columns().iter().any(|column| column.path().string() == *name);
        let text = names.texts_of_file(|name| has(&name.to_owned()));
        let values = values.into_iter().map(|name| Some(name).filter(has)).collect();
        let columns = PageFields { id, url, text, html, ip, date, values }.map(find)?;
        Ok(ParquetReader {
            bytes: file.bytes(),
            file,
            metadata,
            columns,
            reading: reading.clone(),
            name: name.to_owned(),
            next_group: 0,
            end: 0,
            first_row: 0,
            next_group_row: 0,
            group: None,
            row: 0,
            damage: None,
        })
    }

    /// The reader of the row groups of a piece.
    fn of_piece(self, piece: InputPiece) -> Self {
        let groups = self.metadata.num_row_groups() as u64;
        let cut = |number: u64| cut(groups, number, piece.of) as usize;
        let (next_group, end) = (cut(piece.number), cut(piece.number + 1));
        let rows = |group: usize| self.metadata.row_group(group).num_rows().max(0) as u64;
        let first_row = (0..next_group).map(rows).fold(0, u64::saturating_add);
        ParquetReader { next_group, end, first_row, next_group_row: first_row, row: first_row, ..self }
    }

    /// Opens the next row group; returns `false` after the last.
    fn open_group(&mut self) -> anyhow::Result<bool> {
        if self.next_group == self.end {
            return Ok(false);
        }
        let group = self.metadata.row_group(self.next_group);
        let rows = group.num_rows().max(0) as u64;
        self.next_group += 1;
        self.row = self.next_group_row;
        self.next_group_row = self.next_group_row.saturating_add(rows);
        let open = |leaf: usize| match group.columns().get(leaf) {
            Some(column) if column.crypto_metadata().is_some() => Err(ParquetError::General(encrypted(column))),
            Some(column) => Column::new(&self.file, column, rows, self.reading.max_decoded_bytes),
            None => Err(ParquetError::General("a row group without a column of the schema".to_owned())),
        };
        let columns = &self.columns;
        let opened = contained(|| columns.map(|leaf| open(*leaf)).map(Box::new));
        self.group = self.unless_damaged(opened)?;
        Ok(true)
    }

    /// Returns what was decoded; `None` if the row group is damaged, whose rows are then to be
    /// rejected.
    fn unless_damaged<T>(&mut self, decoded: Result<ParquetResult<T>, String>) -> anyhow::Result<Option<T>> {
        if let Some(error) = self.file.take_failure() {
            return Err(error).with_context(|| format!("cannot read {}", self.name));
        }
        let reason = match decoded {
            Ok(Ok(decoded)) => return Ok(Some(decoded)),
            Ok(Err(error)) => cause(&error),
            Err(cause) => format!("parquet: damaged row group: {cause}"),
        };
        // A damaged number of rows must not give more rejects than the file can have rows.
        let rows = self.next_group_row.saturating_sub(self.row).clamp(1, self.bytes.max(1));
        self.damage = Some(GroupDamage { reason, rows });
        Ok(None)
    }

    /// Rejects the next row of the damaged row group.
    fn reject(&mut self) -> Option<Item> {
        let damage = self.damage.as_mut().filter(|damage| damage.rows > 0)?;
        damage.rows -= 1;
        let reject = Reject { offset: self.row, url: None, reason: damage.reason.clone() };
        self.row += 1;
        Some(Item::Reject(reject))
    }
}

impl Reader for ParquetReader {
    fn next(&mut self) -> anyhow::Result<Option<Item>> {
        loop {
            if let Some(item) = self.reject() {
                return Ok(Some(item));
            }
            let Some(mut group) = self.group.take().filter(|_| self.row < self.next_group_row) else {
                if !self.open_group()? {
                    return Ok(None);
                }
                continue;
            };
            // After a panic the columns are dropped.
            let advanced = contained(|| {
                group.all_mut().try_for_each(Column::advance)?;
                Ok((page(&group, self.row, &self.reading), group))
            });
            if let Some((item, group)) = self.unless_damaged(advanced)? {
                self.group = Some(group);
                self.row += 1;
                return Ok(Some(item));
            }
        }
    }

    fn skip_to(&mut self, place: u64) -> anyhow::Result<()> {
        // Rows of a damaged group are rejects, each.
        if place <= self.row || self.damage.as_ref().is_some_and(|damage| damage.rows > 0) {
            return Ok(());
        }
        if place >= self.next_group_row {
            self.group = None;
            while self.next_group < self.end {
                let rows = self.metadata.row_group(self.next_group).num_rows().max(0) as u64;
                if place < self.next_group_row.saturating_add(rows) {
                    break;
                }
                self.next_group += 1;
                self.next_group_row = self.next_group_row.saturating_add(rows);
            }
            self.row = self.next_group_row;
            if !self.open_group()? {
                return Ok(());
            }
        }
        let Some(mut group) = self.group.take() else { return Ok(()) };
        let rows = place.min(self.next_group_row).saturating_sub(self.row);
        let skipped = contained(|| {
            group.all_mut().try_for_each(|column| column.skip(rows as usize))?;
            Ok(group)
        });
        self.group = self.unless_damaged(skipped)?;
        if self.group.is_some() {
            self.row += rows;
        }
        Ok(())
    }

    fn position(&self) -> u64 {
        let rows = self.metadata.file_metadata().num_rows().max(1) as u64;
        let until = |row: u64| cut(self.bytes, row.min(rows), rows);
        until(self.row) - until(self.first_row.min(self.row))
    }
}

/// The end of that reason.
const ENCRYPTED: &str = " is encrypted";

/// The reason of the rejects of a row group with an encrypted column.
fn encrypted(column: &ColumnChunkMetaData) -> String {
    format!("parquet: the column `{}`{ENCRYPTED}", column.column_path().string())
}

/// The reason of the rejects of a row group that does not decode.
fn cause(error: &ParquetError) -> String {
    let known = match error {
        // The only compression of the format that is not read: no program writes it any more.
        ParquetError::NYI(_) => "compressed as LZO, which is not read",
        ParquetError::General(text) if text == TOO_LONG => TOO_LONG,
        ParquetError::General(text) if text.ends_with(ENCRYPTED) => return text.clone(),
        ParquetError::General(text) if text.contains("CRC") => "the checksum of a page is another",
        _ => return "parquet: damaged row group".to_owned(),
    };
    format!("parquet: damaged row group: {known}")
}

/// Makes the page of a row, or a reject.
fn page(group: &PageFields<Column>, offset: u64, reading: &Reading) -> Item {
    let html = group.html.as_ref().and_then(Column::bytes).map(Cow::Borrowed);
    let row = PageRow {
        id: group.id.as_ref().map(Column::id).unwrap_or_default(),
        url: group.url.as_ref().and_then(Column::bytes).map(fields::url),
        // Read only if needed: it would be searched for invalid UTF-8.
        text: match html {
            None => TextColumns::joined(group.text.iter().map(|column| column.as_ref()?.text())),
            Some(_) => None,
        },
        html,
        // A string column is UTF-8, whatever charset the page declares.
        html_is_text: group.html.as_ref().is_some_and(Column::is_text),
        ip: group.ip.as_ref().and_then(Column::text),
        fetched: group.date.as_ref().map_or(Date::None, Column::date),
        values: group.values.iter().map(|column| column.as_ref()?.value()).collect(),
    };
    row.item(offset, reading.page_limit(), "parquet")
}
