//! The client of object stores: one runtime, and one store for a URL, for all of the program.
//!
//! All network traffic runs on one thread with one asynchronous runtime; whoever reads or writes stays synchronous.
//!
//! Options and credentials come from the environment by the names that each cloud's own tools use: `AWS_*` (also
//! `AWS_ENDPOINT_URL`, `AWS_ALLOW_HTTP`, and `AWS_SKIP_SIGNATURE` for public buckets), `GOOGLE_*`, `AZURE_*`.
//!
//! A request may take ten minutes with its body: many are under way at once, and a slow link has to carry them all. What
//! is read may be silent for half a minute only. What is written may not be judged by silence: the client hears nothing
//! before the last byte has left. The environment has the last word, for what is read and written alike:
//! `AWS_TIMEOUT="1 hour"`, `AWS_READ_TIMEOUT`, `AWS_CONNECT_TIMEOUT`, and so for `GOOGLE_` and `AZURE_`.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use anyhow::{Context as _, anyhow};
use object_store::{Error, ObjectStore, parse_url_opts};
use tokio::runtime::{Builder, Handle};
use url::Url;

/// How long a request may take.
const REQUEST: (&str, &str) = ("timeout", "10 minutes");
/// How long nothing may come, of what is read.
const SILENCE: (&str, &str) = ("read_timeout", "30 seconds");
/// Whose variables set options.
const PREFIXES: [&str; 3] = ["AWS_", "AZURE_", "GOOGLE_"];

/// What a store is used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Use {
    Reading,
    Writing,
}

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
    store_for(Use::Reading, url)
}

/// As [`store`], to write to it.
///
/// # Errors
/// As [`store`].
pub fn store_to_write(url: &str) -> anyhow::Result<Store> {
    store_for(Use::Writing, url)
}

fn store_for(what: Use, url: &str) -> anyhow::Result<Store> {
    static STORES: OnceLock<Mutex<HashMap<(Use, String), Store>>> = OnceLock::new();
    let mut stores = STORES.get_or_init(Mutex::default).lock().unwrap_or_else(PoisonError::into_inner);
    let name = (what, url.to_owned());
    if let Some(store) = stores.get(&name) {
        return Ok(store.clone());
    }
    // Without a default provider the client panics; another part of the program may have installed it.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let parsed = Url::parse(url).with_context(|| format!("{url} is no URL"))?;
    let environment = std::env::vars_os();
    let text = environment.filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    let mut options = options(what, text);
    if parsed.scheme() == "http" {
        options.push(("allow_http".to_owned(), "true".to_owned()));
    }
    let made = parse_url_opts(&parsed, options);
    let (store, _) =
        made.with_context(|| format!("cannot use the store {url}: check its settings in the environment"))?;
    let store: Store = Arc::from(store);
    stores.insert(name, store.clone());
    Ok(store)
}

/// The options of a store, of which the last one of a name counts: limits, and what the environment sets.
fn options(what: Use, environment: impl Iterator<Item = (String, String)>) -> Vec<(String, String)> {
    let limits = match what {
        Use::Reading => vec![REQUEST, SILENCE],
        Use::Writing => vec![REQUEST],
    };
    let limits = limits.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned()));
    limits.chain(environment.filter(|(name, _)| PREFIXES.iter().any(|prefix| name.starts_with(prefix)))).collect()
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

#[cfg(test)]
mod tests {
    use object_store::ClientConfigKey::{ReadTimeout, Timeout};
    use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};

    use super::*;

    #[test]
    fn requests_have_time_and_the_environment_says_how_much() {
        let limits = |what, environment: &[(&str, &str)]| {
            let environment = environment.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
            let options = options(what, environment).into_iter();
            let builder = options.fold(AmazonS3Builder::new(), |builder, (name, value)| {
                builder.with_config(name.to_ascii_lowercase().parse().unwrap(), value)
            });
            [Timeout, ReadTimeout].map(|key| builder.get_config_value(&AmazonS3ConfigKey::Client(key)))
        };
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(limits(Use::Reading, &[("HOME", "/")]), [some("10 minutes"), some("30 seconds")]);
        assert_eq!(limits(Use::Writing, &[]), [some("10 minutes"), None]);
        let mine = [("AWS_TIMEOUT", "1 hour"), ("AWS_READ_TIMEOUT", "5 s")];
        assert_eq!(limits(Use::Reading, &mine), [some("1 hour"), some("5 s")]);
        assert_eq!(limits(Use::Writing, &mine), [some("1 hour"), some("5 s")]);
    }
}
