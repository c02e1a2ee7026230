//! The jobs that make weeks and tables of weeks, with all of their keys and the defaults.

use std::collections::BTreeMap;
use std::path::PathBuf;

use nigh_readers::reading::Reading;
use nigh_readers::units::{Bytes, Share};
use nigh_text::method::GivenMethod;
use serde::{Deserialize, Serialize};

use super::canonical::Canonical;
use super::mode::{Absent, Mode};
use super::week_name::WeekName;
use crate::structures::CompactSort as _;

/// The `[cluster]` table, also written `[weekly]`: reads a crawl, and adds the tables of its week
/// to a store, which the first week begins.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct Cluster {
    /// The week of the crawl, later than all weeks of the store: `YYYY-MM-DD`, `today` or `monday`.
    /// Also as `--week`. Default: today, or the day after the store's last week.
    pub week: Option<WeekName>,
    /// The folder of all tables, or `s3://BUCKET/PREFIX`; later weeks are added to it. Required,
    /// here or as `--store`.
    pub store: Option<PathBuf>,
    /// Crawl files: paths, folders, globs, listings (`*.paths`, `*.paths.gz`), URLs and crawls of
    /// Common Crawl (`cc:CC-MAIN-2024-10`). Required, here or as `--input`.
    pub input: Vec<String>,
    /// The largest share of bad records, 0 to 1; above it the job fails with exit code 3. Default:
    /// 0.05.
    pub max_reject_share: Share,
    /// The largest share of revisits whose page is not known among the pages of the crawl, 0 to 1;
    /// above it the job fails with exit code 3. Default: 0.05.
    pub max_unknown_share: Share,
    /// Whether a week without a page is made; otherwise the job fails. Default: false, or
    /// `--allow-empty`.
    pub allow_empty: bool,
    /// The size of a wave: input is committed in parts of about this many bytes, as stored.
    /// Default: 16 GiB.
    pub wave_bytes: Bytes,
    /// Whether the accuracy of the clusters is measured by samples, some of whose pages are read
    /// again. Default: true, or `--no-accuracy`.
    pub accuracy: bool,
    /// Which documents of a cluster are `canonical` in the tables, and stay if duplicates are
    /// removed. Default: the first.
    pub canonical: Canonical,
    /// What becomes of the pages of the week before that the crawl does not have. Default: they are
    /// missing. Also as `--absent`.
    pub absent: Absent,
    /// How the clusters of a later week are computed. Default: `auto`.
    pub mode: Mode,
    /// How pages are read.
    pub read: Reading,
    /// What is kept of pages besides their features.
    pub keep: Keep,
    /// The numbers of the study. Default: those of the store, whose first week has those of the
    /// study; others than the store's are refused.
    pub method: Option<GivenMethod>,
}

impl Default for Cluster {
    fn default() -> Cluster {
        Cluster {
            week: None,
            store: None,
            input: Vec::new(),
            max_reject_share: Share(0.05),
            max_unknown_share: Share(0.05),
            allow_empty: false,
            wave_bytes: Bytes(16 << 30),
            accuracy: true,
            canonical: Canonical::default(),
            absent: Absent::Missing,
            mode: Mode::default(),
            read: Reading::default(),
            keep: Keep::default(),
            method: None,
        }
    }
}

/// The job file of a week: its one table.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum ClusterFile<T> {
    #[serde(alias = "weekly")]
    Cluster(T),
}

impl Cluster {
    /// The text of the job file, as it is kept with a week.
    pub fn to_text(&self) -> String {
        let text = toml::to_string(&ClusterFile::Cluster(self));
        text.unwrap_or_else(|error| format!("# the job could not be written down: {error}\n"))
    }

    /// Reads the job file that is kept with a week.
    ///
    /// # Errors
    /// If it is another job, or not one.
    pub fn of_text(text: &str) -> Result<Cluster, toml::de::Error> {
        toml::from_str(text).map(|ClusterFile::Cluster(job)| job)
    }

    /// The fields that have other values in another job, with these: `canonical = "longest"`, in
    /// the order of their names. The week, the store and the input are not compared.
    pub fn fields_unlike(&self, other: &Cluster) -> Vec<(String, String)> {
        fn add(prefix: &str, table: toml::Table, fields: &mut BTreeMap<String, String>) {
            for (name, value) in table {
                match value {
                    toml::Value::Table(inner) => add(&format!("{prefix}{name}."), inner, fields),
                    value => drop(fields.insert(format!("{prefix}{name}"), value.to_string())),
                }
            }
        }
        let fields = |job: &Cluster| {
            let mut fields = BTreeMap::new();
            add("", toml::Table::try_from(job).unwrap_or_default(), &mut fields);
            fields.retain(|name, _| !["week", "store", "input"].contains(&name.as_str()));
            fields
        };
        let (own, mut others) = (fields(self), fields(other));
        let is_unlike = |(name, value): (String, String)| {
            let other = others.remove(&name);
            (other.as_ref() != Some(&value)).then(|| (name, other.unwrap_or_else(|| "none".to_owned())))
        };
        let mut unlike: Vec<_> = own.into_iter().filter_map(is_unlike).collect();
        unlike.extend(others);
        unlike.sort_items();
        unlike
    }
}

/// The `[chunks]` table: reads the crawl of a committed week again, and makes its table `chunks`.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct Chunks {
    /// The week, which the store has. Required, here or as `--week`.
    pub week: Option<WeekName>,
    /// The store with the week. Required, here or as `--store`.
    pub store: Option<PathBuf>,
    /// The crawl files that the week was made from, as for `[cluster]`. Required, here or as
    /// `--input`.
    pub input: Vec<String>,
}

/// The `[cluster.keep]` or `[weekly.keep]` table: what is kept of pages besides their features.
///
/// Each week of a store may keep something else, because clusters do not depend on it. So this is
/// not part of the method.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct Keep {
    /// Whether the table `chunks` gets the hashes of lines and paragraphs of every page. Default:
    /// true.
    pub chunks: bool,
    /// Whether the shingles of every page are kept on disk until the week is made, 8 bytes a word,
    /// so that `verify = "exact"` reads them and not the crawl files again. Default: false.
    pub shingles: bool,
}

impl Default for Keep {
    fn default() -> Keep {
        Keep { chunks: true, shingles: false }
    }
}
