//! The acceptance test of the readers: 51 hostile WARC files and eleven good weeks, each with the
//! items that it must give.

use std::path::Path;

use nigh::config::Reading;
use nigh::readers::{InputPiece, Item, Skip, Unread, list, open, open_piece};

use crate::program::corpus;

/// The items of a file: pages, cut pages among them, items that are no page (by record type, by
/// status, by media type), reasons of rejects.
type ItemsOfFile = (usize, usize, [usize; 3], Vec<String>);

/// A file's name and its [`ItemsOfFile`].
type ExpectedItems = (&'static str, usize, usize, [usize; 3], &'static [&'static str]);

#[rustfmt::skip]
const DIRTY: &[ExpectedItems] = &[
    ("gzip-truncated-end.warc.gz",         2, 0, [1, 0, 0], &["gzip: the file ends inside a member"]),
    ("gzip-truncated-middle.warc.gz",      4, 0, [1, 0, 0], &["gzip: damaged member"]),
    ("gzip-garbage-between.warc.gz",       4, 0, [1, 0, 0], &["gzip: bytes that are no member"]),
    ("gzip-bad-crc.warc.gz",               4, 0, [1, 0, 0], &["gzip: damaged member"]),
    ("gzip-bit-flip.warc.gz",              4, 0, [1, 0, 0], &["gzip: damaged member"]),
    ("gzip-one-member.warc.gz",            4, 0, [1, 0, 0], &[]),
    ("plain-named-gz.warc.gz",             4, 0, [1, 0, 0], &[]),
    ("plain.warc",                         4, 0, [1, 0, 0], &[]),
    ("empty.warc.gz",                      0, 0, [0, 0, 0], &[]),
    ("empty-member.warc.gz",               0, 0, [0, 0, 0], &[]),
    ("random.warc.gz",                     0, 0, [0, 0, 0], &["warc: no version line where a record should begin"]),
    ("text.warc.gz",                       0, 0, [0, 0, 0], &["warc: no version line where a record should begin"]),
    ("members-concatenated-oddly.warc.gz", 5, 0, [1, 0, 0], &[]),
    ("warc-length-too-big.warc.gz",        4, 0, [1, 0, 0], &["warc: Content-Length larger than the member"]),
    ("warc-length-too-small.warc.gz",      4, 0, [1, 0, 0], &["warc: Content-Length does not end the block"]),
    ("warc-length-negative.warc.gz",       4, 0, [1, 0, 0], &["warc: Content-Length is no length"]),
    ("warc-length-huge.warc.gz",           4, 0, [1, 0, 0], &["warc: Content-Length is no length"]),
    ("warc-length-missing.warc.gz",        4, 0, [1, 0, 0], &["warc: no Content-Length"]),
    ("warc-version-unknown.warc.gz",       4, 0, [1, 0, 0], &["warc: unknown version"]),
    ("warc-no-version.warc.gz",            4, 0, [1, 0, 0], &["warc: no version line where a record should begin"]),
    ("warc-header-no-colon.warc.gz",       5, 0, [1, 0, 0], &[]),
    ("warc-header-lf-only.warc.gz",        5, 0, [1, 0, 0], &[]),
    ("warc-header-case-and-space.warc.gz", 5, 0, [1, 0, 0], &[]),
    ("warc-header-folded.warc.gz",         5, 0, [1, 0, 0], &[]),
    ("warc-header-long.warc.gz",           5, 0, [1, 0, 0], &[]),
    ("warc-no-uri.warc.gz",                4, 0, [1, 0, 0], &["warc: no WARC-Target-URI"]),
    ("warc-uri-angle-brackets.warc.gz",    5, 0, [1, 0, 0], &[]),
    // The readers return URLs as written; `text::canonical` rejects the bad ones later. One is
    // `dns:`, another scheme.
    ("warc-uri-bad.warc.gz",              13, 0, [1, 0, 1], &[]),
    // The resource and the conversion record are pages; the revisit has none; request, metadata,
    // continuation and unknown are passed over.
    ("warc-types.warc.gz",                 6, 0, [5, 1, 0], &[]),
    ("warc-date-bad.warc.gz",              5, 0, [1, 0, 0], &[]),
    ("warc-digest-wrong.warc.gz",          5, 0, [1, 0, 0], &[]),
    ("warc-trailer-missing.warc.gz",       5, 0, [1, 0, 0], &[]),
    ("http-length-wrong.warc.gz",          7, 0, [1, 0, 0], &[]),
    ("http-no-status-line.warc.gz",        4, 0, [1, 0, 0], &["http: no status line", "http: no status line", "http: no status line"]),
    // All six odd heads give a page: the one without Content-Type begins like HTML, the one without
    // an end is empty.
    ("http-headers-odd.warc.gz",          10, 0, [1, 0, 0], &[]),
    ("http-chunked.warc.gz",               7, 1, [1, 0, 0], &[]),
    // Pages: the four good ones, the gzipped one, the one that only claims to be.
    ("http-content-encoding.warc.gz",      7, 0, [1, 0, 0], &["http: body does not decode", "http: body does not decode"]),
    // The bomb is cut at the limit.
    ("http-gzip-bomb.warc.gz",             5, 1, [1, 0, 0], &[]),
    // Without a page: 204, 206, 301, 304 (a revisit), 404, 500, 999.
    ("http-statuses.warc.gz",              5, 0, [1, 7, 0], &["http: no status code", "http: no status code"]),
    ("body-invalid-utf8.warc.gz",          9, 0, [1, 0, 0], &[]),
    ("body-charset-lies.warc.gz",          9, 0, [1, 0, 0], &[]),
    ("body-empty.warc.gz",                12, 0, [1, 0, 0], &[]),
    ("body-few-words.warc.gz",            11, 0, [1, 0, 0], &[]),
    ("body-one-word-30mb.warc.gz",         5, 1, [1, 0, 0], &[]),
    ("body-long-word-5mb.warc.gz",         5, 0, [1, 0, 0], &[]),
    ("html-deep-nesting.warc.gz",          6, 0, [1, 0, 0], &[]),
    ("html-bombs.warc.gz",                15, 0, [1, 0, 0], &[]),
    ("html-links.warc.gz",                 6, 0, [1, 0, 0], &[]),
    // Pages: four good ones and the XHTML one. Skipped: ten by label, the image labelled HTML by
    // its signature.
    ("types-not-html.warc.gz",             5, 0, [1, 0, 11], &[]),
    ("urls-twice.warc.gz",                10, 0, [1, 0, 0], &[]),
    ("truncated-marked.warc.gz",           5, 1, [1, 0, 0], &[]),
];

/// HTML pages with status 200 of each week.
const WEEKS: [usize; 11] = [2572, 2587, 1797, 2670, 2691, 2582, 2765, 2777, 2603, 2602, 2637];

/// Counts the items of the files that `path` names.
fn read(path: &Path, reading: &Reading) -> ItemsOfFile {
    let (mut pages, mut cut, mut skips, mut reasons) = (0, 0, [0; 3], Vec::new());
    for input in list(&[path.display().to_string()], reading).unwrap() {
        let mut reader = open(&input, reading).unwrap();
        let mut position = 0;
        while let Some(item) = reader.next().unwrap() {
            match item {
                Item::Page(page) => {
                    pages += 1;
                    cut += usize::from(page.cut);
                }
                Item::Skip(skipped) if skipped.why == Skip::RecordType => skips[0] += 1,
                Item::Failed(_) | Item::Revisit(_) => skips[1] += 1,
                Item::Skip(_) => skips[2] += 1,
                Item::Reject(reject) => reasons.push(reject.reason),
            }
            assert!(reader.position() >= position);
            position = reader.position();
        }
        assert_eq!(reader.position(), input.bytes, "{}", input.name);
    }
    (pages, cut, skips, reasons)
}

#[test]
fn every_hostile_file_gives_the_expected_items() {
    let Some(folder) = corpus("dirty", "the items of hostile files") else {
        return;
    };
    let mut wrong = Vec::new();
    for &(file, pages, cut, skips, reasons) in DIRTY {
        let expected = (pages, cut, skips, reasons.iter().map(|&reason| reason.to_owned()).collect::<Vec<_>>());
        let actual = read(&folder.join(file), &Reading::default());
        if actual != expected {
            wrong.push(format!("{file}: {actual:?} instead of {expected:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let files =
        std::fs::read_dir(folder).unwrap().filter(|file| !file.as_ref().unwrap().path().ends_with("manifest.tsv"));
    assert_eq!(DIRTY.len(), files.count());
}

#[test]
fn every_week_has_its_pages() {
    for (week, pages) in (1..).zip(WEEKS) {
        let Some(folder) = corpus(&format!("week-{week:02}/warc"), "the pages of good weeks") else {
            return;
        };
        let (found, cut, _, rejects) = read(&folder, &Reading::default());
        assert_eq!((found, cut, rejects), (pages, 0, Vec::new()), "week {week}");
    }
}

#[test]
fn the_pieces_of_the_corpus_have_the_records_of_the_whole() {
    let (Some(crawl), Some(dirty)) =
        (corpus("week-01/warc", "pieces of real crawls"), corpus("dirty", "pieces of hostile files"))
    else {
        return;
    };
    let reading = Reading::default();
    let mut cut = 0;
    for folder in [crawl, dirty] {
        for input in list(&[folder.display().to_string()], &reading).unwrap() {
            let mut reader = open(&input, &reading).unwrap();
            let whole: Vec<Item> = std::iter::from_fn(|| reader.next().unwrap()).collect();
            let unread = reader.unread();
            for of in [2, 5, 40] {
                let (mut all, mut of_pieces, mut begun) = (Vec::new(), Unread::default(), 0);
                for number in 0..of {
                    let mut reader = open_piece(&input, &reading, InputPiece { number, of }).unwrap();
                    let before = all.len();
                    all.extend(std::iter::from_fn(|| reader.next().unwrap()));
                    of_pieces.bytes += reader.unread().bytes;
                    of_pieces.ends_early |= reader.unread().ends_early;
                    begun += u32::from(all.len() > before);
                }
                assert!(all == whole, "{} in {of} pieces: {} of {} items", input.name, all.len(), whole.len());
                assert_eq!(of_pieces, unread, "{} in {of} pieces", input.name);
                cut += u32::from(begun > 1);
            }
        }
    }
    assert!(cut > 20, "{cut} files were cut");
}
