//! A WACZ for each WACZ that is read (Webrecorder, *WACZ Format* 1.1.1): its archives without what
//! goes, the pages that are left, and a new index.
//!
//! ```text
//! archive/          the archives, as they were written                                  stored
//! indexes/          index.cdx.gz, blocks of 1,024 lines of CDXJ, and index.idx, a line for each
//! pages/            the lists of pages, without those of which no capture is written
//! datapackage.json  what the old one says, and the new entries with their SHA-256
//! ```
//!
//! A signature of the old one is left out: it does not sign the new one. Memory: 8 bytes for each
//! capture, besides a sort.

use std::collections::HashSet;
use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, Read, Write as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use flate2::Compression;
use flate2::write::GzEncoder;
use ring::digest::{SHA256, digest};
use serde_json::{Map, Value, json};
use xxhash_rust::xxh3::xxh3_64;

use super::capture::{Captures, IndexLine};
use super::zip::Zip;
use crate::config::Reading;
use crate::export::place::Output;
use crate::export::revisits::hexadecimal;
use crate::readers::{CountedIn, Format, Input, Location, RawBytes, wacz_entries};
use crate::structures::ExternalSort;
use crate::text::canonical;

/// The version of the format.
const VERSION: &str = "1.1.1";
/// Lines of a block of the index.
const BLOCK: usize = 1024;
/// Memory for the sort of an index, in bytes.
const MEMORY: u64 = 64 << 20;
/// The largest datapackage.json that is read, in bytes.
const DATAPACKAGE: u64 = 16 << 20;
/// The list of pages that every WACZ has.
const PAGES: &str = "pages/pages.jsonl";

/// The WACZ that an input is in: its name, and the name of the input in it, below the folder that
/// the WACZ was zipped with.
pub(in crate::export) fn wacz_of(input: &Input) -> Option<(&str, &str)> {
    let Location::Entry { archive, .. } = &input.place else { return None };
    let file = archive.file_name()?.to_string_lossy();
    let at = input.name.find(&format!("{file}/"))? + file.len();
    let entry = &input.name[at + 1..];
    Some((&input.name[..at], &entry[folder_of(entry)?.len()..]))
}

/// The folders before `archive/` in the name of an entry; `None` if it is not in that folder.
fn folder_of(entry: &str) -> Option<&str> {
    let at = if entry.starts_with("archive/") { 0 } else { entry.find("/archive/")? + 1 };
    Some(&entry[..at])
}

/// An archive of a WACZ, as it was written.
#[derive(Clone)]
pub(in crate::export) struct WrittenPart {
    /// Its name in the WACZ.
    pub(in crate::export) name: String,
    /// Where it is.
    pub(in crate::export) path: PathBuf,
    pub(in crate::export) format: Format,
}

/// A WACZ that is written.
pub(in crate::export) struct WrittenWacz<'a> {
    /// The one that was read.
    pub(in crate::export) source: &'a Path,
    /// Its archives as they were written.
    pub(in crate::export) parts: Vec<WrittenPart>,
    pub(in crate::export) reading: &'a Reading,
    /// A folder for what is not whole.
    pub(in crate::export) scratch: PathBuf,
}

