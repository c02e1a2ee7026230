//! `nigh live` on stores whose method verifies clusters: against runs over what is there; commits;
//! kills; texts that are not at hand.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};

use crate::live::{
    Live, Numbers, apply, commits_are_those_of_nigh_add, found_by_method, found_live, send_with_kills, text_of,
};
use crate::program::{longs, run_well, texts, week};

/// Of the families of texts those are similar enough that differ in two words: chains of them hold
/// together by those between.
pub(crate) const METHODS: [&str; 2] =
    ["similarity = 0.93\nverify = \"exact\"\n", "similarity = 0.93\nverify = \"estimate\"\n"];

/// A week of some documents in the store `store` of a folder.
pub(crate) fn begin(folder: &Path, numbers: &mut Numbers, method: &str) -> BTreeMap<String, Value> {
    let mut there = BTreeMap::new();
    apply(&mut there, &(0..30).map(|name| json!({"id": name, "text": numbers.text()})).collect::<Vec<_>>());
    found_by_method(folder, "store", &there, method);
    there
}

#[test]
fn verified_clusters_are_those_of_one_run_over_what_is_there() {
    for (number, method) in METHODS.into_iter().enumerate() {
        let folder = tempfile::tempdir().unwrap();
        let (mut numbers, store) = (Numbers(21 + number as u64), folder.path().join("store"));
        let mut there = begin(folder.path(), &mut numbers, method);
        let mut sent: Vec<(Vec<Value>, Vec<Value>)> = Vec::new();
        let mut split = 0;
        for round in 0..4 {
            let live = Live::start(&store, &[]);
            for (number, (batch, answer)) in sent.iter().enumerate() {
                assert_eq!(&live.post(&format!("b{number}"), batch), answer, "a batch that is sent again");
            }
            for _ in 0..8 {
                let batch = numbers.batch(40);
                let answer = live.post(&format!("b{}", sent.len()), &batch);
                apply(&mut there, &batch);
                sent.push((batch, answer));
            }
            let found = found_live(&live, &there);
            let run = format!("run-{round}");
            assert_eq!(found, found_by_method(folder.path(), &run, &there, method));
            split += longs(&week(&folder.path().join(run), "2024-01-08"), "split-off", "doc").len();
            let answers = there.keys().map(|name| live.get(&format!("/documents/{name}")));
            assert!(answers.into_iter().all(|answer| answer.get("estimated").is_none()), "all texts are at hand");
        }
        assert!(split > 0, "verification has nothing to do");
    }
}

#[test]
fn a_similarity_without_verification_is_that_of_a_run() {
    let folder = tempfile::tempdir().unwrap();
    let (mut numbers, method) = (Numbers(51), "similarity = 0.9\n");
    let mut there = begin(folder.path(), &mut numbers, method);
    let live = Live::start(&folder.path().join("store"), &[]);
    for number in 0..8 {
        let batch = numbers.batch(40);
        live.post(&format!("b{number}"), &batch);
        apply(&mut there, &batch);
    }
    assert_eq!(found_live(&live, &there), found_by_method(folder.path(), "run", &there, method));
}

#[test]
fn a_commit_of_a_verified_store_makes_the_tables_of_nigh_add() {
    for (number, method) in METHODS.into_iter().enumerate() {
        let folder = tempfile::tempdir().unwrap();
        let mut numbers = Numbers(31 + number as u64);
        let there = begin(folder.path(), &mut numbers, method);
        commits_are_those_of_nigh_add(folder.path(), numbers, there, method, &[]);
    }
}

#[test]
fn a_kill_of_a_verified_store_loses_none_and_doubles_none() {
    let folder = tempfile::tempdir().unwrap();
    let mut numbers = Numbers(41);
    let mut there = begin(folder.path(), &mut numbers, METHODS[0]);
    let batches: Vec<Vec<Value>> = (0..30).map(|_| numbers.batch(50)).collect();
    let store = folder.path().join("store");
    send_with_kills(&store, &[], &batches, || Duration::from_millis(numbers.below(90)), |_| {});
    batches.iter().for_each(|batch| apply(&mut there, batch));
    let live = Live::start(&store, &[]);
    assert_eq!(found_live(&live, &there), found_by_method(folder.path(), "run", &there, METHODS[0]));
}

