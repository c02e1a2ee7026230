//! The probe of a host: answers the questions of `nigh pool check` about its machine, over the
//! pipes that a process would have.
//!
//! ```text
//! ─▶ Questions                   ◀─ Answers; the probe now listens, as a process would
//! ─▶ addresses of other probes   ◀─ for each, the error if it cannot be reached
//! ```

use std::io::Write;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use crate::launch::wire::TlsKeys;

/// The timeout of a connection to another probe's port.
const CONNECT_DEADLINE: Duration = Duration::from_secs(5);
/// How many wrong inputs a message names.
const NAMED: usize = 3;

/// The questions to a probe.
#[derive(Serialize, Deserialize)]
pub struct Questions {
    /// The folder of the run: relative paths start there.
    pub folder: PathBuf,
    /// The address at which to listen.
    pub listen: SocketAddr,
    /// The last port to try.
    pub last_port: u16,
    /// A file in or beside the store, just written on the machine of the check, and its text.
    pub written: Option<(PathBuf, String)>,
    /// Input files and their sizes in bytes.
    pub inputs: Vec<(PathBuf, u64)>,
    /// The folder of keys and the number of the process.
    pub keys: Option<(PathBuf, usize)>,
}

/// The answers of a probe. An error is a text for the user.
#[derive(Debug, Serialize, Deserialize)]
pub struct Answers {
    /// The version of its program.
    pub version: String,
    /// Its clock, in milliseconds since 1970.
    pub clock_ms: u64,
    /// Whether the folder exists.
    pub folder: Result<(), String>,
    /// The address at which it listens.
    pub address: Result<SocketAddr, String>,
    /// Free bytes in the file system of the store; `None` without a store.
    pub store: Option<Result<u64, String>>,
    /// Whether all inputs exist with the right size; the error names the first few that do not.
    pub inputs: Result<(), String>,
    /// When the certificate of the process expires, in seconds since 1970; `None` without keys.
    pub expiry: Option<Result<u64, String>>,
}

/// Milliseconds since 1970.
pub fn clock_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_millis() as u64)
}

/// Answers one check over stdin and stdout.
///
/// # Errors
/// A line is missing or not understood.
pub fn serve_probe() -> Result<()> {
    let mut lines = std::io::stdin().lines();
    let mut line = || lines.next().context("the check has ended")?.context("cannot read a question");
    let questions: Questions = serde_json::from_str(&line()?).context("the check is of another version of nigh")?;
    let folder = std::env::set_current_dir(&questions.folder);
    let listener = bind(questions.listen, questions.last_port);
    let answers = Answers {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        clock_ms: clock_ms(),
        folder: folder.map_err(|error| format!("cannot go to {}: {error}", questions.folder.display())),
        address: listener
            .as_ref()
            .map_err(Clone::clone)
            .and_then(|listener| listener.local_addr().map_err(|error| error.to_string())),
        store: questions.written.map(|(path, text)| free_bytes(&path, &text)),
        inputs: check_inputs(&questions.inputs),
        expiry: questions.keys.map(|(folder, me)| TlsKeys::expiry(&folder, me).map_err(|error| format!("{error:#}"))),
    };
    send(&answers)?;
    if let Ok(listener) = listener {
        // An accepted connection is all that another probe needs.
        std::thread::spawn(move || listener.incoming().for_each(drop));
    }
    let others: Vec<SocketAddr> = serde_json::from_str(&line()?).context("the check is of another version of nigh")?;
    let threads: Vec<_> = others.into_iter().map(|other| std::thread::spawn(move || unreachable(other))).collect();
    let unreachable: Vec<Option<String>> =
        threads.into_iter().map(|thread| thread.join().unwrap_or_default()).collect();
    send(&unreachable)?;
    // Other probes may still try to connect: the check ends stdin when all are done.
    lines.for_each(drop);
    Ok(())
}

/// Listens at the first port of a range that is free.
pub(crate) fn bind(mut address: SocketAddr, last_port: u16) -> Result<TcpListener, String> {
    loop {
        match TcpListener::bind(address) {
            Ok(listener) => return Ok(listener),
            Err(_) if address.port() < last_port => address.set_port(address.port() + 1),
            Err(error) => return Err(format!("cannot listen on {address}: {error}")),
        }
    }
}

fn unreachable(address: SocketAddr) -> Option<String> {
    TcpStream::connect_timeout(&address, CONNECT_DEADLINE).err().map(|error| format!("cannot reach {address}: {error}"))
}

fn free_bytes(path: &Path, text: &str) -> Result<u64, String> {
    let folder = path.parent().unwrap_or(Path::new("."));
    let failed = |error: &dyn std::fmt::Display| format!("cannot use {}: {error}", folder.display());
    match std::fs::read_to_string(path) {
        Ok(found) if found == text => {}
        Ok(_) => return Err(failed(&"it is not the same folder as on the machine of the check")),
        Err(error) if folder.is_dir() => {
            return Err(failed(&format_args!("a file that was just written there is not visible ({error})")));
        }
        Err(error) => return Err(failed(&error)),
    }
    rustix::fs::access(folder, rustix::fs::Access::WRITE_OK | rustix::fs::Access::EXEC_OK)
        .map_err(|error| failed(&error))?;
    let space = rustix::fs::statvfs(folder).map_err(|error| failed(&error))?;
    Ok(space.f_bavail.saturating_mul(space.f_frsize))
}

fn check_inputs(inputs: &[(PathBuf, u64)]) -> Result<(), String> {
    let wrong = |(path, bytes): &(PathBuf, u64)| match std::fs::metadata(path) {
        Ok(found) if found.len() == *bytes => None,
        Ok(found) => Some(format!("{} has {} bytes instead of {bytes}", path.display(), found.len())),
        Err(error) => Some(format!("{}: {error}", path.display())),
    };
    let wrong: Vec<String> = inputs.iter().filter_map(wrong).collect();
    match wrong.len() {
        0 => Ok(()),
        count => Err(format!("{count} of {} inputs: {}", inputs.len(), wrong[..count.min(NAMED)].join("; "))),
    }
}

fn send(answer: &impl Serialize) -> Result<()> {
    let mut line = serde_json::to_vec(answer).context("answers are plain data")?;
    line.push(b'\n');
    let mut stdout = std::io::stdout().lock();
    stdout.write_all(&line).and_then(|()| stdout.flush()).context("the check has ended")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_not_visible_or_differs_is_reported() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("probe");
        assert!(free_bytes(&path, "text").unwrap_err().contains("is not visible"));
        std::fs::write(&path, "other").unwrap();
        assert!(free_bytes(&path, "text").unwrap_err().contains("is not the same folder"));
        assert!(free_bytes(&path, "other").unwrap() > 0);
        assert!(check_inputs(&[(path.clone(), 5)]).is_ok());
        let error = check_inputs(&[(path, 6), (folder.path().join("gone"), 1)]).unwrap_err();
        assert!(error.contains("2 of 2 inputs") && error.contains("5 bytes instead of 6"), "{error}");
    }

    #[test]
    fn the_first_free_port_of_a_range_is_taken() {
        // Held from the beginning: other tests take free ports, too.
        let taken = bind("127.0.0.1:0".parse().unwrap(), 0).unwrap();
        let first = taken.local_addr().unwrap();
        assert!(bind(first, first.port()).unwrap_err().contains("cannot listen"));
        let next = bind(first, first.port().saturating_add(50)).unwrap().local_addr().unwrap();
        assert!(next.port() > first.port());
        drop(taken);
    }
}
