//! What a build without the features `pool` and `cloud` refuses, and with what text.
//!
//! `cargo test` has the features, and leaves this out (`test = false`). `.ci/run` runs it without
//! them, as in `cargo test --no-default-features --package nigh-store --test refusals`.

use std::path::Path;

use nigh_readers::readers;
use nigh_readers::reading::Reading;
use nigh_store::config::read_config;
use nigh_store::mirror::{ReadStore, StoreLocation};

/// The text of an error, with its causes.
fn refused<T>(result: anyhow::Result<T>, what: &str) -> String {
    match result {
        Ok(_) => panic!("{what}: not refused; were the features left out?"),
        Err(error) => format!("{error:#}"),
    }
}

#[test]
fn configs_for_other_machines_are_refused_without_the_feature_pool() {
    for (config, table) in [("pool", "[[hosts]]"), ("slurm", "[tasks]"), ("kubernetes", "[tasks]")] {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../configs/{config}.toml"));
        let text = refused(read_config(&path), config);
        let wanted = format!("{config}.toml: {table}: this nigh is built without the feature `pool`");
        assert!(text.contains(&wanted), "{text}");
    }
}

#[test]
fn inputs_in_buckets_are_refused_without_the_feature_cloud() {
    for url in [
        "s3://bucket/x.warc.gz",
        "gs://bucket/x.warc.gz",
        "az://container/x.warc.gz",
        "https://a.example/x.warc.gz",
        "hf://datasets/owner/name/x.parquet",
    ] {
        let text = refused(readers::list(&[url.to_owned()], &Reading::default()), url);
        assert!(text.contains(&format!("cannot read {url}: this nigh is built without the feature `cloud`")), "{text}");
    }
}

#[test]
fn stores_in_buckets_are_refused_without_the_feature_cloud() {
    let mirror = std::env::temp_dir().join(format!("nigh-refusals-{}", std::process::id()));
    for url in ["s3://bucket/store", "gs://bucket/store", "az://container/store"] {
        let wanted = format!("cannot use the store {url}: this nigh is built without the feature `cloud`");
        let to_write = refused(StoreLocation::at(url.as_ref(), Some(&mirror)), url);
        let to_read = refused(ReadStore::at(url.as_ref(), |_| Ok(())), url);
        assert!(to_write.contains(&wanted) && to_read.contains(&wanted), "{to_write}\n{to_read}");
    }
    assert!(!mirror.exists());
}
