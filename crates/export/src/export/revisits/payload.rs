//! What is compared of two records, and what a revisit record says of the other one.

use ring::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

use super::arc_line::{ArcLine, is_arc};
use super::digest::base32;
use super::original::RevisitedRecord;
use crate::readers::{StoredRecord, dechunk, end_of_head, split_head};

/// The payload of a record, as far as a replayer needs it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Payload {
    /// The hash of what must be equal besides: the type of the record, and the content encodings
    /// that its HTTP head says.
    pub(super) form: u64,
    /// Whether its HTTP head says that it is in chunks.
    pub(super) says_chunked: bool,
    pub(super) chunks: TransferChunks,
    /// WARC-Payload-Digest as written.
    pub(super) digest: Option<String>,
    /// The SHA-1 digest that is computed over the payload: what follows the HTTP head, without the
    /// sizes of chunks (WARC 1.1, section 6.3.2). `None` if the reader did not keep the whole
    /// block.
    pub(super) computed: Option<[u8; 20]>,
    /// What a revisit says of the record, if it can refer to it.
    pub(super) original: Option<RevisitedRecord>,
}

/// How a payload is stored. Digests are the same for all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(super) enum TransferChunks {
    /// In chunks, with their sizes.
    Some,
    None,
    /// Not in chunks, but it begins like one.
    Alike,
}

impl Payload {
    /// How the payload of another record can be stored, if it is sent with the HTTP head of this
    /// one: a replayer takes chunks for what they are if the head says so, and passes other bytes
    /// through.
    pub(super) fn fitting(&self) -> [TransferChunks; 2] {
        if self.says_chunked {
            [TransferChunks::Some, TransferChunks::None]
        } else {
            [TransferChunks::Alike, TransferChunks::None]
        }
    }

    /// The payload of a record; `None` if its head is none.
    pub(super) fn of(record: &StoredRecord<'_>) -> Option<Payload> {
        let head = http_head(record.block);
        let (mut content, mut says_chunked, body) = (Vec::new(), false, &record.block[head.len()..]);
        for (name, value) in split_head(head).1 {
            let value = value.to_ascii_lowercase();
            match name.to_ascii_lowercase().as_slice() {
                b"content-encoding" => content.extend([&value[..], b","].concat()),
                b"transfer-encoding" => says_chunked = value.ends_with(b"chunked"),
                _ => {}
            }
        }
        let dechunked = dechunk(body, body.len());
        let is_like_chunks = dechunked.is_some();
        let dechunked = dechunked.filter(|_| says_chunked).map(|decoded| decoded.bytes);
        let chunks = match (&dechunked, is_like_chunks) {
            (Some(_), _) => TransferChunks::Some,
            (None, true) => TransferChunks::Alike,
            (None, false) => TransferChunks::None,
        };
        let computed = record.is_whole.then(|| sha1(dechunked.as_deref().unwrap_or(body)));
        // Of chunks, programs compute digests over the sizes, too: one that the archive does not
        // have is not clear.
        let is_clear = chunks != TransferChunks::Some;
        let computed_text = computed.filter(|_| is_clear).map(|bytes| format!("sha1:{}", base32(&bytes)));
        let mut original = RevisitedRecord::default();
        let (mut kind, mut text) = (Vec::new(), None);
        if is_arc(record.head) {
            let ArcLine { url, date, .. } = ArcLine::parse(record.head)?;
            (kind, original.url, original.date) = (b"response".to_vec(), url.into_bytes(), date);
        } else {
            for (name, value) in split_head(record.head).1 {
                let text_of = || Some(String::from_utf8_lossy(&value).into_owned()).filter(|text| !text.is_empty());
                match name.to_ascii_lowercase().as_slice() {
                    b"warc-type" => kind = value.to_ascii_lowercase(),
                    b"warc-target-uri" => original.url = without_brackets(&value).to_vec(),
                    b"warc-date" => original.date = text_of(),
                    b"warc-record-id" => original.id = Some(value.to_vec()).filter(|id| !id.is_empty()),
                    b"warc-payload-digest" => text = text_of(),
                    _ => {}
                }
            }
        }
        let original = text.clone().or(computed_text).map(|digest| RevisitedRecord { digest, ..original });
        let original = original.filter(|original| !original.url.is_empty());
        let form = xxh3_64(&[&kind, &b"\n"[..], &content].concat());
        Some(Payload { form, says_chunked, chunks, digest: text, computed, original })
    }
}

/// The HTTP head that a block begins with, with its empty line; nothing, if it begins with none.
pub(in crate::export) fn http_head(block: &[u8]) -> &[u8] {
    if !block.get(..5).is_some_and(|start| start.eq_ignore_ascii_case(b"HTTP/")) {
        return &[];
    }
    &block[..end_of_head(block).unwrap_or(block.len())]
}

/// The SHA-1 digest, which archives have by custom.
pub(super) fn sha1(bytes: &[u8]) -> [u8; 20] {
    let mut value = [0; 20];
    value.copy_from_slice(digest(&SHA1_FOR_LEGACY_USE_ONLY, bytes).as_ref());
    value
}

fn without_brackets(value: &[u8]) -> &[u8] {
    value.strip_prefix(b"<").and_then(|value| value.strip_suffix(b">")).unwrap_or(value).trim_ascii()
}
