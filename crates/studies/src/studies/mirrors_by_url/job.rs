//! The `[mirrors-by-url]` job: hosts that mirror each other, found from URLs alone and tested by
//! some pages (Bharat and Broder 1999).

use std::num::NonZeroU32;
use std::path::PathBuf;

use nigh_readers::units::Share;
use serde::{Deserialize, Serialize};

use crate::records::Week;

/// The `[mirrors-by-url]` table: ranks pairs of hosts by what their URLs have in common, and tests
/// the best ones.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct MirrorsByUrl {
    /// The store with the week, and for the tables. Required, here or as `--store`. With `lists`,
    /// it need not exist.
    pub store: Option<PathBuf>,
    /// The week. Default: the store's last; none, if the store has no week and there are `lists`.
    pub week: Option<Week>,
    /// Which URLs of the week count. Default: `pages-and-links`.
    pub urls: UrlChoice,
    /// Further URLs: files with one URL in each line, or CDX indexes, plain or compressed; paths
    /// and globs. Default: none.
    pub lists: Vec<String>,
    /// The URLs that a host has, at least. Default: 100, as in the study.
    pub least_urls: NonZeroU32,
    /// The paths that are sampled of a host; one more each time that it has twice as many URLs.
    /// Default: 20, as in the study.
    pub paths: NonZeroU32,
    /// A feature of more hosts than this is passed over. Default: 20, as in the study.
    pub most_hosts: u32,
    /// Whether each sampled path is a feature as a whole, too. Default: true; not in the study.
    pub whole_paths: bool,
    /// The candidates that are listed and tested, the best ones. Default: 50,000.
    pub most_candidates: NonZeroU32,
    /// The paths of each host of a pair that are tested on the other one, besides the root.
    /// Default: 9, as in the study.
    pub tests: NonZeroU32,
    /// The similarity of two pages, from which on it is high. Default: 0.5, as in the study.
    pub similar: Share,
    /// What it means if nothing is known of a page: neither the page, nor a redirect, nor status
    /// 404 or 410. Default: `unknown`.
    pub unfetched: Unfetched,
    /// Crawl files with pages that were fetched because the table `probes` asks for them. Default:
    /// none.
    pub input: Vec<String>,
}

impl Default for MirrorsByUrl {
    fn default() -> MirrorsByUrl {
        let number = |number| NonZeroU32::new(number).unwrap_or(NonZeroU32::MIN);
        MirrorsByUrl {
            store: None,
            week: None,
            urls: UrlChoice::default(),
            lists: Vec::new(),
            least_urls: number(100),
            paths: number(20),
            most_hosts: 20,
            whole_paths: true,
            most_candidates: number(50_000),
            tests: number(9),
            similar: Share(0.5),
            unfetched: Unfetched::default(),
            input: Vec::new(),
        }
    }
}

/// Which URLs of a week count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum UrlChoice {
    /// Those of its pages, and those that they link to, unless an earlier week had them and they
    /// are gone now.
    #[default]
    PagesAndLinks,
    /// Those of its pages.
    Pages,
}

/// What it means if nothing is known of a page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Unfetched {
    /// Nothing: its test is not made, and it is a row of `probes`.
    #[default]
    Unknown,
    /// The host does not have it: the study's rule, for a crawl of whole hosts.
    Failed,
}

/// The largest `most-hosts`: a feature of n hosts makes n (n - 1) / 2 records.
const MOST_HOSTS: u32 = 1000;
/// The largest `paths`.
const PATHS: u32 = 1000;

impl MirrorsByUrl {
    /// Checks the rules that the types do not say.
    pub(super) fn check_values(&self) -> Result<(), String> {
        if !(2..=MOST_HOSTS).contains(&self.most_hosts) {
            return Err(format!("most-hosts = {}: allowed is 2 to {MOST_HOSTS}", self.most_hosts));
        }
        if self.paths.get() > PATHS {
            return Err(format!("paths = {}: allowed is 1 to {PATHS}", self.paths));
        }
        if self.tests > self.paths {
            return Err(format!("tests = {}: allowed is at most `paths`, which is {}", self.tests, self.paths));
        }
        if self.similar.0 <= 0.0 {
            return Err(format!("similar = {}: allowed is more than 0, up to 1", self.similar.0));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::job_file::AnyJob;

    #[test]
    fn wrong_values_are_named() {
        let job = |text: &str| {
            toml::from_str::<AnyJob>(&format!("[mirrors-by-url]\n{text}")).map_err(|error| error.to_string())
        };
        assert!(job("urls = \"pages\"\nunfetched = \"failed\"\nlists = [\"urls.txt\"]\n").is_ok());
        for (text, wanted) in [
            ("most-hosts = 1\n", "2 to 1000"),
            ("paths = 1001\n", "1 to 1000"),
            ("paths = 5\n", "tests = 9"),
            ("similar = 0\n", "similar = 0"),
            ("tests = 0\n", "nonzero"),
            ("unfetched = \"maybe\"\n", "`failed`"),
            ("list = []\n", "`lists`"),
        ] {
            let error = job(text).unwrap_err();
            assert!(error.contains(wanted) && error.contains("line "), "{text}: {error}");
        }
    }
}
