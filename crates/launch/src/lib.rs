//! The processes of a run: how they are started on machines, find each other, and are started
//! again after a failure.

use nigh_exchange::watch;
use nigh_readers::objects;
use nigh_store::config;
use nigh_text::text;

pub mod launch;
