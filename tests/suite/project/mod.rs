//! The project itself: its rules, its docs, its command line, its golden tables.

/// Benchmarks of the cluster stage, which check it against a single thread.
mod benchmarks;
/// The command line: flags, exit codes, messages, mistakes in jobs and configs.
mod commandline;
/// Rules of the source: lines of comments, names of types.
mod conventions;
/// The files by which others run nigh: images, schedulers, releases.
mod deployment;
/// Commands and queries of README.md and docs/ print what these say.
mod documents;
/// The tables as they were reviewed: golden text and digests.
mod golden;
/// Flags, variables of the environment and configs: which counts, and for what.
mod variables;
