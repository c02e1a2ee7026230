//! Exact similarities of `nigh live` against those of `nigh why`, of texts in the journal, in a
//! commit, and gone.

use serde_json::{Value, json};

use crate::live::{Live, values};
use crate::program::run_well;

/// A text of 300 words, of which some differ from those of others.
fn text(changes: usize) -> String {
    let word =
        |at: usize| if at % 40 == 7 && at / 40 < changes { format!("own{changes}x{at}") } else { format!("w{at}") };
    (0..300).map(word).collect::<Vec<_>>().join(" ")
}

/// The exact similarities of what is near a document, by name.
fn exact(live: &Live, name: &str) -> Vec<(String, Option<f64>)> {
    let answer = live.get(&format!("/documents/{name}?exact=true"));
    let near = answer["nearest"].as_array().unwrap().clone();
    near.iter().map(|near| (near["name"].as_str().unwrap().to_owned(), near["exact"].as_f64())).collect()
}

#[test]
fn similarities_of_texts_are_those_of_nigh_why_wherever_the_texts_are() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("store");
    let live = Live::start(&store, &["--by", "id"]);
    let documents: Vec<Value> = (0..4).map(|id| json!({"id": id, "text": text(id)})).collect();
    live.post("1", &documents);
    let of_journal = exact(&live, "1");
    assert_eq!(of_journal.len(), 3);
    assert_eq!(live.send("POST", "/commit", &[], b"").status, 200);
    assert_eq!(exact(&live, "1"), of_journal);
    for (other, similarity) in &of_journal {
        let why = run_well(&["why", store.to_str().unwrap(), "1", other, "--json"]).stdout;
        let why: Value = serde_json::from_str(&why).unwrap();
        assert_eq!(why["texts"]["similarity"].as_f64(), *similarity, "{other}");
        assert!(*similarity > Some(0.5) && *similarity < Some(1.0), "{similarity:?}");
    }
    // One document has another text since: that of the journal counts.
    live.post("2", &[json!({"id": "2", "text": text(1)})]);
    let now = exact(&live, "1");
    assert!(now.contains(&("2".to_owned(), Some(1.0))), "{now:?}");
    let similar = live.send("POST", "/similar?exact=true&most=1", &[], json!({"text": text(1)}).to_string().as_bytes());
    assert_eq!(values(&similar.body)[0]["exact"].as_f64(), Some(1.0));
    let bad = live.send("GET", "/documents/1?exact=yes", &[], b"");
    assert!(bad.status == 400 && bad.body.contains("exact=yes"), "{bad:?}");
    // A text that is gone.
    for entry in store.join("_nigh/live").read_dir().unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "jsonl") {
            std::fs::remove_file(path).unwrap();
        }
    }
    assert!(exact(&live, "1").iter().all(|(_, similarity)| similarity.is_none()));
    let answer = live.get("/documents/1");
    assert!(answer["nearest"][0].get("exact").is_none(), "{answer}");
}
