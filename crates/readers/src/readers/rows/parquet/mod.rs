//! Reads Parquet files: each row is a page. Only the columns that the job names are read.
//!
//! Rows are read one at a time from each column, without Arrow: a value is a slice of its page or
//! of the dictionary, and is copied once, cut at `max-page-bytes`. A batch of Arrow would hold the
//! values of all of its rows, and each row's own copy of a dictionary value. The types are those of
//! the Parquet schema, so text is read as text whatever program wrote it. A column inside a group
//! is named with dots: `metadata.url`.
//!
//! Damage: a row group that does not decode gives one reject for each of its remaining rows, and
//! reading continues with the next group. The decoders can panic on damaged files; such a panic is
//! damage, too.
//!
//! Memory: of each column its dictionary and one page, compressed and uncompressed, while the next
//! page is decoded a second one. The writers' usual size of a page is 1 MiB; a page that claims to
//! be longer than 1 GiB is damage, and one that is longer than the memory of the job allows is an
//! error. The number of rows, of values and of bytes that a file claims reserves no memory.
//!
//! In reading order: `reader` (rows to pages), `column` (the values of a column), `file` (the bytes
//! of a file, and its pages).

mod column;
mod file;
mod reader;
#[cfg(test)]
mod tests;

pub use self::reader::{check, columns, damage, open, open_piece};
