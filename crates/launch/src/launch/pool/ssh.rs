//! A machine that is reached by ssh: starts a process there, copies the program there, and kills a
//! process there.
//!
//! The command is the user's own `ssh`, with their keys and their ssh config. It runs a script in a
//! plain `sh` of the machine:
//!
//! ```text
//! set -- PROGRAM ARGUMENTS; read and export each variable, a line of stdin each; exec "$@"
//! ```

use std::process::{Command, Output, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use super::command::run_within;
use crate::config::{Config, HostTable, SshDestination, Variables};
use crate::launch::process_hosts::{HostAddress, HostReach, Launch, ProcessHost};
use crate::launch::program::this_program;

/// Options that nigh adds after those of the user: ssh uses the first value of each option.
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
/// How long a host may take to say which version of the program it has.
const LOOK_DEADLINE: Duration = Duration::from_secs(15);
/// The folder of copied programs on the machine, as its shell writes it.
const CACHE: &str = "${XDG_CACHE_HOME:-$HOME/.cache}/nigh";

/// A machine reached by ssh.
#[derive(Clone, Debug)]
pub struct SshHost {
    /// The ssh command with the user's options.
    ssh: Vec<String>,
    /// The destination of the command.
    destination: SshDestination,
    /// The program on the machine.
    binary: Binary,
}

/// The program that a machine runs.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Binary {
    /// A program that is installed there, by its path.
    Installed(String),
    /// A copy of this program.
    Copy,
}

impl SshHost {
    /// The process of a `[[hosts]]` table.
    ///
    /// # Errors
    /// None; that of `absent` always fails.
    pub(crate) fn process(table: &HostTable, config: &Config) -> Result<ProcessHost> {
        let address = table.address.as_deref().unwrap_or(table.name.machine());
        let binary = table.binary.as_ref().or(config.binary.as_ref());
        let binary = match binary.map(String::as_str) {
            Some("copy") => Binary::Copy,
            Some(path) => Binary::Installed(path.to_owned()),
            None => Binary::Installed("nigh".to_owned()),
        };
        let ssh = config.ssh.clone().unwrap_or_else(|| vec!["ssh".to_owned()]);
        Ok(ProcessHost {
            number: 0,
            reach: HostReach::Ssh(SshHost { ssh, destination: table.name.clone(), binary }),
            listen: table.listen,
            ports: table.port,
            address: HostAddress::Named(address.to_owned()),
            environment: table.environment.clone(),
        })
    }

    /// The destination of `ssh`.
    pub fn destination(&self) -> &SshDestination {
        &self.destination
    }

    /// The command that starts the program on the host with these arguments and variables.
    pub(crate) fn launch(&self, arguments: &[&str], variables: &Variables) -> Result<Launch> {
        let variables = &variables.0;
        let program = match &self.binary {
            Binary::Installed(path) => quoted_path(path),
            Binary::Copy => format!("\"{CACHE}\"/{}", self.copy_program()?),
        };
        let command: Vec<String> =
            std::iter::once(program).chain(arguments.iter().map(|argument| quoted(argument))).collect();
        // A shell reads one line from a pipe and not a byte more: the program reads what follows
        // the values. The arguments are set first, so that the variables cannot change their
        // meaning.
        let reads = variables.keys().map(|name| format!("IFS= read -r {name} && export {name} || exit; "));
        let script = format!("set -- {}; {}exec \"$@\"", command.join(" "), reads.collect::<String>());
        let first = variables.values().map(|value| format!("{value}\n")).collect::<String>().into_bytes();
        Ok(Launch { command: self.shell(&script), first })
    }

    /// Whether the host can be reached, and has the program in this version.
    pub(crate) fn has_this_program(&self, variables: &Variables) -> bool {
        let Ok(Launch { mut command, first }) = self.launch(&["--version"], variables) else { return false };
        let output = run_within(command.stdin(Stdio::piped()), Some(first), LOOK_DEADLINE);
        let is_this = |text: &[u8]| String::from_utf8_lossy(text).trim_end().ends_with(env!("CARGO_PKG_VERSION"));
        output.is_ok_and(|output| output.status.success() && is_this(&output.stdout))
    }

    /// Runs a script in the shell of the host, for at most this time.
    fn script(&self, script: &str, within: Duration) -> Result<Output> {
        run_within(self.shell(script).stdin(Stdio::null()), None, within)
    }

    /// Kills a process of the machine, frozen or not. Returns whether the process has certainly
    /// ended.
    pub(crate) fn kill(&self, process: u32) -> bool {
        // Another program may have the process id by now: the script kills only a worker of nigh.
        let script = format!(
            "if tr '\\0' ' ' < /proc/{process}/cmdline 2>/dev/null | grep -q ' worker $'; then kill -KILL {process}; fi"
        );
        self.script(&script, Duration::from_secs(5)).is_ok_and(|output| output.status.success())
    }

