//! Inputs written again, without what is a near-duplicate: archives that replay, datasets, texts
//! without repeated passages.

use nigh_kernels::{kernels, records, structures};
use nigh_readers::{objects, readers};
use nigh_store::{config, mirror, state, summary};
use nigh_studies::studies;
use nigh_tables::tables;
use nigh_text::{features, text};
use nigh_week::operators;

pub mod export;
