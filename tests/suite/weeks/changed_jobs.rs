//! A job whose fields changed since its week was made is not done with "nothing to do".

use crate::program::{job, run, run_well};

/// Lines of a job, and what the run says of each if it is added to the job of a committed week.
const FIELDS: [(&str, &str); 23] = [
    ("max-reject-share = 0.2", "max-reject-share = 0.2"),
    ("max-unknown-share = 0.2", "max-unknown-share = 0.2"),
    ("allow-empty = true", "allow-empty = true"),
    ("wave-bytes = \"1GiB\"", "wave-bytes"),
    ("accuracy = true", "accuracy = true"),
    ("canonical = \"longest\"", "canonical = \"longest\""),
    ("absent = \"keep\"", "absent = \"keep\""),
    ("mode = \"full\"", "mode = \"full\""),
    ("keep.chunks = false", "keep.chunks = false"),
    ("keep.shingles = true", "verify"),
    ("read.max-page-bytes = \"1MiB\"", "read.max-page-bytes"),
    ("read.media-types = [\"text/html\"]", "read.media-types"),
    ("read.base-url = \"http://x.example/\"", "read.base-url"),
    ("read.listing-anywhere = true", "read.listing-anywhere"),
    ("read.max-links = 5", "read.max-links"),
    ("read.same-id = \"first\"", "read.same-id"),
    ("read.columns.url = \"link\"", "read.columns.url"),
    ("read.columns.html = \"html\"", "read.columns.html"),
    ("read.columns.ip = \"ip\"", "read.columns.ip"),
    ("read.columns.date = \"date\"", "read.columns.date"),
    ("method.seed = 7", "seed"),
    ("method.words = 4", "words"),
    ("method.similarity = 0.8", "method"),
];

#[test]
fn every_field_that_changed_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let line = |id: usize| {
        format!(
            "{{\"id\":{id},\"text\":\"one two three four {id}\",\"html\":\"<p>x\",\"ip\":\"\",\"date\":\"\",\"link\":\"http://a.example/{id}\"}}\n"
        )
    };
    let input = folder.path().join("in.jsonl");
    std::fs::write(&input, (0..3).map(line).collect::<String>()).unwrap();
    let store = folder.path().join("store");
    let fixed = "accuracy = false\nread.columns.id = \"id\"\n";
    let run_job = |more: &str, flags: &[&str]| {
        // A field that the job has already is replaced.
        let name = more.split(" = ").next().unwrap();
        let before: String = fixed
            .lines()
            .filter(|line| more.is_empty() || !line.starts_with(&format!("{name} ")))
            .map(|line| format!("{line}\n"))
            .collect();
        let job = job(folder.path(), &format!("[cluster]\n{before}{more}\n"));
        let [job, store, input] = [&job, &store, &input].map(|path| path.to_str().unwrap());
        run(&[&["run", job, "--week", "2024-01-08", "--store", store, "--input", input][..], flags].concat())
    };
    let made = run_job("", &[]);
    assert_eq!(made.code, Some(0), "{}", made.stderr);
    let again = run_job("", &[]);
    assert!(again.code == Some(0) && again.stderr.contains("nothing to do"), "{}", again.stderr);
    for (field, said) in FIELDS {
        let ran = run_job(field, &[]);
        assert!(ran.stderr.contains(said), "{field}: {}", ran.stderr);
        let is_of_run = ["max-reject-share", "max-unknown-share", "allow-empty", "mode", "wave-bytes"]
            .iter()
            .any(|name| field.starts_with(name));
        assert_eq!(ran.code != Some(0), !is_of_run, "{field}: {}", ran.stderr);
        let dry = run_job(field, &["--dry-run"]);
        assert_eq!(dry.code, ran.code, "{field}: {}", dry.stderr);
        assert!(dry.stderr.contains(said), "{field}: {}", dry.stderr);
    }
    // With --replace it counts.
    let replaced = run_job("canonical = \"longest\"", &["--replace"]);
    assert_eq!(replaced.code, Some(0), "{}", replaced.stderr);
    let again = run_job("canonical = \"longest\"", &[]);
    assert!(again.code == Some(0) && again.stderr.contains("nothing to do"), "{}", again.stderr);
}

#[test]
fn a_study_is_made_again_by_the_job_that_is_given() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("store");
    let store = store.to_str().unwrap();
    run_well(&["run", "jobs/example.toml", "-q", "--store", store]);
    run_well(&["run", "jobs/overlap.toml", "-q", "--store", store]);
    let kept = || {
        let mut commits: Vec<_> =
            std::fs::read_dir(format!("{store}/_nigh/overlap")).unwrap().map(|entry| entry.unwrap().path()).collect();
        commits.sort();
        std::fs::read_to_string(commits.pop().unwrap().join("job.toml")).unwrap()
    };
    let before = kept();
    let text = std::fs::read_to_string("jobs/overlap.toml").unwrap();
    let field = "family =";
    let changed =
        text.lines().map(|line| if line.starts_with(field) { format!("{field} 300\n") } else { format!("{line}\n") });
    let changed: String = changed.collect();
    assert_ne!(changed, text);
    let job = job(folder.path(), &changed);
    run_well(&["run", job.to_str().unwrap(), "-q", "--store", store]);
    assert_ne!(kept(), before);
}
