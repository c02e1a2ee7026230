//! Finds which task of a scheduler this process is, from the scheduler's environment variables.
//!
//! ```text
//!              this task              all tasks                             task 0 is at
//! SLURM        SLURM_PROCID           SLURM_STEP_NUM_TASKS, SLURM_NTASKS    the first node of SLURM_STEP_NODELIST
//! Kubernetes   JOB_COMPLETION_INDEX   NIGH_TASKS, from the manifest         <job>-0.<service>, from HOSTNAME = <job>-<index>
//! ```
//!
//! SLURM puts task 0 on the first node, except with `--distribution=arbitrary`: then the config's
//! `supervisor` has its host.

use anyhow::{Context, Result, anyhow, ensure};

use crate::config::{Scheduler, Tasks};

/// One of the tasks of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SchedulerTask {
    /// The number of the task, from 0.
    pub me: usize,
    /// The number of tasks.
    pub count: usize,
    /// The host name or address of task 0.
    pub supervisor: String,
    /// A hash of the scheduler's job: it differs between runs.
    pub job: u64,
    /// The processors of each task, if the scheduler reports them.
    pub cpus: Option<usize>,
    /// The number of machines that share out memory; a pod counts as one.
    pub machines: usize,
}

impl SchedulerTask {
    /// Reads the variables of the config's scheduler.
    ///
    /// # Errors
    /// A variable is missing or invalid; the message has its name, and how to start the program.
    pub fn find(table: &Tasks, variable: impl Fn(&str) -> Option<String>) -> Result<SchedulerTask> {
        let task = match table.scheduler {
            Scheduler::Slurm => slurm(table, &SchedulerVariables { advice: "run it under srun", variable: &variable }),
            Scheduler::Kubernetes => {
                let advice = "run it as an Indexed Job, as scripts/kubernetes.yaml does";
                kubernetes(table, &SchedulerVariables { advice, variable: &variable })
            }
        }?;
        ensure!(task.me < task.count, "this is task {}, and there are {}, numbered from 0", task.me, task.count);
        Ok(task)
    }
}

/// The environment variables, and the advice for errors.
struct SchedulerVariables<'a> {
    advice: &'a str,
    variable: &'a dyn Fn(&str) -> Option<String>,
}

impl SchedulerVariables<'_> {
    /// The first of these variables that is set.
    fn optional(&self, names: &[&str]) -> Option<String> {
        names.iter().find_map(|name| (self.variable)(name).filter(|value| !value.is_empty()))
    }

    fn text(&self, names: &[&str]) -> Result<String> {
        let missing = || format!("{} is not set: a config with [tasks] is for a scheduler: {}", names[0], self.advice);
        self.optional(names).with_context(missing)
    }

    fn number(&self, names: &[&str]) -> Result<usize> {
        let text = self.text(names)?;
        text.parse().map_err(|_| anyhow!("{} = {text:?} is not a number: {}", names[0], self.advice))
    }
}

fn slurm(table: &Tasks, variables: &SchedulerVariables<'_>) -> Result<SchedulerTask> {
    let supervisor = match &table.supervisor {
        Some(supervisor) => supervisor.clone(),
        None => first_node(&variables.text(&["SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST"])?)?,
    };
    // A job that was requeued keeps its number: the restart count differs.
    let ids = ["SLURM_JOB_ID", "SLURM_STEP_ID", "SLURM_RESTART_COUNT"].map(|name| variables.optional(&[name]));
    let machines = variables.optional(&["SLURM_STEP_NUM_NODES", "SLURM_JOB_NUM_NODES"]);
    Ok(SchedulerTask {
        me: variables.number(&["SLURM_PROCID"])?,
        count: variables.number(&["SLURM_STEP_NUM_TASKS", "SLURM_NTASKS"])?,
        supervisor,
        job: hash("slurm", &ids.map(Option::unwrap_or_default)),
        cpus: variables.optional(&["SLURM_CPUS_PER_TASK"]).and_then(|text| text.parse().ok()).filter(|cpus| *cpus > 0),
        machines: machines.and_then(|text| text.parse().ok()).unwrap_or(1),
    })
}

fn kubernetes(table: &Tasks, variables: &SchedulerVariables<'_>) -> Result<SchedulerTask> {
    let me = variables.number(&["JOB_COMPLETION_INDEX"])?;
    let count = variables.number(&["NIGH_TASKS"])?;
    let host = variables.text(&["HOSTNAME"])?;
    let job = host.strip_suffix(&format!("-{me}")).with_context(|| {
        format!(
            "HOSTNAME is {host:?}, and the pod of index {me} of an Indexed Job is called <job>-{me}: {}",
            variables.advice
        )
    })?;
    let supervisor = match (&table.supervisor, &table.service) {
        (Some(supervisor), _) => supervisor.clone(),
        (None, service) => format!("{job}-0.{}", service.as_deref().unwrap_or_default()),
    };
    Ok(SchedulerTask { me, count, supervisor, job: hash("kubernetes", &[job.to_owned()]), cpus: None, machines: count })
}

