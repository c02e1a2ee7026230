//! Shards of lines of which many are copies of others, and a store of them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crate::program::{job, longs, run_well, texts, week};

pub const DATE: &str = "2024-01-08";
pub const FAMILIES: usize = 20;

/// Record `n`: of family `n % FAMILIES`, with a length, a date and a host of its own.
pub fn record(n: usize) -> serde_json::Value {
    let word = |place: usize| match place {
        70 => format!("own{n}"),
        _ => format!("w{}", ((n % FAMILIES + 1) * 7919 + place * 104_729) % 99_991),
    };
    let text = (0..140 + n * 7 % 5).map(word).collect::<Vec<_>>().join(" ");
    let date = format!("2024-01-{:02}", 1 + n * 11 % 28);
    let url = format!("http://h{}.example/{}{n}", n % 3, "x".repeat(n * 13 % 9));
    serde_json::json!({"id": n, "text": text, "url": url, "date": date, "more": {"kept": [n, null]}})
}

/// Shards of lines with 40 records each, the last two compressed; and a store of them.
pub struct LineShards {
    pub folder: tempfile::TempDir,
    pub lines: Vec<Vec<String>>,
}

impl LineShards {
    pub fn new() -> LineShards {
        let folder = tempfile::tempdir().unwrap();
        let shards = folder.path().join("shards");
        std::fs::create_dir_all(shards.join("deep")).unwrap();
        let mut lines = Vec::new();
        for (shard, name) in ["a.jsonl", "b.jsonl.gz", "deep/c.jsonl.zst"].iter().enumerate() {
            // A line that is no document, and a blank one, are in no file that is written.
            let of_shard: Vec<String> = (40 * shard..40 * (shard + 1)).map(|n| record(n).to_string()).collect();
            let text = format!("{}\nno json\n\n{}\n", of_shard[..20].join("\n"), of_shard[20..].join("\n"));
            let bytes = match shard {
                0 => text.into_bytes(),
                1 => {
                    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
                    std::io::Write::write_all(&mut gzip, text.as_bytes()).unwrap();
                    gzip.finish().unwrap()
                }
                _ => zstd::bulk::compress(text.as_bytes(), 1).unwrap(),
            };
            std::fs::write(shards.join(name), bytes).unwrap();
            lines.push(of_shard);
        }
        let dataset = LineShards { folder, lines };
        dataset.cluster(&dataset.path("shards"));
        dataset
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn cluster(&self, input: &Path) {
        self.cluster_as(input, "first", &[]);
    }

    pub fn cluster_as(&self, input: &Path, canonical: &str, flags: &[&str]) {
        let text = format!(
            "[cluster]\nweek = \"{DATE}\"\nmax-reject-share = 0.1\ncanonical = \"{canonical}\"\n[cluster.read.columns]\nid = \"id\"\ndate = \
             \"date\"\n[cluster.method]\nshards = 4\nsimilarity = 0.8\n"
        );
        let (job, store) = (job(self.folder.path(), &text), self.path("store"));
        let arguments = ["run", job.to_str().unwrap(), "-q", "--replace", "--store", store.to_str().unwrap()];
        run_well(&[&arguments[..], &["--input", input.to_str().unwrap()], flags].concat());
    }

    /// Exports to a folder; returns the lines of each shard.
    pub fn export(&self, out: &str, flags: &[&str]) -> Vec<Vec<String>> {
        let (store, folder) = (self.path("store"), self.path(out));
        let arguments = ["export", store.to_str().unwrap(), "--out", folder.to_str().unwrap()];
        run_well(&[&arguments[..], flags].concat());
        ["a.jsonl", "b.jsonl.gz", "deep/c.jsonl.zst"].map(|name| read(&folder.join(name))).to_vec()
    }

    /// The cluster of each record.
    pub fn clusters(&self) -> BTreeMap<usize, BTreeSet<usize>> {
        let week = week(&self.path("store"), DATE);
        let ids = texts(&week, "clusters", "id").into_iter().map(|id| id.parse::<usize>().unwrap());
        let mut clusters: BTreeMap<i64, BTreeSet<usize>> = BTreeMap::new();
        for (id, root) in ids.zip(longs(&week, "clusters", "similar_root")) {
            clusters.entry(root).or_default().insert(id);
        }
        let all =
            clusters.into_values().flat_map(|cluster| cluster.clone().into_iter().map(move |id| (id, cluster.clone())));
        all.collect()
    }

    /// The document id of each record.
    pub fn docs(&self) -> BTreeMap<usize, i64> {
        let week = week(&self.path("store"), DATE);
        let ids = texts(&week, "clusters", "id").into_iter().map(|id| id.parse().unwrap());
        ids.zip(longs(&week, "clusters", "doc")).collect()
    }
}

/// The lines of a file, by the compression of its name.
pub fn read(path: &Path) -> Vec<String> {
    let bytes = std::fs::read(path).unwrap();
    let text = match path.extension().unwrap().to_str().unwrap() {
        "gz" => std::io::read_to_string(flate2::read::MultiGzDecoder::new(&bytes[..])).unwrap(),
        "zst" => String::from_utf8(zstd::stream::decode_all(&bytes[..]).unwrap()).unwrap(),
        _ => String::from_utf8(bytes).unwrap(),
    };
    text.lines().map(str::to_owned).collect()
}

/// The number of a line's record.
pub fn id(line: &str) -> usize {
    serde_json::from_str::<serde_json::Value>(line).unwrap()["id"].as_u64().unwrap() as usize
}

/// A store of records, by ids in the field `id`, each with a text of one of two families.
pub fn store_of_ids(folder: &Path, ids: &[(&str, bool)], flags: &[&str]) -> String {
    let text = |is_other: bool| (0..60).map(|n| format!("w{}", n + 1000 * u64::from(is_other))).collect::<Vec<_>>();
    let line = |(id, is_other): &(&str, bool)| {
        format!("{}\n", serde_json::json!({"id": id, "text": text(*is_other).join(" ")}))
    };
    let (input, store) = (folder.join("ids.jsonl"), folder.join("store"));
    std::fs::write(&input, ids.iter().map(line).collect::<String>()).unwrap();
    let [input, store] = [input, store].map(|path| path.to_str().unwrap().to_owned());
    let arguments = ["run", "--week", DATE, "--store", &store, "--id", "id", "--no-accuracy", "-q", "--input", &input];
    run_well(&[&arguments[..], flags].concat());
    store
}
