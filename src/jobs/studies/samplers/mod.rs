//! The samplers job.
//!
//! In reading order: `job` (the job from top to bottom), `pairs` (which pairs of pages are compared), `measure` (what each sampler says of a
//! pair), `errors` (how far that is from the truth, by band of resemblance).

mod errors;
mod job;
mod measure;
mod pairs;

pub(super) use self::job::samplers;
