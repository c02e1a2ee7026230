//! What a word is: clusters by other rules than letters and digits, against brute force over pairs;
//! and texts that are short.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;

use serde_json::{Value, json};

use crate::program::{job, roots, rows_of, run, run_well, tables, week};
use crate::weeks::partial::Lcg;

const WEEKS: [&str; 3] = ["2024-01-01", "2024-01-08", "2024-01-15"];
const FAMILIES: usize = 8;
const DOCUMENTS: usize = 48;

/// A program of a family, or a text in Thai.
fn program(family: usize) -> Vec<String> {
    let mut numbers = Lcg(family as u64 * 77 + 1);
    let mut name = |of: &str| format!("{of}_{}", numbers.below(4000));
    (0..60)
        .map(|line| {
            let (a, b, c) = (name("value"), name("item"), name("f"));
            match line % 3 {
                0 => format!("let {a} = {c}({b}) + {line};"),
                1 => format!("if ({a} == {b}) {{ return {c}; }}"),
                _ => format!("// {a} 東京 {b}: {c}"),
            }
        })
        .collect()
}

/// Document `n` in a version: a copy of the program of its family, edited in one of some ways.
fn text(n: usize, version: usize) -> String {
    let mut lines = program(n % FAMILIES);
    match (n / FAMILIES + version) % 6 {
        0 => {}
        1 => lines.iter_mut().for_each(|line| *line = format!("\t\t{}\n", line.replace(' ', "  "))),
        2 => lines[7] = format!("let own_{n} = 3;"),
        3 => lines.iter_mut().for_each(|line| *line = line.to_uppercase()),
        4 => lines.iter_mut().for_each(|line| *line = line.replace(['=', '(', ';'], "-")),
        _ => lines.iter_mut().for_each(|line| *line = line.replace('_', "")),
    }
    lines.join("\n")
}

/// A rule: as a job has it, how case is taken, the words in a shingle, and the words of a text by
/// the definition.
struct RuleCase {
    job: &'static str,
    shingle: usize,
    words: fn(&str) -> Vec<String>,
}

fn runs(text: &str, joins: impl Fn(char) -> bool, stands: impl Fn(char) -> bool) -> Vec<String> {
    let (mut words, mut word) = (Vec::new(), String::new());
    for c in text.chars() {
        if joins(c) {
            word.push(c);
            continue;
        }
        words.push(std::mem::take(&mut word));
        words.extend(stands(c).then(|| c.to_string()));
    }
    words.push(word);
    words.retain(|word| !word.is_empty());
    words
}

fn is_han(c: char) -> bool {
    ('一'..='龥').contains(&c)
}

const RULES: [RuleCase; 6] = [
    RuleCase { job: "words = 5", shingle: 5, words: |text| runs(text, |c| c.is_alphanumeric() && !is_han(c), is_han) },
    RuleCase {
        job: "words = \"code\"",
        shingle: 5,
        words: |text| {
            let joins = |c: char| (c.is_alphanumeric() || c == '_') && !is_han(c);
            runs(&text.to_lowercase(), joins, |c| !c.is_whitespace())
        },
    },
    RuleCase {
        job: "words = \"code\"\nmethod.shingle = 9\nmethod.fold-case = false",
        shingle: 9,
        words: |text| runs(text, |c| (c.is_alphanumeric() || c == '_') && !is_han(c), |c| !c.is_whitespace()),
    },
    RuleCase {
        job: "words = \"characters\"",
        shingle: 24,
        words: |text| runs(text, |_| false, |c| !c.is_whitespace()),
    },
    // In these texts the only letters of a script without blanks are one word of its dictionary.
    RuleCase {
        job: "words = \"icu\"",
        shingle: 5,
        words: |text| runs(text, |c| c.is_alphanumeric() || c == '_', |_| false),
    },
    RuleCase {
        job: "words = { pattern = '[a-z]+|\\d' }",
        shingle: 5,
        words: |text| runs(text, |c| c.is_ascii_lowercase(), |c| c.is_ascii_digit()),
    },
];

impl RuleCase {
    /// The shingles; the text wraps around at its end.
    fn shingles(&self, text: &str) -> Vec<Vec<String>> {
        let words = (self.words)(text);
        let shingle = |first: usize| words.iter().cycle().skip(first).take(self.shingle).cloned().collect();
        (0..words.len()).map(shingle).collect()
    }

