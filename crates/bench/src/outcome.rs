//! The outcome of a benchmark: its report, as text or as JSON, and whether its results were right.

use std::fmt::Display;

use anyhow::{Context, Result};
use serde::Serialize;

/// What a benchmark prints, and whether its results were right.
pub struct BenchOutcome {
    /// False if the results differ from those of the single thread, or records were lost: a fault
    /// in this program.
    is_correct: bool,
    /// The report: lines of text, or one line of JSON.
    report: String,
}

impl BenchOutcome {
    /// The outcome of a benchmark with this report, which is written as one JSON object if `json`
    /// is set.
    ///
    /// # Errors
    /// Only if the report cannot be written as JSON, which does not happen for plain data.
    pub fn new(is_correct: bool, report: &(impl Serialize + Display), json: bool) -> Result<BenchOutcome> {
        let report = if json {
            format!("{}\n", serde_json::to_string(report).context("figures are plain data")?)
        } else {
            report.to_string()
        };
        Ok(BenchOutcome { is_correct, report })
    }

    /// False if the results were wrong.
    pub fn is_correct(&self) -> bool {
        self.is_correct
    }

    /// The report.
    pub fn report(&self) -> &str {
        &self.report
    }
}
