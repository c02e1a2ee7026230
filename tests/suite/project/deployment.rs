//! The files by which others run nigh: an image, Kubernetes, systemd, SLURM, releases. Here is what
//! needs no tool; `scripts/deployment.sh` gives each file to the tool that reads it.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::program::{has_week, ran, skipped, week};
use crate::skips::Need;

const DATE: &str = "2024-01-08";

fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

fn read(name: &str) -> String {
    std::fs::read_to_string(path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// The variables of nigh that a text names.
fn variables(text: &str) -> BTreeSet<&str> {
    let is_part = |c: char| c.is_ascii_uppercase() || c == '_';
    let named = text.match_indices("NIGH_").map(|(at, _)| &text[at..]);
    named.map(|rest| rest.split(|c| !is_part(c)).next().unwrap_or_default()).collect()
}

/// The files whose variables nigh must read.
const WITH_VARIABLES: [&str; 6] = [
    "scripts/systemd/nigh.env",
    "scripts/kubernetes.yaml",
    "scripts/kubernetes/weekly/settings.env",
    "scripts/kubernetes/weekly/cronjob.yaml",
    "scripts/kubernetes/weekly/kustomization.yaml",
    "scripts/kubernetes/pool/kustomization.yaml",
];

#[test]
fn every_variable_that_the_files_set_is_one_that_nigh_reads() {
    let page = read("docs/running.md");
    let known = variables(page.split("\n## Variables\n").nth(1).unwrap().split("\n## ").next().unwrap());
    for name in WITH_VARIABLES {
        let text = read(name);
        let of_file = variables(&text);
        assert!(!of_file.is_empty(), "{name}");
        for variable in of_file {
            assert!(known.contains(variable), "{name}: {variable}");
        }
    }
}

#[test]
fn every_file_names_this_version_and_the_week_by_the_clock() {
    let version = env!("CARGO_PKG_VERSION");
    for name in ["scripts/kubernetes.yaml", "scripts/kubernetes/weekly/cronjob.yaml"] {
        assert!(read(name).contains(&format!("image: registry.example/nigh:{version}\n")), "{name}: {version}");
    }
    let image = read("scripts/Dockerfile");
    let tags: Vec<&str> = image.match_indices(" nigh:").map(|(at, _)| &image[at + 6..]).collect();
    let tags: Vec<&str> = tags.into_iter().filter(|tag| tag.starts_with(|c: char| c.is_ascii_digit())).collect();
    assert!(tags.len() == 2 && tags.iter().all(|tag| tag.starts_with(version)), "{version}");
    let rust = format!("FROM rust:{}-", env!("CARGO_PKG_RUST_VERSION"));
    assert!(image.contains(&rust), "{rust}");
    for name in ["scripts/systemd/nigh.env", "scripts/kubernetes/weekly/settings.env"] {
        assert!(read(name).lines().any(|line| line == "NIGH_WEEK=monday"), "{name}");
    }
    assert!(read("scripts/kubernetes.yaml").contains("--week=monday"));
}

#[test]
fn a_release_has_the_names_that_cargo_binstall_asks_for() {
    let manifest: toml::Table = read("Cargo.toml").parse().unwrap();
    let binstall = &manifest["package"]["metadata"]["binstall"];
    let of = |name: &str| {
        let filled = binstall[name].as_str().unwrap().replace("{ name }", "nigh").replace("{ version }", "V");
        filled.replace("{ target }", "T").replace("{ bin }", "nigh").replace("{ binary-ext }", "")
    };
    assert!(of("pkg-url").ends_with("/vV/nigh-V-T.tar.gz"), "{}", of("pkg-url"));
    assert_eq!(of("bin-dir"), "nigh-V-T/nigh");
    let script = read("scripts/release.sh");
    for line in ["name=nigh-$version-$1", "\"$folder/nigh\"", "$out/$name.tar.gz"] {
        assert!(script.contains(line), "{line}");
    }
}

/// The commands of an array of SLURM, each of which runs a collection.
#[test]
fn an_array_of_slurm_runs_the_collection_of_its_number() {
    let folder = tempfile::tempdir().unwrap();
    let list = folder.path().join("collections.tsv");
    let store = |name: &str| folder.path().join(name);
    let line = |name: &str, input: &str| format!("{}\t{input}\n", store(name).display());
    let input = path("tests/data/week-2024-01-08/*.warc.gz");
    let text = line("first", "no/such/*") + &line("second", input.to_str().unwrap()) + "third, without a tab\n";
    std::fs::write(&list, text).unwrap();
    let program = Path::new(env!("CARGO_BIN_EXE_nigh")).parent().unwrap();
    let search = format!("{}:{}", program.display(), std::env::var("PATH").unwrap());
    let task = |number: Option<&str>| {
        let mut command = Command::new("bash");
        command.arg(path("scripts/slurm-array.sh")).arg(&list).args(["--week", DATE, "--json"]);
        command.env("PATH", &search).env("SLURM_ARRAY_JOB_ID", "17").env_remove("SLURM_ARRAY_TASK_ID");
        ran(command.envs(number.map(|number| ("SLURM_ARRAY_TASK_ID", number))))
    };
    let second = task(Some("2"));
    assert_eq!(second.code, Some(0), "{}", second.stderr);
    assert!(has_week(&week(&store("second"), DATE)) && !store("first").exists());
    assert_eq!(serde_json::from_str::<serde_json::Value>(&second.stdout).unwrap()["run"], "17-2");
    for (number, code, wanted) in [
        (Some("1"), Some(1), "no input matches no/such/*"),
        (Some("3"), Some(2), "line 3: wanted are a store, a tab and an input"),
        (Some("9"), Some(2), "line 9: wanted are a store, a tab and an input"),
        (None, Some(1), "this is not a task of an array"),
    ] {
        let wrong = task(number);
        assert_eq!(wrong.code, code, "{number:?}: {}", wrong.stderr);
        assert!(wrong.stderr.contains(wanted), "{wanted}: {}", wrong.stderr);
    }
}

#[test]
fn commands_in_comments_can_be_pasted() {
    for name in [
        "scripts/Dockerfile",
        "scripts/kubernetes.yaml",
        "scripts/kubernetes/weekly/kustomization.yaml",
        "scripts/kubernetes/pool/kustomization.yaml",
        "scripts/systemd/nigh.service",
        "scripts/slurm.sh",
        "scripts/slurm-array.sh",
    ] {
        let text = read(name);
        let commands: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("#     ")).collect();
        assert!(!commands.is_empty(), "{name}");
        let checked = ran(Command::new("bash").args(["-n", "-c", &commands.join("\n")]));
        assert_eq!(checked.code, Some(0), "{name}: {}", checked.stderr);
    }
}

/// What a user names is in the folder where the user is, and may have blanks.
#[test]
fn scripts_take_paths_from_the_folder_of_the_user() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path().join("a folder");
    std::fs::create_dir(&here).unwrap();
    // Small, so that it is packed at once.
    let stand_in = format!(
        "#!/bin/sh\ncase $1 in --version) echo nigh {};; man) mkdir -p \"$3\";; esac\n",
        env!("CARGO_PKG_VERSION")
    );
    let program = |name: &str, text: &str| {
        std::fs::write(here.join(name), text).unwrap();
        assert!(Command::new("chmod").arg("+x").arg(here.join(name)).status().unwrap().success());
    };
    program("the program", &stand_in);
    let script =
        |name: &str, arguments: &[&str]| ran(Command::new("bash").arg(path(name)).args(arguments).current_dir(&here));
    let packed = script("scripts/release.sh", &["--program", "the program", "the files"]);
    assert_eq!(packed.code, Some(0), "{}", packed.stderr);
    let sums = std::fs::read_to_string(here.join("the files/SHA256SUMS")).unwrap();
    assert!(sums.lines().count() == 2 && sums.contains(".tar.gz"), "{sums}");
    let root = script("scripts/image-root.sh", &["the program", "the root"]);
    if root.stderr.contains("install ca-certificates") {
        return skipped(Need::Mount, "the root folder of the image (no ca-certificates)");
    }
    assert_eq!(root.code, Some(0), "{}", root.stderr);
    assert!(here.join("the root/usr/bin/nigh").is_file());
    // The libraries of a program that does not run here are not known.
    program("other", "\x7fELF of another machine");
    let other = script("scripts/image-root.sh", &["other", "of other"]);
    assert!(other.code == Some(1) && other.stderr.contains("does not run on this machine"), "{}", other.stderr);
    assert!(!here.join("of other").exists());
}

