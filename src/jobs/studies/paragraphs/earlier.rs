//! The week before the one of the job, if the store has it.

use anyhow::Result;

use crate::config::Paragraphs;
use crate::records::Week;
use crate::state::{History, Store};

/// The first week that the job reads: the one before its own, if it has paragraphs, else its own. `None` leaves it to [`History::open`] to say
/// what is wrong.
///
/// # Errors
/// If the store cannot be read.
pub fn first_week(store: &Store, job: &Paragraphs, notice: &dyn Fn(&str)) -> Result<Option<Week>> {
    let weeks = store.manifest()?.map(|manifest| manifest.weeks).unwrap_or_default();
    let at = match job.week {
        None => weeks.len().checked_sub(1),
        Some(named) => weeks.iter().position(|week| week.week == named),
    };
    let Some(at) = at else { return Ok(job.week) };
    let own = weeks[at].week;
    let Some(before) = at.checked_sub(1).map(|before| weeks[before].week) else { return Ok(Some(own)) };
    let (words, chunks) = History::open(store, Some(before), Some(before))?.last().pages_with_chunks();
    if chunks > 0 || words == 0 {
        return Ok(Some(before));
    }
    notice(&format!("week {before} has no chunks, so nothing is estimated by its growth: see jobs/chunks.toml"));
    Ok(Some(own))
}
