//! What a host of a pool finds out about itself: asked by `nigh pool check` over the pipes that a process would have.
//!
//! ```text
//! ─▶ Questions             ◀─ Answers       and it listens, as a process would
//! ─▶ addresses of others   ◀─ those that cannot be reached
//! ```

use std::io::Write;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use crate::launch::wire::Keys;

/// How long another process' port may take to answer.
const CONNECT_DEADLINE: Duration = Duration::from_secs(5);
/// So many inputs that are not as they should be are named.
const NAMED: usize = 3;

/// What a host is asked.
#[derive(Serialize, Deserialize)]
pub struct Questions {
    /// The folder that relative paths start from.
    pub folder: PathBuf,
    /// Where it is to listen.
    pub listen: SocketAddr,
    /// The last port that it may listen at.
    pub last_port: u16,
    /// A file that was written elsewhere, beside or in the store, and what is in it.
    pub written: Option<(PathBuf, String)>,
    /// Inputs, and their bytes.
    pub inputs: Vec<(PathBuf, u64)>,
    /// The folder of keys, and the process whose it needs.
    pub keys: Option<(PathBuf, usize)>,
}

/// What a host answers; each question that was not answered well has a text that says why.
#[derive(Debug, Serialize, Deserialize)]
pub struct Answers {
    /// The version of the program there.
    pub version: String,
    /// Its clock, in milliseconds since 1970.
    pub clock_ms: u64,
    /// Whether the folder is there.
    pub folder: Result<(), String>,
    /// Where it listens.
    pub address: Result<SocketAddr, String>,
    /// The bytes that are free where the store is, if there is one.
    pub store: Option<Result<u64, String>>,
    /// Inputs that are not there, or are others; the first few are named.
    pub inputs: Result<(), String>,
    /// When the certificate of the process expires, in seconds since 1970, if there is one.
    pub expiry: Option<Result<u64, String>>,
}

/// Milliseconds since 1970.
pub fn clock_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_millis() as u64)
}

/// Answers one supervisor over stdin and stdout.
///
/// # Errors
/// Where it cannot be understood.
pub fn serve_probe() -> Result<()> {
    let mut lines = std::io::stdin().lines();
    let mut line = || lines.next().context("nobody asks any more")?.context("cannot read what is asked");
    let questions: Questions = serde_json::from_str(&line()?).context("who asks speaks another version")?;
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
        store: questions.written.map(|(path, text)| store(&path, &text)),
        inputs: inputs(&questions.inputs),
        expiry: questions.keys.map(|(folder, me)| Keys::expiry(&folder, me).map_err(|error| format!("{error:#}"))),
    };
    say(&answers)?;
    if let Ok(listener) = listener {
        // To accept is the answer.
        std::thread::spawn(move || listener.incoming().for_each(drop));
    }
    let others: Vec<SocketAddr> = serde_json::from_str(&line()?).context("who asks speaks another version")?;
    let threads: Vec<_> = others.into_iter().map(|other| std::thread::spawn(move || unreachable(other))).collect();
    let unreachable: Vec<Option<String>> =
        threads.into_iter().map(|thread| thread.join().unwrap_or_default()).collect();
    say(&unreachable)?;
    // Others may still try to connect: who asks says when it is over, by ending stdin.
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

fn store(path: &Path, text: &str) -> Result<u64, String> {
    let folder = path.parent().unwrap_or(Path::new("."));
    let failed = |error: &dyn std::fmt::Display| format!("cannot use {}: {error}", folder.display());
    match std::fs::read_to_string(path) {
        Ok(found) if found == text => {}
        Ok(_) => return Err(failed(&"it is not the folder of the machine that asks")),
        Err(error) if folder.is_dir() => {
            return Err(failed(&format_args!("a file that was just written there is not seen ({error})")));
        }
        Err(error) => return Err(failed(&error)),
    }
    rustix::fs::access(folder, rustix::fs::Access::WRITE_OK | rustix::fs::Access::EXEC_OK)
        .map_err(|error| failed(&error))?;
    let space = rustix::fs::statvfs(folder).map_err(|error| failed(&error))?;
    Ok(space.f_bavail.saturating_mul(space.f_frsize))
}

fn inputs(inputs: &[(PathBuf, u64)]) -> Result<(), String> {
    let odd = |(path, bytes): &(PathBuf, u64)| match std::fs::metadata(path) {
        Ok(found) if found.len() == *bytes => None,
        Ok(found) => Some(format!("{} has {} bytes instead of {bytes}", path.display(), found.len())),
        Err(error) => Some(format!("{}: {error}", path.display())),
    };
    let odd: Vec<String> = inputs.iter().filter_map(odd).collect();
    match odd.len() {
        0 => Ok(()),
        count => Err(format!("{count} of {} inputs: {}", inputs.len(), odd[..count.min(NAMED)].join("; "))),
    }
}

fn say(what: &impl Serialize) -> Result<()> {
    let mut line = serde_json::to_vec(what).context("answers are plain data")?;
    line.push(b'\n');
    let mut stdout = std::io::stdout().lock();
    stdout.write_all(&line).and_then(|()| stdout.flush()).context("nobody listens any more")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_not_seen_or_is_another_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("probe");
        assert!(store(&path, "text").unwrap_err().contains("is not seen"));
        std::fs::write(&path, "other").unwrap();
        assert!(store(&path, "text").unwrap_err().contains("is not the folder"));
        assert!(store(&path, "other").unwrap() > 0);
        assert!(inputs(&[(path.clone(), 5)]).is_ok());
        let error = inputs(&[(path, 6), (folder.path().join("gone"), 1)]).unwrap_err();
        assert!(error.contains("2 of 2 inputs") && error.contains("5 bytes instead of 6"), "{error}");
    }

    #[test]
    fn the_first_free_port_of_a_range_is_taken() {
        let first = bind("127.0.0.1:0".parse().unwrap(), 0).unwrap().local_addr().unwrap();
        let taken = bind(first, first.port()).unwrap();
        assert!(bind(first, first.port()).unwrap_err().contains("cannot listen"));
        let next = bind(first, first.port().saturating_add(50)).unwrap().local_addr().unwrap();
        assert!(next.port() > first.port());
        drop(taken);
    }
}
