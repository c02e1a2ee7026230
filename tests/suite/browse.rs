//! The pages that `nigh browse` serves: against the tables, with hostile texts and requests, and in
//! a browser.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io::{BufRead, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use html5gum::{Token, Tokenizer};
use serde_json::{Value, json};

use crate::browser::{Browser, complaints};
use crate::figures::BAD_LABELS;
use crate::live::{Response, response};
use crate::page::{HOSTILE, hostile, three_weeks};
use crate::program::{Made, booleans, copy_folder, each, job, longs, nigh, run, run_well, texts, week};

/// A server, which is ended at the end.
struct Served {
    child: Child,
    address: SocketAddr,
    said: Vec<String>,
    temporary: tempfile::TempDir,
}

impl Served {
    fn start(store: &Path, flags: &[&str]) -> Served {
        let temporary = tempfile::tempdir().unwrap();
        let arguments = [&["browse", store.to_str().unwrap(), "--listen", "127.0.0.1:0"], flags].concat();
        let mut child = nigh(&arguments)
            .env("TMPDIR", temporary.path())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let mut said = Vec::new();
        let address = loop {
            let line = lines.next().unwrap_or_else(|| panic!("{said:?}")).unwrap();
            said.push(line.clone());
            if let Some((_, address)) = line.split_once("open http://") {
                break address.parse().unwrap();
            }
        };
        // What it says later must not fill the pipe.
        std::thread::spawn(move || lines.for_each(drop));
        Served { child, address, said, temporary }
    }

    fn send(&self, method: &str, path: &str, headers: &[(&str, &str)]) -> Response {
        let mut head = format!("{method} {path} HTTP/1.1\r\nConnection: close\r\n");
        if !headers.iter().any(|(name, _)| *name == "Host") {
            head += &format!("Host: {}\r\n", self.address);
        }
        headers.iter().for_each(|(name, value)| head += &format!("{name}: {value}\r\n"));
        self.raw((head + "\r\n").as_bytes()).unwrap_or_else(|| panic!("no answer to {path}"))
    }

    fn raw(&self, bytes: &[u8]) -> Option<Response> {
        let mut socket = TcpStream::connect(self.address).unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        // A head that is refused need not be read.
        let _ = socket.write_all(bytes);
        response(socket)
    }

    fn get(&self, path: &str) -> String {
        let answer = self.send("GET", path, &[]);
        assert_eq!(answer.status, 200, "{path}: {}", answer.body);
        answer.body
    }