    /// Copies this program to the machine unless it is there already. Returns its name in the
    /// cache.
    fn copy_program(&self) -> Result<String> {
        let failed = || format!("cannot copy this program to {}", self.destination);
        let bytes = std::fs::read(this_program()?).with_context(failed)?;
        let (size, name) = (bytes.len(), format!("nigh-{:016x}", xxhash_rust::xxh3::xxh3_64(&bytes)));
        let within = Duration::from_secs(300);
        let answer =
            self.script(&format!("test -x \"{CACHE}/{name}\" && echo present"), within).with_context(failed)?;
        if String::from_utf8_lossy(&answer.stdout).trim() == "present" {
            return Ok(name);
        }
        // The file gets its name when all its bytes are written.
        let script = format!(
            "set -e; d=\"{CACHE}\"; mkdir -p \"$d\"; umask 077; t=\"$d/{name}.$$\"; trap 'rm -f \"$t\"' EXIT; cat > \"$t\"; \
             test \"$(wc -c < \"$t\")\" -eq {size}; chmod 700 \"$t\"; mv \"$t\" \"$d/{name}\""
        );
        let mut command = self.shell(&script);
        let output = run_within(command.stdin(Stdio::piped()), Some(bytes), within).with_context(failed)?;
        ensure!(output.status.success(), "{}: {}", failed(), String::from_utf8_lossy(&output.stderr).trim());
        Ok(name)
    }

    /// The command that runs a script in the shell of the host.
    fn shell(&self, script: &str) -> Command {
        let mut command = Command::new(&self.ssh[0]);
        command.args(&self.ssh[1..]).args(SSH_OPTIONS).args([self.destination.as_str(), "--"]);
        // The user's login shell may be another: a plain one runs the script.
        command.arg(format!("exec sh -c {}", quoted(script)));
        command
    }
}

/// Quotes an argument for a shell.
fn quoted(argument: &str) -> String {
    format!("'{}'", argument.replace('\'', "'\\''"))
}

/// Quotes a path for a shell; a leading `~/` is still the home folder.
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

    /// A pool whose `ssh` is a shell of this machine: it runs `before`, and then the script.
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
        let HostReach::Ssh(host) = &pool.hosts[0].reach else { panic!("the host is reached by ssh") };
        host
    }

    #[test]
    fn arguments_and_variables_pass_the_shells_unchanged() {
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
            // The program's own input begins after the values.
            first.extend(b"{\"me\":0}\n{}");
            let output = run_within(command.stdin(Stdio::piped()), Some(first), Duration::from_secs(60)).unwrap();
            let stdout = String::from_utf8(output.stdout).unwrap();
            let wanted = "|it's $HOME; `date` \"x\" \\ *|  \ta\\ |secret-7|it's|a b|$HOME|*|{\"me\":0}\n{}";
            assert_eq!(stdout, wanted, "{shell}");
        }
        assert!(shells > 0, "this machine has no shell");
    }

    #[test]
    fn a_host_has_the_credentials_of_this_process_unless_its_own_variables_say_otherwise() {
        for (more, value) in [("", "environment"), ("NIGH_CLOUD_CREDENTIALS = \"instance\"\n", "instance")] {
            let host = format!("workers = 1\n[[hosts]]\nname = \"a\"\n[hosts.environment]\n{more}PLAIN = \"b\"");
            let pool = Pool::new(&config(&host)).unwrap();
            let Launch { command, first } = pool.hosts[0].launch(&["worker"]).unwrap();
            assert_eq!(String::from_utf8(first).unwrap(), format!("{value}\nb\n"));
            let export = "read -r NIGH_CLOUD_CREDENTIALS && export";
            assert!(command.get_args().any(|argument| argument.to_string_lossy().contains(export)), "{command:?}");
        }
    }

    #[test]
    fn a_program_is_copied_once_and_named_by_its_hash() {
        let folder = tempfile::tempdir().unwrap();
        // The shell that stands for ssh passes the variable of the cache on.
        let cache = folder.path().join("with space");
        let pool = local("copy", &format!("export XDG_CACHE_HOME='{}'", cache.display()));
        let host = ssh_host(&pool);
        let name = host.copy_program().unwrap();
        let copy = cache.join("nigh").join(&name);
        assert_eq!(std::fs::read(&copy).unwrap(), std::fs::read(this_program().unwrap()).unwrap());
        let first = std::fs::metadata(&copy).unwrap().modified().unwrap();
        assert_eq!(host.copy_program().unwrap(), name);
        assert_eq!(std::fs::metadata(&copy).unwrap().modified().unwrap(), first);
        assert_eq!(std::fs::read_dir(cache.join("nigh")).unwrap().count(), 1, "no other file stays");
    }

    #[test]
    fn a_process_has_the_name_of_its_host() {
        assert_eq!(local("nigh", ":").name(0), "process 0 on me@localhost");
        assert_eq!(Pool::here(2, &Config::default()).name(1), "process 1");
    }

    #[test]
    fn only_what_connects_to_a_host_needs_its_address() {
        let pool = Pool::new(&config("workers = 1\n[[hosts]]\nname = \"alias\"\naddress = \"no host\"")).unwrap();
        pool.hosts[0].launch(&["live-keys"]).unwrap();
        let unknown = pool.hosts[0].addresses().unwrap_err();
        assert!(unknown.to_string().contains("no host"), "{unknown}");
    }

    #[test]
    fn a_script_that_hangs_is_ended() {
        let hangs = ssh_host(&local("nigh", ":")).script("exec sleep 60", Duration::from_millis(50));
        assert!(hangs.unwrap_err().to_string().contains("did not end"));
    }
}
