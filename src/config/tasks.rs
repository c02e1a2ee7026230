//! The part of a config that is about a scheduler which starts the processes.

use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use super::pool::{Ports, Time};

/// The `[tasks]` table: a scheduler starts the same command once for each process of the run, on machines of its
/// choice.
///
/// Task 0 is the supervisor and has process 0; the others connect to it and start the process that it asks for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Tasks {
    /// Who starts the tasks, and so which variables say which one this is.
    pub scheduler: Scheduler,
    /// The name of the headless Service through which Kubernetes gives every pod a host name.
    pub service: Option<String>,
    /// The host name or address of task 0: what the scheduler says, where it is not given.
    pub supervisor: Option<String>,
    /// Where task 0 waits for the others: a port, or a range of which it takes the first that is free.
    #[serde(default = "control_port")]
    pub control: Ports,
    /// The port that each process listens at for the others, or a range of which it takes the first that is free; the
    /// system's choice where it is not given.
    #[serde(default)]
    pub port: Ports,
    /// The one address at which a task listens; where it is not given, task 0 waits at all of its machine's, and a
    /// process listens at the one by which its task reaches task 0.
    pub listen: Option<IpAddr>,
    /// How long tasks wait for each other, and for one that was lost to come back; 5 min where it is not given.
    pub wait: Option<Time>,
}

/// A scheduler whose variables are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scheduler {
    /// `srun`: a task is a process of a job step.
    Slurm,
    /// An Indexed Job with a headless Service: a task is a pod.
    Kubernetes,
}

/// One below the ports that the shipped configs give to processes.
fn control_port() -> Ports {
    Ports { first: 2100, last: 2100 }
}

impl Tasks {
    /// Checks what no field can tell alone.
    ///
    /// # Errors
    /// Says which field is missing, or means nothing here.
    pub(crate) fn check(&self) -> Result<(), String> {
        if self.control.first == 0 {
            return Err("control = 0: the other tasks must know the port".into());
        }
        match (self.scheduler, &self.service) {
            (Scheduler::Slurm, Some(_)) => Err("`service` is for scheduler = \"kubernetes\"".into()),
            (Scheduler::Kubernetes, None) if self.supervisor.is_none() => {
                Err("`service` is missing: the headless Service that gives the pods of the Job their host names".into())
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tasks_say_what_is_wrong_with_them() {
        let tasks = |text: &str| {
            let tasks: Tasks = toml::from_str(text).map_err(|error| error.to_string())?;
            tasks.check().map(|()| tasks)
        };
        let plain = tasks("scheduler = \"slurm\"").unwrap();
        assert_eq!((plain.control, plain.port), (Ports { first: 2100, last: 2100 }, Ports::default()));
        tasks("scheduler = \"kubernetes\"\nservice = \"nigh\"").unwrap();
        for (text, wanted) in [
            ("scheduler = \"cron\"", "`slurm` or `kubernetes`"),
            ("scheduler = \"slurm\"\nservice = \"nigh\"", "`service` is for"),
            ("scheduler = \"kubernetes\"", "`service` is missing"),
            ("scheduler = \"slurm\"\ncontrol = 0", "must know the port"),
            ("scheduler = \"slurm\"\nhosts = 3", "unknown field `hosts`"),
        ] {
            let error = tasks(text).unwrap_err();
            assert!(error.contains(wanted), "{text}: {error}");
        }
    }
}
