//! A capture, as it crosses workers and is sorted: a key of a fixed size, and a row of bytes.
//!
//! Rows are written once, when the page is read, and lie in large buffers until their documents are
//! written; then they are read without a copy of their texts. A page of a made-up text takes 0.6 kB
//! so, most of it features.

use std::borrow::Cow;

use anyhow::{Context, Result};
use bytemuck::{Pod, Zeroable};
use serde::{Deserialize, Serialize, Serializer};

use crate::features::{PageChunks, PageFacts};
use crate::readers::Page;
use crate::records::{KeyHash, checksum};
use crate::structures::TextList;
use crate::text::urls::CanonicalUrl;

/// What captures are sorted by. Of several captures of a URL, the first by (file, ordinal) of GET
/// becomes the document; of another method, if there is none of GET.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable, Serialize, Deserialize)]
#[repr(C)]
pub struct CaptureKey {
    /// The halves of the hash of the document's key; the owner of its shard receives the capture.
    hash: [u64; 2],
    /// 0 if the page was asked for by GET, as far as the input says; 1 for another method.
    method: u32,
    /// The input's number in the plan.
    pub file: u32,
    /// The record's number in the input.
    pub ordinal: u64,
}

impl CaptureKey {
    /// The key of a record of an input.
    pub fn new(hash: KeyHash, is_of_get: bool, (file, ordinal): (u32, u64)) -> CaptureKey {
        CaptureKey { hash: hash.halves(), method: u32::from(!is_of_get), file, ordinal }
    }

    /// The hash of the document's key.
    pub fn hash(&self) -> KeyHash {
        KeyHash::from_halves(self.hash)
    }
}

/// A capture: one fetch of a URL, with the features of its page.
#[derive(Debug, Serialize, Deserialize)]
pub struct Capture<'a> {
    /// The user's id.
    pub id: Option<&'a str>,
    /// The canonical URL.
    pub url: Option<&'a str>,
    /// The host of the URL.
    pub host: Option<&'a str>,
    /// The URL as written, if that is not the canonical one.
    pub given_url: Option<&'a str>,
    /// The IP address of the server.
    pub ip: Option<Cow<'a, str>>,
    /// The time of the fetch, in microseconds since 1970, UTC.
    pub fetched: Option<i64>,
    /// The HTTP status.
    pub status: Option<u16>,
    /// The media type, without parameters.
    pub media_type: Option<&'a str>,
    /// The charset label of the answer.
    pub charset: Option<&'a str>,
    /// The id of the record in an archive: see [`ArchiveEntry`](crate::readers::ArchiveEntry).
    pub record_id: Option<&'a str>,
    /// The digest of the payload, as the archive has it.
    pub digest: Option<&'a str>,
    /// The bytes of the record in the archive.
    pub length: Option<u64>,
    /// The length of the body in bytes, as read.
    pub bytes: u64,
    /// The checksum of these bytes.
    pub checksum: u128,
    /// The number of words of the text.
    pub words: u64,
    /// The title of the page.
    pub title: &'a str,
    /// The position of the record in the input, in bytes.
    pub offset: u64,
    /// Whether the body was truncated.
    pub cut: bool,
    /// The supershingles, 8 bytes each; empty for a page without words.
    #[serde(serialize_with = "as_bytes")]
    pub supershingles: &'a [u8],
    /// What is kept of the features; empty for a page without words.
    #[serde(serialize_with = "as_bytes")]
    pub features: &'a [u8],
    /// Hashes of text, lines and paragraphs; `None` for a page without words, and if the job does
    /// not keep them.
    #[serde(borrow)]
    pub chunks: Option<CapturedChunks<'a>>,
    /// The canonical URLs that the page links to, each but the last with a line feed behind it: no
    /// URL has one.
    pub links: Cow<'a, str>,
    /// The values of the columns whose values are kept.
    #[serde(borrow)]
    pub values: Vec<Option<&'a str>>,
}

/// The [`PageChunks`] of a capture.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct CapturedChunks<'a> {
    /// The hash of the text.
    pub text: u128,
    /// The number of characters of the text.
    pub characters: u64,
    /// The hashes of the lines.
    #[serde(serialize_with = "as_bytes")]
    pub lines: &'a [u8],
    /// The hashes of the paragraphs.
    #[serde(serialize_with = "as_bytes")]
    pub paragraphs: &'a [u8],
}

/// Texts with a line feed between each two.
fn joined(texts: &TextList) -> String {
    let mut lines = String::with_capacity(texts.bytes() + texts.len());
    for text in texts.iter() {
        if !lines.is_empty() {
            lines.push('\n');
        }
        lines.push_str(text);
    }
    lines
}

/// Writes bytes at once; serde would write a list of numbers, one by one, in the same form.
pub(super) fn as_bytes<S: Serializer>(bytes: &impl AsRef<[u8]>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_bytes(bytes.as_ref())
}

