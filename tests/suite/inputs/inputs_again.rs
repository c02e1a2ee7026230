//! Inputs of earlier batches are read again as their run read them.

use std::path::Path;

use crate::program::{Ran, copy_folder, data, job, nigh, output, ran, roots, texts, week};

const DATES: [&str; 2] = ["2024-01-08", "2024-01-09"];
const EXACT: [&str; 5] = ["-q", "--similarity", "0.8", "--verify", "exact"];

/// Runs the program in a folder; it must end well.
fn run_in(folder: &Path, arguments: &[&str]) -> Ran {
    let ran = ran(nigh(arguments).current_dir(folder));
    assert_eq!(ran.code, Some(0), "{arguments:?}\n{}\n{}", ran.stdout, ran.stderr);
    ran
}

/// The pages of the example below the folder `name`, by other hosts.
fn copies(folder: &Path, name: &str, prefix: &str) {
    for host in std::fs::read_dir(data("formats/html")).unwrap() {
        let host = host.unwrap();
        let to = folder.join(name).join(format!("{prefix}{}", host.file_name().to_str().unwrap()));
        std::fs::create_dir_all(to.parent().unwrap()).unwrap();
        copy_folder(&host.path(), &to);
    }
}

#[test]
fn a_batch_from_a_folder_or_an_archive_is_read_again() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    std::fs::copy(data("formats/pages.wacz"), folder.join("pages.wacz")).unwrap();
    std::fs::copy(data("formats/pages.warc"), folder.join("@pages.warc")).unwrap();
    copies(folder, "html", "");
    copies(folder, "copies", "x-");
    let page = "amd64.guide.debian.example/releases/stable/amd64/ch01s05.html";
    let base = job(folder, "[cluster]\n[cluster.read]\nbase-url = \"http://base.example/b\"\n");
    let cases = [
        ("pages.wacz", None, ""),
        ("html", None, ""),
        ("html", Some(base.to_str().unwrap()), "base.example/b/"),
        ("*pages.warc", None, ""),
    ];
    let [passages, samplers] = ["passages", "samplers"].map(|study| {
        std::fs::write(folder.join(format!("{study}.toml")), format!("[{study}]\n")).unwrap();
        format!("{study}.toml")
    });
    for (number, (item, job, prefix)) in cases.iter().enumerate() {
        let store = format!("store-{number}");
        let first = ["--week", DATES[0], "--input", item];
        run_in(folder, &[&["add", &store], job.as_slice(), &first, &EXACT].concat());
        run_in(folder, &[&["add", &store, "--week", DATES[1], "--input", "copies"], &EXACT[..]].concat());
        let roots = roots(&week(&folder.join(&store), DATES[1]), "similar");
        let apart = roots.iter().filter(|(doc, root)| doc == root).count();
        assert!(2 * apart <= roots.len(), "{item}: each page has its copy: {roots:?}");
        let [one, other] = [format!("http://{prefix}{page}"), format!("http://x-{page}")];
        let why = run_in(folder, &["why", &store, &one, &other]).stdout;
        assert!(why.contains("shingles are in both"), "{item}: {why}");
        let report = run_in(folder, &["report", "--json", &store]).stdout;
        let report: serde_json::Value = serde_json::from_str(&report).unwrap();
        let shown = report["shown"].as_array().unwrap();
        assert!(!shown.is_empty() && shown.iter().all(|pair| pair["texts"].is_object()), "{item}: {report}");
        for study in [&passages, &samplers] {
            run_in(folder, &["run", study, "-q", "--store", &store]);
        }
        run_in(folder, &["export", &store, "--out", &format!("out-{number}")]);
        run_in(folder, &["reshard", &store, "-q", "--shards", "128"]);
        run_in(folder, &["delete", "--store", &store, "-q", "--url", &one]);
    }
}

