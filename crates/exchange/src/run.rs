//! Running the dataflows of a worker until they end or a worker fails.

use std::time::Duration;

use anyhow::{Result, anyhow};
use timely::dataflow::operators::probe::Handle;
use timely::progress::Timestamp;

use super::context::Context;

/// The longest sleep of a worker before it checks again whether another one failed.
const PARK: Duration = Duration::from_millis(50);

/// Runs the dataflows of this worker until the probe is done.
///
/// Timely has no notion of failure. An operator that cannot continue records its error in the watch
/// and does nothing more. If it dropped its capabilities then, other workers would take its silence
/// for the end of its data, so it keeps them. Every worker of the process sees the failure here,
/// drops its dataflows and returns an error; the supervisor ends the other processes.
///
/// # Errors
/// If any worker of the process failed; the first error itself stays in the watch.
pub fn run_to_end<T: Timestamp>(cx: &mut Context, probe: &Handle<T>) -> Result<()> {
    let watch = &cx.watch().clone();
    while !probe.done() && !watch.failed() {
        cx.worker().step_or_park(Some(PARK));
    }
    if watch.failed() {
        for dataflow in cx.worker().installed_dataflows() {
            cx.worker().drop_dataflow(dataflow);
        }
        return Err(anyhow!("a worker of this process failed"));
    }
    Ok(())
}
