//! Comma-separated records, and lists of failed downloads.
#![no_main]

use nigh::readers::Format;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    for format in [Format::Csv, Format::Tsv, Format::Failed] {
        nigh_fuzz::read_all(bytes, format);
    }
});
