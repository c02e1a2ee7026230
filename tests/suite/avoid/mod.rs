//! Crawls made in code.

pub mod made;
