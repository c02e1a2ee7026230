//! Tries every host of a pool before a job needs it.

use std::io::{BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::process::{Child, ChildStdin, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};

use super::probe::{Answers, Questions, clock_ms};
use crate::launch::hosts::{Launch, Pool, ProcessHost};

/// How long a host may take for each answer.
const ANSWER_DEADLINE: Duration = Duration::from_secs(40);
/// How long a probe whose pipes ended may take to end.
const ENDING: Duration = Duration::from_secs(2);

/// What was found out about one process' host.
pub struct Checked {
    /// What it answers, or why it does not.
    pub answers: Result<Answers>,
    /// Milliseconds that its clock is ahead of the one here, and how much of that may be the way there.
    pub clock: (i64, u64),
    /// The processes that it cannot reach, each with the reason.
    pub unreachable: Vec<(usize, String)>,
}

/// A host that is being asked; the probe ends when it is dropped.
struct ProbedHost {
    child: Child,
    stdin: ChildStdin,
    lines: Receiver<String>,
    stderr: Receiver<String>,
}

impl Drop for ProbedHost {
    fn drop(&mut self) {
        // An error says that it ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Asks all hosts of a pool; `questions` are the same for all, but for where each listens and what its number is.
///
/// # Errors
/// Where this program cannot start another one at all.
pub fn check(pool: &Pool, questions: impl Fn(usize, &ProcessHost) -> Questions + Sync) -> Result<Vec<Checked>> {
    let questions = &questions;
    let mut asked: Vec<(Option<ProbedHost>, Checked)> = std::thread::scope(|scope| {
        let threads: Vec<_> = pool
            .hosts
            .iter()
            .enumerate()
            .map(|(me, host)| scope.spawn(move || first_answers(host, &questions(me, host))))
            .collect();
        threads.into_iter().map(|thread| thread.join().expect("asking does not panic")).collect()
    });
    let addresses: Vec<Option<SocketAddr>> = asked
        .iter()
        .zip(&pool.hosts)
        .map(|((_, checked), host)| {
            let address = checked.answers.as_ref().ok()?.address.as_ref().ok()?;
            Some(host.reached_at(address.port()))
        })
        .collect();
    std::thread::scope(|scope| {
        for (me, (asked, checked)) in asked.iter_mut().enumerate() {
            let addresses = &addresses;
            scope.spawn(move || {
                let Some(asked) = asked else { return };
                let known = |(other, address): (usize, &Option<SocketAddr>)| Some((other, (*address)?));
                let others: Vec<(usize, SocketAddr)> =
                    addresses.iter().enumerate().filter_map(known).filter(|(other, _)| *other != me).collect();
                let addresses: Vec<SocketAddr> = others.iter().map(|(_, address)| *address).collect();
                match asked.ask::<Vec<Option<String>>>(&addresses) {
                    Ok(reasons) => {
                        let each = others.iter().zip(reasons);
                        checked.unreachable = each.filter_map(|((other, _), reason)| Some((*other, reason?))).collect();
                    }
                    Err(error) => checked.answers = Err(error),
                }
            });
        }
    });
    Ok(asked.into_iter().map(|(_, checked)| checked).collect())
}

fn first_answers(host: &ProcessHost, questions: &Questions) -> (Option<ProbedHost>, Checked) {
    // A probe's file there may have to be sent first: only what follows counts for the clock.
    let mut clock = (0, 0);
    let answers = ProbedHost::start(host).and_then(|mut asked| {
        let asked_at = clock_ms();
        let answers: Answers = asked.ask(questions)?;
        let way = clock_ms().saturating_sub(asked_at);
        clock = (answers.clock_ms as i64 - (asked_at + way / 2) as i64, way);
        Ok((asked, answers))
    });
    match answers {
        Ok((asked, answers)) => (Some(asked), Checked { answers: Ok(answers), clock, unreachable: Vec::new() }),
        Err(error) => (None, Checked { answers: Err(error), clock, unreachable: Vec::new() }),
    }
}

impl ProbedHost {
    fn start(host: &ProcessHost) -> Result<ProbedHost> {
        let Launch { mut command, first } = host.launch(&["probe"])?;
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child =
            command.spawn().with_context(|| format!("cannot start {}", command.get_program().to_string_lossy()))?;
        let mut stdin = child.stdin.take().context("a child has a stdin")?;
        // As for every question: where it is gone already, its stdout ends.
        let _ = stdin.write_all(&first);
        let lines = lines_of(child.stdout.take().context("a child has a stdout")?);
        let stderr = lines_of(child.stderr.take().context("a child has a stderr")?);
        Ok(ProbedHost { child, stdin, lines, stderr })
    }

    fn ask<T: serde::de::DeserializeOwned>(&mut self, question: &impl serde::Serialize) -> Result<T> {
        let mut line = serde_json::to_vec(question).context("a question is plain data")?;
        line.push(b'\n');
        // Where it is gone already, its stdout ends.
        let _ = self.stdin.write_all(&line);
        loop {
            let Ok(line) = self.lines.recv_timeout(ANSWER_DEADLINE) else { bail!(self.silence()) };
            // Whatever a login prints there is no answer.
            if let Ok(answer) = serde_json::from_str(&line) {
                return Ok(answer);
            }
        }
    }

    /// Why it says nothing more.
    fn silence(&mut self) -> anyhow::Error {
        let said: Vec<String> = std::iter::from_fn(|| self.stderr.recv_timeout(Duration::from_secs(1)).ok()).collect();
        // Its pipes end a moment before it does.
        let begun = Instant::now();
        let status = loop {
            match self.child.try_wait().ok().flatten() {
                None if begun.elapsed() < ENDING => std::thread::sleep(Duration::from_millis(10)),
                status => break status,
            }
        };
        let code = status.and_then(|status| status.code());
        let why = match (status, code) {
            (None, _) => format!("no answer within {} s", ANSWER_DEADLINE.as_secs()),
            (_, Some(255)) => "ssh cannot reach it, or log in there".to_owned(),
            (_, Some(126 | 127)) => {
                "the program is not there: set `binary` to its path, or to \"copy\" to send it along".to_owned()
            }
            (_, Some(2)) => {
                "the program there is another version: set `binary` to \"copy\" to send this one along".to_owned()
            }
            (Some(status), _) => format!("the program there ended ({status})"),
        };
        match said.iter().rev().find(|line| !line.trim().is_empty()) {
            Some(line) => anyhow!("{why} ({})", line.trim()),
            None => anyhow!(why),
        }
    }
}

fn lines_of(pipe: impl std::io::Read + Send + 'static) -> Receiver<String> {
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        for line in BufReader::new(pipe).split(b'\n') {
            let Ok(line) = line else { return };
            if sender.send(String::from_utf8_lossy(&line).into_owned()).is_err() {
                return;
            }
        }
    });
    receiver
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::launch::pool::ssh::tests::local;

    #[test]
    fn a_probe_has_the_variables_of_its_host_and_hears_every_question() {
        let folder = tempfile::tempdir().unwrap();
        // What `sh probe` runs: it answers, and tells a variable where a version would be.
        let probe = r#"
            read -r questions
            case $questions in '{"folder":'*) ;; *) exit 9 ;; esac
            printf '{"version":"%s","clock_ms":0,"folder":{"Ok":null},"address":{"Err":"none"},' "$PLAIN"
            printf '"store":null,"inputs":{"Ok":null},"expiry":null}\n'
            read -r others
            printf '%s\n' "$others""#;
        std::fs::write(folder.path().join("probe"), probe).unwrap();
        let pool = local("sh", &format!("cd '{}'", folder.path().display()));
        let checked = check(&pool, |_, host| Questions {
            folder: folder.path().to_owned(),
            listen: SocketAddr::new(host.listen, 0),
            last_port: 0,
            written: None,
            inputs: Vec::new(),
            keys: None,
        });
        let checked = checked.unwrap().remove(0);
        assert_eq!(checked.answers.unwrap().version, "secret-7");
        assert!(checked.unreachable.is_empty());
    }
}
