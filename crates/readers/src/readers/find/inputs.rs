//! Turns the items of `input` (what a user names) into input files.
//!
//! An item is a file, a pipe (`-` is standard input), a folder, a glob (`*`, `?`, `**`, `[..]`,
//! `{..}`), a URL of an object or of a folder of objects, or a listing (`warc.paths`,
//! `warc.paths.gz`, any file after an `@`, or a crawl of Common Crawl after `cc:`) with one such
//! item in each line.
//!
//! The ending of a name decides the format. A named file without a known ending is recognised by
//! its first bytes; in folders and globs such files are skipped. So are names that begin with `.`
//! or `_` and, in folders, `.json` files, which in a mirrored site are rarely lines of pages. A
//! `.tsv` file whose name begins with `failed` has failed downloads. Other tables (`.csv`, `.tsv`)
//! and texts (`.txt`, `.md`) of folders and globs are inputs if the glob names their ending, or if
//! nothing else is: beside a crawl they are its reports.

use std::collections::{BTreeSet, HashSet};
use std::fs;
use std::io::{ErrorKind, Read as _};
use std::ops::Bound;
use std::path::{Component, Path, PathBuf};

use anyhow::{Context as _, anyhow, bail, ensure};
use nigh_kernels::structures::CompactSort;
use walkdir::{DirEntry, WalkDir};

use super::common_crawl::{NamedCrawl, crawl_of};
use super::found::{COMPRESSED, FoundBy, FoundInput, modified};
use super::globs::{fixed_prefix, is_glob, matcher};
use super::left_out::LeftOut;
use super::listings::{items_of, listing_of};
use super::spool::{Pipes, STANDARD_INPUT, is_own_descriptor, is_passing};
use crate::readers::formats::{ALL, LineKind, RecordKind};
use crate::readers::input::{Format, Input, Location};
use crate::readers::streams::{MemberStep, Members, Stored};
use crate::readers::url_list::{UrlFile, begins_index};
use crate::readers::whole::PageKind;
use crate::readers::{jsonl, sniff, wacz};
use crate::reading::Reading;

/// Stored bytes of a file that are read to recognise its format.
const FIRST: u64 = 1 << 20;
/// The kind under which folders and globs leave out what is neither file nor folder.
const PIPES: &str = "pipes, sockets or devices";
/// The endings of inputs, for messages.
const KNOWN: &str = ".warc, .wet, .arc, .jsonl, .ndjson, .json, .csv, .tsv, .arrow, .feather, .html, .htm, .txt, .md (each also .gz, .zst, .bz2 or .xz), \
                     .wacz or .parquet";

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

/// The search for files, and what it has found so far.
struct InputSearch<'a> {
    pipes: Pipes<'a>,
    /// Where relative names are looked for before the working directory.
    folders: &'a [PathBuf],
    /// Whether object stores and web servers are asked.
    asks_servers: bool,
    files: Vec<FoundInput>,
    left_out: LeftOut,
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
/// a file with a name like `@pages.warc`, that it is no listing.
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

