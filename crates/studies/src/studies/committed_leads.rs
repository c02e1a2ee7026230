//! Which mirrors change first, by the committed tables of the mirrors job.

use anyhow::Result;
use arrow_array::{Array, Int64Array, StringArray};

use super::committed::CommittedTables;
use super::mirrors::Mirrors;
use crate::host_order::HostLeads;
use crate::state::{PastWeek, Results, Store};
use crate::tables::studies::mirrors::MirrorLagRow;
use crate::tables::{Scan, Table, field};

/// The leads of hosts, by the table `lags` of a store, if the mirrors job read this week as it is;
/// else nothing is known of any host.
///
/// # Errors
/// If a file cannot be read: names it.
pub fn committed_leads(store: &Store, week: &PastWeek) -> Result<HostLeads> {
    let Some(CommittedTables { results, summary }) = CommittedTables::<Mirrors>::find(store)? else {
        return Ok(HostLeads::default());
    };
    let is_of_week = |(date, commit)| (date, commit) == (week.week, week.made);
    match summary.mirrors.iter().any(|of| is_of_week((of.week, of.week_commit))) {
        true => leads_of(&results),
        false => Ok(HostLeads::default()),
    }
}

/// The leads of hosts by these tables of the mirrors job.
///
/// # Errors
/// If the file cannot be read: names it.
pub fn leads_of(results: &Results) -> Result<HostLeads> {
    let mut leads = HostLeads::default();
    let columns = ["host", "copy", "weeks", "changes"];
    Scan::open(results.committed_table(MirrorLagRow::NAME, 0), &columns)?.for_each(|batch| {
        let [hosts, copies]: [&StringArray; 2] = [field(batch, "host")?, field(batch, "copy")?];
        let [weeks, changes]: [&Int64Array; 2] = [field(batch, "weeks")?, field(batch, "changes")?];
        for row in 0..batch.num_rows() {
            let weeks = weeks.is_valid(row).then(|| weeks.value(row) as u64);
            leads.add(hosts.value(row), copies.value(row), weeks, changes.value(row) as u64);
        }
        Ok(())
    })?;
    Ok(leads)
}
