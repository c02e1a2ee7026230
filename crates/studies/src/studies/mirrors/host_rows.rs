//! The mirrors of a host, by content.

use crate::sheet::grouped;
use crate::studies::host_rows::{HostCell, HostHead, HostRows};
use crate::tables::Table as _;
use crate::tables::studies::mirrors::MirrorPairRow;

pub(super) const HOST_ROWS: HostRows = HostRows {
    title: "Mirrors by content",
    table: MirrorPairRow::NAME,
    hosts: &["host_a", "host_b"],
    columns: &["week", "host_a", "host_b", "class", "mirror", "clusters", "pages_a", "pages_b"],
    heads: &[
        HostHead::Words("other host"),
        HostHead::Words("mirror"),
        HostHead::Words("class"),
        HostHead::Number("clusters"),
        HostHead::Number("its pages"),
        HostHead::Number("own pages"),
    ],
    cells: |row, host, week| {
        if row.week("week")? != week {
            return Ok(None);
        }
        let count = |column| Ok::<_, anyhow::Error>(HostCell::Text(grouped(row.count(column)? as u64)));
        let [a, b] = [row.text("host_a")?, row.text("host_b")?];
        let (other, own, its) = if a == host { (b, "pages_a", "pages_b") } else { (a, "pages_b", "pages_a") };
        Ok(Some(vec![
            HostCell::Host(other),
            HostCell::Text(if row.truth("mirror")? { "yes" } else { "no" }.to_owned()),
            HostCell::Text(row.text("class")?),
            count("clusters")?,
            count(its)?,
            count(own)?,
        ]))
    },
};
