//! The client of object stores: one runtime, and one store for a URL, for all of the program.
//!
//! All network traffic runs on one thread with one asynchronous runtime; whoever reads or writes stays synchronous.
//!
//! Options and credentials come from the environment by the names that each cloud's own tools use: `AWS_*` (also
//! `AWS_ENDPOINT_URL`, `AWS_ALLOW_HTTP`, and `AWS_SKIP_SIGNATURE` for public buckets), `GOOGLE_*`, `AZURE_*`.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use anyhow::{Context as _, anyhow};
use object_store::{Error, ObjectStore, parse_url_opts};
use tokio::runtime::{Builder, Handle};
use url::Url;

/// A store of objects.
pub type Store = Arc<dyn ObjectStore>;

/// Says what could not be done, and what to do about it.
pub fn explained(error: Error, what: &str) -> anyhow::Error {
    let advice = match error {
        Error::PermissionDenied { .. } | Error::Unauthenticated { .. } => {
            "set the credentials in the environment, or AWS_SKIP_SIGNATURE=true for a public bucket"
        }
        _ => "check the name, the network, and the settings in the environment",
    };
    anyhow!(error).context(format!("cannot {what} ({advice})"))
}

/// Gives the store of a URL, always the same one for the same URL.
///
/// # Errors
/// Where the URL or the settings in the environment are wrong.
pub fn store(url: &str) -> anyhow::Result<Store> {
    static STORES: OnceLock<Mutex<HashMap<String, Store>>> = OnceLock::new();
    let mut stores = STORES.get_or_init(Mutex::default).lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(store) = stores.get(url) {
        return Ok(store.clone());
    }
    // Without a default provider the client panics; another part of the program may have installed it.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let parsed = Url::parse(url).with_context(|| format!("{url} is no URL"))?;
    let mut options: Vec<(String, String)> = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .filter(|(name, _)| ["AWS_", "AZURE_", "GOOGLE_"].iter().any(|prefix| name.starts_with(prefix)))
        .collect();
    if parsed.scheme() == "http" {
        options.push(("allow_http".to_owned(), "true".to_owned()));
    }
    let made = parse_url_opts(&parsed, options);
    let (store, _) =
        made.with_context(|| format!("cannot use the store {url}: check its settings in the environment"))?;
    let store: Store = Arc::from(store);
    stores.insert(url.to_owned(), store.clone());
    Ok(store)
}

/// Gives the runtime that all network traffic runs on.
pub(super) fn runtime() -> anyhow::Result<&'static Handle> {
    static RUNTIME: OnceLock<Option<Handle>> = OnceLock::new();
    let start = || {
        let (sender, receiver) = std::sync::mpsc::channel();
        let run = move || {
            if let Ok(runtime) = Builder::new_current_thread().enable_all().build() {
                let _ = sender.send(runtime.handle().clone());
                runtime.block_on(std::future::pending::<()>());
            }
        };
        std::thread::Builder::new().name("objects".to_owned()).spawn(run).ok()?;
        receiver.recv().ok()
    };
    RUNTIME.get_or_init(start).as_ref().context("cannot start the thread that reads from the network")
}

/// Runs a future on the runtime and waits for what it gives.
///
/// # Errors
/// Where there is no runtime, or it has ended.
pub fn wait<F>(future: F) -> anyhow::Result<F::Output>
where
    F: Future<Output: Send + 'static> + Send + 'static,
{
    let (sender, receiver) = std::sync::mpsc::channel();
    runtime()?.spawn(async move {
        let _ = sender.send(future.await);
    });
    receiver.recv().context("the thread that reads from the network has stopped")
}

/// As [`wait`], for so long at most; `None` where there was no answer by then.
///
/// # Errors
/// As [`wait`].
pub fn wait_at_most<F>(patience: Duration, future: F) -> anyhow::Result<Option<F::Output>>
where
    F: Future<Output: Send + 'static> + Send + 'static,
{
    wait(async move { tokio::time::timeout(patience, future).await.ok() })
}
