//! Checks every host of a pool before a job needs it: `nigh pool check`.

use std::io::{BufRead, BufReader, Write};
use std::net::{IpAddr, SocketAddr};
use std::process::{Child, ChildStdin};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};

use super::probe::{Answers, Questions, clock_ms};
use crate::launch::handshake::Secrets;
use crate::launch::process_hosts::{Launch, Pool, ProcessHost};
use crate::launch::program::spawn_with_pipes;

/// The timeout of each answer of a host.
const ANSWER_DEADLINE: Duration = Duration::from_secs(40);
/// How long a probe may run after its pipes ended.
const EXIT_DEADLINE: Duration = Duration::from_secs(2);

/// The result of the check of one process' host.
pub struct CheckedHost {
    /// Its answers, or the reason why there are none.
    pub answers: Result<Answers>,
    /// Milliseconds by which its clock is ahead of this machine's, and the round-trip time, which
    /// is the uncertainty of that.
    pub clock: (i64, u64),
    /// The processes that it cannot reach, with the reasons.
    pub unreachable: Vec<(usize, String)>,
    /// Why no process may join at its address: other machines are joined with keys only.
    pub refused: Option<String>,
}

/// The probe that runs on a host; it ends when this is dropped.
struct ProbedHost {
    /// The address to which other processes connect.
    reached: IpAddr,
    child: Child,
    stdin: ChildStdin,
    lines: Receiver<String>,
    stderr: Receiver<String>,
}

