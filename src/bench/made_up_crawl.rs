//! `nigh bench crawl`: writes the crawl of a made-up web, or a dataset of its texts, of any size.
//!
//! It is the input of benchmarks of the whole job: `nigh run` reads it as any crawl. A file gets
//! its name when it is complete.

use std::fmt;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{Context, Result, ensure};
use clap::{Args, ValueEnum};
use flate2::Compression;
use flate2::write::GzEncoder;
use nigh_bench::BenchOutcome;
use nigh_bench::synthetic::WebPages;
use serde::Serialize;
use xxhash_rust::xxh3::xxh3_128;

use crate::config::Count;
use crate::records::{Week, mix};
use crate::sheet::grouped;

/// The fewest documents of a made-up web: it has clusters of some sizes.
const LEAST: u64 = 1000;
/// Seconds in which a crawl is made.
const CRAWL: u64 = 6 * 86_400;

/// Arguments of `nigh bench crawl`.
#[derive(Args)]
pub(crate) struct MadeUpCrawlArgs {
    /// Number of documents of the web.
    #[arg(long, value_name = "N")]
    documents: u64,
    /// Folder of the files, or `-` for standard output.
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Format of the files.
    #[arg(long, value_enum, default_value_t = CrawlFormat::WarcGz)]
    format: CrawlFormat,
    /// Number of files.
    #[arg(long, default_value = "8", value_name = "N")]
    files: Count,
    /// Write only documents from this number on.
    #[arg(long, default_value = "0", value_name = "N")]
    from: u64,
    /// Write only documents before this number.
    #[arg(long, value_name = "N")]
    to: Option<u64>,
    /// The crawl of a later week, in which this share of the documents changed.
    #[arg(long, default_value = "0", value_name = "SHARE")]
    change: f64,
    /// Of a later week: write only the changed documents.
    #[arg(long)]
    changed_only: bool,
    /// Of a later week, as WARC: write revisit records for the others.
    #[arg(long, conflicts_with = "changed_only")]
    revisits: bool,
    /// Date of the crawl [default: 2024-01-08, and of a later week 2024-01-15].
    #[arg(long, value_name = "YYYY-MM-DD")]
    week: Option<Week>,
    /// Threads that write.
    #[arg(long, default_value = "2", value_name = "N")]
    workers: Count,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

impl MadeUpCrawlArgs {
    /// The whole crawl of a first week, in some files of a folder.
    pub(crate) fn new(documents: u64, out: &Path, format: CrawlFormat) -> MadeUpCrawlArgs {
        MadeUpCrawlArgs {
            documents,
            out: out.to_owned(),
            format,
            files: Count(8),
            from: 0,
            to: None,
            change: 0.0,
            changed_only: false,
            revisits: false,
            week: None,
            workers: Count(2),
            json: false,
        }
    }

    /// The numbers of the documents to write.
    fn documents(&self) -> Range<u64> {
        self.from..self.to.unwrap_or(self.documents)
    }
}

/// A format of made-up crawls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum CrawlFormat {
    /// WARC 1.1 without compression.
    #[value(name = "warc")]
    Warc,
    /// WARC 1.1, a gzip member for each record.
    #[value(name = "warc.gz")]
    WarcGz,
    /// JSON Lines of id, url, title, date and text.
    #[value(name = "jsonl")]
    Jsonl,
}

/// What was written.
#[derive(Serialize)]
pub(crate) struct CrawlReport {
    documents: u64,
    revisits: u64,
    files: usize,
    /// Before compression.
    pub bytes: u64,
    stored_bytes: u64,
}

impl fmt::Display for CrawlReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let CrawlReport { documents, revisits, files, bytes, stored_bytes } = self;
        writeln!(
            f,
            "{} documents and {} revisit records in {files} files: {} MB, stored in {} MB",
            grouped(*documents),
            grouped(*revisits),
            grouped(bytes / 1_000_000),
            grouped(stored_bytes / 1_000_000)
        )
    }
}

/// Writes the crawl, and reports what was written: to standard error if the crawl goes to standard
/// output.
///
/// # Errors
/// If the arguments do not fit each other, or a file cannot be written.
pub(crate) fn make_crawl(args: &MadeUpCrawlArgs) -> Result<Option<BenchOutcome>> {
    if args.out != Path::new("-") {
        return BenchOutcome::new(true, &write_files(args)?, args.json).map(Some);
    }
    let crawl = MadeUpCrawl::new(args)?;
    let mut out = CountedWriter { out: std::io::stdout().lock(), bytes: 0 };
    crawl.write(args.documents(), &mut out).context("cannot write the crawl to standard output")?;
    eprint!("{}", crawl.report(1, out.bytes));
    Ok(None)
}