#[test]
fn what_a_pipe_gave_is_not_looked_for_in_another_pipe() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let add = |date: &str, batch: &str, flags: &[&str]| {
        let lines = (0..5).map(|n| {
            let words: Vec<String> = (0..60).map(|word| format!("p{n}w{word}")).collect();
            let url = format!("http://{batch}.example/{n}");
            serde_json::json!({"url": url, "text": format!("{} {batch}", words.join(" "))}).to_string() + "\n"
        });
        std::fs::write(folder.join(batch), lines.collect::<String>()).unwrap();
        // By a pipe, and as a file on standard input.
        ["cat \"$1\" | \"$0\" \"${@:2}\"", "\"$0\" \"${@:2}\" < \"$1\""].map(|script| {
            let store = if script.starts_with("cat") { "piped" } else { "redirected" };
            let mut command = std::process::Command::new("bash");
            command.args(["-c", script, env!("CARGO_BIN_EXE_nigh"), batch, "add", store, "--week", date]);
            let output = output(command.args(["-q", "--input", "-"]).args(flags).current_dir(folder));
            (output.status.code(), String::from_utf8(output.stderr).unwrap())
        })
    };
    for (code, stderr) in add(DATES[0], "a", &EXACT[1..]) {
        assert_eq!(code, Some(0), "{stderr}");
    }
    for (code, stderr) in add(DATES[1], "b", &EXACT[1..]) {
        assert!(code == Some(1) && stderr.contains("came from standard input or a pipe (-)"), "{stderr}");
        assert!(stderr.contains("`nigh verify --by estimate`") && !stderr.contains("back"), "{stderr}");
    }
    // The advice can be followed.
    for store in ["piped", "redirected"] {
        run_in(folder, &["verify", store, "-q", "--by", "estimate"]);
    }
    for (code, stderr) in add(DATES[1], "b", &[]) {
        assert_eq!(code, Some(0), "{stderr}");
    }
    let roots = roots(&week(&folder.join("piped"), DATES[1]), "similar");
    assert_eq!(roots.iter().filter(|(doc, root)| doc == root).count(), 5);
}

/// A text of 60 words, which begins with another one.
fn text(page: usize, first: &str) -> String {
    let words: Vec<String> = (0..60).map(|word| format!("p{page}w{word}")).collect();
    format!("{first} {}", words.join(" "))
}

/// Lines of CSV or of JSON Lines with ids and texts.
fn write_texts(path: &Path, column: &str, texts: &[(&str, String)]) {
    let lines = texts.iter().map(|(id, text)| match path.extension().unwrap().to_str() {
        Some("csv") => format!("{id},{text},another summary of {id}\n"),
        _ => {
            let mut object = serde_json::json!({"id": id, column: text});
            if column != "text" {
                object["text"] = format!("a summary of {id}").into();
            }
            format!("{object}\n")
        }
    });
    let head = if path.extension().unwrap() == "csv" { format!("id,{column},summary\n") } else { String::new() };
    std::fs::write(path, head + &lines.collect::<String>()).unwrap();
}

#[test]
fn each_batch_is_read_again_by_the_columns_of_its_own_job() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    std::fs::write(folder.join("passages.toml"), "[passages]\ndocuments = \"all\"\n").unwrap();
    std::fs::write(folder.join("samplers.toml"), "[samplers]\n").unwrap();
    for (number, name) in ["first.jsonl", "first.csv"].iter().enumerate() {
        let (store, reference) = (format!("store-{number}"), format!("reference-{number}"));
        write_texts(&folder.join(name), "body", &[("1", text(1, "a")), ("2", text(2, "a"))]);
        write_texts(&folder.join("second.jsonl"), "text", &[("3", text(1, "b")), ("4", text(4, "b"))]);
        let processes = (number + 1).to_string();
        let add = |store: &str, date: &str, column: &str, input: &str| {
            let flags = ["add", store, "--week", date, "--id", "id", "--text", column, "--input", input];
            run_in(folder, &[&flags[..], &["--processes", &processes], &EXACT].concat());
        };
        for store in [&store, &reference] {
            add(store, DATES[0], "body", name);
            add(store, DATES[1], "text", "second.jsonl");
        }
        // Exact verification has read both batches: the pair is one cluster.
        let roots = roots(&week(&folder.join(&store), DATES[1]), "similar");
        assert_eq!(roots.iter().filter(|(doc, root)| doc != root).count(), 1, "{name}");
        let why = run_in(folder, &["why", &store, "1", "3"]).stdout;
        assert!(why.contains("shingles are in both"), "{name}: {why}");
        let named = run_in(folder, &["why", &store, "1", "3", "--input", name, "second.jsonl"]).stdout;
        assert_eq!(named, why);
        let verified = format!("verified-{number}");
        copy_folder(&folder.join(&store), &folder.join(&verified));
        let exact = ["-q", "--similarity", "0.85", "--by", "exact"];
        run_in(folder, &[&["verify", &verified, "--input", name, "second.jsonl"][..], &exact].concat());
        run_in(folder, &["run", "passages.toml", "-q", "--store", &store]);
        let passages = run_in(folder, &["table", &store, "passages/passages"]).stdout;
        assert!(passages.lines().count() == 3 && passages.contains(",1,60,"), "{name}: {passages}");
        run_in(folder, &["run", "samplers.toml", "-q", "--store", &store]);
        let out = format!("out-{number}");
        run_in(folder, &["export", &store, "--out", &out]);
        let kept = std::fs::read_to_string(folder.join(&out).join(name)).unwrap();
        assert!(kept.contains("p1w59") && kept.contains("p2w59"), "{name}: {kept}");
        // A reference has the texts that its tables have.
        run_in(folder, &["run", "-q", "--store", &store, "--against", &reference]);
        let items = run_in(folder, &["table", &store, "decontamination/items", "--columns", "id,words"]).stdout;
        let words: Vec<&str> = items.lines().skip(1).map(|line| line.split_once(',').unwrap().1).collect();
        assert_eq!(words, ["61"; 4], "{name}: {items}");
        let changed = [("3", text(1, "b")), ("4", text(5, "b"))];
        write_texts(&folder.join("second.jsonl"), "text", &changed);
        let refused = ran(nigh(&["run", "-q", "--store", &store, "--against", &reference]).current_dir(folder));
        let says = refused.stderr.contains("second.jsonl has changed since week 2024-01-09 of")
            && refused.stderr.contains("a document of it is not there any more");
        assert!(refused.code == Some(1) && says, "{}", refused.stderr);
    }
}

