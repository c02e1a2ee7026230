//! Job files: what to compute. The outer table of a job file is its kind.
//!
//! They are TOML with kebab-case keys. The outer table of a job is its kind: `[cluster]`,
//! `[chunks]`, or the name of a study, as `[overlap]`. Only `week`, `store` and `input` have no
//! default:
//!
//! ```
//! use nigh_store::config::{Bytes, SameId};
//! use nigh_studies::job_file::AnyJob;
//!
//! let job: AnyJob = toml::from_str(
//!     r#"
//!     [cluster]
//!     week = "2024-01-08"
//!     store = "clusters"
//!     input = ["crawl/*.warc.gz"]
//!
//!     [cluster.read]
//!     same-id = "reject"
//!     "#,
//! )?;
//! let AnyJob::Cluster(job) = job else { panic!("the outer table is the kind") };
//! assert_eq!((job.read.same_id, job.method), (SameId::Reject, None));
//! assert_eq!(job.wave_bytes, Bytes(16 << 30));
//! # Ok::<(), toml::de::Error>(())
//! ```
//!
//! An unknown key, a wrong type or a value out of bounds is refused. The error shows the line with
//! a caret, and what is allowed; [`read_job`] adds the name of the file:
//!
//! ```
//! use nigh_studies::job_file::AnyJob;
//!
//! let error = toml::from_str::<AnyJob>("[cluster]\nimput = []\n").unwrap_err().to_string();
//! assert!(error.contains("line 2, column 1") && error.contains("^^^^^"));
//! assert!(error.contains("unknown field `imput`, expected one of `week`, `store`, `input`"));
//! ```

mod built_in;
mod fields;

pub use self::built_in::{built_in_job, built_in_jobs};
pub use self::fields::{JobField, JobWithFields, read_job_with};

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use anyhow::{Context as _, Result, bail};
use serde::{Deserialize, Deserializer};

use crate::config::{Chunks, Cluster, parse};
use crate::studies::{AnyStudy, Study, studies};

/// What a job file says to compute.
#[derive(Clone, Debug, Deserialize)]
#[serde(from = "JobTable")]
#[allow(clippy::large_enum_variant, reason = "a run has one job")]
pub enum AnyJob {
    /// Clusters a week: the first of a store, or a later one.
    Cluster(Cluster),
    /// Makes the table `chunks` of a committed week.
    Chunks(Chunks),
    /// Reads committed weeks of a store, and writes tables about them into a folder of its own.
    Study(AnyStudy),
}