impl WrittenWacz<'_> {
    /// Writes the file.
    ///
    /// # Errors
    /// If the old one or a part cannot be read; or the file cannot be written.
    pub(in crate::export) fn write(&self, out: Output) -> Result<Output> {
        std::fs::create_dir_all(&self.scratch)?;
        let written = self.write_entries(out);
        // What cannot be removed goes with the folder that it is in.
        _ = std::fs::remove_dir_all(&self.scratch);
        written
    }

    fn write_entries(&self, out: Output) -> Result<Output> {
        let mut zip = Zip::new(out);
        let mut names = HashSet::new();
        for WrittenPart { name, path, .. } in &self.parts {
            ensure!(names.insert(name), "it has two archives of the name {name}: take it apart first");
            zip.add_file(name, path).with_context(|| format!("cannot write {name}"))?;
        }
        let mut old = wacz_entries(self.source)?;
        // Some are zipped with their folder.
        if let Some(folder) = old.iter().find_map(|entry| folder_of(&entry.name)).map(str::to_owned) {
            for entry in &mut old {
                entry.name = entry.name.strip_prefix(&folder).unwrap_or(&entry.name).to_owned();
            }
        }
        let urls = self.index(&mut zip)?;
        let is_pages = |entry: &&Input| entry.name.starts_with("pages/") && entry.name.ends_with(".jsonl");
        for entry in old.iter().filter(is_pages) {
            self.pages(entry, &urls, &mut zip)?;
        }
        if !old.iter().any(|entry| entry.name == PAGES) {
            zip.add_bytes(PAGES, b"{\"format\":\"json-pages-1.0\",\"id\":\"pages\",\"title\":\"All Pages\"}\n")?;
        }
        let package = self.datapackage(old.iter().find(|entry| entry.name == "datapackage.json"), &zip)?;
        zip.add_bytes("datapackage.json", &package)?;
        let sha256 = hexadecimal(digest(&SHA256, &package).as_ref());
        let digest = json!({"path": "datapackage.json", "hash": format!("sha256:{sha256}")});
        zip.add_bytes("datapackage-digest.json", &serde_json::to_vec_pretty(&digest)?)?;
        Ok(zip.finish()?)
    }

    /// Writes the index, and returns the hashes of the URLs that it has.
    fn index(&self, zip: &mut Zip<Output>) -> Result<HashSet<u64>> {
        let (mut lines, mut urls) = (ExternalSort::new(&self.scratch.join("lines"), MEMORY), HashSet::new());
        for WrittenPart { name, path, format } in &self.parts {
            let input = Input {
                name: name.clone(),
                bytes: std::fs::metadata(path)?.len(),
                format: *format,
                place: Location::File(path.clone()),
                page_url: None,
                stamp: String::new(),
                reading: None,
            };
            let mut captures = Captures::open(&input, self.reading)?;
            while let Some(capture) = captures.record()? {
                urls.insert(hash(&capture.url));
                lines.push(capture.line(name.strip_prefix("archive/").unwrap_or(name))?)?;
            }
        }
        let [cdx, idx] = ["index.cdx.gz", "index.idx"].map(|name| self.scratch.join(name));
        let (mut blocks, mut table) = (BufWriter::new(File::create(&cdx)?), BufWriter::new(File::create(&idx)?));
        writeln!(table, "!meta 0 {}", json!({"format": "cdxj-gzip-1.0", "filename": "index.cdx.gz"}))?;
        let (mut lines, mut at) = (lines.sorted()?, 0);
        let mut next = lines.record()?;
        while let Some(IndexLine(first)) = next.take() {
            // The key and the time.
            let key = first.split(" {").next().unwrap_or_default().to_owned();
            let mut block = GzEncoder::new(Vec::new(), Compression::default());
            writeln!(block, "{first}")?;
            for number in 0.. {
                next = lines.record()?;
                let Some(IndexLine(line)) = next.take_if(|_| number < BLOCK - 1) else { break };
                writeln!(block, "{line}")?;
            }
            let block = block.finish()?;
            let sha256 = hexadecimal(digest(&SHA256, &block).as_ref());
            let place = json!({"offset": at, "length": block.len(), "digest": format!("sha256:{sha256}")});
            writeln!(table, "{key} {place}")?;
            blocks.write_all(&block)?;
            at += block.len() as u64;
        }
        blocks.into_inner().map_err(std::io::IntoInnerError::into_error)?;
        table.into_inner().map_err(std::io::IntoInnerError::into_error)?;
        zip.add_file("indexes/index.cdx.gz", &cdx)?;
        zip.add_file("indexes/index.idx", &idx)?;
        Ok(urls)
    }

    /// Writes a list of pages without those of which no capture is written. Its first line says
    /// what it is.
    fn pages(&self, entry: &Input, urls: &HashSet<u64>, zip: &mut Zip<Output>) -> Result<()> {
        let path = self.scratch.join("pages");
        let failed = || format!("cannot read {} of {}", entry.name, self.source.display());
        let mut out = BufWriter::new(File::create(&path)?);
        let mut lines = BufReader::new(RawEntryBytes(RawBytes::open(entry, CountedIn::Stored)?));
        let mut line = Vec::new();
        while lines.read_until(b'\n', &mut line).with_context(failed)? > 0 {
            let page: Option<Map<String, Value>> = serde_json::from_slice(&line).ok();
            let url = page.as_ref().and_then(|page| page.get("url")).and_then(Value::as_str);
            if url.is_none_or(|url| urls.contains(&hash(url))) {
                out.write_all(&line)?;
            }
            line.clear();
        }
        out.into_inner().map_err(std::io::IntoInnerError::into_error)?;
        Ok(zip.add_file(&entry.name, &path)?)
    }

    /// What is said of the package: what the old one says, and the entries.
    fn datapackage(&self, old: Option<&Input>, zip: &Zip<Output>) -> Result<Vec<u8>> {
        let mut package = Map::new();
        if let Some(old) = old {
            let mut bytes = Vec::new();
            let failed = || format!("cannot read {} of {}", old.name, self.source.display());
            RawEntryBytes(RawBytes::open(old, CountedIn::Stored)?)
                .take(DATAPACKAGE)
                .read_to_end(&mut bytes)
                .with_context(failed)?;
            package = serde_json::from_slice(&bytes).unwrap_or_default();
        }
        let mut names = HashSet::new();
        let resources = zip.entries().iter().map(|entry| {
            let base = resource_name(entry.name.rsplit('/').next().unwrap_or_default());
            let name = if names.insert(base.clone()) { base } else { resource_name(&entry.name) };
            json!({"name": name, "path": entry.name, "hash": format!("sha256:{}", entry.sha256), "bytes": entry.bytes})
        });
        let resources: Vec<Value> = resources.collect();
        for (name, value) in [
            ("profile", json!("data-package")),
            ("wacz_version", json!(VERSION)),
            ("software", json!(format!("nigh {}", env!("CARGO_PKG_VERSION")))),
            ("resources", json!(resources)),
        ] {
            package.insert(name.to_owned(), value);
        }
        Ok(serde_json::to_vec_pretty(&package)?)
    }
}

