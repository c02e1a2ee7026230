//! The fuzz targets: what must hold for any bytes, wherever nigh reads bytes that others wrote. A
//! panic is a fault.
//!
//! tests/suite/inputs/fuzzed.rs gives them inputs that a fuzzer found.

use std::cell::RefCell;
use std::fs::File;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::FileExt as _;
use std::path::PathBuf;

use nigh::config::{Bytes, Method, Reading, read_config};
use nigh::features::Fingerprinter;
use nigh::job_file::read_job;
use nigh::kernels::available;
use nigh::launch::wire::Frames;
use nigh::readers::{Format, Input, InputPiece, Item, Location, list, open, open_piece};
use nigh::state::Manifest;
use nigh::text::{Extract, canonical, charset, decode, out_links, scan};
use nigh_exchange::{Block, bytes_of_rows};
use rustix::fs::{MemfdFlags, memfd_create};

/// A target.
pub type Target = fn(&[u8]);

/// All targets, by name.
pub const TARGETS: [(&str, Target); 14] = [
    // WARC records in plain files, gzip members, zstd frames, bzip2 and xz streams, with the HTTP
    // messages in them.
    ("warc", |bytes| read_all(bytes, Format::Warc)),
    ("arc", |bytes| read_all(bytes, Format::Arc)),
    ("jsonl", |bytes| read_all(bytes, Format::Jsonl)),
    ("parquet", |bytes| read_all(bytes, Format::Parquet)),
    ("arrow", |bytes| read_all(bytes, Format::Arrow)),
    // Comma-separated records, and lists of failed downloads.
    ("csv", |bytes| [Format::Csv, Format::Tsv, Format::Failed].into_iter().for_each(|format| read_all(bytes, format))),
    ("wacz", wacz),
    ("pieces", pieces),
    ("html", html),
    ("charset", charset_of),
    ("job", job),
    ("manifest", manifest),
    ("block", block),
    ("handshake", handshake),
];

thread_local! {
    /// A file in memory, which each input overwrites.
    static MEMORY: RefCell<File> =
        RefCell::new(memfd_create("input", MemfdFlags::CLOEXEC).expect("a file in memory").into());
    static FINGERPRINTER: RefCell<Fingerprinter> =
        RefCell::new(Fingerprinter::of_method(&Method::default()).expect("kernels for this machine").keeping_chunks(true));
}

/// The path of a file with these bytes, until the next call.
fn file_of(bytes: &[u8]) -> PathBuf {
    MEMORY.with_borrow(|file| {
        file.set_len(0).and_then(|()| file.write_all_at(bytes, 0)).expect("memory can be written");
        format!("/proc/self/fd/{}", file.as_raw_fd()).into()
    })
}

/// An input of these bytes.
fn input_of(bytes: &[u8], format: Format) -> Input {
    Input {
        name: "input".to_owned(),
        bytes: bytes.len() as u64,
        format,
        place: Location::File(file_of(bytes)),
        page_url: None,
        stamp: String::new(),
        reading: None,
    }
}

/// The options of all targets: small pages, so that bounds are met.
fn reading() -> Reading {
    Reading { max_page_bytes: Bytes(1 << 12), max_links: 10, ..Reading::default() }
}

/// Reads an input to its end or to an error: positions go on and stay in the file.
fn read_all(bytes: &[u8], format: Format) {
    let Ok(mut reader) = open(&input_of(bytes, format), &reading()) else { return };
    let mut position = 0;
    while let Ok(Some(_)) = reader.next() {
        let now = reader.position();
        assert!((position..=bytes.len() as u64).contains(&now), "{position}, then {now} of {}", bytes.len());
        position = now;
    }
    assert!(reader.unread().bytes <= bytes.len() as u64, "{:?} of {}", reader.unread(), bytes.len());
}

/// Zip files with WARC files, found as a user names them: by their first bytes.
fn wacz(bytes: &[u8]) {
    let (path, reading) = (file_of(bytes), reading());
    for input in list(&[path.display().to_string()], &reading).into_iter().flatten() {
        let Ok(mut reader) = open(&input, &reading) else { continue };
        while let Ok(Some(_)) = reader.next() {}
    }
}

