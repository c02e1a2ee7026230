//! `nigh` clusters near-duplicate web pages of weekly crawls. It reads the crawls, computes a
//! sketch of every page, groups pages with similar sketches and writes Parquet tables. One thread,
//! many threads and many processes write the same bytes.
//!
//! Most people use the program: `nigh run jobs/cluster.toml`. This library is for Rust programs
//! that need one of its parts: sketches ([`features`]), readers of crawl files ([`readers`]) or the
//! tables ([`tables`]). The words are explained in `docs/glossary.md`. The method is that of
//! published studies, cited where it is computed; *Fetterly 2004* is Fetterly, Manasse, Najork: On
//! the evolution of clusters of near-duplicate web pages.
//!
//! # Compare two texts
//!
//! The similarity of two texts is the number of shingles (five consecutive words) in both, divided
//! by the number in either. Two sketches of 84 features estimate it.
//!
//! ```
//! use nigh::{config::Method, features::Fingerprinter};
//!
//! let mut fingerprinter = Fingerprinter::of_method(&Method::default())?;
//! let first = fingerprinter.sketch("the quick brown fox jumps over the lazy dog while the cat sleeps");
//! let second = fingerprinter.sketch("The end: the quick brown fox jumps over the lazy dog while the cat sleeps");
//! assert!((0.3..1.0).contains(&first.similarity(&second)));
//! # anyhow::Ok(())
//! ```
//!
//! # Read a crawl
//!
//! [`readers::list`] finds the files and [`readers::open`] reads one: WARC, WET, ARC, JSONL,
//! Parquet, CSV, HTML or text, compressed or not.
//!
//! ```
//! use nigh::{config::Reading, readers};
//!
//! let reading = Reading::default();
//! for input in readers::list(&["tests/data/week-2024-01-08/*.warc.gz".to_owned()], &reading)? {
//!     let mut reader = readers::open(&input, &reading)?;
//!     while let Some(item) = reader.next()? {
//!         if let readers::Item::Page(page) = item {
//!             assert!(page.url.is_some_and(|url| url.starts_with("http")) && page.status == Some(200));
//!         }
//!     }
//! }
//! # anyhow::Ok(())
//! ```
//!
//! # Write and read a table
//!
//! A table is a row type; [`tables::Scan`] reads only the columns that it is asked for.
//!
//! ```
//! use nigh::tables::{Scan, SizeRow, Writer};
//!
//! let path = std::env::temp_dir().join(format!("nigh-sizes-{}.parquet", std::process::id()));
//! let mut writer = Writer::create(&path)?;
//! writer.push(SizeRow { level: "similar", size: 2, clusters: 3 })?;
//! writer.finish()?;
//! assert_eq!(Scan::open(&path, &["size"])?.batch()?.map(|batch| batch.num_rows()), Some(1));
//! std::fs::remove_file(&path)?;
//! # anyhow::Ok(())
//! ```
//!
//! # Layers
//!
//! The other modules are the program. They are public only because its tests import them: they can
//! change at any time. A module imports modules of lower lines only.
//!
//! ```text
//! main
//! cli
//! bench  browse  progress    browse: a store as pages of a browser
//! job_file  log  report  roll_up  avoid
//! live                       clusters that a process keeps right
//! look  figures              what a user asks of a week; the figures of the papers
//! studies                    jobs that read committed weeks: a folder each
//! launch | jobs  metrics     launch: processes; jobs: what makes a week; neither imports the other
//! query                      the rows of any table, as other programs read them
//! operators                  the dataflows: timely appears from here up
//! summary  plan  mirror      mirror: a local copy of a store in a bucket
//! state                      the store of all weeks
//! tables  stats
//! config  sheet  plot        sheet: lines and grids for a person; plot: plots as SVG, with markup
//! nigh-readers               the package in crates/readers: readers, objects (the client of object stores), reading, units
//! nigh-exchange              the package in crates/exchange: how workers exchange records; watch
//! nigh-text                  the package in crates/text: features, method, text
//! nigh-kernels               the package in crates/kernels: structures, kernels, records
//! nigh-derive                the package in crates/derive: #[derive(Table)], which declares a table
//! ```
//!
//! To read the source, begin with `jobs/cluster.rs`: it is the program from top to bottom.

// `#[derive(Table)]` names the traits of `tables` as other packages do.
extern crate self as nigh;

pub mod config;
pub mod tables;

#[doc(hidden)]
pub use nigh_exchange::watch;
#[doc(hidden)]
pub use nigh_kernels::structures;
pub use nigh_kernels::{kernels, records};
#[doc(hidden)]
pub use nigh_readers::objects;
pub use nigh_readers::readers;
pub use nigh_text::{features, text};

#[doc(hidden)]
pub mod avoid;
#[cfg(feature = "bench")]
#[doc(hidden)]
pub mod bench;
#[cfg(feature = "live")]
#[doc(hidden)]
pub mod browse;
#[doc(hidden)]
pub mod cli;
#[doc(hidden)]
pub mod export;
#[doc(hidden)]
pub mod figures;
#[doc(hidden)]
pub mod job_file;
#[doc(hidden)]
pub mod jobs;
#[doc(hidden)]
pub mod launch;
#[doc(hidden)]
pub mod live;
#[doc(hidden)]
pub mod log;
#[doc(hidden)]
pub mod look;
mod markup;
#[doc(hidden)]
pub mod metrics;
#[doc(hidden)]
pub mod mirror;
#[doc(hidden)]
pub mod operators;
#[doc(hidden)]
pub mod plan;
#[doc(hidden)]
pub mod plot;
#[doc(hidden)]
pub mod progress;
#[doc(hidden)]
pub mod query;
#[doc(hidden)]
pub mod report;
pub mod roll_up;
pub mod sheet;
#[doc(hidden)]
pub mod state;
#[doc(hidden)]
pub mod stats;
#[doc(hidden)]
pub mod studies;
#[doc(hidden)]
pub mod summary;
