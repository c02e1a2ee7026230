//! Documents of ready features: the clusters are those of their texts, also after commits and
//! kills.

use std::collections::BTreeMap;
use std::path::Path;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};

use crate::live::{Live, Numbers, apply, body, found_by_run, found_live};
use crate::program::{bytes, longs, texts, week};

/// The lines of the documents of a store, by name, as features.
pub fn ready(store: &Path) -> BTreeMap<String, Value> {
    let of = week(store, "2024-01-08");
    let by_doc = |column: &str| -> BTreeMap<i64, Vec<u8>> {
        longs(&of, "features", "doc").into_iter().zip(bytes(&of, "features", column)).collect()
    };
    let (supershingles, features) = (by_doc("supershingles"), by_doc("features"));
    let encoded = |of: &BTreeMap<i64, Vec<u8>>, doc: &i64| {
        of.get(doc).map(|bytes| BASE64_STANDARD.encode(bytes)).unwrap_or_default()
    };
    let (ids, docs) = (texts(&of, "documents", "id"), longs(&of, "documents", "doc"));
    let sums = bytes(&of, "documents", "checksum");
    let line = |((id, doc), sum): ((String, i64), Vec<u8>)| {
        let checksum: String = sum.iter().map(|byte| format!("{byte:02x}")).collect();
        let line = json!({
            "id": id,
            "supershingles": encoded(&supershingles, &doc),
            "features": encoded(&features, &doc),
            "checksum": checksum,
        });
        (id, line)
    };
    ids.into_iter().zip(docs).zip(sums).map(line).collect()
}

#[test]
fn clusters_of_ready_features_are_those_of_the_texts() {
    let folder = tempfile::tempdir().unwrap();
    let (mut numbers, mut there) = (Numbers(17), BTreeMap::new());
    let documents: Vec<Value> = (0..60).map(|name| json!({"id": name, "text": numbers.text()})).collect();
    apply(&mut there, &documents);
    let wanted = found_by_run(folder.path(), "run", &there);
    let ready = ready(&folder.path().join("run"));
    assert_eq!(ready.len(), 60);
    let store = folder.path().join("store");
    let live = Live::start(&store, &["--by", "id"]);
    live.post("1", &ready.values().cloned().collect::<Vec<_>>());
    assert_eq!(found_live(&live, &there), wanted);
    // No table can have them: they stay in the journal.
    let committed = live.send("POST", "/commit", &[], b"");
    assert!(committed.status == 200 && committed.body.contains("\"documents\":0"), "{committed:?}");
    assert_eq!(found_live(&live, &there), wanted);
    drop(live);
    let live = Live::start(&store, &[]);
    assert_eq!(found_live(&live, &there), wanted);

    // Texts take the place of half of them.
    let (of_texts, of_features): (Vec<Value>, Vec<Value>) =
        documents.iter().cloned().partition(|line| line["id"].as_u64().unwrap() % 2 == 0);
    live.post("2", &of_texts);
    assert_eq!(found_live(&live, &there), wanted);
    let tables = |live: &Live| {
        let committed = live.send("POST", "/commit", &[], b"");
        assert_eq!(committed.status, 200, "{committed:?}");
        let committed: Value = serde_json::from_str(&committed.body).unwrap();
        let mut ids: Vec<u64> = texts(&week(&store, committed["week"].as_str().unwrap()), "clusters", "id")
            .iter()
            .map(|id| id.parse().unwrap())
            .collect();
        ids.sort_unstable();
        ids
    };
    assert_eq!(tables(&live), (0..60).filter(|id| id % 2 == 0).collect::<Vec<u64>>());
    assert_eq!(found_live(&live, &there), wanted);
    // And features that of a text which the tables have; a document is deleted and comes again by
    // features.
    live.post("3", &[ready["4"].clone(), json!({"id": 6, "delete": true})]);
    live.post("4", &[ready["6"].clone()]);
    assert_eq!(found_live(&live, &there), wanted);
    assert_eq!(tables(&live), (0..60).filter(|id| id % 2 == 0 && ![4, 6].contains(id)).collect::<Vec<u64>>());
    assert_eq!(found_live(&live, &there), wanted);
    drop(live);
    let live = Live::start(&store, &[]);
    assert_eq!(found_live(&live, &there), wanted);
    for line in &of_features {
        live.send("DELETE", &format!("/documents/{}", line["id"]), &[], b"");
        apply(&mut there, &[json!({"id": line["id"], "delete": true})]);
    }
    tables(&live);
    assert_eq!(found_live(&live, &there), found_by_run(folder.path(), "half", &there));
    let bad = body(&[json!({"id": 1, "features": "AAAA", "supershingles": "", "checksum": "0".repeat(32)})]);
    let refused = live.send("POST", "/documents", &[], bad.as_bytes());
    assert!(refused.status == 400 && refused.body.contains("`features` has 3 bytes"), "{refused:?}");
}