/// How an earlier batch was read is in the records of its own week, which a machine without a
/// mirror must fetch.
#[cfg(feature = "cloud")]
#[test]
fn a_batch_of_a_store_in_a_bucket_is_read_again_by_its_own_job() {
    let Some(server) = crate::seaweed::BucketServer::start("a batch of a store in a bucket") else { return };
    let folder = tempfile::tempdir().unwrap();
    let run_on = |machine: &str, arguments: &[&str]| {
        let mut command = nigh(arguments);
        let ran = ran(command.envs(server.environment()).env("XDG_CACHE_HOME", folder.path().join(machine)));
        assert_eq!(ran.code, Some(0), "{arguments:?}\n{}\n{}", ran.stdout, ran.stderr);
    };
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let [first, second] = ["first.csv", "second.jsonl"].map(path);
    write_texts(Path::new(&first), "body", &[("1", text(1, "a")), ("2", text(2, "a"))]);
    write_texts(Path::new(&second), "text", &[("3", text(1, "b")), ("4", text(4, "b"))]);
    let here = path("here");
    for (store, machine) in [(here.as_str(), "one"), ("s3://bucket/there", "two")] {
        for (date, column, input) in [(DATES[0], "body", &first), (DATES[1], "text", &second)] {
            let flags = ["add", store, "--week", date, "--id", "id", "--text", column, "--input", input];
            run_on(machine, &[&flags[..], &EXACT].concat());
        }
    }
    let [of_here, of_there] = [(here.as_str(), "of-here"), ("s3://bucket/there", "of-there")].map(|(store, out)| {
        run_on("three", &["export", store, "--out", &path(out)]);
        ["first.csv", "second.jsonl"].map(|name| std::fs::read(folder.path().join(out).join(name)).unwrap())
    });
    assert!(of_here == of_there && of_here[0].windows(5).any(|bytes| bytes == b"p1w59"));
}

#[test]
fn records_known_by_their_places_are_not_taken_for_those_of_another_folder() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("store");
    let store = store.to_str().unwrap();
    let add = |of: &str, date: &str, input: &str, page: usize| {
        let of = folder.path().join(of);
        std::fs::create_dir_all(&of).unwrap();
        let line = serde_json::json!({"text": text(page, "a")}).to_string() + "\n";
        std::fs::write(of.join("part.jsonl"), line).unwrap();
        let flags = ["add", store, "-q", "--text", "text", "--no-accuracy", "--week", date, "--input"];
        ran(nigh(&[&flags[..], &[input]].concat()).current_dir(of))
    };
    assert_eq!(add("one", DATES[0], "part.jsonl", 1).code, Some(0));
    let refused = add("other", DATES[1], "part.jsonl", 2);
    let says = "part.jsonl is the name of an input of week 2024-01-08, too, which was read in";
    assert!(refused.code == Some(2) && refused.stderr.contains(says), "{}", refused.stderr);
    // In the same folder it is the same file, and by its whole path another one.
    let path = folder.path().join("other/part.jsonl");
    assert_eq!(add("other", DATES[1], path.to_str().unwrap(), 2).code, Some(0));
    assert_eq!(roots(&week(Path::new(store), DATES[1]), "similar").len(), 2);
    let again =
        ["add", store, "-q", "--text", "text", "--no-accuracy", "--week", "2024-01-10", "--input", "part.jsonl"];
    run_in(&folder.path().join("one"), &again);
    assert_eq!(roots(&week(Path::new(store), "2024-01-10"), "similar").len(), 2);
}

