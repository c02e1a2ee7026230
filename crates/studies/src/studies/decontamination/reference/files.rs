//! The files of a reference: benchmarks, folders of them, and stores.

use std::path::Path;

use anyhow::{Context as _, Result, ensure};

use crate::config::{Cluster, Columns, Reading};
use crate::plan::job_of_week;
use crate::readers::{self, Pipes};
use crate::state::Store;
use crate::studies::decontamination::Decontamination;
use crate::studies::passages::corpus_of_week;
use crate::studies::{ReferenceFile, ReferenceStore};

/// The files of a reference, in the order of their names; those of stores follow, store by store.
/// `own` is the store whose documents are compared; `notice` is told what is left out of folders.
///
/// # Errors
/// If the job names none, one matches nothing, or a store has no week or files that are not at
/// hand.
pub fn find(job: &Decontamination, own: &Store, notice: &dyn Fn(&str)) -> Result<Vec<ReferenceFile>> {
    ensure!(
        !job.against.is_empty(),
        "there is nothing to compare with: give --against FILES, or `against` in [decontamination]"
    );
    let columns = job.columns();
    let reading = Reading {
        columns: Columns { id: job.id.clone(), text: columns.into_iter().take(1).collect(), ..Columns::default() },
        ..Reading::default()
    };
    let (mut files, mut of_stores) = (Vec::new(), Vec::new());
    for name in &job.against {
        match store_at(name)? {
            Some(store) => of_stores.extend(files_of_store(name, &store, own)?),
            None => files.push(name.clone()),
        }
    }
    let mut inputs = Vec::new();
    if !files.is_empty() {
        let pipes = Pipes::Refuse("write it to a file, and name that file");
        let found = readers::list_with_pipes(&files, &reading, pipes).context("in the reference")?;
        if !found.left_out.is_empty() {
            notice(&format!("left out of the reference: {}", found.left_out));
        }
        inputs = found.inputs;
    }
    let of_files = inputs.into_iter().map(|input| ReferenceFile { input, reading: reading.clone(), of_store: None });
    Ok(of_files.chain(of_stores).collect())
}

/// The store in a folder, if there is one.
fn store_at(name: &str) -> Result<Option<Store>> {
    let path = Path::new(name);
    if !path.is_dir() {
        return Ok(None);
    }
    let store = Store::at(path);
    Ok(store.manifest()?.map(|_| store))
}

/// The inputs of the last week of a store.
fn files_of_store(name: &str, store: &Store, own: &Store) -> Result<Vec<ReferenceFile>> {
    let same = |a: &Path, b: &Path| std::fs::canonicalize(a).ok() == std::fs::canonicalize(b).ok();
    ensure!(
        !same(store.root(), own.root()),
        "{name} is the store itself, and its documents are in one corpus: `nigh run jobs/passages.toml` and clusters compare them"
    );
    let week = store.manifest()?.and_then(|manifest| manifest.weeks.last().cloned());
    let week = week.with_context(|| format!("{name} is a store without a week: there is nothing to compare with"))?;
    let Cluster { read: reading, .. } = job_of_week(store, &week)?;
    let inputs = corpus_of_week(store, week.week, &[]).with_context(|| format!("in the reference {name}"))?.crawl;
    let names = store.whole(&week)?.journal;
    let missing = names
        .inputs(week.week)
        .flat_map(|(_, names)| names.keys())
        .find(|file| !inputs.iter().any(|input| input.name == **file));
    ensure!(
        missing.is_none(),
        "{} is not at hand, and the reference {name} was made from it: put it back, or name files instead of the store",
        missing.map_or("a file", String::as_str)
    );
    let of_store = ReferenceStore { store: store.root().to_owned(), week: week.week };
    let file = |input| ReferenceFile { input, reading: reading.clone(), of_store: Some(of_store.clone()) };
    Ok(inputs.into_iter().map(file).collect())
}
