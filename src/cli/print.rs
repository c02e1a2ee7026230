//! Results on stdout: as text for people, or as one line of JSON.

use anyhow::{Context, Result};
use serde::Serialize;

use crate::report;
use crate::report::print;
use crate::summary::Summary;
use crate::text::printable_json;

/// Plain data as one line of JSON, without the end of the line. Characters that a terminal acts on are escaped; a program that reads
/// the JSON has them as they are.
pub(crate) fn json_text(value: &impl Serialize) -> Result<String> {
    let text = serde_json::to_string(value).context("plain data has a JSON form")?;
    Ok(printable_json(&text).into_owned())
}

/// Prints plain data as one line of JSON.
pub(crate) fn print_json(value: &impl Serialize) -> Result<()> {
    print(&format!("{}\n", json_text(value)?))
}

/// Prints the summary of a week.
pub(crate) fn print_summary(summary: &Summary, json: bool) -> Result<()> {
    print(&summary_text(summary, json)?)
}

/// The summary of a week as it is printed.
pub(crate) fn summary_text(summary: &Summary, json: bool) -> Result<String> {
    if json { Ok(format!("{}\n", json_text(summary)?)) } else { Ok(report::summary(summary)) }
}
