//! What the fuzz targets share: inputs in memory, and what must hold for whatever a reader makes of them.

use std::cell::RefCell;
use std::fs::File;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::FileExt as _;
use std::path::PathBuf;

use nigh::config::{Bytes, Reading};
use nigh::readers::{Format, Input, Item, Location, open};
use rustix::fs::{MemfdFlags, memfd_create};

thread_local! {
    /// A file in memory, which is written anew for each input.
    static MEMORY: RefCell<File> = RefCell::new(memfd_create("input", MemfdFlags::CLOEXEC).expect("a file in memory").into());
}

/// The path of a file with these bytes, until the next call.
pub fn file_of(bytes: &[u8]) -> PathBuf {
    MEMORY.with_borrow(|file| {
        file.set_len(0).and_then(|()| file.write_all_at(bytes, 0)).expect("memory can be written");
        format!("/proc/self/fd/{}", file.as_raw_fd()).into()
    })
}

/// An input of these bytes.
pub fn input_of(bytes: &[u8], format: Format) -> Input {
    Input {
        name: "input".to_owned(),
        bytes: bytes.len() as u64,
        format,
        place: Location::File(file_of(bytes)),
        page_url: None,
        stamp: String::new(),
    }
}

/// The options of all targets: small pages, so that bounds are met.
pub fn reading() -> Reading {
    Reading { max_page_bytes: Bytes(1 << 12), max_links: 10, ..Reading::default() }
}

/// Reads an input to its end, and checks that positions go on and stay in the file. An error may be, a panic may not.
pub fn read_all(bytes: &[u8], format: Format) -> Vec<Item> {
    let reading = reading();
    let mut items = Vec::new();
    let Ok(mut reader) = open(&input_of(bytes, format), &reading) else { return items };
    let mut position = 0;
    while let Ok(Some(item)) = reader.next() {
        items.push(item);
        let now = reader.position();
        assert!((position..=bytes.len() as u64).contains(&now), "{position}, then {now} of {}", bytes.len());
        position = now;
    }
    assert!(reader.unread().bytes <= bytes.len() as u64, "{:?} of {}", reader.unread(), bytes.len());
    items
}
