//! `nigh roll-up` against lists that are rolled up by brute force.

use std::collections::{BTreeMap, BTreeSet};

use super::twin::{self, CollectionsSettings};
use super::{RandomWeb, random_numbers};
use crate::program::{rows_of, run, run_well};
use crate::web::WEEKS;

/// A list rolled up by brute force: each hit with what is below it.
fn rolled(list: &[String], pages: &BTreeMap<String, (String, Option<String>)>) -> Vec<(String, Vec<(String, String)>)> {
    let mut hits: Vec<(String, Vec<(String, String)>)> = Vec::new();
    for url in list {
        let above = pages.get(url).and_then(|(root, cluster)| {
            hits.iter().position(|(hit, _)| match pages.get(hit) {
                Some((other, of)) => other == root || cluster.is_some() && of == cluster,
                None => false,
            })
        });
        match above {
            Some(hit) => {
                let why = if pages[&hits[hit].0].0 == pages[url].0 { "replica" } else { "collection" };
                hits[hit].1.push((why.to_owned(), url.clone()));
            }
            None => hits.push((url.clone(), Vec::new())),
        }
    }
    hits
}

#[test]
fn lists_are_rolled_up_as_by_brute_force() {
    for level in ["similar", "identical", "overlap"] {
        let made = RandomWeb::new(21, 1);
        let store = made.path();
        let store_text = store.to_str().unwrap();
        let roll_up = |input: &str, flags: &[&str]| {
            let file = made.folder.path().join("lists");
            std::fs::write(&file, input).unwrap();
            run(&[&["roll-up", "--store", store_text, file.to_str().unwrap()], flags].concat())
        };
        let ran = roll_up("http://a.example/\n", &[]);
        assert!(ran.code == Some(1) && ran.stderr.contains("nigh run jobs/collections.toml"), "{}", ran.stderr);
        run_well(&["run", "jobs/overlap.toml", "-q", "--store", store_text]);
        CollectionsSettings { level, least_size: 3, share: 0.4, ..CollectionsSettings::default() }.run(&store, &[]);
        let of_page = rows_of(&store.join("collections"), "pages", &["doc", "cluster"]);
        let of_page: BTreeMap<String, String> =
            of_page.into_iter().map(|row| (row[0].clone(), row[1].clone())).collect();
        let all = twin::pages(&store, WEEKS[0], level);
        let pages: BTreeMap<String, (String, Option<String>)> = all
            .values()
            .map(|page| (page.url.clone(), (page.root.to_string(), of_page.get(&page.doc.to_string()).cloned())))
            .collect();
        let urls: Vec<&String> = pages.keys().collect();
        let mut random = random_numbers(5);
        let mut lists: Vec<Vec<String>> = Vec::new();
        for _ in 0..40 {
            let mut list: Vec<String> =
                (0..1 + random(30)).map(|_| urls[random(urls.len() as u64) as usize].clone()).collect();
            list.insert(0, format!("http://elsewhere.example/{}", random(9)));
            list.sort();
            list.dedup();
            lists.push(list);
        }
        let expected: Vec<_> = lists.iter().map(|list| rolled(list, &pages)).collect();
        let folded = expected.iter().flatten().flat_map(|(_, below)| below.iter().map(|(why, _)| &**why));
        let folded: BTreeSet<&str> = folded.collect();
        assert!(folded.contains("replica") && (folded.contains("collection") || level == "overlap"), "{folded:?}");
        let text: Vec<String> = expected
            .iter()
            .map(|hits| {
                let below = |(why, url): &(String, String)| format!("\t{why}\t{url}\n");
                hits.iter().map(|(hit, all)| format!("{hit}\n{}", all.iter().map(below).collect::<String>())).collect()
            })
            .collect();
        let ran = roll_up(&lists.iter().map(|list| list.join("\n") + "\n\n").collect::<String>(), &[]);
        assert_eq!(ran.stdout, text.join("\n"), "{}", ran.stderr);
        // The same as JSON Lines.
        let line = |list: &Vec<String>| {
            format!(
                "{{\"id\": 12345678901234567890123, \"gr\\u00f6\\u00dfe\": 1, \"query\": {}, \"urls\": {}}}\n",
                list.len(),
                serde_json::json!(list)
            )
        };
        let ran = roll_up(&lists.iter().map(line).collect::<String>(), &[]);
        let json = |hits: &Vec<(String, Vec<(String, String)>)>| {
            let hit = |(url, all): &(String, Vec<(String, String)>)| {
                let below: Vec<_> = all.iter().map(|(why, url)| serde_json::json!({"url": url, "why": why})).collect();
                if below.is_empty() {
                    serde_json::json!({"url": url})
                } else {
                    serde_json::json!({"url": url, "folded": below})
                }
            };
            serde_json::Value::from(hits.iter().map(hit).collect::<Vec<_>>())
        };
        for ((line, hits), list) in ran.stdout.lines().zip(&expected).zip(&lists) {
            assert!(line.contains("\"größe\":1,") && line.contains("\"id\":12345678901234567890123,"), "{line}");
            let found: serde_json::Value = serde_json::from_str(line).unwrap();
            assert_eq!((&found["query"], &found["hits"]), (&list.len().into(), &json(hits)));
        }
        assert_eq!(ran.stdout.lines().count(), expected.len());
        for (input, wanted) in [
            ("{\"urls\": [1]}\n", "line 1: `urls` is not an array of URLs"),
            ("[\"http://a.example/\"]\n{\"url\": \"x\"}\n", "line 2: the object has no array `urls`"),
            ("http://a.example/\n{\"urls\": []}\n", "line 2: JSON in a list"),
            ("{\"urls\": [], \"hits\": 1}\n", "line 1: the object has a field `hits`"),
            ("[\n", "line 1: it is not a JSON array"),
        ] {
            let ran = roll_up(input, &[]);
            assert!(ran.code == Some(1) && ran.stderr.contains(wanted), "{}", ran.stderr);
        }
        assert_eq!(roll_up("", &[]).stdout, "");
        if level == "overlap" {
            run_well(&["run", "jobs/overlap.toml", "-q", "--store", store_text]);
            let ran = roll_up("", &[]);
            assert!(ran.code == Some(1) && ran.stderr.contains("jobs/overlap.toml"), "{}", ran.stderr);
        }
    }
}