/// Writes the files of a crawl.
///
/// # Errors
/// As [`make_crawl`].
pub(crate) fn write_files(args: &MadeUpCrawlArgs) -> Result<CrawlReport> {
    let crawl = MadeUpCrawl::new(args)?;
    std::fs::create_dir_all(&args.out).with_context(|| format!("cannot make {}", args.out.display()))?;
    let (documents, files) = (args.documents(), args.files.0 as u64);
    let (next, stored) = (AtomicU64::new(0), AtomicU64::new(0));
    let worker = || -> Result<()> {
        loop {
            let file = next.fetch_add(1, Ordering::Relaxed);
            if file >= files {
                return Ok(());
            }
            let all = u128::from(documents.end - documents.start);
            let bound = |file: u64| documents.start + (all * u128::from(file) / u128::from(files)) as u64;
            let bytes = crawl.file(&args.out, file, bound(file)..bound(file + 1))?;
            stored.fetch_add(bytes, Ordering::Relaxed);
        }
    };
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..args.workers.0).map(|_| scope.spawn(worker)).collect();
        workers
            .into_iter()
            .try_for_each(|worker| worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    })?;
    Ok(crawl.report(args.files.0, stored.load(Ordering::Relaxed)))
}

/// What becomes of documents that did not change since the first week.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Unchanged {
    Write,
    LeaveOut,
    Revisit,
}

/// A crawl that is written.
struct MadeUpCrawl {
    pages: WebPages,
    format: CrawlFormat,
    week: Week,
    first_week: Week,
    change: f64,
    unchanged: Unchanged,
    documents: AtomicU64,
    revisits: AtomicU64,
    /// Before compression.
    bytes: AtomicU64,
}

impl MadeUpCrawl {
    /// The crawl that the arguments ask for.
    ///
    /// # Errors
    /// If they do not fit each other.
    fn new(args: &MadeUpCrawlArgs) -> Result<MadeUpCrawl> {
        let Range { start, end } = args.documents();
        ensure!(args.documents >= LEAST, "--documents {}: a made-up web has at least {LEAST}", args.documents);
        ensure!(start <= end && end <= args.documents, "--from and --to are below --documents, in this order");
        ensure!((0.0..=1.0).contains(&args.change), "--change {} is no share from 0 to 1", args.change);
        ensure!(!args.revisits || args.format != CrawlFormat::Jsonl, "--revisits is for WARC: JSON Lines have none");
        let first_week: Week = "2024-01-08".parse().map_err(anyhow::Error::msg)?;
        let later_week: Week = "2024-01-15".parse().map_err(anyhow::Error::msg)?;
        Ok(MadeUpCrawl {
            pages: WebPages::new(args.documents, args.change),
            format: args.format,
            week: args.week.unwrap_or(if args.change > 0.0 { later_week } else { first_week }),
            first_week,
            change: args.change,
            unchanged: match (args.change > 0.0, args.changed_only, args.revisits) {
                (true, true, _) => Unchanged::LeaveOut,
                (true, _, true) => Unchanged::Revisit,
                _ => Unchanged::Write,
            },
            documents: AtomicU64::new(0),
            revisits: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
        })
    }

    /// What was written so far: as many files, of so many bytes.
    fn report(&self, files: usize, stored_bytes: u64) -> CrawlReport {
        CrawlReport {
            documents: self.documents.load(Ordering::Relaxed),
            revisits: self.revisits.load(Ordering::Relaxed),
            files,
            bytes: self.bytes.load(Ordering::Relaxed),
            stored_bytes,
        }
    }

    /// Writes a file, and returns its size.
    fn file(&self, folder: &Path, number: u64, documents: Range<u64>) -> Result<u64> {
        let extension = match self.format {
            CrawlFormat::Warc => "warc",
            CrawlFormat::WarcGz => "warc.gz",
            CrawlFormat::Jsonl => "jsonl",
        };
        let path = folder.join(format!("crawl-{number:05}.{extension}"));
        let part = path.with_added_extension("part");
        let write = || -> std::io::Result<u64> {
            let out = BufWriter::with_capacity(1 << 20, File::create(&part)?);
            let mut out = CountedWriter { out, bytes: 0 };
            self.write(documents, &mut out)?;
            out.flush()?;
            std::fs::rename(&part, &path)?;
            Ok(out.bytes)
        };
        write().with_context(|| format!("cannot write {}", path.display()))
    }

