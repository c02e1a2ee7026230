//! The pages that tests compare: those of the week, and those that were fetched for the tests.

use anyhow::{Context, Result, ensure};
use arrow_array::{FixedSizeBinaryArray, Int64Array, StringArray};

use super::failures::{DownloadReach, DownloadReaches};
use super::listed::WantedUrls;
use super::urls::{Namer, UrlName, UrlState, host_and_path, is_slash_redirect, text_hash};
use crate::config::Reading;
use crate::features::Fingerprinter;
use crate::operators::ingest::page_facts;
use crate::readers::{Input, Item, Listed, UrlFile, each_listed_url};
use crate::records::{FeatureBits, checksum, fold};
use crate::state::History;
use crate::structures::Ownership;
use crate::tables::{DocumentRow, FeatureRow, HostFailureRow, MissingRow, RedirectRow, RowRange, Scan, Table, field};
use crate::text::canonical;
use crate::watch::Watch;

/// What is known of a URL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KnownUrl {
    /// Its page, by its number.
    Page(usize),
    /// It redirects to the same path with a slash more or less at its end: what is there is its
    /// page.
    Slash,
    /// The host does not have a page there: status 404 or 410, or another redirect.
    Gone,
    /// An index has it with status 200.
    Listed,
    /// An index has it with status 404 or 410, which counts if none has it with status 200.
    ListedGone,
}

/// What a redirect says of its URL.
fn of_redirect(url: &str, target: &str) -> KnownUrl {
    if is_slash_redirect(url, target) { KnownUrl::Slash } else { KnownUrl::Gone }
}

/// A page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TestPage {
    /// Of two pages with one name that with the smaller order is compared: those of the week come
    /// before those of files.
    pub order: u64,
    /// The checksum of its body.
    pub checksum: u128,
    /// The hash of its supershingles; 0 for a page without words.
    pub vector: u64,
    features: FeaturePlace,
}

/// Where the features of a page are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum FeaturePlace {
    /// The page has no words.
    None,
    /// In the row of a document, by the number of its file.
    Row(usize, i64),
    /// In memory, by number.
    Read(usize),
}

/// What a worker knows of the URLs that tests may ask for.
#[derive(Default)]
pub struct TestPages {
    /// All that is known, in no order.
    pub known: Vec<(UrlName, KnownUrl)>,
    /// The pages.
    pub pages: Vec<TestPage>,
    /// The files of features of the week.
    files: Vec<RowRange>,
    /// The features of pages of files.
    read: Vec<Vec<FeatureBits>>,
    /// The number of features of a page.
    width: usize,
    /// How far downloads of the hosts came.
    pub reaches: DownloadReaches,
    /// Of the files for tests: pages and failed downloads of URLs that no test may ask for, and
    /// records that cannot be read.
    pub passed_over: u64,
}

/// The bit of the order of a page that was not asked for by GET: it comes after those that were.
const METHOD_BIT: u32 = 62;
/// The number from which on the order of pages of files begins.
const OF_FILES: u64 = 1 << 63;
/// The bits of the number of a record in a file.
const RECORD_BITS: u32 = 40;

