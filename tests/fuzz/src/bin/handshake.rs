//! Messages of the handshake and frames of the engine, from peers that nobody knows.
#![no_main]

use nigh::launch::wire::Frames;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let mut rest = bytes;
    while nigh::launch::receive(&mut rest).is_ok() {}
    // Headers are found wherever the bytes are cut.
    let mut whole = Frames::default();
    let passes = whole.pass(bytes).is_ok();
    let mut cut = Frames::default();
    let size = 1 + bytes.first().map_or(0, |byte| usize::from(*byte));
    assert_eq!(bytes.chunks(size).all(|chunk| cut.pass(chunk).is_ok()), passes, "in pieces of {size}");
});
