//! `nigh vacuum`: removes old weeks from a store, and folders of unfinished weeks.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Args;

use crate::cli::errors::WrongUse;
use crate::cli::print::print_json;
use crate::cli::session::{locate_store, notify, read_manifest, take_store};
use crate::config::{Bytes, Config, Count};
use crate::log::Log;
use crate::records::Week;
use crate::report::print;
use crate::state::Vacuumed;

#[derive(Args)]
#[command(after_help = "Example:\n    nigh vacuum --store crawls --keep 4 --dry-run")]
pub(crate) struct VacuumArgs {
    /// Folder of all tables, or s3://BUCKET/PREFIX.
    #[arg(long, value_name = "DIR_OR_URL")]
    store: PathBuf,
    /// Local folder for the work on a store in a bucket [default: a folder in your cache].
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

/// The weeks to keep.
#[derive(Args)]
#[group(required = true, multiple = false)]
struct KeptWeeks {
    /// Keep this many weeks, the last ones.
    #[arg(long, value_name = "WEEKS")]
    keep: Option<Count>,
    /// Remove the weeks before this one; keep it and all later ones.
    #[arg(long, value_name = "YYYY-MM-DD")]
    before: Option<Week>,
}

/// Removes old weeks, and prints what was removed.
pub(crate) fn run(args: &VacuumArgs, log: &Log) -> Result<ExitCode> {
    log.name("vacuum".to_owned());
    let location = locate_store(&args.store, args.mirror.as_deref(), &Config::default())?;
    let store = location.store();
    let mut guard = None;
    if args.dry_run {
        location.expect()?;
        location.look(&notify(log))?;
    } else {
        // The week of a commit that is finished now counts, too.
        guard = Some(take_store(&location, log)?);
    }
    let weeks = read_manifest(store, &args.store)?.weeks;
    let before = match (args.kept.before, args.kept.keep) {
        (Some(week), _) => week,
        (None, Some(Count(keep))) => {
            let first_kept = weeks.get(weeks.len().saturating_sub(keep));
            first_kept.with_context(|| format!("the store {} has no week yet", args.store.display()))?.week
        }
        (None, None) => return Err(WrongUse("give the weeks to keep: --keep or --before".into()).into()),
    };
    let vacuumed = if args.dry_run {
        store.to_vacuum(before)?
    } else {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        store.vacuum(before, threads)?
    };
    if let Some(guard) = &mut guard {
        guard.publish(true, &notify(log))?;
    }
    if args.json {
        print_json(&vacuumed)?;
    } else {
        print(&vacuum_text(&vacuumed, args.dry_run))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn vacuum_text(vacuumed: &Vacuumed, dry_run: bool) -> String {
    let Vacuumed { weeks, results, unfinished, bytes } = vacuumed;
    if weeks.is_empty() && unfinished.is_empty() {
        return "Nothing to remove\n".into();
    }
    let mut text = String::new();
    let verb = if dry_run { "Would remove" } else { "Removed" };
    let mut list = |kind: &str, names: Vec<String>| {
        if !names.is_empty() {
            text.push_str(&format!("{verb} {} {kind}{}: {}\n", names.len(), plural(names.len()), names.join(", ")));
        }
    };
    list("week", weeks.iter().map(|week| week.to_string()).collect());
    list(
        "table folder",
        results.iter().map(|name| format!("{name} (made of removed weeks; run its job again)")).collect(),
    );
    list("unfinished folder", unfinished.clone());
    text + &format!("{verb} {}\n", Bytes(*bytes))
}

/// The ending of a noun after this number.
fn plural(count: usize) -> &'static str {
    if count == 1 { "" } else { "s" }
}
