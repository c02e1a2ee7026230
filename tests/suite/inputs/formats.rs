//! Every format and odd name gives the same pages.

use std::collections::BTreeMap;
use std::path::Path;

use arrow_array::TimestampMicrosecondArray;

use crate::program::{Made, data, each, job, longs, run_well, texts, vectors};

/// The supershingles of every page, by URL.
fn by_url(week: &Path) -> BTreeMap<String, Vec<u64>> {
    let urls: BTreeMap<i64, String> =
        longs(week, "documents", "doc").into_iter().zip(texts(week, "documents", "url")).collect();
    vectors(week).into_iter().map(|(doc, vector)| (urls[&doc].clone(), vector)).collect()
}

fn made(input: &str, more: &str) -> (Made, BTreeMap<String, Vec<u64>>) {
    let folder = tempfile::tempdir().unwrap();
    let input = data(input);
    let text = format!("[cluster]\nweek = \"2024-01-08\"\ninput = [{:?}]\n{more}", input.to_str().unwrap());
    let made = Made::with_job(&job(folder.path(), &text), &["--workers", "2"]);
    let pages = by_url(&made.week());
    (made, pages)
}

#[test]
fn the_same_pages_are_read_from_every_format() {
    let (_, crawl) = made("week-2024-01-08", "");
    let mut compared = 0;
    // The pages of each file, as tests/data/README.md lists them.
    for (input, pages) in [
        ("formats/pages.warc.wet.gz", 40),
        ("formats/pages.jsonl.gz", 40),
        ("formats/pages.parquet", 40),
        ("formats/pages.warc.zst", 40),
        ("formats/pages.warc", 10),
        ("formats/pages.warc.bz2", 10),
        ("formats/pages.warc.xz", 10),
        ("formats/pages.arc.gz", 10),
        ("formats/pages.wacz", 10),
        ("formats/pages-zip64.wacz", 10),
    ] {
        let (_, found) = made(input, "");
        // Up to two of them have no words.
        assert!(found.len() <= pages && found.len() + 2 >= pages, "{input}: {} pages with words", found.len());
        for (url, vector) in &found {
            assert_eq!(Some(vector), crawl.get(url), "{input}: {url}");
            compared += 1;
        }
    }
    // Of 220, less two a file.
    assert!(compared > 195);
}

#[test]
fn a_folder_of_html_has_the_pages_of_its_paths() {
    let (_, crawl) = made("week-2024-01-08", "");
    let (made, found) = made("formats/html", "");
    assert_eq!(longs(&made.week(), "documents", "doc").len(), 10);
    let same = found.iter().filter(|(url, vector)| crawl.get(*url) == Some(vector)).count();
    assert!(same >= 9, "{same} of {} pages are those of the crawl", found.len());
}

#[test]
fn html_in_columns_is_read_as_html() {
    let folder = tempfile::tempdir().unwrap();
    let rows = folder.path().join("rows.ndjson");
    std::fs::write(
        &rows,
        "{\"address\": \"http://a.example/1\", \"page\": \"<p>one two &amp; three<script>no</script>\"}\n\
         {\"address\": \"http://a.example/2\", \"page\": \"one two  three\"}\n",
    )
    .unwrap();
    let text = "[cluster]\nweek = \"2024-01-08\"\n[cluster.read.columns]\nurl = \"address\"\nhtml = \"page\"\n";
    let job = job(folder.path(), text);
    let made = Made::with_job(&job, &["--input", rows.to_str().unwrap()]);
    let pages = by_url(&made.week());
    assert_eq!(pages.len(), 2);
    assert_eq!(pages["http://a.example/1"], pages["http://a.example/2"]);
}

#[test]
fn a_listing_names_files_below_its_base() {
    let folder = tempfile::tempdir().unwrap();
    let listing = folder.path().join("warc.paths");
    std::fs::write(&listing, "crawl-00000.warc.gz\ncrawl-00001.warc.gz\ncrawl-00002.warc.gz\n").unwrap();
    let text = format!(
        "[cluster]\nweek = \"2024-01-08\"\ninput = [{:?}]\n[cluster.read]\nbase-url = {:?}\n",
        listing.to_str().unwrap(),
        data("week-2024-01-08").to_str().unwrap()
    );
    let made = Made::with_job(&job(folder.path(), &text), &[]);
    assert_eq!(longs(&made.week(), "documents", "doc").len(), 523);
}

#[test]
fn a_page_can_be_fetched_again_by_file_and_offset() {
    use std::io::{Read, Seek, SeekFrom};
    let made = Made::new(&[]);
    let week = made.week();
    let offsets = longs(&week, "documents", "offset");
    let urls = texts(&week, "documents", "url");
    for (at, file) in texts(&week, "documents", "file").iter().enumerate().step_by(37) {
        let mut stored = std::fs::File::open(Path::new(env!("CARGO_MANIFEST_DIR")).join(file)).unwrap();
        stored.seek(SeekFrom::Start(offsets[at] as u64)).unwrap();
        let mut head = String::new();
        let member = flate2::read::GzDecoder::new(stored);
        member.take(600).read_to_string(&mut head).unwrap();
        assert!(head.starts_with("WARC/1.1") && head.contains(&urls[at]), "{head}");
    }
}

