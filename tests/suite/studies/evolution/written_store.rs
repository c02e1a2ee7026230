//! A store whose tables are written by a test, without a run.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use nigh::config::Method;
use nigh::records::{DocId, KeyHash, Week, mix};
use nigh::state::{
    CommittedWeek, InputKey, Manifest, Piece, ReadingCounts, Segment, Store, TablePart, WeekFiles, WeekJournal,
    WholeWeek,
};
use nigh::tables::{ClusterRow, DocumentRow, FeatureRow, Table, UrlRow, Writer};

use crate::program::{run_well, tables};

/// A store whose tables are written here: each week's pages are in clusters that are drawn, not
/// found.
pub struct WrittenStore {
    pub folder: tempfile::TempDir,
    method: Method,
}

/// What is drawn of a URL.
#[derive(Clone)]
pub struct Url {
    doc: DocId,
    url: String,
    host: String,
    family: u64,
    features: Vec<u16>,
    version: u64,
}

impl WrittenStore {
    /// So many weeks from a seed: URLs are born, fail and come back, change, and move between
    /// clusters.
    pub fn new(seed: u64, weeks: usize) -> WrittenStore {
        eprintln!("seed {seed}, {weeks} weeks");
        let mut state = seed;
        let mut random = move |below: u64| {
            state = mix(state);
            state % below
        };
        let method = Method { shards: 8, features: 12, ..Method::default() };
        let store = WrittenStore { folder: tempfile::tempdir().unwrap(), method };
        let mut manifest = Manifest::new(&store.method).next().unwrap();
        let mut urls: Vec<Url> = Vec::new();
        let mut next_rows = vec![0; store.method.shards as usize];
        for at in 0..weeks {
            let week: Week = format!("2024-01-{:02}", 1 + 7 * at).parse().unwrap();
            let born = urls.len();
            for _ in 0..if at == 0 { 150 } else { random(40) } {
                let number = urls.len() as u64;
                let host = format!("h{}.example", random(20));
                let url = format!("http://{host}/{number}");
                // The last shard never has a page.
                let shard = random(u64::from(store.method.shards) - 1) as u32;
                let doc = DocId::new(shard, next_rows[shard as usize]);
                next_rows[shard as usize] += 1;
                let features = (0..store.method.features).map(|_| random(4) as u16).collect();
                urls.push(Url { doc, url, host, family: family(&mut random), features, version: 0 });
            }
            for url in &mut urls[..born] {
                if random(6) == 0 {
                    url.family = family(&mut random);
                }
                // Most pages stay as they are; some change in markup only, some in some features or
                // in all.
                url.version += random(2);
                for _ in 0..[0, 0, 1, 5, 40][random(5) as usize] {
                    let place = random(url.features.len() as u64) as usize;
                    url.features[place] = random(1000) as u16;
                }
            }
            // Pages first seen in the week are there; others fail now and then, in some weeks all
            // together.
            let fails = [3, 10, 1][random(3) as usize].max(1 + at as u64 % 2);
            let pages: Vec<Url> = urls
                .iter()
                .enumerate()
                .filter(|(number, _)| *number >= born || random(fails + 1) > 0)
                .map(|(_, url)| url.clone())
                .collect();
            let committed = store.write(week, &pages, &urls[born..], &mut random);
            manifest.weeks.push(committed);
        }
        manifest.write(&store.path().join("_nigh/manifest.json")).unwrap();
        store
    }

    pub fn path(&self) -> PathBuf {
        self.folder.path().join("store")
    }

