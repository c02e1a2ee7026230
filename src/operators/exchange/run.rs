//! Running a dataflow to its end, and who owns what.

use std::time::Duration;

use anyhow::{Result, anyhow};
use timely::dataflow::operators::probe::Handle;
use timely::progress::Timestamp;
use timely::worker::Worker;

use crate::watch::Watch;

/// How long a worker sleeps at most before it looks whether another one failed.
const PARK: Duration = Duration::from_millis(50);

/// Runs the dataflows of this worker until the probe is done.
///
/// Timely has no notion of failure: an operator that cannot go on notes it in the watch and does no more, and
/// where others would take its silence for an end it keeps its capabilities; every worker of the process then drops
/// its dataflows and returns. Other processes are ended by the supervisor.
///
/// # Errors
/// Where any worker of the process failed; the failure itself stays in the watch.
pub fn run_to_end<T: Timestamp>(worker: &mut Worker, probe: &Handle<T>, watch: &Watch) -> Result<()> {
    while !probe.done() && !watch.failed() {
        worker.step_or_park(Some(PARK));
    }
    if watch.failed() {
        for dataflow in worker.installed_dataflows() {
            worker.drop_dataflow(dataflow);
        }
        return Err(anyhow!("a worker of this process failed"));
    }
    Ok(())
}