impl TestPages {
    /// Reads the pages of own shards of the last week that tests may ask for, and which URLs are
    /// gone.
    ///
    /// # Errors
    /// If a file cannot be read, or contradicts another one; names it.
    pub fn of_week(history: &History, owned: &Ownership, wanted: &WantedUrls) -> Result<TestPages> {
        let mut found = TestPages { width: history.features, ..TestPages::default() };
        let Some(number) = history.weeks.len().checked_sub(1) else { return Ok(found) };
        let (tables, mut namer) = (history.tables(number), Namer::default());
        for shard in owned.shards() {
            // The documents of the shard, and the number of the page of each.
            let mut of_docs: Vec<(i64, usize)> = Vec::new();
            for rows in history.rows(number, &tables, DocumentRow::NAME, shard)? {
                Scan::open(&rows, &["doc", "url", "checksum"])?.for_each(|batch| {
                    let (docs, urls): (&Int64Array, &StringArray) = (field(batch, "doc")?, field(batch, "url")?);
                    let checksums: &FixedSizeBinaryArray = field(batch, "checksum")?;
                    for row in 0..batch.num_rows() {
                        let name = namer.name(urls.value(row));
                        if wanted.has_host(name.host) {
                            found.reaches.add(name.host, DownloadReach::Answer);
                        }
                        if !wanted.has(name) {
                            continue;
                        }
                        let bytes = checksums.value(row).try_into().context("a checksum has 16 bytes")?;
                        of_docs.push((docs.value(row), found.pages.len()));
                        found.known.push((name, KnownUrl::Page(found.pages.len())));
                        let (order, checksum) = (docs.value(row) as u64, u128::from_be_bytes(bytes));
                        found.pages.push(TestPage { order, checksum, vector: 0, features: FeaturePlace::None });
                    }
                    Ok(())
                })?;
            }
            of_docs.sort_unstable();
            for rows in history.rows(number, &tables, FeatureRow::NAME, shard)? {
                let file = found.files.len();
                Scan::open(&rows, &["doc", "vector"])?.for_each(|batch| {
                    let (docs, vectors): (&Int64Array, &Int64Array) = (field(batch, "doc")?, field(batch, "vector")?);
                    for (doc, vector) in docs.values().iter().zip(vectors.values()) {
                        if let Ok(place) = of_docs.binary_search_by_key(doc, |(doc, _)| *doc) {
                            let page = &mut found.pages[of_docs[place].1];
                            page.features = FeaturePlace::Row(file, *doc);
                            page.vector = (*vector as u64).max(1);
                        }
                    }
                    Ok(())
                })?;
                found.files.push(rows);
            }
            if let Some(rows) = tables.of_shard(MissingRow::NAME, shard) {
                Scan::open(rows, &["url", "reason"])?.for_each(|batch| {
                    let [urls, reasons]: [&StringArray; 2] = [field(batch, "url")?, field(batch, "reason")?];
                    for (url, reason) in urls.iter().flatten().zip(reasons.iter().flatten()) {
                        let name = namer.name(url);
                        if UrlState::of_failure(reason).is_some() && wanted.has(name) {
                            found.known.push((name, KnownUrl::Gone));
                        }
                    }
                    Ok(())
                })?;
            }
            if let Some(rows) = tables.of_shard(HostFailureRow::NAME, shard) {
                Scan::open(rows, &["host", "reason"])?.for_each(|batch| {
                    let [hosts, reasons]: [&StringArray; 2] = [field(batch, "host")?, field(batch, "reason")?];
                    for (host, reason) in hosts.iter().flatten().zip(reasons.iter().flatten()) {
                        found.add_failure(text_hash(host), reason, wanted);
                    }
                    Ok(())
                })?;
            }
            if let Some(rows) = tables.of_shard(RedirectRow::NAME, shard) {
                Scan::open(rows, &["url", "target_url"])?.for_each(|batch| {
                    let [urls, targets]: [&StringArray; 2] = [field(batch, "url")?, field(batch, "target_url")?];
                    for (url, target) in urls.iter().flatten().zip(targets.iter().flatten()) {
                        let name = namer.name(url);
                        if wanted.has_host(name.host) {
                            found.reaches.add(name.host, DownloadReach::Answer);
                        }
                        if wanted.has(name) {
                            found.known.push((name, of_redirect(url, target)));
                        }
                    }
                    Ok(())
                })?;
            }
        }
        Ok(found)
    }

    /// Adds the pages and failed downloads of a file; `number` is its number among all files.
    ///
    /// # Errors
    /// If the file cannot be read to its end; names it.
    pub fn add_file(
        &mut self,
        input: &Input,
        number: usize,
        reading: &Reading,
        fingerprinter: &mut Fingerprinter,
        wanted: &WantedUrls,
        watch: &Watch,
    ) -> Result<()> {
        let mut reader = crate::readers::open(input, reading)?;
        let (mut namer, mut position, mut record) = (Namer::default(), 0, 0);
        while let Some(item) = reader.next().with_context(|| format!("cannot read {}", input.name))? {
            watch.add_bytes(reader.position().saturating_sub(position));
            (position, record) = (reader.position().max(position), record + 1);
            let (url, page) = match item {
                Item::Page(page) => {
                    let url = page.url.as_deref().and_then(canonical);
                    self.add_answer(url.as_ref().map(|url| url.as_str()), wanted);
                    (url, Ok(page))
                }
                Item::Failed(failure)
                    if failure.redirect.is_some() || UrlState::of_failure(&failure.reason).is_some() =>
                {
                    let url = canonical(&failure.url);
                    self.add_answer(url.as_ref().map(|url| url.as_str()), wanted);
                    let target = url.as_ref().zip(failure.redirect);
                    let target = target.and_then(|(url, redirect)| Some((url, url.resolve(&redirect.location)?)));
                    let known =
                        target.map_or(KnownUrl::Gone, |(url, target)| of_redirect(url.as_str(), target.as_str()));
                    (url, Err(known))
                }
                Item::Failed(failure) => {
                    if let Some(url) = canonical(&failure.url) {
                        self.add_failure(text_hash(host_and_path(url.as_str()).0), &failure.reason, wanted);
                    }
                    (None, Err(KnownUrl::Gone))
                }
                Item::Reject(_) => (None, Err(KnownUrl::Gone)),
                Item::Revisit(revisit) => {
                    let url = canonical(&revisit.url);
                    self.add_answer(url.as_ref().map(|url| url.as_str()), wanted);
                    continue;
                }
                Item::Skip(_) => continue,
            };
            watch.add_record(page.is_ok(), url.is_none());
            let name = url.as_ref().map(|url| namer.name(url.as_str())).filter(|name| wanted.has(*name));
            let Some((url, name)) = url.zip(name) else {
                self.passed_over += 1;
                continue;
            };
            let page = match page {
                Ok(page) => page,
                Err(known) => {
                    self.known.push((name, known));
                    continue;
                }
            };
            let (bytes, facts) = page_facts(fingerprinter, &page.body, page.charset.as_deref(), Some(&url));
            let (mut vector, mut features) = (0, FeaturePlace::None);
            if facts.words > 0 {
                vector = fold(&facts.sketch.supershingles).max(1);
                features = FeaturePlace::Read(self.read.len());
                self.read.push(facts.sketch.features);
            }
            let order = OF_FILES | u64::from(!page.is_of_get) << METHOD_BIT | (number as u64) << RECORD_BITS | record;
            self.known.push((name, KnownUrl::Page(self.pages.len())));
            self.pages.push(TestPage { order, checksum: checksum(bytes), vector, features });
        }
        let unread = reader.unread();
        ensure!(
            unread.bytes == 0 && !unread.ends_early,
            "{} is damaged or incomplete: {} of its bytes cannot be read. Restore the file, or leave it out of `input`",
            input.name,
            unread.bytes
        );
        Ok(())
    }

