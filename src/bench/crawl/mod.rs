//! Benchmarks of the stages from crawl files to features, on one machine and without a dataflow.
//!
//! In reading order: `setting` (arguments), `stages` (the benchmarks: reading, HTML, text,
//! features), `texts` (documents to measure with), `rows` (timing, and the figures as rows).

mod rows;
mod setting;
mod stages;
mod texts;

pub(crate) use self::rows::{StageReport, WorkDone};
pub(crate) use self::setting::{CrawlArgs, CrawlBenchArgs, Setting, TextArgs, WorkerArgs};
pub(crate) use self::stages::{crawl_once, features, html, read, text};
