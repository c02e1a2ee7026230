//! `nigh vacuum`: old weeks leave a store.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Args;

use super::errors::WrongUse;
use super::print::say_json;
use super::session::{end_when_lost, home, notify};
use crate::config::{Bytes, Config, Count};
use crate::log::Log;
use crate::records::Week;
use crate::report::print;
use crate::state::Vacuumed;

#[derive(Args)]
pub(crate) struct VacuumArgs {
    /// The folder of tables, or s3://BUCKET/PREFIX.
    #[arg(long, value_name = "DIR_OR_URL")]
    store: PathBuf,
    /// The folder in which a store in a bucket is worked on; one of this user's cache where it is not given.
    #[arg(long, value_name = "DIR")]
    mirror: Option<PathBuf>,
    #[command(flatten)]
    kept: KeptWeeks,
    /// Print what would be removed, and stop.
    #[arg(long)]
    dry_run: bool,
    /// Print one JSON object.
    #[arg(long)]
    pub json: bool,
}

/// Which weeks stay.
#[derive(Args)]
#[group(required = true, multiple = false)]
struct KeptWeeks {
    /// Keep so many weeks, the last ones.
    #[arg(long, value_name = "WEEKS")]
    keep: Option<Count>,
    /// Keep the weeks from this one on.
    #[arg(long, value_name = "YYYY-MM-DD")]
    before: Option<Week>,
}

/// Removes old weeks, and says what is gone.
pub(crate) fn run(args: &VacuumArgs, log: &Log) -> Result<ExitCode> {
    log.name("vacuum".to_owned());
    let home = home(&args.store, args.mirror.as_deref(), &Config::default())?;
    let store = home.store();
    let root = args.store.display();
    let manifest = || {
        store.manifest()?.with_context(|| {
            format!("{root} is not a nigh store (no manifest.json): `nigh run jobs/cluster.toml` makes a store")
        })
    };
    home.expect()?;
    let notify_user = notify(log);
    // What a killed run was about to list is a week, too.
    let mut taken = match args.dry_run {
        true => home.look(&notify_user).map(|()| None)?,
        false => Some(home.take(&notify_user, end_when_lost(log))?),
    };
    if taken.is_some() {
        store.check_writable()?;
        store.take_work()?;
        store.recover()?;
    }
    let manifest = manifest()?;
    let weeks = &manifest.weeks;
    let first = |kept: usize| weeks.get(weeks.len().saturating_sub(kept)).map(|week| week.week);
    let before = match (&args.kept.before, &args.kept.keep) {
        (Some(week), _) => *week,
        (None, Some(Count(kept))) => first(*kept).with_context(|| format!("the store {root} has no week yet"))?,
        (None, None) => return Err(WrongUse("which weeks stay? give --keep or --before".into()).into()),
    };
    let vacuumed = if args.dry_run {
        store.to_vacuum(before)?
    } else {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        store.vacuum(before, threads)?
    };
    if let Some(taken) = &mut taken {
        taken.publish(true, &notify_user)?;
    }
    if args.json {
        say_json(&vacuumed)?;
    } else {
        print(&said(&vacuumed, args.dry_run))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn said(vacuumed: &Vacuumed, dry_run: bool) -> String {
    let Vacuumed { weeks, unfinished, bytes } = vacuumed;
    if weeks.is_empty() && unfinished.is_empty() {
        return "Nothing to remove\n".into();
    }
    let mut text = String::new();
    let what = if dry_run { "Would remove" } else { "Removed" };
    let mut list = |kind: &str, names: Vec<String>| {
        if !names.is_empty() {
            text.push_str(&format!("{what} {} {kind}{}: {}\n", names.len(), plural(names.len()), names.join(", ")));
        }
    };
    list("week", weeks.iter().map(|week| week.to_string()).collect());
    list("unfinished folder", unfinished.clone());
    text + &format!("{what} {}\n", Bytes(*bytes))
}

fn plural(count: usize) -> &'static str {
    if count == 1 { "" } else { "s" }
}
