//! Search, and pages word by word, against `nigh find` and `nigh why`.

use std::collections::{BTreeMap, BTreeSet};

use html5gum::{Token, Tokenizer};
use serde_json::{Value, json};

use super::{Served, elements, rows};
use crate::looking::page::three_weeks;
use crate::program::{Made, each, job, longs, run_well, texts, week};

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
    // The longest text that the form takes fits into an address.
    assert!(served.get("/").contains("maxlength=\"7000\""));
    served.get(&format!("/text?text={}", "%E4%B8%AD".repeat(7000)));
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
