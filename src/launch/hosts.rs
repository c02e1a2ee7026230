//! The processes of a run: where each runs, and the command that starts it.
//!
//! A process on this machine is started directly, a process on another machine by ssh or by the agent of a scheduler's task. All use the
//! same pipes to their supervisor.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use anyhow::Result;

use super::events::EventSink;
use super::program::this_program;
use super::{Agents, SchedulerTask, SshHost};
use crate::config::{Config, Ports, Tasks, Variables};
use crate::objects::credentials_variable;

/// The processes of a run, and the limits after which they count as failed.
#[derive(Clone, Debug)]
pub struct Pool {
    /// One for each process.
    pub hosts: Vec<ProcessHost>,
    /// How often the processes are restarted.
    pub restarts: u32,
    /// How long a process may send nothing.
    pub timeout: Duration,
    /// How long all processes may make no progress.
    pub stall: Duration,
    /// The folder of keys for TLS between the processes; loopback needs none.
    pub keys: Option<PathBuf>,
    /// The agents of the tasks, if a scheduler started them.
    pub agents: Option<Agents>,
}

/// One process of a run.
#[derive(Clone, Debug)]
pub struct ProcessHost {
    /// How the supervisor starts it.
    pub reach: HostReach,
    /// The address at which it listens.
    pub listen: IpAddr,
    /// The ports of which it takes the first free one.
    pub ports: Ports,
    /// The address to which the other processes connect.
    pub address: IpAddr,
    /// Its environment variables.
    pub environment: Variables,
}

/// How a supervisor starts a process.
#[derive(Clone, Debug)]
pub enum HostReach {
    /// The process is on this machine.
    Local,
    /// The process is on a machine reached by ssh.
    Ssh(SshHost),
    /// The process is started by a task of a scheduler.
    Task {
        /// The agents of all tasks.
        agents: Agents,
        /// The number of the task.
        task: usize,
    },
}

/// A command that starts a process.
pub struct Launch {
    /// The command.
    pub command: Command,
    /// The first bytes of its stdin: the values of its variables, which may be secrets. Every user of both machines can see the arguments
    /// of a command; no other user can see a pipe.
    pub first: Vec<u8>,
}

impl Pool {
    /// A pool of `processes` processes on this machine.
    pub fn here(processes: usize, config: &Config) -> Pool {
        let loopback = IpAddr::V4(Ipv4Addr::LOCALHOST);
        let host = ProcessHost {
            reach: HostReach::Local,
            listen: loopback,
            ports: Ports::default(),
            address: loopback,
            environment: Variables::default(),
        };
        Pool::of(vec![host; processes], config)
    }

    /// The hosts of a config, or processes on this machine if it has none.
    ///
    /// # Errors
    /// The address of a host is not known; the message names the host.
    pub fn new(config: &Config) -> Result<Pool> {
        if config.hosts.is_empty() {
            return Ok(Pool::here(config.processes(), config));
        }
        let hosts = config.hosts.iter().map(|table| SshHost::process(table, config));
        Ok(Pool::of(hosts.collect::<Result<_>>()?, config))
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

    /// The tasks of a scheduler, as task 0 sees them. The other tasks may connect from now on; refused connections are reported to
    /// `events`.
    ///
    /// # Errors
    /// No control port is free, or the keys of process 0 are missing or invalid.
    pub fn of_tasks(task: &SchedulerTask, table: &Tasks, config: &Config, events: &EventSink) -> Result<Pool> {
        let agents = Agents::open(task, table, config, events)?;
        let unknown = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
        let reach = |task| if task == 0 { HostReach::Local } else { HostReach::Task { agents: agents.clone(), task } };
        let host = |task| ProcessHost {
            reach: reach(task),
            listen: table.listen.unwrap_or(unknown),
            ports: table.port,
            address: unknown,
            environment: Variables::default(),
        };
        let hosts = (0..task.count).map(host).collect();
        Ok(Pool { agents: Some(agents.clone()), ..Pool::of(hosts, config) })
    }

    /// Returns the pool with the current addresses of its hosts. Waits until all tasks are connected.
    ///
    /// # Errors
    /// A task did not connect in time; the message names it.
    pub(crate) fn with_addresses(&self, epoch: u64, events: &EventSink) -> Result<Pool> {
        let mut pool = self.clone();
        if let Some(agents) = &self.agents {
            for (host, address) in pool.hosts.iter_mut().zip(agents.wait_for_all(epoch, events)?) {
                (host.address, host.listen) =
                    (address, if host.listen.is_unspecified() { address } else { host.listen });
            }
        }
        Ok(pool)
    }

    /// The number of processes.
    pub fn processes(&self) -> usize {
        self.hosts.len()
    }

    /// Whether the calling process is the only process of the run.
    pub fn is_this_process(&self) -> bool {
        matches!(&self.hosts[..], [ProcessHost { reach: HostReach::Local, .. }])
    }

    /// The number of processes that run on this machine.
    pub fn processes_here(&self) -> usize {
        self.hosts.iter().filter(|host| matches!(host.reach, HostReach::Local)).count()
    }

    /// Whether all processes run on this machine.
    pub fn is_on_this_machine(&self) -> bool {
        self.processes_here() == self.processes()
    }

    /// The name of a process in messages.
    pub fn name(&self, process: usize) -> String {
        match &self.hosts[process].reach {
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
        let mut environment = self.environment.clone();
        // The flag of this process.
        environment.0.extend(credentials_variable().map(|(name, value)| (name.to_owned(), value.to_owned())));
        if let HostReach::Ssh(host) = &self.reach {
            return host.launch(arguments, &environment);
        }
        let mut command = Command::new(this_program()?);
        command.args(arguments).envs(&environment.0);
        Ok(Launch { command, first: Vec::new() })
    }
}
