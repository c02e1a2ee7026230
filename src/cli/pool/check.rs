//! `nigh pool check`: checks every host of a pool, and prints what to fix.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Args;

use crate::cli::errors::WrongUse;
use crate::cli::session::locate_store;
use crate::config::{Bytes, read_config};
use crate::job_file::{AnyJob, read_job};
use crate::launch::{CheckedHost, HostReach, Pool, Questions, check as ask};
use crate::report::print;

/// The largest accepted difference of a host's clock, in milliseconds: certificates and the ages of
/// files depend on clocks.
const CLOCK_OFF_MS: u64 = 5000;
/// Less free disk space than this is reported.
const LITTLE_SPACE: Bytes = Bytes(1 << 30);
/// A certificate that is valid for fewer days is reported.
const FEW_DAYS: u64 = 14;
/// Seconds in a day.
const DAY: u64 = 24 * 60 * 60;
/// The number of input files checked on every host, spread evenly over all input files.
const INPUTS: usize = 1000;

/// The flags of `nigh pool check`.
#[derive(Args)]
pub struct CheckArgs {
    /// Job file; every host must see its store and inputs.
    job: Option<PathBuf>,
    /// Config file with the hosts.
    #[arg(long)]
    config: PathBuf,
    /// Folder of all tables, or s3://BUCKET/PREFIX. Overrides the job.
    #[arg(long, value_name = "DIR_OR_URL")]
    store: Option<PathBuf>,
    /// Local folder for the work on a store in a bucket; every host must see it. Overrides the
    /// config.
    #[arg(long, value_name = "DIR")]
    mirror: Option<PathBuf>,
    /// Crawl files. Overrides the job.
    #[arg(long, num_args = 1.., value_name = "PATH_OR_GLOB_OR_URL")]
    input: Vec<String>,
}

/// A file in the store. A host that finds its text there sees the same folder. The file is removed
/// when this is dropped.
struct MarkerFile {
    path: PathBuf,
    text: String,
}

impl Drop for MarkerFile {
    fn drop(&mut self) {
        // If this fails, a file of a few bytes stays.
        let _ = std::fs::remove_file(&self.path);
    }
}

impl MarkerFile {
    /// Writes the file in the store, or in its nearest parent folder that exists.
    fn beside(store: &Path) -> Result<MarkerFile> {
        let folder = store.ancestors().find(|path| path.is_dir()).unwrap_or(Path::new("."));
        let id = std::process::id();
        let path = folder.join(format!(".nigh-check-{id}"));
        let text = format!("process {id} at {}\n", jiff::Timestamp::now());
        std::fs::write(&path, &text).with_context(|| format!("cannot write to {}", folder.display()))?;
        Ok(MarkerFile { path, text })
    }
}

/// Checks the pool, and prints a table with one row for each process, and what to fix.
pub(crate) fn check(args: &CheckArgs) -> Result<ExitCode> {
    let config = read_config(&args.config).map_err(WrongUse::from_error)?;
    let pool = crate::cli::session::pool_of(&config, None)?;
    let job = args.job.as_deref().map(read_job).transpose().map_err(WrongUse::from_error)?;
    let (store, input, reading) = match job {
        None => (None, Vec::new(), None),
        Some(AnyJob::Cluster(job)) => (job.store, job.input, Some(job.read)),
        Some(AnyJob::Chunks(job)) => (job.store, job.input, None),
        Some(AnyJob::Study(mut study)) => {
            (study.store().take(), study.input().map(std::mem::take).unwrap_or_default(), None)
        }
    };
    let input = if args.input.is_empty() { input } else { args.input.clone() };
    let inputs =
        if input.is_empty() { Vec::new() } else { crate::readers::list(&input, &reading.unwrap_or_default())? };
    let files = inputs.iter().filter_map(|input| match &input.place {
        crate::readers::Location::File(path) => Some((path.clone(), input.bytes)),
        _ => None,
    });
    let files: Vec<(PathBuf, u64)> = files.collect();
    let files: Vec<_> = files.iter().step_by(files.len().div_ceil(INPUTS).max(1)).cloned().collect();
    let marker = match args.store.clone().or(store) {
        None => None,
        Some(store) => {
            let location = locate_store(&store, args.mirror.as_deref(), &config)?;
            // Only this machine talks to the bucket; the others work in its mirror.
            location.reach()?;
            Some(MarkerFile::beside(location.store().root())?)
        }
    };
    let folder = std::env::current_dir().context("cannot find the current folder")?;
    let checked = ask(&pool, |me, host, listen| Questions {
        folder: folder.clone(),
        listen: (listen, host.ports.first).into(),
        last_port: host.ports.last,
        written: marker.as_ref().map(|marker| (marker.path.clone(), marker.text.clone())),
        inputs: files.clone(),
        keys: pool.keys.clone().map(|folder| (folder, me)),
    })?;
    let rows: Vec<HostRow> = checked.iter().enumerate().map(|(me, checked)| HostRow::new(&pool, me, checked)).collect();
    print(&table(&rows))?;
    let to_fix: Vec<String> =
        rows.iter().flat_map(|row| row.to_fix.iter().map(|text| format!("  {}: {text}\n", row.host))).collect();
    if to_fix.is_empty() {
        print("All is well\n").map(|()| ExitCode::SUCCESS)
    } else {
        print(&format!("To fix\n{}", to_fix.concat())).map(|()| ExitCode::FAILURE)
    }
}

