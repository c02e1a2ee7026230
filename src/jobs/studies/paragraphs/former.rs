//! The weeks that the job reads besides its own: the one before, and all since a former run, or since the first week.

use anyhow::{Result, bail};

use crate::config::{Mode, Paragraphs, Study};
use crate::records::Week;
use crate::state::{History, Results, Store};
use crate::summary::{ParagraphsSummary, StudySummary};

/// The first week that the job reads, and the number of the commit of the former run that it follows.
///
/// # Errors
/// If the job says `mode = "delta"`, and there is no run to follow: says why. Or if the store cannot be read.
pub fn former_paragraphs(
    store: &Store,
    job: &Paragraphs,
    notice: &dyn Fn(&str),
) -> Result<(Option<Week>, Option<u64>)> {
    let weeks = store.manifest()?.map(|manifest| manifest.weeks).unwrap_or_default();
    let own = match job.week {
        None => weeks.len().checked_sub(1),
        Some(named) => weeks.iter().position(|week| week.week == named),
    };
    // Opening the history says what is wrong.
    let Some(own) = own else { return Ok((job.week, None)) };
    let before = own.saturating_sub(1);
    let former = if !job.genealogy {
        Err("`genealogy` is false".into())
    } else if job.mode == Mode::Full {
        Err("the job says so".into())
    } else {
        find(store, job, own)?
    };
    let mut first = match &former {
        Ok((then, _)) => *then.min(&before),
        Err(_) => {
            if job.genealogy {
                0
            } else {
                before
            }
        }
    };
    // Weeks before one without chunks say nothing of it.
    for (number, week) in weeks.iter().enumerate().take(own).skip(first) {
        let (words, chunks) = History::open(store, Some(week.week), Some(week.week))?.last().pages_with_chunks();
        if let (1.., 0) = (words, chunks) {
            notice(&format!(
                "week {} has no chunks, so it and the weeks before it are left out: see jobs/chunks.toml",
                week.week
            ));
            first = number + 1;
        }
    }
    let former = former.and_then(|(then, commit)| match then >= first || then == own {
        true => Ok(commit),
        false => Err(format!("week {} or a later one has no chunks", weeks[then].week)),
    });
    match former {
        Ok(commit) => Ok((Some(weeks[first].week), Some(commit))),
        Err(why) if job.mode == Mode::Delta => {
            bail!("mode = \"delta\", and no former run can be followed: {why}")
        }
        Err(_) => Ok((Some(weeks[first].week), None)),
    }
}

/// The number of the week of the former run, and that of its commit; or why there is none to follow.
fn find(store: &Store, job: &Paragraphs, own: usize) -> Result<Result<(usize, u64), String>> {
    let Some(results) = Results::committed(store, "paragraphs")? else {
        return Ok(Err(format!("{} has no tables of this job", store.root().display())));
    };
    let summary = former_summary(&results)?;
    let former = std::fs::read_to_string(results.committed_file("job.toml"))?;
    let is_same = |former: &Paragraphs| former.genealogy && former.least_characters == job.least_characters;
    if !matches!(toml::from_str(&former), Ok(Study::Paragraphs(former)) if is_same(&former)) {
        return Ok(Err("the job of the run before has another `least-characters`, or no genealogy".into()));
    }
    let weeks = store.manifest()?.map(|manifest| manifest.weeks).unwrap_or_default();
    let then = weeks.iter().position(|week| week.week == summary.last && week.commit == summary.week_commit);
    Ok(match then {
        None => Err(format!("week {} was made again or removed since", summary.last)),
        Some(then) if then > own => Err(format!("the run before was for week {}", summary.last)),
        Some(_) if weeks.iter().all(|week| week.week != summary.first) => {
            Err(format!("week {} was removed since", summary.first))
        }
        Some(then) => Ok((then, results.commit_number())),
    })
}

/// The summary of a former run.
///
/// # Errors
/// If it cannot be read, or is not one of this job.
pub(super) fn former_summary(results: &Results) -> Result<ParagraphsSummary> {
    let path = results.committed_file("summary.json");
    let StudySummary::Paragraphs(summary) = StudySummary::read(&path)? else {
        bail!("{} is damaged: it is not a summary of paragraphs", path.display());
    };
    Ok(summary)
}
