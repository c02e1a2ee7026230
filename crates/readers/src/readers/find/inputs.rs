//! Turns the items of `input` (what a user names) into input files.
//!
//! An item is a file, a pipe (`-` is standard input), a folder, a glob (`*`, `?`, `**`, `[..]`,
//! `{..}`), a URL of an object or of a folder of objects, or a listing (`warc.paths`,
//! `warc.paths.gz`, any file after an `@`, or a crawl of Common Crawl after `cc:`) with one such
//! item in each line.
//!
//! Tables (`.csv`, `.tsv`, except those of failed downloads) and texts (`.txt`, `.md`) of folders
//! and globs are inputs if the glob names their ending, or if nothing else is: beside a crawl they
//! are its reports.

use std::collections::{BTreeSet, HashSet};
use std::ops::Bound;
use std::path::PathBuf;

use anyhow::{Context as _, bail};
use nigh_kernels::structures::CompactSort;

use super::found::{FoundBy, FoundInput};
use super::left_out::LeftOut;
use super::page_url::page_url;
use super::recognised::{
    KNOWN, format_if_unnamed, format_of_content, format_of_name, is_hidden, is_report, kind_of_name,
};
use super::search::InputSearch;
use super::spool::{Pipes, is_passing};
use crate::readers::formats::RecordKind;
use crate::readers::input::{Format, Input, Location};
use crate::readers::url_list::UrlFile;
use crate::readers::wacz;
use crate::readers::whole::PageKind;
use crate::reading::Reading;

/// Lists the input files that the items name, sorted by name. A file with two names counts once.
///
/// ```
/// use nigh_readers::reading::Reading;
/// use nigh_readers::readers::{Format, list};
///
/// let inputs = list(&["../../tests/data/week-2024-01-08".to_owned()], &Reading::default())?;
/// assert_eq!(inputs.len(), 4);
/// assert_eq!(inputs[0].name, "../../tests/data/week-2024-01-08/crawl-00000.warc.gz");
/// assert_eq!((inputs[0].format, inputs[3].format), (Format::Warc, Format::Failed));
///
/// let error = list(&["no/such/file".to_owned()], &Reading::default()).unwrap_err();
/// assert!(error.to_string().starts_with("no input matches no/such/file"));
/// # anyhow::Ok(())
/// ```
///
/// # Errors
/// If an item matches nothing, cannot be read, is a pipe, or has no known format. The message
/// contains the remedy.
pub fn list(items: &[String], reading: &Reading) -> anyhow::Result<Vec<Input>> {
    let pipes = Pipes::Refuse("write it to a file, and name that file");
    list_with_pipes(items, reading, pipes).map(|found| found.inputs)
}

/// The inputs that a user names, and what lies beside them.
pub struct FoundInputs {
    /// The inputs, sorted by name.
    pub inputs: Vec<Input>,
    /// What folders and globs hold besides.
    pub left_out: LeftOut,
}

/// Lists the input files that the items name, as [`list`] does, and the pipes.
///
/// # Errors
/// As [`list`]; and if a pipe cannot be read or copied.
pub fn list_with_pipes(items: &[String], reading: &Reading, pipes: Pipes<'_>) -> anyhow::Result<FoundInputs> {
    let mut search = InputSearch::new(pipes, &reading.folders);
    for item in items {
        search.item(item, reading)?;
    }
    let found = search.inputs(reading)?;
    if found.inputs.is_empty() && !items.is_empty() {
        bail!("no input in {}: it has files, but none ends in {KNOWN}", items.join(" "));
    }
    Ok(found)
}

/// Lists the inputs with these names as far as they are there: those that the items of the run gave
/// which read them, and others by their names alone. An item that cannot be listed gives none. What
/// a run read from standard input or a pipe is gone; and without `asks_servers`, so is what is not
/// on this machine.
///
/// An item says more than a name: of a WACZ, which file is read; of a page in a folder, its URL; of
/// a file with a name like `@pages.warc`, that it is not a listing.
pub fn list_again(items: &[String], reading: &Reading, wanted: &BTreeSet<&str>, asks_servers: bool) -> Vec<Input> {
    let begin = || InputSearch { asks_servers, ..InputSearch::new(Pipes::PassOver, &reading.folders) };
    let mut left: BTreeSet<&str> = wanted.iter().copied().filter(|name| !is_passing(name)).collect();
    let mut found = Vec::new();
    let mut take = |search: anyhow::Result<InputSearch<'_>>, left: &mut BTreeSet<&str>| {
        let Ok(mut search) = search else { return };
        // The rest of a folder has nothing to say: new files there can be of any kind.
        search.files.retain(|file| is_wanted(&file.name, left));
        let Ok(FoundInputs { inputs, .. }) = search.inputs(reading) else { return };
        found.extend(inputs.into_iter().filter(|input| left.remove(input.name.as_str())));
    };
    for item in items {
        if left.is_empty() {
            break;
        }
        let mut search = begin();
        take(search.item(item, reading).map(|()| search), &mut left);
    }
    for name in left.clone() {
        // One that was found in a WACZ that another name led to.
        if !left.contains(name) {
            continue;
        }
        for item in [Some(name), wacz_of(name)].into_iter().flatten() {
            let mut search = begin();
            take(search.find(&[item.to_owned()]).map(|()| search), &mut left);
        }
    }
    found
}

