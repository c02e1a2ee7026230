//! WARC records in plain files, gzip members, zstd frames, bzip2 and xz streams, with the HTTP messages in them.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    nigh_fuzz::read_all(bytes, nigh::readers::Format::Warc);
});
