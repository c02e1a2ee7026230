//! A store of a made web.

use std::path::PathBuf;

use super::{COLUMNS, Crawl, Web};
use crate::program::{job, run_well};

/// A store with the weeks of a made web, from WARC files or from JSON Lines, which have no
/// redirects.
pub struct WebStore {
    pub folder: tempfile::TempDir,
}

impl WebStore {
    pub fn new(web: &Web, weeks: usize, is_warc: bool) -> WebStore {
        let made = WebStore { folder: tempfile::tempdir().unwrap() };
        (0..weeks).for_each(|number| made.add(&web.week(number), is_warc));
        made
    }

    /// Adds a week.
    pub fn add(&self, crawl: &Crawl, is_warc: bool) {
        let folder = self.folder.path().join(crawl.date);
        std::fs::create_dir(&folder).unwrap();
        let kind = if self.path().exists() { "weekly" } else { "cluster" };
        let (name, columns) = match is_warc {
            true => {
                crawl.write_warc(&folder);
                ("crawl.warc", format!("[{kind}]\n"))
            }
            false => {
                crawl.write_jsonl(&folder);
                ("pages.jsonl", COLUMNS.replace("cluster", kind))
            }
        };
        let (job, input) = (job(&folder, &columns), folder.join(name));
        let (input, store) = (input.to_str().unwrap().to_owned(), self.path());
        let flags = ["-q", "--week", crawl.date, "--input", &input, "--store", store.to_str().unwrap()];
        run_well(&[&["run", job.to_str().unwrap()][..], &flags].concat());
    }

    pub fn path(&self) -> PathBuf {
        self.folder.path().join("store")
    }
}