impl Drop for ProbedHost {
    fn drop(&mut self) {
        // An error means that it has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Checks all hosts of a pool at the same time. `questions` gives the questions for a process by
/// its number, its host and the address at which it listens.
///
/// # Errors
/// This program cannot start any other program.
pub fn check(
    pool: &Pool,
    questions: impl Fn(usize, &ProcessHost, IpAddr) -> Questions + Sync,
) -> Result<Vec<CheckedHost>> {
    let questions = &questions;
    let mut probes: Vec<(Option<ProbedHost>, CheckedHost)> = std::thread::scope(|scope| {
        let threads: Vec<_> = pool
            .hosts
            .iter()
            .enumerate()
            .map(|(me, host)| scope.spawn(move || first_answers(host, |listen| questions(me, host, listen))))
            .collect();
        threads.into_iter().map(|thread| thread.join().expect("first_answers does not panic")).collect()
    });
    let addresses: Vec<Option<SocketAddr>> = probes
        .iter()
        .map(|(probe, checked)| {
            let address = checked.answers.as_ref().ok()?.address.as_ref().ok()?;
            Some(SocketAddr::new(probe.as_ref()?.reached, address.port()))
        })
        .collect();
    if pool.keys.is_none() {
        for ((_, checked), reached) in probes.iter_mut().zip(&addresses) {
            let answers = checked.answers.as_ref().ok();
            let listens = answers.and_then(|answers| answers.address.as_ref().ok());
            let refused = listens.into_iter().chain(reached).find_map(|address| Secrets::allow(*address).err());
            checked.refused = refused.map(|error| error.to_string());
        }
    }
    std::thread::scope(|scope| {
        for (me, (probe, checked)) in probes.iter_mut().enumerate() {
            let addresses = &addresses;
            scope.spawn(move || {
                let Some(probe) = probe else { return };
                let known = |(other, address): (usize, &Option<SocketAddr>)| Some((other, (*address)?));
                let others: Vec<(usize, SocketAddr)> =
                    addresses.iter().enumerate().filter_map(known).filter(|(other, _)| *other != me).collect();
                let addresses: Vec<SocketAddr> = others.iter().map(|(_, address)| *address).collect();
                match probe.ask::<Vec<Option<String>>>(&addresses) {
                    Ok(reasons) => {
                        let each = others.iter().zip(reasons);
                        checked.unreachable = each.filter_map(|((other, _), reason)| Some((*other, reason?))).collect();
                    }
                    Err(error) => checked.answers = Err(error),
                }
            });
        }
    });
    Ok(probes.into_iter().map(|(_, checked)| checked).collect())
}

fn first_answers(host: &ProcessHost, questions: impl FnOnce(IpAddr) -> Questions) -> (Option<ProbedHost>, CheckedHost) {
    // The program may have to be copied first: the clock is compared after that.
    let mut clock = (0, 0);
    let answers = host.addresses().and_then(|addresses| {
        let questions = questions(addresses.listen);
        let mut probe = ProbedHost::start(host, addresses.reached)?;
        let sent_at = clock_ms();
        let answers: Answers = probe.ask(&questions)?;
        let round_trip = clock_ms().saturating_sub(sent_at);
        clock = (answers.clock_ms as i64 - (sent_at + round_trip / 2) as i64, round_trip);
        Ok((probe, answers))
    });
    let (probe, answers) = match answers {
        Ok((probe, answers)) => (Some(probe), Ok(answers)),
        Err(error) => (None, Err(error)),
    };
    (probe, CheckedHost { answers, clock, unreachable: Vec::new(), refused: None })
}

impl ProbedHost {
    fn start(host: &ProcessHost, reached: IpAddr) -> Result<ProbedHost> {
        let Launch { mut command, first } = host.launch(&["probe"])?;
        let (child, mut stdin, stdout, stderr) = spawn_with_pipes(&mut command)?;
        // If the probe has ended already, its stdout ends: see `ask`.
        let _ = stdin.write_all(&first);
        Ok(ProbedHost { reached, child, stdin, lines: lines_of(stdout), stderr: lines_of(stderr) })
    }

    fn ask<T: serde::de::DeserializeOwned>(&mut self, question: &impl serde::Serialize) -> Result<T> {
        let mut line = serde_json::to_vec(question).context("a question is plain data")?;
        line.push(b'\n');
        // If the probe has ended already, its stdout ends.
        let _ = self.stdin.write_all(&line);
        loop {
            let Ok(line) = self.lines.recv_timeout(ANSWER_DEADLINE) else { bail!(self.failure()) };
            // Lines that a login prints are not answers.
            if let Ok(answer) = serde_json::from_str(&line) {
                return Ok(answer);
            }
        }
    }

    /// The reason why the probe sends no answer.
    fn failure(&mut self) -> anyhow::Error {
        let errors: Vec<String> =
            std::iter::from_fn(|| self.stderr.recv_timeout(Duration::from_secs(1)).ok()).collect();
        // The pipes of a probe end a moment before the probe.
        let start = Instant::now();
        let status = loop {
            match self.child.try_wait().ok().flatten() {
                None if start.elapsed() < EXIT_DEADLINE => std::thread::sleep(Duration::from_millis(10)),
                status => break status,
            }
        };
        let code = status.and_then(|status| status.code());
        let why = match (status, code) {
            (None, _) => format!("no answer within {} s", ANSWER_DEADLINE.as_secs()),
            (_, Some(255)) => "ssh cannot reach it or cannot log in".to_owned(),
            (_, Some(126 | 127)) => {
                "the program is not there: set `binary` to its path, or to \"copy\" to have it copied".to_owned()
            }
            (_, Some(2)) => {
                "the program there is another version: set `binary` to \"copy\" to have this one copied".to_owned()
            }
            (Some(status), _) => format!("the program there ended ({status})"),
        };
        match errors.iter().rev().find(|line| !line.trim().is_empty()) {
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

    /// Checks a host on which `probe` runs in the place of the program.
    fn checked(probe: &str) -> CheckedHost {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("probe"), probe).unwrap();
        let pool = local("sh", &format!("cd '{}'", folder.path().display()));
        let checked = check(&pool, |_, _, listen| Questions {
            folder: folder.path().to_owned(),
            listen: SocketAddr::new(listen, 0),
            last_port: 0,
            written: None,
            inputs: Vec::new(),
            keys: None,
        });
        checked.unwrap().remove(0)
    }

    #[test]
    fn a_probe_has_the_variables_of_its_host_and_receives_every_question() {
        // `sh probe` runs this: it answers with a variable in the place of the version.
        let probe = r#"
            read -r questions
            case $questions in '{"folder":'*) ;; *) exit 9 ;; esac
            printf '{"version":"%s","clock_ms":0,"folder":{"Ok":null},"address":{"Err":"none"},' "$PLAIN"
            printf '"store":null,"inputs":{"Ok":null},"expiry":null}\n'
            read -r others
            printf '%s\n' "$others""#;
        let checked = checked(probe);
        assert_eq!(checked.answers.unwrap().version, "secret-7");
        assert!(checked.unreachable.is_empty());
    }

    #[test]
    fn without_keys_a_host_that_other_machines_would_reach_is_refused() {
        for (address, is_refused) in [("127.0.0.1:2101", false), ("192.0.2.7:2101", true)] {
            let answers = format!(
                "{{\"version\":\"1\",\"clock_ms\":0,\"folder\":{{\"Ok\":null}},\"address\":{{\"Ok\":\"{address}\"}},\
                 \"store\":null,\"inputs\":{{\"Ok\":null}},\"expiry\":null}}"
            );
            let checked = checked(&format!("read -r questions\necho '{answers}'\nread -r others\necho '[]'\n"));
            let wanted = format!("{address} is not on loopback: other machines are joined by TLS only");
            let refused = checked.refused.as_deref().map(|refused| refused.starts_with(&wanted));
            assert_eq!(refused, is_refused.then_some(true), "{:?}", checked.refused);
        }
    }
}