#[test]
fn where_a_text_is_not_at_hand_the_estimate_decides_and_the_answer_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let (store, input) = (folder.path().join("store"), folder.path().join("store.jsonl"));
    let mut there = BTreeMap::new();
    // Two clusters: versions 0 and 1 of one family, and one text of another one.
    let lines = [(1, 0, 0), (2, 0, 1), (3, 1, 0), (4, 1, 0)];
    apply(&mut there, &lines.map(|(id, family, version)| json!({"id": id, "text": text_of(family, version)})));
    found_by_method(folder.path(), "store", &there, METHODS[0]);
    std::fs::remove_file(&input).unwrap();
    let live = Live::start(&store, &[]);
    // Nothing was compared: the clusters are those of the tables.
    assert!(live.get("/documents/1").get("estimated").is_none());
    let answers = live.post("1", &[json!({"id": 5, "text": text_of(0, 0)}), json!({"id": 6, "text": text_of(1, 1)})]);
    // Its text is that of a document of the tables: nothing is compared.
    assert_eq!((&answers[0]["size"], answers[0].get("estimated")), (&json!(3), None));
    assert_eq!((&answers[1]["size"], &answers[1]["estimated"]), (&json!(3), &json!(true)));
    let cluster = live.get(&format!("/clusters/{}", answers[1]["cluster"]));
    assert_eq!(cluster["estimated"], true);
    // The commands of a commit need the texts, and say so.
    let refused = live.send("POST", "/commit", &[], b"");
    assert!(refused.status == 503 && refused.body.contains("nigh verify --by estimate"), "{refused:?}");
}

#[test]
fn the_dataset_of_the_readme_is_served_and_committed() {
    let folder = tempfile::tempdir().unwrap();
    let (store, input) = (folder.path().join("corpus"), "tests/data/formats/pages.parquet");
    let path = store.to_str().unwrap();
    let method = ["--id", "url", "--text", "text", "--similarity", "0.8", "--verify", "exact"];
    run_well(&[&["run", "-q", "--week", "2024-01-08", "--store", path, "--input", input], &method[..]].concat());
    let ids = |date: &str| -> BTreeMap<String, i64> {
        let of = week(&store, date);
        let sizes = longs(&of, "clusters", "similar_size");
        texts(&of, "clusters", "id").into_iter().zip(sizes).collect()
    };
    let before = ids("2024-01-08");
    let live = Live::start(&store, &["--by", "id"]);
    let (url, size) = before.iter().max_by_key(|(_, size)| **size).unwrap();
    let words: String = (0..200).map(|at| format!("own{at} ")).collect();
    let html = json!({"id": "b", "html": format!("<p>{words} more</p>")});
    let answers = live.post("1", &[json!({"id": "a", "text": words}), html]);
    assert!(answers.iter().all(|answer| answer["size"] == 2 && answer.get("estimated").is_none()), "{answers:?}");
    let name = url.replace('/', "%2F");
    assert_eq!(live.get(&format!("/documents/{name}"))["size"], *size);
    let deleted = live.send("DELETE", &format!("/documents/{name}"), &[], b"");
    assert_eq!(deleted.status, 200, "{deleted:?}");
    let committed = live.send("POST", "/commit", &[], b"");
    assert_eq!(committed.status, 200, "{committed:?}");
    let committed: Value = serde_json::from_str(&committed.body).unwrap();
    let after = ids(committed["week"].as_str().unwrap());
    assert_eq!((after.len(), after["a"], after["b"]), (before.len() + 1, 2, 2));
    assert_eq!(live.get("/documents/a")["size"], 2);
    // And once more: now the last week has the columns of the first one, too.
    live.post("2", &[json!({"id": "c", "text": format!("{words} less")})]);
    let again = live.send("POST", "/commit", &[], b"");
    assert_eq!((again.status, live.get("/documents/c")["size"].as_i64()), (200, Some(3)), "{again:?}");
}

