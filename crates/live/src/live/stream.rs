//! Lines of a stream, such as standard input: as many as are there are taken as a batch, and each
//! is answered.

use std::io::{BufRead, BufReader, Read, Write};
use std::sync::mpsc::{RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};

use super::batch::{Limits, read_batch};
use super::service::{Commits, Service};
use crate::config::Method;

/// Records that are taken as a batch, if they are there.
const AT_ONCE: usize = 1000;

/// How long a batch waits for processes that start again, and how often it is tried.
const PATIENCE: Duration = Duration::from_secs(5 * 60);
const PAUSE: Duration = Duration::from_millis(200);

/// Lines of a batch: those that are records, and why others are not.
type Batch = Vec<Result<Vec<u8>, String>>;

/// Takes the lines of a stream, as many at a time as are there, and writes an answer for each. A
/// bad line is answered with an error, and the others are taken. Commits when it is time, also
/// while no line comes, and at the end.
///
/// # Errors
/// If the stream cannot be read, the answers cannot be written, a batch cannot be taken, or the
/// commit at the end fails.
pub fn answer_lines(
    mut service: Service,
    mut commits: Commits,
    input: impl Read + Send + 'static,
    mut output: impl Write,
    limits: Limits,
) -> Result<()> {
    let method = service.method().clone();
    let (sender, batches) = sync_channel(1);
    // If this function fails, the thread ends with the process, or when it has read the next batch.
    std::thread::spawn(move || read_batches(input, &method, limits, &sender));
    loop {
        let batch = match commits.wait(&service).into_iter().chain(service.wait()).min() {
            Some(wait) => batches.recv_timeout(wait),
            None => batches.recv().map_err(RecvTimeoutError::from),
        };
        match batch {
            Ok(batch) => answer_batch(&mut service, batch?, &mut output)?,
            Err(RecvTimeoutError::Timeout) => {
                service.look();
                service.mend();
            }
            Err(RecvTimeoutError::Disconnected) => break,
        }
        commits.commit_if_due(&mut service);
    }
    let rest = commits.commit_rest(&mut service);
    rest.context(
        "all lines are in the journal, which the next `nigh live` reads, and the tables do not have all of them",
    )
}

/// Takes the records of a batch, and writes the answers.
fn answer_batch(service: &mut Service, batch: Batch, output: &mut impl Write) -> Result<()> {
    let good: Vec<u8> = batch.iter().flatten().flat_map(|line| [line.as_slice(), b"\n"].concat()).collect();
    let begun = Instant::now();
    let answers = loop {
        match service.add(None, &good) {
            // It was not taken. The processes start again.
            Err(_) if service.fault().is_some() && begun.elapsed() < PATIENCE => std::thread::sleep(PAUSE),
            answers => break answers?,
        }
    };
    let mut answers = answers.split_inclusive(|byte| *byte == b'\n');
    for line in batch {
        match line {
            Ok(_) => output.write_all(answers.next().unwrap_or_default())?,
            Err(reason) => writeln!(output, "{}", serde_json::json!({ "error": reason }))?,
        }
    }
    Ok(output.flush()?)
}

/// Sends the batches of a stream until it ends.
fn read_batches(input: impl Read, method: &Method, limits: Limits, batches: &SyncSender<Result<Batch>>) {
    let mut input = BufReader::with_capacity(1 << 20, input);
    let mut number = 0;
    loop {
        let batch = next_batch(&mut input, method, &limits, &mut number);
        let is_end = batch.as_ref().map_or(true, |(_, is_end)| *is_end);
        if batches.send(batch.map(|(batch, _)| batch)).is_err() || is_end {
            return;
        }
    }
}

/// Reads the next batch, and whether the stream ends with it. `number` is that of the last line.
fn next_batch<R: Read>(
    input: &mut BufReader<R>,
    method: &Method,
    limits: &Limits,
    number: &mut u64,
) -> Result<(Batch, bool)> {
    let mut batch = Batch::new();
    let mut bytes = 0;
    while batch.len() < AT_ONCE && bytes < limits.batch_bytes / 2 {
        if !batch.is_empty() && !input.buffer().contains(&b'\n') {
            break;
        }
        let Some(line) = read_line(input, limits.line_bytes)? else { return Ok((batch, true)) };
        *number += 1;
        let line = match line {
            Some(line) if line.trim_ascii().is_empty() => continue,
            Some(line) => read_batch(&line, method, limits)
                .map(|_| line)
                .map_err(|refusal| refusal.text.trim_start_matches("line 1: ").to_owned()),
            None => Err(format!("more than {} bytes", limits.line_bytes)),
        };
        bytes += line.as_ref().map_or(0, Vec::len);
        batch.push(line.map_err(|reason| format!("line {number}: {reason}")));
    }
    Ok((batch, false))
}

/// Reads a line without its end; `Some(None)` for one that is too long, of which no more than the
/// limit is in memory.
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
    use crate::live::service::Commitment;
    use crate::records::DocumentKey;
    use crate::state::Store;

    #[test]
    fn lines_of_a_stream_are_answered_each() {
        let folder = tempfile::tempdir().unwrap();
        let limits = Limits { line_bytes: 60, ..Limits::default() };
        let store = Store::at(folder.path());
        let (service, _) = Service::open(&store, Some(DocumentKey::Id), 1, limits).unwrap();
        let long = format!("{{\"id\":2,\"text\":\"{}\"}}", "a".repeat(70));
        let input = format!("{{\"id\":1,\"text\":\"a b c\"}}\n\nnot JSON\n{long}\n{{\"id\":3,\"text\":\"a b c\"}}");
        let mut output = Vec::new();
        let commits = Commits::new(Default::default(), Box::new(|_| Ok(())), Box::new(|_| {}));
        answer_lines(service, commits, std::io::Cursor::new(input), &mut output, limits).unwrap();
        let output = String::from_utf8(output).unwrap();
        let lines: Vec<&str> = output.lines().collect();
        assert_eq!(lines.len(), 4, "{output}");
        assert!(lines[0].contains("\"id\":\"1\""), "{output}");
        assert!(lines[1].starts_with("{\"error\":\"line 3: not a JSON object"), "{output}");
        assert!(lines[2].contains("line 4: more than 60 bytes"), "{output}");
        assert!(lines[3].contains("\"size\":2") && lines[3].contains("\"level\":\"exact\""), "{output}");
    }

    #[test]
    fn a_last_commit_that_fails_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let limits = Limits::default();
        let (service, _) = Service::open(&Store::at(folder.path()), Some(DocumentKey::Id), 1, limits).unwrap();
        let committer = Box::new(|_: &Commitment| -> Result<()> { anyhow::bail!("nigh add: the disk is full") });
        let commits = Commits::new("1h".parse().unwrap(), committer, Box::new(|_| {}));
        let input = std::io::Cursor::new("{\"id\":1,\"text\":\"a b c\"}\n");
        let mut output = Vec::new();
        let error = answer_lines(service, commits, input, &mut output, limits).unwrap_err();
        assert!(String::from_utf8(output).unwrap().contains("\"new\":true"), "the line is answered");
        let error = format!("{error:#}");
        assert!(error.contains("are in the journal") && error.contains("the disk is full"), "{error}");
    }
}
