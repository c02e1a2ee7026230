//! Downloads whose page is what another one was, and what they say of that one (docs/inputs.md,
//! Revisits).
//!
//! They are failed downloads until the page is found, after the last wave (`jobs::revisited`). All
//! of a URL are kept, in the order of (wave, file, ordinal): the first whose page is found counts.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result};
use arrow_array::{Array, FixedSizeBinaryArray, Int64Array};
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

use super::digests::PayloadDigest;
use super::failed_pieces::pieces;
use crate::readers::{Profile, Revisit};
use crate::records::{DocId, KeyHash};
use crate::state::Unfinished;
use crate::tables::{RevisitRow, Scan, field, maybe_text};
use crate::text::urls;

/// The reason of a revisit whose page is not found.
pub const NOT_KNOWN: &str = "revisit of a page that is not known";

/// A download whose page is what another one was, as it was read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RevisitOf {
    /// The hash of the canonical URL of the other one; `None` if it is not looked for by a URL.
    pub target: Option<KeyHash>,
    /// The record id of the other one.
    pub id: Option<String>,
    /// When that was fetched: microseconds since 1970, UTC.
    pub date: Option<i64>,
    /// The digest of the payload of both, if the page is looked for by it.
    pub digest: Option<String>,
    /// The canonical URL of the download.
    pub url: String,
    /// The URL as written, if that is not the canonical one.
    pub given_url: Option<String>,
    /// The address of the server.
    pub ip: Option<String>,
    /// When it was fetched.
    pub fetched: Option<i64>,
    /// The media type, if the download has one.
    pub media_type: Option<String>,
}

impl RevisitOf {
    /// What a record says that is a revisit of this URL.
    pub(super) fn of(revisit: Revisit, url: urls::CanonicalUrl) -> RevisitOf {
        let of_url = revisit.of_url.as_deref().and_then(urls::canonical);
        let digest = revisit.digest.filter(|_| revisit.profile != Profile::NotModified);
        let names_nothing = digest.as_deref().is_some_and(|digest| PayloadDigest::read(digest).is_none());
        // The payload was received, and is empty. Only the record that it names is the same: not
        // the last one of its URL.
        let is_by_url = !names_nothing || revisit.profile != Profile::IdenticalPayload || revisit.of_date.is_some();
        let target = of_url.as_ref().map_or(url.as_str(), |of_url| of_url.as_str());
        RevisitOf {
            target: is_by_url.then(|| KeyHash::of(target)),
            id: revisit.of_id,
            date: revisit.of_date,
            digest: digest.filter(|_| !names_nothing),
            given_url: Some(revisit.url).filter(|given| given != url.as_str()),
            ip: revisit.ip.map(|ip| ip.to_string()),
            fetched: revisit.fetched,
            media_type: revisit.media_type,
            url: url.into(),
        }
    }

    /// The bytes that it takes in memory.
    pub(super) fn weight(&self) -> usize {
        let texts = [&self.id, &self.digest, &self.given_url, &self.ip, &self.media_type].into_iter().flatten();
        size_of::<RevisitOf>() + self.url.len() + texts.map(String::len).sum::<usize>()
    }

    /// The row of a revisit. `doc` is its document, if an earlier week has the URL.
    pub(super) fn row(self, doc: Option<DocId>, hash: KeyHash, file: u32) -> RevisitRow {
        let RevisitOf { target, id, date, digest, url, given_url, ip, fetched, media_type } = self;
        RevisitRow {
            doc: doc.map(DocId::to_table),
            hash: hash.to_bytes(),
            target: target.map(KeyHash::to_bytes),
            id,
            date,
            digest,
            url,
            given_url,
            ip,
            fetched,
            media_type,
            file: file.into(),
        }
    }
}

/// A revisit in a finished wave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Revisited {
    /// The document, if an earlier week has the URL.
    pub doc: Option<DocId>,
    /// The hash of the URL.
    pub hash: KeyHash,
    /// What it says of the page.
    pub named: NamedCapture,
    /// The canonical URL.
    pub url: String,
    /// The URL as written, if that is not the canonical one.
    pub given_url: Option<String>,
    /// The address of the server.
    pub ip: Option<String>,
    /// The media type, if the download has one.
    pub media_type: Option<String>,
    /// The input's number in the plan.
    pub file: u32,
}

/// What a revisit says of the capture that has its page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct NamedCapture {
    /// The [hash](record_hash) of its record id.
    pub id: Option<u64>,
    /// The hash of its URL; `None` if it is not looked for by a URL.
    pub target: Option<KeyHash>,
    /// The digest of its payload.
    pub digest: Option<PayloadDigest>,
    /// When it was fetched: microseconds since 1970, UTC.
    pub date: Option<i64>,
    /// When the revisit was fetched: the capture is not a later one.
    pub before: Option<i64>,
}

/// The hash of a record id.
pub fn record_hash(id: &str) -> u64 {
    xxh3_64(id.as_bytes())
}

/// The extensions of URLs that have no page, usually.
const OF_NO_PAGE: [&str; 44] = [
    "7z", "avi", "avif", "bin", "bmp", "bz2", "css", "doc", "docx", "eot", "epub", "exe", "flac", "gif", "gz", "ico",
    "iso", "jpeg", "jpg", "js", "json", "map", "mjs", "mov", "mp3", "mp4", "ogg", "otf", "pdf", "png", "ppt", "rss",
    "svg", "swf", "tar", "tif", "ttf", "wasm", "wav", "webm", "webp", "woff", "woff2", "zip",
];

