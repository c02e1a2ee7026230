//! The workers of one process.

use std::sync::Arc;

use anyhow::{Context, Result, anyhow};
use timely::communication::Hooks;
use timely::communication::allocator::zero_copy::initialize::initialize_networking_from_sockets;
use timely::communication::allocator::{AllocatorBuilder, ProcessBuilder};
use timely::worker::Worker;

use super::exit_codes::EXIT_PEER_LOST;
use crate::launch::wire::Link;
use crate::watch::Watch;

/// The other processes of a run.
pub enum Peers {
    /// There are none.
    None,
    /// A joined connection to each of the others, by its number; `None` at this process' own number, `me`.
    Sockets {
        /// This process' number.
        me: usize,
        /// One connection a process, this one's apart.
        sockets: Vec<Option<Link>>,
    },
}

/// Runs `work` on `workers` threads, and returns what each returned, in order.
///
/// # Errors
/// The first failure that any of them noted in the watch or returned.
pub fn run_workers<T, F>(workers: usize, peers: Peers, watch: &Arc<Watch>, work: F) -> Result<Vec<T>>
where
    T: Send + 'static,
    F: Fn(&mut Worker) -> Result<T> + Send + Sync + 'static,
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
    let noted = watch.clone();
    let guards = timely::execute::execute_from(builders, guard, timely::WorkerConfig::default(), move |worker| {
        let result = work(worker);
        if result.is_err() {
            // Dataflows of a worker that gave up would keep its thread for ever.
            worker.installed_dataflows().into_iter().for_each(|dataflow| worker.drop_dataflow(dataflow));
        }
        result.map_err(|error| noted.fail(error))
    });
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

/// Ends the process with this exit code when any of its threads panics: the others would wait for it for ever.
///
/// A panic of the engine's network threads means that another process is gone; it exits with a code of its own, so
/// that the supervisor can tell the cause from its victims.
pub fn exit_on_panic(code: i32) {
    std::panic::set_hook(Box::new(move |info| {
        let payload = info.payload();
        let message = payload
            .downcast_ref::<&str>()
            .map(|text| text.to_string())
            .or_else(|| payload.downcast_ref::<String>().cloned())
            .unwrap_or_default();
        let place = info.location().map(|at| format!(" at {}:{}", at.file(), at.line())).unwrap_or_default();
        let thread = std::thread::current();
        let name = thread.name().unwrap_or("a thread");
        if message.contains(crate::launch::wire::REFUSED) {
            // The other process, or something between, is not what it showed itself to be: a cause, not a victim.
            eprintln!("nigh: a connection was ended: {message}, in {name}");
            std::process::exit(code);
        }
        if message.contains("timely communication error") || message.contains("MergeQueue poisoned") {
            // The supervisor tells the cause.
            std::process::exit(EXIT_PEER_LOST);
        }
        eprintln!("nigh: a fault in this program, please report it: {message}{place}, in {name}");
        std::process::exit(code);
    }));
}
