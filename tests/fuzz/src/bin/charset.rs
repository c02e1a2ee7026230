//! Charsets by label, by mark and by markup: the first line is the label.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let (label, body) = match bytes.iter().position(|byte| *byte == b'\n') {
        Some(end) => (std::str::from_utf8(&bytes[..end]).ok(), &bytes[end + 1..]),
        None => (None, bytes),
    };
    nigh::text::decode(body, label);
    let mut buffer = String::new();
    nigh::text::charset::decode_bytes(body, label, &mut buffer);
});