impl Revisited {
    /// Whether it does not say its media type, and its URL is that of an image, a style, a script
    /// or the like. Most crawlers write revisits of these, too; no week has a page of theirs, and
    /// nothing is lost if they are not found.
    pub fn may_be_no_page(&self) -> bool {
        let path = self.url.split(['?', '#']).next().unwrap_or_default();
        let extension = path.rsplit('/').next().and_then(|name| name.rsplit_once('.')).map(|(_, extension)| extension);
        let is_known = |extension: &str| OF_NO_PAGE.iter().any(|known| known.eq_ignore_ascii_case(extension));
        self.media_type.is_none() && path.matches('/').count() > 2 && extension.is_some_and(is_known)
    }
}

/// The revisits of the first `waves` waves in a shard, in the order of the hashes of their URLs;
/// those of one URL in the order of (wave, file, ordinal).
///
/// # Errors
/// If a file cannot be read: names it.
pub fn revisits(unfinished: &Unfinished, shard: u32, waves: usize) -> Result<Vec<Revisited>> {
    let mut by_url: BTreeMap<KeyHash, Vec<Revisited>> = BTreeMap::new();
    for (_, rows) in pieces::<RevisitRow>(unfinished, shard, waves)? {
        let columns = [
            "doc",
            "hash",
            "target",
            "id",
            "date",
            "digest",
            "url",
            "given_url",
            "ip",
            "fetched",
            "media_type",
            "file",
        ];
        Scan::open(rows, &columns)?.for_each(|batch| {
            let hash_of = |name: &str, row: usize| -> Result<Option<KeyHash>> {
                let bytes: &FixedSizeBinaryArray = field(batch, name)?;
                let value = || bytes.value(row).try_into().context("a hash has 16 bytes");
                bytes.is_valid(row).then(|| value().map(KeyHash::from_bytes)).transpose()
            };
            let long = |name: &str, row: usize| -> Result<Option<i64>> {
                let longs: &Int64Array = field(batch, name)?;
                Ok(longs.is_valid(row).then(|| longs.value(row)))
            };
            let text = |name: &str, row: usize| Ok::<_, anyhow::Error>(maybe_text(field(batch, name)?, row));
            for row in 0..batch.num_rows() {
                let hash = hash_of("hash", row)?.context("a revisit has a URL")?;
                let named = NamedCapture {
                    id: text("id", row)?.map(|id| record_hash(&id)),
                    target: hash_of("target", row)?,
                    digest: text("digest", row)?.and_then(|digest| PayloadDigest::read(&digest)),
                    date: long("date", row)?,
                    before: long("fetched", row)?,
                };
                by_url.entry(hash).or_default().push(Revisited {
                    doc: long("doc", row)?.map(DocId::from_table),
                    hash,
                    named,
                    url: text("url", row)?.unwrap_or_default(),
                    given_url: text("given_url", row)?,
                    ip: text("ip", row)?,
                    media_type: text("media_type", row)?,
                    file: long("file", row)?.unwrap_or_default() as u32,
                });
            }
            Ok(())
        })?;
    }
    Ok(by_url.into_values().flatten().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn revisit(profile: Profile, digest: &str, of_date: Option<i64>) -> RevisitOf {
        let revisit = Revisit {
            url: "http://A.example/x#y".to_owned(),
            ip: None,
            fetched: Some(7),
            profile,
            of_id: Some("urn:uuid:1".to_owned()),
            of_url: Some("http://a.example/z".to_owned()),
            of_date,
            digest: Some(digest.to_owned()),
            media_type: None,
            offset: 0,
        };
        let url = urls::canonical(&revisit.url).unwrap();
        RevisitOf::of(revisit, url)
    }

    #[test]
    fn a_digest_is_looked_up_only_if_it_is_that_of_a_page() {
        let (of_page, of_nothing) = ("sha1:VGMT4NSHA2AWVOR6EVYXQUGCNSONBWE5", "sha1:3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ");
        for (profile, digest, date, is_by_digest, is_by_url) in [
            (Profile::IdenticalPayload, of_page, None, true, true),
            (Profile::IdenticalPayload, of_nothing, None, false, false),
            (Profile::IdenticalPayload, of_nothing, Some(5), false, true),
            (Profile::Other, of_page, None, true, true),
            (Profile::Other, of_nothing, None, false, true),
            (Profile::NotModified, of_page, None, false, true),
            (Profile::NotModified, of_nothing, None, false, true),
        ] {
            let revisit = revisit(profile, digest, date);
            assert_eq!(
                (revisit.digest.is_some(), revisit.target.is_some()),
                (is_by_digest, is_by_url),
                "{profile:?} {digest}"
            );
            assert_eq!(revisit.target.unwrap_or(KeyHash::of("http://a.example/z")), KeyHash::of("http://a.example/z"));
            assert_eq!(
                (&*revisit.url, revisit.given_url.as_deref()),
                ("http://a.example/x", Some("http://A.example/x#y"))
            );
        }
    }

    #[test]
    fn an_image_without_a_media_type_is_not_missed() {
        let revisit = |url: &str, media_type: Option<&str>| Revisited {
            doc: None,
            hash: KeyHash::of(url),
            named: NamedCapture::default(),
            url: url.to_owned(),
            given_url: None,
            ip: None,
            media_type: media_type.map(str::to_owned),
            file: 0,
        };
        for url in ["http://a.example/x/y.PNG", "http://a.example/style.css?v=1.html", "http://a.example/a.b.js"] {
            assert!(revisit(url, None).may_be_no_page() && !revisit(url, Some("text/html")).may_be_no_page(), "{url}");
        }
        for url in
            ["http://a.zip", "http://a.zip/", "http://a.example/x?y=z.png", "http://a.example/x.html", "http://a.js/x"]
        {
            assert!(!revisit(url, None).may_be_no_page(), "{url}");
        }
        assert!(OF_NO_PAGE.is_sorted());
    }
}
