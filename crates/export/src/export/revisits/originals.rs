//! Which record a record that goes refers to: the first one of its content with its payload, of a
//! week before if there is one, else of its cluster.
//!
//! Two payloads are equal if their digests in the archive are, where both have one of the same
//! algorithm; else if the digests are that are computed. A record of which no earlier one has the
//! payload is written whole, and others refer to it. Records of a WACZ refer only to each other.
//!
//! Memory: the sorts are external; of one content, a record of each payload.

use std::collections::HashMap;
use std::path::PathBuf;

use anyhow::Result;
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

use super::digest::WarcDigest;
use super::earlier::{EarlierWeeks, PageOfContent, add_wanted};
use super::original::{Reference, RevisitedRecord};
use super::payload::{Payload, TransferChunks};
use crate::config::Reading;
use crate::export::archives::wacz_of;
use crate::export::dataset::{changed, each_file, locked};
use crate::export::verdicts::{Deciding, Verdict, Verdicts};
use crate::readers::{Input, Item, open};
use crate::structures::{ExternalSort, Sortable, Sorted};

/// Payloads that a thread sends at once.
const SENT: usize = 1 << 10;

/// A record of which there is another one with its content.
#[derive(Debug, Serialize, Deserialize)]
struct RepeatedRecord {
    /// The checksum of its body.
    content: u128,
    /// The hash of its host, if one record of each host stays.
    group: u64,
    /// Whether this week has it; those of weeks before come first.
    is_of_week: bool,
    /// Whether it goes; those that stay come first.
    goes: bool,
    rank: u64,
    file: u32,
    offset: u64,
    payload: Payload,
}

impl Sortable for RepeatedRecord {
    type Key = (u128, u64, bool, bool, u64, u32, u64);

    fn key(&self) -> Self::Key {
        (self.content, self.group, self.is_of_week, self.goes, self.rank, self.file, self.offset)
    }

    fn weight(&self) -> usize {
        let Payload { digest, original, .. } = &self.payload;
        size_of::<RepeatedRecord>()
            + digest.as_ref().map_or(0, String::len)
            + original.as_ref().map_or(0, RevisitedRecord::weight)
    }
}

/// What the records are found with that others refer to.
pub struct Originals<'a> {
    /// The inputs, in order: those of the weeks before; of the week the older ones, which are not
    /// written; and the others. Of an older one that is not there the format is `Failed`.
    pub inputs: &'a [Input],
    /// The older ones.
    pub older: usize,
    /// The weeks before.
    pub earlier: &'a EarlierWeeks,
    /// How they were read.
    pub reading: &'a Reading,
    /// A folder for runs of the sorts.
    pub scratch: PathBuf,
    /// Memory for both sorts, in bytes.
    pub memory: u64,
    /// Threads that read.
    pub threads: usize,
}

