//! What docs/overlap.md says of collisions: a line is known by 32 bits of its hash.

use std::collections::HashMap;

use xxhash_rust::xxh3::xxh3_64;

use crate::program::{job, rows_of, run_well};

#[test]
fn chunks_that_differ_in_lines_with_one_32_bit_hash_are_equal() {
    // Two lines of one hash: a pair among some 100,000 is likely.
    let mut seen: HashMap<u32, u64> = HashMap::new();
    let line = |number: u64| format!("line{number:x}");
    let pair = (0u64..).find_map(|number| {
        let hash = xxh3_64(line(number).as_bytes()) as u32;
        seen.insert(hash, number).map(|other| [line(other), line(number)])
    });
    let pair = pair.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let pages: String = pair
        .iter()
        .zip(["a", "b"])
        .map(|(other, host)| {
            let lines: String = (0..30).map(|line| format!("<p>common{line}</p><p>{other}</p>")).collect();
            let url = format!("http://{host}.example/");
            serde_json::json!({"url": url, "html": lines}).to_string() + "\n"
        })
        .collect();
    let [input, store] = ["pages.jsonl", "store"].map(|name| folder.path().join(name));
    std::fs::write(&input, pages).unwrap();
    let cluster = job(folder.path(), "[cluster]\n[cluster.read.columns]\nhtml = \"html\"\n");
    let [input, store_text] = [&input, &store].map(|path| path.to_str().unwrap());
    let date = crate::studies::avoid::made::DATES[0];
    run_well(&["run", cluster.to_str().unwrap(), "-q", "--week", date, "--input", input, "--store", store_text]);
    run_well(&["run", "jobs/overlap.toml", "-q", "--store", store_text]);
    let rows = rows_of(&store.join("overlap"), "overlap", &["chunking", "shared"]);
    let shared = |chunking: &str| rows.iter().find(|row| row[0] == chunking).map(|row| row[1].clone());
    let found = ["document", "four-lines", "two-lines"].map(shared);
    assert_eq!(found, [None, Some("15".to_owned()), Some("30".to_owned())]);
}
