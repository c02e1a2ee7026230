//! ARC records.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    nigh_fuzz::read_all(bytes, nigh::readers::Format::Arc);
});