/// The name of an entry in the way that data packages have names.
fn resource_name(name: &str) -> String {
    let allowed =
        |c: char| if c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.') { c.to_ascii_lowercase() } else { '-' };
    name.chars().map(allowed).collect()
}

/// The hash of a URL without its fragment.
fn hash(url: &str) -> u64 {
    match canonical(url) {
        Some(form) => xxh3_64(form.as_str().as_bytes()),
        None => xxh3_64(url.split('#').next().unwrap_or_default().as_bytes()),
    }
}

/// The bytes of an entry.
struct RawEntryBytes(RawBytes);

impl Read for RawEntryBytes {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let bytes = self.0.before(self.0.place().saturating_add(buffer.len() as u64))?;
        buffer[..bytes.len()].copy_from_slice(bytes);
        Ok(bytes.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn response(url: &str, page: &str) -> Vec<u8> {
        let block = format!("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n{page}");
        let head =
            format!("WARC/1.0\r\nWARC-Type: response\r\nWARC-Date: 2024-01-02T03:04:05Z\r\nWARC-Target-URI: {url}\r\n");
        format!("{head}Content-Length: {}\r\n\r\n{block}\r\n\r\n", block.len()).into_bytes()
    }

    fn text(entries: &[Input], name: &str) -> String {
        let entry = entries.iter().find(|entry| entry.name == name).unwrap();
        let mut bytes = Vec::new();
        RawEntryBytes(RawBytes::open(entry, CountedIn::Stored).unwrap()).read_to_end(&mut bytes).unwrap();
        let bytes = if name.ends_with(".gz") {
            let mut lines = Vec::new();
            flate2::read::MultiGzDecoder::new(&bytes[..]).read_to_end(&mut lines).unwrap();
            lines
        } else {
            bytes
        };
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn pages_and_index_are_those_of_what_is_left_and_the_rest_is_said_again() {
        let folder = tempfile::tempdir().unwrap();
        let [source, part, to] = ["old.wacz", "part", "new.wacz"].map(|name| folder.path().join(name));
        let mut zip = Zip::new(File::create(&source).unwrap());
        let header = "{\"format\": \"json-pages-1.0\", \"id\": \"pages\"}\n";
        let line = |url: &str| format!("{{\"id\": \"x\", \"url\": \"{url}\", \"ts\": \"2024-01-02T03:04:05Z\"}}\n");
        let lines = [line("http://A.example/1#part"), line("http://a.example/2"), line("http://a.example/3")];
        zip.add_bytes("pages/pages.jsonl", (header.to_owned() + &lines.concat()).as_bytes()).unwrap();
        zip.add_bytes("pages/extraPages.jsonl", (header.to_owned() + &lines[1]).as_bytes()).unwrap();
        let package = "{\"title\": \"T\", \"created\": \"2024-02-03T00:00:00Z\", \"wacz_version\": \"1.0.0\", \"resources\": [1]}";
        zip.add_bytes("datapackage.json", package.as_bytes()).unwrap();
        zip.add_bytes("datapackage-digest.json", b"{\"signedData\": {}}").unwrap();
        zip.add_bytes("archive/Data.warc", b"").unwrap();
        zip.finish().unwrap();
        // More lines than a block has.
        let left: Vec<u8> =
            (0..1500).filter(|n| *n != 2).flat_map(|n| response(&format!("http://a.example/{n}"), "x")).collect();
        std::fs::write(&part, left).unwrap();
        let (reading, scratch) = (Reading::default(), folder.path().join("scratch"));
        let wacz = WrittenWacz {
            source: &source,
            parts: vec![WrittenPart { name: "archive/Data.warc".into(), path: part, format: Format::Warc }],
            reading: &reading,
            scratch,
        };
        wacz.write(Output::create(&to).unwrap()).unwrap().finish().unwrap();
        assert!(!wacz.scratch.exists());

        let entries = wacz_entries(&to).unwrap();
        assert_eq!(text(&entries, "pages/pages.jsonl"), header.to_owned() + &lines[0] + &lines[2]);
        assert_eq!(text(&entries, "pages/extraPages.jsonl"), header);
        let index = text(&entries, "indexes/index.cdx.gz");
        let keys: Vec<&str> = index.lines().map(|line| line.split(' ').next().unwrap()).collect();
        assert!(keys.len() == 1499 && keys.is_sorted() && !keys.contains(&"example,a)/2"), "{}", keys.len());
        assert!(index.contains("\"filename\":\"Data.warc\""), "{index}");
        let table = text(&entries, "indexes/index.idx");
        let table: Vec<&str> = table.lines().collect();
        assert!(table.len() == 3 && table[2].starts_with(&format!("{} 20240102030405 {{", keys[1024])), "{table:?}");
        let package: Value = serde_json::from_str(&text(&entries, "datapackage.json")).unwrap();
        let said = ["title", "created", "wacz_version"].map(|name| package[name].as_str().unwrap());
        assert_eq!(said, ["T", "2024-02-03T00:00:00Z", "1.1.1"]);
        let resource = &package["resources"][0];
        assert_eq!(
            (resource["name"].as_str(), resource["path"].as_str()),
            (Some("data.warc"), Some("archive/Data.warc"))
        );
        for resource in package["resources"].as_array().unwrap() {
            let entry = entries.iter().find(|entry| entry.name == resource["path"].as_str().unwrap()).unwrap();
            assert_eq!(resource["bytes"].as_u64(), Some(entry.bytes), "{resource}");
        }
        assert!(!text(&entries, "datapackage-digest.json").contains("signedData"));
    }
}
