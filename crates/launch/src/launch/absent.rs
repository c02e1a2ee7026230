//! The launchers of a program built without the feature `pool`: types without values, because a
//! config that needs them is refused (`Config::check`).

use std::convert::Infallible;
use std::net::IpAddr;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};

use super::events::EventSink;
use super::pipes::{ProcessExit, ProcessPipes};
use super::process_hosts::{Launch, ProcessHost};
use crate::config::{Config, HostTable, SshDestination, Tasks, Variables};

/// The end of every error message.
const ABSENT: &str = "this nigh is built without the feature `pool`";

/// Always fails: there is no code that makes keys.
///
/// # Errors
/// Always.
pub fn make(folder: &Path, _: usize, _: u32) -> Result<()> {
    bail!("cannot make keys in {}: {ABSENT}", folder.display())
}

/// Always fails.
///
/// # Errors
/// Always.
pub fn serve_task(_: &SchedulerTask, _: &Tasks, _: &Config, _: &TaskNotice, _: &EventSink) -> Result<u8> {
    bail!("[tasks]: {ABSENT}")
}

/// The notice that a task is to end: there is no task.
#[derive(Clone, Default)]
pub struct TaskNotice(());

impl TaskNotice {
    /// There is no task that could end later.
    pub fn leave(&self, _: u8) -> bool {
        false
    }
}

/// A task of a scheduler: there is none.
#[derive(Debug)]
pub struct SchedulerTask {
    /// Its number.
    pub me: usize,
    /// How many there are.
    pub count: usize,
    /// The processors of each.
    pub cpus: Option<usize>,
    /// How many machines they are on.
    pub machines: usize,
}

impl SchedulerTask {
    /// Always fails.
    ///
    /// # Errors
    /// Always.
    pub fn find(_: &Tasks, _: impl Fn(&str) -> Option<String>) -> Result<SchedulerTask> {
        bail!("[tasks]: {ABSENT}")
    }
}

/// The agents of tasks; no value of this type exists.
#[derive(Clone, Debug)]
pub struct Agents(Infallible);

impl Agents {
    pub(crate) fn open(_: &SchedulerTask, _: &Tasks, _: &Config, _: &EventSink) -> Result<Agents> {
        bail!("[tasks]: {ABSENT}")
    }

    pub(crate) fn wait_for(
        &self,
        _: &[usize],
        _: &[(usize, Option<Instant>)],
        _: (usize, Duration),
        _: u64,
        _: &EventSink,
    ) -> Result<Vec<Option<IpAddr>>> {
        match self.0 {}
    }

    pub(crate) fn can_be_used(&self, _: usize) -> bool {
        match self.0 {}
    }

    pub(crate) fn is_leaving(&self, _: usize) -> bool {
        match self.0 {}
    }

    pub(crate) fn host(&self, _: usize) -> Option<String> {
        match self.0 {}
    }

    pub(crate) fn start(&self, _: usize) -> Result<(Running, ProcessPipes)> {
        match self.0 {}
    }

    /// Tells the agents that the run ended with this exit code.
    pub fn finish(&self, _: u8) {
        match self.0 {}
    }

    pub(crate) fn is_finished(&self) -> bool {
        match self.0 {}
    }
}

/// A process of a task; no value of this type exists.
pub(crate) struct Running(Infallible);

impl Running {
    pub(crate) fn wait(&self, _: Duration) -> Option<ProcessExit> {
        match self.0 {}
    }

    pub(crate) fn kill(&self) -> bool {
        match self.0 {}
    }
}

/// A machine reached by ssh; no value of this type exists.
#[derive(Clone, Debug)]
pub struct SshHost(Infallible);

impl SshHost {
    pub(crate) fn process(table: &HostTable, _: &Config) -> Result<ProcessHost> {
        bail!("[[hosts]]: cannot reach {}: {ABSENT}", table.name)
    }

    pub(crate) fn destination(&self) -> &SshDestination {
        match self.0 {}
    }

    pub(crate) fn launch(&self, _: &[&str], _: &Variables) -> Result<Launch> {
        match self.0 {}
    }

    pub(crate) fn has_this_program(&self, _: &Variables) -> bool {
        match self.0 {}
    }

    pub(crate) fn kill(&self, _: u32) -> bool {
        match self.0 {}
    }
}
