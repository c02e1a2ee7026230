//! Job files: what to compute. The outer table of a job file is its kind; all of its keys are here, with their defaults.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::path::PathBuf;

use nigh_readers::reading::Reading;
use nigh_readers::units::{Bytes, Share};
use nigh_text::method::Method;
use serde::{Deserialize, Serialize};

use super::collections::{Collections, checked_collections};
use super::mirrors_by_url::{MirrorsByUrl, checked_mirrors_by_url};
use super::mode::{Absent, Mode};
use super::overlap::{Overlap, checked_overlap};
use super::paragraphs::{Paragraphs, checked_paragraphs};
use super::policy::Policy;
use super::samplers::{Samplers, checked_samplers};
use crate::records::Week;
use crate::structures::CompactSort as _;

/// A job file: what to compute. Its outer table is its kind.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[allow(clippy::large_enum_variant, reason = "a run has one job")]
pub enum Job {
    /// Clusters a week: the first of a store, or a later one.
    #[serde(alias = "weekly")]
    Cluster(Cluster),
    /// Makes the table `chunks` of a committed week.
    Chunks(Chunks),
    /// Measures how the clusters of a store change from week to week.
    Evolution(Evolution),
    /// Finds hosts that mirror each other, by the content of their pages.
    Mirrors(Mirrors),
    /// Finds the pairs of pages or hosts that share chunks of text.
    #[serde(deserialize_with = "checked_overlap")]
    Overlap(Overlap),
    /// Finds pages that are copied together.
    #[serde(deserialize_with = "checked_collections")]
    Collections(Collections),
    /// Finds hosts that mirror each other, by their URLs.
    #[serde(deserialize_with = "checked_mirrors_by_url")]
    MirrorsByUrl(MirrorsByUrl),
    /// Finds duplicates by their paragraphs, and where in the web they are.
    #[serde(deserialize_with = "checked_paragraphs")]
    Paragraphs(Paragraphs),
    /// Compares samplers of shingles with exact resemblance.
    #[serde(deserialize_with = "checked_samplers")]
    Samplers(Samplers),
}

/// A job that reads committed weeks of a store, and writes tables about them into a folder of its own.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Study {
    /// Measures how the clusters of a store change from week to week.
    Evolution(Evolution),
    /// Finds hosts that mirror each other, by the content of their pages.
    Mirrors(Mirrors),
    /// Finds the pairs of pages or hosts that share chunks of text.
    Overlap(Overlap),
    /// Finds pages that are copied together.
    Collections(Collections),
    /// Finds hosts that mirror each other, by their URLs.
    MirrorsByUrl(MirrorsByUrl),
    /// Finds duplicates by their paragraphs, and where in the web they are.
    Paragraphs(Paragraphs),
    /// Compares samplers of shingles with exact resemblance.
    Samplers(Samplers),
}