    /// Adds that the host of a URL answers.
    fn add_answer(&mut self, url: Option<&str>, wanted: &WantedUrls) {
        if let Some(host) = url.map(|url| text_hash(host_and_path(url).0)).filter(|host| wanted.has_host(*host)) {
            self.reaches.add(host, DownloadReach::Answer);
        }
    }

    /// Adds the reason of a failed download.
    fn add_failure(&mut self, host: u64, reason: &str, wanted: &WantedUrls) {
        if let Some(reach) = DownloadReach::of_reason(reason).filter(|_| wanted.has_host(host)) {
            self.reaches.add(host, reach);
        }
    }

    /// Adds what a list says of URLs that tests may ask for.
    ///
    /// # Errors
    /// If the list cannot be read to its end; names it.
    pub fn add_list(&mut self, list: &UrlFile, wanted: &WantedUrls) -> Result<()> {
        let mut namer = Namer::default();
        each_listed_url(list, |url, listed| {
            let known = match listed {
                Listed::Named => return Ok(()),
                Listed::Fetched => KnownUrl::Listed,
                Listed::Gone => KnownUrl::ListedGone,
            };
            let name = namer.name(url);
            if wanted.has(name) {
                self.known.push((name, known));
            }
            Ok(())
        })?;
        Ok(())
    }

    /// Calls `each` with the features of some pages, given by their numbers, in some order: the
    /// place in `pages`, and the features.
    ///
    /// # Errors
    /// If a page has no words, or a file cannot be read; names the file.
    pub fn features(&self, pages: &[usize], mut each: impl FnMut(usize, &[FeatureBits])) -> Result<()> {
        let mut sorted: Vec<usize> = (0..pages.len()).collect();
        sorted.sort_unstable_by_key(|place| self.pages[pages[*place]].features);
        let file_of = |place: &usize| match self.pages[pages[*place]].features {
            FeaturePlace::Row(file, doc) => Some((file, doc)),
            FeaturePlace::Read(_) | FeaturePlace::None => None,
        };
        let mut words = Vec::new();
        for of_file in sorted.chunk_by(|a, b| file_of(a).map(|(file, _)| file) == file_of(b).map(|(file, _)| file)) {
            let Some((file, _)) = file_of(&of_file[0]) else {
                for place in of_file {
                    let FeaturePlace::Read(read) = self.pages[pages[*place]].features else {
                        anyhow::bail!("a page without words has no features");
                    };
                    each(*place, &self.read[read]);
                }
                continue;
            };
            let mut docs: Vec<i64> = of_file.iter().filter_map(file_of).map(|(_, doc)| doc).collect();
            docs.dedup();
            let mut next = of_file.iter().peekable();
            let path = self.files[file].path();
            Scan::each_of_docs(&self.files[file], &["doc", "features"], &docs, |batch| {
                let docs: &Int64Array = field(batch, "doc")?;
                let features: &FixedSizeBinaryArray = field(batch, "features")?;
                let length = features.value_length();
                ensure!(
                    length as usize == size_of::<FeatureBits>() * self.width,
                    "{} has features of {length} bytes",
                    path.display()
                );
                for (doc, bytes) in docs.values().iter().zip(features.iter().flatten()) {
                    words.clear();
                    words.extend(bytes.as_chunks().0.iter().map(|bytes| FeatureBits::from_le_bytes(*bytes)));
                    while let Some(place) = next.next_if(|place| file_of(place).is_some_and(|(_, of)| of == *doc)) {
                        each(*place, &words);
                    }
                }
                Ok(())
            })?;
            ensure!(next.next().is_none(), "{} is damaged: it has fewer rows than before", path.display());
        }
        Ok(())
    }
}
