//! Random histories of captures and revisits, against a slow twin that keeps every page: it finds
//! what a record means by going through all of them, as docs/inputs.md says.
//!
//! `NIGH_HISTORIES` is how many are tried, with seeds from 0 on; without it 12.

use std::collections::{BTreeMap, BTreeSet};

use xxhash_rust::xxh3::xxh3_64;

use crate::program::{job, records, rows_of, run_well, tables, texts, week};
use crate::weeks::partial::{DATES, Lcg};

const URLS: usize = 10;
const CONTENTS: usize = 12;
const NOT_KNOWN: &str = "revisit of a page that is not known";
const HTML: &str = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n";
const PROFILES: [&str; 4] = ["", "identical-payload-digest", "server-not-modified", "of-another-kind"];

fn url(number: usize) -> String {
    format!("http://h{}.example/{number}", number % 3)
}

/// A page; some contents are much alike.
fn body(content: usize) -> String {
    if content == 0 {
        return String::new();
    }
    let word =
        |place: usize| if place == 7 { format!("own{content}") } else { format!("w{}", content % 4 * 100 + place) };
    let words: Vec<String> = (0..40).map(word).collect();
    format!("<title>content {content}</title><p>{}<a href='{}'></a>", words.join(" "), url(content % URLS))
}

/// A digest of some kind: 0 and 1 are algorithms.
type DrawnDigest = (usize, usize);

/// A digest as some crawler writes it. That of the empty page is real.
fn spelled((algorithm, content): DrawnDigest, numbers: &mut Lcg) -> String {
    const OF_NOTHING: [&str; 2] = ["da39a3ee5e6b4b0d3255bfef95601890afd80709", "d41d8cd98f00b204e9800998ecf8427e"];
    let bytes: Vec<u8> = if content == 0 {
        let pairs = OF_NOTHING[algorithm].as_bytes().chunks(2);
        pairs.map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap()).collect()
    } else {
        let word = |seed: usize| xxh3_64(format!("{content} {algorithm} {seed}").as_bytes()).to_be_bytes();
        (0..3).flat_map(word).take([20, 16][algorithm]).collect()
    };
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    let bits: String = bytes.iter().map(|byte| format!("{byte:08b}")).collect();
    let digit = |bits: &[u8]| {
        let bits = format!("{:0<5}", std::str::from_utf8(bits).unwrap());
        b"abcdefghijklmnopqrstuvwxyz234567"[usize::from_str_radix(&bits, 2).unwrap()] as char
    };
    let base32: String = bits.as_bytes().chunks(5).map(digit).collect();
    let value = if numbers.below(2) == 0 { hex } else { base32 };
    let value = if numbers.below(2) == 0 { value.to_uppercase() } else { value };
    let name = [["sha1:", "SHA1:", "sha-1:", ""], ["md5:", "MD5:", "Md5: ", ""]][algorithm][numbers.below(4)];
    format!("{name}{value}")
}

/// A page that was captured, or that a revisit made.
#[derive(Clone, Copy, Debug, PartialEq)]
struct HistoryPage {
    week: usize,
    /// 0 for the page of a week, and then its later captures.
    row: usize,
    url: usize,
    content: usize,
    /// Milliseconds since the first day.
    time: i64,
    digest: Option<DrawnDigest>,
    id: Option<usize>,
    /// Whether a revisit made it.
    is_made: bool,
}

/// What a revisit says.
#[derive(Clone, Debug)]
struct HistoryRevisit {
    url: usize,
    time: i64,
    profile: usize,
    head: &'static str,
    id: Option<usize>,
    of_url: Option<usize>,
    /// In milliseconds, as written.
    date: Option<i64>,
    digest: Option<DrawnDigest>,
}

impl HistoryRevisit {
    fn is_not_modified(&self) -> bool {
        PROFILES[self.profile] == "server-not-modified" || self.head.contains(" 304 ")
    }

