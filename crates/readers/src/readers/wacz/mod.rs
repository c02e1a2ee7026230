//! Reads WACZ files: zip files with WARC and ARC files in their folder `archive/`, as Browsertrix
//! and ArchiveWeb.page write them. That folder may be in another one: people unpack a WACZ and zip
//! it again.
//!
//! Each file is an input of its own, found when inputs are listed, and named
//! `crawl.wacz/archive/data.warc.gz`; so workers share a WACZ, and offsets are those of its CDX
//! index. Entries are stored (the rule for `.warc.gz`) or deflated.
//!
//! In reading order: `contents` (the table of contents of a zip file), `entry` (the bytes of an
//! entry, and what is wrong with it).

mod contents;
mod entry;

use std::collections::HashSet;
use std::fs::File;
use std::path::Path;

use anyhow::{Context as _, bail};

pub use self::entry::{EntryReader, entry_source};
use super::find::{LeftOut, format_of_name, kind_of_name};
use super::input::{Format, Input, Location, Packing};

/// The folder of the WARC files, which may be in others.
const ARCHIVE: &str = "archive";

/// Lists the WARC and ARC files in a WACZ; or, in their place, the WACZ itself if it is damaged:
/// [`damage`] says why. Counts the other files of its folder `archive/`, and archives in other
/// folders.
///
/// # Errors
/// If the file cannot be read, or is not on a local disk.
pub fn list(wacz: Input, left_out: &mut LeftOut) -> anyhow::Result<Vec<Input>> {
    let Location::File(path) = &wacz.place else {
        bail!("cannot read {}: a WACZ is read from a local disk only; copy it there first", wacz.name);
    };
    let Ok(entries) = read(path, &wacz.name)? else {
        return Ok(vec![wacz]);
    };
    let input = |(entry, format): (contents::ZipEntry, Option<Format>)| {
        let name = format!("{}/{}", wacz.name, shown(&entry.name));
        let Some(format) = format else {
            left_out.add(kind_of_name(&entry.name), &name);
            return None;
        };
        let place = place(path, &entry);
        Some(Input {
            name,
            bytes: entry.packed,
            format,
            place,
            page_url: None,
            stamp: wacz.stamp.clone(),
            reading: None,
        })
    };
    Ok(entries.into_iter().filter_map(input).collect())
}

/// Lists all entries of a WACZ by their names in it, to be read as they are: their format says
/// nothing.
///
/// # Errors
/// If the file cannot be read, or is damaged.
pub fn wacz_entries(path: &Path) -> anyhow::Result<Vec<Input>> {
    let failed = || crate::readers::input::cannot("read", &path.display().to_string());
    let entries = contents::read(&File::open(path).with_context(failed)?).with_context(failed)?;
    let entries = entries.map_err(anyhow::Error::msg).with_context(failed)?;
    let input = |entry: contents::ZipEntry| Input {
        bytes: entry.packed,
        format: Format::Text,
        place: place(path, &entry),
        page_url: None,
        stamp: String::new(),
        reading: None,
        name: entry.name,
    };
    Ok(entries.into_iter().map(input).collect())
}

/// Where an entry is.
fn place(archive: &Path, entry: &contents::ZipEntry) -> Location {
    Location::Entry {
        archive: archive.to_owned(),
        start: entry.start,
        packed: entry.packed,
        unpacked: entry.unpacked,
        checksum: entry.checksum,
        packing: entry.packing,
    }
}

/// Returns the reason for which [`list`] lists a WACZ itself.
///
/// # Errors
/// If the file cannot be read.
pub fn damage(path: &Path, name: &str) -> anyhow::Result<&'static str> {
    // Without damage it was written again after it was listed.
    Ok(read(path, name)?.err().unwrap_or("zip: the file has changed since it was listed"))
}

/// Reads the entries that are WARC or ARC files, and those that are to be counted: they have no
/// format.
fn read(path: &Path, name: &str) -> anyhow::Result<Result<Vec<FoundEntry>, &'static str>> {
    let failed = || crate::readers::input::cannot("read", name);
    let file = File::open(path).with_context(failed)?;
    let entries = match contents::read(&file).with_context(failed)? {
        Ok(entries) => entries,
        Err(reason) => return Ok(Err(reason)),
    };
    let found: Vec<FoundEntry> = entries.into_iter().filter_map(found).collect();
    // What was read from two files of one name could not be told apart later.
    let mut names = HashSet::new();
    let mut archives = found.iter().filter(|(_, format)| format.is_some());
    if archives.clone().next().is_none() {
        return Ok(Err("wacz: no WARC or ARC file in archive/"));
    }
    let has_twice = archives.any(|(entry, _)| !names.insert(shown(&entry.name)));
    Ok(if has_twice { Err("wacz: two WARC or ARC files have the same name") } else { Ok(found) })
}

/// The name of an entry on terminals.
fn shown(entry: &str) -> String {
    entry.replace(char::is_control, "\u{fffd}")
}

/// An entry, with its format if it is a WARC or ARC file where these belong.
type FoundEntry = (contents::ZipEntry, Option<Format>);