#[test]
fn a_field_that_was_not_read_is_not_read_by_a_commit() {
    let folder = tempfile::tempdir().unwrap();
    let (store, input) = (folder.path().join("store"), folder.path().join("rows.jsonl"));
    let words: String = (0..200).map(|at| format!("own{at} ")).collect();
    // `html` comes before `text` where both are columns: this one was none.
    let rows = [("1", words.clone()), ("2", words.replace("own7 ", "other ")), ("3", "three words only".to_owned())];
    let lines = rows.map(|(id, text)| json!({"id": id, "text": text, "html": format!("<p>menu {id}")}).to_string());
    std::fs::write(&input, lines.join("\n")).unwrap();
    let method = ["--id", "id", "--text", "text", "--similarity", "0.8", "--verify", "exact"];
    let (path, input) = (store.to_str().unwrap(), input.to_str().unwrap());
    run_well(&[&["run", "-q", "--week", "2024-01-08", "--store", path, "--input", input], &method[..]].concat());
    let live = Live::start(&store, &[]);
    for (number, size) in [(4, 3), (5, 4)] {
        let html = json!({"id": number, "html": format!("<p>{words}and {number}</p>")});
        assert_eq!(live.post(&number.to_string(), &[html])[0]["size"], size);
        let committed = live.send("POST", "/commit", &[], b"");
        assert_eq!(committed.status, 200, "{committed:?}");
        assert_eq!(live.get("/documents/1")["size"], size);
        assert_eq!(live.get(&format!("/documents/{number}"))["level"], "similar");
    }
}

/// Files of earlier weeks are read by the columns of their own job, and so are the lines of a
/// commit.
#[test]
fn stores_with_any_columns_are_served() {
    let folder = tempfile::tempdir().unwrap();
    let words = |page: usize| (0..60).map(|word| format!("p{page}w{word}")).collect::<Vec<_>>().join(" ");
    let row = |id: &str, page: usize| json!({"id": id, "q": "which is it", "a": words(page), "html": "<p>a menu"});
    let rows = [row("1", 1), row("2", 2)].map(|row| row.to_string());
    std::fs::write(folder.path().join("rows.jsonl"), rows.join("\n")).unwrap();
    let csv = [1, 2].map(|page| format!("{page},which is it,{}", words(page)));
    std::fs::write(folder.path().join("rows.csv"), format!("id,q,a\n{}\n", csv.join("\n"))).unwrap();
    let job = |read: &str| {
        let job = folder.path().join("job.toml");
        let method = "similarity = 0.8\nverify = \"exact\"";
        std::fs::write(&job, format!("[cluster]\n[cluster.read]\n{read}\n[cluster.method]\n{method}\n")).unwrap();
        job.to_str().unwrap().to_owned()
    };
    let several = "[cluster.read.columns]\nid = \"id\"\ntext = [\"q\", \"a\"]";
    let cases = [
        ("rows.jsonl", several.to_owned(), "2".to_owned()),
        ("rows.csv", several.to_owned(), "2".to_owned()),
        ("rows.jsonl", "[cluster.read.columns]\nid = \"a\"\ntext = \"a\"".to_owned(), words(2).replace(' ', "%20")),
        (
            "rows.jsonl",
            "max-page-bytes = 250\n[cluster.read.columns]\nid = \"id\"\ntext = \"a\"".to_owned(),
            "2".to_owned(),
        ),
    ];
    for (number, (input, read, second)) in cases.into_iter().enumerate() {
        let store = folder.path().join(number.to_string());
        let path = store.to_str().unwrap();
        let input = folder.path().join(input);
        run_well(&[
            "run",
            &job(&read),
            "-q",
            "--week",
            "2024-01-08",
            "--store",
            path,
            "--input",
            input.to_str().unwrap(),
        ]);
        let live = Live::start(&store, &[]);
        // As the first document is read, and something like the second one. What is cut has two
        // thirds of the words: too few for the whole text.
        let text = |page: usize| match &read {
            read if read.contains("max-page-bytes") => words(page)[..250].to_owned(),
            read if read.contains("\"q\"") => format!("which is it\n{}", words(page)),
            _ => words(page),
        };
        let html = json!({"id": "4", "html": format!("<p>{} more", text(2))});
        let of_first = text(1);
        let answers = live.post("1", &[json!({"id": "3", "text": of_first}), html]);
        assert!(answers.iter().all(|answer| answer["size"] == 2 && answer.get("estimated").is_none()), "{answers:?}");
        let committed = live.send("POST", "/commit", &[], b"");
        assert_eq!(committed.status, 200, "{committed:?}");
        live.post("2", &[json!({"id": "5", "text": format!("{} more", text(2))})]);
        let committed = live.send("POST", "/commit", &[], b"");
        assert_eq!(committed.status, 200, "{committed:?}");
        for (document, size) in [("3", 2), ("4", 3), ("5", 3), (&*second, 3)] {
            assert_eq!(live.get(&format!("/documents/{document}"))["size"], size, "{number}: {document}");
        }
        drop(live);
        // And so says everything that reads texts again, also when only the last week is left.
        run_well(&["vacuum", "--store", path, "--keep", "1"]);
        let out = folder.path().join(format!("out-{number}"));
        run_well(&["export", path, "--out", out.to_str().unwrap()]);
        let add =
            ["add", path, "-q", "--id", "id", "--text", "a", "--similarity", "0.8", "--verify", "exact", "--input"];
        let more = folder.path().join("more.jsonl");
        std::fs::write(&more, json!({"id": "6", "a": format!("{} again", text(2))}).to_string()).unwrap();
        run_well(&[&add[..], &[more.to_str().unwrap(), "--week", "2030-01-01"]].concat());
        let of = week(&store, "2030-01-01");
        let sizes = texts(&of, "clusters", "id").into_iter().zip(longs(&of, "clusters", "similar_size"));
        assert_eq!(sizes.collect::<BTreeMap<_, _>>()["6"], 4, "{number}");
    }
}

