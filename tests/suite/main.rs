//! What a user would notice, tried on real pages: one binary, its suites in reading order.
//!
//! Timings are never asserted here, but for bounds that a hang would break; figures come from `nigh bench`.

/// Running the program, and reading its tables.
mod program;
/// A real object store.
mod seaweed;

/// Benchmarks of the cluster stage, which check it against a single thread.
mod benchmarks;
/// Clusters against brute force and sequential union-find.
mod clusters;
/// The command line: flags, exit codes, messages, mistakes in jobs and configs.
mod commandline;
/// The components operators against sequential union-find and differential dataflow's `propagate`.
mod components;
/// Deleted pages and removed weeks.
mod deletion;
/// The same bytes whatever the workers, the processes and the order of inputs.
mod determinism;
/// Hostile files: every one does what its manifest says.
mod dirty;
/// The evolution of clusters against brute force over URLs, on stores with random histories.
mod evolution;
/// Processes that die, freeze or are killed again and again: the run goes on by itself.
mod faults;
/// Every format and odd name gives the same pages.
mod formats;
/// Who is not of a run does not come in; processes over TLS.
mod intruders;
/// What could not be downloaded, against a plain walk over the tables and the inputs.
mod missing;
/// A store in a bucket of a real server.
mod objects;
/// A pool of three hosts with a real sshd each.
mod pool;
/// Tables open in DuckDB, Polars and pyarrow.
mod queries;
/// Interrupted runs go on where they stopped; full disks and damaged stores are told.
mod survival;
/// Tasks that a scheduler starts, SLURM or Kubernetes.
mod tasks;
/// Recall, estimates and chains against the exact similarity of real pages.
mod truth;
/// Week over week: from what changed as from all pages.
mod weekly;
