//! Several weeks of a store as the input of one job, and the folder of its tables.
//!
//! In reading order: `weeks` (successive committed weeks and their files), `downloads` (every
//! document's downloads, week by week), `results` (the folder of the tables that the job makes,
//! replaced as one).

mod downloads;
mod results;
mod weeks;

pub use self::downloads::Downloads;
pub use self::results::Results;
pub use self::weeks::{History, PastWeek};
