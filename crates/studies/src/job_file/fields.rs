//! Fields of a job that are given beside its file, by flags.

use std::path::Path;

use anyhow::{Result, bail};

use super::{AnyJob, job_file, job_of_text};
use crate::config::{Cluster, parse};

/// A field of a job that makes a week, with the value that takes the place of the job's.
#[derive(Clone, Debug, PartialEq)]
pub struct JobField {
    /// The flag that gives it, as messages name it: `--similarity`.
    pub flag: &'static str,
    /// The tables in the job's own that lead to it: `read`, `columns`.
    pub tables: &'static [&'static str],
    /// Its key.
    pub name: &'static str,
    /// Its value.
    pub value: toml::Value,
    /// Whether the flag was typed; otherwise it is an environment variable, which is there for all
    /// jobs.
    pub is_typed: bool,
}

/// A job, and the fields of its file whose place others took, though these have another name:
/// `preset = "fetterly-2004"`.
#[derive(Clone, Debug)]
pub struct JobWithFields {
    /// The job.
    pub job: AnyJob,
    /// What is not in the job any more.
    pub replaced: Vec<String>,
}

/// What makes two documents candidates, in the table `method`.
const SHAPE: [&str; 4] = ["preset", "features", "supershingles", "agreements"];

/// Reads a job file, or takes the job with the defaults, and sets some fields.
///
/// A field takes the place of the one of its name, and is checked as that is. A preset is the name
/// of three numbers, and takes their place, too. A similarity without a preset takes the place of
/// all of them: nigh chooses the numbers for it.
///
/// # Errors
/// As [`read_job`](super::read_job); or if the job does not make a week and a flag was typed, or
/// the fields do not fit the job. The message names the flags.
pub fn read_job_with(path: Option<&Path>, fields: &[JobField]) -> Result<JobWithFields> {
    let name = path.map_or_else(|| "the built-in job".to_owned(), |path| path.display().to_string());
    let text = path.map_or_else(|| Ok("[cluster]\n".to_owned()), job_file)?;
    let job = job_of_text(path.unwrap_or(Path::new(&name)), &text)?;
    if fields.is_empty() {
        return Ok(JobWithFields { job, replaced: Vec::new() });
    }
    let mut file: toml::Table = parse(path.unwrap_or(Path::new(&name)), &text)?;
    let (AnyJob::Cluster(_), Some(toml::Value::Table(table))) =
        (&job, file.iter_mut().next().map(|(_, of_kind)| of_kind))
    else {
        let typed: Vec<&str> = fields.iter().filter(|field| field.is_typed).map(|field| field.flag).collect();
        if typed.is_empty() {
            return Ok(JobWithFields { job, replaced: Vec::new() });
        }
        bail!("{name}: {} is for jobs that make a week from a crawl or a dataset", typed.join(", "));
    };
    let replaced = replace_shape(table, fields);
    for JobField { tables, name: key, value, .. } in fields {
        inner_table(table, tables).insert((*key).to_owned(), value.clone());
    }
    match toml::Value::Table(std::mem::take(table)).try_into::<Cluster>() {
        Ok(job) => Ok(JobWithFields { job: AnyJob::Cluster(job), replaced }),
        Err(error) => {
            let given = fields.iter().map(|field| format!("{} {}", field.flag, shown(&field.value)));
            bail!("{name}, with {}: {}", given.collect::<Vec<_>>().join(" "), error.to_string().trim_end())
        }
    }
}

/// Removes what a similarity or a preset takes the place of. Returns it as it was written.
fn replace_shape(table: &mut toml::Table, fields: &[JobField]) -> Vec<String> {
    let has = |key: &str| fields.iter().any(|field| field.tables == ["method"] && field.name == key);
    if !has("similarity") && !has("preset") {
        return Vec::new();
    }
    let method = inner_table(table, &["method"]);
    let gone = SHAPE.into_iter().filter_map(|key| Some((key, method.remove(key)?)));
    // Another value of the same field is no surprise.
    gone.filter(|(key, _)| !has(key)).map(|(key, value)| format!("{key} = {value}")).collect()
}

/// A table in a table, at the end of a path; it is made if it is not there.
fn inner_table<'a>(mut table: &'a mut toml::Table, path: &[&str]) -> &'a mut toml::Table {
    for key in path {
        let inner = table.entry(*key).or_insert_with(|| toml::Value::Table(toml::Table::new()));
        table = inner.as_table_mut().expect("the job was read, so that its tables are tables");
    }
    table
}

