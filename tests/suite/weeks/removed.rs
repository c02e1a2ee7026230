//! Old weeks go, and nothing else changes.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use nigh::text::UrlPatterns;

use super::deletion::{StoreOfWeeks, WEEKS, differing};
use crate::program::{files, has_week, nigh, run, run_well, tables};

#[test]
fn later_weeks_are_the_same_after_old_weeks_are_removed() {
    let kept = StoreOfWeeks::new(2);
    let gone = kept.copy();
    let store = gone.store();
    let dry = run_well(&["vacuum", "--store", &store, "--keep", "1", "--dry-run"]).stdout;
    assert!(dry.contains("Would remove 1 week: 2024-01-08"), "{dry}");
    assert!(gone.tables() == kept.tables());
    let vacuum = |flags: &[&str]| run_well(&[&["vacuum", "--store", &store], flags].concat()).stdout;
    assert!(vacuum(&["--keep", "1"]).contains("Removed 1 week: 2024-01-08"));
    assert!(vacuum(&["--keep", "1"]).contains("Nothing to remove"));
    // What a killed run of a pool left is in a folder that only this run knew.
    let left = Path::new(&store).join("_nigh/work-4711/week=2024-01-08");
    std::fs::create_dir_all(&left).unwrap();
    for flags in [&["--keep", "1", "--dry-run"][..], &["--keep", "1"]] {
        assert!(left.exists());
        let said = vacuum(flags);
        assert!(said.contains("week=2024-01-08"), "{said}");
    }
    assert!(!left.exists());
    assert!(!has_week(&gone.week(0)));
    assert!(!Path::new(&store).join("clusters/week=2024-01-08").exists());
    for week in [2, 3] {
        [&kept, &gone].into_iter().for_each(|weeks| weeks.add(week, &UrlPatterns::default()));
        let (kept, gone) = (tables(&kept.week(week)), tables(&gone.week(week)));
        assert_eq!(differing(&kept, &gone), [""; 0], "{week}");
    }
    assert!(vacuum(&["--before", "2024-01-25", "--json"]).contains("\"weeks\":[\"2024-01-15\",\"2024-01-22\"]"));
    let own = std::fs::read_dir(Path::new(&store).join("_nigh")).unwrap().map(|entry| entry.unwrap().file_name());
    let removed: Vec<_> = own.filter(|name| name.to_string_lossy().starts_with("before=")).collect();
    assert_eq!(removed, ["before=2024-01-29"], "the URLs of removed weeks are in one place");
    // A week whose predecessor is gone can lose pages, too.
    let changes = files(&gone.week(3), "changes").iter().map(|path| std::fs::read(path).unwrap()).collect::<Vec<_>>();
    [&kept, &gone].into_iter().for_each(|weeks| _ = weeks.delete(&["--host", "h1.example"]));
    let (mut with, mut without) = (tables(&kept.week(3)), tables(&gone.week(3)));
    let since = |tables: &mut BTreeMap<String, Vec<u8>>| tables.retain(|name, _| !name.starts_with("changes/"));
    since(&mut with);
    since(&mut without);
    assert_eq!(differing(&with, &without), [""; 0]);
    let now = files(&gone.week(3), "changes").iter().map(|path| std::fs::read(path).unwrap()).collect::<Vec<_>>();
    assert!(now == changes, "the changes since a week that is removed are not computed again");
    run_well(&["run", "jobs/evolution.toml", "-q", "--store", &store]);
    let again =
        run(&["run", "jobs/weekly.toml", "--store", &store, "--week", WEEKS[3], "--input", "README.md", "--replace"]);
    assert!(again.code == Some(1), "{}", again.stderr);
}

#[test]
fn a_vacuum_killed_at_any_moment_is_finished_by_the_next_commands() {
    let base = StoreOfWeeks::new(3);
    let whole = base.copy();
    let begun = Instant::now();
    run_well(&["vacuum", "--store", &whole.store(), "--keep", "1"]);
    let (took, whole) = (begun.elapsed(), whole.tables());
    for round in 0..8 {
        let copy = base.copy();
        let store = copy.store();
        let arguments = ["vacuum", "--store", &store, "--keep", "1"];
        let mut child = nigh(&arguments).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        std::thread::sleep(took * round / 7 + Duration::from_millis(1));
        child.kill().unwrap();
        child.wait().unwrap();
        // Whatever writes to the store mends it.
        copy.delete(&["--host", "h9.example"]);
        run_well(&arguments);
        assert_eq!(differing(&copy.tables(), &whole), [""; 0], "round {round}");
    }
}
