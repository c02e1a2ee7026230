//! The bytes of an entry of a zip file, and the reader of the WARC in it.
//!
//! An entry that does not inflate, ends early or has another checksum ends where the damage is
//! noticed: the records before it are taken, and after the last of them the damage is a reject.
//! What is missing of its content is unread, and so is what the reader of the content cannot read.

use std::fs::File;
use std::io;
use std::io::{Read, Seek as _, SeekFrom};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use flate2::Crc;
use flate2::read::DeflateDecoder;

use crate::readers::input::Packing;
use crate::readers::item::{CountedIn, Item, Reader, RecordNames, Reject, StoredRecord, Unread};

/// The bytes of an entry.
struct EntryBytes {
    bytes: Unpacker,
    /// The size and the checksum that the content must have.
    unpacked: u64,
    checksum: u32,
    read: Crc,
    state: Arc<EntryState>,
}

enum Unpacker {
    Stored(Packed),
    Deflated(Box<DeflateDecoder<Packed>>),
    /// A method that is not known, or an encrypted entry.
    Unknown,
}

/// The bytes of an entry as packed.
struct Packed {
    file: io::Take<File>,
    state: Arc<EntryState>,
}

/// What the reader of the entry must know about its bytes.
#[derive(Default)]
pub struct EntryState {
    /// The bytes read, as packed and as unpacked.
    packed: AtomicU64,
    unpacked: AtomicU64,
    is_damaged: AtomicBool,
    is_unknown: AtomicBool,
}

/// Opens the bytes of the entry at `start`, of `packed` bytes, with the size and the checksum of
/// its content.
///
/// # Errors
/// If the file cannot be opened.
pub fn entry_source(
    archive: &Path,
    (start, packed): (u64, u64),
    (unpacked, checksum): (u64, u32),
    packing: Packing,
) -> io::Result<(Box<dyn Read + Send>, Arc<EntryState>)> {
    let mut file = File::open(archive)?;
    file.seek(SeekFrom::Start(start))?;
    let state = Arc::new(EntryState::default());
    let bytes = Packed { file: file.take(packed), state: state.clone() };
    let bytes = match packing {
        Packing::Stored => Unpacker::Stored(bytes),
        Packing::Deflated => Unpacker::Deflated(Box::new(DeflateDecoder::new(bytes))),
        Packing::Unknown => Unpacker::Unknown,
    };
    let bytes = EntryBytes { bytes, unpacked, checksum, read: Crc::new(), state: state.clone() };
    Ok((Box::new(bytes), state))
}

impl Read for Packed {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.file.read(buffer)?;
        self.state.packed.fetch_add(count as u64, Ordering::Relaxed);
        Ok(count)
    }
}

impl Read for EntryBytes {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = match &mut self.bytes {
            Unpacker::Stored(bytes) => bytes.read(buffer),
            Unpacker::Deflated(bytes) => bytes.read(buffer),
            Unpacker::Unknown => {
                self.state.is_unknown.store(true, Ordering::Relaxed);
                return Ok(0);
            }
        };
        let count = match read {
            // What does not inflate is damage; other errors are of the disk.
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof
                ) =>
            {
                0
            }
            read => read?,
        };
        self.read.update(&buffer[..count]);
        let length = self.state.unpacked.fetch_add(count as u64, Ordering::Relaxed) + count as u64;
        let is_whole = length == self.unpacked && self.read.sum() == self.checksum;
        if length > self.unpacked || count == 0 && !buffer.is_empty() && !is_whole {
            self.state.is_damaged.store(true, Ordering::Relaxed);
        }
        Ok(count)
    }
}

/// Reads the WARC in an entry.
pub struct EntryReader {
    warc: Box<dyn Reader>,
    state: Arc<EntryState>,
    /// The size of the entry, as packed and as unpacked.
    bytes: u64,
    unpacked: u64,
    ended: bool,
}

impl EntryReader {
    /// Makes the reader of an entry of `bytes` bytes as packed, from that of its content of
    /// `unpacked` bytes.
    pub fn new(warc: Box<dyn Reader>, state: Arc<EntryState>, bytes: u64, unpacked: u64) -> Self {
        EntryReader { warc, state, bytes, unpacked, ended: false }
    }
}

impl Reader for EntryReader {
    fn next(&mut self) -> anyhow::Result<Option<Item>> {
        if self.ended {
            return Ok(None);
        }
        if let Some(item) = self.warc.next()? {
            return Ok(Some(item));
        }
        self.ended = true;
        let reason = if self.state.is_unknown.load(Ordering::Relaxed) {
            "zip: an entry that is encrypted or packed by an unknown method"
        } else if self.state.is_damaged.load(Ordering::Relaxed) {
            "zip: damaged entry"
        } else {
            return Ok(None);
        };
        Ok(Some(Item::Reject(Reject { offset: 0, url: None, reason: reason.to_owned() })))
    }

    fn position(&self) -> u64 {
        if self.ended { self.bytes } else { self.state.packed.load(Ordering::Relaxed).min(self.bytes) }
    }

    fn unread(&self) -> Unread {
        let missing = match self.ended {
            true => self.unpacked.saturating_sub(self.state.unpacked.load(Ordering::Relaxed)),
            false => 0,
        };
        let Unread { bytes, ends_early } = self.warc.unread();
        let of_content = bytes.saturating_add(missing).min(self.unpacked);
        // In proportion: which packed bytes became these is not known.
        let bytes = u128::from(self.bytes) * u128::from(of_content) / u128::from(self.unpacked.max(1));
        Unread { bytes: bytes as u64, ends_early }
    }

    fn counted_in(&self) -> CountedIn {
        self.warc.counted_in()
    }

    fn record_names(&self) -> Option<RecordNames> {
        self.warc.record_names()
    }

    fn without_waiting(&mut self) {
        self.warc.without_waiting();
    }

    fn without_joining(&mut self) {
        self.warc.without_joining();
    }

    fn stored_record(&self) -> Option<StoredRecord<'_>> {
        self.warc.stored_record()
    }
}
