//! Reads WACZ files: zip files with WARC files in their folder `archive/`, as Browsertrix and ArchiveWeb.page write them.
//!
//! Each WARC is an input of its own, found when inputs are listed, and named `crawl.wacz/archive/data.warc.gz`; so workers share a
//! WACZ, and offsets are those of its CDX index. Entries are stored (the rule for `.warc.gz`) or deflated.
//!
//! In reading order: `contents` (the table of contents of a zip file), `entry` (the bytes of an entry, and what is wrong with it).

mod contents;
mod entry;

use std::fs::File;
use std::path::Path;

use anyhow::{Context as _, bail};

pub use self::entry::{EntryReader, entry_source};
use super::input::{Format, Input, Location, Packing};

/// The folder of the WARC files.
const ARCHIVE: &str = "archive/";

/// Lists the WARC files in a WACZ; or, in their place, the WACZ itself if it is damaged: [`damage`] says why.
///
/// # Errors
/// If the file cannot be read, or is not on a local disk.
pub fn list(wacz: Input) -> anyhow::Result<Vec<Input>> {
    let Location::File(path) = &wacz.place else {
        bail!("cannot read {}: a WACZ is read from a local disk only; copy it there first", wacz.name);
    };
    let Ok(entries) = read(path, &wacz.name)? else {
        return Ok(vec![wacz]);
    };
    let input = |entry: contents::Entry| {
        // Names are shown on terminals.
        let name = entry.name.replace(char::is_control, "\u{fffd}");
        let place = Location::Entry {
            archive: path.clone(),
            start: entry.start,
            packed: entry.packed,
            unpacked: entry.unpacked,
            checksum: entry.checksum,
            packing: entry.packing,
        };
        let name = format!("{}/{name}", wacz.name);
        Input { name, bytes: entry.packed, format: Format::Warc, place, page_url: None, stamp: wacz.stamp.clone() }
    };
    Ok(entries.into_iter().map(input).collect())
}

/// Returns the reason for which [`list`] lists a WACZ itself.
///
/// # Errors
/// If the file cannot be read.
pub fn damage(path: &Path, name: &str) -> anyhow::Result<&'static str> {
    // Without damage it was written again after it was listed.
    Ok(read(path, name)?.err().unwrap_or("zip: the file has changed since it was listed"))
}

/// Reads the entries that are WARC files.
fn read(path: &Path, name: &str) -> anyhow::Result<Result<Vec<contents::Entry>, &'static str>> {
    let failed = || crate::readers::input::cannot("read", name);
    let file = File::open(path).with_context(failed)?;
    let entries = match contents::read(&file).with_context(failed)? {
        Ok(entries) => entries,
        Err(reason) => return Ok(Err(reason)),
    };
    let is_warc = |entry: &contents::Entry| {
        let name = entry.name.strip_prefix(ARCHIVE).unwrap_or_default().to_ascii_lowercase();
        name.ends_with(".warc") || name.ends_with(".warc.gz")
    };
    let warcs: Vec<_> = entries.into_iter().filter(is_warc).collect();
    Ok(if warcs.is_empty() { Err("wacz: no WARC file in archive/") } else { Ok(warcs) })
}

/// How the bytes of an entry are packed, by the number of its method.
fn packing(method: u16, is_encrypted: bool) -> Packing {
    match method {
        0 if !is_encrypted => Packing::Stored,
        8 if !is_encrypted => Packing::Deflated,
        _ => Packing::Unknown,
    }
}
