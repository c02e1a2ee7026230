//! A dataset written again without its duplicates, or only these, or with what is known of each record.
//!
//! ```text
//! a week's documents and clusters ─▶ verdicts, by file and place                                `verdicts`
//! verdicts ─▶ a list of what goes                                                               `list`
//! each input file, read once more ─▶ beside its verdicts ─▶ a file of the same name     `dataset`, `file`
//! ```
//!
//! Records keep their order and their files. A record is written only if its content has the checksum that the week has of it: an input that
//! changed since is an error. A file gets its name when it is whole, and a list of whole files is kept beside them: the same command goes on
//! where it was stopped.
//!
//! In reading order: `verdicts`, `dataset` (all inputs), `folder` (where their files are), `file` (an input and the file that is written for
//! it), `format` (what it can be written as), `spans` (formats in which a record is a span of bytes: lines, CSV, WARC, text), `compressed`
//! (files of the compression that their names say), `revisit` (WARC records that refer to another one), `rows` (Parquet, Arrow), `pages`
//! (documents of WARC, HTML and text as rows), `converted` (lines and CSV as rows), `repeated` (paragraphs that go from documents that
//! stay), `list`; what they use: `parquet_copy` (Parquet as Parquet), `columns` (types for lines), `attached` (requests and metadata), `int96` and
//! `types` (values that a format has no type for), `lines`; and what they share: `exported` (which records are written, and counts),
//! `paragraphs` (lines of texts), `workplace` and `output` (files that are not whole yet).

mod attached;
mod columns;
mod compressed;
mod converted;
mod dataset;
mod exported;
mod file;
mod folder;
mod format;
mod int96;
mod lines;
mod list;
mod output;
mod pages;
mod paragraphs;
mod parquet_copy;
mod repeated;
mod revisit;
mod rows;
mod spans;
mod types;
mod verdicts;
mod workplace;

pub use self::columns::JsonColumns;
pub use self::dataset::write_dataset;
pub use self::exported::{Exported, LeftOut, What};
pub use self::file::Writing;
pub use self::folder::{ExportFolder, ExportKey};
pub use self::format::ExportFormat;
pub use self::list::ListFile;
pub use self::paragraphs::ParagraphRules;
pub use self::repeated::Finding;
pub use self::verdicts::{Deciding, Verdict};
