//! What a client that follows changes is told, over commits and restarts.

use std::collections::BTreeMap;

use nigh::live::{Limits, Service};
use nigh::records::DocumentKey;
use nigh::state::Store;
use serde_json::{Value, json};

use super::commits::run_commands;
use crate::live::{body, text_of};
use crate::program::run_well;

/// A service, and what a client of it knows: clusters, by the changes that it was told.
struct Told {
    number: u64,
    clusters: BTreeMap<i64, u64>,
}

impl Told {
    /// Asks for changes. If these are gone, it says so, and nothing is known any more.
    fn ask(&mut self, service: &mut Service) -> bool {
        let lines = match service.changes(self.number, 10_000) {
            Ok(lines) => lines,
            Err(refusal) => {
                assert_eq!(refusal.status, 410, "{refusal}");
                return false;
            }
        };
        for change in String::from_utf8(lines.to_vec()).unwrap().lines() {
            let change: Value = serde_json::from_str(change).unwrap();
            let number = change["number"].as_u64().unwrap();
            assert!(number > self.number, "{change} after {}", self.number);
            self.number = number;
            let (cluster, after) = (change["cluster"].as_i64().unwrap(), change["after"].as_u64().unwrap());
            match change["event"].as_str().unwrap() {
                "birth" => assert_eq!(self.clusters.insert(cluster, after), None, "{change}"),
                "grow" | "shrink" => assert!(self.clusters.insert(cluster, after).is_some(), "{change}"),
                "death" => assert!(self.clusters.remove(&cluster).is_some(), "{change}"),
                "rename" => {
                    let size = self.clusters.remove(&cluster).unwrap_or_else(|| panic!("{change}"));
                    assert_eq!(self.clusters.insert(change["into"].as_i64().unwrap(), size), None, "{change}");
                }
                "merge" | "split" => {
                    if change["event"] == "merge" {
                        assert!(self.clusters.remove(&cluster).is_some(), "{change}");
                    }
                    self.clusters.insert(change["into"].as_i64().unwrap(), after);
                }
                event => panic!("{event}"),
            }
        }
        true
    }
}

/// The clusters of a service, by the answers of all documents.
fn clusters_of(service: &mut Service, ids: impl Iterator<Item = u64>) -> BTreeMap<i64, u64> {
    let mut clusters = BTreeMap::new();
    for id in ids {
        let Ok(line) = service.document(&id.to_string(), false) else { continue };
        let answer: Value = serde_json::from_slice(&line).unwrap();
        answer["cluster"].as_i64().into_iter().for_each(|id| _ = clusters.insert(id, answer["size"].as_u64().unwrap()));
    }
    clusters
}

#[test]
fn a_client_that_follows_changes_is_told_all_of_them_once_or_to_read_again() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::at(&folder.path().join("store"));
    let root = store.root().to_str().unwrap().to_owned();
    let open = || Service::open(&store, Some(DocumentKey::Id), 1, Limits::default()).unwrap().0;
    let mut service = open();
    let line = |id: u64, family: u64| json!({"id": id, "text": text_of(family, 0)});
    let pairs = |families: std::ops::Range<u64>| -> Vec<Value> {
        families.flat_map(|family| [line(2 * family, family), line(2 * family + 1, family)]).collect()
    };
    let add = |service: &mut Service, lines: &[Value]| _ = service.add(None, body(lines).as_bytes()).unwrap();
    let mut told = Told { number: 0, clusters: BTreeMap::new() };
    let same = |service: &mut Service, told: &mut Told| {
        let was_told = told.ask(service);
        let now = clusters_of(service, 0..200);
        if was_told {
            assert_eq!(told.clusters, now);
        } else {
            // It reads the clusters again, and asks for changes after the last one.
            told.clusters = now;
            told.number = service.counts().0.changes;
        }
        was_told
    };
    // Some clusters keep their ids at a commit, and one gets another.
    add(&mut service, &pairs(0..5));
    assert!(same(&mut service, &mut told));
    service.commit(&mut |commitment| run_commands(store.root(), commitment)).unwrap();
    assert!(same(&mut service, &mut told), "the renames are told");
    add(&mut service, &pairs(5..6));
    service.commit(&mut |commitment| run_commands(store.root(), commitment)).unwrap();
    assert!(same(&mut service, &mut told));
    // Two clusters exchange their documents one by one, so that the tables exchange their ids.
    let of_family = |family: u64, ids: std::ops::Range<u64>| ids.map(|id| line(id, family)).collect::<Vec<_>>();
    add(&mut service, &[of_family(40, 100..103), of_family(41, 103..107)].concat());
    service.commit(&mut |commitment| run_commands(store.root(), commitment)).unwrap();
    assert!(same(&mut service, &mut told));
    (100..103).for_each(|id| add(&mut service, &[line(id, 41), line(id + 3, 40)]));
    add(&mut service, &[line(106, 40)]);
    assert!(same(&mut service, &mut told));
    service.commit(&mut |commitment| run_commands(store.root(), commitment)).unwrap();
    let renamed = String::from_utf8(service.changes(told.number, 10).unwrap().to_vec()).unwrap();
    assert_eq!(renamed.matches("\"rename\"").count(), 3, "one of two has an id in between: {renamed}");
    assert!(same(&mut service, &mut told), "the renames are done one by one");
    add(&mut service, &pairs(6..12));
    assert!(same(&mut service, &mut told));
    // A process that starts has what was told under the same numbers.
    for _ in 0..2 {
        drop(service);
        service = open();
        assert!(same(&mut service, &mut told), "a restart tells nothing new");
    }
    add(&mut service, &pairs(12..13));
    assert!(same(&mut service, &mut told));
    // Another program changes the tables between two processes: nothing is pending then.
    service.commit(&mut |commitment| run_commands(store.root(), commitment)).unwrap();
    assert!(same(&mut service, &mut told));
    drop(service);
    service = open();
    same(&mut service, &mut told);
    drop(service);
    let more = folder.path().join("more.jsonl");
    std::fs::write(&more, body(&pairs(20..22))).unwrap();
    type Foreign<'a> = (&'a str, &'a dyn Fn());
    let foreign: [Foreign<'_>; 3] = [
        ("add", &|| {
            run_well(&["add", &root, "-q", "--id", "id", "--input", more.to_str().unwrap()]);
        }),
        ("delete", &|| {
            run_well(&["delete", "-q", "--store", &root, "--id", "3"]);
        }),
        ("reshard", &|| {
            let shards = 2 * store.manifest().unwrap().unwrap().method.shards;
            run_well(&["reshard", &root, "--shards", &shards.to_string(), "-q"]);
        }),
    ];
    for (what, change) in foreign {
        change();
        for is_new in [true, false] {
            service = open();
            assert_eq!(!same(&mut service, &mut told), is_new, "after {what}");
            drop(service);
        }
        service = open();
        add(&mut service, &[line(150, 30), line(151, 30), json!({"id": 151, "delete": true})]);
        add(&mut service, &[line(151, 30)]);
        assert!(same(&mut service, &mut told), "after {what}");
        service.commit(&mut |commitment| run_commands(store.root(), commitment)).unwrap();
        assert!(same(&mut service, &mut told), "after {what}");
        drop(service);
    }
}