    /// The digest that it is looked for by.
    fn looked_up(&self) -> Option<DrawnDigest> {
        self.digest.filter(|(_, content)| !self.is_not_modified() && *content > 0)
    }
}

#[derive(Clone, Debug)]
enum HistoryRecord {
    Page(HistoryPage),
    Failed { url: usize, status: u16 },
    Revisit(HistoryRevisit),
}

const DAY: i64 = 24 * 60 * 60 * 1000;

/// A time as WARC writes it.
fn written(time: i64) -> String {
    let (day, of_day) = (time / DAY, time % DAY);
    let date = DATES[(day / 7) as usize];
    let (seconds, millis) = (of_day / 1000, of_day % 1000);
    let fraction = if millis > 0 { format!(".{millis:03}") } else { String::new() };
    format!("{date}T{:02}:{:02}:{:02}{fraction}Z", seconds / 3600, seconds / 60 % 60, seconds % 60)
}

impl HistoryRecord {
    fn text(&self, numbers: &mut Lcg) -> String {
        let (kind, url_of, time, fields, block) = match self {
            HistoryRecord::Page(page) => {
                let mut fields = String::new();
                if let Some(digest) = page.digest {
                    fields += &format!("WARC-Payload-Digest: {}\r\n", spelled(digest, numbers));
                }
                if let Some(id) = page.id {
                    fields += &format!("WARC-Record-ID: <urn:x:{id}>\r\n");
                }
                ("response", page.url, page.time, fields, HTML.to_owned() + &body(page.content))
            }
            HistoryRecord::Failed { url, status } => {
                ("response", *url, 0, String::new(), format!("HTTP/1.1 {status} X\r\nContent-Type: text/html\r\n\r\n"))
            }
            HistoryRecord::Revisit(revisit) => {
                let mut fields = match PROFILES[revisit.profile] {
                    "" => String::new(),
                    name => {
                        format!("WARC-Profile: http://netpreserve.org/warc/1.{}/revisit/{name}\r\n", numbers.below(2))
                    }
                };
                if let Some(id) = revisit.id {
                    fields += &format!("WARC-Refers-To: <urn:x:{id}>\r\n");
                }
                if let Some(of_url) = revisit.of_url {
                    fields += &format!("WARC-Refers-To-Target-URI: {}\r\n", url(of_url));
                }
                if let Some(date) = revisit.date {
                    fields += &format!("WARC-Refers-To-Date: {}\r\n", written(date));
                }
                if let Some(digest) = revisit.digest {
                    fields += &format!("WARC-Payload-Digest: {}\r\n", spelled(digest, numbers));
                }
                ("revisit", revisit.url, revisit.time, fields, revisit.head.to_owned())
            }
        };
        format!(
            "WARC/1.1\r\nWARC-Type: {kind}\r\nWARC-Target-URI: {}\r\nWARC-Date: {}\r\n{fields}Content-Type: application/http; \
             msgtype=response\r\nContent-Length: {}\r\n\r\n{block}\r\n\r\n",
            url(url_of),
            written(time),
            block.len()
        )
    }
}

/// All that a store could know.
#[derive(Default)]
struct RevisitTwin {
    /// Pages of weeks and later captures, of all weeks.
    known: Vec<HistoryPage>,
    /// The page of each URL after each week.
    weeks: Vec<BTreeMap<usize, HistoryPage>>,
    /// The URLs that some week has.
    seen: BTreeSet<usize>,
}

