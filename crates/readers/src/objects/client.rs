//! The client of object stores: one asynchronous runtime, and one client for each URL, shared by
//! the whole program.
//!
//! All network traffic runs on one thread with that runtime; the callers are synchronous.
//!
//! Options and credentials come from the environment by the names that each cloud's own tools use:
//! `AWS_*` (also `AWS_ENDPOINT_URL`, `AWS_ALLOW_HTTP`, and `AWS_SKIP_SIGNATURE` for public
//! buckets), `GOOGLE_*`, `AZURE_*`.
//!
//! A request may take ten minutes with its body, because many run at once and share one link, which
//! may be slow. A read fails if no byte arrives for half a minute. A write has no such limit: the
//! service sends nothing before the last byte has left. The environment overrides these limits, for
//! reads and writes: `AWS_TIMEOUT="1 hour"`, `AWS_READ_TIMEOUT`, `AWS_CONNECT_TIMEOUT`, and
//! likewise for `GOOGLE_` and `AZURE_`.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use anyhow::Context as _;
use object_store::{Error, ObjectStore, parse_url_opts};
use tokio::runtime::{Builder, Handle};
use url::Url;

use super::credentials;
use super::service_error::{ServiceError, causes, missing_bucket};

/// The option for the most time that a request may take.
const REQUEST: (&str, &str) = ("timeout", "10 minutes");
/// The option for the most time that a read may wait for the next byte.
const SILENCE: (&str, &str) = ("read_timeout", "30 seconds");
/// Environment variables with these prefixes set options.
const PREFIXES: [&str; 3] = ["AWS_", "AZURE_", "GOOGLE_"];

/// Whether a client reads or writes: the two have different limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum AccessMode {
    Reading,
    Writing,
}

/// The client of one object store.
pub type ObjectStoreClient = Arc<dyn ObjectStore>;

/// Adds to an error of the client what could not be done (`read URL`, for instance), and what the
/// user can do.
pub fn explained(error: Error, what: &str) -> anyhow::Error {
    ServiceError::new(error, what).into()
}

/// An object that is not there: `None`, unless its whole bucket is not.
pub(super) fn absent<T>(error: Error, what: &str) -> anyhow::Result<Option<T>> {
    match missing_bucket(&causes(&error)) {
        None => Ok(None),
        Some(_) => Err(explained(error, what)),
    }
}

/// The client that reads from the store of a URL; always the same one for the same URL.
///
/// # Errors
/// If the URL or the settings in the environment are wrong.
pub fn store(url: &str) -> anyhow::Result<ObjectStoreClient> {
    store_for(AccessMode::Reading, url)
}

/// As [`store`], for writes.
///
/// # Errors
/// As [`store`].
pub fn store_to_write(url: &str) -> anyhow::Result<ObjectStoreClient> {
    store_for(AccessMode::Writing, url)
}

fn store_for(mode: AccessMode, url: &str) -> anyhow::Result<ObjectStoreClient> {
    static STORES: OnceLock<Mutex<HashMap<(AccessMode, String), ObjectStoreClient>>> = OnceLock::new();
    let mut stores = STORES.get_or_init(Mutex::default).lock().unwrap_or_else(PoisonError::into_inner);
    let key = (mode, url.to_owned());
    if let Some(store) = stores.get(&key) {
        return Ok(store.clone());
    }
    // Without a default provider the client panics; another part of the program may have installed
    // it.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let parsed = Url::parse(url).with_context(|| format!("{url} is not a URL"))?;
    let environment = std::env::vars_os();
    let texts = environment.filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    let mut options = options(mode, texts);
    if parsed.scheme() == "http" {
        options.push(("allow_http".to_owned(), "true".to_owned()));
    }
    credentials::check(&parsed, &mut options)?;
    let (store, _) = parse_url_opts(&parsed, options).map_err(|error| {
        anyhow::anyhow!("cannot use the store {url}: check its settings in the environment: {}", causes(&error))
    })?;
    let store: ObjectStoreClient = Arc::from(store);
    stores.insert(key, store.clone());
    Ok(store)
}

/// The options of a client: the limits, and then those of the environment. Of several with one name
/// the last one counts.
fn options(mode: AccessMode, environment: impl Iterator<Item = (String, String)>) -> Vec<(String, String)> {
    let limits = match mode {
        AccessMode::Reading => vec![REQUEST, SILENCE],
        AccessMode::Writing => vec![REQUEST],
    };
    let limits = limits.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned()));
    limits.chain(environment.filter(|(name, _)| PREFIXES.iter().any(|prefix| name.starts_with(prefix)))).collect()
}

/// The runtime of all network traffic; the first call starts its thread.
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

/// Runs a future on the runtime and waits for its result.
///
/// # Errors
/// If the runtime cannot be started, or has ended.
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

/// As [`wait`], for at most `patience`; `None` if there is no result by then.
///
/// # Errors
/// As [`wait`].
pub fn wait_at_most<F>(patience: Duration, future: F) -> anyhow::Result<Option<F::Output>>
where
    F: Future<Output: Send + 'static> + Send + 'static,
{
    wait(async move { tokio::time::timeout(patience, future).await.ok() })
}

#[cfg(test)]
mod tests {
    use object_store::ClientConfigKey::{ReadTimeout, Timeout};
    use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};

    use super::*;

    #[test]
    fn the_environment_overrides_the_limits_of_requests() {
        let limits = |mode, environment: &[(&str, &str)]| {
            let environment = environment.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
            let options = options(mode, environment).into_iter();
            let builder = options.fold(AmazonS3Builder::new(), |builder, (name, value)| {
                builder.with_config(name.to_ascii_lowercase().parse().unwrap(), value)
            });
            [Timeout, ReadTimeout].map(|key| builder.get_config_value(&AmazonS3ConfigKey::Client(key)))
        };
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(limits(AccessMode::Reading, &[("HOME", "/")]), [some("10 minutes"), some("30 seconds")]);
        assert_eq!(limits(AccessMode::Writing, &[]), [some("10 minutes"), None]);
        let set = [("AWS_TIMEOUT", "1 hour"), ("AWS_READ_TIMEOUT", "5 s")];
        assert_eq!(limits(AccessMode::Reading, &set), [some("1 hour"), some("5 s")]);
        assert_eq!(limits(AccessMode::Writing, &set), [some("1 hour"), some("5 s")]);
    }
}
