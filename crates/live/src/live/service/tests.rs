//! The service: what it answers, and what it refuses after a fault.

use std::panic::{AssertUnwindSafe, catch_unwind};

use super::*;
use crate::live::batch::POISON;

const ID: Option<DocumentKey> = Some(DocumentKey::Id);

pub(super) fn text(lines: Result<Lines, Refusal>) -> String {
    String::from_utf8(lines.unwrap().to_vec()).unwrap()
}

#[test]
fn a_process_that_starts_again_has_the_same_documents_and_answers() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::at(folder.path());
    let open = |workers| Service::open(&store, ID, workers, Limits::default()).unwrap();
    let words = |from: usize| (from..from + 60).map(|word| format!("w{word} ")).collect::<String>();
    let record = |id: usize, from: usize| format!("{{\"id\":{id},\"text\":\"{}\"}}\n", words(from));
    let batches: Vec<String> = (0..8)
        .map(|batch| (0..5).map(|at| record(batch * 3 + at, at % 3 * 1000 + batch % 2)).collect::<String>())
        .chain(["{\"id\":4,\"delete\":true}".to_owned()])
        .collect();
    let (mut service, started) = open(1);
    assert_eq!(started, Started::default());
    let mut answers = Vec::new();
    for (number, batch) in batches.iter().enumerate() {
        let id = format!("b{number}");
        answers.push(text(service.add(Some(&id), batch.as_bytes())));
        assert_eq!(text(service.add(Some(&id), batch.as_bytes())), answers[number]);
        let counts = service.counts();
        drop(service);
        let (again, started) = open(number % 3 + 1);
        service = again;
        assert_eq!((started.batches, started.cut), (number as u64 + 1, 0));
        let (now, bytes) = service.counts();
        assert_eq!((now.documents, now.clusters, bytes), (counts.0.documents, counts.0.clusters, counts.1));
        for (id, (batch, answer)) in batches.iter().zip(&answers).enumerate() {
            assert_eq!(&text(service.add(Some(&format!("b{id}")), batch.as_bytes())), answer);
        }
    }
    assert_eq!(service.counts().0.documents, 25);
    drop(service);
    // What documents are known by needs to be said once only.
    let error = Service::open(&store, Some(DocumentKey::Url), 1, Limits::default()).err().unwrap().to_string();
    assert!(error.contains("knows documents by id, not by url"), "{error}");
    let (mut service, _) = Service::open(&store, None, 1, Limits::default()).unwrap();
    let refusal = service.add(Some("b0"), b"").unwrap_err();
    assert!(refusal.status == 409 && refusal.text.contains("other lines"), "{refusal}");
    assert_eq!(service.document("4", false).unwrap_err().status, 404);
    assert!(text(service.document("3", false)).starts_with("{\"id\":\"3\",\"doc\":null,\"new\":false,\"cluster\":-"));
}

#[test]
fn what_is_refused_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::at(folder.path());
    let (mut service, _) = Service::open(&store, ID, 1, Limits { records: 2, ..Limits::default() }).unwrap();
    let record = "{\"id\":1,\"text\":\"one two three\"}\n";
    for (id, batch, status) in [
        (None, format!("{record}{{"), 400),
        (None, record.repeat(3), 413),
        (Some(""), record.to_owned(), 400),
        (Some("a b"), record.to_owned(), 400),
    ] {
        assert_eq!(service.add(id, batch.as_bytes()).unwrap_err().status, status);
    }
    assert_eq!((service.counts().0.documents, service.counts().1), (0, 0));
    assert!(text(service.add(None, record.as_bytes())).contains("\"new\":true"));
    // Without an id it is another batch.
    assert!(text(service.add(None, record.as_bytes())).contains("\"new\":false"));
}

/// A line with ready features; all are alike.
pub(super) fn ready(id: u32) -> String {
    let (supershingles, features) = ("A".repeat(64), "A".repeat(224));
    format!(
        "{{\"id\":{id},\"supershingles\":\"{supershingles}\",\"features\":\"{features}\",\"checksum\":\"{id:032x}\"}}\n"
    )
}