/// Whether a file has a wanted name, or an entry of it has one.
fn is_wanted(name: &str, wanted: &BTreeSet<&str>) -> bool {
    let inside = format!("{name}/");
    let mut after = wanted.range::<str, _>((Bound::Included(inside.as_str()), Bound::Unbounded));
    wanted.contains(name) || after.next().is_some_and(|wanted| wanted.starts_with(&inside))
}

/// The WACZ that an input of this name is an entry of.
fn wacz_of(name: &str) -> Option<&str> {
    const ENDING: &str = ".wacz";
    let end = name.to_ascii_lowercase().find(&format!("{ENDING}/"))? + ENDING.len();
    Some(&name[..end])
}

impl InputSearch<'_> {
    /// The inputs among the files that were found.
    fn inputs(self, reading: &Reading) -> anyhow::Result<FoundInputs> {
        let InputSearch { files, mut left_out, .. } = self;
        let mut inputs = Vec::with_capacity(files.len());
        let mut of_folders = Vec::new();
        for file in files {
            let (by, kind) = (file.by, kind_of_name(&file.relative));
            match input(file, reading, &mut left_out)? {
                Some(wacz) if wacz.format == Format::Wacz => inputs.extend(wacz::list(wacz, &mut left_out)?),
                Some(input) if matches!(by, FoundBy::Folder | FoundBy::Glob) && is_report(input.format) => {
                    of_folders.push((input, kind))
                }
                input => inputs.extend(input),
            }
        }
        for (input, kind) in of_folders.split_off(if inputs.is_empty() { of_folders.len() } else { 0 }) {
            left_out.add(kind, &input.name);
        }
        inputs.extend(of_folders.into_iter().map(|(input, _)| input));
        inputs.sort_items_by(|a, b| a.name.cmp(&b.name));
        let mut seen = HashSet::new();
        inputs.retain(|input| seen.insert(unique_place(&input.place)));
        let is_not_utf8 = |input: &&Input| match &input.place {
            Location::File(path) | Location::Entry { archive: path, .. } => path.to_str().is_none(),
            Location::Object { .. } => false,
        };
        if let Some(input) = inputs.iter().find(is_not_utf8) {
            bail!("the name of {} is not UTF-8: rename it, because tables hold file names as text", input.name);
        }
        Ok(FoundInputs { inputs, left_out })
    }
}

/// Makes the input of a file; `None` if it is to be skipped. Skipped files without a known ending
/// are counted.
fn input(file: FoundInput, reading: &Reading, left_out: &mut LeftOut) -> anyhow::Result<Option<Input>> {
    let FoundInput { name, bytes, place, relative, by, stamp } = file;
    let format = match by {
        FoundBy::Name => match format_of_name(&relative) {
            None => Some(format_of_content(&name, bytes, &place)?),
            format => format,
        },
        _ if is_hidden(&relative) => return Ok(None),
        _ => format_if_unnamed(&relative, by),
    };
    let Some(format) = format else {
        left_out.add(kind_of_name(&relative), &name);
        return Ok(None);
    };
    let page_url = match format.records() {
        RecordKind::WholeFile(PageKind::Html) => Some(page_url(&relative, reading).with_context(|| {
            format!("cannot tell the URL of {name}: set base-url in [cluster.read], or arrange the folder as HOST/PATH")
        })?),
        RecordKind::WholeFile(PageKind::Text) => {
            reading.base_url.is_some().then(|| page_url(&relative, reading)).flatten()
        }
        _ => None,
    };
    Ok(Some(Input { name, bytes, format, place, page_url, stamp, reading: None }))
}

/// Lists the files with URLs that the items name, sorted by name: files, folders, globs and URLs of
/// objects. Names do not tell what is in them, so every file of a folder counts, except those whose
/// names begin with `.` or `_`.
///
/// # Errors
/// As [`list`], if an item matches nothing, cannot be read, or is a pipe.
pub fn url_files(items: &[String]) -> anyhow::Result<Vec<UrlFile>> {
    let pipes = Pipes::Refuse("write it to a file, and name that file");
    let mut search = InputSearch::new(pipes, &[]);
    search.find(items)?;
    let is_list = |file: &FoundInput| file.by == FoundBy::Name || !is_hidden(&file.relative);
    let files = search.files.into_iter().filter(is_list);
    let mut files: Vec<UrlFile> =
        files.map(|FoundInput { name, bytes, place, .. }| UrlFile { name, bytes, place }).collect();
    files.sort_items_by(|a, b| a.name.cmp(&b.name));
    let mut seen = HashSet::new();
    files.retain(|file| seen.insert(unique_place(&file.place)));
    Ok(files)
}

/// Returns the path of a location, the same for every name that it has, and the offset in the file.
fn unique_place(place: &Location) -> (PathBuf, u64) {
    let unique = |path: &PathBuf| path.canonicalize().unwrap_or_else(|_| path.clone());
    match place {
        Location::File(path) => (unique(path), 0),
        Location::Entry { archive, start, .. } => (unique(archive), *start),
        Location::Object { store, key } => (PathBuf::from(format!("{store}/{key}")), 0),
    }
}
