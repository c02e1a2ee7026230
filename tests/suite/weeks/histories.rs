//! Stores of few URLs through weeks, deletions and removals of old weeks: some shards lose every
//! URL that they had.

use std::path::{Path, PathBuf};

use crate::program::{job, run_well, tables, week};
use crate::weeks::partial::Lcg;

const URLS: usize = 9;

/// A page of a week; pages of three are much alike.
fn line(page: usize, version: usize) -> String {
    let words: Vec<String> = (0..40).map(|place| format!("w{}", page % 3 * 1000 + place)).collect();
    let text = format!("{} version{version}", words.join(" "));
    serde_json::json!({"url": format!("http://h{}.example/{page}", page % 4), "text": text}).to_string() + "\n"
}

/// Two stores of the same weeks and deletions: from one of them old weeks are removed, too.
struct StorePair {
    folder: tempfile::TempDir,
    job: PathBuf,
}

impl StorePair {
    fn new() -> StorePair {
        let folder = tempfile::tempdir().unwrap();
        let job = job(folder.path(), "[cluster]\naccuracy = false\n[cluster.read.columns]\ntext = \"text\"\n");
        StorePair { folder, job }
    }

    fn store(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Runs a command on both.
    fn both(&self, arguments: &[&str]) {
        for name in ["whole", "small"] {
            run_well(&[arguments, &["-q", "--store", self.store(name).to_str().unwrap()]].concat());
        }
    }

    fn crawl(&self, date: &str, lines: &str, flags: &[&str]) {
        let input = self.folder.path().join("pages.jsonl");
        std::fs::write(&input, lines).unwrap();
        let [job, input] = [self.job.as_path(), &input].map(|path| path.to_str().unwrap());
        self.both(&[&["run", job, "--week", date, "--input", input], flags].concat());
    }

    /// Checks that both have the same tables of a week, without `changes`: those since a week that
    /// is removed are not made again.
    fn check(&self, date: &str, what: &str) {
        let of = |name: &str| {
            let mut tables = tables(&week(Path::new(&self.store(name)), date));
            tables.retain(|name, _| !name.starts_with("changes/"));
            tables
        };
        assert!(of("whole") == of("small"), "{what}");
    }
}

/// How many histories are tried: `NIGH_HISTORIES`, or a few.
fn histories() -> u64 {
    std::env::var("NIGH_HISTORIES").ok().and_then(|count| count.parse().ok()).unwrap_or(4)
}

#[test]
fn weeks_are_the_same_whatever_old_weeks_are_removed_between_deletions() {
    for seed in 0..histories() {
        let (pair, mut numbers) = (StorePair::new(), Lcg(seed));
        for number in 1..6 {
            let date = format!("2024-{number:02}-01");
            let crawled = (0..URLS).filter(|_| numbers.below(100) < 60).collect::<Vec<_>>();
            let lines =
                |numbers: &mut Lcg| -> String { crawled.iter().map(|page| line(*page, numbers.below(3))).collect() };
            pair.crawl(&date, &lines(&mut numbers), &["--allow-empty"]);
            pair.check(&date, &format!("seed {seed}, {date}"));
            // A week whose predecessor was removed cannot be replaced.
            let mut is_alone = false;
            for step in 0..numbers.below(3) {
                match numbers.below(if is_alone { 2 } else { 3 }) {
                    0 => pair.both(&["delete", "--host", &format!("h{}.example", numbers.below(4))]),
                    1 => {
                        let page = numbers.below(URLS);
                        pair.both(&["delete", "--url", &format!("http://h{}.example/{page}", page % 4)]);
                    }
                    _ => pair.crawl(&date, &lines(&mut numbers), &["--allow-empty", "--replace"]),
                }
                let small = pair.store("small");
                let keep = 1 + numbers.below(2);
                run_well(&["vacuum", "--store", small.to_str().unwrap(), "--keep", &keep.to_string()]);
                is_alone |= keep == 1 && number > 1;
                pair.check(&date, &format!("seed {seed}, {date}, step {step}"));
            }
        }
    }
}
