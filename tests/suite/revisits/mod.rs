//! Crawls with revisit records, against crawls that have the pages in full.

/// What a revisit record says of its page, case by case.
mod cases;
/// Random histories of captures and revisits, against a twin that keeps every page.
mod histories;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;

use nigh::state::Store;
use xxhash_rust::xxh3::xxh3_64;

use crate::program::{rows_of, run_well, tables, texts, week};
use crate::weeks::partial::{CrawledStore, DATES, JOB, Lcg, html, url};

const PAGES: usize = 80;

/// What the crawl of a week has of a page.
#[derive(Clone, Copy, Debug, PartialEq)]
enum CrawlAnswer {
    /// The page, with this text.
    Full(PageVersion),
    /// It is what it was in the week of this number.
    Same { of: usize, form: RevisitForm },
    /// It is what another page was in the week of this number, or is in this one.
    Copy { other: usize, of: usize, form: RevisitForm },
    /// It is what a page is of which nothing is known.
    Unknown,
}

/// The page and the version whose text a page has.
type PageVersion = (usize, usize);

/// How a record says that a page is what it was.
#[derive(Clone, Copy, Debug, PartialEq)]
enum RevisitForm {
    /// By the URL, the time and the digest of the other record.
    Whole,
    /// By the digest.
    Digest,
    /// By the time.
    Date,
    /// By an answer 304 in a revisit record, of WARC 1.0.
    NotModified,
    /// By an answer 304.
    Plain304,
}

const FORMS: [RevisitForm; 5] =
    [RevisitForm::Whole, RevisitForm::Digest, RevisitForm::Date, RevisitForm::NotModified, RevisitForm::Plain304];

fn digest((page, version): PageVersion) -> String {
    format!("sha1:{:016X}", xxh3_64(html(page, version).as_bytes()))
}

/// A WARC file of some answers. `contents` are those of the pages in each week.
fn warc(number: usize, answers: &BTreeMap<usize, CrawlAnswer>, contents: &[BTreeMap<usize, PageVersion>]) -> String {
    let mut text = String::new();
    let profile = |name: &str| format!("WARC-Profile: http://netpreserve.org/warc/1.1/revisit/{name}\r\n");
    for (page, answer) in answers {
        let (mut fields, mut http) = (String::new(), "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n".to_owned());
        let mut kind = "revisit";
        match answer {
            CrawlAnswer::Full((page, version)) => {
                kind = "response";
                http += &html(*page, *version);
                write!(fields, "WARC-Payload-Digest: {}\r\n", digest((*page, *version))).unwrap();
            }
            CrawlAnswer::Unknown => {
                fields = profile("identical-payload-digest") + "WARC-Payload-Digest: sha1:NEVERSEEN\r\n";
            }
            CrawlAnswer::Same { of, form } | CrawlAnswer::Copy { of, form, .. } => {
                let other = if let CrawlAnswer::Copy { other, .. } = answer { other } else { page };
                let known = format!("WARC-Payload-Digest: {}\r\n", digest(contents[*of][other]).to_lowercase());
                let refers = format!(
                    "WARC-Refers-To-Target-URI: <{}>\r\nWARC-Refers-To-Date: {}T00:00:00Z\r\n",
                    url(*other),
                    DATES[*of]
                );
                let not_modified = "HTTP/1.1 304 Not Modified\r\n\r\n".to_owned();
                match form {
                    RevisitForm::Whole => fields = profile("identical-payload-digest") + &known + &refers,
                    RevisitForm::Digest => fields = profile("identical-payload-digest") + &known,
                    RevisitForm::Date => fields = profile("server-not-modified") + &refers,
                    RevisitForm::NotModified => (fields, http) = (profile("server-not-modified"), not_modified),
                    RevisitForm::Plain304 => (kind, http) = ("response", not_modified),
                }
            }
        }
        write!(
            text,
            "WARC/1.1\r\nWARC-Type: {kind}\r\nWARC-Record-ID: <urn:uuid:{number}-{page}>\r\nWARC-Target-URI: {}\r\nWARC-Date: \
             {}T00:00:00Z\r\n{fields}Content-Type: application/http; msgtype=response\r\nContent-Length: {}\r\n\r\n{http}\r\n\r\n",
            url(*page),
            DATES[number],
            http.len()
        )
        .unwrap();
    }
    text
}

fn write_input(folder: &Path, name: &str, text: &str) -> std::path::PathBuf {
    let input = folder.join(name);
    std::fs::create_dir_all(&input).unwrap();
    std::fs::write(input.join("crawl.warc"), text).unwrap();
    input
}

