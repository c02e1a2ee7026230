//! The manifest of a store, and the records of its weeks.
#![no_main]

use nigh::state::Manifest;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    if let Ok(text) = std::str::from_utf8(bytes) {
        let _ = Manifest::parse(text, "manifest.json");
    }
});
