//! The names of the columns of an input.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context as _, Result};
use parquet::file::reader::{FileReader as _, SerializedFileReader};
use serde::de::IgnoredAny;

use super::columnar::arrow_batches;
use super::format::RowFormat;
use crate::config::Reading;
use crate::export::renamed::check_distinct;
use crate::readers::{Input, JsonLines, LineKind, RecordKind, Searched, columns, stored_file};

/// The lines of JSON that are looked at first.
const SEARCHED: usize = 1000;

/// The names of the columns that the records of an input have themselves, without those within
/// objects. Of JSON Lines the first lines say it; or those up to the first one with which all of
/// the columns `missing` were there.
///
/// # Errors
/// If the input cannot be read, or has two columns of one name.
pub fn column_names(input: &Input, reading: &Reading, missing: Option<&[&str]>) -> Result<BTreeSet<String>> {
    let mut names = BTreeSet::new();
    match input.format.records() {
        // One that is damaged from the beginning has none.
        RecordKind::Rows if columns(input, reading, Searched::First)?.is_none() => {}
        RecordKind::Rows if RowFormat::of(input.format) == Some(RowFormat::Parquet) => {
            let failed = || format!("cannot read {}", input.name);
            let file = SerializedFileReader::new(stored_file(input)?).with_context(failed)?;
            let fields = file.metadata().file_metadata().schema().get_fields();
            check_distinct(fields.iter().map(|field| field.name()), input)?;
            names.extend(fields.iter().map(|field| field.name().to_owned()));
        }
        RecordKind::Lines(LineKind::Json) => {
            let mut lines = JsonLines::of_documents(input, reading)?;
            let is_enough = |names: &BTreeSet<String>, number: usize| match missing {
                None => number == SEARCHED,
                Some(missing) => missing.iter().all(|name| names.contains(*name)),
            };
            for number in 0.. {
                if is_enough(&names, number) {
                    break;
                }
                let Some(line) = lines.line()? else { break };
                // What is not an object is not a record either.
                let Ok(line) = line else { continue };
                let fields = serde_json::from_slice::<BTreeMap<Cow<'_, str>, IgnoredAny>>(line);
                names.extend(fields.unwrap_or_default().into_keys().map(Cow::into_owned));
            }
        }
        RecordKind::Rows => {
            let schema = arrow_batches(input)?.schema();
            check_distinct(schema.fields().iter().map(|field| field.name().as_str()), input)?;
            names.extend(schema.fields().iter().map(|field| field.name().clone()));
        }
        RecordKind::Lines(LineKind::Delimited(_)) => {
            let of_file = columns(input, reading, Searched::First)?.map(|(names, _)| names).unwrap_or_default();
            check_distinct(of_file.iter().map(String::as_str), input)?;
            names.extend(of_file);
        }
        RecordKind::Failures | RecordKind::UnreadableArchive => {}
        // They are written as rows with these columns, if they are.
        RecordKind::Captures(_) | RecordKind::WholeFile(_) => {
            names.extend(super::page_rows::schema().fields().iter().map(|field| field.name().clone()));
        }
    }
    Ok(names)
}
