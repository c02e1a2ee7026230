//! Opens inputs.
//!
//! In reading order: `reader` (an input to its reader, checked), `keys` (what its documents can be
//! known by), `source` (its stored bytes), `raw` (its bytes, for copies of records), `json_lines`
//! (its lines as they are).

mod json_lines;
mod keys;
mod raw;
mod reader;
mod source;

pub use self::json_lines::JsonLines;
pub use self::keys::KeysOfInput;
pub use self::raw::{RawBytes, decoded};
pub(super) use self::reader::FromOffset;
pub use self::reader::{check, columns, damage, keys, open, open_at};
pub(super) use self::source::source;
pub use self::source::stored_file;