/// Looks at the name of an entry; `None` if nothing is to be said of it: a folder, a page list, an
/// index, a hidden file.
fn found(entry: contents::ZipEntry) -> Option<FoundEntry> {
    let (folder, file) = entry.name.rsplit_once('/').unwrap_or(("", &entry.name));
    let is_hidden = entry.name.split('/').any(|part| part.starts_with('.') || part == "__MACOSX");
    if file.is_empty() || is_hidden {
        return None;
    }
    let format = format_of_name(file).filter(|format| format.has_captures());
    let is_in_archive = folder.split('/').any(|part| part == ARCHIVE);
    match format {
        _ if is_in_archive => Some((entry, format)),
        Some(_) => Some((entry, None)),
        None => None,
    }
}

/// How the bytes of an entry are packed, by the number of its method.
fn packing(method: u16, is_encrypted: bool) -> Packing {
    match method {
        0 if !is_encrypted => Packing::Stored,
        8 if !is_encrypted => Packing::Deflated,
        _ => Packing::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::readers::{Item, Pipes, list_with_pipes, open};
    use crate::reading::Reading;

    /// A zip file with these entries, stored.
    fn zip(entries: &[(&str, &[u8])]) -> Vec<u8> {
        let (mut file, mut table) = (Vec::new(), Vec::new());
        for (name, content) in entries {
            let mut crc = flate2::Crc::new();
            crc.update(content);
            let start = file.len() as u32;
            let [sum, length] = [crc.sum(), content.len() as u32].map(u32::to_le_bytes);
            let sizes = [&[0; 10][..], &sum, &length, &length, &(name.len() as u16).to_le_bytes(), &[0; 2]].concat();
            file.extend([b"PK\x03\x04", &sizes[..], name.as_bytes(), content].concat());
            let place = [&[0; 10][..], &start.to_le_bytes()].concat();
            table.extend([b"PK\x01\x02\0\0", &sizes[..], &place, name.as_bytes()].concat());
        }
        let [count, _] = [entries.len() as u16, 0].map(u16::to_le_bytes);
        let [length, start] = [table.len() as u32, file.len() as u32].map(u32::to_le_bytes);
        let end = [&b"PK\x05\x06\0\0\0\0"[..], &count, &count, &length, &start, &[0; 2]].concat();
        [file, table, end].concat()
    }

    /// The names of the inputs and what is left out; and the number of pages.
    fn read(entries: &[(&str, &[u8])]) -> (Vec<String>, String, usize) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.wacz");
        std::fs::write(&path, zip(entries)).unwrap();
        let found = list_with_pipes(&[path.display().to_string()], &Reading::default(), Pipes::Refuse("")).unwrap();
        let mut pages = 0;
        for input in &found.inputs {
            let mut reader = open(input, &Reading::default()).unwrap();
            while let Some(item) = reader.next().unwrap() {
                pages += usize::from(matches!(item, Item::Page(_)));
            }
        }
        let root = format!("{}/", folder.path().display());
        let names = found.inputs.iter().map(|input| input.name.replace(&root, "")).collect();
        (names, found.left_out.to_string().replace(&root, ""), pages)
    }

    fn gzip(text: &str) -> Vec<u8> {
        use std::io::Write as _;
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        gzip.write_all(text.as_bytes()).unwrap();
        gzip.finish().unwrap()
    }

    /// The bytes of a file that could not be read, and the number of its rejects.
    fn unread(name: &str, bytes: &[u8]) -> (u64, usize) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        let found = list_with_pipes(&[path.display().to_string()], &Reading::default(), Pipes::Refuse("")).unwrap();
        let (mut unread, mut rejects) = (0, 0);
        for input in &found.inputs {
            let mut reader = open(input, &Reading::default()).unwrap();
            while let Some(item) = reader.next().unwrap() {
                rejects += usize::from(matches!(item, Item::Reject(_)));
            }
            unread += reader.unread().bytes;
        }
        (unread, rejects)
    }

    #[test]
    fn bytes_that_cannot_be_read_are_counted_as_those_of_the_archive_alone() {
        let warc = |n: usize| {
            let block = format!("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<p>page {n} {}", n * 7919);
            let url = format!("WARC-Target-URI: http://a.example/{n}\r\nContent-Length: {}", block.len());
            gzip(&format!("WARC/1.0\r\nWARC-Type: response\r\n{url}\r\n\r\n{block}\r\n\r\n"))
        };
        let whole: Vec<u8> = (0..200).flat_map(warc).collect();
        let mut damaged = whole.clone();
        let middle = whole.len() / 20..whole.len() * 19 / 20;
        damaged[middle.clone()].fill(0);
        let (alone, rejects) = unread("data.warc.gz", &damaged);
        assert!(alone as usize > whole.len() * 8 / 10 && rejects < 4, "{alone} of {}, {rejects}", whole.len());
        assert_eq!(unread("x.wacz", &zip(&[("archive/data.warc.gz", &damaged)])), (alone, rejects));
        // Damaged after it was zipped.
        let archive = zip(&[("archive/data.warc.gz", &whole)]);
        assert_eq!(unread("x.wacz", &archive), (0, 0));
        let start = memchr::memmem::find(&archive, &whole).unwrap();
        let mut later = archive.clone();
        later[start + middle.start..start + middle.end].fill(0);
        assert_eq!(unread("x.wacz", &later), (alone, rejects + 1));
        // Packed by a method that is not known.
        let mut unknown = archive;
        let table = memchr::memmem::find(&unknown, b"PK\x01\x02").unwrap();
        (unknown[8], unknown[table + 10]) = (12, 12);
        assert_eq!(unread("x.wacz", &unknown), (whole.len() as u64, 1));
    }

    #[test]
    fn what_is_missing_of_an_entry_that_does_not_inflate_is_unread() {
        let path = Path::new("../../tests/data/formats/pages.wacz");
        let entries = wacz_entries(path).unwrap();
        let entry = entries.iter().find(|entry| entry.name == "archive/more.warc").unwrap();
        let Location::Entry { start, packed, .. } = entry.place else { panic!("no entry") };
        let mut bytes = std::fs::read(path).unwrap();
        assert_eq!(unread("x.wacz", &bytes), (0, 0));
        bytes[start as usize..][..packed as usize].fill(0xff);
        let (unread, rejects) = unread("x.wacz", &bytes);
        assert_eq!((unread, rejects), (packed, 1));
    }

    #[test]
    fn all_archives_are_read_and_the_rest_is_named() {
        let block = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<p>words";
        let length = block.len();
        let warc = format!(
            "WARC/1.0\r\nWARC-Type: response\r\nWARC-Target-URI: http://a.example/\r\nContent-Length: {length}\r\n\r\n{block}\r\n\r\n"
        );
        let arc = format!("http://a.example/ 192.0.2.1 20240108010203 text/html {length}\n{block}\n");
        let zstd = zstd::bulk::compress(warc.as_bytes(), 1).unwrap();
        let (warc_gz, arc_gz) = (gzip(&warc), gzip(&arc));
        let archives: [(&str, &[u8]); 5] = [
            ("a.arc", arc.as_bytes()),
            ("b.ARC.gz", &arc_gz),
            ("c.warc", warc.as_bytes()),
            ("d.warc.gz", &warc_gz),
            ("e.warc.zst", &zstd),
        ];
        for folder in ["archive/", "my crawl/archive/", "a/b/archive/", "a/b/archive/sub/", "archive/sub/"] {
            let names: Vec<String> = archives.iter().map(|(name, _)| format!("{folder}{name}")).collect();
            let mut entries: Vec<(&str, &[u8])> =
                names.iter().map(String::as_str).zip(archives.map(|(_, of)| of)).collect();
            entries.push(("datapackage.json", b"{}"));
            entries.push(("__MACOSX/archive/._d.warc.gz", b"x"));
            let (inputs, left_out, pages) = read(&entries);
            let expected: Vec<String> = names.iter().map(|name| format!("x.wacz/{name}")).collect();
            assert_eq!((inputs, left_out.as_str(), pages), (expected, "", 5), "{folder}");
        }
        // Names as programs on Windows, and `zip ./archive`, write them.
        // Two of one name are none: documents are known by the names of files and by places.
        for name in ["archive/d.warc.gz", "./archive/d.warc.gz", "archive\\d.warc.gz"] {
            let (inputs, _, pages) =
                read(&[("archive/d.warc.gz", &warc_gz), (name, &warc_gz), ("archive/c.warc", warc.as_bytes())]);
            assert_eq!((inputs, pages), (vec!["x.wacz".to_owned()], 0), "{name}");
        }
        for name in ["archive\\d.warc.gz", "./archive/d.warc.gz", ".\\x\\archive\\d.warc.gz"] {
            let (inputs, left_out, pages) = read(&[(name, &warc_gz)]);
            let wanted = name.replace('\\', "/");
            assert_eq!(inputs, [format!("x.wacz/{}", wanted.trim_start_matches("./"))]);
            assert_eq!((left_out.as_str(), pages), ("", 1), "{name}");
        }
        let others: [(&str, &[u8]); 6] = [
            ("archive/d.warc.gz", &warc_gz),
            ("archive/", b""),
            ("archive/notes.txt", b"x"),
            ("archive/other.wacz", b"PK"),
            ("lost/f.warc.gz", &warc_gz),
            ("indexes/index.cdx.gz", b"x"),
        ];
        let (inputs, left_out, pages) = read(&others);
        assert_eq!((inputs.len(), pages), (1, 1));
        let expected = "*.gz: 1 (x.wacz/lost/f.warc.gz), *.txt: 1 (x.wacz/archive/notes.txt), *.wacz: 1 (x.wacz/archive/other.wacz)";
        assert_eq!(left_out, expected);
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), zip(&others[2..])).unwrap();
        assert_eq!(damage(file.path(), "x").unwrap(), "wacz: no WARC or ARC file in archive/");
    }
}
