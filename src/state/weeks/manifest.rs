//! What a store holds: its method and its committed weeks, in one small file that is replaced whole.

use std::path::Path;

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};

use super::journal::Journal;
use crate::config::Method;
use crate::records::Week;
use crate::state::durable::replace;

/// The version of the layout of a store and of the meaning of its columns.
pub const FORMAT: u32 = 4;

/// The content of `manifest.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// The version of the layout.
    pub format: u32,
    /// The program that wrote it last.
    pub version: String,
    /// The parameters that every week of the store was computed with.
    pub method: Method,
    /// Their hash.
    pub method_hash: String,
    /// What is left of weeks that were removed.
    pub removed: Option<RemovedWeeks>,
    /// The committed weeks, in order.
    pub weeks: Vec<CommittedWeek>,
}

/// What is left of weeks that were removed: their URLs keep their ids, and their clusters' names are not given again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RemovedWeeks {
    /// The first week that was not removed.
    pub before: Week,
    /// Ids that were given to URLs, by shard.
    pub urls: Vec<u64>,
    /// Clusters that were named, by shard.
    pub named: Vec<u64>,
}

/// A committed week.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CommittedWeek {
    /// Its date.
    pub week: Week,
    /// The hash of what it was made from, the weeks before it included.
    pub key: String,
    /// Its pages.
    pub documents: u64,
    /// Ids given in it by shard, to URLs first seen then: the rows of its `urls`, and those that were deleted.
    pub urls: Vec<u64>,
    /// Clusters named in it, by shard.
    pub named: Vec<u64>,
}

/// Everything about a committed week that its tables do not hold: the content of `week.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WholeWeek {
    /// Its row of the manifest.
    pub committed: CommittedWeek,
    /// The parameters that it was computed with.
    pub method: Method,
    /// What it was made from, its segments and its counts.
    pub journal: Journal,
}

impl WholeWeek {
    /// Reads the file at `path`; `None` where there is none.
    ///
    /// # Errors
    /// Names the file that cannot be read or is damaged.
    pub fn read(path: &Path) -> Result<Option<WholeWeek>> {
        match std::fs::read_to_string(path) {
            Ok(text) => serde_json::from_str(&text).map(Some).with_context(|| format!("{} is damaged", path.display())),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error).with_context(|| format!("cannot read {}", path.display())),
        }
    }

    /// Writes the file at `path`, whole or not at all.
    ///
    /// # Errors
    /// Names the file that cannot be written.
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

    /// Whether a week would be one of those that were removed.
    pub fn has_removed(&self, week: Week) -> bool {
        self.removed.as_ref().is_some_and(|removed| week < removed.before)
    }

    /// Whether a week is committed.
    pub fn has(&self, week: Week) -> bool {
        self.weeks.iter().any(|known| known.week == week)
    }

    /// Reads the manifest at `path`; `None` where there is none.
    ///
    /// # Errors
    /// Names the file that is damaged, or was written by a newer program.
    pub fn read(path: &Path) -> Result<Option<Manifest>> {
        let text = match std::fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error).with_context(|| format!("cannot read {}", path.display())),
        };
        Manifest::parse(&text, &path.display().to_string()).map(Some)
    }

    /// The manifest in a text, which is that of the file or object `name`.
    ///
    /// # Errors
    /// As [`Manifest::read`].
    pub fn parse(text: &str, name: &str) -> Result<Manifest> {
        #[derive(Deserialize)]
        struct Version {
            format: u32,
        }
        let damaged = || format!("{name} is damaged: restore it, or take another --store");
        let Version { format } = serde_json::from_str(text).with_context(damaged)?;
        if format != FORMAT {
            bail!(
                "{name} has format {format}, this program ({}) knows format {FORMAT}: use the program that made the store, or another --store",
                env!("CARGO_PKG_VERSION")
            );
        }
        serde_json::from_str(text).with_context(damaged)
    }

    /// Writes the manifest to `path`, whole or not at all.
    ///
    /// # Errors
    /// Names the file that cannot be written.
    pub fn write(&self, path: &Path) -> Result<()> {
        let mut text = serde_json::to_string_pretty(self).context("a manifest is plain data")?;
        text.push('\n');
        replace(path, text.as_bytes())
    }

    /// Refuses a method that differs from the store's.
    ///
    /// # Errors
    /// Gives both values of every parameter that differs, and what to do.
    pub fn check(&self, store: &Path, method: &Method) -> Result<()> {
        if self.method == *method {
            return Ok(());
        }
        let (ours, theirs) = (self.method.to_string(), method.to_string());
        let differing: Vec<String> = ours
            .split(", ")
            .zip(theirs.split(", "))
            .filter(|(ours, theirs)| ours != theirs)
            .map(|(ours, theirs)| format!("{ours} in the store, {theirs} in the job"))
            .collect();
        bail!(
            "the store {} was made with other parameters ({}): change the job's [method], or take another --store",
            store.display(),
            differing.join("; ")
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manifest_survives_its_file() {
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