/// A value as a flag has it: text without quotes.
fn shown(value: &toml::Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Method, Verify};

    fn field(flag: &'static str, name: &'static str, value: impl Into<toml::Value>) -> JobField {
        JobField { flag, tables: &["method"], name, value: value.into(), is_typed: true }
    }

    /// The job of this text with these fields.
    fn with(text: &str, fields: &[JobField]) -> Result<(Cluster, Vec<String>), String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("job.toml");
        std::fs::write(&path, text).unwrap();
        match read_job_with(Some(&path), fields) {
            Ok(JobWithFields { job: AnyJob::Cluster(job), replaced }) => Ok((job, replaced)),
            Ok(_) => panic!("the job makes a week"),
            Err(error) => Err(error.to_string()),
        }
    }

    #[test]
    fn a_field_is_as_if_the_job_had_it() {
        let similarity = field("--similarity", "similarity", 0.8);
        let verify = field("--verify", "verify", "exact");
        let tables = &["read", "columns"];
        let id = JobField { flag: "--id", tables, name: "id", value: "key".into(), is_typed: true };
        for kind in ["cluster", "weekly"] {
            let (job, replaced) = with(
                &format!("[{kind}]\n[{kind}.method]\nwords = 7\nsimilarity = 0.9\n"),
                &[similarity.clone(), verify.clone(), id.clone()],
            )
            .unwrap();
            let written: Method = toml::from_str("words = 7\nsimilarity = 0.8\nverify = \"exact\"").unwrap();
            assert_eq!((job.method.unwrap().method, replaced.len()), (written, 0));
            assert_eq!((job.read.columns.id.as_deref(), job.read.columns.text.only()), (Some("key"), Some("text")));
        }
        let AnyJob::Cluster(job) = read_job_with(None, &[similarity]).unwrap().job else { panic!("it makes a week") };
        assert_eq!(job.method.unwrap().method, toml::from_str("similarity = 0.8").unwrap());
        let AnyJob::Cluster(job) = read_job_with(None, &[]).unwrap().job else { panic!("it makes a week") };
        assert_eq!((job.method, job.accuracy), (None, true));
    }

    #[test]
    fn a_similarity_takes_the_place_of_numbers_and_a_preset_that_of_its_three() {
        let (similarity, preset) =
            (field("--similarity", "similarity", 0.8), field("--preset", "preset", "minhash-14x8"));
        let chosen: Method = toml::from_str("similarity = 0.8").unwrap();
        let bands: Method = toml::from_str("preset = \"minhash-14x8\"").unwrap();
        let both: Method = toml::from_str("preset = \"minhash-14x8\"\nsimilarity = 0.8").unwrap();
        let numbers = "[cluster.method]\nfeatures = 60\nagreements = 3\n";
        let method = |text: &str, fields: &[JobField]| {
            let (job, replaced) = with(text, fields).unwrap();
            (job.method.unwrap().method, replaced.join(", "))
        };
        assert_eq!(
            method(numbers, std::slice::from_ref(&similarity)),
            (chosen.clone(), "features = 60, agreements = 3".to_owned())
        );
        let named = "[cluster.method]\npreset = \"fetterly-2004\"\n";
        assert_eq!(method(named, std::slice::from_ref(&similarity)), (chosen, "preset = \"fetterly-2004\"".to_owned()));
        assert_eq!(method(named, std::slice::from_ref(&preset)), (bands.clone(), String::new()));
        assert_eq!(method(numbers, std::slice::from_ref(&preset)).0, bands);
        assert_eq!(method(numbers, &[similarity, preset]).0, both);
    }

    #[test]
    fn what_does_not_fit_is_an_error_with_the_flags() {
        let verify = [field("--verify", "verify", "exact")];
        let error = with("[cluster]\n", &verify).unwrap_err();
        assert!(error.contains("job.toml, with --verify exact: verify needs a similarity"), "{error}");
        let error = read_job_with(None, &[field("--preset", "preset", "minhash-9")]).unwrap_err().to_string();
        assert!(error.starts_with("the built-in job, with --preset minhash-9: preset = \"minhash-9\""), "{error}");
        let error = with("[mirrors]\n", &verify).unwrap_err();
        assert!(error.contains("job.toml: --verify is for jobs that make a week"), "{error}");
        // Variables are there for all jobs.
        let of_variable = JobField { is_typed: false, ..verify[0].clone() };
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("job.toml");
        std::fs::write(&path, "[mirrors]\n").unwrap();
        let read = read_job_with(Some(&path), std::slice::from_ref(&of_variable)).unwrap();
        assert!(matches!(read.job, AnyJob::Study(_)));
        let error = with("[mirrors]\n", &[of_variable, field("--preset", "preset", "minhash-9x8")]).unwrap_err();
        assert!(error.contains("job.toml: --preset is for jobs"), "{error}");
        // A mistake of the file has its place.
        let error = with("[cluster]\nimput = []\n", &verify).unwrap_err();
        assert!(error.contains("line 2, column 1"), "{error}");
        let (job, _) = with("[cluster.method]\nsimilarity = 0.9\n", &verify).unwrap();
        assert_eq!(job.method.unwrap().method.verify, Verify::Exact);
    }
}