impl Study {
    /// The folder of its tables, which has the name of the job.
    pub fn folder(&self) -> &'static str {
        match self {
            Study::Evolution(_) => "evolution",
            Study::Mirrors(_) => "mirrors",
            Study::Overlap(_) => "overlap",
            Study::Collections(_) => "collections",
            Study::MirrorsByUrl(_) => "mirrors-by-url",
            Study::Paragraphs(_) => "paragraphs",
            Study::Samplers(_) => "samplers",
        }
    }

    /// The store with the weeks, if the job names it.
    pub fn store(&self) -> Option<&PathBuf> {
        match self {
            Study::Evolution(job) => job.store.as_ref(),
            Study::Mirrors(job) => job.store.as_ref(),
            Study::Overlap(job) => job.store.as_ref(),
            Study::Collections(job) => job.store.as_ref(),
            Study::MirrorsByUrl(job) => job.store.as_ref(),
            Study::Paragraphs(job) => job.store.as_ref(),
            Study::Samplers(job) => job.store.as_ref(),
        }
    }

    /// Names the store.
    pub fn set_store(&mut self, store: PathBuf) {
        match self {
            Study::Evolution(job) => job.store = Some(store),
            Study::Mirrors(job) => job.store = Some(store),
            Study::Overlap(job) => job.store = Some(store),
            Study::Collections(job) => job.store = Some(store),
            Study::MirrorsByUrl(job) => job.store = Some(store),
            Study::Paragraphs(job) => job.store = Some(store),
            Study::Samplers(job) => job.store = Some(store),
        }
    }

    /// The first and the last week; `None` means those of the store.
    pub fn weeks(&self) -> (Option<Week>, Option<Week>) {
        match self {
            Study::Evolution(job) => (job.first, job.last),
            Study::Mirrors(job) => (job.first, job.last),
            Study::Overlap(job) => (job.week, job.week),
            Study::MirrorsByUrl(job) => (job.week, job.week),
            Study::Paragraphs(job) => (job.week, job.week),
            Study::Samplers(job) => (job.week, job.week),
            // The weeks before say which pages are old, and those behind judge.
            Study::Collections(_) => (None, None),
        }
    }

    /// Names the week, if the job is about one; returns whether it is.
    pub fn set_week(&mut self, week: Week) -> bool {
        let week_of_job = match self {
            Study::Evolution(_) | Study::Mirrors(_) => return false,
            Study::Overlap(job) => &mut job.week,
            Study::Collections(job) => &mut job.week,
            Study::MirrorsByUrl(job) => &mut job.week,
            Study::Paragraphs(job) => &mut job.week,
            Study::Samplers(job) => &mut job.week,
        };
        *week_of_job = Some(week);
        true
    }

    /// The names of crawl files in the job, if it reads some; none for a job that reads tables only.
    pub fn input_mut(&mut self) -> Option<&mut Vec<String>> {
        match self {
            Study::MirrorsByUrl(job) => Some(&mut job.input),
            Study::Samplers(job) => Some(&mut job.input),
            Study::Evolution(_)
            | Study::Mirrors(_)
            | Study::Overlap(_)
            | Study::Collections(_)
            | Study::Paragraphs(_) => None,
        }
    }
}

/// The `[cluster]` table, also written `[weekly]`: reads a crawl, and adds the tables of its week to a store, which the first week begins.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct Cluster {
    /// The week of the crawl, `YYYY-MM-DD`, later than all weeks of the store. Required, here or as `--week`.
    pub week: Option<Week>,
    /// The folder of all tables, or `s3://BUCKET/PREFIX`; later weeks are added to it. Required, here or as `--store`.
    pub store: Option<PathBuf>,
    /// Crawl files: paths, folders, globs, listings (`*.paths`, `*.paths.gz`), URLs and crawls of
    /// Common Crawl (`cc:CC-MAIN-2024-10`). Required, here or as `--input`.
    pub input: Vec<String>,
    /// The largest share of bad records, 0 to 1; above it the job fails with exit code 3. Default: 0.05.
    pub max_reject_share: Share,
    /// The largest share of revisits whose page is not known among the pages of the crawl, 0 to 1;
    /// above it the job fails with exit code 3. Default: 0.05.
    pub max_unknown_share: Share,
    /// Whether a week without a page is made; otherwise the job fails. Default: false, or `--allow-empty`.
    pub allow_empty: bool,
    /// The size of a wave: input is committed in parts of about this many bytes, as stored. Default: 16 GiB.
    pub wave_bytes: Bytes,
    /// Whether the accuracy of the clusters is measured by samples, some of whose pages are read again. Default: true, or `--no-accuracy`.
    pub accuracy: bool,
    /// Which document of a cluster is `canonical` in the tables, and stays if duplicates are removed. Default: the first.
    pub canonical: Policy,
    /// What becomes of the pages of the week before that the crawl does not have. Default: they are missing. Also as `--absent`.
    pub absent: Absent,
    /// How the clusters of a later week are computed. Default: `auto`.
    pub mode: Mode,
    /// How pages are read.
    pub read: Reading,
    /// What is kept of pages besides their features.
    pub keep: Keep,
    /// The numbers of the study. Default: those of the store, whose first week has those of the study; others than the store's are refused.
    pub method: Option<Method>,
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
            canonical: Policy::First,
            absent: Absent::Missing,
            mode: Mode::default(),
            read: Reading::default(),
            keep: Keep::default(),
            method: None,
        }
    }
}