impl RevisitTwin {
    /// The capture that a revisit means; `this` is the number of its week.
    fn find(&self, revisit: &HistoryRevisit, this: usize) -> Option<HistoryPage> {
        let digest = revisit.looked_up();
        let is_empty = !revisit.is_not_modified() && revisit.digest.is_some_and(|(_, content)| content == 0);
        let of_page = |page: &HistoryPage| page.digest.filter(|(_, content)| *content > 0);
        let can_be = |page: &&HistoryPage| match (digest, of_page(page)) {
            (Some(wanted), Some(own)) => wanted.0 != own.0 || wanted.1 == own.1,
            _ => true,
        };
        let newest = |pages: &mut dyn Iterator<Item = &HistoryPage>| {
            pages.min_by_key(|page| (std::cmp::Reverse(page.week), page.row)).copied()
        };
        if let Some(id) = revisit.id
            && let Some(page) = newest(&mut self.known.iter().filter(|page| page.id == Some(id)).filter(can_be))
        {
            return Some(page);
        }
        let of_url = revisit.of_url.unwrap_or(revisit.url);
        let named = || self.known.iter().filter(|page| page.url == of_url);
        if PROFILES[revisit.profile] != "identical-payload-digest" || !is_empty || revisit.date.is_some() {
            if digest.is_some()
                && let Some(page) = newest(&mut named().filter(|page| of_page(page) == digest))
            {
                return Some(page);
            }
            let possible: Vec<&HistoryPage> = named().filter(can_be).collect();
            if let Some(date) = revisit.date {
                let near = |page: &&&HistoryPage| (page.time / 1000).abs_diff(date / 1000) <= 1;
                let nearest = possible.iter().filter(near).min_by_key(|page| {
                    let off = (page.time / 1000).abs_diff(date / 1000);
                    (std::cmp::Reverse(page.week), off, page.time.abs_diff(date), page.row)
                });
                if let Some(page) = nearest {
                    return Some(**page);
                }
            } else {
                let not_after = |page: &HistoryPage| page.time / 1000 <= revisit.time / 1000;
                // Of the pages of weeks only the newest: older ones are what the URL was before.
                let is_state = |page: &&&HistoryPage| page.row == 0 && (page.week < this || not_after(page));
                let state = possible.iter().filter(is_state).map(|page| page.week).max();
                let is_there = |page: &&&HistoryPage| {
                    if page.row == 0 { Some(page.week) == state } else { page.week < this || not_after(page) }
                };
                let last = possible
                    .iter()
                    .filter(is_there)
                    .max_by_key(|page| (not_after(page), page.time, page.week, page.row));
                if let Some(page) = last {
                    return Some(**page);
                }
            }
        }
        newest(&mut self.known.iter().filter(|page| digest.is_some() && of_page(page) == digest))
    }

