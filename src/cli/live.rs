//! `nigh live`: keeps the clusters of a store right in a process that stays up.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use anyhow::{Context, Result, bail, ensure};
use clap::{Args, ValueEnum};

use super::errors::WrongUse;
use super::session::{check_kernels, check_not_inside, lock};
use crate::config::{Config, Count};
use crate::launch::exit_on_panic;
use crate::live::{Access, Commitment, Limits, Server, Service, Started};
use crate::log::Log;
use crate::mirror::{StoreLocation, WriteGuard, url_of};
use crate::objects::refuse_secrets;
use crate::records::DocumentKey;
use crate::sheet::plural;
use crate::state::Store;

/// Examples at the end of `nigh help live`.
const EXAMPLES: &str = "\
Examples:
    nigh live corpus --by id
    curl -H 'Batch-Id: 1' --data-binary @documents.jsonl http://127.0.0.1:7744/documents
    nigh live corpus --stdin <documents.jsonl >answers.jsonl

Lines are {\"id\": \"17\", \"text\": \"...\"}, with `url` and `html` as well; {\"id\": \"17\", \"delete\": true} deletes. See docs/live.md.";

#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct LiveArgs {
    /// Folder of all tables; it is made if it is not there.
    #[arg(value_name = "STORE")]
    store: PathBuf,
    /// Serve HTTP at this address [default: 127.0.0.1:7744, or not at all with --stdin].
    #[arg(long, value_name = "ADDRESS:PORT")]
    listen: Option<SocketAddr>,
    /// Read records from standard input, and print an answer for each.
    #[arg(long, conflicts_with = "listen")]
    stdin: bool,
    /// File with the token that requests must have. Without it only an address of this machine is
    /// allowed.
    #[arg(long, value_name = "FILE", conflicts_with = "stdin")]
    token_file: Option<PathBuf>,
    /// What a document of a new store is known by [default: url].
    #[arg(long, value_enum, value_name = "KEY")]
    by: Option<By>,
    /// Threads that find features and keep clusters [default: one for each core].
    #[arg(long, value_name = "N")]
    workers: Option<Count>,
}

/// What a document is known by.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum By {
    /// Its URL.
    Url,
    /// Its id.
    Id,
}

/// Reads the store and its journal, and answers until a signal ends the process, or standard input.
pub(crate) fn run(args: &LiveArgs, log: &Log) -> Result<ExitCode> {
    if url_of(&args.store)?.is_some() {
        if let Some(url) = args.store.to_str() {
            refuse_secrets(url).map_err(WrongUse::from_error)?;
        }
        bail!(WrongUse("`nigh live` works on a store in a folder: one in a bucket is not locked for so long".into()));
    }
    check_not_inside(&args.store)?;
    check_kernels()?;
    let access = Access::new(token(args)?.as_deref()).map_err(WrongUse::from_error)?;
    let address = args.listen.unwrap_or(([127, 0, 0, 1], 7744).into());
    access.check(address).map_err(WrongUse::from_error)?;
    let location = StoreLocation::at(&args.store, None)?;
    let guard = lock(&location, log)?;
    let store = Store::at(&args.store);
    store.recover()?;
    exit_on_panic(1);
    let by = args.by.map(|by| if matches!(by, By::Url) { DocumentKey::Url } else { DocumentKey::Id });
    let workers = args.workers.map_or_else(|| Config::default().workers(1), |workers| workers.0);
    let limits = Limits::default();
    let (mut service, started) = Service::open(&store, by, workers, limits)?;
    if started.cut > 0 {
        log.notice(&format!(
            "{} at the end of the journal were not acknowledged, and are removed",
            plural(started.cut, "byte")
        ));
    }
    let documents = plural(service.counts().0.documents, "document");
    let Started { documents: of_week, batches, .. } = started;
    log.notice(&format!("{documents}: {of_week} of the last week, and {batches} batches of the journal"));
    stop_on_signals(log);
    if args.stdin {
        let _guard = guard;
        answer_lines(&mut service, std::io::stdin().lock(), std::io::stdout().lock(), limits)?;
    } else {
        let mut guard = Some(guard);
        let committer = {
            let (store, log) = (args.store.clone(), log.clone());
            Box::new(move |commitment: &Commitment| commit(commitment, &store, &location, &mut guard, &log))
        };
        let server = Server::start(service, address, access, limits, committer)?;
        log.notice(&format!("listening at http://{}", server.address));
        server.wait();
    }
    Ok(ExitCode::SUCCESS)
}

/// Runs `nigh delete` and `nigh add`, which take the lock of the store in the meantime.
fn commit(
    commitment: &Commitment,
    store: &Path,
    location: &StoreLocation,
    guard: &mut Option<WriteGuard>,
    log: &Log,
) -> Result<()> {
    guard.take();
    let made = make_tables(commitment, store);
    match lock(location, log) {
        Ok(again) => *guard = Some(again),
        // What was acknowledged is in the journal.
        Err(error) => {
            log.error(&format!("the lock was lost during a commit: {error:#}"));
            std::process::exit(1);
        }
    }
    made
}