impl Originals<'_> {
    /// The verdicts, with what records that go refer to.
    ///
    /// # Errors
    /// If an input cannot be read or has changed; or a run cannot be written.
    pub fn verdicts(&self, deciding: &Deciding<'_>) -> Result<Verdicts> {
        let mut pages = ExternalSort::new(&self.scratch.join("contents"), self.memory / 2);
        self.earlier.add(deciding.canonical, &mut pages)?;
        let mut all = Deciding { older: true, ..deciding.clone() }.verdicts()?;
        while let Some(mut verdict) = all.record()? {
            verdict.file += self.earlier.files();
            // A record that is written with the URL of a revisit is none that others refer to.
            if verdict.revisiting.is_none() {
                pages.push(PageOfContent::of_week(verdict))?;
            }
        }
        let mut wanted = ExternalSort::new(&self.scratch.join("wanted"), self.memory / 2);
        add_wanted(pages.sorted()?, &mut wanted)?;
        deciding.with_references(self.find(Verdicts::of_places(wanted.sorted()?)?)?)
    }

    /// Reads these records, and finds what those that go refer to, in the order of their places.
    fn find(&self, verdicts: Verdicts) -> Result<Sorted<Reference>> {
        let mut all = ExternalSort::new(&self.scratch.join("payloads"), self.memory / 2);
        let (sender, receiver) = std::sync::mpsc::sync_channel::<Vec<RepeatedRecord>>(self.threads);
        let read = {
            let sender = std::sync::Mutex::new(sender);
            move |number: usize, verdicts: &[Verdict]| {
                let sender = locked(&sender).clone();
                self.read(number, verdicts, &mut |found| sender.send(found).is_ok())
            }
        };
        std::thread::scope(|scope| -> Result<()> {
            let reading = scope.spawn(move || each_file("read", self.inputs, verdicts, self.threads, &read));
            for found in receiver {
                found.into_iter().try_for_each(|candidate| all.push(candidate))?;
            }
            reading.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })?;
        let mut references = ExternalSort::new(&self.scratch.join("references"), self.memory / 2);
        let (mut all, mut firsts, mut of) = (all.sorted()?, Firsts::default(), None);
        let not_written = self.earlier.files() + self.older as u32;
        while let Some(RepeatedRecord { content, group, goes, file, offset, mut payload, .. }) = all.record()? {
            if of != Some((content, group)) {
                (firsts, of) = (Firsts::default(), Some((content, group)));
            }
            let Some(original) = firsts.of(&payload) else {
                payload.original.iter_mut().for_each(|original| original.is_outside = file < not_written);
                firsts.add(payload);
                continue;
            };
            // What stays in this week goes if a week before has it.
            if (goes || original.is_outside)
                && let Some(file) = file.checked_sub(not_written)
            {
                references.push(Reference { file, offset, original: original.clone() })?;
            }
        }
        references.sorted()
    }

    /// Hands on the payloads of a file's records.
    fn read(
        &self,
        number: usize,
        verdicts: &[Verdict],
        send: &mut dyn FnMut(Vec<RepeatedRecord>) -> bool,
    ) -> Result<()> {
        let input = &self.inputs[number];
        let (mut verdicts, is_of_week) = (verdicts.iter().peekable(), number >= self.earlier.files() as usize);
        if !input.format.has_captures() || verdicts.peek().is_none() {
            return Ok(());
        }
        // A WACZ is replayed alone: a record in one refers to none outside of it, nor one outside
        // to one in it.
        let package = wacz_of(input).map_or(0, |(name, _)| xxh3_64(name.as_bytes()));
        let (mut reader, mut found) = (open(input, self.reading)?, Vec::new());
        reader.without_waiting();
        while verdicts.peek().is_some()
            && let Some(item) = reader.next()?
        {
            let Item::Page(page) = item else { continue };
            let Some(verdict) = verdicts.next_if(|verdict| verdict.offset == page.offset) else { continue };
            if !verdict.is_of(&page, input.format) {
                // What a week before had there is not there any more.
                if !is_of_week {
                    continue;
                }
                return Err(changed(input, page.offset));
            }
            let Some(mut payload) = reader.stored_record().and_then(|record| Payload::of(&record)) else { continue };
            payload.form ^= package;
            let Verdict { checksum, group, stays, rank, offset, .. } = *verdict;
            let (content, goes, file) = (checksum, !stays, number as u32);
            found.push(RepeatedRecord { content, group, is_of_week, goes, rank, file, offset, payload });
            if found.len() >= SENT && !send(std::mem::take(&mut found)) {
                return Ok(());
            }
        }
        send(found);
        Ok(())
    }
}

/// The places of records with one payload, with the algorithms of the digests that the archive has
/// of them.
type OfAlgorithms = Vec<(Option<String>, usize)>;

/// The records of a content that others can refer to: the first of each payload.
#[derive(Default)]
struct Firsts {
    all: Vec<RevisitedRecord>,
    by_digest: HashMap<(u64, TransferChunks, WarcDigest), usize>,
    by_computed: HashMap<(u64, TransferChunks, [u8; 20]), OfAlgorithms>,
}

impl Firsts {
    /// The first record with this payload.
    fn of(&self, payload: &Payload) -> Option<&RevisitedRecord> {
        let digest = payload.digest.as_deref().and_then(WarcDigest::parse);
        let algorithm = digest.as_ref().map(|digest| digest.algorithm.clone());
        let of_form = |chunks: TransferChunks| {
            let computed =
                payload.computed.and_then(|computed| self.by_computed.get(&(payload.form, chunks, computed)));
            let others = computed.into_iter().flatten().filter(|(other, _)| other.is_none() || *other != algorithm);
            let by_digest = digest.clone().and_then(|digest| self.by_digest.get(&(payload.form, chunks, digest)));
            others.map(|(_, place)| *place).chain(by_digest.copied()).min()
        };
        payload.fitting().into_iter().filter_map(of_form).min().map(|place| &self.all[place])
    }

