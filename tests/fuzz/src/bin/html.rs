//! The scanner of HTML: all kernels find the same, and what follows from it (words, sketches, chunks, links) does not panic.
#![no_main]

use std::cell::RefCell;

use nigh::config::Method;
use nigh::features::Fingerprinter;
use nigh::kernels::available;
use nigh::text::{Extract, canonical, out_links, scan};

thread_local! {
    static FINGERPRINTER: RefCell<Fingerprinter> =
        RefCell::new(Fingerprinter::of_method(&Method::default()).expect("kernels for this machine").keeping_chunks(true));
}

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
    let url = canonical("http://example.org/a/b?c");
    if let Some(page) = found {
        out_links(url.as_ref(), page.base.as_deref(), page.hrefs.iter());
    }
    FINGERPRINTER.with_borrow_mut(|fingerprinter| fingerprinter.html(bytes, None, url.as_ref()));
});
