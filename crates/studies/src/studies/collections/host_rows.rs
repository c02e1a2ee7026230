//! The collections on a host.

use crate::sheet::grouped;
use crate::studies::host_rows::{HostCell, HostHead, HostRows};
use crate::tables::Table as _;
use crate::tables::studies::collections::CollectionRow;

pub(super) const HOST_ROWS: HostRows = HostRows {
    title: "Collections",
    table: CollectionRow::NAME,
    hosts: &["host"],
    columns: &["cluster", "prefix", "pages", "in_links", "principal"],
    heads: &[
        HostHead::Number("similar cluster"),
        HostHead::Url("below"),
        HostHead::Number("pages"),
        HostHead::Number("links to it"),
        HostHead::Words("what"),
    ],
    cells: |row, _, _| {
        let count = |column| Ok::<_, anyhow::Error>(HostCell::Text(grouped(row.count(column)? as u64)));
        Ok(Some(vec![
            HostCell::Text(row.count("cluster")?.to_string()),
            HostCell::Url(row.text("prefix")?),
            count("pages")?,
            count("in_links")?,
            HostCell::Text(if row.truth("principal")? { "the principal one" } else { "a copy" }.to_owned()),
        ]))
    },
};
