//! A machine that is reached by the user's own `ssh`: with their keys and their ssh config.

use std::net::ToSocketAddrs;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use super::command::finished;
use crate::config::{Config, Destination, HostTable, Variables};
use crate::launch::hosts::{HostReach, Launch, ProcessHost};
use crate::launch::program::this_program;

/// Options of ours, after the user's own: ssh takes the first of each.
const SSH_OPTIONS: [&str; 9] = [
    "-T",
    "-o",
    "BatchMode=yes",
    "-o",
    "ConnectTimeout=10",
    "-o",
    "ServerAliveInterval=5",
    "-o",
    "ServerAliveCountMax=3",
];
/// Where a program that is sent along is put, as the shell there says it.
const CACHE: &str = "${XDG_CACHE_HOME:-$HOME/.cache}/nigh";

/// A machine reached by ssh.
#[derive(Clone, Debug)]
pub struct SshHost {
    /// The command that reaches it, with the user's options.
    ssh: Vec<String>,
    /// What the command connects to.
    destination: Destination,
    /// The program there.
    binary: Binary,
}

/// The program on another machine.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Binary {
    /// It is there.
    Installed(String),
    /// It is sent along.
    Copy,
}

impl SshHost {
    /// The process of a `[[hosts]]` table.
    ///
    /// # Errors
    /// The address of the host is not known.
    pub(crate) fn process(table: &HostTable, config: &Config) -> Result<ProcessHost> {
        let name = table.address.as_deref().unwrap_or(table.name.machine());
        let address =
            (name, 0).to_socket_addrs().ok().and_then(|mut addresses| addresses.next()).with_context(|| {
                format!("the address of the host {name} is not known here: set `address` in its [[hosts]]")
            })?;
        let binary = table.binary.as_ref().or(config.binary.as_ref());
        let binary = match binary.map(String::as_str) {
            Some("copy") => Binary::Copy,
            Some(path) => Binary::Installed(path.to_owned()),
            None => Binary::Installed("nigh".to_owned()),
        };
        let ssh = config.ssh.clone().unwrap_or_else(|| vec!["ssh".to_owned()]);
        Ok(ProcessHost {
            place: HostReach::Ssh(SshHost { ssh, destination: table.name.clone(), binary }),
            listen: table.listen.unwrap_or(address.ip()),
            ports: table.port,
            address: address.ip(),
            environment: table.environment.clone(),
        })
    }

    /// What `ssh` connects to.
    pub(crate) fn destination(&self) -> &Destination {
        &self.destination
    }

    /// The command that starts the program on the host with these arguments and variables.
    pub(crate) fn launch(&self, arguments: &[&str], variables: &Variables) -> Result<Launch> {
        let variables = &variables.0;
        let program = match &self.binary {
            Binary::Installed(path) => quoted_path(path),
            Binary::Copy => format!("\"{CACHE}\"/{}", self.send_program()?),
        };
        let words: Vec<String> =
            std::iter::once(program).chain(arguments.iter().map(|argument| quoted(argument))).collect();
        // A shell reads one line from a pipe and no byte more: what follows the values is the program's. The words are
        // set first, so that they mean what they do without the variables.
        let reads = variables.keys().map(|name| format!("IFS= read -r {name} && export {name} || exit; "));
        let script = format!("set -- {}; {}exec \"$@\"", words.join(" "), reads.collect::<String>());
        let first = variables.values().map(|value| format!("{value}\n")).collect::<String>().into_bytes();
        Ok(Launch { command: self.shell(&script), first })
    }

    /// Runs a script in the shell of the host, for at most this time.
    fn script(&self, script: &str, within: Duration) -> Result<Output> {
        finished(self.shell(script).stdin(Stdio::null()), None, within)
    }

    /// Kills a process there, frozen or not; says whether it is known to be gone.
    pub(crate) fn kill(&self, process: u32) -> bool {
        // Its number may be another program's by now: only a worker of ours is killed.
        let script = format!(
            "if tr '\\0' ' ' < /proc/{process}/cmdline 2>/dev/null | grep -q ' worker $'; then kill -KILL {process}; fi"
        );
        self.script(&script, Duration::from_secs(5)).is_ok_and(|output| output.status.success())
    }

    /// Sends this program there, unless it is there already; its name in the cache.
    fn send_program(&self) -> Result<String> {
        let failed = || format!("cannot send this program to {}", self.destination);
        let bytes = std::fs::read(this_program()?).with_context(failed)?;
        let (size, name) = (bytes.len(), format!("nigh-{:016x}", xxhash_rust::xxh3::xxh3_64(&bytes)));
        let within = Duration::from_secs(300);
        let there = self.script(&format!("test -x \"{CACHE}/{name}\" && echo there"), within).with_context(failed)?;
        if String::from_utf8_lossy(&there.stdout).trim() == "there" {
            return Ok(name);
        }
        // Whole or not at all: it gets its name when all its bytes are there.
        let script = format!(
            "set -e; d=\"{CACHE}\"; mkdir -p \"$d\"; umask 077; t=\"$d/{name}.$$\"; trap 'rm -f \"$t\"' EXIT; cat > \"$t\"; \
             test \"$(wc -c < \"$t\")\" -eq {size}; chmod 700 \"$t\"; mv \"$t\" \"$d/{name}\""
        );
        let mut command = self.shell(&script);
        let output = finished(command.stdin(Stdio::piped()), Some(bytes), within).with_context(failed)?;
        ensure!(output.status.success(), "{}: {}", failed(), String::from_utf8_lossy(&output.stderr).trim());
        Ok(name)
    }

