//! The pages that `nigh browse` serves.
//!
//! `numbers` compares them with the tables, `texts` with `nigh find` and `nigh why`; `requests` are
//! those of others, and `browser` is what a browser shows.

mod browser;
mod numbers;
mod requests;
mod texts;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io::{BufRead, BufReader, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use html5gum::{Token, Tokenizer};

use crate::live::{Response, response};
use crate::looking::page::three_weeks;
use crate::program::{data, longs, nigh, run_well, week};

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
    drop(served);
    // The last week again, from other files: what studies found is of the week as it was.
    let inputs = data("week-2024-01-15/*.warc.gz");
    let replace = ["--week", "2024-01-22", "--replace", "--input", inputs.to_str().unwrap()];
    run_well(&[&["run", "jobs/example.toml", "--quiet", "--store", name][..], &replace].concat());
    let served = Served::start(&store, &[]);
    let lacks_mirrors = |html: &str| html.contains("nigh run jobs/mirrors.toml");
    let of_hosts: Vec<_> = pages.iter().filter(|(_, html)| html.contains("Mirrors by content")).collect();
    assert!(!of_hosts.is_empty() && !of_hosts.iter().any(|(_, html)| lacks_mirrors(html)));
    let answers = of_hosts.iter().map(|(path, _)| served.send("GET", path, &[]));
    let there: Vec<String> = answers.filter(|answer| answer.status == 200).map(|answer| answer.body).collect();
    assert!(!there.is_empty() && there.iter().all(|html| lacks_mirrors(html)));
}
