//! The mirrors of a host, by URL.

use crate::studies::host_rows::{HostCell, HostHead, HostRows};
use crate::tables::Table as _;
use crate::tables::studies::mirrors_by_url::CandidateRow;

pub(super) const HOST_ROWS: HostRows = HostRows {
    title: "Mirrors by URL",
    table: CandidateRow::NAME,
    hosts: &["host_a", "host_b"],
    columns: &["rank", "host_a", "host_b", "level", "score"],
    heads: &[
        HostHead::Number("rank"),
        HostHead::Words("other host"),
        HostHead::Words("level"),
        HostHead::Number("score"),
    ],
    cells: |row, host, _| {
        let [a, b] = [row.text("host_a")?, row.text("host_b")?];
        Ok(Some(vec![
            HostCell::Text(row.count("rank")?.to_string()),
            HostCell::Host(if a == host { b } else { a }),
            HostCell::Text(row.text("level")?),
            HostCell::Text(row.real("score")?.map_or_else(String::new, |score| format!("{score:.2}"))),
        ]))
    },
};