    /// Writes some documents.
    fn write(&self, documents: Range<u64>, out: &mut impl Write) -> std::io::Result<()> {
        let (mut html, mut record) = (String::new(), Vec::new());
        for document in documents {
            let is_unchanged = self.change > 0.0 && !self.pages.has_changed(document);
            if is_unchanged && self.unchanged == Unchanged::LeaveOut {
                continue;
            }
            let is_revisit = is_unchanged && self.unchanged == Unchanged::Revisit;
            let count = if is_revisit { &self.revisits } else { &self.documents };
            count.fetch_add(1, Ordering::Relaxed);
            html.clear();
            record.clear();
            match self.format {
                CrawlFormat::Jsonl => self.line(document, &mut html, &mut record)?,
                CrawlFormat::Warc | CrawlFormat::WarcGz => self.record(document, is_revisit, &mut html, &mut record)?,
            }
            self.bytes.fetch_add(record.len() as u64, Ordering::Relaxed);
            if self.format == CrawlFormat::WarcGz {
                let mut member = GzEncoder::new(&mut *out, Compression::default());
                member.write_all(&record)?;
                member.finish()?;
            } else {
                out.write_all(&record)?;
            }
        }
        Ok(())
    }

    /// When a document is fetched in the crawl of a week.
    fn fetched(&self, week: Week, document: u64) -> String {
        let seconds = i64::from(week.days()) * 86_400 + (document % CRAWL) as i64;
        jiff::Timestamp::from_second(seconds).map_or_else(|_| week.to_string(), |time| time.to_string())
    }

    /// Writes a document as a line of JSON.
    fn line(&self, document: u64, text: &mut String, out: &mut Vec<u8>) -> std::io::Result<()> {
        #[derive(Serialize)]
        struct Line<'a> {
            id: u64,
            url: &'a str,
            title: &'a str,
            date: &'a str,
            text: &'a str,
        }
        let page = self.pages.text(document);
        let mut title = String::new();
        page.title(&mut title);
        page.plain(text);
        let (url, date) = (self.pages.url(document), self.fetched(self.week, document));
        serde_json::to_writer(&mut *out, &Line { id: document, url: &url, title: &title, date: &date, text })?;
        out.write_all(b"\n")
    }

    /// Writes a document as a WARC record.
    fn record(&self, document: u64, is_revisit: bool, html: &mut String, out: &mut Vec<u8>) -> std::io::Result<()> {
        self.pages.html(document, html);
        let (url, digest) = (self.pages.url(document), xxh3_128(html.as_bytes()));
        let date = self.fetched(self.week, document);
        let id = u128::from(mix(document)) << 64 | u128::from(mix(self.week.days() as u64 ^ document));
        let http = format!(
            "HTTP/1.1 200 OK\r\nDate: {date}\r\nServer: made-up\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: {}\r\n\r\n",
            html.len()
        );
        let body = if is_revisit { "" } else { html.as_str() };
        write!(out, "WARC/1.1\r\nWARC-Type: {}\r\n", if is_revisit { "revisit" } else { "response" })?;
        write!(out, "WARC-Record-ID: <urn:uuid:{}>\r\n", uuid(id))?;
        write!(
            out,
            "WARC-Target-URI: {url}\r\nWARC-Date: {date}\r\nWARC-IP-Address: 192.0.2.{}\r\n",
            document / 1024 % 250
        )?;
        write!(out, "WARC-Payload-Digest: xxh128:{digest:032x}\r\n")?;
        if is_revisit {
            write!(
                out,
                "WARC-Profile: http://netpreserve.org/warc/1.1/revisit/identical-payload-digest\r\nWARC-Refers-To-Target-URI: {url}\r\n\
                 WARC-Refers-To-Date: {}\r\n",
                self.fetched(self.first_week, document)
            )?;
        }
        write!(
            out,
            "Content-Type: application/http; msgtype=response\r\nContent-Length: {}\r\n\r\n",
            http.len() + body.len()
        )?;
        for part in [http.as_bytes(), body.as_bytes(), b"\r\n\r\n"] {
            out.extend_from_slice(part);
        }
        Ok(())
    }
}

/// A number as a UUID.
fn uuid(number: u128) -> String {
    let digits = format!("{number:032x}");
    [&digits[..8], &digits[8..12], &digits[12..16], &digits[16..20], &digits[20..]].join("-")
}

/// Counts what is written.
struct CountedWriter<W> {
    out: W,
    bytes: u64,
}

impl<W: Write> Write for CountedWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let written = self.out.write(bytes)?;
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.out.flush()
    }
}
