//! `nigh browse`: a store as pages that a browser shows.

use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use clap::Args;

use super::LookArgs;
use crate::browse::{Browse, Browsed, Stop, serve};
use crate::cli::errors::WrongUse;
use crate::cli::session::read_manifest;
use crate::config::Verify;
use crate::launch::exit_on_panic;
use crate::log::Log;
use crate::records::Week;
use crate::tables::{ChangeRow, EvidenceRow, FeatureRow, Table as _};

/// Examples at the end of `nigh help browse`.
const EXAMPLES: &str = "\
Example:
    nigh browse crawls
and open http://127.0.0.1:7745 in a browser on this machine. Ctrl-C ends it. See docs/looking.md.";

#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(in crate::cli) struct BrowseArgs {
    /// Folder of all tables, or s3://BUCKET/PREFIX.
    #[arg(value_name = "STORE")]
    store: PathBuf,
    /// Week to look into [default: the last one].
    #[arg(long, value_name = "YYYY-MM-DD")]
    week: Option<Week>,
    /// Serve the pages at this address of this machine; port 0 is one that is free.
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:7745")]
    listen: SocketAddr,
    /// The crawl files, for the texts of pages [default: those of the week, if they are at hand].
    #[arg(long, num_args = 1.., value_name = "PATH_OR_GLOB_OR_URL")]
    input: Vec<String>,
}

/// Tables of the week that are read, besides documents and clusters.
const TABLES: [&str; 3] = [FeatureRow::NAME, EvidenceRow::NAME, ChangeRow::NAME];

/// Serves the pages until a signal ends the process.
pub(in crate::cli) fn browse(args: &BrowseArgs, log: &Log) -> Result<ExitCode> {
    let address = args.listen;
    let others = "it must be an address of this machine, such as 127.0.0.1:7745: the pages are for no other one";
    ensure!(address.ip().is_loopback(), WrongUse(format!("--listen {address}: {others}")));
    let failed = || format!("cannot listen at {address}: use another --listen");
    let listener = TcpListener::bind(address).with_context(failed)?;
    let address = listener.local_addr().with_context(failed)?;
    let stop = stop_on_signals();
    exit_on_panic(1);
    let look = LookArgs { store: args.store.clone(), week: args.week, json: false };
    let served = look.of_store(|read_store| {
        let manifest = read_manifest(read_store.store(), &look.store)?;
        look.need_names(read_store, &manifest)?;
        look.of_pages(read_store, &manifest, &TABLES, |week, reading| {
            let inputs = if args.input.is_empty() {
                // Files of servers are not fetched for some words.
                week.inputs_at_hand(reading, Verify::None)
            } else {
                week.named_inputs(&args.input, reading)?
            };
            let (name, reading) = (look.store.display().to_string(), reading.clone());
            let browsed = Browsed { store: read_store, manifest: &manifest, name, week, inputs, reading };
            let browse = Browse::open(browsed, &|text| log.notice(text), &stop.is_stopped)?;
            log.notice(&format!("{}: open http://{address}", browse.about()));
            serve(&browse, listener.try_clone().with_context(failed)?, &stop)
        })
    });
    match stop.signal() {
        Some(signal) => Ok(ExitCode::from(128 + signal as u8)),
        None => served.map(|()| ExitCode::SUCCESS),
    }
}

/// Ends the server on SIGINT or SIGTERM: temporary files are removed then.
fn stop_on_signals() -> Arc<Stop> {
    let stop = Arc::new(Stop::default());
    let signals = signal_hook::iterator::Signals::new([signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM]);
    // Without a handler a signal ends the process all the same.
    if let Ok(mut signals) = signals {
        let stop = stop.clone();
        std::thread::spawn(move || {
            for signal in signals.forever() {
                if stop.signal().is_some() {
                    // The second one ends it at once.
                    std::process::exit(128 + signal);
                }
                stop.stop(signal);
            }
        });
    }
    stop
}
