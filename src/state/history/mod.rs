//! Results that span weeks: the tables of an evolution job.
//!
//! In reading order: `weeks` (the committed weeks of a store), `downloads` (which documents each week downloaded), `results`
//! (the folder of an evolution, replaced as a whole).

mod downloads;
mod results;
mod weeks;

pub use self::downloads::Downloads;
pub use self::results::Results;
pub use self::weeks::{History, PastWeek};
