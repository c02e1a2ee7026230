//! The format of a file, by the ending of its name or by its first bytes.
//!
//! The ending of a name decides the format. A named file without a known ending is recognised by
//! its first bytes; in folders and globs such files are skipped. So are names that begin with `.`
//! or `_` and, in folders, `.json` files, which in a mirrored site are rarely lines of pages. A
//! `.tsv` file whose name begins with `failed` has failed downloads.

use std::io::Read as _;

use anyhow::{Context as _, bail};

use super::found::{COMPRESSED, FoundBy};
use crate::readers::formats::{ALL, LineKind, RecordKind};
use crate::readers::input::{Format, Location};
use crate::readers::rows::jsonl;
use crate::readers::sniff;
use crate::readers::streams::{MemberStep, Members, Stored};
use crate::readers::url_list::begins_index;
use crate::readers::whole::PageKind;

/// Stored bytes of a file that are read to recognise its format.
const FIRST: u64 = 1 << 20;

/// The endings of inputs, for messages.
pub const KNOWN: &str = ".warc, .wet, .arc, .jsonl, .ndjson, .json, .csv, .tsv, .arrow, .feather, .html, .htm, .txt, .md (each also .gz, .zst, .bz2 or .xz), \
                     .wacz or .parquet";

/// Returns the format that the ending of a name stands for.
pub fn format_of_name(name: &str) -> Option<Format> {
    let name = name.to_ascii_lowercase();
    let name = name.rsplit('/').next().unwrap_or_default();
    let plain = COMPRESSED.iter().find_map(|ending| name.strip_suffix(ending)).unwrap_or(name);
    ALL.into_iter().find(|format| format.reader().is_named(name, plain))
}

/// Recognises the format of a file by its first bytes.
pub fn format_of_content(name: &str, bytes: u64, place: &Location) -> anyhow::Result<Format> {
    let mut source = crate::readers::opened::source(name, bytes.min(FIRST), place)?;
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
    let stored = Stored::new(Box::new(std::io::Cursor::new(stored)));
    let mut members = Members::new(stored, |bytes| !bytes.is_empty())?.unheld();
    let mut out = Vec::new();
    while out.len() < count {
        match members.step(&mut out)? {
            MemberStep::End | MemberStep::Damage { .. } => break,
            MemberStep::Start(_) | MemberStep::Bytes => {}
        }
    }
    Ok(out)
}

/// Returns the format of a file that a folder or a glob holds; `None` if it is not an input.
pub fn format_if_unnamed(relative: &str, by: FoundBy) -> Option<Format> {
    let is_json = by == FoundBy::Folder && relative.to_ascii_lowercase().ends_with(".json");
    format_of_name(relative).filter(|_| !is_json)
}

/// Whether files of this format, beside others in a folder, are rather reports about these.
pub fn is_report(format: Format) -> bool {
    matches!(format.records(), RecordKind::Lines(LineKind::Delimited(_)) | RecordKind::WholeFile(PageKind::Text))
}

/// Whether folders and globs skip a file of this name without counting it.
pub fn is_hidden(relative: &str) -> bool {
    relative.split('/').any(|part| part.starts_with(['.', '_']))
}

/// Returns the kind under which a file is left out: its ending.
pub fn kind_of_name(relative: &str) -> String {
    let name = relative.rsplit('/').next().unwrap_or_default();
    match name.rsplit_once('.') {
        Some((_, ending)) => format!("*.{ending}"),
        None => "without ending".to_owned(),
    }
}
