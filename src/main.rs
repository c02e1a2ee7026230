//! The program `nigh`: clusters near-duplicate web pages of weekly crawls, and writes the clusters
//! as Parquet tables.
//!
//! Everything is in the library; this file is its table of contents, in reading order:
//!
//! - [`nigh::cli`]: the subcommands, their flags, and the exit code;
//! - [`nigh::job_file`]: job files, which say what to compute; [`nigh::config`]: their jobs, and
//!   config files, which say where;
//! - [`nigh::plan`]: the plan of a run, which all processes share;
//! - [`nigh::jobs`]: what a run computes, from top to bottom: start with [`nigh::jobs::cluster`];
//! - [`nigh::studies`]: jobs that read committed weeks, a folder each;
//! - [`nigh::readers`], [`nigh::text`], [`nigh::features`]: from crawl files to pages, to words, to
//!   feature vectors;
//! - [`nigh::operators`], [`nigh::structures`]: the steps of the dataflow, and the data structures
//!   that they use;
//! - [`nigh::tables`], [`nigh::state`]: the Parquet tables, and the store that holds the tables of
//!   all weeks;
//! - [`nigh::mirror`], [`nigh::objects`]: a store in a bucket, and the client of object stores;
//! - [`nigh::launch`]: starting, watching and restarting the processes of a run, on one machine or
//!   on a pool;
//! - [`nigh::stats`], [`nigh::summary`], [`nigh::report`]: what a run found, as numbers and as
//!   text;
//! - [`nigh::progress`], [`nigh::watch`], [`nigh::log`], [`nigh::metrics`]: what a run reports
//!   while it works;
//! - [`nigh::kernels`]: the inner loops, by instruction set;
//! - [`nigh::records`]: the types that everything shares: documents, URLs, weeks;
//! - `nigh::bench`: the benchmarks, with the feature `bench`.

use std::process::ExitCode;

use mimalloc::MiMalloc;

#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

fn main() -> ExitCode {
    nigh::cli::main()
}