macro_rules! job_table {
    ($($(#[$what:meta])* $Name:ident: $Study:ty;)*) => {
        /// The outer table of a job file.
        #[derive(Deserialize)]
        #[serde(rename_all = "kebab-case")]
        #[allow(clippy::large_enum_variant, reason = "a run has one job")]
        enum JobTable {
            #[serde(alias = "weekly")]
            Cluster(Cluster),
            Chunks(Chunks),
            $(#[serde(deserialize_with = "checked")] $Name($Study),)*
        }

        impl From<JobTable> for AnyJob {
            fn from(table: JobTable) -> AnyJob {
                match table {
                    JobTable::Cluster(job) => AnyJob::Cluster(job),
                    JobTable::Chunks(job) => AnyJob::Chunks(job),
                    $(JobTable::$Name(study) => AnyJob::Study(AnyStudy::$Name(study)),)*
                }
            }
        }
    };
}

studies!(job_table);

/// Reads the table of a study, and checks the rules that its types do not say.
fn checked<'de, D: Deserializer<'de>, S: Study>(table: D) -> Result<S, D::Error> {
    let study = S::deserialize(table)?;
    study.check().map_err(serde::de::Error::custom)?;
    Ok(study)
}

/// Reads a job file; `jobs/NAME.toml` is built in where there is no such file, for those who have
/// no clone.
///
/// # Errors
/// Names the file. For a mistake in it, the error shows line and column with a caret, and what is
/// allowed.
pub fn read_job(path: &Path) -> Result<AnyJob> {
    job_of_text(path, &job_file(path)?)
}

/// The job of a text, which has the name of a file.
fn job_of_text(path: &Path, text: &str) -> Result<AnyJob> {
    let job: AnyJob = parse(path, text)?;
    // A method has it, for what is said once in a store; a job says it where it says how pages are
    // read.
    let file: toml::Table = parse(path, text)?;
    for (kind, table) in &file {
        let content = table.get("method").and_then(|method| method.get("content"));
        if let (AnyJob::Cluster(_), Some(content)) = (&job, content) {
            bail!(
                "{}: `content` is in [{kind}.method]: write `content = {content}` into [{kind}.read] instead",
                path.display()
            );
        }
    }
    Ok(job)
}

/// Whether a path is that of an input: a folder, or a file that has another ending than a job, and
/// begins as no TOML does.
fn is_input(path: &Path) -> bool {
    if path.extension().is_some_and(|ending| ending == "toml") || !path.is_file() {
        return path.is_dir();
    }
    let mut first = [0; 512];
    let Ok(bytes) = File::open(path).and_then(|mut file| file.read(&mut first)) else { return false };
    let first = first[..bytes].trim_ascii_start();
    let begins_as_input = [&b"{"[..], b"<", b"WARC/"].iter().any(|sign| first.starts_with(sign));
    // Packed files; the last character may be cut.
    begins_as_input || std::str::from_utf8(first).is_err_and(|error| error.error_len().is_some())
}

/// The text of a job file, or of the built-in job that the path names.
fn job_file(path: &Path) -> Result<String> {
    if is_input(path) {
        let path = path.display();
        bail!("{path} is not a job file: `nigh run --input {path}` reads it");
    }
    match std::fs::read_to_string(path) {
        Ok(text) => Ok(text),
        Err(error) => match built_in_of(path) {
            Some(text) if error.kind() == std::io::ErrorKind::NotFound => Ok(text.to_owned()),
            _ => Err(error).with_context(|| {
                let names: Vec<&str> = built_in_jobs().filter(|name| *name != EXAMPLE).collect();
                format!(
                    "cannot read the job {} (`nigh init` writes one; jobs/NAME.toml is built in, where NAME is one of {})",
                    path.display(),
                    names.join(", ")
                )
            }),
        },
    }
}

/// The job of tests/data, which only a clone has.
const EXAMPLE: &str = "example";

/// The built-in job that a path names, `jobs/NAME.toml`.
fn built_in_of(path: &Path) -> Option<&'static str> {
    let name = path.to_str()?.strip_prefix("jobs/")?.strip_suffix(".toml")?;
    built_in_job(name).filter(|_| name != EXAMPLE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Bytes, Method};

    fn job(text: &str) -> Result<AnyJob, String> {
        parse(Path::new("job.toml"), text).map_err(|error| format!("{error:#}"))
    }

    #[test]
    fn keys_that_a_job_leaves_out_have_defaults() {
        let AnyJob::Cluster(cluster) =
            job("[cluster]\nweek = \"2024-01-08\"\n[cluster.method]\nagreements = 3\n").unwrap()
        else {
            panic!("the outer table is the kind");
        };
        assert_eq!(cluster.week.unwrap().to_string(), "2024-01-08");
        assert_eq!(cluster.method.unwrap().method, Method { agreements: 3, ..Method::default() });
        assert_eq!(cluster.read.max_page_bytes, Bytes(16 << 20));
    }

    #[test]
    fn a_typo_is_shown_with_its_place_and_what_is_allowed() {
        let error = job("[cluster]\nweek = \"2024-01-08\"\nimput = []\n").unwrap_err();
        assert!(error.contains("job.toml") && error.contains("line 3, column 1"), "{error}");
        assert!(error.contains('^') && error.contains("expected one of") && error.contains("`input`"), "{error}");
        let error = job("[clutser]\n").unwrap_err();
        assert!(error.contains("`clutser`") && error.contains("`cluster`") && error.contains("line 1"), "{error}");
    }

    #[test]
    fn numbers_out_of_bounds_are_refused_where_they_stand() {
        for (text, wanted) in [
            ("[cluster.method]\nfeatures = 83\n", "features = 83 cannot be divided"),
            ("[cluster.method]\nagreements = 7\n", "agreements = 7: allowed is 1 to 6"),
            ("[cluster.method]\nwords = 0\n", "words = 0: allowed is 1 to 64"),
            ("[cluster.method]\nshards = 48\n", "powers of two"),
            ("[cluster.method]\nfeatures = 64\nsupershingles = 64\nagreements = 30\n", "megashingles"),
            ("[cluster]\nweek = \"last\"\n", "YYYY-MM-DD"),
            ("[cluster]\nmax-reject-share = 2.0\n", "allowed is 0.0 to 1.0"),
            ("[cluster.read]\nmax-page-bytes = \"16 potatoes\"\n", "is not a size"),
            ("[cluster.read]\nmax-page-bytes = \"1025MiB\"\n", "1074790400: allowed is at most 1.0 GiB (1073741824)"),
            ("[cluster.read]\nmax-page-bytes = 0\n", "and at least 1"),
        ] {
            let error = job(text).unwrap_err();
            assert!(error.contains(wanted) && error.contains("line ") && error.contains('^'), "{error}");
        }
    }

    #[test]
    fn what_of_a_page_is_its_text_is_no_part_of_a_method() {
        let path = Path::new("job.toml");
        for kind in ["cluster", "weekly"] {
            let text = format!("[{kind}.method]\nwords = 7\ncontent = \"main\"\n");
            let error = job_of_text(path, &text).unwrap_err().to_string();
            assert_eq!(
                error,
                format!(
                    "job.toml: `content` is in [{kind}.method]: write `content = \"main\"` into [{kind}.read] instead"
                )
            );
            job_of_text(path, &text.replace("method", "read").replace("words = 7\n", "")).unwrap();
        }
    }

    #[test]
    fn an_input_in_the_place_of_a_job_is_named_so() {
        let folder = tempfile::tempdir().unwrap();
        let read = |name: &str, bytes: &[u8]| {
            let path = folder.path().join(name);
            std::fs::write(&path, bytes).unwrap();
            read_job(&path).map_err(|error| error.to_string())
        };
        for (name, bytes) in [
            ("pages.jsonl", &b" {\"id\": 1}\n"[..]),
            ("page", b"<!doctype html>"),
            ("crawl.warc", b"WARC/1.0\r\n"),
            ("crawl.warc.gz", b"\x1f\x8b\x08\0\0"),
            ("pages.jsonl.zst", b"\x28\xb5\x2f\xfd"),
        ] {
            let path = folder.path().join(name).display().to_string();
            let wanted = format!("{path} is not a job file: `nigh run --input {path}` reads it");
            assert_eq!(read(name, bytes).unwrap_err(), wanted);
        }
        let error = read_job(folder.path()).unwrap_err().to_string();
        assert!(error.contains("is not a job file: `nigh run --input"), "{error}");
        // A job may have any name, and one with a mistake says where that is.
        assert!(read("weekly.job", b"[cluster]\n").is_ok());
        assert!(read("job.toml", b"{}\n").unwrap_err().contains("line 1, column 1"));
        let error = read_job(&folder.path().join("pages.toml")).unwrap_err().to_string();
        assert!(error.contains("samplers") && !error.contains("example"), "{error}");
    }

    #[test]
    fn every_job_is_built_in_and_is_read() {
        let mut files: Vec<String> = std::fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../jobs"))
            .unwrap()
            .map(|file| file.unwrap().path().file_stem().unwrap().to_string_lossy().into_owned())
            .collect();
        files.sort();
        let mut names: Vec<&str> = built_in_jobs().collect();
        names.sort_unstable();
        assert_eq!(names, files);
        for name in names {
            let job = toml::from_str::<AnyJob>(built_in_job(name).unwrap());
            assert!(job.is_ok(), "{name}: {job:?}");
        }
    }

    #[test]
    fn the_commented_job_has_the_defaults() {
        let Ok(AnyJob::Cluster(job)) = toml::from_str(built_in_job("cluster").unwrap()) else {
            panic!("it is a [cluster] job")
        };
        let Cluster { method, .. } = &job;
        assert_eq!(method.clone().unwrap().method, Method::default());
        assert_eq!(Cluster { method: None, ..job }.to_text(), Cluster::default().to_text());
    }
}