    fn end(&mut self, signal: &str) -> Option<i32> {
        let _ = Command::new("kill").args([signal, &self.child.id().to_string()]).status();
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_secs(20) {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status.code();
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        panic!("it does not end");
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The elements of pages: their names, and the addresses that they lead to. Checks that none has an
/// attribute that acts.
fn elements(html: &str, path: &str) -> (BTreeSet<String>, Vec<String>) {
    let (mut names, mut addresses, mut ids) = (BTreeSet::new(), Vec::new(), BTreeSet::new());
    for token in Tokenizer::new(html) {
        let Ok(Token::StartTag(tag)) = token else { continue };
        let name = String::from_utf8(tag.name.0.clone()).unwrap();
        for (attribute, value) in &tag.attributes {
            let attribute = String::from_utf8(attribute.0.clone()).unwrap();
            let value = String::from_utf8(value.value.0.clone()).unwrap();
            assert!(
                !attribute.starts_with("on") && attribute != "style" && attribute != "src",
                "{path}: {name} {attribute}"
            );
            match attribute.as_str() {
                "id" => assert!(ids.insert(value.clone()), "{path}: the id {value} is there twice"),
                "action" => assert!(["/search", "/text", "/compare"].contains(&value.as_str()), "{path}: {value}"),
                "href" if name == "link" => {
                    assert!(["data:,", "/style.css"].contains(&value.as_str()), "{path}: {value}")
                }
                "href" => addresses.push(value),
                _ => {}
            }
        }
        names.insert(name);
    }
    for anchor in addresses.iter().filter_map(|address| address.strip_prefix('#')) {
        assert!(ids.contains(anchor), "{path}: there is no #{anchor}");
    }
    (names, addresses)
}

/// The elements that the program itself writes.
const WRITTEN: [&str; 44] = [
    "a",
    "body",
    "button",
    "circle",
    "dd",
    "del",
    "details",
    "div",
    "dl",
    "dt",
    "figcaption",
    "figure",
    "footer",
    "form",
    "h1",
    "h2",
    "head",
    "header",
    "html",
    "input",
    "ins",
    "label",
    "li",
    "link",
    "main",
    "meta",
    "nav",
    "p",
    "path",
    "summary",
    "svg",
    "table",
    "tbody",
    "td",
    "text",
    "textarea",
    "th",
    "thead",
    "title",
    "tr",
    "ul",
    "code",
    "small",
    "span",
];

/// Walks over all pages that links lead to, at most so many of each kind, and returns them by
/// address.
fn walk(served: &Served, of_kind: usize) -> BTreeMap<String, String> {
    let mut pages: BTreeMap<String, String> = BTreeMap::new();
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    let mut queue = VecDeque::from(["/".to_owned()]);
    while let Some(path) = queue.pop_front() {
        let kind = path.split(['/', '?']).nth(1).unwrap_or_default().to_owned();
        let count = counts.entry(kind).or_default();
        if pages.contains_key(&path) || *count == of_kind {
            continue;
        }
        *count += 1;
        let html = served.get(&path);
        let (names, addresses) = elements(&html, &path);
        for name in names {
            assert!(WRITTEN.contains(&name.as_str()), "{path}: {name}");
        }
        for address in addresses {
            match address.as_str() {
                own if own.starts_with('/') && !own.starts_with("//") => queue.push_back(address),
                anchor if anchor.starts_with('#') => {}
                outside => assert!(["http://", "https://"].iter().any(|start| outside.starts_with(start)), "{outside}"),
            }
        }
        pages.insert(path, html);
    }
    pages
}

#[test]
fn every_link_of_every_page_leads_somewhere() {
    let (made, _) = three_weeks();
    let store = made.store();
    let name = store.to_str().unwrap();
    for job in ["jobs/mirrors.toml", "jobs/mirrors-by-url.toml", "jobs/collections.toml"] {
        run_well(&["run", job, "--quiet", "--store", name]);
    }
    let served = Served::start(&store, &[]);
    assert!(served.said.iter().any(|line| line.contains("making the index")), "{:?}", served.said);
    let pages = walk(&served, 60);
    let of = |kind: &str| pages.keys().filter(|path| path.starts_with(kind)).count();
    for (kind, least) in [("/clusters", 4), ("/cluster/", 40), ("/page/", 40), ("/compare", 20), ("/host", 3)] {
        assert!(of(kind) >= least, "{kind}: {} of {}", of(kind), pages.len());
    }
    let all: String = pages.values().map(String::as_str).collect();
    for wanted in ["<ins", "<del", "<svg", "joined", "stays", "Mirrors by content", "of the"] {
        assert!(all.contains(wanted), "{wanted}");
    }
    // A list has each of its entries once.
    let mut listed = Vec::new();
    let mut path = "/clusters?sort=size".to_owned();
    loop {
        let html = served.get(&path);
        let (_, addresses) = elements(&html, &path);
        listed.extend(addresses.iter().filter_map(|address| address.strip_prefix("/cluster/")?.parse::<i64>().ok()));
        let next =
            html.split("<a href=\"").find(|rest| rest.split("</a>").next().is_some_and(|link| link.ends_with(">next")));
        let Some(next) = next else { break };
        path = next.split('"').next().unwrap().replace("&amp;", "&");
    }
    let of_week = week(&store, "2024-01-22");
    let sizes = longs(&of_week, "clusters", "similar_size");
    let ids = longs(&of_week, "clusters", "cluster_id");
    let in_clusters = ids.iter().zip(&sizes).filter(|(_, size)| **size > 1);
    let expected: BTreeSet<i64> = in_clusters.map(|(id, _)| *id).collect();
    assert_eq!(listed.len(), expected.len());
    assert_eq!(listed.into_iter().collect::<BTreeSet<i64>>(), expected);
}

/// The text of the cells of each row of the first table with this caption.
fn rows(html: &str, caption: &str) -> Vec<Vec<String>> {
    let from = html.find(&format!("aria-label=\"{caption}\"")).unwrap_or_else(|| panic!("no table {caption}: {html}"));
    let body = html[from..].split("<tbody>").nth(1).unwrap().split("</tbody>").next().unwrap();
    let text = |cell: &str| {
        let mut text = String::new();
        for token in Tokenizer::new(cell) {
            if let Ok(Token::String(part)) = token {
                text.push_str(std::str::from_utf8(&part.value.0).unwrap());
            }
        }
        text.trim().to_owned()
    };
    let cells = |row: &str| row.split("</td>").filter(|cell| cell.contains("<td")).map(text).collect();
    body.split("</tr>").filter(|row| row.contains("<td")).map(cells).collect()
}

/// A number as a page shows it.
fn number(cell: &str) -> i64 {
    cell.replace([',', '+'], "").parse().unwrap_or_else(|_| panic!("{cell}"))
}

/// What the tables have of a cluster.
#[derive(Debug, Default)]
struct Known {
    docs: Vec<i64>,
    hosts: BTreeSet<String>,
    similarities: Vec<f32>,
}

/// The clusters of a week, by id.
fn known(of_week: &Path) -> BTreeMap<i64, Known> {
    let mut evidence: BTreeMap<i64, f32> = BTreeMap::new();
    let mut similarities = Vec::new();
    each(of_week, "evidence", "similarity", |array: &arrow_array::Float32Array| similarities.extend(array.values()));
    evidence.extend(longs(of_week, "evidence", "doc").into_iter().zip(similarities));
    let mut known: BTreeMap<i64, Known> = BTreeMap::new();
    let docs = longs(of_week, "clusters", "doc");
    let sizes = longs(of_week, "clusters", "similar_size");
    let ids = longs(of_week, "clusters", "cluster_id");
    let hosts = texts(of_week, "clusters", "host");
    for row in (0..docs.len()).filter(|row| sizes[*row] > 1) {
        let of = known.entry(ids[row]).or_default();
        of.docs.push(docs[row]);
        of.hosts.insert(hosts[row].clone());
        of.similarities.extend(evidence.get(&docs[row]));
    }
    known.values_mut().for_each(|of| of.docs.sort_unstable());
    known
}

#[test]
fn numbers_of_pages_are_those_of_the_tables() {
    let (made, _) = three_weeks();
    let store = made.store();
    let served = Served::start(&store, &[]);
    let weeks = ["2024-01-08", "2024-01-15", "2024-01-22"].map(|date| week(&store, date));
    let all = weeks.each_ref().map(|of_week| known(of_week));
    let now = &all[2];
    let mut before: BTreeMap<i64, i64> = BTreeMap::new();
    let (events, changed) = (texts(&weeks[2], "changes", "event"), longs(&weeks[2], "changes", "cluster_id"));
    for ((event, id), count) in events.iter().zip(&changed).zip(longs(&weeks[2], "changes", "before")) {
        if ["birth", "grow", "shrink"].contains(&event.as_str()) {
            before.insert(*id, count);
        }
    }
    let growth = |id: &i64| now[id].docs.len() as i64 - before.get(id).copied().unwrap_or(now[id].docs.len() as i64);
    let mean = |id: &i64| {
        let of = &now[id].similarities;
        of.iter().map(|value| f64::from(*value)).sum::<f64>() / of.len() as f64
    };
    for order in ["size", "looseness", "growth", "hosts"] {
        let captions = [
            ("size", "Largest clusters"),
            ("looseness", "Loosest clusters"),
            ("growth", "Clusters that grew most"),
            ("hosts", "Clusters of most hosts"),
        ];
        let caption = captions.iter().find(|(name, _)| *name == order).unwrap().1;
        let listed = rows(&served.get(&format!("/clusters?sort={order}")), caption);
        assert_eq!(listed.len(), now.len().min(25), "{order}");
        for row in &listed {
            let id = number(&row[0]);
            let of = &now[&id];
            assert_eq!(number(&row[1]), of.docs.len() as i64);
            assert_eq!(number(&row[2]), of.hosts.len() as i64);
            assert!((row[3].parse::<f64>().unwrap() - mean(&id)).abs() < 0.0006, "{row:?}");
            let least = of.similarities.iter().copied().fold(f32::INFINITY, f32::min);
            assert_eq!(row[4], format!("{least:.3}"));
            assert_eq!(if row[5].is_empty() { 0 } else { number(&row[5]) }, growth(&id), "{row:?}");
        }
        // They are the first ones of the order.
        let first: BTreeSet<i64> = listed.iter().map(|row| number(&row[0])).collect();
        let rank = |id: &i64| -> i64 {
            match order {
                "size" => -(now[id].docs.len() as i64),
                "hosts" => -(now[id].hosts.len() as i64),
                "growth" => -growth(id),
                _ => (mean(id) * 1e6) as i64,
            }
        };
        let worst = first.iter().map(rank).max().unwrap();
        assert!(now.keys().filter(|id| !first.contains(id)).all(|id| rank(id) >= worst - 1), "{order}");
    }
    // The weeks of each cluster that changed, and the pages of all parts of its list.
    let canonical: BTreeMap<i64, bool> =
        longs(&weeks[2], "clusters", "doc").into_iter().zip(booleans(&weeks[2], "clusters", "canonical")).collect();
    for id in changed.iter().filter(|id| now.contains_key(id)).collect::<BTreeSet<_>>().into_iter().take(12) {
        let html = served.get(&format!("/cluster/{id}"));
        for row in rows(&html, &format!("Weeks of cluster {id}")) {
            let place = weeks.iter().position(|of| of.ends_with(format!("week={}", row[0]))).unwrap();
            let docs = |place: usize| -> BTreeSet<i64> {
                all[place].get(id).map_or_else(BTreeSet::new, |of| of.docs.iter().copied().collect())
            };
            assert_eq!(number(&row[1]), docs(place).len() as i64);
            if place > 0 {
                let (before, now) = (docs(place - 1), docs(place));
                assert_eq!(number(&row[2]), now.difference(&before).count() as i64, "{id}: {row:?}");
                assert_eq!(number(&row[3]), before.difference(&now).count() as i64, "{id}: {row:?}");
            }
        }
        let mut listed = Vec::new();
        for part in 1..=now[id].docs.len().div_ceil(25) {
            let html = served.get(&format!("/cluster/{id}?page={part}"));
            let values = html.split("name=\"a\" value=\"").skip(1);
            let docs = values.map(|rest| rest.split('"').next().unwrap().parse::<i64>().unwrap());
            let docs: Vec<i64> = docs.collect();
            let of_rows = rows(&html, "Pages of the cluster");
            assert_eq!(of_rows.len(), docs.len());
            for (row, doc) in of_rows.iter().zip(&docs) {
                assert_eq!(row[6].contains("stays"), canonical[doc]);
                let is_new = !all[1].get(id).is_some_and(|of| of.docs.contains(doc));
                assert_eq!(row[6].contains("joined"), is_new, "{row:?}");
            }
            listed.extend(docs);
        }
        assert_eq!(listed, now[id].docs);
        assert_eq!(served.send("GET", &format!("/cluster/{id}?page=1000"), &[]).status, 404);
    }
    // A host has all of its pages.
    let hosts = texts(&weeks[2], "clusters", "host");
    for row in rows(&served.get("/"), "Hosts with most pages") {
        let count = hosts.iter().filter(|host| **host == row[0]).count();
        assert_eq!(number(&row[1]), count as i64);
        let html = served.get(&format!("/host?name={}", row[0]));
        assert!(
            html.contains(&format!("<h2>{}", if count == 1 { "1 page".into() } else { format!("{} pages", row[1]) }))
        );
        assert_eq!(rows(&html, "Pages of the host").len(), count.min(25));
    }
    // An earlier week is as it was.
    let served = Served::start(&store, &["--week", "2024-01-08"]);
    let listed = rows(&served.get("/clusters"), "Largest clusters");
    assert_eq!(number(&listed[0][1]), all[0].values().map(|of| of.docs.len()).max().unwrap() as i64);
    assert!(!served.get("/").contains("2024-01-15"));
}

#[test]
fn pages_are_found_by_their_names_and_texts() {
    let (made, _) = three_weeks();
    let store = made.store();
    let served = Served::start(&store, &[]);
    let of_week = week(&store, "2024-01-22");
    let (urls, titles) = (texts(&of_week, "documents", "url"), texts(&of_week, "documents", "title"));
    for part in ["releases", "ARM64", "debian.example", "no such text anywhere"] {
        let has = |text: &str| text.to_ascii_lowercase().contains(&part.to_ascii_lowercase());
        let expected: BTreeSet<&str> = (0..urls.len())
            .filter(|row| has(&urls[*row]) || has(&titles[*row]))
            .map(|row| urls[row].as_str())
            .collect();
        let mut found: Vec<String> = Vec::new();
        let mut path = format!("/search?q={}", part.replace(' ', "+"));
        loop {
            let html = served.get(&path);
            let of_walk = html.split("<h2>Pages with it").nth(1).unwrap();
            if of_walk.contains("aria-label=\"Pages\"") {
                found.extend(rows(of_walk, "Pages").into_iter().map(|row| row[0].clone()));
            }
            let Some(next) = of_walk.split("<a href=\"/search").nth(1) else { break };
            path = format!("/search{}", next.split('"').next().unwrap().replace("&amp;", "&"));
        }
        assert_eq!(found.len(), expected.len(), "{part}");
        assert!(found.iter().all(|name| name.contains('…') || expected.contains(name.as_str())), "{part}");
    }
    // A whole URL is looked up.
    let html = served.get(&format!("/search?q={}", urls[3]));
    assert_eq!(rows(html.split("The page with this name").nth(1).unwrap(), "Pages")[0][0], urls[3]);
    // A text finds the pages that `nigh find` does.
    let folder = tempfile::tempdir().unwrap();
    let text = folder.path().join("text.txt");
    let html = served.get("/clusters?sort=size");
    let (_, addresses) = elements(&html, "/clusters");
    let cluster = addresses.iter().find(|address| address.starts_with("/cluster/")).unwrap();
    let (_, of_cluster) = elements(&served.get(cluster), cluster);
    let compare = of_cluster.iter().find(|address| address.starts_with("/compare")).unwrap();
    let words = served.get(compare);
    let words = words.split("<div class=\"words\">").nth(1).unwrap();
    let mut of_a = String::new();
    let mut is_inserted = false;
    for token in Tokenizer::new(words) {
        match token.unwrap() {
            Token::StartTag(tag) if tag.name.0 == b"ins" || tag.name.0 == b"summary" => is_inserted = true,
            Token::EndTag(tag) if tag.name.0 == b"ins" || tag.name.0 == b"summary" => is_inserted = false,
            Token::EndTag(tag) if tag.name.0 == b"div" => break,
            Token::String(part) if !is_inserted => {
                of_a += &String::from_utf8(part.value.0.clone()).unwrap().replace("[-", " ").replace("-]", " ")
            }
            _ => {}
        }
    }
    let of_a: Vec<&str> = of_a.split_whitespace().take(1200).collect();
    std::fs::write(&text, of_a.join(" ")).unwrap();
    let found = run_well(&["find", store.to_str().unwrap(), "--text", text.to_str().unwrap(), "--json"]).stdout;
    let found: Value = serde_json::from_str(&found).unwrap();
    let html = served.get(&format!("/text?text={}", of_a.join("+").replace(['&', '#', '%'], "")));
    assert!(html.contains("share a supershingle"), "{html}");
    if let Some(first) = found["found"].as_array().unwrap().first() {
        assert_eq!(rows(&html, "Pages")[0][4], format!("{:.2}", first["similarity"].as_f64().unwrap()));
    }
    assert!(served.get("/text?text=%21").contains("has no word"));
}

#[test]
fn two_pages_are_compared_word_by_word() {
    let (made, _) = three_weeks();
    let store = made.store();
    let served = Served::start(&store, &[]);
    let of_week = week(&store, "2024-01-22");
    let (docs, urls) = (longs(&of_week, "documents", "doc"), texts(&of_week, "documents", "url"));
    let names: BTreeMap<i64, &str> = docs.iter().copied().zip(urls.iter().map(String::as_str)).collect();
    let mut compared = 0;
    let links = longs(&of_week, "evidence", "doc").into_iter().zip(longs(&of_week, "evidence", "neighbour"));
    let mut similarities = Vec::new();
    each(&of_week, "evidence", "similarity", |array: &arrow_array::Float32Array| similarities.extend(array.values()));
    // Some pairs with other words, and some with the same.
    let links: Vec<((i64, i64), f32)> = links.zip(similarities).collect();
    let of = |is_wanted: fn(f32) -> bool, most: usize| links.iter().filter(move |(_, of)| is_wanted(*of)).take(most);
    for ((a, b), _) in of(|of| of < 0.99, 6).chain(of(|of| of == 1.0, 2)) {
        let html = served.get(&format!("/compare?a={a}&b={b}"));
        let why = run_well(&["why", store.to_str().unwrap(), names[a], names[b], "--json"]).stdout;
        let why: Value = serde_json::from_str(&why).unwrap();
        let text = format!("{:.3} similar: ", why["texts"]["similarity"].as_f64().unwrap());
        assert!(html.contains(&text), "{text}");
        let sketches = format!("about {:.2} similar", why["sketches"]["similarity"].as_f64().unwrap());
        assert!(html.contains(&sketches), "{sketches}");
        // Words that only one has are marked, also without style.
        let is_same = why["texts"]["differing"].as_array().unwrap().iter().all(|of| of.as_array().unwrap().is_empty());
        assert!(
            is_same || html.contains("<del id=\"change1\">[-") || html.contains("<ins id=\"change1\">{+"),
            "{html}"
        );
        compared += usize::from(!is_same);
        let back = served.get(&format!("/compare?a={b}&b={a}"));
        assert!(back.contains(&text));
    }
    assert!(compared > 0);
    // Without the crawl files a sentence says so.
    let folder = tempfile::tempdir().unwrap();
    let input = folder.path().join("pages.jsonl");
    let page = |n: u32| {
        let words: String = (0..80).map(|word| format!("w{word} ")).collect();
        json!({"url": format!("http://{n}.example/"), "html": format!("<p>{words} own{n}")})
    };
    std::fs::write(&input, (0..3).map(|n| format!("{}\n", page(n))).collect::<String>()).unwrap();
    let job = job(
        folder.path(),
        "[cluster]\nweek = \"2024-01-08\"\n[cluster.read.columns]\nurl = \"url\"\nhtml = \"html\"\n",
    );
    let made = Made::with_job(&job, &["--input", input.to_str().unwrap()]);
    let docs = longs(&made.week(), "documents", "doc");
    let path = format!("/compare?a={}&b={}", docs[0], docs[1]);
    let served = Served::start(&made.store(), &[]);
    let html = served.get(&path);
    assert!(html.contains("<del id=\"change1\">[-own") && html.contains("<ins>{+own"), "{html}");
    drop(served);
    let moved = folder.path().join("moved.jsonl");
    std::fs::rename(&input, &moved).unwrap();
    let served = Served::start(&made.store(), &[]);
    assert!(served.get(&path).contains("Their texts are not there"));
    std::fs::write(&input, "").unwrap();
    let served = Served::start(&made.store(), &[]);
    assert!(served.get(&path).contains("Their texts "), "a file that has other pages now");
}

#[test]
fn merges_and_splits_of_clusters_are_told() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("store");
    let job = job(folder.path(), "[cluster]\n[cluster.read.columns]\nurl = \"url\"\nhtml = \"html\"\n");
    // The text of each of five pages, by week.
    for (date, kinds) in [("2024-01-08", [1, 1, 1, 2, 2]), ("2024-01-15", [1; 5]), ("2024-01-22", [1, 1, 1, 3, 3])] {
        let input = folder.path().join(format!("{date}.jsonl"));
        let page = |(n, kind): (usize, &i32)| {
            let words: String = (0..80).map(|word| format!("w{kind}x{word} ")).collect();
            format!("{}\n", json!({"url": format!("http://{n}.example/"), "html": format!("<p>{words}</p>")}))
        };
        std::fs::write(&input, kinds.iter().enumerate().map(page).collect::<String>()).unwrap();
        let [job, store, input] = [&job, &store, &input].map(|path| path.to_str().unwrap());
        run_well(&["run", job, "--quiet", "--store", store, "--week", date, "--input", input]);
    }
    let of_week = week(&store, "2024-01-15");
    let (changed, events) = (longs(&of_week, "changes", "cluster_id"), texts(&of_week, "changes", "event"));
    let merged = changed[events.iter().position(|event| event == "merge").unwrap()];
    let kept = longs(&of_week, "clusters", "cluster_id")[0];
    let of_week = week(&store, "2024-01-22");
    let (changed, events) = (longs(&of_week, "changes", "other_cluster_id"), texts(&of_week, "changes", "event"));
    let split = changed[events.iter().position(|event| event == "split").unwrap()];
    let served = Served::start(&store, &[]);
    let told = |id: i64| -> Vec<String> {
        let rows = rows(&served.get(&format!("/cluster/{id}")), &format!("Weeks of cluster {id}"));
        rows.into_iter().map(|row| row.join("|")).collect()
    };
    assert_eq!(
        told(kept),
        [
            format!("2024-01-22|3|0|2|split: 2 pages went to cluster {split}."),
            format!("2024-01-15|5|2|0|merged: cluster {merged} came into it with 2 pages."),
            "2024-01-08|3|||".to_owned(),
        ]
    );
    let into = format!("2024-01-15|0|0|2|merged: it went into cluster {kept} with 2 pages.");
    assert_eq!(told(merged), [into, "2024-01-08|2|||".to_owned()]);
    assert_eq!(told(split), [format!("2024-01-22|2|2|0|split: 2 pages came from cluster {kept}.")]);
    assert!(served.get(&format!("/cluster/{merged}")).contains("does not have this cluster any more"));
    walk(&served, 20);
}

#[test]
fn bad_requests_and_other_sites_are_refused() {
    let made = Made::new(&[]);
    let store = made.store();
    let mut served = Served::start(&store, &[]);
    let doc = longs(&made.week(), "documents", "doc")[0];
    for (path, status) in [
        ("/nothing", 404),
        ("/../../../etc/passwd", 404),
        ("/%2e%2e/%2e%2e/etc/passwd", 404),
        ("/style.css/..%2f..%2fetc/passwd", 404),
        ("/page/1152921504606846975", 404),
        ("/page/x", 400),
        ("/cluster/1152921504606846975", 404),
        ("/cluster/-1", 400),
        ("/cluster/99999999999999999999999", 400),
        ("/clusters?sort=x", 400),
        ("/clusters?page=0", 400),
        ("/clusters?page=9223372036854775807", 404),
        ("/clusters?page=99999999999999999999", 400),
        ("/host?name=nowhere.example", 404),
        ("/host?name=%00", 404),
        ("/host", 400),
        ("/search", 400),
        ("/search?q=a&piece=99999", 404),
        ("/search?q=a&piece=0&row=9223372036854775807", 404),
        ("/search?q=%ff", 400),
        ("/compare?a=1", 400),
        (&format!("/compare?a={doc}&b={doc}"), 400),
        (&format!("/compare?a={doc}&b=1152921504606846975"), 404),
        ("/text?text=", 400),
        ("/?x=1", 400),
    ] {
        let answer = served.send("GET", path, &[]);
        assert_eq!(answer.status, status, "{path}: {}", answer.body);
    }
    for method in ["POST", "PUT", "DELETE", "OPTIONS", "TRACE", "PATCH"] {
        let answer = served.send(method, "/", &[]);
        assert!(answer.status == 405 && answer.head.contains("allow: GET"), "{method}: {answer:?}");
    }
    for headers in [
        &[("Host", "evil.example")][..],
        &[("Host", "127.0.0.1.evil.example")],
        &[("Host", "10.0.0.1:7745")],
        &[("Sec-Fetch-Site", "cross-site")],
    ] {
        assert_eq!(served.send("GET", "/", headers).status, 403, "{headers:?}");
    }
    assert_eq!(served.send("GET", "/", &[("Host", "localhost")]).status, 200);
    let two = "GET / HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\nConnection: close\r\n\r\n";
    assert_eq!(served.raw(two.as_bytes()).unwrap().status, 400);
    let none = "GET / HTTP/1.1\r\nConnection: close\r\n\r\n";
    assert_eq!(served.raw(none.as_bytes()).unwrap().status, 400);
    let absolute = "GET http://evil.example/ HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    assert_eq!(served.raw(absolute.as_bytes()).unwrap().status, 403);
    // Heads that are too large, or no HTTP.
    let large =
        format!("GET /search?q={} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", "a".repeat(200_000));
    assert!(served.raw(large.as_bytes()).is_none_or(|answer| (400..500).contains(&answer.status)));
    assert!(
        served.raw(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n").is_none_or(|answer| answer.status == 400)
    );
    // Connections that say nothing delay no other one.
    let silent: Vec<TcpStream> = (0..40).map(|_| TcpStream::connect(served.address).unwrap()).collect();
    let begun = Instant::now();
    let answer = served.send("GET", "/", &[]);
    assert!(begun.elapsed() < Duration::from_secs(5), "it waits for others");
    for header in [
        "content-security-policy: default-src 'none'; style-src 'self'",
        "x-content-type-options: nosniff",
        "referrer-policy: no-referrer",
    ] {
        assert!(answer.head.contains(header), "{}", answer.head);
    }
    // They are closed after ten seconds.
    let mut first = &silent[0];
    first.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    let mut rest = Vec::new();
    let closed = first.read_to_end(&mut rest);
    assert!(closed.is_ok() || begun.elapsed() < Duration::from_secs(30), "{closed:?}");
    drop(silent);
    assert_eq!(std::fs::read_dir(served.temporary.path()).unwrap().count(), 1, "the index");
    assert_eq!(served.end("-INT"), Some(130));
    assert_eq!(std::fs::read_dir(served.temporary.path()).unwrap().count(), 0, "nothing is left behind");
    // Only addresses of this machine.
    let refused = run(&["browse", store.to_str().unwrap(), "--listen", "0.0.0.0:7745"]);
    assert!(refused.code == Some(2) && refused.stderr.contains("an address of this machine"), "{}", refused.stderr);
    let missing = run(&["browse", "/nowhere", "--listen", "127.0.0.1:0"]);
    assert!(missing.code == Some(1) && missing.stderr.contains("is not a nigh store"), "{}", missing.stderr);
}

#[test]
fn a_store_that_changes_meanwhile_is_told_and_empty_ones_are_shown() {
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("store");
    let made = Made::new(&[]);
    copy_folder(&made.store(), &copy);
    let served = Served::start(&copy, &[]);
    let path = served.get("/clusters");
    let (_, addresses) = elements(&path, "/clusters");
    let cluster = addresses.iter().find(|address| address.starts_with("/cluster/")).unwrap();
    std::fs::remove_dir_all(copy.join("evidence")).unwrap();
    let answer = served.send("GET", cluster, &[]);
    // Files that are open are there until the end.
    assert!(answer.status == 200 || answer.status == 503 && answer.body.contains("start `nigh browse` again"));
    drop(served);
    let input = folder.path().join("texts.jsonl");
    std::fs::write(&input, format!("{}\n{}\n", json!({"text": "one two three"}), json!({"text": "four five six"})))
        .unwrap();
    let job = job(folder.path(), "[cluster]\nweek = \"2024-01-08\"\n");
    let made = Made::with_job(&job, &["--input", input.to_str().unwrap()]);
    let served = Served::start(&made.store(), &[]);
    assert!(served.get("/clusters").contains("it has no cluster"));
    assert!(served.get("/").contains("no hosts"));
    walk(&served, 20);
}

#[test]
fn hostile_texts_are_texts_on_every_page() {
    let folder = tempfile::tempdir().unwrap();
    hostile(folder.path());
    let store = folder.path().join("<script>window.harmed=1<'script'>");
    let served = Served::start(&store, &[]);
    let pages = walk(&served, 25);
    let all: String = pages.values().map(String::as_str).collect();
    assert!(all.contains("&lt;/script&gt;&lt;script&gt;window.harmed"), "the titles are there");
    for c in ['\u{202e}', '\u{2066}', '\u{feff}'] {
        assert!(!all.contains(c), "{c:?}");
    }
    for (path, html) in &pages {
        assert!(html.len() < 3_000_000, "{path}: {} bytes", html.len());
    }
    // What is asked for is hostile, too.
    for text in HOSTILE {
        let encoded: String = text.bytes().map(|byte| format!("%{byte:02X}")).collect();
        for path in [
            format!("/search?q={encoded}"),
            format!("/text?text={encoded}"),
            format!("/host?name={encoded}"),
            format!("/{encoded}"),
        ] {
            let answer = served.send("GET", &path, &[]);
            assert!(answer.status < 500, "{path}: {answer:?}");
            let (names, _) = elements(&answer.body, &path);
            assert!(names.iter().all(|name| WRITTEN.contains(&name.as_str())), "{path}: {names:?}");
        }
    }
    let Some(mut browser) = Browser::start("a browser shows hostile pages of a store") else { return };
    for path in pages.keys().filter(|path| path.starts_with("/cluster/") || path.starts_with("/compare")).take(10) {
        let events = browser.visit(&format!("http://{}{path}", served.address));
        assert_eq!(complaints(&events), Vec::<Value>::new(), "{path}");
        assert_eq!(browser.value("window.harmed === undefined"), true);
        assert_eq!(browser.value("document.querySelectorAll('script, style, base, img, iframe, object').length"), 0);
    }
    // The policy holds where escaping would fail.
    let other = "(() => { const script = document.createElement('script'); script.textContent = 'window.harmed = 1'; \
                 document.body.append(script); document.body.insertAdjacentHTML('beforeend', '<p id=late style=\"display:none\">late</p>'); \
                 return window.harmed === undefined && getComputedStyle(document.getElementById('late')).display !== 'none'; })()";
    assert_eq!(browser.value(other), true);
}

#[test]
fn a_browser_shows_all_pages_on_any_screen() {
    let (made, _) = three_weeks();
    let store = made.store();
    for job in ["jobs/mirrors.toml", "jobs/collections.toml"] {
        run_well(&["run", job, "--quiet", "--store", store.to_str().unwrap()]);
    }
    let Some(mut browser) = Browser::start("a browser browses a store") else { return };
    let served = Served::start(&store, &[]);
    let pages = walk(&served, 3);
    let mut paths: Vec<&str> = pages.keys().map(String::as_str).collect();
    paths.extend(["/search?q=releases", "/text?text=one+two+three", "/nothing"]);
    for scheme in ["light", "dark"] {
        let media = json!({"features": [{"name": "prefers-color-scheme", "value": scheme}]});
        browser.call("Emulation.setEmulatedMedia", media);
        for width in [390, 800, 1400] {
            let screen = json!({"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": width < 600});
            browser.call("Emulation.setDeviceMetricsOverride", screen);
            for path in &paths {
                let events = browser.visit(&format!("http://{}{path}", served.address));
                let of_page = complaints(&events);
                assert!(of_page.is_empty() || *path == "/nothing", "{path} {width} {scheme}: {of_page:?}");
                let beyond = "document.documentElement.scrollWidth - document.documentElement.clientWidth";
                assert_eq!(browser.value(beyond), 0, "{path} {width} {scheme}: the page scrolls sideways");
                assert_eq!(browser.value(BAD_LABELS), json!([]), "{path} {width} {scheme}");
                let colour = browser.value("getComputedStyle(document.body).backgroundColor");
                assert_eq!(colour == "rgb(253, 253, 251)", scheme == "light", "{path}: {colour}");
            }
        }
    }
    // By the keyboard: the form of a cluster compares two pages.
    let cluster = paths.iter().find(|path| path.starts_with("/cluster/")).unwrap();
    browser.visit(&format!("http://{}{cluster}", served.address));
    browser.value("document.querySelector('form[action=\"/compare\"] button').focus()");
    browser.press("Enter", Some("\r"));
    let begun = Instant::now();
    while browser.value("location.pathname") != "/compare" {
        assert!(begun.elapsed() < Duration::from_secs(20), "{}", browser.value("location.href"));
        std::thread::sleep(Duration::from_millis(50));
    }
    // Nothing was asked of another address.
    let asked = browser.value("performance.getEntriesByType('resource').map((entry) => entry.name)");
    let own = format!("http://{}/", served.address);
    assert!(asked.as_array().unwrap().iter().all(|name| name.as_str().unwrap().starts_with(&own)), "{asked}");
    if let Some(folder) = std::env::var_os("NIGH_PICTURES") {
        pictures(&mut browser, &served, &paths, Path::new(&folder));
    }
}

/// Writes what the browser shows, for a person to look at.
fn pictures(browser: &mut Browser, served: &Served, paths: &[&str], folder: &Path) {
    use base64::Engine as _;
    for (number, path) in paths.iter().enumerate() {
        for (width, scheme) in [(390, "dark"), (1400, "light")] {
            let media = json!({"features": [{"name": "prefers-color-scheme", "value": scheme}]});
            browser.call("Emulation.setEmulatedMedia", media);
            let screen = json!({"width": width, "height": 1000, "deviceScaleFactor": 1, "mobile": width < 600});
            browser.call("Emulation.setDeviceMetricsOverride", screen);
            browser.visit(&format!("http://{}{path}", served.address));
            let shown = browser.call("Page.captureScreenshot", json!({"format": "png"}));
            let bytes = base64::engine::general_purpose::STANDARD.decode(shown["data"].as_str().unwrap()).unwrap();
            let kind: String = path.chars().filter(char::is_ascii_alphanumeric).take(20).collect();
            std::fs::write(folder.join(format!("{number:02}-{kind}-{width}.png")), bytes).unwrap();
        }
    }
}