    /// Adds a week; returns why URLs have no page in it, and how many revisits are of pages of this
    /// week, of earlier ones, and not known.
    fn add(&mut self, records: &[HistoryRecord], keep: bool) -> (BTreeMap<usize, String>, [u64; 3]) {
        let this = self.weeks.len();
        let mut pages: BTreeMap<usize, HistoryPage> = BTreeMap::new();
        for record in records {
            if let HistoryRecord::Page(page) = record {
                let row = self.known.iter().filter(|known| (known.week, known.url) == (this, page.url)).count();
                self.known.push(HistoryPage { week: this, row, ..*page });
                pages.entry(page.url).or_insert(*page);
            }
        }
        let before = self.weeks.last().cloned().unwrap_or_default();
        let (mut failures, mut made) = (BTreeMap::new(), BTreeMap::new());
        let (mut counts, mut not_known, mut tried) = ([0; 3], BTreeSet::new(), BTreeSet::new());
        for record in records {
            match record {
                HistoryRecord::Failed { url, status } => {
                    failures.entry(*url).or_insert_with(|| format!("status {status}"));
                }
                HistoryRecord::Revisit(revisit) => match revisit.head.split(' ').nth(1) {
                    Some("200" | "304") | None if revisit.head.contains("image") => {}
                    Some(status) if !["200", "304"].contains(&status) => {
                        failures.entry(revisit.url).or_insert_with(|| format!("status {status}"));
                    }
                    _ => {
                        failures.entry(revisit.url).or_insert_with(|| NOT_KNOWN.to_owned());
                        if pages.contains_key(&revisit.url) || made.contains_key(&revisit.url) {
                            continue;
                        }
                        let mut known = self.known.iter();
                        let has_captures = known.any(|page| page.url == revisit.url && page.row > 0);
                        // The page that its URL has is looked at first.
                        let is_first = tried.insert(revisit.url) && !has_captures;
                        let digest = revisit.looked_up().filter(|_| is_first);
                        let own = before.get(&revisit.url).filter(|own| digest.is_some() && own.digest == digest);
                        match own.copied().or_else(|| self.find(revisit, this)) {
                            Some(page) => {
                                counts[usize::from(page.week < this)] += 1;
                                // Where it is as it was, nothing is known of when it was that
                                // again.
                                let is_same = before.get(&revisit.url).is_some_and(|own| {
                                    (own.content, own.digest, own.id) == (page.content, page.digest, page.id)
                                });
                                let time =
                                    if is_same && !has_captures { before[&revisit.url].time } else { revisit.time };
                                made.insert(
                                    revisit.url,
                                    HistoryPage { url: revisit.url, week: this, row: 0, time, is_made: true, ..page },
                                );
                            }
                            None => _ = not_known.insert(revisit.url),
                        }
                    }
                },
                HistoryRecord::Page(_) => {}
            }
        }
        let has_revisit: BTreeSet<usize> = made.keys().chain(&not_known).copied().collect();
        not_known.retain(|url| !made.contains_key(url));
        counts[2] = not_known.len() as u64;
        let mut state = pages;
        state.extend(made.clone());
        self.known.extend(made.into_values());
        if keep {
            for (url, page) in before {
                let is_gone = failures.get(&url).is_some_and(|reason| reason == "status 404" || reason == "status 410");
                if !state.contains_key(&url) && !is_gone && !has_revisit.contains(&url) {
                    state.insert(url, page);
                    self.known.push(HistoryPage { week: this, row: 0, ..page });
                }
            }
        }
        let mut missing = BTreeMap::new();
        for url in self.seen.iter().chain(&not_known).filter(|url| !state.contains_key(url)) {
            let is_new = !self.seen.contains(url);
            let reason = failures.get(url).filter(|_| !is_new).cloned();
            let reason = reason.unwrap_or_else(|| if is_new { NOT_KNOWN } else { "not seen" }.to_owned());
            missing.insert(*url, reason);
        }
        self.seen.extend(state.keys().chain(&not_known));
        self.weeks.push(state);
        (missing, counts)
    }
}