impl<'a> InputSearch<'a> {
    fn new(pipes: Pipes<'a>, folders: &'a [PathBuf]) -> InputSearch<'a> {
        InputSearch { pipes, folders, asks_servers: true, files: Vec::new(), left_out: LeftOut::default() }
    }

    /// Finds the files and objects that an item names, which can be a listing or standard input.
    fn item(&mut self, item: &String, reading: &Reading) -> anyhow::Result<()> {
        if let Some(NamedCrawl { listing, base }) = crawl_of(item)? {
            let reading = Reading { base_url: Some(base), listing_anywhere: false, ..reading.clone() };
            return self
                .listing(&listing, &reading)
                .with_context(|| format!("cannot list the files of {item}, which are those of {listing}"));
        }
        match listing_of(item) {
            None if item == STANDARD_INPUT => {
                self.files.extend(self.pipes.standard_input()?);
                Ok(())
            }
            Some(listing) => self.listing(listing, reading).with_context(|| {
                let base_url = match &reading.base_url {
                    Some(base) => format!("relative lines are below base-url = {base}"),
                    None => "if its lines are relative, set base-url in [cluster.read]".to_owned(),
                };
                format!("in the listing {listing} ({base_url})")
            }),
            None => self.find(std::slice::from_ref(item)),
        }
    }

    /// Finds the files and objects that the items name.
    fn find(&mut self, items: &[String]) -> anyhow::Result<()> {
        let (remote, local): (Vec<&String>, Vec<&String>) = items.iter().partition(|item| super::objects::is_url(item));
        for item in local {
            self.find_local(item.strip_prefix("file://").unwrap_or(item))?;
        }
        if !remote.is_empty() && self.asks_servers {
            super::objects::find(&remote, &mut self.files)?;
        }
        Ok(())
    }

    /// Finds the files and objects that the lines of a listing name.
    fn listing(&mut self, listing: &str, reading: &Reading) -> anyhow::Result<()> {
        let pipes = Pipes::Refuse("write the listing to a file");
        let mut search = InputSearch { asks_servers: self.asks_servers, ..InputSearch::new(pipes, self.folders) };
        search.find(&[listing.to_owned()])?;
        self.find(&items_of(search.files, reading)?)
    }

    /// Finds the files that a local item names: a relative one in the first folder that has it, and
    /// at last in the working directory.
    fn find_local(&mut self, item: &str) -> anyhow::Result<()> {
        let folders = if Path::new(item).is_absolute() { &[] } else { self.folders };
        for folder in folders {
            let (files, left_out) = (self.files.len(), self.left_out.clone());
            match self.find_below(item, folder) {
                // What is there and cannot be read is not looked for elsewhere.
                Err(error) if !is_absent(&folder.join(item)) => return Err(error),
                Err(_) => {
                    self.files.truncate(files);
                    self.left_out = left_out;
                }
                Ok(()) => return Ok(()),
            }
        }
        let others: Vec<String> =
            folders.iter().filter(|folder| folder.is_absolute()).map(|folder| folder.display().to_string()).collect();
        self.find_below(item, Path::new("")).map_err(|error| match &others[..] {
            [] => error,
            _ => anyhow!("{error:#}; nor is it in {}, from where earlier runs read inputs", others.join(" or ")),
        })
    }

    /// Finds the files that a local item names, which is relative to a folder. Their names do not
    /// have the folder. There are no more files if there is an error.
    fn find_below(&mut self, item: &str, folder: &Path) -> anyhow::Result<()> {
        let path = tidy(Path::new(item));
        match fs::metadata(folder.join(&path)) {
            Ok(metadata) if metadata.is_dir() => self.walk(&path, folder),
            // In another process a file descriptor means another file, so its name is resolved
            // here.
            Ok(metadata) if !metadata.is_file() || is_own_descriptor(&path) => {
                self.files.extend(self.pipes.special(item, &path, &metadata)?);
                Ok(())
            }
            Ok(metadata) => {
                self.files.push(FoundInput::file(path.to_string_lossy().into_owned(), folder.join(path), &metadata));
                Ok(())
            }
            Err(error) if error.kind() == ErrorKind::NotFound && is_glob(item) => self.glob(item, folder),
            Err(error) if error.kind() == ErrorKind::NotFound => {
                bail!(
                    "no input matches {item}: there is no such file or folder (relative paths start at the working directory)"
                )
            }
            Err(error) => Err(error).with_context(|| crate::readers::input::cannot("open", item)),
        }
    }

    /// Finds all files below a folder, which is in another one; symbolic links are followed.
    fn walk(&mut self, folder: &Path, outer: &Path) -> anyhow::Result<()> {
        let before = self.files.len();
        let root = &outer.join(folder);
        for entry in WalkDir::new(root).follow_links(true) {
            let entry = match entry {
                Ok(entry) => entry,
                Err(error) => {
                    let is_input = |path: &Path| {
                        let relative = path.strip_prefix(root).unwrap_or(path).to_string_lossy();
                        !is_hidden(&relative)
                            && format_if_unnamed(&relative, FoundBy::Folder).is_some_and(|format| !is_report(format))
                    };
                    self.pass_link(error, is_input)
                        .with_context(|| format!("cannot read the folder {}", folder.display()))?;
                    continue;
                }
            };
            if entry.file_type().is_file() {
                let below = entry.path().strip_prefix(root).unwrap_or(entry.path());
                let relative = below.to_string_lossy().into_owned();
                self.files.push(local(&entry, &folder.join(below), outer, relative, FoundBy::Folder)?);
            } else if !entry.file_type().is_dir() {
                self.left_out.add(PIPES, &entry.path().to_string_lossy());
            }
        }
        if self.files.len() == before && self.left_out.is_empty() {
            bail!("no input in the folder {}: it is empty", folder.display());
        }
        Ok(())
    }

    /// Finds the files that match a glob, which is relative to a folder, and all files below the
    /// folders that match it.
    fn glob(&mut self, pattern: &str, outer: &Path) -> anyhow::Result<()> {
        let pattern = tidy(Path::new(pattern)).to_string_lossy().into_owned();
        let matcher = matcher(&pattern)?;
        let prefix = fixed_prefix(&pattern);
        let root = if prefix.is_empty() { "." } else { prefix };
        let before = self.files.len();
        let levels = pattern[prefix.len()..].trim_start_matches('/').split('/').count();
        let depth = if pattern.contains("**") || pattern.contains('{') { usize::MAX } else { levels };
        let mut entries = WalkDir::new(outer.join(root)).follow_links(true).max_depth(depth).into_iter();
        while let Some(entry) = entries.next() {
            let entry = match entry {
                Ok(entry) => entry,
                Err(error) if error.depth() == 0 => break,
                Err(error) => {
                    let is_input = |path: &Path| {
                        let path = tidy(path.strip_prefix(outer).unwrap_or(path));
                        let relative = path.strip_prefix(prefix).unwrap_or(&path).to_string_lossy();
                        matcher.is_match(&path)
                            && format_if_unnamed(&relative, FoundBy::Glob).is_some_and(|format| !is_report(format))
                    };
                    self.pass_link(error, is_input).with_context(|| format!("cannot search for {pattern}"))?;
                    continue;
                }
            };
            let path = tidy(entry.path().strip_prefix(outer).unwrap_or(entry.path()));
            if !matcher.is_match(&path) {
                continue;
            }
            if entry.file_type().is_dir() {
                self.walk(&path, outer)?;
                entries.skip_current_dir();
            } else if entry.file_type().is_file() {
                let relative = path.strip_prefix(prefix).unwrap_or(&path).to_string_lossy().into_owned();
                let by = FoundBy::glob(&pattern, &relative);
                self.files.push(local(&entry, &path, outer, relative, by)?);
            } else {
                self.left_out.add(PIPES, &path.to_string_lossy());
            }
        }
        if self.files.len() == before {
            ensure!(
                outer.join(root).is_dir(),
                "no input matches {pattern}: there is no folder {root} (relative paths start at the working directory)"
            );
            bail!(
                "no input matches {pattern}: nothing in the folder {root} has such a name; `*` matches within one folder, `**` across \
                 folders"
            );
        }
        Ok(())
    }

    /// Passes over a link that leads to no file, or back to a folder above it, unless its name is
    /// that of an input.
    ///
    /// # Errors
    /// The error itself, if it is of another kind; and for the link of an input.
    fn pass_link(&mut self, error: walkdir::Error, is_input: impl Fn(&Path) -> bool) -> anyhow::Result<()> {
        let path = error.path().map(Path::to_owned).unwrap_or_default();
        let name = path.to_string_lossy();
        if error.loop_ancestor().is_some() {
            self.left_out.add("links to a folder above them", &name);
            return Ok(());
        }
        let kind = error.io_error().map(|error| (error.kind(), error.raw_os_error()));
        let leads_nowhere = kind.is_some_and(|(kind, code)| {
            kind == ErrorKind::NotFound || code == Some(rustix::io::Errno::LOOP.raw_os_error())
        });
        if !leads_nowhere || !path.is_symlink() {
            return Err(error.into());
        }
        if is_input(&path) {
            bail!("{name} is a link to a file that does not exist: restore the file, or remove the link");
        }
        self.left_out.add("links to no file", &name);
        Ok(())
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

/// Whether files of this format, beside others in a folder, are rather reports about these.
fn is_report(format: Format) -> bool {
    matches!(format.records(), RecordKind::Lines(LineKind::Delimited(_)) | RecordKind::WholeFile(PageKind::Text))
}

/// Whether folders and globs skip a file of this name without counting it.
fn is_hidden(relative: &str) -> bool {
    relative.split('/').any(|part| part.starts_with(['.', '_']))
}

/// Returns the format of a file that a folder or a glob holds; `None` if it is no input.
fn format_if_unnamed(relative: &str, by: FoundBy) -> Option<Format> {
    let is_json = by == FoundBy::Folder && relative.to_ascii_lowercase().ends_with(".json");
    format_of_name(relative).filter(|_| !is_json)
}

/// Returns the kind under which a file is left out: its ending.
pub fn kind_of_name(relative: &str) -> String {
    let name = relative.rsplit('/').next().unwrap_or_default();
    match name.rsplit_once('.') {
        Some((_, ending)) => format!("*.{ending}"),
        None => "without ending".to_owned(),
    }
}

/// Returns the format that the ending of a name stands for.
pub fn format_of_name(name: &str) -> Option<Format> {
    let name = name.to_ascii_lowercase();
    let name = name.rsplit('/').next().unwrap_or_default();
    let plain = COMPRESSED.iter().find_map(|ending| name.strip_suffix(ending)).unwrap_or(name);
    ALL.into_iter().find(|format| format.reader().is_named(name, plain))
}

/// Recognises the format of a file by its first bytes.
fn format_of_content(name: &str, bytes: u64, place: &Location) -> anyhow::Result<Format> {
    let mut source = crate::readers::source::source(name, bytes.min(FIRST), place)?;
    let mut first = Vec::new();
    source.by_ref().take(FIRST).read_to_end(&mut first).with_context(|| crate::readers::input::cannot("read", name))?;
    if let Some(format) = ALL.into_iter().find(|format| format.reader().begins_stored(&first)) {
        return Ok(format);
    }
    let first = first_decoded(first, 1024).with_context(|| crate::readers::input::cannot("read", name))?;
    if begins_index(&first) {
        bail!("{name} is an index (CDX), which has no pages: give the WARC files that it names")
    }
    if let Some(format) = ALL.into_iter().find(|format| format.reader().begins(&first)) {
        Ok(format)
    } else if let Some(advice) = sniff::no_input(&first) {
        bail!("{name} {advice}")
    } else if first.trim_ascii_start().starts_with(b"[") {
        bail!("{name} {}", jsonl::ARRAY)
    } else if bytes == 0 {
        bail!("{name} is empty, so its format cannot be told")
    } else {
        bail!(
            "cannot tell the format of {name}: its name does not end in {KNOWN}, and its first bytes are of none of these formats"
        )
    }
}

/// Decodes at least the first `count` bytes of a file, plain or compressed; fewer if it ends or is
/// damaged before.
fn first_decoded(stored: Vec<u8>, count: usize) -> std::io::Result<Vec<u8>> {
    let mut members = Members::new(Stored::new(Box::new(std::io::Cursor::new(stored))), |bytes| !bytes.is_empty())?;
    let mut out = Vec::new();
    while out.len() < count {
        match members.step(&mut out)? {
            MemberStep::End | MemberStep::Damage { .. } => break,
            MemberStep::Start(_) | MemberStep::Bytes => {}
        }
    }
    Ok(out)
}

/// Makes the URL of an HTML file from its path below the named folder: after `base-url`, or as
/// HOST/PATH, the layout of wget. `None` if there is neither.
fn page_url(relative: &str, reading: &Reading) -> Option<String> {
    if let Some(base) = &reading.base_url {
        return Some(format!("{}/{}", base.trim_end_matches('/'), escaped(relative, false)));
    }
    let (host, path) = relative.split_once('/')?;
    let name = host.split(':').next().unwrap_or_default();
    let is_host = name.contains('.') && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._".contains(&byte));
    // wget writes the query of a URL into the name of the file.
    is_host.then(|| format!("http://{host}/{}", escaped(path, true)))
}

/// Escapes a path for a URL; `?` is kept if the path ends in a query.
fn escaped(path: &str, query: bool) -> String {
    let mut url = String::with_capacity(path.len());
    for byte in path.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=:@/".contains(&byte) || query && byte == b'?' {
            url.push(char::from(byte));
        } else {
            url.push_str(&format!("%{byte:02X}"));
        }
    }
    url
}