    /// The sets of documents of which a chain of pairs of at least 0.8 leads from one to another.
    fn clusters(&self, texts: &BTreeMap<String, String>) -> BTreeSet<BTreeSet<String>> {
        // Each shingle that occurs has a number: sets of these are compared sooner.
        let mut numbers: HashMap<Vec<String>, usize> = HashMap::new();
        let mut set = |text: &String| -> BTreeSet<usize> {
            let mut number = |shingle| {
                let next = numbers.len();
                *numbers.entry(shingle).or_insert(next)
            };
            self.shingles(text).into_iter().map(&mut number).collect()
        };
        let sets: Vec<(&String, BTreeSet<usize>)> = texts.iter().map(|(id, text)| (id, set(text))).collect();
        let mut root: Vec<usize> = (0..sets.len()).collect();
        for a in 0..sets.len() {
            for b in 0..a {
                let shared = sets[a].1.intersection(&sets[b].1).count();
                let similarity = shared as f64 / (sets[a].1.len() + sets[b].1.len() - shared) as f64;
                // What is nearly 0.8 similar would be found by chance.
                assert!(!(0.7..0.9).contains(&similarity), "{} {} {}: {similarity}", self.job, sets[a].0, sets[b].0);
                if similarity >= 0.8 {
                    let (from, to) = (root[a], root[b]);
                    root.iter_mut().filter(|root| **root == from).for_each(|root| *root = to);
                }
            }
        }
        let mut clusters: BTreeMap<usize, BTreeSet<String>> = BTreeMap::new();
        for (number, (id, _)) in sets.iter().enumerate() {
            clusters.entry(root[number]).or_default().insert((*id).clone());
        }
        clusters.into_values().collect()
    }
}

/// The clusters of a week, by ids.
fn found(folder: &Path) -> BTreeSet<BTreeSet<String>> {
    let roots = roots(folder, "similar");
    let mut clusters: BTreeMap<i64, BTreeSet<String>> = BTreeMap::new();
    for row in rows_of(folder, "documents", &["id", "doc"]) {
        clusters.entry(roots[&row[1].parse().unwrap()]).or_default().insert(row[0].clone());
    }
    clusters.into_values().collect()
}

fn write(path: &Path, texts: &BTreeMap<String, String>) {
    let lines = texts.iter().map(|(id, text)| json!({"id": id, "text": text}).to_string() + "\n");
    std::fs::write(path, lines.collect::<String>()).unwrap();
}

#[test]
fn clusters_by_every_rule_are_those_of_brute_force_week_over_week() {
    let mut numbers_of_clusters = Vec::new();
    for rule in &RULES {
        let folder = tempfile::tempdir().unwrap();
        let mut of_weeks = Vec::new();
        for (number, date) in WEEKS.iter().enumerate() {
            // A third of the documents changes from week to week.
            let version = |n: usize| if n.is_multiple_of(3) { number } else { 0 };
            let texts: BTreeMap<String, String> =
                (0..DOCUMENTS).map(|n| (format!("d{n}"), text(n, version(n)))).collect();
            let input = folder.path().join(format!("{date}.jsonl"));
            write(&input, &texts);
            let expected = rule.clusters(&texts);
            let mut first = None;
            let runs = [("full", "1", "1"), ("full", "2", "2"), ("delta", "4", "1")];
            for (mode, workers, processes) in runs {
                let columns = "[cluster.read.columns]\ntext = \"text\"\nid = \"id\"\n";
                let method = format!(
                    "method.{}\nmethod.similarity = 0.8\nmethod.verify = \"exact\"\nmethod.shards = 4\n",
                    rule.job
                );
                let job = job(folder.path(), &format!("[cluster]\nmode = \"{mode}\"\n{method}{columns}"));
                let store = folder.path().join(format!("{mode}{workers}{processes}"));
                let [job, path, store_name] = [&job, &input, &store].map(|path| path.to_str().unwrap());
                let flags = ["--workers", workers, "--processes", processes];
                let arguments = ["run", job, "-q", "--week", date, "--input", path, "--store", store_name];
                run_well(&[&arguments[..], &flags].concat());
                let week = week(&store, date);
                assert_eq!(found(&week), expected, "{} {date} {mode} {workers}", rule.job);
                assert!(*first.get_or_insert_with(|| tables(&week)) == tables(&week), "{} {date} {mode}", rule.job);
            }
            of_weeks.push(expected.len());
        }
        numbers_of_clusters.push(of_weeks[0]);
    }
    // Of each family: which of the six ways to edit are alike. Case counts for all rules but code;
    // symbols count for code and characters; underscores for all but the pattern.
    assert_eq!(numbers_of_clusters, [24, 24, 32, 32, 24, 16]);
}

