//! Inputs of every kind: what is read of them, where they are looked for, and what is wrong with
//! some.

/// Web archives as their writers leave them.
mod archives;
/// Damaged and hostile files: each gives the pages and rejects that its manifest states.
mod dirty;
/// Inputs with relative names, looked for from other folders than that of the run.
mod elsewhere;
/// Every format and odd name gives the same pages.
mod formats;
/// The fuzz targets, with inputs that a fuzzer found.
mod fuzzed;
/// Datasets of a hub, listings of a web server, and buckets that cannot be read.
#[cfg(feature = "cloud")]
mod hub;
/// Rows in the memory of Python, streams and notebooks.
#[cfg(feature = "live")]
mod in_memory;
/// Inputs of earlier batches are read again as their run read them.
mod inputs_again;
/// Rare types of Parquet and Arrow files.
mod other_types;
/// Pipes, files that are cut short or changed, and folders with more than inputs.
mod pipes;
/// The items of hostile files and good weeks, record by record.
mod readers;
/// Texts in several columns, as those of one.
mod text_columns;
