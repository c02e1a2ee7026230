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
//! change at any time. A module imports modules of lower lines only; each line of packages is in
//! `crates`, and their own `lib.rs` lists their modules.
//!
//! ```text
//! main
//! cli
//! bench  browse  progress    bench: `nigh bench`; browse: a store as pages of a browser
//! log  report  roll_up
//! metrics
//! nigh-live                  live, look: clusters that a process keeps right; what a user asks of a week
//! nigh-export                export: inputs written again
//! nigh-studies               studies, job_file, avoid, figures
//! nigh-bench                 what benchmarks share, with the feature `bench`
//! nigh-week | nigh-launch    operators, jobs: timely appears from here up | launch: processes
//! nigh-store                 config, state, plan, summary, mirror, query
//! nigh-tables | nigh-display tables, stats | sheet, plot, markup
//! nigh-readers               readers, objects (the client of object stores), reading, units
//! nigh-exchange              how workers exchange records; watch
//! nigh-text                  features, method, text
//! nigh-kernels               structures, kernels, records
//! nigh-derive | nigh-domains #[derive(Table)], which declares a table | the domain of a host
//! ```
//!
//! To read the source, begin with `jobs/cluster.rs` in `crates/week`: it is the program from top to
//! bottom.

#[doc(hidden)]
pub use nigh_display::{markup, plot, sheet};
#[doc(hidden)]
pub use nigh_exchange::watch;
#[doc(hidden)]
pub use nigh_export::export;
#[doc(hidden)]
pub use nigh_kernels::structures;
pub use nigh_kernels::{kernels, records};
#[doc(hidden)]
pub use nigh_launch::launch;
#[doc(hidden)]
pub use nigh_live::{live, look};
#[doc(hidden)]
pub use nigh_readers::objects;
pub use nigh_readers::readers;
pub use nigh_store::config;
#[doc(hidden)]
pub use nigh_store::{mirror, plan, query, state, summary};
#[doc(hidden)]
pub use nigh_studies::{avoid, figures, job_file, studies};
#[doc(hidden)]
pub use nigh_tables::stats;
pub use nigh_tables::tables;
pub use nigh_text::{features, text};
#[doc(hidden)]
pub use nigh_week::{jobs, operators};

#[cfg(feature = "bench")]
#[doc(hidden)]
pub mod bench;
#[cfg(feature = "live")]
#[doc(hidden)]
pub mod browse;
#[doc(hidden)]
pub mod cli;
#[doc(hidden)]
pub mod log;
#[doc(hidden)]
pub mod metrics;
#[doc(hidden)]
pub mod progress;
#[doc(hidden)]
pub mod report;
pub mod roll_up;
