//! The weeks that the job reads besides its own: the one before, and all since a former run, or
//! since the first week.

use anyhow::{Result, bail};

use super::{FollowedWeek, Paragraphs};
use crate::config::Mode;
use crate::records::Week;
use crate::sheet::grouped;
use crate::state::{CommittedWeek, History, Store};
use crate::studies::CommittedTables;

/// The first week that the job reads, and the number of the commit of the former run that it
/// follows.
///
/// # Errors
/// If the job says `mode = "delta"`, and there is no run to follow: says why. Or if the store
/// cannot be read.
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
    let weeks = &weeks[..=own];
    let before = own.saturating_sub(1);
    let begin = first_with_chunks(store, weeks, if job.genealogy { 0 } else { before }, notice)?;
    let former = if !job.genealogy {
        Err("`genealogy` is false".into())
    } else if job.mode == Mode::Full {
        Err("the job says so".into())
    } else {
        find(store, job, &weeks[begin..])?
    };
    match former {
        Ok((then, commit)) => Ok((Some(weeks[(begin + then).min(before).max(begin)].week), Some(commit))),
        Err(why) if job.mode == Mode::Delta => {
            bail!("mode = \"delta\", and no former run can be followed: {why}")
        }
        Err(_) => Ok((Some(weeks[begin].week), None)),
    }
}

/// The first week, from number `from` on, so that it and all weeks after it have chunks; the last
/// one is not asked. Says what is missing.
fn first_with_chunks(store: &Store, weeks: &[CommittedWeek], from: usize, notice: &dyn Fn(&str)) -> Result<usize> {
    let mut begin = from;
    for (number, week) in weeks.iter().enumerate().take(weeks.len() - 1).skip(from) {
        let name = week.week;
        let (words, chunks) = History::open(store, Some(name), Some(name))?.last().pages_with_chunks();
        if words > 0 && chunks == 0 {
            notice(&format!(
                "week {name} has no chunks, so it and the weeks before it are left out: see jobs/chunks.toml"
            ));
            begin = number + 1;
        } else if chunks < words {
            let without = grouped(words - chunks);
            notice(&format!("{without} pages of week {name} have no chunks: their paragraphs count as not there"));
        }
    }
    Ok(begin)
}

/// The place of the week of the former run among `weeks`, which begin with the first that has
/// chunks; and the number of its commit. Or why there is none to follow.
fn find(store: &Store, job: &Paragraphs, weeks: &[CommittedWeek]) -> Result<Result<(usize, u64), String>> {
    let Some(committed) = CommittedTables::<Paragraphs>::find(store)? else {
        return Ok(Err(format!("{} has no tables of this job", store.root().display())));
    };
    let summary = &committed.summary;
    let is_same = |former: &Paragraphs| former.genealogy && former.least_characters == job.least_characters;
    if !committed.job()?.as_ref().is_some_and(is_same) {
        return Ok(Err("the job of the run before has another `least-characters`, or no genealogy".into()));
    }
    let known = &summary.followed;
    if known.len() > weeks.len() {
        return Ok(Err(format!("the run before was for week {}", summary.last)));
    }
    let is_same = |(then, now): (&FollowedWeek, &CommittedWeek)| (then.week, then.commit) == (now.week, now.commit);
    Ok(match known.iter().zip(weeks).find(|pair| !is_same(*pair)) {
        Some((then, _)) => {
            Err(format!("week {} or one before it was made again, removed, or got chunks since", then.week))
        }
        None => Ok((known.len() - 1, committed.results.commit_number())),
    })
}
