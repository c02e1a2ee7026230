//! Inputs of earlier batches are read again as their run read them.

use std::path::Path;

use crate::program::{Ran, copy_folder, data, job, nigh, output, ran, roots, week};

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