#[test]
fn records_known_by_their_places_are_not_taken_for_those_that_a_file_had_before() {
    let folder = tempfile::tempdir().unwrap();
    let add = |date: &str, input: &str, pages: std::ops::Range<usize>, flags: &[&str]| {
        let line = |page| serde_json::json!({"text": text(page, "a")}).to_string() + "\n";
        let content = if input == "page.txt" { text(pages.start, "a") } else { pages.map(line).collect() };
        std::fs::write(folder.path().join(input), content).unwrap();
        let arguments = ["add", "store", "-q", "--text", "text", "--no-accuracy", "--week", date, "--input", input];
        ran(nigh(&[&arguments[..], flags].concat()).current_dir(folder.path()))
    };
    let documents = |date: &str| roots(&week(&folder.path().join("store"), date), "similar").len();
    assert_eq!(add(DATES[0], "rows.jsonl", 0..4, &[]).code, Some(0));
    for flags in [&["--dry-run"][..], &[]] {
        let refused = add(DATES[1], "rows.jsonl", 4..7, flags);
        let [says, advice] =
            ["rows.jsonl is the name of an input of week 2024-01-08, too", "--week 2024-01-08 --replace"];
        assert!(refused.code == Some(2) && refused.stderr.contains(says), "{}", refused.stderr);
        assert!(
            refused.stderr.contains("a file of another name") && refused.stderr.contains(advice),
            "{}",
            refused.stderr
        );
    }
    // What it says can be done.
    assert_eq!(add(DATES[0], "rows.jsonl", 4..7, &["--replace"]).code, Some(0));
    assert_eq!(documents(DATES[0]), 3);
    assert_eq!(add(DATES[1], "more.jsonl", 7..9, &[]).code, Some(0));
    assert_eq!(documents(DATES[1]), 5);
    // A file that is one document is another version of it.
    assert_eq!(add("2024-01-10", "page.txt", 10..11, &[]).code, Some(0));
    assert_eq!(add("2024-01-11", "page.txt", 11..12, &[]).code, Some(0));
    assert_eq!(documents("2024-01-11"), 6);
    run_in(folder.path(), &["export", "store", "--out", "out"]);
    assert_eq!(std::fs::read_to_string(folder.path().join("out/page.txt")).unwrap(), text(11, "a"));
}

/// Copies by `cp -p` and the like have the time of change of the file that they are of.
#[test]
fn a_file_of_another_folder_with_the_same_size_and_time_is_another_one() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("store");
    let store = store.to_str().unwrap();
    let time = std::time::SystemTime::now() - std::time::Duration::from_secs(60);
    for (name, word) in [("one", "alpha"), ("two", "gamma")] {
        std::fs::create_dir(folder.path().join(name)).unwrap();
        let path = folder.path().join(name).join("part.jsonl");
        std::fs::write(&path, format!("{{\"id\":\"{word}\",\"text\":\"{word} and more words\"}}\n")).unwrap();
        std::fs::File::options().write(true).open(&path).unwrap().set_modified(time).unwrap();
    }
    let add = |name: &str| {
        let arguments = ["add", store, "--id", "id", "--input", "part.jsonl"];
        let ran = ran(nigh(&arguments).current_dir(folder.path().join(name)));
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        ran.stderr.contains("nothing to do")
    };
    let ids = || {
        let weeks = std::fs::read_dir(Path::new(store).join("clusters")).unwrap();
        let last = weeks.map(|entry| entry.unwrap().file_name().into_string().unwrap()).max().unwrap();
        let mut ids = texts(&week(Path::new(store), last.strip_prefix("week=").unwrap()), "clusters", "id");
        ids.sort();
        ids
    };
    assert_eq!([add("one"), add("one"), add("two"), add("two")], [false, true, false, true]);
    assert_eq!(ids(), ["alpha", "gamma"]);
    // The folder was moved: it is the same file.
    std::fs::rename(folder.path().join("two"), folder.path().join("moved")).unwrap();
    assert!(add("moved"));
}

#[test]
fn records_known_by_their_places_are_not_taken_for_those_of_another_pipe() {
    let folder = tempfile::tempdir().unwrap();
    let add = |date: &str, page: usize| {
        let line = serde_json::json!({"text": text(page, "a")}).to_string() + "\n";
        std::fs::write(folder.path().join("lines"), line).unwrap();
        let mut command = std::process::Command::new("bash");
        command.args(["-c", "cat lines | \"$0\" \"$@\"", env!("CARGO_BIN_EXE_nigh"), "add", "store", "-q"]);
        let flags = ["--text", "text", "--no-accuracy", "--week", date, "--input", "-"];
        let output = output(command.args(flags).current_dir(folder.path()));
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    assert_eq!(add(DATES[0], 1).0, Some(0));
    let (code, error) = add(DATES[1], 2);
    assert!(code == Some(2) && error.contains("Write the records to files"), "{error}");
    // The same bytes again are the same batch.
    assert_eq!(add(DATES[0], 1).0, Some(0));
    assert_eq!(roots(&week(&folder.path().join("store"), DATES[0]), "similar").len(), 1);
}
