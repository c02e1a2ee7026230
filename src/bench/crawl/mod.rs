//! Benchmarks of the stages from crawl files to features, on one machine and without a dataflow.
//!
//! In reading order: `setting` (arguments), `stages` (the benchmarks: reading, HTML, text,
//! features), `texts` (documents to measure with), `figure_rows` (timing, and the figures as rows).

mod figure_rows;
mod setting;
mod stages;
mod texts;

pub(crate) use self::figure_rows::{StageReport, WorkDone};
pub(crate) use self::setting::{CrawlArgs, CrawlBenchArgs, Setting, TextArgs, WorkerArgs};
pub(crate) use self::stages::{crawl_once, features, html, read, text};