/// The result for the host of one process: its cells in the table, and what to fix.
struct HostRow {
    host: String,
    cells: [String; 8],
    to_fix: Vec<String>,
}

/// The columns after the process.
const COLUMNS: [&str; 8] = ["host", "program", "clock", "certificate", "listens at", "reaches", "free", "files"];

impl HostRow {
    fn new(pool: &Pool, me: usize, checked: &CheckedHost) -> HostRow {
        let name = match &pool.hosts[me].reach {
            HostReach::Local => "this machine".to_owned(),
            HostReach::Ssh(host) => host.destination().to_string(),
            HostReach::Task { task, .. } => format!("task {task}"),
        };
        let answers = match &checked.answers {
            Ok(answers) => answers,
            Err(error) => {
                let cells = std::array::from_fn(|column| if column == 0 { name.clone() } else { "-".to_owned() });
                return HostRow { host: name, cells, to_fix: vec![format!("{error:#}")] };
            }
        };
        let mut to_fix = Vec::new();
        let version = env!("CARGO_PKG_VERSION");
        if answers.version != version {
            to_fix.push(format!(
                "nigh is version {} there and {version} here: install the same version",
                answers.version
            ));
        }
        let (ahead, way) = checked.clock;
        if ahead.unsigned_abs() > CLOCK_OFF_MS + way {
            to_fix.push(format!("its clock is off by {:.1} s: set the clock", ahead as f64 / 1e3));
        }
        to_fix.extend(answers.folder.clone().err());
        to_fix.extend(answers.address.clone().err());
        to_fix.extend(checked.refused.clone());
        to_fix.extend(answers.inputs.clone().err());
        let free = match &answers.store {
            None => "-".to_owned(),
            Some(Ok(free)) if *free < LITTLE_SPACE.0 => {
                to_fix.push(format!("only {} are free for the store", Bytes(*free)));
                Bytes(*free).to_string()
            }
            Some(Ok(free)) => Bytes(*free).to_string(),
            Some(Err(error)) => {
                to_fix.push(error.clone());
                "no store".to_owned()
            }
        };
        let certificate = match &answers.expiry {
            None => "-".to_owned(),
            Some(Ok(expiry)) => {
                let days = expiry.saturating_sub(answers.clock_ms / 1000) / DAY;
                if days < FEW_DAYS {
                    to_fix.push(format!(
                        "its certificate expires in {days} days: remove it and its key, and run `nigh pool keys` again"
                    ));
                }
                format!("{days} days")
            }
            Some(Err(error)) => {
                to_fix.push(error.clone());
                "none".to_owned()
            }
        };
        let unreachable = checked.unreachable.iter();
        to_fix.extend(
            unreachable.map(|(other, reason)| format!("process {other}: {reason}: open the port, or set `port`")),
        );
        let reaches = match checked.unreachable.len() {
            0 => "all".to_owned(),
            lost => format!("all but {lost}"),
        };
        let files = if answers.inputs.is_ok() && answers.folder.is_ok() { "ok" } else { "not all" };
        let address = answers.address.as_ref().map_or("no port".to_owned(), ToString::to_string);
        let clock = format!("{:+.1} s", ahead as f64 / 1e3);
        let cells =
            [name.clone(), answers.version.clone(), clock, certificate, address, reaches, free, files.to_owned()];
        HostRow { host: name, cells, to_fix }
    }
}

fn table(rows: &[HostRow]) -> String {
    let widths: [usize; 8] = std::array::from_fn(|column| {
        rows.iter().map(|row| row.cells[column].chars().count()).max().unwrap_or(0).max(COLUMNS[column].len())
    });
    let line = |process: String, cells: [&str; 8]| {
        let cells = cells.iter().zip(widths).map(|(cell, width)| format!("{cell:width$}"));
        let line = format!("{process:7}  {}", cells.collect::<Vec<_>>().join("  "));
        format!("{}\n", line.trim_end())
    };
    let rows = rows.iter().enumerate().map(|(me, row)| line(me.to_string(), row.cells.each_ref().map(String::as_str)));
    [line("process".to_owned(), COLUMNS)].into_iter().chain(rows).collect()
}
