//! All inputs, written again by several threads.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use anyhow::{Context as _, Result, bail};

use super::card::CARD;
use super::each_file::{each_file, has_documents, locked};
use super::exported::Exported;
use super::file::Writing;
use super::written_dataset::{WrittenDataset, write_card};
use crate::export::archives::{IndexFiles, WrittenPart, WrittenWacz, wacz_of};
use crate::export::place::{ExportFolder, Output, WrittenFile, output_paths, whole_wacz};
use crate::export::revisits::warc_name;
use crate::export::rows::ExportFormat;
use crate::export::shards::write_shards;
use crate::export::verdicts::{Verdict, Verdicts};
use crate::readers::{Format, Input, Location, list};

/// Writes the file of each input that has documents. `done` is called after each file, with the
/// number of whole files and of all.
///
/// Memory: the verdicts of one file for each thread, and of one more.
///
/// # Errors
/// If an input cannot be read, has changed, or has a format that is not written; or a file cannot
/// be written. Files that are whole stay.
pub fn write_dataset(
    inputs: &[Input],
    verdicts: Verdicts,
    writing: &Writing<'_>,
    folder: ExportFolder,
    index: Option<IndexFiles>,
    threads: usize,
    done: &(dyn Fn(usize, usize) + Sync),
) -> Result<WrittenDataset> {
    if let Some(rule) = writing.shards {
        return write_shards(inputs, verdicts, writing, rule, folder, threads, done);
    }
    let paths = output_paths(inputs, writing.format, writing.makes_warc())?;
    if writing.card.is_some() && paths.iter().any(|path| path == CARD) {
        bail!("an input would be written to {CARD}, which is the name of the card: leave out --card");
    }
    let place = folder.place();
    let all = inputs.iter().zip(&paths).filter(|(input, _)| has_documents(input)).map(|(_, path)| path);
    let all = all.collect::<BTreeSet<_>>().len();
    let waczs = waczs(inputs, &paths, writing.format, &folder)?;
    let state = Mutex::new(DatasetState { folder, waczs, written: WrittenDataset::default() });
    let count = |counts: Exported| {
        let mut state = locked(&state);
        state.written.files += 1;
        state.written.counts.merge(counts);
        done(state.written.files as usize, all);
    };
    let indexed = |number: usize| -> Result<()> {
        let (Some(index), input) = (&index, &inputs[number]) else { return Ok(()) };
        let root = place.folder().context("an index is of files in a folder")?;
        match written_archive(&root.join(&paths[number]), input, writing)? {
            Some((written, entry)) => {
                let name = entry.map_or_else(|| paths[number].clone(), |entry| format!("{}/{entry}", paths[number]));
                index.add(input, &written, &name, writing.reading)
            }
            None => Ok(()),
        }
    };
    let write = |number: usize, verdicts: &[Verdict]| -> Result<()> {
        let path = &paths[number];
        let (listed, unfinished, is_part) = {
            let state = locked(&state);
            let wacz = state.waczs.get(path);
            let listed = wacz.map_or_else(|| state.folder.listed(path), |wacz| wacz.listed.clone());
            (listed, state.folder.unfinished(number), wacz.is_some())
        };
        // Whether the file of a WACZ is whole was seen at the beginning.
        let whole = match listed {
            Some(file) if is_part || place.has(&file)? => Some(file.counts),
            _ => None,
        };
        let counts = match whole {
            Some(counts) => counts,
            None => {
                let name = wacz_of(&inputs[number]).filter(|_| is_part).map_or(path.as_str(), |(_, entry)| entry);
                let (counts, written) = writing.write(&inputs[number], verdicts, Path::new(name), &unfinished)?;
                if !is_part {
                    let file = WrittenFile::new(path.clone(), written, counts);
                    place.put(&unfinished, &file)?;
                    locked(&state).folder.add(&unfinished, file)?;
                }
                counts
            }
        };
        if !is_part {
            indexed(number)?;
            count(counts);
            return Ok(());
        }
        let Some((wacz, scratch, to)) = locked(&state).ended(path, number, whole.is_none().then_some(counts)) else {
            return Ok(());
        };
        let counts = match whole {
            Some(counts) => counts,
            None => {
                let mut counts = Exported::default();
                wacz.counts.iter().for_each(|part| counts.merge(*part));
                let part = |number: &usize| {
                    let input = &inputs[*number];
                    let name = written_entry(input, writing).context("a part of a WACZ has a name in it")?;
                    let path = locked(&state).folder.unfinished(*number);
                    Ok(WrittenPart { name, path, format: written_format(input, writing) })
                };
                let parts: Vec<WrittenPart> = wacz.numbers.iter().map(part).collect::<Result<_>>()?;
                let Location::Entry { archive: source, .. } = &inputs[number].place else { bail!("{path} is no WACZ") };
                let reading = &*inputs[number].reading(writing.reading);
                let made = WrittenWacz { source, parts: parts.clone(), reading, scratch };
                let failed = || format!("cannot write {path}");
                let out = made.write(Output::create(&to).with_context(failed)?).with_context(failed)?;
                let written = out.finish().with_context(failed)?;
                parts.iter().try_for_each(|part| std::fs::remove_file(&part.path)).with_context(failed)?;
                let file = WrittenFile::new(path.clone(), Some(written), counts);
                place.put(&to, &file)?;
                locked(&state).folder.add(&to, file)?;
                counts
            }
        };
        wacz.numbers.iter().try_for_each(|number| indexed(*number))?;
        count(counts);
        Ok(())
    };
    each_file("write", inputs, verdicts, threads, &write)?;
    let DatasetState { mut folder, mut written, .. } = state.into_inner().unwrap_or_else(PoisonError::into_inner);
    written.index = index.map(|index| index.write(&mut folder)).transpose()?;
    let paths = inputs.iter().zip(&paths).filter(|(input, _)| has_documents(input)).map(|(_, path)| path.as_str());
    let is_there = |path: &&str| folder.listed(path).is_some_and(|file| file.is_there());
    let paths: BTreeSet<&str> = paths.filter(is_there).collect();
    written.files = paths.len() as u64;
    write_card(writing, &mut folder, &paths, &written.counts, inputs.len())?;
    folder.finish()?;
    Ok(written)
}