/// Makes the entry of a file whose path, relative to the folder `outer`, is its name.
fn local(entry: &DirEntry, path: &Path, outer: &Path, relative: String, by: FoundBy) -> anyhow::Result<FoundInput> {
    let name = path.to_string_lossy().into_owned();
    let metadata = entry.metadata().with_context(|| crate::readers::input::cannot("open", &name))?;
    let (bytes, stamp) = (metadata.len(), modified(&metadata));
    Ok(FoundInput { name, bytes, place: Location::File(outer.join(path)), relative, by, stamp })
}

/// Removes `.` from a path, so that `a/./b` and `a/b` get the same name.
fn tidy(path: &Path) -> PathBuf {
    let tidy: PathBuf = path.components().filter(|part| *part != Component::CurDir).collect();
    if tidy.as_os_str().is_empty() { PathBuf::from(".") } else { tidy }
}

/// Whether there is nothing of this name, as far as that can be seen.
fn is_absent(path: &Path) -> bool {
    let kind = fs::symlink_metadata(path).err().map(|error| error.kind());
    matches!(kind, Some(ErrorKind::NotFound | ErrorKind::NotADirectory))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A temporary folder with these files; each contains its own name.
    fn folder(files: &[&str]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for file in files {
            let path = folder.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, file).unwrap();
        }
        folder
    }

    /// The names, below the folder, of the inputs that the items name.
    fn names(folder: &Path, items: &[&str], reading: &Reading) -> Vec<String> {
        let items: Vec<String> = items.iter().map(|item| format!("{}/{item}", folder.display())).collect();
        let root = format!("{}/", folder.display());
        list(&items, reading).unwrap().into_iter().map(|input| input.name.replace(&root, "")).collect()
    }

    fn error(items: &[&str]) -> String {
        let items: Vec<String> = items.iter().map(|&item| item.to_owned()).collect();
        format!("{:#}", list(&items, &Reading::default()).unwrap_err())
    }

    const FILES: [&str; 8] = [
        "week-01/b.warc.gz",
        "week-01/a.warc.gz",
        "week-01/notes.txt",
        "week-01/x/c.jsonl",
        "week-01/report.json",
        "week-01/_old.warc",
        "week-02/d.warc.wet.gz",
        "week-02/e.parquet",
    ];

    #[test]
    fn folders_globs_and_files_give_sorted_inputs_without_duplicates() {
        let folder = folder(&FILES);
        let names = |items: &[&str]| names(folder.path(), items, &Reading::default());
        assert_eq!(names(&["week-01"]), ["week-01/a.warc.gz", "week-01/b.warc.gz", "week-01/x/c.jsonl"]);
        assert_eq!(names(&["week-01/*.warc.gz", "week-01/./a.warc.gz"]), ["week-01/a.warc.gz", "week-01/b.warc.gz"]);
        assert_eq!(names(&["**/*.jsonl"]), ["week-01/x/c.jsonl"]);
        assert_eq!(names(&["week-0?/{d,e}*"]), ["week-02/d.warc.wet.gz", "week-02/e.parquet"]);
        assert_eq!(names(&["week-0[2-3]"]), ["week-02/d.warc.wet.gz", "week-02/e.parquet"]);
        assert_eq!(names(&["week-01/report.json"]), ["week-01/report.json"]);
        assert_eq!(names(&["week-01/_old.warc"]), ["week-01/_old.warc"]);
    }

    #[test]
    fn side_files_of_failed_downloads_are_recognised_by_their_names() {
        let files =
            ["w/failed.tsv", "w/failed-00001.tsv.gz", "w/x/Failed.TSV", "w/index.tsv.gz", "w/_failed.tsv", "w/failed"];
        let folder = folder(&files);
        let names = |items: &[&str]| names(folder.path(), items, &Reading::default());
        assert_eq!(names(&["w"]), ["w/failed-00001.tsv.gz", "w/failed.tsv", "w/x/Failed.TSV"]);
        assert_eq!(names(&["w/*"]), ["w/failed-00001.tsv.gz", "w/failed.tsv", "w/x/Failed.TSV"]);
        assert_eq!(names(&["w/failed*"]), ["w/failed-00001.tsv.gz", "w/failed.tsv"]);
        let inputs = list(&[folder.path().display().to_string()], &Reading::default()).unwrap();
        assert!(inputs.iter().all(|input| input.format == Format::Failed));
    }

    #[test]
    fn html_files_get_their_urls_from_base_url_or_from_the_layout() {
        let folder =
            folder(&["www.a.example/index.html", "www.a.example/p/q ü.htm", "www.a.example/s.css", "r?x=1.html"]);
        let urls = |items: &[&str], base: Option<&str>| -> anyhow::Result<Vec<String>> {
            let items: Vec<String> = items.iter().map(|item| format!("{}/{item}", folder.path().display())).collect();
            let reading = Reading { base_url: base.map(str::to_owned), ..Reading::default() };
            Ok(list(&items, &reading)?.into_iter().filter_map(|input| input.page_url).collect())
        };
        let base = Some("http://b.example/");
        assert_eq!(
            urls(&["www.a.example"], base).unwrap(),
            ["http://b.example/index.html", "http://b.example/p/q%20%C3%BC.htm"]
        );
        assert_eq!(urls(&["*.example/*.html"], None).unwrap(), ["http://www.a.example/index.html"]);
        let error = format!("{:#}", urls(&["www.a.example"], None).unwrap_err());
        assert!(error.contains("set base-url"), "{error}");
    }

    #[test]
    fn relative_lines_of_listings_are_below_base_url() {
        let folder = folder(&FILES);
        let reading = Reading { base_url: Some(folder.path().display().to_string()), ..Reading::default() };
        fs::write(folder.path().join("warc.paths"), "week-01/b.warc.gz\n\n# a note\nweek-02/e.parquet\n").unwrap();
        fs::write(folder.path().join("list"), "week-01/a.warc.gz\n").unwrap();
        assert_eq!(names(folder.path(), &["warc.paths"], &reading), ["week-01/b.warc.gz", "week-02/e.parquet"]);
        let listing = format!("@{}/list", folder.path().display());
        assert_eq!(list(&[listing], &reading).unwrap().len(), 1);
    }

    #[test]
    fn files_without_a_known_ending_are_recognised_by_their_first_bytes() {
        let folder = tempfile::tempdir().unwrap();
        let reading = Reading { base_url: Some("http://a".into()), ..Reading::default() };
        let format = |content: &[u8]| {
            let path = folder.path().join("data");
            fs::write(&path, content).unwrap();
            list(&[path.display().to_string()], &reading).map(|inputs| inputs[0].format)
        };
        assert_eq!(format(b"WARC/1.0\r\n").unwrap(), Format::Warc);
        assert_eq!(format(&zstd::bulk::compress(b"WARC/1.0\r\n", 1).unwrap()).unwrap(), Format::Warc);
        assert_eq!(format(b"{\"url\":").unwrap(), Format::Jsonl);
        assert_eq!(format(b"filedesc://a.arc 0.0.0.0 20240108000000 text/plain 9\n").unwrap(), Format::Arc);
        assert_eq!(format(b"PAR1").unwrap(), Format::Parquet);
        assert_eq!(format(b"PK\x03\x04, and no table of contents").unwrap(), Format::Wacz);
        assert_eq!(format(b"url\tdate\treason\n").unwrap(), Format::Failed);
        assert_eq!(format(b"<!doctype html>").unwrap(), Format::Html);
        assert!(format(b" [{\"url\": 1}]").unwrap_err().to_string().contains("jq -c '.[]'"));
        let pointer = b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n";
        assert!(format(pointer).unwrap_err().to_string().contains("`git lfs pull`"));
        let index = "com,example)/ 20240108010203 http://example.com/ text/html 200 ABC - - 700 0 a.warc.gz\n";
        let header = format!(" CDX N b a m s k r M S V g\n{index}");
        let json = "com,example)/ 20240108010203 {\"url\": \"http://example.com/\", \"filename\": \"a.warc.gz\"}\n";
        let with_meta = format!("!OpenWayback-CDXJ 1.0\n{json}");
        for text in [index, &header, json, &with_meta] {
            for bytes in [text.as_bytes().to_vec(), zstd::bulk::compress(text.as_bytes(), 1).unwrap()] {
                let error = format(&bytes).unwrap_err().to_string();
                assert!(error.contains("is an index (CDX)") && error.contains("give the WARC files"), "{error}");
            }
        }
        assert!(format(b"hello").unwrap_err().to_string().contains("cannot tell"));
    }

    #[test]
    fn endings_of_compressed_files_and_archives_are_known() {
        for (name, format) in [
            ("a.warc.bz2", Format::Warc),
            ("a.warc.wet.xz", Format::Warc),
            ("a.arc", Format::Arc),
            ("A.ARC.GZ", Format::Arc),
            ("a.jsonl.xz", Format::Jsonl),
            ("failed.tsv.bz2", Format::Failed),
            ("a.wacz", Format::Wacz),
            ("a.csv", Format::Csv),
            ("a.TSV.gz", Format::Tsv),
            ("a.txt.zst", Format::Text),
            ("README.md", Format::Text),
            ("a.html.gz", Format::Html),
        ] {
            assert_eq!(format_of_name(name), Some(format), "{name}");
        }
        assert_eq!(format_of_name("a.tar.xz"), None);
    }

    #[test]
    fn devices_are_refused_and_pipes_are_left_out_of_folders_and_globs() {
        let folder = folder(&["a.jsonl"]);
        let pipe = folder.path().join("b.jsonl");
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
        let item = pipe.to_str().unwrap();
        assert!(error(&[item]).starts_with(&format!("{item} is a pipe")), "{}", error(&[item]));
        assert!(error(&["/dev/zero"]).starts_with("/dev/zero is a socket or a device"), "{}", error(&["/dev/zero"]));
        for item in ["", "*.jsonl"] {
            assert_eq!(names(folder.path(), &[item], &Reading::default()), ["a.jsonl"]);
        }
    }

    fn left_out(folder: &Path, items: &[&str]) -> String {
        let items: Vec<String> = items.iter().map(|item| format!("{}/{item}", folder.display())).collect();
        let found = list_with_pipes(&items, &Reading::default(), Pipes::Refuse("")).unwrap();
        found.left_out.to_string().replace(&format!("{}/", folder.display()), "")
    }

    #[test]
    fn files_of_other_endings_are_counted_and_named() {
        let folder = folder(&["a.jsonl", "b.txt", "c.txt", "x/d.md", "x/e.json", "LICENCE", ".hidden.txt"]);
        let wanted = "*.txt: 2 (b.txt and others), *.json: 1 (x/e.json), *.md: 1 (x/d.md), without ending: 1 (LICENCE)";
        let actual = left_out(folder.path(), &[""]);
        // The system lists a folder in any order.
        assert_eq!(actual.replace("c.txt and", "b.txt and"), wanted);
        assert_eq!(left_out(folder.path(), &["*.jsonl"]), "");
    }

    #[test]
    fn links_that_lead_nowhere_end_the_search_only_if_they_are_inputs() {
        use std::os::unix::fs::symlink;
        let folder = folder(&["a.jsonl", "x/b.jsonl", "y/d.jsonl"]);
        let link = |target: &str, name: &str| symlink(target, folder.path().join(name)).unwrap();
        link("nothing", "notes.txt");
        link("self", "self");
        link("..", "x/up");
        for item in ["", "**/*.jsonl"] {
            let wanted = ["a.jsonl", "x/b.jsonl", "y/d.jsonl"];
            assert_eq!(names(folder.path(), &[item], &Reading::default()), wanted);
        }
        let found = left_out(folder.path(), &[""]);
        assert!(
            found.contains("links to no file: 2 (") && found.contains("links to a folder above them: 1 (x/up)"),
            "{found}"
        );
        link("nothing", "c.jsonl");
        for item in ["", "*.jsonl"] {
            let error = error(&[&format!("{}/{item}", folder.path().display())]);
            assert!(error.contains("c.jsonl is a link to a file that does not exist"), "{error}");
        }
        assert_eq!(names(folder.path(), &["y"], &Reading::default()), ["y/d.jsonl"]);
    }

    #[test]
    fn lines_of_listings_stay_below_the_base_unless_the_job_lets_them_leave() {
        let folder = folder(&FILES);
        let root = folder.path().display().to_string();
        let list = |line: &str, base: Option<&str>, anywhere: bool| {
            fs::write(folder.path().join("x.paths"), line).unwrap();
            let base_url = base.map(|base| format!("{root}/{base}"));
            let reading = Reading { base_url, listing_anywhere: anywhere, ..Reading::default() };
            list(&[format!("{root}/x.paths")], &reading)
                .map(|inputs| inputs.len())
                .map_err(|error| format!("{error:#}"))
        };
        let outside = format!("{root}/week-02/e.parquet");
        assert_eq!(list("b.warc.gz", Some("week-01"), false), Ok(1));
        for line in [outside.as_str(), "../week-02/e.parquet"] {
            let error = list(line, Some("week-01"), false).unwrap_err();
            assert!(
                error.contains(&format!("`{line}` leaves")) && error.contains("listing-anywhere = true"),
                "{error}"
            );
            assert_eq!(list(line, Some("week-01"), true), Ok(1));
        }
        assert_eq!(list(&outside, None, false), Ok(1));
    }

    #[test]
    fn errors_name_the_item() {
        assert!(error(&["/no/such/file"]).starts_with("no input matches /no/such/file"));
        assert!(
            error(&["/no/such/*.warc"]).starts_with("no input matches /no/such/*.warc: there is no folder /no/such")
        );
        let folder = folder(&["notes.doc"]);
        let glob = format!("{}/*.warc", folder.path().display());
        assert!(
            error(&[&glob]).contains(&format!("nothing in the folder {} has such a name", folder.path().display()))
        );
        assert!(error(&[&folder.path().display().to_string()]).starts_with("no input in"));
    }

    #[test]
    fn tables_and_texts_are_inputs_if_they_are_named_or_alone() {
        let files = ["mixed/a.jsonl", "mixed/b.csv", "mixed/c.tsv", "mixed/d.txt.gz", "alone/a.csv", "alone/b.md"];
        let folder = folder(&files);
        let names = |items: &[&str]| names(folder.path(), items, &Reading::default());
        assert_eq!(names(&["mixed"]), ["mixed/a.jsonl"]);
        assert_eq!(names(&["mixed/*"]), ["mixed/a.jsonl"]);
        assert_eq!(left_out(folder.path(), &["mixed"]).matches(": 1 (").count(), 3);
        assert_eq!(names(&["mixed/*.csv", "mixed/*.txt.gz"]), ["mixed/b.csv", "mixed/d.txt.gz"]);
        assert_eq!(names(&["mixed", "mixed/c.tsv"]), ["mixed/a.jsonl", "mixed/c.tsv"]);
        assert_eq!(names(&["alone"]), ["alone/a.csv", "alone/b.md"]);
    }
}
