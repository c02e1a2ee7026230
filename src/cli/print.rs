//! Prints summaries, for people and as JSON.

use anyhow::Result;

use super::worker::told;
use crate::report;
use crate::report::print;
use crate::summary::Summary;

pub(crate) fn say_json(summary: &impl serde::Serialize) -> Result<()> {
    print(&format!("{}\n", told(summary)?))
}

pub(crate) fn print_summary(summary: &Summary, json: bool) -> Result<()> {
    print(&summary_text(summary, json)?)
}

pub(crate) fn summary_text(summary: &Summary, json: bool) -> Result<String> {
    match json {
        true => Ok(format!("{}\n", told(summary)?)),
        false => Ok(report::summary(summary)),
    }
}
