//! The inputs that are read again: those of the week, those of batches before, and the archives of
//! earlier weeks that revisits refer to.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context as _, Result, bail, ensure};

use super::flags::ExportArgs;
use crate::config::{Canonical, Reading};
use crate::export::EarlierWeeks;
use crate::log::Log;
use crate::mirror::ReadStore;
use crate::plan::{inputs_by_week, stamp_of};
use crate::readers::{Input, Location, is_passing, list};
use crate::records::{Week, short_hash};
use crate::sheet::grouped;
use crate::state::{CommittedWeek, Earlier, Manifest, Store, WholeWeek, removed_folder};
use crate::tables::{DocumentRow, Table as _, UrlRow, ValueRow};

/// The inputs of the week as they are now, in the order that they had.
///
/// # Errors
/// If they cannot be found, or have changed since the week was made from them.
pub(super) fn own_inputs(
    (store, whole): (&Store, &WholeWeek),
    args: &ExportArgs,
    of_job: &[String],
    reading: &Reading,
) -> Result<Vec<Input>> {
    let (week, journal) = (&whole.committed, &whole.journal);
    let listed = if args.input.is_empty() { list(of_job, reading) } else { list(&args.input, &reading.here()) };
    let inputs = match listed {
        Ok(inputs) => inputs,
        Err(error) => {
            // What `nigh live` committed moves with the store.
            let names = journal.key.stamps.keys().map(|name| (week.week, name.as_str()));
            let again = inputs_by_week((store, whole), names, reading, true);
            if !args.input.is_empty() || again.len() < journal.key.stamps.len() {
                let what = format!("the inputs of week {} are read again: give them with --input", week.week);
                return Err(error.context(what));
            }
            again.into_values().collect()
        }
    };
    let known = |input: &Input| journal.key.stamps.contains_key(&input.name);
    let at_hand: BTreeSet<&str> = inputs.iter().map(|input| input.name.as_str()).collect();
    let missing: Vec<&str> =
        journal.key.stamps.keys().map(String::as_str).filter(|name| !at_hand.contains(name)).collect();
    if let Some(first) = missing.first() {
        let more = if missing.len() > 1 {
            format!(" and {} more files", grouped(missing.len() as u64 - 1))
        } else {
            String::new()
        };
        bail!(
            "week {} was made from {first}{more}, not among the inputs now: put it back under this name, or start the command in the folder that has it now, \
             with --input and the names that the inputs had",
            week.week
        );
    }
    if let Some(new) = inputs.iter().find(|input| !known(input)) {
        bail!("{} was no input of week {}: take it away, or give the inputs with --input", new.name, week.week);
    }
    for input in &inputs {
        let stamp = journal.key.stamps.get(&input.name).map_or("", |stamp| stamp);
        check_stamp(input, stamp, week.week, args.touched)?;
    }
    Ok(inputs)
}

/// Checks that an input has the size and the time of change that it had.
fn check_stamp(input: &Input, stamp: &str, week: Week, touched: bool) -> Result<()> {
    ensure!(
        touched || stamp_of(input).1 == stamp,
        "{} has changed since week {week} was made: its size or its time of change is another. Restore the file, or make the week again; if it \
         is a copy with the same content, give --touched",
        input.name
    );
    Ok(())
}

/// The archives of the weeks before, whose records revisits may refer to.
#[derive(Default)]
pub(super) struct EarlierFiles {
    pub(super) inputs: Vec<Input>,
    pub(super) weeks: EarlierWeeks,
    /// The hash of the weeks and of the names.
    pub(super) identity: Option<String>,
}

