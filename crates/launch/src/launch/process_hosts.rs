//! The processes of a run: where each runs, and the command that starts it.
//!
//! A process on this machine is started directly, a process on another machine by ssh or by the
//! agent of a scheduler's task. All use the same pipes to their supervisor.

use std::net::{IpAddr, Ipv4Addr, ToSocketAddrs};
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use super::events::EventSink;
use super::program::{inherited_variables, program_command};
use super::{Agents, SchedulerTask, SshHost};
use crate::config::{Config, Ports, Restarts, Tasks, Variables};

/// The processes of a run, and the limits after which they count as failed.
#[derive(Clone, Debug)]
pub struct Pool {
    /// One for each process, by rank.
    pub hosts: Vec<ProcessHost>,
    /// With how many processes the run goes on, if the others are missing.
    pub min_processes: usize,
    /// How long a host may be missing before the run goes on without it.
    pub grace: Duration,
    /// How often at most hosts that are back are taken in.
    pub rejoin: Duration,
    /// How often the processes are restarted.
    pub restarts: Restarts,
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
    /// The number of the process: that of its host in the config, or of its task. It stays the same
    /// when a run goes on without some of its hosts, and names its certificate.
    pub number: usize,
    /// How the supervisor starts it.
    pub reach: HostReach,
    /// The address at which it listens; `None` is that of `address`.
    pub listen: Option<IpAddr>,
    /// The ports of which it takes the first free one.
    pub ports: Ports,
    /// The machine to which the other processes connect.
    pub address: HostAddress,
    /// Its environment variables.
    pub environment: Variables,
}

/// The address of a machine, as it is known before a process starts there.
#[derive(Clone, Debug)]
pub enum HostAddress {
    /// The address itself.
    Known(IpAddr),
    /// A name: the machine may have another address when it is started again.
    Named(String),
}

/// The addresses of a process.
#[derive(Debug)]
pub struct ProcessAddresses {
    /// The one at which it listens.
    pub listen: IpAddr,
    /// The one to which the other processes connect.
    pub reached: IpAddr,
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
    /// The first bytes of its stdin: the values of its variables, which may be secrets. Every user
    /// of both machines can see the arguments of a command; no other user can see a pipe.
    pub first: Vec<u8>,
}

impl Pool {
    /// A pool of `processes` processes on this machine.
    pub fn here(processes: usize, config: &Config) -> Pool {
        let loopback = IpAddr::V4(Ipv4Addr::LOCALHOST);
        let host = ProcessHost {
            number: 0,
            reach: HostReach::Local,
            listen: None,
            ports: Ports::default(),
            address: HostAddress::Known(loopback),
            environment: Variables::default(),
        };
        Pool::of(vec![host; processes], config)
    }

    /// The hosts of a config, or processes on this machine if it has none.
    ///
    /// # Errors
    /// The config has hosts, and this program is built without the feature `pool`.
    pub fn new(config: &Config) -> Result<Pool> {
        if config.hosts.is_empty() {
            return Ok(Pool::here(config.processes(), config));
        }
        let hosts = config.hosts.iter().map(|table| SshHost::process(table, config));
        Ok(Pool::of(hosts.collect::<Result<_>>()?, config))
    }

    fn of(mut hosts: Vec<ProcessHost>, config: &Config) -> Pool {
        hosts.iter_mut().enumerate().for_each(|(number, host)| host.number = number);
        Pool {
            min_processes: config.min_processes.map_or(hosts.len(), |count| count.0),
            hosts,
            grace: config.grace(),
            rejoin: config.rejoin(),
            restarts: config.restarts(),
            timeout: config.timeout(),
            stall: config.stall(),
            keys: config.keys.clone(),
            agents: None,
        }
    }

