//! The search for the files that items name, in folders, by globs and in listings.

use std::fs;
use std::io::ErrorKind;
use std::path::{Component, Path, PathBuf};

use anyhow::{Context as _, anyhow, bail, ensure};
use walkdir::{DirEntry, WalkDir};

use super::common_crawl::{NamedCrawl, crawl_of};
use super::found::{FoundBy, FoundInput, modified};
use super::globs::{fixed_prefix, found_by, is_glob, matcher};
use super::left_out::LeftOut;
use super::listings::{items_of, listing_of};
use super::recognised::{format_if_unnamed, is_hidden, is_report};
use super::spool::{Pipes, STANDARD_INPUT, is_own_descriptor};
use crate::readers::input::Location;
use crate::reading::Reading;

/// The kind under which folders and globs leave out what is neither file nor folder.
const PIPES: &str = "pipes, sockets or devices";

/// The search for files, and what it has found so far.
pub struct InputSearch<'a> {
    pub pipes: Pipes<'a>,
    /// Where relative names are looked for before the working directory.
    pub folders: &'a [PathBuf],
    /// Whether object stores and web servers are asked.
    pub asks_servers: bool,
    pub files: Vec<FoundInput>,
    pub left_out: LeftOut,
}

impl<'a> InputSearch<'a> {
    pub fn new(pipes: Pipes<'a>, folders: &'a [PathBuf]) -> InputSearch<'a> {
        InputSearch { pipes, folders, asks_servers: true, files: Vec::new(), left_out: LeftOut::default() }
    }

    /// Finds the files and objects that an item names, which can be a listing or standard input.
    pub fn item(&mut self, item: &String, reading: &Reading) -> anyhow::Result<()> {
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
    pub fn find(&mut self, items: &[String]) -> anyhow::Result<()> {
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
            let relative = path.strip_prefix(prefix).unwrap_or(&path).to_string_lossy();
            if entry.file_type().is_dir() && entry.depth() > 0 && is_hidden(&relative) {
                entries.skip_current_dir();
                continue;
            }
            if !matcher.is_match(&path) {
                continue;
            }
            if entry.file_type().is_dir() {
                self.walk(&path, outer)?;
                entries.skip_current_dir();
            } else if entry.file_type().is_file() {
                let by = found_by(&matcher, &path.to_string_lossy());
                self.files.push(local(&entry, &path, outer, relative.into_owned(), by)?);
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
