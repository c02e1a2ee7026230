//! The machines of a pool, and the commands that start a process on each.
//!
//! A process on this machine is started directly, one on another by the user's own `ssh`: their keys, their ssh
//! config; or by the agent of a task, where a scheduler has started those. All speak over the same pipes, so nothing
//! else tells them apart.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use crate::config::{Config, Destination, HostTable, Ports, Tasks, Variables};
use crate::launch::events::EventSink;
use crate::launch::program::{finished, this_program};
use crate::launch::scheduler::{Agents, SchedulerTask};

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

/// Where the processes of a run are, and when they are given up.
#[derive(Clone, Debug)]
pub struct Pool {
    /// One for each process.
    pub hosts: Vec<ProcessHost>,
    /// How often the processes are started anew.
    pub restarts: u32,
    /// How long a process may say nothing.
    pub timeout: Duration,
    /// For how long nothing may move.
    pub stall: Duration,
    /// The folder of keys by which the processes know each other over TLS; loopback needs none.
    pub keys: Option<PathBuf>,
    /// The agents of the tasks, where a scheduler started them.
    pub agents: Option<Agents>,
}

/// Where one process is.
#[derive(Clone, Debug)]
pub struct ProcessHost {
    /// How it is reached.
    pub place: HostReach,
    /// Where it listens.
    pub listen: IpAddr,
    /// At which ports.
    pub ports: Ports,
    /// Where the others connect to.
    pub address: IpAddr,
    /// Variables that it gets.
    pub environment: Variables,
}

/// How a process is reached.
#[derive(Clone, Debug)]
pub enum HostReach {
    /// It is on this machine.
    Here,
    /// It is on another one.
    There {
        /// The command that reaches it, with the user's options.
        ssh: Vec<String>,
        /// What the command connects to.
        destination: Destination,
        /// The program there.
        binary: Binary,
    },
    /// It is started by a task of a scheduler.
    Task {
        /// The agents of the tasks.
        agents: Agents,
        /// Which of them.
        task: usize,
    },
}

/// How a process is started on a host.
pub struct Launch {
    /// What starts it.
    pub command: Command,
    /// What its stdin begins with: the values of its variables, which may be secrets. Arguments can be seen by every
    /// user of both machines, and a pipe by none.
    pub first: Vec<u8>,
}

/// The program on another machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Binary {
    /// It is there.
    Installed(String),
    /// It is sent along.
    Copy,
}

impl Pool {
    /// So many processes on this machine.
    pub fn here(processes: usize, config: &Config) -> Pool {
        let loopback = IpAddr::V4(Ipv4Addr::LOCALHOST);
        let host = ProcessHost {
            place: HostReach::Here,
            listen: loopback,
            ports: Ports::default(),
            address: loopback,
            environment: Variables::default(),
        };
        Pool::of(vec![host; processes], config)
    }

    /// The hosts of a config; processes on this machine where it has none.
    ///
    /// # Errors
    /// Names the host whose address is not known.
    pub fn new(config: &Config) -> Result<Pool> {
        match config.hosts.is_empty() {
            true => Ok(Pool::here(config.processes(), config)),
            false => Ok(Pool::of(
                config.hosts.iter().map(|table| ProcessHost::new(table, config)).collect::<Result<_>>()?,
                config,
            )),
        }
    }

    fn of(hosts: Vec<ProcessHost>, config: &Config) -> Pool {
        Pool {
            hosts,
            restarts: config.restarts(),
            timeout: config.timeout(),
            stall: config.stall(),
            keys: config.keys.clone(),
            agents: None,
        }
    }

    /// The tasks of a scheduler, of which this is the first: from now on the others may come, and `voice` says who does
    /// not belong to them.
    ///
    /// # Errors
    /// Where this machine has no port for them, or the keys of process 0 do not hold.
    pub fn of_tasks(task: &SchedulerTask, table: &Tasks, config: &Config, voice: &EventSink) -> Result<Pool> {
        let agents = Agents::open(task, table, config, voice)?;
        let unknown = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
        let place = |task| if task == 0 { HostReach::Here } else { HostReach::Task { agents: agents.clone(), task } };
        let host = |task| ProcessHost {
            place: place(task),
            listen: table.listen.unwrap_or(unknown),
            ports: table.port,
            address: unknown,
            environment: Variables::default(),
        };
        let hosts = (0..task.count).map(host).collect();
        Ok(Pool { agents: Some(agents.clone()), ..Pool::of(hosts, config) })
    }

    /// The pool with the addresses that its hosts have now. Tasks are waited for.
    ///
    /// # Errors
    /// Names the tasks that do not come.
    pub(crate) fn gathered(&self, epoch: u64, voice: &EventSink) -> Result<Pool> {
        let mut pool = self.clone();
        if let Some(agents) = &self.agents {
            for (host, address) in pool.hosts.iter_mut().zip(agents.gather(epoch, voice)?) {
                (host.address, host.listen) =
                    (address, if host.listen.is_unspecified() { address } else { host.listen });
            }
        }
        Ok(pool)
    }

    /// How many processes it has.
    pub fn processes(&self) -> usize {
        self.hosts.len()
    }

    /// Whether it needs no process but the one that asks.
    pub fn is_this_process(&self) -> bool {
        matches!(&self.hosts[..], [ProcessHost { place: HostReach::Here, .. }])
    }