    /// Writes a week: its pages, in two or three waves that interleave.
    fn write(&self, week: Week, pages: &[Url], born: &[Url], random: &mut impl FnMut(u64) -> u64) -> CommittedWeek {
        let store = Store::at(&self.path());
        let mut files = WeekFiles::new();
        let mut path = |table: &str, name: String, rows: usize| {
            let parts = files.entry(table.to_owned()).or_default();
            let file = format!("nigh-00001-{:05}.parquet", parts.len());
            parts.push(TablePart {
                file: file.clone(),
                bytes: 0,
                digest: None,
                pieces: vec![Piece(name, rows as u64)],
            });
            store.table(table, week).join(file)
        };
        let mut families: BTreeMap<u64, Vec<DocId>> = BTreeMap::new();
        pages.iter().for_each(|page| families.entry(page.family).or_default().push(page.doc));
        families.values_mut().for_each(|docs| docs.sort());
        let waves = 2 + random(2);
        let mut segments = Vec::new();
        let mut dealt: BTreeMap<(u64, u32), Vec<&Url>> = BTreeMap::new();
        for page in pages {
            dealt.entry((random(waves), page.doc.shard())).or_default().push(page);
        }
        for ((wave, shard), mut pages) in dealt {
            pages.sort_by_key(|page| page.doc);
            let mut segment = Segment {
                wave: wave as usize,
                shard,
                documents: pages.len() as u64,
                urls: pages.len() as u64,
                features: 0,
                links: 0,
                chunks: 0,
                origin: None,
            };
            let documents = pages.iter().map(|page| DocumentRow { stored: week, ..document(page) });
            write(&path(DocumentRow::NAME, segment.file(), pages.len()), documents);
            write(
                &path(ClusterRow::NAME, segment.file(), pages.len()),
                pages.iter().map(|page| cluster(page, &families[&page.family])),
            );
            // Every seventh URL is of a page without words.
            let worded: Vec<(i64, Vec<u8>)> =
                pages.iter().filter(|page| !page.doc.row().is_multiple_of(7)).map(|page| feature(page)).collect();
            if !worded.is_empty() {
                let rows = worded.iter().map(|(doc, features)| FeatureRow::new(*doc, &[0; 48], features));
                write(&path(FeatureRow::NAME, segment.file(), worded.len()), rows);
            }
            segment.features = worded.len() as u64;
            segments.push(segment);
        }
        let mut urls = vec![0; self.method.shards as usize];
        for shard in 0..self.method.shards {
            let of_shard: Vec<&Url> = born.iter().filter(|url| url.doc.shard() == shard).collect();
            urls[shard as usize] = of_shard.len() as u64;
            if !of_shard.is_empty() {
                let hash = |url: &Url| KeyHash::of(&url.url).to_bytes();
                let rows = of_shard.iter().copied().map(|url| UrlRow {
                    doc: url.doc.to_table(),
                    hash: hash(url),
                    url: Some(&url.url),
                    id: None,
                });
                write(&path(UrlRow::NAME, format!("shard{shard:05}-wave00000.parquet"), of_shard.len()), rows);
            }
        }
        let committed = CommittedWeek {
            week,
            commit: 1,
            made: None,
            stands_on: String::new(),
            key: String::new(),
            documents: pages.len() as u64,
            urls,
            named: Vec::new(),
        };
        let key =
            InputKey { hash: week.to_string(), waves: waves as usize, files: 1, bytes: 1, stamps: Default::default() };
        let journal = WeekJournal {
            key,
            waves: waves as usize,
            segments,
            counts: ReadingCounts::default(),
            earlier_inputs: BTreeMap::new(),
            another_text: None,
        };
        let whole = WholeWeek {
            committed: committed.clone(),
            method: self.method.clone(),
            journal,
            files,
            kept: BTreeMap::new(),
            folders: BTreeMap::new(),
            readings: Default::default(),
        };
        let records = store.records(&committed);
        std::fs::create_dir_all(&records).unwrap();
        whole.write(&records.join("week.json")).unwrap();
        committed
    }

    /// Runs the job; gives the tables' bytes.
    pub fn evolution(&self, flags: &[&str]) -> BTreeMap<String, Vec<u8>> {
        let store = self.path();
        let arguments = ["run", "jobs/evolution.toml", "--quiet", "--store", store.to_str().unwrap()];
        run_well(&[&arguments[..], flags].concat());
        assert!(!store.join("_nigh/work").exists(), "nothing unfinished is left");
        tables(&store.join("evolution"))
    }
}

/// A family of pages: a large one, several small ones, or one of its own.
fn family(random: &mut impl FnMut(u64) -> u64) -> u64 {
    match random(4) {
        0 => 0,
        1 => 1 + random(3),
        2 => 4 + random(30),
        _ => 100 + random(1 << 40),
    }
}

fn document(page: &Url) -> DocumentRow<'_> {
    let body = format!("{:?} {}", page.features, page.version);
    DocumentRow {
        doc: page.doc.to_table(),
        id: None,
        url: Some(&page.url),
        given_url: None,
        host: Some(&page.host),
        domain: Some("example"),
        ip: None,
        fetched: None,
        status: Some(200),
        media_type: Some("text/html"),
        bytes: body.len() as i64,
        checksum: nigh::records::checksum(body.as_bytes()).to_be_bytes(),
        words: 1,
        title: "",
        file: "none",
        offset: 0,
        crawled: "2024-01-08".parse().unwrap(),
        stored: "2024-01-08".parse().unwrap(),
        charset: None,
        digest: None,
        record_id: None,
        length: None,
        record_url: None,
    }
}

fn cluster<'a>(page: &'a Url, members: &[DocId]) -> ClusterRow<'a> {
    cluster_row(page.doc.to_table(), Some(page), members[0].to_table(), members.len() as i64)
}

/// A row with one cluster at all levels.
pub fn cluster_row(doc: i64, page: Option<&Url>, root: i64, size: i64) -> ClusterRow<'_> {
    ClusterRow {
        id: None,
        url: page.map(|page| page.url.as_str()),
        host: page.map(|page| page.host.as_str()),
        doc,
        similar_root: root,
        similar_size: size,
        identical_root: root,
        identical_size: size,
        exact_root: root,
        exact_size: size,
        cluster_id: None,
        canonical: root == doc && page.is_some(),
    }
}

/// The document id and the features of a page.
fn feature(page: &Url) -> (i64, Vec<u8>) {
    (page.doc.to_table(), page.features.iter().flat_map(|feature| feature.to_le_bytes()).collect())
}

pub fn write<R: nigh::tables::Row>(path: &Path, rows: impl Iterator<Item = R>) {
    let mut writer: Writer<R::Table> = Writer::create(path).unwrap();
    rows.for_each(|row| writer.push(row).unwrap());
    writer.finish().unwrap();
}