fn make_tables(commitment: &Commitment, store: &Path) -> Result<()> {
    let program = std::env::current_exe().context("cannot find this program")?;
    let run = |arguments: &[&OsStr]| -> Result<()> {
        let output = Command::new(&program).args(arguments).stdin(Stdio::null()).output();
        let output = output.with_context(|| format!("cannot start {}", program.display()))?;
        let name = arguments[0].to_string_lossy();
        ensure!(output.status.success(), "nigh {name}: {}", String::from_utf8_lossy(&output.stderr).trim());
        Ok(())
    };
    if let Some(deleted) = &commitment.deleted {
        let names = if commitment.by == DocumentKey::Url { "--urls" } else { "--ids" };
        let [delete, of, quiet, names] = ["delete", "--store", "--quiet", names].map(OsStr::new);
        run(&[delete, of, store.as_ref(), names, deleted.as_ref(), quiet])?;
    }
    if let Some((job, input)) = &commitment.added {
        let [add, flag, quiet] = ["add", "--input", "--quiet"].map(OsStr::new);
        run(&[add, store.as_ref(), job.as_ref(), flag, input.as_ref(), quiet])?;
    }
    Ok(())
}

/// The token of the file, without the end of its line.
fn token(args: &LiveArgs) -> Result<Option<String>> {
    let Some(path) = &args.token_file else { return Ok(None) };
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read --token-file {}", path.display()))?;
    Ok(Some(text.trim_end_matches(['\r', '\n']).to_owned()))
}

/// Ends the process on SIGINT or SIGTERM: what was acknowledged is on the disk.
fn stop_on_signals(log: &Log) {
    let signals = signal_hook::iterator::Signals::new([signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM]);
    let Ok(mut signals) = signals else { return };
    let log = log.clone();
    std::thread::spawn(move || {
        if let Some(signal) = signals.forever().next() {
            log.notice("stopped; every acknowledged batch is in the journal, which the next `nigh live` reads");
            std::process::exit(128 + signal);
        }
    });
}

/// Records that are taken as a batch, if they are there.
const AT_ONCE: usize = 1000;

/// Takes the lines of a stream, as many at a time as are there, and prints an answer for each. A bad line is answered with an error, and
/// the others are taken.
fn answer_lines(service: &mut Service, input: impl Read, mut output: impl Write, limits: Limits) -> Result<()> {
    let mut input = BufReader::with_capacity(1 << 20, input);
    let (mut number, mut is_end) = (0, false);
    while !is_end {
        let mut batch: Vec<Result<Vec<u8>, String>> = Vec::new();
        let mut bytes = 0;
        while batch.len() < AT_ONCE && bytes < limits.batch_bytes / 2 {
            if !batch.is_empty() && !input.buffer().contains(&b'\n') {
                break;
            }
            let Some(line) = read_line(&mut input, limits.line_bytes)? else {
                is_end = true;
                break;
            };
            number += 1;
            let line = match line {
                Some(line) if line.trim_ascii().is_empty() => continue,
                Some(line) => crate::live::read_batch(&line, service.documents(), &limits)
                    .map(|_| line)
                    .map_err(|refusal| refusal.text.trim_start_matches("line 1: ").to_owned()),
                None => Err(format!("more than {} bytes", limits.line_bytes)),
            };
            bytes += line.as_ref().map_or(0, Vec::len);
            batch.push(line.map_err(|reason| format!("line {number}: {reason}")));
        }
        let good: Vec<u8> = batch.iter().flatten().flat_map(|line| [line.as_slice(), b"\n"].concat()).collect();
        let answers = service.add(None, &good)?;
        let mut answers = answers.split_inclusive(|byte| *byte == b'\n');
        for line in batch {
            match line {
                Ok(_) => output.write_all(answers.next().unwrap_or_default())?,
                Err(reason) => writeln!(output, "{}", serde_json::json!({ "error": reason }))?,
            }
        }
        output.flush()?;
    }
    Ok(())
}

/// Reads a line without its end; `Some(None)` for one that is too long, of which no more than the limit is in memory.
fn read_line(input: &mut impl BufRead, most: usize) -> Result<Option<Option<Vec<u8>>>> {
    let mut line = Vec::new();
    let read = input.take(most as u64 + 1).read_until(b'\n', &mut line).context("cannot read standard input")?;
    if read == 0 {
        return Ok(None);
    }
    if line.pop_if(|last| *last == b'\n').is_some() || line.len() <= most {
        return Ok(Some(Some(line)));
    }
    input.skip_until(b'\n').context("cannot read standard input")?;
    Ok(Some(None))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_a_stream_are_answered_each() {
        let folder = tempfile::tempdir().unwrap();
        let limits = Limits { line_bytes: 60, ..Limits::default() };
        let store = Store::at(folder.path());
        let (mut service, _) = Service::open(&store, Some(DocumentKey::Id), 1, limits).unwrap();
        let long = format!("{{\"id\":2,\"text\":\"{}\"}}", "a".repeat(70));
        let input = format!("{{\"id\":1,\"text\":\"a b c\"}}\n\nnot JSON\n{long}\n{{\"id\":3,\"text\":\"a b c\"}}");
        let mut output = Vec::new();
        answer_lines(&mut service, input.as_bytes(), &mut output, limits).unwrap();
        let output = String::from_utf8(output).unwrap();
        let lines: Vec<&str> = output.lines().collect();
        assert_eq!(lines.len(), 4, "{output}");
        assert!(lines[0].contains("\"id\":\"1\""), "{output}");
        assert!(lines[1].starts_with("{\"error\":\"line 3: not a JSON object"), "{output}");
        assert!(lines[2].contains("line 4: more than 60 bytes"), "{output}");
        assert!(lines[3].contains("\"size\":2") && lines[3].contains("\"level\":\"exact\""), "{output}");
    }
}
