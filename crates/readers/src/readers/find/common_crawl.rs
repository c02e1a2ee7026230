//! Crawls of Common Crawl by name: `cc:CC-MAIN-2024-10`.
//!
//! Each crawl has a listing of its WARC files, and one of its WET files, in which a line is a path
//! below the same address. The environment variable [`VARIABLE`] names another address, or a
//! folder: that of a mirror.

use anyhow::{Context as _, Result, bail, ensure};

use crate::objects::refuse_secrets;

/// Where the data of Common Crawl are.
const ADDRESS: &str = "https://data.commoncrawl.org";
/// The environment variable that names another place.
const VARIABLE: &str = "NIGH_COMMON_CRAWL";

/// A crawl that a user names.
#[derive(Debug, PartialEq)]
pub struct NamedCrawl {
    /// The listing of its files.
    pub listing: String,
    /// The address that its lines are below.
    pub base: String,
}

/// The crawl that an item names; `None` if it names none.
///
/// # Errors
/// If the item begins with `cc:` and is not the name of a crawl.
pub fn crawl_of(item: &str) -> Result<Option<NamedCrawl>> {
    let Some(name) = item.strip_prefix("cc:") else { return Ok(None) };
    let address = std::env::var(VARIABLE).ok().filter(|address| !address.is_empty());
    let address = address.as_deref().unwrap_or(ADDRESS);
    refuse_secrets(address).with_context(|| format!("cannot use the environment variable {VARIABLE}"))?;
    crawl(name, address).map(Some)
}

/// The crawl of a name at an address.
fn crawl(name: &str, address: &str) -> Result<NamedCrawl> {
    let (crawl, kind) = match name.rsplit_once('/') {
        Some((crawl, kind @ ("warc" | "wet"))) => (crawl, kind),
        Some((_, "wat")) => bail!("cc:{name} has no pages: WAT files are metadata. Use cc:CRAWL or cc:CRAWL/wet"),
        _ => (name, "warc"),
    };
    let is_part = |part: &str| {
        part.starts_with(|first: char| first.is_ascii_alphanumeric())
            && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
    };
    ensure!(
        crawl.split('/').all(is_part),
        "cc:{name} is not the name of a crawl: cc:CC-MAIN-2024-10 is one (its WARC files), and cc:CC-MAIN-2024-10/wet (their texts)"
    );
    let base = address.trim_end_matches('/').to_owned();
    Ok(NamedCrawl { listing: format!("{base}/crawl-data/{crawl}/{kind}.paths.gz"), base })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_crawls_are_listings() {
        for (name, listing) in [
            ("CC-MAIN-2024-10", "CC-MAIN-2024-10/warc.paths.gz"),
            ("CC-MAIN-2024-10/warc", "CC-MAIN-2024-10/warc.paths.gz"),
            ("CC-MAIN-2024-10/wet", "CC-MAIN-2024-10/wet.paths.gz"),
            ("CC-NEWS/2024/01", "CC-NEWS/2024/01/warc.paths.gz"),
        ] {
            let expected =
                NamedCrawl { listing: format!("http://a:1/x/crawl-data/{listing}"), base: "http://a:1/x".to_owned() };
            assert_eq!(crawl(name, "http://a:1/x/").unwrap(), expected);
        }
        for name in [
            "",
            "/",
            "..",
            "a/../b",
            "CC-MAIN-2024-10/",
            "wet/wet/",
            "CC MAIN",
            "CC-MAIN-2024-10?x",
            "CC-MAIN-2024-10/wat",
        ] {
            assert!(crawl(name, ADDRESS).is_err(), "{name}");
        }
        assert_eq!(crawl_of("crawl/CC-MAIN-2024-10").unwrap(), None);
    }
}
