//! The scanner of HTML: all kernels find the same, and what follows from it (words, sketches, links) does not panic.
#![no_main]

use nigh::kernels::available;
use nigh::text::{Extract, out_links, scan};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
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
});
