//! Finds the inputs that a user names.
//!
//! In reading order: `found` (a file or object, and how it was named), `inputs` (files, folders, globs and listings),
//! `objects` (URLs of object stores and web servers), `cloud` (the same with the feature `cloud`).

#[cfg(feature = "cloud")]
mod cloud;
mod found;
mod inputs;
mod objects;

pub use self::inputs::list;
pub use self::objects::open;