#[test]
fn a_revisit_is_the_page_as_it_was() {
    for (seed, absent) in [(0, "missing"), (1, "keep"), (2, "missing"), (3, "keep")] {
        let folder = tempfile::tempdir().unwrap();
        // Verification reads pages again where they were crawled.
        let job = JOB.replace("[cluster]\n", "[cluster]\nmax-unknown-share = 1.0\n")
            + ["", "similarity = 0.8\nverify = \"exact\"\n"][seed as usize / 2];
        let [with, two, full] = [("with", "with"), ("two", "with"), ("full", "full")]
            .map(|(name, input)| CrawledStore { folder: folder.path(), name, input, job: &job });
        let mut numbers = Lcg(seed);
        // What each page is after each week, and the week in which it became that.
        let mut contents: Vec<BTreeMap<usize, PageVersion>> = Vec::new();
        let mut crawled: Vec<BTreeMap<usize, usize>> = Vec::new();
        let (mut same, mut copies) = (0, 0);
        for (number, date) in DATES.into_iter().enumerate() {
            let mut state = contents.last().cloned().unwrap_or_default();
            let mut place = crawled.last().cloned().unwrap_or_default();
            let (mut answers, mut in_full) = (BTreeMap::new(), BTreeMap::new());
            for page in 0..PAGES {
                let before = state.get(&page).copied();
                let form = FORMS[numbers.below(FORMS.len())];
                let answer = match (numbers.below(20), before) {
                    (0 | 1, _) => None,
                    (2, Some(_)) => Some(CrawlAnswer::Unknown),
                    (n, Some(_)) if n < 12 => Some(CrawlAnswer::Same { of: number - 1, form }),
                    (n, _) if (12..15).contains(&n) && number > 0 => {
                        // Of any week before, whether or not the page is still there.
                        let of = numbers.below(number);
                        let others: Vec<usize> = contents[of].keys().copied().collect();
                        let other = others[numbers.below(others.len())];
                        let form = if n == 12 { RevisitForm::Digest } else { RevisitForm::Whole };
                        Some(CrawlAnswer::Copy { other, of, form })
                    }
                    // Of a page that this crawl has.
                    (n, _) if n > 17 && answers.values().any(|answer| matches!(answer, CrawlAnswer::Full(_))) => {
                        let is_full = |(page, answer): (&usize, &CrawlAnswer)| {
                            matches!(answer, CrawlAnswer::Full(_)).then_some(*page)
                        };
                        let others: Vec<usize> = answers.iter().filter_map(is_full).collect();
                        let other = others[numbers.below(others.len())];
                        Some(CrawlAnswer::Copy {
                            other,
                            of: number,
                            form: if n == 18 { RevisitForm::Digest } else { RevisitForm::Whole },
                        })
                    }
                    (_, before) => {
                        let version = before.filter(|(of, _)| *of == page).map_or(number, |(_, version)| version + 10);
                        Some(CrawlAnswer::Full((page, version)))
                    }
                };
                match answer {
                    Some(CrawlAnswer::Full(content)) => {
                        state.insert(page, content);
                        place.insert(page, number);
                    }
                    Some(CrawlAnswer::Copy { other, of, .. }) if of == number => {
                        state.insert(page, state[&other]);
                        place.insert(page, number);
                    }
                    Some(CrawlAnswer::Copy { other, of, .. }) => {
                        state.insert(page, contents[of][&other]);
                        place.insert(page, number);
                    }
                    Some(CrawlAnswer::Unknown) => drop(state.remove(&page)),
                    None if absent == "missing" => drop(state.remove(&page)),
                    Some(CrawlAnswer::Same { .. }) | None => {}
                }
                same += u32::from(matches!(answer, Some(CrawlAnswer::Same { .. })));
                copies += u32::from(matches!(answer, Some(CrawlAnswer::Copy { .. })));
                answers.extend(answer.map(|answer| (page, answer)));
                if let Some(content) = state.get(&page) {
                    in_full.insert(page, CrawlAnswer::Full(*content));
                }
            }
            contents.push(state.clone());
            crawled.push(place);
            // Records name the time of the record that has the page.
            for (page, answer) in &mut answers {
                match answer {
                    CrawlAnswer::Same { of, form: RevisitForm::Whole | RevisitForm::Date } => {
                        *of = record_of(&crawled, *page, *of)
                    }
                    CrawlAnswer::Copy { other, of, form: RevisitForm::Whole } => *of = record_of(&crawled, *other, *of),
                    _ => {}
                }
            }
            let input = write_input(folder.path(), &format!("with-{date}"), &warc(number, &answers, &contents));
            with.run(date, &input, &["--absent", absent, "--workers", "1"]);
            two.run(date, &input, &["--absent", absent, "--workers", "2", "--processes", "2"]);
            let input = write_input(folder.path(), &format!("full-{date}"), &warc(number, &in_full, &contents));
            full.run(date, &input, &[]);
            let (mut found, mut wanted) = (with.facts(date), full.facts(date));
            // A copy has the links of the other page: those to itself are found on no page.
            let is_copy = |url_of: &str| state.iter().any(|(page, (of, _))| url(*page) == url_of && of != page);
            for facts in [&mut found, &mut wanted] {
                by_url(facts);
                facts.get_mut("links").unwrap().retain(|row| !is_copy(&row[0]));
            }
            for (table, rows) in &wanted {
                let differing = found[table].iter().zip(rows).find(|(found, wanted)| found != wanted);
                assert!(found[table] == *rows, "seed {seed}, {date}, {table}: {differing:?}");
            }
            assert!(tables(&week(&two.store(), date)) == tables(&week(&with.store(), date)), "seed {seed}, {date}");
            let of = week(&with.store(), date);
            let reasons: BTreeMap<String, String> =
                texts(&of, "missing", "url").into_iter().zip(texts(&of, "missing", "reason")).collect();
            for page in answers.iter().filter(|(_, answer)| **answer == CrawlAnswer::Unknown).map(|(page, _)| page) {
                assert_eq!(reasons[&url(*page)], "revisit of a page that is not known");
            }
            // Of earlier weeks the inputs that have pages are known, and no others: an export reads
            // these again.
            let pages: BTreeSet<(String, String)> = rows_of(&of, "documents", &["crawled", "file"])
                .into_iter()
                .filter(|row| row[0] != date)
                .map(|row| (row[0].clone(), row[1].clone()))
                .collect();
            let store = Store::at(&with.store());
            let committed = store.manifest().unwrap().unwrap().weeks.pop().unwrap();
            let inputs = store.whole(&committed).unwrap().journal.earlier_inputs.into_iter();
            let inputs: BTreeSet<(String, String)> =
                inputs.flat_map(|(week, names)| names.into_keys().map(move |name| (week.to_string(), name))).collect();
            assert_eq!(inputs, pages);
            // The digest of the page, and the week whose crawl has it.
            for row in rows_of(&of, "documents", &["url", "digest", "crawled", "record_url"]) {
                let page = (0..PAGES).find(|page| url(*page) == row[0]).unwrap();
                let (of, _) = state[&page];
                assert_eq!(row[3], if of == page { "null".to_owned() } else { url(of) }, "{row:?}");
                assert_eq!(row[1], digest(state[&page]));
                assert!(DATES[..=number].contains(&row[2].as_str()));
            }
        }
        assert!(same > 80 && copies > 40, "{same} {copies}");
        // A record can be the page of several documents. What the week does not have any more stays
        // in the files, too.
        let out = folder.path().join("kept");
        run_well(&["export", with.store().to_str().unwrap(), "--out", out.to_str().unwrap(), "--level", "exact"]);
        let of = week(&with.store(), DATES[DATES.len() - 1]);
        let wanted: BTreeSet<String> = texts(&of, "documents", "digest").into_iter().collect();
        assert!(digests_under(&out).is_superset(&wanted), "seed {seed}");
    }
}

