//! What a user would notice, tested on real pages. One binary: its folders say what their suites
//! are about.
//!
//! Timings are not asserted here, except for bounds that only a hang would break; figures come from
//! `nigh bench`. A test that needs something that this machine lacks is skipped and listed at the
//! end: see `skips`. A suite of a cargo feature is built with that feature only.

/// A browser without a screen.
mod browser;
/// Running the program, and reading its tables.
mod program;
/// A real object store.
#[cfg(feature = "cloud")]
mod seaweed;
/// What tests need of the machine, and how they report that it is not there.
mod skips;
/// A made web with the truth about it, and slow twins over it, for the tests of jobs.
mod web;

mod choices;
mod clusters;
mod exports;
mod inputs;
#[cfg(feature = "live")]
mod live;
mod looking;
mod project;
mod revisits;
mod runs;
mod studies;
mod weeks;
