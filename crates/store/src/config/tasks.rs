//! The part of a config for a scheduler (SLURM or Kubernetes) that starts the processes: the
//! `[tasks]` table.

use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use super::pool::{Ports, Time};

/// The `[tasks]` table: a scheduler starts the same command once for each process of the run, on
/// machines that it chooses.
///
/// Task 0 supervises the run and has process 0. The other tasks connect to it, and start the
/// process that it asks for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Tasks {
    /// The scheduler, whose environment variables have the number of each task: `slurm` or
    /// `kubernetes`. Required.
    pub scheduler: Scheduler,
    /// The headless Service through which Kubernetes gives every pod a host name. Required there,
    /// unless `supervisor` is set.
    pub service: Option<String>,
    /// The host name or address of task 0. Default: from the scheduler's variables.
    pub supervisor: Option<String>,
    /// The port at which task 0 waits for the others, or a range of which it takes the first free
    /// one. Default: 2100.
    #[serde(default = "control_port")]
    pub control: Ports,
    /// The port at which each process listens for the others, or a range of which it takes the
    /// first free one. Default: the system's choice.
    #[serde(default)]
    pub port: Ports,
    /// The one address at which a task listens. Default: task 0 waits at all addresses of its
    /// machine, of IPv6 and IPv4, and a process listens at the address by which its task reaches
    /// task 0.
    pub listen: Option<IpAddr>,
    /// How long tasks wait for each other, and for a lost task to return. Default: 5 min.
    pub wait: Option<Time>,
}

/// A scheduler that can start the tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scheduler {
    /// SLURM's `srun`: a task is a process of a job step.
    Slurm,
    /// Kubernetes, with an Indexed Job and a headless Service: a task is a pod.
    Kubernetes,
}

/// The default port of task 0, one below the ports of processes in the configs that come with nigh.
fn control_port() -> Ports {
    Ports { first: 2100, last: 2100 }
}

impl Tasks {
    /// Checks the rules that concern several keys.
    ///
    /// # Errors
    /// Names the key that is missing, or has no meaning with this scheduler.
    pub(crate) fn check(&self) -> Result<(), String> {
        if self.control.first == 0 {
            return Err("control = 0: give a port, because the other tasks must know the port".into());
        }
        match (self.scheduler, &self.service) {
            (Scheduler::Slurm, Some(_)) => Err("`service` is only for scheduler = \"kubernetes\"".into()),
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
    fn errors_in_tasks_show_what_is_wrong() {
        let tasks = |text: &str| {
            let tasks: Tasks = toml::from_str(text).map_err(|error| error.to_string())?;
            tasks.check().map(|()| tasks)
        };
        let plain = tasks("scheduler = \"slurm\"").unwrap();
        assert_eq!((plain.control, plain.port), (Ports { first: 2100, last: 2100 }, Ports::default()));
        tasks("scheduler = \"kubernetes\"\nservice = \"nigh\"").unwrap();
        for (text, wanted) in [
            ("scheduler = \"cron\"", "`slurm` or `kubernetes`"),
            ("scheduler = \"slurm\"\nservice = \"nigh\"", "`service` is only for"),
            ("scheduler = \"kubernetes\"", "`service` is missing"),
            ("scheduler = \"slurm\"\ncontrol = 0", "must know the port"),
            ("scheduler = \"slurm\"\nhosts = 3", "unknown field `hosts`"),
        ] {
            let error = tasks(text).unwrap_err();
            assert!(error.contains(wanted), "{text}: {error}");
        }
    }
}
