//! The workers of one process.

use std::sync::Arc;

use anyhow::{Context as _, Result, anyhow};
use nigh_exchange::Context;
use timely::communication::Hooks;
use timely::communication::allocator::zero_copy::initialize::initialize_networking_from_sockets;
use timely::communication::allocator::{AllocatorBuilder, ProcessBuilder};
use timely::worker::Worker;

use super::exit_codes::EXIT_PEER_LOST;
use crate::launch::wire::Link;
use crate::text::{printable, printable_lines};
use crate::watch::Watch;

/// The other processes of a run.
pub enum Peers {
    /// No other processes.
    None,
    /// A joined connection to each other process.
    Sockets {
        /// This process' number.
        me: usize,
        /// The connections by process number; `None` at `me`.
        sockets: Vec<Option<Link>>,
    },
}

/// Runs `work` on `workers` threads and returns their results in the order of the workers.
///
/// ```
/// use std::sync::Arc;
///
/// use nigh_launch::launch::{Peers, run_workers};
/// use nigh_exchange::watch::Watch;
///
/// let watch = Arc::new(Watch::default());
/// let numbers = run_workers(2, Peers::None, &watch, |cx| Ok(cx.index()))?;
/// assert_eq!(numbers, [0, 1]);
/// # Ok::<(), anyhow::Error>(())
/// ```
///
/// # Errors
/// The first failure that a worker noted in the watch or returned.
pub fn run_workers<T, F>(workers: usize, peers: Peers, watch: &Arc<Watch>, work: F) -> Result<Vec<T>>
where
    T: Send + 'static,
    F: Fn(&mut Context) -> Result<T> + Send + Sync + 'static,
{
    let hooks = Hooks::default();
    let local = ProcessBuilder::new_typed_vector(workers, hooks.refill.clone(), hooks.spill.clone());
    let (builders, guard): (Vec<AllocatorBuilder>, Box<dyn std::any::Any + Send>) = match peers {
        Peers::None => (local.into_iter().map(AllocatorBuilder::Process).collect(), Box::new(())),
        Peers::Sockets { me, sockets } => {
            let (tcp, guard) = initialize_networking_from_sockets(local, sockets, me, workers, hooks)
                .context("cannot hand the connections to the engine")?;
            (tcp.into_iter().map(AllocatorBuilder::Tcp).collect(), Box::new(guard))
        }
    };
    let run = {
        let (watch, shared) = (watch.clone(), Arc::default());
        move |worker: &mut Worker| {
            let result = work(&mut Context::new(worker, &watch, &shared));
            if result.is_err() {
                // Unfinished dataflows would keep the thread of a failed worker running.
                worker.installed_dataflows().into_iter().for_each(|dataflow| worker.drop_dataflow(dataflow));
            }
            result.map_err(|error| watch.fail(error))
        }
    };
    let guards = timely::execute::execute_from(builders, guard, timely::WorkerConfig::default(), run);
    let results = guards.map_err(|error| anyhow!("cannot start workers: {error}"))?.join();
    if let Some(failure) = watch.take_failure() {
        return Err(failure);
    }
    results
        .into_iter()
        .map(|result| {
            result.map_err(|panic| anyhow!("a worker panicked: {panic}"))?.map_err(|()| anyhow!("a worker failed"))
        })
        .collect()
}

/// Ends the process with this exit code when one of its threads panics: the other threads would
/// wait for it without end.
///
/// A panic of the engine's network threads means that the connection to another process was lost.
/// The process then exits with `EXIT_PEER_LOST`, so that the supervisor can distinguish it from the
/// process that failed first.
pub fn exit_on_panic(code: i32) {
    std::panic::set_hook(Box::new(move |info| {
        if nigh_text::contained::is_contained() {
            // A decoder panicked on a damaged file: the file becomes a reject, with this message.
            return;
        }
        let payload = info.payload();
        let message = payload
            .downcast_ref::<&str>()
            .map(|text| text.to_string())
            .or_else(|| payload.downcast_ref::<String>().cloned())
            .unwrap_or_default();
        let location = info.location().map(|at| format!(" at {}:{}", at.file(), at.line())).unwrap_or_default();
        let thread = std::thread::current();
        let name = thread.name().unwrap_or("a thread");
        if message.contains(crate::launch::wire::REFUSED) {
            // The peer, or something between, sends what nigh does not send: this is a cause of the
            // failure, not an effect.
            eprintln!("nigh: a connection was ended: {}, in {name}", printable(&message));
            std::process::exit(code);
        }
        if message.contains("timely communication error") || message.contains("MergeQueue poisoned") {
            // The supervisor reports the cause.
            std::process::exit(EXIT_PEER_LOST);
        }
        if message.starts_with("failed to spawn thread") {
            eprintln!(
                "nigh: the system starts no further thread: raise its limit (`ulimit -u`, or that of the container), or use fewer --workers"
            );
            std::process::exit(code);
        }
        eprintln!(
            "nigh: a fault in this program, please report it: {}{location}, in {name}",
            printable_lines(&message)
        );
        std::process::exit(code);
    }));
}