/// The digests of the pages of WARC files in a folder.
fn digests_under(folder: &Path) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for entry in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        if entry.is_dir() {
            found.extend(digests_under(&entry));
            continue;
        }
        for record in std::fs::read_to_string(&entry).unwrap_or_default().split("WARC/1.1\r\n") {
            let digest = record.lines().find_map(|line| line.strip_prefix("WARC-Payload-Digest: "));
            let is_page = record.contains("WARC-Type: response") && record.contains("HTTP/1.1 200");
            found.extend(digest.filter(|_| is_page).map(str::to_owned));
        }
    }
    found
}

/// Facts with URLs for ids, which depend on how a page came: new URLs of revisits get theirs after
/// the others.
fn by_url(facts: &mut BTreeMap<&'static str, Vec<Vec<String>>>) {
    let urls: BTreeMap<String, String> =
        facts["documents"].iter().chain(&facts["missing"]).map(|row| (row[0].clone(), row[1].clone())).collect();
    // The smallest URL of each cluster, for each level.
    for root in [2, 4, 6] {
        let mut smallest: BTreeMap<String, String> = BTreeMap::new();
        for row in &facts["clusters"] {
            let smallest = smallest.entry(row[root].clone()).or_insert_with(|| row[1].clone());
            *smallest = smallest.clone().min(row[1].clone());
        }
        facts.get_mut("clusters").unwrap().iter_mut().for_each(|row| row[root] = smallest[&row[root]].clone());
    }
    for table in ["documents", "clusters", "features", "chunks", "links", "missing"] {
        let rows = facts.get_mut(table).unwrap();
        rows.iter_mut().for_each(|row| row[0] = urls[&row[0]].clone());
        rows.sort();
    }
    facts.get_mut("clusters").unwrap().iter_mut().for_each(|row| drop(row.pop()));
    facts.remove("changes");
}

/// The week in which a page became what it was in the week `of`.
fn record_of(crawled: &[BTreeMap<usize, usize>], page: usize, of: usize) -> usize {
    crawled[of][&page]
}