#[test]
fn a_store_keeps_its_rule_and_tells_it() {
    let folder = tempfile::tempdir().unwrap();
    let (folder, store) = (folder.path(), folder.path().join("store"));
    let (input, store) = (folder.join("in.jsonl"), store.to_str().unwrap());
    let texts: BTreeMap<String, String> = [
        ("a", "int f(int a, int b) { return a + b; }"),
        ("b", "int f(int a, int b) { return a - b; }"),
        ("c", "INT F(INT A,\n\tINT B)\n{ RETURN A + B; }"),
    ]
    .map(|(id, text)| (id.to_owned(), text.to_owned()))
    .into();
    write(&input, &texts);
    let columns = ["--id", "id", "--text", "text", "--input", input.to_str().unwrap(), "--store", store];
    let run_with = |flags: &[&str]| run(&[&["run", "-q", "--week", WEEKS[0]], &columns[..], flags].concat());
    let ran = run_with(&["--words", "code", "--similarity", "0.9", "--verify", "exact", "--json"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let summary: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert!(summary.to_string().contains("words = code, shingle = 5, "), "{summary}");
    let clusters = found(&week(Path::new(store), WEEKS[0]));
    let names = |ids: &[&str]| ids.iter().map(|id| (*id).to_owned()).collect::<BTreeSet<_>>();
    assert_eq!(clusters, [names(&["a", "c"]), names(&["b"])].into());
    let why = run_well(&["why", store, "a", "b"]).stdout;
    assert!(why.contains('+') && why.contains('-'), "{why}");
    let other = run(&[&["run", "-q", "--week", WEEKS[1], "--words", "5"], &columns[..]].concat());
    assert!(other.code != Some(0) && other.stderr.contains("words = code"), "{}", other.stderr);
    for (flags, wanted) in [
        (&["--words", "coed"][..], "the number of words in a shingle, or what a word is"),
        (&["--words", "5", "--shingle", "6"], "both say how many words a shingle has"),
        (&["--shingle", "65"], "shingle = 65: allowed is 1 to 64"),
    ] {
        let ran = run_with(flags);
        assert!(ran.code == Some(2) && ran.stderr.contains(wanted), "{flags:?} {:?} {}", ran.code, ran.stderr);
    }
}

#[test]
fn short_texts_are_counted_through_batches_and_deletions() {
    let folder = tempfile::tempdir().unwrap();
    let (folder, store) = (folder.path(), folder.path().join("store"));
    let store_name = store.to_str().unwrap();
    let first = ["", "", "!!!", "one two", "two one", "one two one two", "a b c d e", "a b c d e f"];
    let counts = |ran: &str| -> [u64; 4] {
        let counts = &serde_json::from_str::<Value>(ran).unwrap()["counts"];
        ["documents", "empty", "no_bytes", "short"].map(|name| counts[name].as_u64().unwrap())
    };
    let write = |name: &str, texts: &[&str], from: usize| {
        let path = folder.join(name);
        let lines =
            texts.iter().zip(from..).map(|(text, id)| json!({"id": id.to_string(), "text": text}).to_string() + "\n");
        std::fs::write(&path, lines.collect::<String>()).unwrap();
        path
    };
    let add = |date: &str, input: &Path| {
        let arguments = ["add", store_name, "--week", date, "--id", "id", "--text", "text", "--json"];
        run_well(&[&arguments[..], &["--input", input.to_str().unwrap()]].concat()).stdout
    };
    assert_eq!(counts(&add("2024-01-01", &write("1.jsonl", &first, 0))), [8, 3, 2, 3]);
    let week_1 = week(&store, "2024-01-01");
    let exact: BTreeSet<BTreeSet<String>> = found(&week_1);
    // A shingle goes around: two texts of the same few words, turned or repeated, are alike. Empty
    // ones are copies.
    assert!(
        exact.contains(&["3", "4", "5"].map(str::to_owned).into())
            && exact.contains(&["0", "1"].map(str::to_owned).into())
    );
    assert_eq!(counts(&add("2024-01-02", &write("2.jsonl", &["", "ok", "a b c d e g"], 8))), [11, 4, 3, 4]);
    let shown = run_well(&["show", store_name]).stdout;
    for line in [
        "3  documents without a byte: exact copies of each other",
        "1  documents without words: copies of those with the same bytes, like no others",
        "4  documents with fewer words than a shingle: their shingles have words more than once",
    ] {
        assert!(shown.contains(line), "{line}\n{shown}");
    }
    run_well(&["delete", "--quiet", "--store", store_name, "--id", "0", "3", "7"]);
    assert_eq!(counts(&run_well(&["show", store_name, "--json"]).stdout), [8, 3, 2, 3]);
}