impl<'a> Capture<'a> {
    /// The capture of a page at a canonical URL, if it has one. `bytes` are its content.
    pub fn of(page: &'a Page, url: Option<&'a CanonicalUrl>, bytes: &[u8], facts: &'a PageFacts) -> Capture<'a> {
        let canonical = url.map(CanonicalUrl::as_str);
        // This machine is little-endian: `records` does not compile for others.
        let sketch = &facts.sketch;
        Capture {
            id: page.id.as_deref(),
            url: canonical,
            host: url.map(CanonicalUrl::host),
            given_url: page.url.as_deref().filter(|given| canonical != Some(given)),
            ip: page.ip.map(|ip| ip.to_string().into()),
            fetched: page.fetched,
            status: page.status,
            media_type: page.media_type.as_deref(),
            charset: page.charset.as_deref(),
            record_id: page.entry.id.as_deref(),
            digest: page.entry.digest.as_deref(),
            length: page.entry.length,
            bytes: bytes.len() as u64,
            checksum: checksum(bytes),
            words: facts.words,
            title: &facts.title,
            offset: page.offset,
            cut: page.cut,
            supershingles: bytemuck::cast_slice(&sketch.supershingles),
            features: bytemuck::cast_slice(&sketch.features),
            chunks: facts.chunks.as_ref().map(|PageChunks { text, characters, lines, paragraphs }| CapturedChunks {
                text: *text,
                characters: *characters,
                lines,
                paragraphs,
            }),
            links: joined(&facts.links).into(),
            values: page.values.iter().map(Option::as_deref).collect(),
        }
    }

    /// The row of the capture.
    pub fn packed(&self, key: CaptureKey) -> PackedCapture {
        let chunks = self.chunks.map_or(0, |chunks| chunks.lines.len() + chunks.paragraphs.len());
        let long = [self.supershingles.len(), self.features.len(), chunks, self.links.len(), self.title.len()];
        // Room for the other fields of most pages.
        let row = Vec::with_capacity(long.iter().sum::<usize>() + 1024);
        let row = postcard::to_extend(self, row).expect("a capture is plain data");
        PackedCapture { key, row }
    }

    /// Reads the row of a capture.
    ///
    /// # Errors
    /// If it is not one.
    pub fn read(row: &'a [u8]) -> Result<Capture<'a>> {
        postcard::from_bytes(row).context("a page from another worker cannot be read")
    }
}

/// A capture and its key.
#[derive(Debug, Serialize, Deserialize)]
pub struct PackedCapture {
    /// The key.
    pub key: CaptureKey,
    /// The row of the [`Capture`].
    #[serde(serialize_with = "as_bytes")]
    pub row: Vec<u8>,
}

impl PackedCapture {
    /// The bytes of the key and the row, which cross workers.
    pub fn parts(&self) -> [&[u8]; 2] {
        [bytemuck::bytes_of(&self.key), &self.row]
    }

    /// The key and the row in such bytes.
    ///
    /// # Errors
    /// If they are too short.
    pub fn split(bytes: &[u8]) -> Result<(CaptureKey, &[u8])> {
        let parts = bytes.split_at_checked(size_of::<CaptureKey>());
        let (key, row) = parts.context("a page from another worker cannot be read")?;
        Ok((bytemuck::pod_read_unaligned(key), row))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::features::Sketch;
    use crate::readers::{ArchiveEntry, Body};
    use crate::text::urls::canonical;

    fn page(with_all: bool) -> Page {
        let text = |text: &str| with_all.then(|| text.to_owned());
        Page {
            id: text("17"),
            url: text("HTTP://a.example/x"),
            ip: with_all.then(|| "::1".parse().unwrap()),
            fetched: with_all.then_some(-1),
            date_unread: false,
            status: with_all.then_some(200),
            media_type: text("text/html"),
            charset: text("utf-8"),
            body: Body::Text("one two".to_owned()),
            entry: ArchiveEntry { id: text("urn:1"), digest: text("sha1:A"), length: with_all.then_some(u64::MAX) },
            offset: 1 << 40,
            cut: with_all,
            is_of_get: true,
            values: if with_all { vec![None, text("seven")] } else { Vec::new() },
        }
    }

    fn facts(with_all: bool) -> PageFacts {
        let chunks = PageChunks { text: u128::MAX, characters: 7, lines: vec![1; 8], paragraphs: vec![2; 16] };
        let sketch = Sketch { supershingles: vec![u64::MAX; 6], features: vec![Default::default(); 84] };
        PageFacts {
            words: if with_all { 2 } else { 0 },
            title: "Title".to_owned(),
            sketch: if with_all { sketch } else { Sketch::default() },
            chunks: with_all.then_some(chunks),
            links: if with_all { ["http://b.example/"].iter().collect() } else { TextList::default() },
            is_whole: false,
        }
    }

    #[test]
    fn a_row_is_read_as_the_capture_that_it_was_written_of() {
        for with_all in [false, true] {
            let (page, facts) = (page(with_all), facts(with_all));
            let url = page.url.as_deref().and_then(canonical);
            let capture = Capture::of(&page, url.as_ref(), b"one two", &facts);
            let key = CaptureKey::new(KeyHash::of("x"), false, (7, u64::MAX));
            let packed = capture.packed(key);
            let bytes = packed.parts().concat();
            let (read_key, row) = PackedCapture::split(&bytes).unwrap();
            assert_eq!((read_key, read_key.hash()), (key, KeyHash::of("x")));
            let read = Capture::read(row).unwrap();
            assert_eq!(format!("{read:?}"), format!("{capture:?}"));
            assert_eq!(read.links, capture.links);
            // What the config keeps of what was read is the same.
            let kept: PackedCapture = postcard::from_bytes(&postcard::to_allocvec(&packed).unwrap()).unwrap();
            assert_eq!(kept.parts(), packed.parts());
            for cut in 0..row.len() {
                assert!(Capture::read(&row[..cut]).is_err(), "{cut}");
            }
        }
        assert!(PackedCapture::split(&[0; 31]).is_err());
    }

    #[test]
    fn keys_are_in_the_order_of_hash_method_and_place() {
        let key = |hash, is_of_get, place| CaptureKey::new(KeyHash::from_halves(hash), is_of_get, place);
        let sorted = [
            key([1, 9], true, (9, 9)),
            key([2, 3], true, (0, 5)),
            key([2, 3], true, (1, 4)),
            key([2, 3], false, (0, 0)),
            key([2, 4], true, (0, 0)),
        ];
        assert!(sorted.is_sorted());
    }
}