/// The files of the archives that become a WACZ, by the path of that.
fn waczs(
    inputs: &[Input],
    paths: &[String],
    format: ExportFormat,
    folder: &ExportFolder,
) -> Result<BTreeMap<String, WaczArchives>> {
    let mut waczs: BTreeMap<String, WaczArchives> = BTreeMap::new();
    for (number, (input, path)) in inputs.iter().zip(paths).enumerate() {
        if whole_wacz(input, format).is_some() {
            waczs.entry(path.clone()).or_default().numbers.push(number);
        }
    }
    for (path, parts) in &mut waczs {
        parts.listed = folder.listed(path);
        if let Some(file) = &parts.listed
            && !folder.place().has(file)?
        {
            parts.listed = None;
        }
    }
    Ok(waczs)
}

/// The archive that was written for an input, and its name in the WACZ that it is in. `None` if
/// what was written is no archive.
fn written_archive(path: &Path, input: &Input, writing: &Writing<'_>) -> Result<Option<(Input, Option<String>)>> {
    let is_archive = input.format.has_captures() && writing.format.of(input)?.is_none();
    if !is_archive {
        return Ok(None);
    }
    if let Some(entry) = written_entry(input, writing) {
        let found = list(&[path.display().to_string()], writing.reading)?;
        let of_entry = found.into_iter().find(|found| wacz_of(found).is_some_and(|(_, name)| name == entry));
        let archive = of_entry.with_context(|| format!("{} has no {entry}", path.display()))?;
        return Ok(Some((archive, Some(entry))));
    }
    let format = written_format(input, writing);
    let bytes = std::fs::metadata(path).with_context(|| format!("cannot read {}", path.display()))?.len();
    let name = path.display().to_string();
    let place = Location::File(path.to_owned());
    Ok(Some((Input { name, bytes, format, place, page_url: None, stamp: String::new(), reading: None }, None)))
}

/// The format of the archive that is written for one.
fn written_format(input: &Input, writing: &Writing<'_>) -> Format {
    if writing.makes_warc() { Format::Warc } else { input.format }
}

/// The name of an archive in the WACZ that is written; `None` if it is in none.
fn written_entry(input: &Input, writing: &Writing<'_>) -> Option<String> {
    let (_, entry) = wacz_of(input)?;
    let is_same = written_format(input, writing) == input.format;
    Some(if is_same { entry.to_owned() } else { warc_name(entry) })
}

/// What the threads share.
struct DatasetState {
    folder: ExportFolder,
    waczs: BTreeMap<String, WaczArchives>,
    written: WrittenDataset,
}

/// The archives of a WACZ.
#[derive(Clone, Default)]
struct WaczArchives {
    /// The numbers of the inputs.
    numbers: Vec<usize>,
    /// The WACZ, if it is whole.
    listed: Option<WrittenFile>,
    /// How many have ended, and what those have that were written.
    ended: usize,
    counts: Vec<Exported>,
}

impl DatasetState {
    /// Counts an archive of a WACZ that has ended. After the last one: all of them, a folder to
    /// work in, and where to write the WACZ.
    fn ended(
        &mut self,
        path: &str,
        number: usize,
        counts: Option<Exported>,
    ) -> Option<(WaczArchives, PathBuf, PathBuf)> {
        let parts = self.waczs.get_mut(path)?;
        parts.ended += 1;
        parts.counts.extend(counts);
        let to = self.folder.unfinished(number).with_extension("wacz");
        (parts.ended == parts.numbers.len()).then(|| (parts.clone(), to.with_extension("work"), to))
    }
}
