//! What archives have besides their records: indexes of captures, and the parts of a WACZ.
//!
//! In reading order: `capture` (the captures of a file, as an index has them), `surt` (their keys),
//! `cdxj` (indexes of what is written and of what is not), `wacz` (a WACZ for each one that is
//! read), `zip` (the file that it is).

mod capture;
mod cdxj;
mod surt;
mod wacz;
mod zip;

pub use self::cdxj::IndexFiles;
pub(super) use self::wacz::{WrittenPart, WrittenWacz, wacz_of};
