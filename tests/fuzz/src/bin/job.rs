//! Jobs and configs.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let path = nigh_fuzz::file_of(bytes);
    let _ = nigh::config::read_job(&path);
    let _ = nigh::config::read_config(&path);
});