/// The root folder of the image is a container's as far as a chroot is one: its file system cannot
/// be written to, the user has no rights, and only `/data` is a volume.
#[test]
fn the_program_runs_in_the_root_folder_of_the_image() {
    let folder = tempfile::tempdir().unwrap();
    let (root, data) = (folder.path().join("root"), folder.path().join("data"));
    let made = ran(Command::new("bash").arg(path("scripts/image-root.sh")).arg(env!("CARGO_BIN_EXE_nigh")).arg(&root));
    if made.stderr.contains("install ca-certificates") {
        return skipped(Need::Mount, "the root folder of the image (no ca-certificates)");
    }
    assert_eq!(made.code, Some(0), "{}", made.stderr);
    std::fs::create_dir(&data).unwrap();
    let week_of = path("tests/data/week-2024-01-08");
    assert!(Command::new("cp").arg("-r").arg(week_of).arg(data.join("crawl")).status().unwrap().success());
    let inside = |command: &str| {
        let script = format!(
            "set -e; chown -R 10001:10001 '{data}'; mount --bind '{root}' '{root}'; mount --bind /proc '{root}/proc'
             mount --bind /dev '{root}/dev'; mount --bind '{data}' '{root}/data'; mount -o remount,bind,ro '{root}'; cd '{root}'
             exec env -i HOME=/data PATH=\"$PATH\" chroot --userspec=10001:10001 . /usr/bin/nigh {command}",
            data = data.display(),
            root = root.display()
        );
        ran(Command::new("unshare").args(["--mount", "sh", "-c", &script]))
    };
    let version = inside("--version");
    if version.code != Some(0) && ["unshare: ", "mount: ", "chown: "].iter().any(|word| version.stderr.contains(word)) {
        return skipped(Need::Mount, "the program in the root folder of the image");
    }
    assert_eq!(version.stdout, format!("nigh {}\n", env!("CARGO_PKG_VERSION")), "{}", version.stderr);
    let made = inside(&format!("run --week {DATE} --store /data/store --input /data/crawl --processes 2 --json"));
    assert_eq!(made.code, Some(0), "{}", made.stderr);
    assert!(has_week(&week(&data.join("store"), DATE)));
    // Nothing can be written elsewhere, and the message names the place.
    let refused = inside(&format!("run --week {DATE} --store /store --input /data/crawl"));
    assert!(refused.code == Some(1) && refused.stderr.contains("/store"), "{}", refused.stderr);
    // The config of a pool is there: it wants a scheduler's variables.
    let pool = inside("run --config /etc/nigh/kubernetes.toml --store /data/store --input /data/crawl");
    assert!(pool.code == Some(2) && pool.stderr.contains("Indexed Job"), "{}", pool.stderr);
    // Files of this user cannot be removed by another.
    assert!(Command::new("chown").args(["-R", "0:0"]).arg(&data).status().unwrap().success());
}
