#![doc = include_str!("../README.md")]
//!
//! # Modules
//!
//! ```text
//! readers                    lists of inputs, and pages of an input
//! objects                    the client of object stores
//! reading                    the settings of readers
//! units                      sizes, shares, counts, lengths of time
//! ```

pub mod objects;
pub mod readers;
pub mod reading;
pub mod units;
