//! The `metadata` record that says of a page that it is a near-duplicate.

use jiff::Timestamp;
use ring::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};
use serde::{Deserialize, Serialize};

use crate::export::revisits::{base32, record_id};
use crate::structures::Sortable;

/// What is said of a near-duplicate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NearDuplicate {
    /// The place of its record.
    pub(in crate::export) file: u32,
    pub(in crate::export) offset: u64,
    /// The URL of the page that it is a near-duplicate of, the id of its record and its date.
    pub(in crate::export) url: Option<String>,
    pub(in crate::export) id: Option<String>,
    pub(in crate::export) date: Option<String>,
    /// How similar the two are, and whether that is exact.
    pub(in crate::export) similarity: Option<(f32, bool)>,
}

impl Sortable for NearDuplicate {
    type Key = (u32, u64);

    fn key(&self) -> (u32, u64) {
        (self.file, self.offset)
    }

    fn weight(&self) -> usize {
        let texts = [&self.url, &self.id, &self.date];
        size_of::<NearDuplicate>() + texts.into_iter().flatten().map(String::len).sum::<usize>()
    }
}

/// The page of a record of which something is said.
pub(in crate::export) struct Subject {
    pub(in crate::export) url: Option<String>,
    /// The id of its record, without angle brackets.
    pub(in crate::export) id: Option<String>,
    pub(in crate::export) date: Option<String>,
}

impl NearDuplicate {
    /// The `metadata` record that says it of a page. `source` is what its id is made from.
    pub(in crate::export) fn record(&self, subject: &Subject, source: &[&[u8]]) -> Vec<u8> {
        let mut block = format!("software: nigh {}\r\n", env!("CARGO_PKG_VERSION"));
        let mut say = |name: &str, value: &str| block.push_str(&format!("{name}: {value}\r\n"));
        self.url.iter().for_each(|url| say("nearDuplicateOf", url));
        self.id.iter().for_each(|id| say("nearDuplicateOfRecordId", &format!("<{id}>")));
        self.date.iter().for_each(|date| say("nearDuplicateOfDate", date));
        if let Some((similarity, is_exact)) = self.similarity {
            say("similarity", &format!("{similarity:.4}"));
            say("similarityIs", if is_exact { "exact" } else { "estimated" });
        }
        let id = record_id(&[&[b"near-duplicate".as_slice()], source].concat());
        let mut head = format!("WARC/1.1\r\nWARC-Type: metadata\r\nWARC-Record-ID: {id}\r\n");
        let mut add = |name: &str, value: &str| head.push_str(&format!("{name}: {value}\r\n"));
        subject.date.iter().for_each(|date| add("WARC-Date", date));
        subject.url.iter().for_each(|url| add("WARC-Target-URI", url));
        subject.id.iter().for_each(|id| add("WARC-Refers-To", &format!("<{id}>")));
        add("Content-Type", "application/warc-fields");
        let sha1 = digest(&SHA1_FOR_LEGACY_USE_ONLY, block.as_bytes());
        add("WARC-Block-Digest", &format!("sha1:{}", base32(sha1.as_ref())));
        add("Content-Length", &block.len().to_string());
        format!("{head}\r\n{block}\r\n\r\n").into_bytes()
    }
}

/// A time as WARC has it.
pub(in crate::export) fn warc_date(microseconds: i64) -> Option<String> {
    Timestamp::from_microsecond(microseconds).ok().map(|time| time.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_metadata_record_names_both_pages() {
        let near = NearDuplicate {
            file: 0,
            offset: 0,
            url: Some("http://a.example/".into()),
            id: Some("urn:x:1".into()),
            date: warc_date(1_704_675_723_500_000),
            similarity: Some((0.90477, false)),
        };
        let subject = Subject { url: Some("http://b.example/".into()), id: Some("urn:x:2".into()), date: warc_date(0) };
        let text = String::from_utf8(near.record(&subject, &[b"f"])).unwrap();
        let (head, block) = text.split_once("\r\n\r\n").unwrap();
        let own = record_id(&[b"near-duplicate", b"f"]);
        let fields = "WARC-Date: 1970-01-01T00:00:00Z\r\nWARC-Target-URI: http://b.example/\r\nWARC-Refers-To: <urn:x:2>\r\n\
                      Content-Type: application/warc-fields\r\nWARC-Block-Digest: sha1:";
        assert!(
            head.starts_with(&format!("WARC/1.1\r\nWARC-Type: metadata\r\nWARC-Record-ID: {own}\r\n{fields}")),
            "{head}"
        );
        let block = block.strip_suffix("\r\n\r\n").unwrap();
        assert!(head.ends_with(&format!("\r\nContent-Length: {}", block.len())), "{head}");
        let software = format!("software: nigh {}\r\n", env!("CARGO_PKG_VERSION"));
        let wanted = "nearDuplicateOf: http://a.example/\r\nnearDuplicateOfRecordId: <urn:x:1>\r\n\
                      nearDuplicateOfDate: 2024-01-08T01:02:03.5Z\r\nsimilarity: 0.9048\r\nsimilarityIs: estimated\r\n";
        assert_eq!(block, software + wanted);
    }
}
