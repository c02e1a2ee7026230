//! Every format and odd name gives the same pages.

use std::collections::BTreeMap;
use std::path::Path;

use crate::program::{Made, data, job, longs, run_well, texts, vectors};

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
    ] {
        let (_, found) = made(input, "");
        // Up to two of them have no words.
        assert!(found.len() <= pages && found.len() + 2 >= pages, "{input}: {} pages with words", found.len());
        for (url, vector) in &found {
            assert_eq!(Some(vector), crawl.get(url), "{input}: {url}");
            compared += 1;
        }
    }
    // Of 170, less two a file.
    assert!(compared > 150);
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