fn hash(scheduler: &str, ids: &[String]) -> u64 {
    xxhash_rust::xxh3::xxh3_64(format!("{scheduler} {}", ids.join(" ")).as_bytes())
}

/// The first host of a list as SLURM writes it: `node[01-03,7],x1` begins with `node01`.
fn first_node(list: &str) -> Result<String> {
    let invalid = || anyhow!("{list:?} is not a list of nodes as SLURM writes it");
    let (mut host, mut rest) = (String::new(), list);
    loop {
        let Some(at) = rest.find(['[', ',', ']']) else {
            host.push_str(rest);
            break;
        };
        host.push_str(&rest[..at]);
        if !rest[at..].starts_with('[') {
            ensure!(rest[at..].starts_with(','), invalid());
            break;
        }
        let (numbers, after) = rest[at + 1..].split_once(']').ok_or_else(invalid)?;
        let first = numbers.split(['-', ',']).next().unwrap_or_default();
        ensure!(!first.is_empty() && first.bytes().all(|byte| byte.is_ascii_digit()), invalid());
        host.push_str(first);
        rest = after;
    }
    ensure!(!host.is_empty(), invalid());
    Ok(host)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(config: &str, variables: &[(&str, &str)]) -> Result<SchedulerTask, String> {
        let value = |name: &str| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| value.to_string());
        SchedulerTask::find(&toml::from_str(config).unwrap(), value).map_err(|error| format!("{error:#}"))
    }

    #[test]
    fn the_first_node_of_a_list_is_found() {
        for (list, first) in [
            ("x1", "x1"),
            ("x1,x2", "x1"),
            ("node[01-03,7],x1", "node01"),
            ("node[7,9-12]", "node7"),
            ("a,node[1-2]", "a"),
            ("rack[1-2]-node[003-004].cluster,x", "rack1-node003.cluster"),
            ("n-1.example.org", "n-1.example.org"),
        ] {
            assert_eq!(first_node(list).unwrap(), first, "{list}");
        }
        for list in ["", ",a", "node[", "node[]", "node[1-2", "node]1", "node[x]"] {
            assert!(first_node(list).is_err(), "{list}");
        }
    }

    #[test]
    fn a_task_of_slurm_is_found() {
        let variables = [
            ("SLURM_PROCID", "2"),
            ("SLURM_NTASKS", "4"),
            ("SLURM_STEP_NUM_TASKS", "3"),
            ("SLURM_JOB_NODELIST", "a[1-9]"),
            ("SLURM_STEP_NODELIST", "a[2-3]"),
            ("SLURM_STEP_NUM_NODES", "2"),
            ("SLURM_JOB_ID", "7"),
            ("SLURM_STEP_ID", "0"),
            ("SLURM_CPUS_PER_TASK", "8"),
        ];
        let task = find("scheduler = \"slurm\"", &variables).unwrap();
        assert_eq!((task.me, task.count, task.cpus, task.machines), (2, 3, Some(8), 2));
        assert_eq!(task.supervisor, "a2");
        let again = [&variables[..], &[("SLURM_RESTART_COUNT", "1")]].concat();
        assert_ne!(find("scheduler = \"slurm\"", &again).unwrap().job, task.job);
        assert_eq!(find("scheduler = \"slurm\"\nsupervisor = \"b\"", &variables).unwrap().supervisor, "b");
        let error = find("scheduler = \"slurm\"", &variables[3..]).unwrap_err();
        assert!(error.contains("SLURM_PROCID is not set") && error.contains("run it under srun"), "{error}");
        let error = find("scheduler = \"slurm\"", &[&[("SLURM_PROCID", "3")], &variables[1..]].concat()).unwrap_err();
        assert!(error.contains("task 3, and there are 3"), "{error}");
    }

    #[test]
    fn a_pod_of_an_indexed_job_is_found() {
        let config = "scheduler = \"kubernetes\"\nservice = \"pods\"";
        let variables = [("JOB_COMPLETION_INDEX", "1"), ("NIGH_TASKS", "3"), ("HOSTNAME", "week-2-1")];
        let task = find(config, &variables).unwrap();
        assert_eq!((task.me, task.count, task.machines, task.supervisor.as_str()), (1, 3, 3, "week-2-0.pods"));
        let first = find(config, &[("JOB_COMPLETION_INDEX", "0"), ("NIGH_TASKS", "3"), ("HOSTNAME", "week-2-0")]);
        assert_eq!(first.unwrap().job, task.job, "the pods of a Job have the same hash");
        let error = find(config, &variables[1..]).unwrap_err();
        assert!(error.contains("JOB_COMPLETION_INDEX is not set") && error.contains("Indexed Job"), "{error}");
        let error = find(config, &[variables[0], variables[2]]).unwrap_err();
        assert!(error.contains("NIGH_TASKS is not set"), "{error}");
        let error = find(config, &[variables[0], variables[1], ("HOSTNAME", "laptop")]).unwrap_err();
        assert!(error.contains("HOSTNAME is \"laptop\""), "{error}");
    }
}