/// Files that several workers read: the pieces have the items of the whole. The first byte says how
/// many pieces, and of which format.
fn pieces(bytes: &[u8]) {
    let Some((first, bytes)) = bytes.split_first() else { return };
    let format = [Format::Jsonl, Format::Warc, Format::Arc, Format::Parquet][usize::from(*first & 3)];
    let of = 2 + u64::from(*first >> 2);
    let (input, reading) = (input_of(bytes, format), reading());
    let items = |piece: InputPiece| {
        let mut reader = match piece {
            InputPiece::WHOLE => open(&input, &reading)?,
            piece => open_piece(&input, &reading, piece)?,
        };
        let mut items: Vec<Item> = Vec::new();
        while let Some(item) = reader.next()? {
            items.push(item);
        }
        anyhow::Ok(items)
    };
    let pieces: Result<Vec<_>, _> = (0..of).map(|number| items(InputPiece { number, of })).collect();
    // A piece may refuse a file whose records it cannot find; the message says what to do.
    if let (Ok(whole), Ok(pieces)) = (items(InputPiece::WHOLE), pieces) {
        assert!(whole.iter().eq(pieces.iter().flatten()), "{whole:?}\n{pieces:?}");
    }
}

/// The scanner of HTML: all kernels find the same; and what follows from it: words, sketches,
/// chunks, links.
fn html(bytes: &[u8]) {
    let mut found: Option<Extract> = None;
    for kernels in available() {
        let mut page = Extract::default();
        scan(bytes, 10, kernels, &mut page);
        if let Some(found) = &found {
            assert_eq!((&found.text, &found.title, &found.base), (&page.text, &page.title, &page.base));
            assert!(found.hrefs.iter().eq(page.hrefs.iter()));
        }
        found = Some(page);
    }
    let url = canonical("http://example.org/a/b?c");
    if let Some(page) = found {
        out_links(url.as_ref(), page.base.as_deref(), page.hrefs.iter());
    }
    FINGERPRINTER.with_borrow_mut(|fingerprinter| fingerprinter.html(bytes, None, url.as_ref()));
}

/// Charsets by label, by mark and by markup: the first line is the label.
fn charset_of(bytes: &[u8]) {
    let (label, body) = match bytes.iter().position(|byte| *byte == b'\n') {
        Some(end) => (std::str::from_utf8(&bytes[..end]).ok(), &bytes[end + 1..]),
        None => (None, bytes),
    };
    decode(body, label);
    charset::decode_bytes(body, label, &mut String::new());
}

/// Jobs and configs.
fn job(bytes: &[u8]) {
    let path = file_of(bytes);
    // An error is as good as a job.
    let _ = (read_job(&path), read_config(&path));
}

/// The manifest of a store, and the records of its weeks.
fn manifest(bytes: &[u8]) {
    if let Ok(text) = std::str::from_utf8(bytes) {
        // An error is as good as a manifest.
        let _ = Manifest::parse(text, "manifest.json");
    }
}

/// Blocks of records from another process: what is read is what its bytes say.
fn block(bytes: &[u8]) {
    if let Some((block, length)) = Block::read(bytes) {
        assert!(length <= bytes.len() && bytes[..length].ends_with(block.bytes()));
        let head = [block.part.to_le_bytes(), block.common.to_le_bytes()].concat();
        assert!(bytes.starts_with(&head) && bytes[16..20] == block.from.to_le_bytes());
    }
    // A block of rows whose lengths are hostile.
    let block = Block::of_row_bytes(bytes);
    let read: usize = bytes_of_rows(&block).map_while(Result::ok).map(|row| row.len().next_multiple_of(8) + 8).sum();
    assert!(read <= bytes.len());
}

/// Messages of the handshake and frames of the engine, from unauthenticated peers.
fn handshake(bytes: &[u8]) {
    let mut rest = bytes;
    while nigh::launch::receive(&mut rest).is_ok() {}
    // Headers are found wherever the bytes are cut.
    let mut whole = Frames::default();
    let passes = whole.pass(bytes).is_ok();
    let mut cut = Frames::default();
    let size = 1 + bytes.first().map_or(0, |byte| usize::from(*byte));
    assert_eq!(bytes.chunks(size).all(|chunk| cut.pass(chunk).is_ok()), passes, "in pieces of {size}");
}
