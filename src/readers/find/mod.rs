//! Finds the input files that a user names.
//!
//! In reading order: `inputs` (files, folders, globs and listings to inputs), `found` (a file or object before its format is known),
//! `objects` (URLs of object stores and web servers), `cloud` (the same, with the feature `cloud`).

#[cfg(feature = "cloud")]
mod cloud;
mod found;
mod inputs;
mod objects;

pub use self::inputs::list;
pub use self::objects::open;