    /// The tasks of a scheduler, as task 0 sees them. The other tasks may connect from now on;
    /// refused connections are reported to `events`.
    ///
    /// # Errors
    /// No control port is free, or the keys of process 0 are missing or invalid.
    pub fn of_tasks(task: &SchedulerTask, table: &Tasks, config: &Config, events: &EventSink) -> Result<Pool> {
        let agents = Agents::open(task, table, config, events)?;
        let unknown = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
        let reach = |task| if task == 0 { HostReach::Local } else { HostReach::Task { agents: agents.clone(), task } };
        let host = |task| ProcessHost {
            number: task,
            reach: reach(task),
            listen: table.listen,
            ports: table.port,
            address: HostAddress::Known(unknown),
            environment: Variables::default(),
        };
        let hosts = (0..task.count).map(host).collect();
        ensure!(
            config.min_processes.is_none_or(|min| min.0 <= task.count),
            "min-processes = {}: there are only {} tasks",
            config.min_processes.map_or(0, |min| min.0),
            task.count
        );
        Ok(Pool { agents: Some(agents.clone()), ..Pool::of(hosts, config) })
    }

    /// The pool of the hosts with these numbers, with their current addresses. Waits until their
    /// tasks are connected, and leaves out one that is not within `grace`, if enough are; those of
    /// `left_out` that have connected since, and may be used from their time on, stand in for it.
    ///
    /// # Errors
    /// Too few tasks connected in time; the message names those that did not.
    pub(crate) fn of_numbers(
        &self,
        numbers: &[usize],
        left_out: &[(usize, Option<Instant>)],
        epoch: u64,
        events: &EventSink,
    ) -> Result<Pool> {
        let mut pool = self.clone();
        let Some(agents) = &self.agents else {
            pool.hosts.retain(|host| numbers.contains(&host.number));
            return Ok(pool);
        };
        let addresses = agents.wait_for(numbers, left_out, (self.min_processes, self.grace), epoch, events)?;
        pool.hosts.retain_mut(|host| {
            let Some(Some(address)) = addresses.get(host.number).copied() else { return false };
            host.address = HostAddress::Known(address);
            true
        });
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

    /// The name of the process of this rank in messages.
    pub fn name(&self, rank: usize) -> String {
        self.hosts[rank].name()
    }
}

impl ProcessHost {
    /// The name of its process in messages, which has its number.
    pub fn name(&self) -> String {
        let place = self.place().map(|place| format!(" on {place}"));
        format!("process {}{}", self.number, place.unwrap_or_default())
    }

    /// The machine of its process in messages; `None` if it is this one, or not known.
    pub fn place(&self) -> Option<String> {
        match &self.reach {
            HostReach::Local => None,
            HostReach::Ssh(host) => Some(host.destination().to_string()),
            HostReach::Task { agents, task } => agents.host(*task).map(|host| host.to_string()),
        }
    }

    /// Whether a process could be started on it now, as far as that can be seen without starting
    /// one.
    pub(crate) fn can_be_used(&self) -> bool {
        match &self.reach {
            HostReach::Local => true,
            HostReach::Ssh(host) => self.addresses().is_ok() && host.has_this_program(&self.environment),
            HostReach::Task { agents, task } => agents.can_be_used(*task),
        }
    }

    /// Whether its task was told to end.
    pub(crate) fn is_leaving(&self) -> bool {
        matches!(&self.reach, HostReach::Task { agents, task } if agents.is_leaving(*task))
    }

    /// Looks up the addresses of its process, as they are now.
    ///
    /// # Errors
    /// The name of the machine has no address.
    pub(crate) fn addresses(&self) -> Result<ProcessAddresses> {
        let reached = match &self.address {
            HostAddress::Known(address) => *address,
            HostAddress::Named(name) => {
                let found = (name.as_str(), 0).to_socket_addrs().ok().and_then(|mut addresses| addresses.next());
                let unknown = || format!("cannot find the address of the host {name}: set `address` in its [[hosts]]");
                found.with_context(unknown)?.ip()
            }
        };
        Ok(ProcessAddresses { listen: self.listen.unwrap_or(reached), reached })
    }

    /// The command that starts the program on the host with these arguments.
    ///
    /// # Errors
    /// This program cannot be found, or cannot be copied to the host.
    pub fn launch(&self, arguments: &[&str]) -> Result<Launch> {
        // The variables of the host itself count more than those of all processes.
        if let HostReach::Ssh(host) = &self.reach {
            let mut variables = inherited_variables();
            variables.0.extend(self.environment.0.clone());
            return host.launch(arguments, &variables);
        }
        let mut command = program_command()?;
        command.args(arguments).envs(&self.environment.0);
        Ok(Launch { command, first: Vec::new() })
    }
}