/// The records of a week, in the order of the files. Times are not in that order.
fn crawl(numbers: &mut Lcg, twin: &RevisitTwin, ids: &mut usize) -> Vec<HistoryRecord> {
    let week = twin.weeks.len();
    let mut times: Vec<i64> = (0..3 * URLS as i64).collect();
    (0..times.len()).for_each(|place| times.swap(place, numbers.below(place + 1)));
    let mut time = || {
        let minutes = times.pop().unwrap_or_default();
        week as i64 * 7 * DAY + minutes * 60_000 + 30_000
    };
    let mut records: Vec<HistoryRecord> = Vec::new();
    for url in 0..URLS {
        for _ in 0..[0, 1, 1, 1, 2, 3][numbers.below(6)] {
            let time = time() + [0, 250, 999][numbers.below(3)];
            let in_week = records.iter().filter_map(|record| match record {
                HistoryRecord::Page(page) => Some(*page),
                _ => None,
            });
            // Where a revisit says what it was before, the store may not know when that was.
            let known: Vec<HistoryPage> =
                twin.known.iter().copied().chain(in_week).filter(|page| !page.is_made).collect();
            match numbers.below(10) {
                0 => records.push(HistoryRecord::Failed { url, status: [404, 410, 503][numbers.below(3)] }),
                1..5 => {
                    let content = numbers.below(CONTENTS);
                    let digest = (numbers.below(5) > 0).then(|| (usize::from(numbers.below(4) == 0), content));
                    *ids += 1;
                    let id = (numbers.below(4) > 0).then_some(*ids);
                    records.push(HistoryRecord::Page(HistoryPage {
                        week,
                        row: 0,
                        url,
                        content,
                        time,
                        digest,
                        id,
                        is_made: false,
                    }));
                }
                _ => {
                    let heads = ["", HTML, HTML, "HTTP/1.1 200 OK\r\n\r\n", "HTTP/1.1 304 Not Modified\r\n\r\n"];
                    let others = [
                        "HTTP/1.1 404 Not Found\r\n\r\n",
                        "HTTP/1.1 301 Moved\r\nLocation: /\r\n\r\n",
                        "HTTP/1.1 200 OK\r\nContent-Type: image/png\r\n\r\n",
                    ];
                    let head = if numbers.below(8) == 0 { others[numbers.below(3)] } else { heads[numbers.below(5)] };
                    let of = (!known.is_empty()).then(|| known[numbers.below(known.len().max(1))]);
                    let of = of.filter(|_| numbers.below(8) > 0);
                    let mut with = |one_of: usize| numbers.below(one_of) == 0;
                    let (has_id, has_url, has_date, has_digest, is_wrong) =
                        (with(3), with(2), with(3), with(2), with(12));
                    let id = of.and_then(|page| page.id).filter(|_| has_id).map(|id| if is_wrong { 9999 } else { id });
                    let digest = match of {
                        Some(page) => page.digest.or(Some((0, page.content))).filter(|_| has_digest),
                        None => Some((0, 1000 + url)),
                    };
                    let digest = if numbers.below(10) == 0 { Some((numbers.below(2), 0)) } else { digest };
                    let off = [0, 0, 1000, -1000, 400][numbers.below(5)];
                    records.push(HistoryRecord::Revisit(HistoryRevisit {
                        url,
                        time,
                        profile: numbers.below(4),
                        head,
                        id,
                        of_url: of.map(|page| page.url).filter(|_| has_url),
                        date: of.map(|page| page.time / 1000 * 1000 + off).filter(|_| has_date),
                        digest,
                    }));
                }
            }
        }
    }
    // Records of other URLs come between those of one.
    let mut mixed: Vec<HistoryRecord> = Vec::new();
    while !records.is_empty() {
        let first = records.remove(numbers.below(records.len().min(4)));
        mixed.push(first);
    }
    mixed
}

fn histories() -> u64 {
    std::env::var("NIGH_HISTORIES").ok().and_then(|text| text.parse().ok()).unwrap_or(12)
}

