//! Figures of the studies, computed from finished tables by plain functions.
//!
//! Nothing here knows of timely, of files or of threads: a function takes the rows of a table and gives numbers.
//! In reading order:
//!
//! - `powerlaw`: the exponent of the distribution of cluster sizes (Fetterly 2004, Fig. 1).

mod powerlaw;

pub use powerlaw::{Fit, MIN_TAIL, fit};
