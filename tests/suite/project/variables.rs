//! Flags, variables of the environment and configs: which counts, and for what.

use crate::program::{Made, data, nigh, ran, run, run_well, shipped_job};

#[test]
fn flags_override_the_config() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("config.toml");
    std::fs::write(&config, "workers = 3\nprocesses = 2\nmemory = \"64MiB\"\n").unwrap();
    let mut arguments =
        vec!["run", "jobs/example.toml", "--dry-run", "--store", "nowhere", "--config", config.to_str().unwrap()];
    assert!(run_well(&arguments).stdout.contains("3 in each of 2 processes"));
    arguments.extend(["--workers", "1"]);
    let ran = run_well(&arguments);
    assert!(
        ran.stdout.contains("1 in each of 2 processes") && ran.stdout.contains("64.0 MiB for buffers"),
        "{}",
        ran.stdout
    );
}

#[test]
fn variables_that_a_job_has_no_use_for_are_left_out() {
    let made = Made::new(&[]);
    let store = made.store();
    let store = store.to_str().unwrap();
    let given = |arguments: &[&str], more: &[(&str, &str)]| {
        let mut command = nigh(arguments);
        command.envs([("NIGH_STORE", store), ("NIGH_AGAINST", "no-such-reference"), ("NIGH_DRY_RUN", "true")]);
        let ran = ran(command.envs(more.iter().copied()));
        assert_eq!(ran.code, Some(0), "{arguments:?}: {}", ran.stderr);
        ran.stdout
    };
    let of_weeks = [("NIGH_WEEK", "monday"), ("NIGH_INPUT", "no-such-crawl"), ("NIGH_REPLACE", "true")];
    for job in ["jobs/mirrors.toml", "jobs/evolution.toml"] {
        given(&["run", job], &of_weeks);
    }
    // The probes of a study are no crawl.
    let by_url = given(&["run", "jobs/mirrors-by-url.toml"], &[("NIGH_INPUT", "no-such-crawl")]);
    assert!(by_url.contains("Weeks"), "{by_url}");
    // A reference makes no decontamination of a week.
    let input = data("week-2024-01-15/*.warc.gz");
    for arguments in [&["run", "--week", "2024-01-15"][..], &["add", store, "--week", "2024-01-15"]] {
        let plan = given(arguments, &[("NIGH_INPUT", input.to_str().unwrap()), ("NIGH_ABSENT", "keep")]);
        assert!(plan.contains("2024-01-15"), "{plan}");
    }
    for flags in [["--replace"].as_slice(), &["--input", "x"], &["--week", "monday"]] {
        let refused = run(&[&["run", "jobs/mirrors.toml", "--store", store][..], flags].concat());
        assert!(refused.code == Some(2) && refused.stderr.contains(flags[0]), "{}", refused.stderr);
    }
}

#[test]
fn kernels_are_chosen_by_name() {
    let bench = |kernels: &str| ran(nigh(&["bench", "text", "--json"]).env("NIGH_KERNELS", kernels));
    let scalar = bench("scalar");
    assert!(scalar.stdout.contains("\"kernel\":\"scalar\""), "{}", scalar.stderr);
    let job = shipped_job();
    let run = ran(nigh(&["run", job.to_str().unwrap(), "--dry-run"]).env("NIGH_KERNELS", "sse9"));
    for refused in [bench("sse9"), run] {
        assert_eq!(refused.code, Some(2), "{}", refused.stderr);
        assert!(
            refused.stderr.contains("NIGH_KERNELS=sse9") && refused.stderr.contains("scalar"),
            "{}",
            refused.stderr
        );
    }
}