/// The archives of the weeks before that are there as they were. Those that this week has documents
/// of are not among them: they are written again without what is not of the week. Nor are those in
/// a WACZ, which is replayed alone.
///
/// # Errors
/// If a file of the store cannot be read.
pub(super) fn earlier_files(
    read_store: &ReadStore,
    manifest: &Manifest,
    week: &CommittedWeek,
    own: &[(Week, String)],
    reading: &Reading,
    (keep, touched): (&Canonical, bool),
    log: &Log,
) -> Result<EarlierFiles> {
    let (store, earlier) = (read_store.store(), Earlier::before(manifest, week.week));
    let own: BTreeSet<&str> = own.iter().map(|(_, name)| name.as_str()).collect();
    let mut stamped: BTreeMap<(Week, String), String> = BTreeMap::new();
    for before in &earlier.weeks {
        for (of, names) in store.whole(before)?.journal.inputs(before.week) {
            stamped.extend(names.iter().map(|(name, stamp)| ((of, name.clone()), stamp.clone())));
        }
    }
    let is_archive = |input: &Input| input.format.has_captures() && !matches!(input.place, Location::Entry { .. });
    let (mut inputs, mut numbers, mut gone) = (Vec::new(), BTreeMap::new(), Vec::new());
    stamped.retain(|(_, name), _| !own.contains(name.as_str()));
    let names = stamped.keys().map(|(of, name)| (*of, name.as_str()));
    let mut at_hand = inputs_by_week((store, &store.whole(week)?), names, reading, true);
    for ((of, name), stamp) in stamped {
        match at_hand.remove(&(of, name.clone())) {
            Some(input) if !is_archive(&input) => {}
            Some(input) if touched || stamp_of(&input).1 == stamp => {
                numbers.insert((of, name), inputs.len() as u32);
                inputs.push(input);
            }
            _ => gone.push((of, name)),
        }
    }
    if let Some((of, first)) = gone.first() {
        let more = match gone.len() - 1 {
            0 => String::new(),
            more => format!(" and {} more files of earlier weeks", grouped(more as u64)),
        };
        log.notice(&format!("{first} of week {of}{more} is not there as it was: what is in it is not referred to"));
    }
    if inputs.is_empty() {
        return Ok(EarlierFiles::default());
    }
    for before in &earlier.weeks {
        let values = (!keep.columns().is_empty()).then_some(ValueRow::NAME);
        for table in [DocumentRow::NAME, UrlRow::NAME].into_iter().chain(values) {
            read_store.need(table, &[&format!("{}/", before.week.folder())])?;
        }
    }
    if let Some(removed) = &earlier.removed {
        read_store.need_own(&removed_folder(removed))?;
    }
    let weeks = EarlierWeeks::open(store, &earlier, manifest.method.shards, &numbers)?;
    let identities = earlier.weeks.iter().map(CommittedWeek::identity);
    let of_files = numbers.keys().map(|(of, name)| format!("{of} {name}"));
    let identity = short_hash(identities.chain(of_files).collect::<Vec<_>>().join("\n").as_bytes());
    Ok(EarlierFiles { inputs, weeks, identity: Some(identity) })
}

/// The inputs before `--since`, whose records revisits may refer to. A notice names
/// one that is not there, and it is [absent](Input::absent): what its records have is not known.
///
/// # Errors
/// If one has changed.
pub(super) fn older_inputs(
    (store, whole): (&Store, &WholeWeek),
    stamped: &[(Week, String, &String)],
    args: &ExportArgs,
    reading: &Reading,
    log: &Log,
) -> Result<Vec<Input>> {
    let older = stamped.iter().filter(|(week, ..)| args.since.is_some_and(|since| *week < since));
    if args.alone {
        return Ok(older.map(|(_, name, _)| Input::absent(name)).collect());
    }
    let names = older.clone().map(|(week, name, _)| (*week, name.as_str()));
    let mut at_hand = inputs_by_week((store, whole), names, reading, true);
    let input = |(week, name, stamp): &(Week, String, &String)| {
        let Some(input) = at_hand.remove(&(*week, name.clone())) else {
            log.notice(&format!("{name} of week {week} is not there: what is in it is not referred to"));
            return Ok(Input::absent(name));
        };
        check_stamp(&input, stamp, *week, args.touched)?;
        Ok(input)
    };
    older.map(input).collect()
}

/// The inputs of earlier weeks whose documents stay.
///
/// # Errors
/// If one is not there under the name that it had, or has changed.
pub(super) fn earlier_inputs(
    (store, whole): (&Store, &WholeWeek),
    stamped: &[&(Week, String, &String)],
    reading: &Reading,
    touched: bool,
) -> Result<Vec<Input>> {
    let names = stamped.iter().map(|(week, name, _)| (*week, name.as_str()));
    let mut at_hand = inputs_by_week((store, whole), names, reading, true);
    let input = |(week, name, stamp): &&(Week, String, &String)| {
        let input = at_hand.remove(&(*week, name.clone())).with_context(|| {
            if is_passing(name) {
                format!("documents of week {week} came from standard input or a pipe ({name}), which nothing gives again: make the store again from files")
            } else {
                format!("documents of week {week} are in {name}, which is not there: put it back under this name")
            }
        })?;
        check_stamp(&input, stamp, *week, touched)?;
        Ok(input)
    };
    stamped.iter().map(input).collect()
}
