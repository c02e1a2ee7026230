//! `manifest.json` and `week.json`: what a store holds.
//!
//! `STORE/manifest.json` is one JSON object, replaced atomically by each commit, right after the week got its folder `week=DATE`. If a
//! week has this folder and is not listed, a kill came between the two, and the next run lists it.
//!
//! ```text
//! {
//!   "format": 4,                 of the layout and of the meaning of columns; another number is refused
//!   "version": "…",              of the program that wrote it last
//!   "method": {…},               parameters of all weeks; a job with others is refused
//!   "method_hash": "…",
//!   "removed": null,             or { "before": DATE, "urls": […], "named": […] }, numbers by shard
//!   "weeks": [                   in order
//!     { "week": DATE, "key": "…", "documents": 9, "urls": […], "named": […] }
//!   ]
//! }
//! ```
//!
//! `week=DATE/week.json` is one JSON object with the week's row of the manifest (`committed`), its `method`, and its `journal` (see
//! `journal.rs`). It lies with the tables, so that a commit is complete with one rename.

use std::path::Path;

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};

use super::journal::Journal;
use crate::config::Method;
use crate::records::Week;
use crate::state::durable::replace;

/// The version of the layout of a store, and of the meaning of its columns.
pub const FORMAT: u32 = 4;

/// The content of `manifest.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// The version of the layout.
    pub format: u32,
    /// The version of the program that wrote the file last.
    pub version: String,
    /// The parameters of every week of the store.
    pub method: Method,
    /// The hash of the parameters.
    pub method_hash: String,
    /// What is kept of removed weeks.
    pub removed: Option<RemovedWeeks>,
    /// The committed weeks, in order.
    pub weeks: Vec<CommittedWeek>,
}

/// What the manifest keeps of removed weeks, so that their URLs keep their ids and their cluster ids are not given again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RemovedWeeks {
    /// The first week that was not removed.
    pub before: Week,
    /// The number of URLs that got an id in them, by shard.
    pub urls: Vec<u64>,
    /// The number of cluster ids given in them, by shard.
    pub named: Vec<u64>,
}

/// A committed week.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CommittedWeek {
    /// The date that names the week.
    pub week: Week,
    /// The hash of what the week was made from, including the weeks before it.
    pub key: String,
    /// The number of documents.
    pub documents: u64,
    /// The number of URLs first seen in this week, by shard: the rows of its `urls`, and deleted URLs.
    pub urls: Vec<u64>,
    /// The number of cluster ids given in this week, by shard.
    pub named: Vec<u64>,
}

/// The content of `week.json`: everything about a complete week that its tables do not hold.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WholeWeek {
    /// The row of the manifest.
    pub committed: CommittedWeek,
    /// The parameters of the week.
    pub method: Method,
    /// What the week was made from, its segments and its counts.
    pub journal: Journal,
}

impl WholeWeek {
    /// Reads the file at `path`; `None` if it does not exist.
    ///
    /// # Errors
    /// If the file cannot be read or is damaged.
    pub fn read(path: &Path) -> Result<Option<WholeWeek>> {
        match std::fs::read_to_string(path) {
            Ok(text) => serde_json::from_str(&text).map(Some).with_context(|| format!("{} is damaged", path.display())),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error).with_context(|| format!("cannot read {}", path.display())),
        }
    }

    /// Writes the file at `path` atomically and durably.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn write(&self, path: &Path) -> Result<()> {
        replace(path, &serde_json::to_vec(self).context("a week is plain data")?)
    }
}

impl Manifest {
    /// The manifest of a store without weeks.
    pub fn new(method: &Method) -> Manifest {
        Manifest {
            format: FORMAT,
            version: env!("CARGO_PKG_VERSION").into(),
            method: method.clone(),
            method_hash: method.hash(),
            removed: None,
            weeks: Vec::new(),
        }
    }

    /// Whether a week is before the first week that was not removed, so that it cannot be added.
    pub fn has_removed(&self, week: Week) -> bool {
        self.removed.as_ref().is_some_and(|removed| week < removed.before)
    }

    /// Whether a week is committed.
    pub fn has(&self, week: Week) -> bool {
        self.weeks.iter().any(|committed| committed.week == week)
    }

    /// Reads the manifest at `path`; `None` if it does not exist.
    ///
    /// # Errors
    /// If the file cannot be read, is damaged, or has another format.
    pub fn read(path: &Path) -> Result<Option<Manifest>> {
        let text = match std::fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error).with_context(|| format!("cannot read {}", path.display())),
        };
        Manifest::parse(&text, &path.display().to_string()).map(Some)
    }

    /// Parses the text of the manifest; messages call it `name`, the path of the file or the URL of the object.
    ///
    /// # Errors
    /// As [`Manifest::read`].
    pub fn parse(text: &str, name: &str) -> Result<Manifest> {
        #[derive(Deserialize)]
        struct Version {
            format: u32,
        }
        let damaged = || format!("{name} is damaged: restore it, or use another --store");
        let Version { format } = serde_json::from_str(text).with_context(damaged)?;
        if format != FORMAT {
            bail!(
                "{name} has format {format}, and this program ({}) reads format {FORMAT}: use the program that made the store, or \
                 another --store",
                env!("CARGO_PKG_VERSION")
            );
        }
        serde_json::from_str(text).with_context(damaged)
    }

    /// Writes the manifest to `path` atomically and durably.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn write(&self, path: &Path) -> Result<()> {
        let mut text = serde_json::to_string_pretty(self).context("a manifest is plain data")?;
        text.push('\n');
        replace(path, text.as_bytes())
    }

    /// Checks that a job has the parameters of the store.
    ///
    /// # Errors
    /// If they differ; the message has both values of every parameter that differs, and what to do.
    pub fn check(&self, store: &Path, method: &Method) -> Result<()> {
        if self.method == *method {
            return Ok(());
        }
        let (of_store, of_job) = (self.method.to_string(), method.to_string());
        let differing: Vec<String> = of_store
            .split(", ")
            .zip(of_job.split(", "))
            .filter(|(of_store, of_job)| of_store != of_job)
            .map(|(of_store, of_job)| format!("{of_store} in the store, {of_job} in the job"))
            .collect();
        bail!(
            "the store {} was made with other parameters ({}): change the job's [method], or use another --store",
            store.display(),
            differing.join("; ")
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manifest_is_read_as_it_was_written() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("manifest.json");
        assert_eq!(Manifest::read(&path).unwrap(), None);
        let manifest = Manifest::new(&Method::default());
        manifest.write(&path).unwrap();
        assert_eq!(Manifest::read(&path).unwrap(), Some(manifest));
    }

    #[test]
    fn another_method_is_refused_with_both_values() {
        let manifest = Manifest::new(&Method::default());
        let other = Method { agreements: 3, words: 4, ..Method::default() };
        let error = manifest.check(Path::new("s"), &other).unwrap_err().to_string();
        assert!(error.contains("agreements = 2 in the store, agreements = 3 in the job"), "{error}");
        assert!(error.contains("words = 5 in the store") && !error.contains("features"), "{error}");
    }

    #[test]
    fn a_newer_format_and_a_cut_file_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("manifest.json");
        std::fs::write(&path, "{\"format\": 99, \"something\": 1}").unwrap();
        assert!(Manifest::read(&path).unwrap_err().to_string().contains("format 99"));
        std::fs::write(&path, format!("{{\"format\": {FORMAT}, \"ver")).unwrap();
        assert!(Manifest::read(&path).unwrap_err().to_string().contains("damaged"));
    }
}