    /// The command that runs a script in the shell of the host.
    fn shell(&self, script: &str) -> Command {
        let mut command = Command::new(&self.ssh[0]);
        command.args(&self.ssh[1..]).args(SSH_OPTIONS).args([self.destination.as_str(), "--"]);
        // Whatever shell the user has there, a plain one runs it.
        command.arg(format!("exec sh -c {}", quoted(script)));
        command
    }
}

/// A word that a shell takes as it is.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', "'\\''"))
}

/// A path that a shell takes as it is, but for the `~/` that it begins with.
fn quoted_path(path: &str) -> String {
    match path.strip_prefix("~/") {
        Some(rest) => format!("\"$HOME\"/{}", quoted(rest)),
        None => quoted(path),
    }
}

#[cfg(test)]
pub(in crate::launch) mod tests {
    use super::*;
    use crate::launch::Pool;

    fn config(text: &str) -> Config {
        toml::from_str(text).unwrap()
    }

    /// A pool whose `ssh` is a shell of this machine that does something and then drops what precedes the script.
    pub fn local(binary: &str, before: &str) -> Pool {
        let ssh = r#"while [ "$1" != -- ]; do shift; done; shift; exec sh -c "$*""#;
        let ssh = ["sh".to_owned(), "-c".to_owned(), format!("{before}\n{ssh}"), "ssh".to_owned()];
        let hosts = format!(
            "[[hosts]]\nname = \"me@localhost\"\nbinary = {binary:?}\n[hosts.environment]\n\
             EMPTY = \"\"\nODD = \"it's $HOME; `date` \\\"x\\\" \\\\ *\"\nSPACED = \"  \\ta\\\\ \"\n\
             PLAIN = \"secret-7\""
        );
        Pool::new(&config(&format!("workers = 1\nrestarts = 0\nssh = {ssh:?}\n{hosts}"))).unwrap()
    }

    fn ssh_host(pool: &Pool) -> &SshHost {
        let HostReach::Ssh(host) = &pool.hosts[0].place else { panic!("the host is reached by ssh") };
        host
    }

    #[test]
    fn nothing_of_a_command_is_lost_on_its_way_through_the_shells() {
        let script = "printf '%s|' \"$EMPTY\" \"$ODD\" \"$SPACED\" \"$PLAIN\" \"$@\"; cat";
        let arguments = ["-c", script, "x", "it's", "a b", "$HOME", "*"];
        let mut shells = 0;
        for shell in ["dash", "bash", "busybox"] {
            let search = std::env::var_os("PATH").unwrap_or_default();
            let Some(path) = std::env::split_paths(&search).map(|folder| folder.join(shell)).find(|path| path.exists())
            else {
                continue;
            };
            shells += 1;
            let folder = tempfile::tempdir().unwrap();
            std::os::unix::fs::symlink(path, folder.path().join("sh")).unwrap();
            let pool = local("sh", &format!("PATH='{}':\"$PATH\"", folder.path().display()));
            let Launch { mut command, mut first } = pool.hosts[0].launch(&arguments).unwrap();
            for argument in command.get_args().map(|argument| argument.to_string_lossy()) {
                let shown = ["date", "secret-7"].iter().any(|value| argument.contains(value));
                assert!(!shown, "every user of the machine sees {argument}");
            }
            // What the program is told begins where the values end.
            first.extend(b"{\"me\":0}\n{}");
            let output = finished(command.stdin(Stdio::piped()), Some(first), Duration::from_secs(60)).unwrap();
            let said = String::from_utf8(output.stdout).unwrap();
            let wanted = "|it's $HOME; `date` \"x\" \\ *|  \ta\\ |secret-7|it's|a b|$HOME|*|{\"me\":0}\n{}";
            assert_eq!(said, wanted, "{shell}");
        }
        assert!(shells > 0, "no shell is here");
    }

    #[test]
    fn a_program_is_sent_once_and_under_its_hash() {
        let folder = tempfile::tempdir().unwrap();
        // The cache is where the variable says; the shell that stands for ssh hands it on.
        let cache = folder.path().join("with space");
        let pool = local("copy", &format!("export XDG_CACHE_HOME='{}'", cache.display()));
        let host = ssh_host(&pool);
        let name = host.send_program().unwrap();
        let sent = cache.join("nigh").join(&name);
        assert_eq!(std::fs::read(&sent).unwrap(), std::fs::read(this_program().unwrap()).unwrap());
        let first = std::fs::metadata(&sent).unwrap().modified().unwrap();
        assert_eq!(host.send_program().unwrap(), name);
        assert_eq!(std::fs::metadata(&sent).unwrap().modified().unwrap(), first);
        assert_eq!(std::fs::read_dir(cache.join("nigh")).unwrap().count(), 1, "no other file stays");
    }

    #[test]
    fn a_process_has_the_name_of_its_host() {
        assert_eq!(local("nigh", ":").name(0), "process 0 on me@localhost");
        assert_eq!(Pool::here(2, &Config::default()).name(1), "process 1");
        let unknown = Pool::new(&config("workers = 1\n[[hosts]]\nname = \"n\"\naddress = \"no host\""));
        assert!(unknown.unwrap_err().to_string().contains("no host"));
    }

    #[test]
    fn a_script_that_hangs_is_ended() {
        let hangs = ssh_host(&local("nigh", ":")).script("exec sleep 60", Duration::from_millis(50));
        assert!(hangs.unwrap_err().to_string().contains("did not end"));
    }
}
