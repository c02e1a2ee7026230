//! The numbers of pages against the tables.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde_json::json;

use super::{Served, number, rows, walk};
use crate::looking::page::three_weeks;
use crate::program::{booleans, each, job, longs, run_well, texts, week};

/// What the tables have of a cluster.
#[derive(Debug, Default)]
struct KnownCluster {
    docs: Vec<i64>,
    hosts: BTreeSet<String>,
    similarities: Vec<f32>,
}

/// The clusters of a week, by id.
fn known(of_week: &Path) -> BTreeMap<i64, KnownCluster> {
    let mut evidence: BTreeMap<i64, f32> = BTreeMap::new();
    let mut similarities = Vec::new();
    each(of_week, "evidence", "similarity", |array: &arrow_array::Float32Array| similarities.extend(array.values()));
    evidence.extend(longs(of_week, "evidence", "doc").into_iter().zip(similarities));
    let mut known: BTreeMap<i64, KnownCluster> = BTreeMap::new();
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
    // The links of a whole cluster hold it together: its picture is one tree, with one
    // page at the left. The evidence alone leaves two in one of these clusters.
    for id in now.keys() {
        assert_eq!(served.get(&format!("/cluster/{id}")).matches("cx=\"12\"").count(), 1, "cluster {id}");
    }
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
        assert!(served.get(&format!("/host?name={}:80", row[0].to_uppercase())) == html, "{}", row[0]);
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
