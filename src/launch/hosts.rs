//! The machines of a pool, and the commands that start a process on each.
//!
//! A process on this machine is started directly, one on another by the user's own `ssh`: their keys, their ssh
//! config; or by the agent of a task, where a scheduler has started those. All speak over the same pipes, so nothing
//! else tells them apart.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use anyhow::Result;

use super::events::EventSink;
use super::program::this_program;
use super::{Agents, SchedulerTask, SshHost};
use crate::config::{Config, Ports, Tasks, Variables};

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
    /// The process is on this machine.
    Local,
    /// The process is on a machine reached by ssh.
    Ssh(SshHost),
    /// The process is started by a task of a scheduler.
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

impl Pool {
    /// So many processes on this machine.
    pub fn here(processes: usize, config: &Config) -> Pool {
        let loopback = IpAddr::V4(Ipv4Addr::LOCALHOST);
        let host = ProcessHost {
            place: HostReach::Local,
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
                config.hosts.iter().map(|table| SshHost::process(table, config)).collect::<Result<_>>()?,
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
        let place = |task| if task == 0 { HostReach::Local } else { HostReach::Task { agents: agents.clone(), task } };
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
        matches!(&self.hosts[..], [ProcessHost { place: HostReach::Local, .. }])
    }

    /// Whether all its processes are on this machine.
    pub fn is_on_this_machine(&self) -> bool {
        self.hosts.iter().all(|host| matches!(host.place, HostReach::Local))
    }

    /// What a user calls a process.
    pub fn name(&self, process: usize) -> String {
        match &self.hosts[process].place {
            HostReach::Local => format!("process {process}"),
            HostReach::Ssh(host) => format!("process {process} on {}", host.destination()),
            HostReach::Task { agents, task } => match agents.host(*task) {
                Some(host) => format!("process {process} on {host}"),
                None => format!("process {process}"),
            },
        }
    }
}

impl ProcessHost {
    /// The address by which other processes reach a process that listens at `port`.
    pub fn reached_at(&self, port: u16) -> SocketAddr {
        SocketAddr::new(self.address, port)
    }

    /// The command that starts the program on the host with these arguments.
    ///
    /// # Errors
    /// This program cannot be found, or cannot be copied to the host.
    pub fn launch(&self, arguments: &[&str]) -> Result<Launch> {
        if let HostReach::Ssh(host) = &self.place {
            return host.launch(arguments, &self.environment);
        }
        let mut command = Command::new(this_program()?);
        command.args(arguments).envs(&self.environment.0);
        Ok(Launch { command, first: Vec::new() })
    }
}