#[test]
fn a_revisit_is_found_as_by_a_twin_that_keeps_every_page() {
    let (mut sums, mut later) = ([0; 3], 0);
    for seed in 0..histories() {
        let folder = tempfile::tempdir().unwrap();
        let text =
            "[cluster]\naccuracy = false\nallow-empty = true\nmax-unknown-share = 1.0\n[cluster.method]\nshards = 4\n";
        let job = job(folder.path(), text);
        let mut numbers = Lcg(seed);
        let (mut twin, mut ids) = (RevisitTwin::default(), 0);
        for (number, date) in DATES.into_iter().take(4).enumerate() {
            let records_of_week = crawl(&mut numbers, &twin, &mut ids);
            let keep = numbers.below(2) == 0;
            let input = folder.path().join(format!("crawl-{date}"));
            std::fs::create_dir_all(&input).unwrap();
            let middle = records_of_week.len() / 2;
            for (name, part) in [("1.warc", &records_of_week[..middle]), ("2.warc", &records_of_week[middle..])] {
                let text: String = part.iter().map(|record| record.text(&mut numbers)).collect();
                std::fs::write(input.join(name), text).unwrap();
            }
            let (missing, counts) = twin.add(&records_of_week, keep);
            let other = [("2", "1"), ("4", "1"), ("1", "2")][seed as usize % 3];
            for (name, workers, processes) in [("one", "1", "1"), ("other", other.0, other.1)] {
                let store = folder.path().join(name);
                let [job, store, input] = [&job, &store, &input].map(|path| path.to_str().unwrap());
                let absent = if keep { "keep" } else { "missing" };
                let flags = ["--workers", workers, "--processes", processes, "--absent", absent, "-q"];
                run_well(&[&["run", job, "--week", date, "--store", store, "--input", input][..], &flags].concat());
            }
            let [of, of_other] = ["one", "other"].map(|name| week(&folder.path().join(name), date));
            let seed_and_week = format!("seed {seed}, {date}, NIGH_HISTORIES={}", seed + 1);
            assert!(tables(&of) == tables(&of_other), "{seed_and_week}");
            let found: BTreeMap<String, String> =
                texts(&of, "documents", "url").into_iter().zip(texts(&of, "documents", "title")).collect();
            let title = |content: usize| if content == 0 { String::new() } else { format!("content {content}") };
            let wanted: BTreeMap<String, String> =
                twin.weeks[number].iter().map(|(of, page)| (url(*of), title(page.content))).collect();
            assert_eq!(found, wanted, "{seed_and_week}");
            let found: BTreeMap<String, String> =
                texts(&of, "missing", "url").into_iter().zip(texts(&of, "missing", "reason")).collect();
            let wanted: BTreeMap<String, String> = missing.into_iter().map(|(of, reason)| (url(of), reason)).collect();
            assert_eq!(found, wanted, "{seed_and_week}");
            let summary = std::fs::read_to_string(records(&of).join("summary.json")).unwrap();
            let summary: serde_json::Value = serde_json::from_str(&summary).unwrap();
            let revisited = &summary["counts"]["revisited"];
            let not_known = revisited["not_known"]
                .as_object()
                .map_or(0, |files| files.values().filter_map(|count| count.as_u64()).sum());
            let found =
                [revisited["here"].as_u64().unwrap_or(0), revisited["earlier"].as_u64().unwrap_or(0), not_known];
            assert_eq!(found, counts, "{seed_and_week}");
            sums.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
            later += rows_of(&of, "captures", &["doc"]).len();
        }
        check_clusters(folder.path(), &job, &twin, seed);
    }
    // The histories have some of all.
    let few = histories() < 12;
    assert!(few || sums.iter().all(|sum| *sum >= 20) && later >= 20, "{sums:?} {later}");
}

/// Checks that the last week has the clusters that a store has which has all pages in full.
fn check_clusters(folder: &std::path::Path, job: &std::path::Path, twin: &RevisitTwin, seed: u64) {
    let (last, date) = (twin.weeks.len() - 1, DATES[twin.weeks.len() - 1]);
    let pages = twin.weeks[last].iter();
    let text: String =
        pages.map(|(url, page)| HistoryRecord::Page(HistoryPage { url: *url, ..*page }).text(&mut Lcg(seed))).collect();
    let input = folder.join("full.warc");
    std::fs::write(&input, text).unwrap();
    let store = folder.join("full");
    let [job, store, input] = [job, store.as_path(), input.as_path()].map(|path| path.to_str().unwrap());
    run_well(&["run", job, "--week", date, "--store", store, "--input", input, "-q"]);
    // The URLs of each cluster, and the words of each page.
    let of_store = |name: &str| {
        let week = week(&folder.join(name), date);
        let mut clusters: BTreeMap<(String, String), BTreeSet<String>> = BTreeMap::new();
        for row in rows_of(&week, "clusters", &["url", "similar_root", "identical_root", "exact_root"]) {
            for (level, root) in row[1..].iter().enumerate() {
                clusters.entry((level.to_string(), root.clone())).or_default().insert(row[0].clone());
            }
        }
        let mut clusters: Vec<(String, BTreeSet<String>)> =
            clusters.into_iter().map(|((level, _), urls)| (level, urls)).collect();
        clusters.sort();
        let mut pages = rows_of(&week, "documents", &["url", "words", "bytes", "checksum", "title"]);
        pages.sort();
        (clusters, pages)
    };
    assert!(of_store("one") == of_store("full"), "seed {seed}");
}
