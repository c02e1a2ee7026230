//! Rules of CONTRIBUTING.md that the compiler and the lints do not hold: how long comment lines
//! are, and that no two types have one name.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Columns of a line of a comment.
const COLUMNS: usize = 100;

/// The Rust files of the tree with their texts, by their paths from its root.
fn sources() -> Vec<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut folders: Vec<PathBuf> = ["src", "crates", "tests"].map(|folder| root.join(folder)).into();
    let mut sources = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let name = path.strip_prefix(root).unwrap().to_str().unwrap().to_owned();
                sources.push((name, std::fs::read_to_string(&path).unwrap()));
            }
        }
    }
    assert!(sources.len() > 500, "{} files", sources.len());
    sources.sort();
    sources
}

/// The numbers of the lines of comments that are too long: without examples, drawings, tables and
/// lines with a link.
fn long_lines(text: &str) -> Vec<usize> {
    let (mut long, mut is_drawing) = (Vec::new(), false);
    for (number, line) in (1..).zip(text.lines()) {
        let Some(comment) = line.trim_start().strip_prefix("//") else {
            is_drawing = false;
            continue;
        };
        let comment = comment.trim_start_matches(['/', '!']).trim_start();
        is_drawing ^= comment.starts_with("```");
        let is_free = is_drawing || comment.starts_with('|') || comment.contains("](") || comment.contains("://");
        if !is_free && line.len() > COLUMNS && line.chars().count() > COLUMNS {
            long.push(number);
        }
    }
    long
}

/// The names of the types that a file defines, outside of modules in it.
fn types(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter_map(|line| {
        let line = match line.strip_prefix("pub") {
            Some(rest) if rest.starts_with('(') => rest.split_once(") ")?.1,
            Some(rest) => rest.trim_start(),
            None => line,
        };
        let (kind, rest) = line.split_once(' ')?;
        let is_type = ["struct", "enum", "trait", "type", "union"].contains(&kind);
        is_type.then(|| rest.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or_default())
    })
}

#[test]
fn lines_of_comments_have_at_most_100_columns() {
    let long: Vec<String> = sources()
        .iter()
        .flat_map(|(name, text)| long_lines(text).into_iter().map(move |number| format!("{name}:{number}")))
        .collect();
    assert!(long.is_empty(), "break these lines of comments: {long:#?}");
}

#[test]
fn no_two_types_have_one_name() {
    let sources = sources();
    let mut files: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (name, text) in &sources {
        // What stands in where a feature is not built has the names of what it stands in for.
        if name.ends_with("absent.rs") {
            continue;
        }
        for of_file in types(text) {
            files.entry(of_file).or_default().insert(name);
        }
    }
    files.retain(|_, files| files.len() > 1);
    assert!(files.is_empty(), "give one of each of these another name: {files:#?}");
}

#[test]
fn the_rules_see_what_they_are_about() {
    let long = "x".repeat(COLUMNS);
    let text =
        format!("/// {long}\n    // {long}\n/// ```text\n/// {long}\n/// ```\nlet a = \"{long}\";\n//! | {long} |\n");
    assert_eq!(long_lines(&text), [1, 2]);
    assert_eq!(long_lines(&format!("/// {}\n/// [a](b) {long}", "é".repeat(96))), [0; 0]);
    let text =
        "pub struct A;\npub(in crate::a) enum B {\n    struct C;\n}\ntype D<'a> = &'a u8;\n// trait E\ntrait F {}\n";
    assert_eq!(types(text).collect::<Vec<_>>(), ["A", "B", "D", "F"]);
}
