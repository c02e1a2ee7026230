//! What a study found of a host: rows of one of its tables, for a person who looks at the host.

use anyhow::Result;

use super::figure_tables::RowValues;
use crate::records::Week;

/// A table of a study whose rows name hosts, and what of a row is shown beside a host.
#[derive(Clone, Copy, Debug)]
pub struct HostRows {
    /// The heading.
    pub title: &'static str,
    /// The name of the table.
    pub table: &'static str,
    /// Its columns that name hosts.
    pub hosts: &'static [&'static str],
    /// The columns that `cells` reads.
    pub columns: &'static [&'static str],
    /// The heads of the cells.
    pub heads: &'static [HostHead],
    /// The cells of a row beside a host in a week.
    pub cells: fn(&RowValues<'_>, &str, Week) -> Result<HostCells>,
}

/// The cells of a row; `None` if the row is about another week.
pub type HostCells = Option<Vec<HostCell>>;

/// A head, and what stands below it.
#[derive(Clone, Copy, Debug)]
pub enum HostHead {
    /// Words, or a host.
    Words(&'static str),
    /// Numbers.
    Number(&'static str),
    /// URLs.
    Url(&'static str),
}

/// A cell of a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HostCell {
    /// Another host.
    Host(String),
    /// Words, or a number.
    Text(String),
    /// A URL, which may be long.
    Url(String),
}
