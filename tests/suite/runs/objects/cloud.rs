//! Machines that work on a store in a bucket, and the commands that make one.

use std::collections::BTreeMap;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::program::{Ran, data, nigh, ran, tables};
use crate::seaweed::BucketServer;

pub const WEEKS: [&str; 2] = ["2024-01-08", "2024-01-15"];

/// Machines that work on a bucket of one server.
pub struct Cloud(BucketServer);

impl Deref for Cloud {
    type Target = BucketServer;

    fn deref(&self) -> &BucketServer {
        &self.0
    }
}

impl Cloud {
    pub fn start(wanted_by: &str) -> Option<Cloud> {
        BucketServer::start(wanted_by).map(Cloud)
    }

    /// A command of the program on a machine that works in a folder of its own.
    pub fn nigh(&self, machine: &Path, arguments: &[&str]) -> Command {
        let mut command = nigh(arguments);
        command.envs(self.environment()).env("XDG_CACHE_HOME", machine);
        command
    }

    pub fn run(&self, machine: &Path, arguments: &[&str]) -> Ran {
        ran(&mut self.nigh(machine, arguments))
    }

    pub fn run_well(&self, machine: &Path, arguments: &[&str]) -> Ran {
        let ran = self.run(machine, arguments);
        assert_eq!(ran.code, Some(0), "{arguments:?}\n{}\n{}", ran.stdout, ran.stderr);
        ran
    }

    /// The tables of a store as a machine sees it that never saw it before.
    pub fn tables(&self, url: &str) -> BTreeMap<String, Vec<u8>> {
        let machine = tempfile::tempdir().unwrap();
        self.run_well(machine.path(), &["vacuum", "--store", url, "--keep", "9"]);
        tables(&mirror(machine.path()))
    }
}

/// The mirror of the only store that a machine knows.
pub fn mirror(machine: &Path) -> PathBuf {
    let mut folders = std::fs::read_dir(machine.join("nigh/stores")).unwrap();
    folders.next().unwrap().unwrap().path()
}

/// Jobs of few shards, so that a week is some dozens of objects.
pub fn jobs(folder: &Path) -> [PathBuf; 8] {
    let texts = [
        ("first.toml", "[cluster]\nwave-bytes = \"4MiB\"\n[cluster.method]\nshards = 2\n"),
        ("later.toml", "[weekly]\nwave-bytes = \"4MiB\"\n"),
        ("evolution.toml", "[evolution]\n"),
        ("mirrors.toml", "[mirrors]\n"),
        ("overlap.toml", "[overlap]\n"),
        ("collections.toml", "[collections]\nleast-size = 2\npurity = 0.6\nshare = 0.4\n"),
        ("mirrors-by-url.toml", "[mirrors-by-url]\nleast-urls = 5\n"),
        ("paragraphs.toml", "[paragraphs]\n"),
    ];
    texts.map(|(name, text)| {
        let path = folder.join(name);
        std::fs::write(&path, text).unwrap();
        path
    })
}

/// The commands that make a store of two weeks, and take things out of it again.
pub fn steps(jobs: &[PathBuf; 8], store: &str) -> Vec<Vec<String>> {
    let week = |job: usize, week: usize| {
        let input = data(&format!("week-{}", WEEKS[week])).display().to_string();
        let job = jobs[job].display().to_string();
        ["run", &job, "--store", store, "--week", WEEKS[week], "--input", &input].map(str::to_owned).to_vec()
    };
    let study = |job: usize| ["run", jobs[job].to_str().unwrap(), "--store", store].map(str::to_owned).to_vec();
    let delete = ["delete", "--store", store, "--host", "arm64.guide.debian.example"].map(str::to_owned).to_vec();
    let vacuum = ["vacuum", "--store", store, "--keep", "1"].map(str::to_owned).to_vec();
    vec![week(0, 0), week(1, 1), study(2), study(3), study(4), study(5), study(6), study(7), delete, vacuum]
}

/// The store of most tests.
pub const URL: &str = "s3://bucket/store";

/// A store of one week in a bucket: the commands that made it and go on with it, and the machine
/// that made it.
pub struct OneWeek {
    pub server: Cloud,
    pub folder: tempfile::TempDir,
    pub steps: Vec<Vec<String>>,
    pub one: PathBuf,
}

impl OneWeek {
    pub fn new(wanted_by: &str) -> Option<OneWeek> {
        let server = Cloud::start(wanted_by)?;
        let folder = tempfile::tempdir().unwrap();
        let steps = steps(&jobs(folder.path()), URL);
        let one = folder.path().join("one");
        server.run_well(&one, &texts(&steps[0]));
        Some(OneWeek { server, folder, steps, one })
    }
}

pub fn texts(arguments: &[String]) -> Vec<&str> {
    arguments.iter().map(String::as_str).collect()
}

pub fn assert_same(a: &BTreeMap<String, Vec<u8>>, b: &BTreeMap<String, Vec<u8>>, what: &str) {
    assert!(b.len() > 10, "{what}: {} tables are too few to compare", b.len());
    let names = |tables: &BTreeMap<String, Vec<u8>>| tables.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(a), names(b), "{what}");
    for (name, bytes) in a {
        assert!(b[name] == *bytes, "{what}: {name} differs");
    }
}

/// The URLs of all pages of the last week, as a list for `roll-up`.
pub fn texts_of_pages(store: &Path) -> String {
    let urls = crate::program::texts(&crate::program::week(store, WEEKS[1]), "documents", "url");
    urls.iter().map(|url| format!("{url}\n")).collect()
}