    /// Whether all its processes are on this machine.
    pub fn is_on_this_machine(&self) -> bool {
        self.hosts.iter().all(|host| matches!(host.place, HostReach::Here))
    }

    /// What a user calls a process.
    pub fn name(&self, process: usize) -> String {
        match &self.hosts[process].place {
            HostReach::Here => format!("process {process}"),
            HostReach::There { destination, .. } => format!("process {process} on {destination}"),
            HostReach::Task { agents, task } => match agents.host(*task) {
                Some(host) => format!("process {process} on {host}"),
                None => format!("process {process}"),
            },
        }
    }
}

impl ProcessHost {
    fn new(table: &HostTable, config: &Config) -> Result<ProcessHost> {
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
            place: HostReach::There { ssh, destination: table.name.clone(), binary },
            listen: table.listen.unwrap_or(address.ip()),
            ports: table.port,
            address: address.ip(),
            environment: table.environment.clone(),
        })
    }

    /// Where the others reach a process that listens at `port`.
    pub fn reached_at(&self, port: u16) -> SocketAddr {
        SocketAddr::new(self.address, port)
    }

    /// What starts a process there, with these arguments of the program.
    ///
    /// # Errors
    /// Where this program cannot be found, or not be sent along.
    pub fn launch(&self, arguments: &[&str]) -> Result<Launch> {
        let variables = &self.environment.0;
        let HostReach::There { ssh, destination, binary } = &self.place else {
            let mut command = Command::new(this_program()?);
            command.args(arguments).envs(variables);
            return Ok(Launch { command, first: Vec::new() });
        };
        let program = match binary {
            Binary::Installed(path) => quoted_path(path),
            Binary::Copy => format!("\"{CACHE}\"/{}", self.send_program(ssh, destination)?),
        };
        let words: Vec<String> =
            std::iter::once(program).chain(arguments.iter().map(|argument| quoted(argument))).collect();
        // A shell reads one line from a pipe and no byte more: what follows the values is the program's. The words are
        // set first, so that they mean what they do without the variables.
        let reads = variables.keys().map(|name| format!("IFS= read -r {name} && export {name} || exit; "));
        let script = format!("set -- {}; {}exec \"$@\"", words.join(" "), reads.collect::<String>());
        let first = variables.values().map(|value| format!("{value}\n")).collect::<String>().into_bytes();
        Ok(Launch { command: over_ssh(ssh, destination, &script), first })
    }

    /// Runs a script in the shell there, for at most so long.
    ///
    /// # Errors
    /// Where it cannot be run, or does not end.
    pub fn script(&self, script: &str, within: Duration) -> Result<Output> {
        let mut command = match &self.place {
            HostReach::Here | HostReach::Task { .. } => {
                let mut command = Command::new("sh");
                command.args(["-c", script]);
                command
            }
            HostReach::There { ssh, destination, .. } => over_ssh(ssh, destination, script),
        };
        finished(command.stdin(Stdio::null()), None, within)
    }

    /// Kills a process there, frozen or not; says whether it is known to be gone.
    pub fn kill(&self, process: u32) -> bool {
        // Its number may be another program's by now: only a worker of ours is killed.
        let script = format!(
            "if tr '\\0' ' ' < /proc/{process}/cmdline 2>/dev/null | grep -q ' worker $'; then kill -KILL {process}; fi"
        );
        self.script(&script, Duration::from_secs(5)).is_ok_and(|output| output.status.success())
    }

    /// Sends this program there, unless it is there already; its name in the cache.
    fn send_program(&self, ssh: &[String], destination: &Destination) -> Result<String> {
        let failed = || format!("cannot send this program to {destination}");
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
        let mut command = over_ssh(ssh, destination, &script);
        let output = finished(command.stdin(Stdio::piped()), Some(bytes), within).with_context(failed)?;
        ensure!(output.status.success(), "{}: {}", failed(), String::from_utf8_lossy(&output.stderr).trim());
        Ok(name)
    }
}

/// The command that has the shell of another machine run a script.
fn over_ssh(ssh: &[String], destination: &Destination, script: &str) -> Command {
    let mut command = Command::new(&ssh[0]);
    command.args(&ssh[1..]).args(SSH_OPTIONS).args([destination.as_str(), "--"]);
    // Whatever shell the user has there, a plain one runs it.
    command.arg(format!("exec sh -c {}", quoted(script)));
    command
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
    use crate::launch::program::{finished, this_program};

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
        let HostReach::There { ssh, destination, .. } = pool.hosts[0].place.clone() else { panic!("it is there") };
        let name = pool.hosts[0].send_program(&ssh, &destination).unwrap();
        let sent = cache.join("nigh").join(&name);
        assert_eq!(std::fs::read(&sent).unwrap(), std::fs::read(this_program().unwrap()).unwrap());
        let first = std::fs::metadata(&sent).unwrap().modified().unwrap();
        assert_eq!(pool.hosts[0].send_program(&ssh, &destination).unwrap(), name);
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
        let hangs = local("nigh", ":").hosts[0].script("exec sleep 60", Duration::from_millis(50));
        assert!(hangs.unwrap_err().to_string().contains("did not end"));
    }
}
