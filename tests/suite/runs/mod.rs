//! Runs on one machine and on many: the same bytes, whatever is killed, is full or comes and goes.

/// The logs of Delta Lake list just the files of a store.
#[cfg(feature = "cloud")]
mod catalog;
/// Every file that is not as it was written is named.
mod damage;
/// The same bytes whatever the workers, the processes and the order of inputs.
mod determinism;
/// Runs whose hosts come and go.
mod elastic;
/// Processes that are killed or freeze: the run restarts them by itself.
mod faults;
/// Runs with more workers than the store has shards.
mod few_shards;
/// Unauthenticated peers are refused; processes work over TLS.
#[cfg(feature = "pool")]
mod intruders;
/// A store in a bucket of a real server.
#[cfg(feature = "cloud")]
mod objects;
/// How often a run opens the files that it makes.
mod opened;
/// A pool of three hosts with a real sshd each.
#[cfg(all(feature = "cloud", feature = "pool"))]
mod pool;
/// Interrupted runs continue where they stopped; full disks and damaged stores are reported.
mod survival;
/// Tasks that a scheduler starts, SLURM or Kubernetes.
#[cfg(feature = "pool")]
mod tasks;
/// Runs without an operator: flags, weeks by the clock, variables, events and metrics.
mod unattended;