/// Documents are chosen by a column that a batch may lack.
#[test]
fn the_choice_by_a_column_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let (store, job) = (folder.path().join("store"), folder.path().join("job.toml"));
    let words = (0..60).map(|word| format!("w{word}")).collect::<Vec<_>>().join(" ");
    let text = "[cluster]\ncanonical = { by = [\"score desc\"] }\n[cluster.read.columns]\nid = \"id\"\n";
    std::fs::write(&job, text).unwrap();
    let [path, job] = [&store, &job].map(|path| path.to_str().unwrap());
    let add = |date: &str, lines: &[Value]| {
        let input = folder.path().join(format!("{date}.jsonl"));
        std::fs::write(&input, lines.iter().map(|line| format!("{line}\n")).collect::<String>()).unwrap();
        run_well(&["add", path, job, "-q", "--week", date, "--input", input.to_str().unwrap()]);
    };
    let chosen = |date: &str| -> Vec<String> {
        let of = week(&store, date);
        let rows = crate::program::rows_of(&of, "clusters", &["id", "canonical"]);
        rows.into_iter().filter(|row| row[1] == "true").map(|row| row[0].clone()).collect()
    };
    let line = |id: &str, score: usize| json!({"id": id, "text": words, "score": score});
    add("2024-01-08", &[line("1", 1), line("2", 5)]);
    assert_eq!(chosen("2024-01-08"), ["2"]);
    let live = Live::start(&store, &[]);
    for (batch, lines, expected) in
        [("1", json!({"id": "3", "text": words}), "2"), ("2", json!({"id": "4", "text": words, "score": 9}), "4")]
    {
        live.post(batch, &[lines]);
        let committed: Value = serde_json::from_str(&live.send("POST", "/commit", &[], b"").body).unwrap();
        assert_eq!(chosen(committed["week"].as_str().unwrap()), [expected], "{committed}");
    }
    drop(live);
    add("2030-01-01", &[line("5", 7), line("6", 11)]);
    assert_eq!(chosen("2030-01-01"), ["6"]);
}
