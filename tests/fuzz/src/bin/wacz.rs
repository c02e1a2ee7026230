//! Zip files with WARC files, found as a user names them: by their first bytes.
#![no_main]

use nigh::readers::{list, open};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let path = nigh_fuzz::file_of(bytes);
    let reading = nigh_fuzz::reading();
    let Ok(inputs) = list(&[path.display().to_string()], &reading) else { return };
    for input in inputs {
        let Ok(mut reader) = open(&input, &reading) else { continue };
        while let Ok(Some(_)) = reader.next() {}
    }
});
