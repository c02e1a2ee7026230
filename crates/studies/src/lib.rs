//! Jobs that read committed weeks: a folder each; and what is made of their results.
//!
//! ```text
//! avoid  figures             what to stop crawling; the figures of the papers
//! job_file                   a job file is one of nigh's jobs: clusters, or a study
//! studies                    a folder for each study
//! host_order                 which of several hosts with the same pages stays
//! ```

use nigh_display::{plot, sheet};
use nigh_exchange::watch;
use nigh_kernels::{kernels, records, structures};
use nigh_readers::readers;
use nigh_store::{config, mirror, plan, query, state};
use nigh_tables::{stats, tables};
use nigh_text::{features, text};
use nigh_week::{jobs, operators};

pub mod avoid;
pub mod figures;
pub mod host_order;
pub mod job_file;
pub mod studies;