impl Cluster {
    /// The fields that have other values in another job, with these: `canonical = "longest"`, in the order of their names. The week, the
    /// store and the input are not compared.
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
    pub week: Option<Week>,
    /// The store with the week. Required, here or as `--store`.
    pub store: Option<PathBuf>,
    /// The crawl files that the week was made from, as for `[cluster]`. Required, here or as `--input`.
    pub input: Vec<String>,
}

/// The `[evolution]` table: reads the weeks of a store, and writes tables about how their clusters change.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct Evolution {
    /// The store with the weeks. Required, here or as `--store`.
    pub store: Option<PathBuf>,
    /// The first week to compare. Default: the store's first.
    pub first: Option<Week>,
    /// The last week to compare. Default: the store's last.
    pub last: Option<Week>,
}

/// The `[mirrors]` table: reads the weeks of a store, and writes tables about hosts that mirror each other.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct Mirrors {
    /// The store with the weeks. Required, here or as `--store`.
    pub store: Option<PathBuf>,
    /// The first week. Default: the store's first.
    pub first: Option<Week>,
    /// The last week. Default: the store's last.
    pub last: Option<Week>,
    /// The pages that two hosts have in common, at least. Default: 10, as in the study.
    pub least_pages: NonZeroU32,
    /// Which pairs of a cluster are counted. Default: all.
    pub pairs: HostPairs,
    /// Whether hosts without an address are left out. Default: yes, as in the study, if some page of the week has an address.
    pub unresolved: Unresolved,
    /// A file with the addresses of hosts, for crawls that do not have them: on each line a host, a tab, and addresses with commas
    /// between them. Default: none.
    pub addresses: Option<PathBuf>,
    /// The hosts that may have enough pages in one cluster and still be paired with each other. Default: 1000.
    pub farm: NonZeroU32,
    /// The most pairs of hosts to look at; a job of more stops before it looks at any. Default: 1,000,000,000.
    pub max_pairs: u64,
}

impl Default for Mirrors {
    fn default() -> Mirrors {
        Mirrors {
            store: None,
            first: None,
            last: None,
            least_pages: const { NonZeroU32::new(10).expect("above 0") },
            pairs: HostPairs::default(),
            unresolved: Unresolved::default(),
            addresses: None,
            farm: const { NonZeroU32::new(1000).expect("above 0") },
            max_pairs: 1_000_000_000,
        }
    }
}

/// Which pairs of the hosts of a cluster are counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HostPairs {
    /// Any two hosts.
    #[default]
    All,
    /// One host with each other one, as in the study.
    Root,
}

/// What becomes of pairs with a host that has no address.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Unresolved {
    /// They are no mirrors.
    #[default]
    Drop,
    /// They are like other pairs.
    Keep,
}

/// The `[cluster.keep]` or `[weekly.keep]` table: what is kept of pages besides their features.
///
/// Each week of a store may keep something else, because clusters do not depend on it. So this is not part of the method.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct Keep {
    /// Whether the table `chunks` gets the hashes of lines and paragraphs of every page. Default: true.
    pub chunks: bool,
    /// Whether the shingles of every page are kept on disk until the week is made, 8 bytes a word, so that `verify = "exact"` reads them and
    /// not the crawl files again. Default: false.
    pub shingles: bool,
}

impl Default for Keep {
    fn default() -> Keep {
        Keep { chunks: true, shingles: false }
    }
}
