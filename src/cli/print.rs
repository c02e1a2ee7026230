//! Results on stdout: as a report for people, or as one line of JSON.

use anyhow::{Context, Result};
use serde::Serialize;

use crate::report::print;
use crate::sheet::{Printable, Sheet};
use crate::text::printable_json;

/// Plain data as one line of JSON, without the end of the line. Characters that a terminal acts on
/// are escaped; a program that reads the JSON has them as they are.
pub(crate) fn json_text(value: &impl Serialize) -> Result<String> {
    let text = serde_json::to_string(value).context("plain data has a JSON form")?;
    Ok(printable_json(&text).into_owned())
}

/// Prints plain data as one line of JSON.
pub(crate) fn print_json(value: &impl Serialize) -> Result<()> {
    print(&format!("{}\n", json_text(value)?))
}

/// A result as it is printed: its report, or with `json` its data.
pub(crate) fn result_text<T: Serialize>(result: &T, json: bool, report: impl FnOnce(&T) -> Sheet) -> Result<Printable> {
    if json { Ok((&format!("{}\n", json_text(result)?)).into()) } else { Ok(report(result).fitted()) }
}