    fn add(&mut self, payload: Payload) {
        let Payload { form, chunks, digest, computed, original, .. } = payload;
        let Some(original) = original else { return };
        let (digest, place) = (digest.as_deref().and_then(WarcDigest::parse), self.all.len());
        self.all.push(original);
        let algorithm = digest.as_ref().map(|digest| digest.algorithm.clone());
        digest.into_iter().for_each(|digest| _ = self.by_digest.entry((form, chunks, digest)).or_insert(place));
        if let Some(computed) = computed {
            let of_payload = self.by_computed.entry((form, chunks, computed)).or_default();
            if of_payload.iter().all(|(other, _)| *other != algorithm) {
                of_payload.push((algorithm, place));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::readers::StoredRecord;

    fn payload(head: &str, block: &str) -> Payload {
        let head = format!("WARC/1.0\r\nWARC-Type: response\r\nWARC-Target-URI: u\r\n{head}\r\n");
        let record = StoredRecord { head: head.as_bytes(), block: block.as_bytes(), is_whole: true, length: None };
        Payload::of(&record).unwrap()
    }

    /// Whether a record with `head` and `block` refers to one with `first` and `first_block`.
    fn refers((first, first_block): (&str, &str), (head, block): (&str, &str)) -> bool {
        let mut firsts = Firsts::default();
        firsts.add(payload(first, first_block));
        firsts.of(&payload(head, block)).is_some()
    }

    #[test]
    fn digests_of_one_algorithm_are_believed_and_others_computed() {
        const ABC: &str = "HTTP/1.1 200 OK\r\n\r\nabc";
        const CHUNKED: &str = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n";
        const IN_TWO: &str = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n2\r\nbc\r\n0\r\n\r\n";
        const GZIP: &str = "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\nabc";
        const HEXADECIMAL: &str = "WARC-Payload-Digest: sha1:a9993e364706816aba3e25717850c26c9cd0d89d\r\n";
        const BASE32: &str = "WARC-Payload-Digest: SHA1:VGMT4NSHA2AWVOR6EVYXQUGCNSONBWE5\r\n";
        const OTHER: &str = "WARC-Payload-Digest: sha1:3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ\r\n";
        const MD5: &str = "WARC-Payload-Digest: md5:900150983cd24fb0d6963f7d28e17f72\r\n";
        assert!(refers((HEXADECIMAL, ABC), (BASE32, ABC)));
        assert!(!refers((HEXADECIMAL, ABC), (OTHER, ABC)));
        assert!(refers((OTHER, ABC), (MD5, ABC)), "of two algorithms, the payloads are compared");
        assert!(refers(("", ABC), (BASE32, ABC)) && refers((MD5, ABC), ("", ABC)) && refers(("", ABC), ("", ABC)));
        assert!(!refers(("", ABC), ("", "HTTP/1.1 200 OK\r\n\r\nabd")));
        assert!(refers((BASE32, CHUNKED), ("", IN_TWO)));
        assert!(!refers((BASE32, CHUNKED), (BASE32, ABC)), "a replayer would send the sizes of chunks");
        assert!(refers((BASE32, ABC), (BASE32, CHUNKED)), "a replayer passes through what is no chunk");
        const LIKE: &str = "HTTP/1.1 200 OK\r\n\r\n3\r\nabc\r\n0\r\n\r\n";
        const TWICE: &str =
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nd\r\n3\r\nabc\r\n0\r\n\r\n\r\n0\r\n\r\n";
        assert!(
            refers(("", LIKE), ("", LIKE)) && !refers(("", LIKE), ("", TWICE)),
            "what looks like chunks is no payload for such a head"
        );
        assert!(!refers((BASE32, ABC), (BASE32, GZIP)));
        assert!(!refers(("", CHUNKED), ("", CHUNKED)), "of chunks without a digest replayers compute another one");
    }

    #[test]
    fn the_first_of_each_payload_is_referred_to() {
        let mut firsts = Firsts::default();
        for (number, text) in ["a", "b", "a"].iter().enumerate() {
            let digest = format!("WARC-Record-ID: <{number}>\r\n");
            firsts.add(payload(&digest, &format!("HTTP/1.1 200 OK\r\n\r\n{text}")));
        }
        let of =
            |text: &str| firsts.of(&payload("", &format!("HTTP/1.1 200 X\r\n\r\n{text}"))).and_then(|of| of.id.clone());
        assert_eq!([of("a"), of("b"), of("c")], [Some(b"<0>".to_vec()), Some(b"<1>".to_vec()), None]);
        let cut = Payload { computed: None, ..payload("", "HTTP/1.1 200 OK\r\n\r\na") };
        assert!(firsts.of(&cut).is_none(), "of a part of a block nothing is known");
    }
}
