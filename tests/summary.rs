//! Prints what the tests of this `cargo test` skipped, in one line. It is no test: cargo runs the
//! test binaries in the order of their names, so that this one follows `suite`.

use std::collections::BTreeMap;

#[path = "suite/skips.rs"]
mod skips;

use skips::Need;

fn main() {
    // Test runners ask for the tests of a binary, and this one has none.
    if std::env::args().any(|argument| argument == "--list") {
        return;
    }
    let may_be_skipped = skips::may_be_skipped();
    let text = std::fs::read_to_string(skips::file()).unwrap_or_default();
    let _ = std::fs::remove_file(skips::file());
    remove_files_of_ended_runs();

    let mut skipped: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for line in text.lines() {
        let (need, test) = line.split_once('\t').expect("the suite writes a tab between the need and the test");
        skipped.entry(need).or_default().push(test);
    }
    let needs = Need::ALL.into_iter().filter_map(|need| {
        let tests = skipped.get(need.name())?;
        let allowed = if may_be_skipped.contains(&need) { ", and NIGH_MAY_SKIP allows it" } else { "" };
        Some(format!("{} for want of {}{allowed} ({})", tests.len(), need.words(), tests.join(", ")))
    });
    let needs: Vec<String> = needs.collect();
    if needs.is_empty() {
        println!("\nSKIPPED tests: none");
    } else {
        println!("\nSKIPPED tests, or parts of them: {}", needs.join("; "));
    }
}

/// A run of the suite alone leaves its file: no summary follows it.
fn remove_files_of_ended_runs() {
    for entry in std::fs::read_dir(skips::folder()).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let process = name.to_str().and_then(|name| name.strip_prefix("skipped-")?.split_once('-'));
        if process.is_some_and(|(process, _)| !std::path::Path::new("/proc").join(process).exists()) {
            let _ = std::fs::remove_file(entry.path());
        }
    }
}