/// The fetch time of every page, in microseconds.
fn times(week: &Path) -> Vec<Option<i64>> {
    let mut times = Vec::new();
    each(week, "documents", "fetched", |array: &TimestampMicrosecondArray| times.extend(array.iter()));
    times
}

/// The file and the offset of every page, by URL.
fn places(week: &Path) -> BTreeMap<String, (String, i64)> {
    let places = texts(week, "documents", "file").into_iter().zip(longs(week, "documents", "offset"));
    texts(week, "documents", "url").into_iter().zip(places).collect()
}

#[test]
fn a_warc_in_a_wacz_is_a_file_of_its_own_with_its_own_offsets() {
    let (plain, _) = made("formats/pages.warc", "");
    let expected = texts(&plain.week(), "documents", "url");
    for name in ["pages.wacz", "pages-zip64.wacz"] {
        let (made, _) = made(&format!("formats/{name}"), "");
        let places = places(&made.week());
        assert!(expected.iter().all(|url| places.contains_key(url)) && places.len() == expected.len());
        let files: std::collections::BTreeSet<_> = places.values().map(|(file, _)| file.clone()).collect();
        let path = data(&format!("formats/{name}"));
        let inside = |entry: &str| format!("{}/archive/{entry}", path.display());
        assert!(files.into_iter().eq([inside("data.warc.gz"), inside("more.warc")]));
        // The first entry is stored: its bytes follow the first header of the zip file.
        let zip = std::fs::read(&path).unwrap();
        let start = memchr::memmem::find(&zip, b"\x1f\x8b\x08").unwrap();
        for (url, (_, offset)) in places.iter().filter(|(_, (file, _))| file.ends_with("gz")) {
            let mut head = String::new();
            let member = flate2::read::GzDecoder::new(&zip[start + *offset as usize..]);
            std::io::Read::read_to_string(&mut std::io::Read::take(member, 500), &mut head).unwrap();
            assert!(head.starts_with("WARC/1.1") && head.contains(url), "{url}: {head}");
        }
    }
}

#[test]
fn an_arc_file_has_the_dates_and_addresses_of_its_warc_file() {
    let of = |input: &str| {
        let (made, _) = made(input, "");
        let times = times(&made.week()).into_iter().map(|time| time.unwrap());
        let rows = texts(&made.week(), "documents", "ip").into_iter().zip(times);
        texts(&made.week(), "documents", "url").into_iter().zip(rows).collect::<BTreeMap<_, _>>()
    };
    let (arc, warc) = (of("formats/pages.arc.gz"), of("formats/pages.warc"));
    assert_eq!(arc.len(), 10);
    for (url, (ip, fetched)) in &arc {
        // 14 digits have no fractions of a second.
        assert_eq!((ip, fetched), (&warc[url].0, &(warc[url].1 / 1_000_000 * 1_000_000)), "{url}");
    }
}

#[test]
fn dates_of_every_form_are_read_and_the_others_are_counted() {
    let folder = tempfile::tempdir().unwrap();
    let rows = folder.path().join("rows.jsonl");
    let dates = [
        "\"2024-01-08 01:02:03\"",
        "1704675723",
        "1704675723000",
        "\"20240108010203\"",
        "\"Mon, 08 Jan 2024 01:02:03 GMT\"",
    ];
    let others = ["\"last week\"", "7", "[]", "null", "\"\""];
    let line = |(row, date): (usize, &&str)| {
        format!("{{\"url\": \"http://a.example/{row}\", \"text\": \"some words\", \"when\": {date}}}\n")
    };
    std::fs::write(&rows, dates.iter().chain(&others).enumerate().map(line).collect::<String>()).unwrap();
    let text = "[cluster]\nweek = \"2024-01-08\"\n[cluster.read.columns]\ndate = \"when\"\n";
    let job = job(folder.path(), text);
    for workers in ["1", "3"] {
        let made = Made::with_job(&job, &["--workers", workers, "--input", rows.to_str().unwrap()]);
        let week = made.week();
        let times = times(&week);
        assert_eq!(times.iter().filter(|time| **time == Some(1_704_675_723_000_000)).count(), 5, "{times:?}");
        assert_eq!(times.iter().filter(|time| time.is_none()).count(), 5, "{times:?}");
        let shown = run_well(&["show", made.store().to_str().unwrap()]).stdout;
        assert!(shown.contains("3  pages with a date that cannot be read"), "{shown}");
    }
}

#[test]
fn case_is_folded_where_the_job_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let rows = folder.path().join("rows.jsonl");
    std::fs::write(
        &rows,
        "{\"url\": \"http://a.example/1\", \"text\": \"One Two Three\"}\n{\"url\": \"http://a.example/2\", \"text\": \"one two three\"}\n",
    )
    .unwrap();
    for (fold, equal) in [(false, false), (true, true)] {
        let text = format!("[cluster]\nweek = \"2024-01-08\"\n[cluster.method]\nfold-case = {fold}\n");
        let made = Made::with_job(&job(folder.path(), &text), &["--input", rows.to_str().unwrap()]);
        let pages = by_url(&made.week());
        assert_eq!(pages["http://a.example/1"] == pages["http://a.example/2"], equal);
        run_well(&["show", made.store().to_str().unwrap()]);
    }
}
