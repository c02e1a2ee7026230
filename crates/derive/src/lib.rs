//! `#[derive(Table)]` declares the columns of a table once: a struct is the row, a field is a
//! column, and its doc comment is the description that files and docs/tables.md have.
//!
//! In reading order: `description` (a doc comment as a description), `declaration` (what the struct
//! and its attributes say), `expansion` (the code that is made of it). The derive makes `Row` of
//! `nigh_tables::tables`, which is a constant and one call for each column; all the rest of writing
//! a table is code that tables share.
//!
//! | attribute of the struct | meaning |
//! |---|---|
//! | `#[table(name = "urls")]` | the name of the table; needed |
//! | `#[table(scratch)]` | the files are read once and removed: they are written in less time, and are larger |
//!
//! | attribute of a field | meaning |
//! |---|---|
//! | `#[column(sorted)]` | the rows of a file ascend by it; at most one column |
//! | `#[column(searched)]` | searched for single values: written with a Bloom filter for each row group |
//! | `#[column(unique)]` | of nearly unique values: written without a dictionary |
//! | `#[column(ascending)]` | of numbers that mostly ascend from row to row: written as differences |
//! | `#[column(random)]` | of hashes: written without compression |
//! | `#[column(unordered)]` | that no query searches by order: written without least and greatest values |
//! | `#[column(width = 48)]` | of byte strings of one length, which the first row gives; 48 in a file without rows |
//! | `#[column(name = "other")]` | the name, if it is not that of the field |
//! | `#[column(description = "...")]` | the description, if the doc comment cannot give it |
//! | `#[columns(a = "...", b = "...")]` | an array is several columns, with these names and descriptions |
//!
//! A doc comment is written as a sentence. Its first paragraph is the description; further ones are
//! for readers of the code. The description of a column has no period at the end and begins with a
//! small letter, unless the first word is a name like `XXH3-128` or `URL`.
//!
//! An attribute that is not in the tables is an error at its place, and so is a second sorted
//! column or a second column of one name.

mod declaration;
mod description;
mod expansion;

use proc_macro::TokenStream;
use syn::{DeriveInput, parse_macro_input};

use crate::declaration::Declaration;

/// Implements `nigh_tables::tables::Row` for a struct with named fields, which thereby is a row of
/// a table. See the [crate] for the attributes.
///
/// The types of fields implement `nigh_tables::tables::Value`; fields may borrow: `DocumentRow<'a>`
/// is a row of the table `DocumentRow<'static>`.
#[proc_macro_derive(Table, attributes(table, column, columns))]
pub fn table(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    match Declaration::of(&input) {
        Ok(declaration) => expansion::row(&declaration).into(),
        Err(error) => error.into_compile_error().into(),
    }
}
