//! Listings: files that name one input in each line, such as `warc.paths.gz`.
//!
//! A listing may come from elsewhere, and its lines must not choose files of this machine or
//! servers of its network. So every line must lie below `base-url`, unless the job sets
//! `listing-anywhere`. A listing on this machine without `base-url` may name anything; one of an
//! object store or web server may name what lies in the same store.

use anyhow::{Context as _, Result, bail};

use super::found::FoundInput;
use super::objects::is_url;
use crate::readers::input::Location;
use crate::readers::streams::{MemberStep, Members, Stored};
use crate::reading::Reading;

/// The longest listing, in bytes.
const LISTING: usize = 1 << 30;

/// Returns the listing that an item names; `None` if the item is no listing.
pub fn listing_of(item: &str) -> Option<&str> {
    let is_listing = item.ends_with(".paths") || item.ends_with(".paths.gz");
    item.strip_prefix('@').or_else(|| is_listing.then_some(item))
}

/// Returns the items in the lines of a listing, which has the given files. Blank lines and lines
/// that begin with `#` are skipped; a relative line is put after `base-url`.
///
/// # Errors
/// If the listing cannot be read, or a line leaves the base.
pub fn items_of(files: Vec<FoundInput>, reading: &Reading) -> Result<Vec<String>> {
    let mut items = Vec::new();
    for FoundInput { name, bytes, place, .. } in files {
        let text = text_of_listing(&name, bytes, &place)?;
        let base = match (&reading.base_url, &place) {
            (Some(base), _) => Some(base.trim_end_matches('/')),
            (None, Location::Object { store, .. }) => Some(store.trim_end_matches('/')),
            (None, Location::File(_) | Location::Entry { .. }) => None,
        };
        for line in text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')) {
            let item = match &reading.base_url {
                Some(base) if !is_url(line) && !line.starts_with('/') => {
                    format!("{}/{line}", base.trim_end_matches('/'))
                }
                _ => line.to_owned(),
            };
            if let Some(base) = base.filter(|base| !reading.listing_anywhere && !is_below(&item, base)) {
                bail!(
                    "the line `{line}` leaves {base}: set listing-anywhere = true in [cluster.read] if this listing may name any file"
                );
            }
            items.push(item);
        }
    }
    Ok(items)
}

/// Whether an item lies below a base, which has no `/` at its end, and does not climb out of it by
/// `..`.
fn is_below(item: &str, base: &str) -> bool {
    let climbs = |part: &str| part.to_ascii_lowercase().replace("%2e", ".") == "..";
    item.strip_prefix(base)
        .and_then(|rest| rest.strip_prefix('/'))
        .is_some_and(|rest| !rest.split(['/', '\\']).any(climbs) && !rest.to_ascii_lowercase().contains("%2f"))
}

/// Reads the text of a listing, plain or compressed.
fn text_of_listing(name: &str, bytes: u64, place: &Location) -> anyhow::Result<String> {
    let failed = || format!("cannot read the listing {name}");
    let stored = Stored::new(crate::readers::opened::source(name, bytes, place)?);
    let mut members = Members::new(stored, |bytes| !bytes.is_empty()).with_context(failed)?;
    let mut text = Vec::new();
    loop {
        match members.step(&mut text).with_context(failed)? {
            MemberStep::End => break,
            MemberStep::Damage { reason, .. } => bail!("cannot read the listing {name}: {reason}; download it again"),
            MemberStep::Start(_) | MemberStep::Bytes if text.len() > LISTING => {
                bail!("the listing {name} is longer than 1 GiB")
            }
            MemberStep::Start(_) | MemberStep::Bytes => {}
        }
    }
    String::from_utf8(text).with_context(|| format!("the listing {name} is not UTF-8 text"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_below_the_base_stays_below_it() {
        let base = "https://data.example/crawl";
        for inside in ["a.warc", "x/../y", "x/..", "x..y/a"] {
            let expected = !inside.contains("/..");
            assert_eq!(is_below(&format!("{base}/{inside}"), base), expected, "{inside}");
        }
        for outside in [
            "/etc/passwd",
            "https://data.example/crawl",
            "https://data.example/crawl-2/a",
            "https://data.example.evil/crawl/a",
            "https://data.example/crawl/%2e%2E/a",
            "https://data.example/crawl/%2e%2e%2fa",
            "http://data.example/crawl/a",
        ] {
            assert!(!is_below(outside, base), "{outside}");
        }
    }
}