#[test]
fn a_process_that_starts_after_a_commit_numbers_changes_and_clusters_as_the_one_before() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::at(folder.path());
    let open = || Service::open(&store, ID, 1, Limits::default()).unwrap().0;
    let mut service = open();
    text(service.add(None, (ready(1) + &ready(2)).as_bytes()));
    let (mut seen, mut id) = (1, -1);
    for round in 0..3u32 {
        // No table can have these documents, so there is no command.
        service.commit(&mut |_| anyhow::bail!("a command")).unwrap();
        let renamed = text(service.changes(seen, 10));
        assert!(renamed.contains("\"rename\"") && renamed.lines().count() == 1, "{renamed}");
        seen += 1;
        id -= 1;
        // The documents that stayed in the journal are no births, and a batch is a change.
        drop(service);
        service = open();
        assert!(text(service.cluster(id, 10)).contains(&format!("\"size\":{}", round + 2)));
        assert_eq!(
            (text(service.changes(seen, 10)), service.changes(seen - 1, 10).unwrap_err().status),
            ("".to_owned(), 410)
        );
        text(service.add(None, ready(round + 3).as_bytes()));
        let grown = text(service.changes(seen, 10));
        assert!(grown.starts_with(&format!("{{\"number\":{},\"event\":\"grow\"", seen + 1)), "{grown}");
        seen += 1;
        drop(service);
        service = open();
        assert_eq!(text(service.changes(seen - 1, 10)), grown);
    }
}

#[test]
fn ready_features_that_replace_a_document_make_a_commit_due() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::at(folder.path());
    let open = || Service::open(&store, ID, 1, Limits::default()).unwrap().0;
    let mut service = open();
    text(service.add(None, (ready(1) + &ready(2)).as_bytes()));
    assert_eq!(service.pending(), Pending { batches: 1, ..Pending::default() });
    text(service.add(None, (ready(2) + &ready(3)).as_bytes()));
    assert!(service.pending().lines == 1 && service.pending().since.is_some());
    drop(service);
    let mut service = open();
    assert_eq!(service.pending().lines, 1);
    let before = service.counts().1;
    service.commit(&mut |_| Ok(())).unwrap();
    // The line that was replaced is gone.
    assert!(service.counts().1 < before);
    for service in [service, open()] {
        assert_eq!((service.pending(), service.counts().0.documents), (Pending::default(), 3));
    }
    assert_eq!(Service::uncommitted(store.root()).unwrap(), 0);
}

#[test]
fn a_commit_after_which_no_batch_came_does_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::at(folder.path());
    let mut service = Service::open(&store, ID, 1, Limits::default()).unwrap().0;
    // Two that make a cluster: a commit leaves a number for its `rename`.
    text(service.add(None, (ready(1) + &ready(2)).as_bytes()));
    service.commit(&mut |_| Ok(())).unwrap();
    let (counts, path) = (service.counts(), Service::journal_path(store.root()));
    let journal = std::fs::read(&path).unwrap();
    let made = service.commit(&mut |_| panic!("no command is run")).unwrap();
    assert_eq!(made, Committed { week: None, documents: 0, deleted: 0 });
    assert_eq!((service.counts(), service.commits(), std::fs::read(&path).unwrap()), (counts, 1, journal));
}

#[test]
fn a_batch_that_a_parser_fails_at_is_not_in_the_journal() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::at(folder.path());
    let open = || Service::open(&store, ID, 1, Limits::default()).unwrap().0;
    let mut service = open();
    text(service.add(None, b"{\"id\":1,\"text\":\"one two three\"}"));
    let bytes = service.counts().1;
    let poison = serde_json::json!({"id": 2, "text": POISON}).to_string();
    assert!(catch_unwind(AssertUnwindSafe(|| service.add(None, poison.as_bytes()))).is_err());
    drop(service);
    let service = open();
    assert_eq!((service.counts().0.documents, service.counts().1), (1, bytes));
}
