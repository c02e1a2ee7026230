//! Files of datasets of Hugging Face: `hf://datasets/OWNER/NAME`, with a revision (`@main`), and a
//! path or a glob.
//!
//! ```text
//! revision ─▶ its commit                  /api/datasets/OWNER/NAME/revision/REVISION
//! files of the commit, below the fixed    /api/datasets/OWNER/NAME/tree/COMMIT/PATH?recursive=true
//!   part of the path
//! a file                                  /datasets/OWNER/NAME/resolve/COMMIT/PATH
//! ```
//!
//! The files are those of one commit, also if the branch moves meanwhile. The names of inputs have
//! the revision as it was given. The environment variable [`VARIABLE`] names another address that
//! serves the same.
//!
//! Known limitation: only datasets that everyone may read, without a token.

use std::time::Duration;

use anyhow::{Context as _, Result, anyhow, bail, ensure};
use reqwest::{Client, StatusCode, Url, header};
use serde::Deserialize;

use crate::objects::{hide_passwords, refuse_secrets, wait};
use crate::readers::find::found::{FoundBy, FoundInput};
use crate::readers::find::globs::{fixed_prefix, found_by, is_glob, matcher};
use crate::readers::input::Location;

/// Where the datasets are.
const ADDRESS: &str = "https://huggingface.co";
/// The environment variable that names another place.
const VARIABLE: &str = "NIGH_HUB";
/// The beginning of an item.
pub const SCHEME: &str = "hf://";
/// The most pages of a list of files, of a thousand files each.
const MOST_PAGES: usize = 10_000;
/// The most time for one answer.
const PATIENCE: Duration = Duration::from_secs(60);

/// A dataset, and what is named of it.
#[derive(Debug, PartialEq)]
struct NamedDataset<'a> {
    /// `OWNER/NAME`, or the name alone.
    name: &'a str,
    /// A branch, a tag or a commit.
    revision: &'a str,
    /// What the names of its files begin with.
    prefix: String,
    /// A path, a glob, or nothing.
    path: &'a str,
}

impl<'a> NamedDataset<'a> {
    fn parse(item: &'a str) -> Result<NamedDataset<'a>> {
        let wrong = || {
            anyhow!(
                "{item} names no dataset: write hf://datasets/OWNER/NAME, hf://datasets/OWNER/NAME@REVISION, or one of these and a path"
            )
        };
        let rest = item.strip_prefix("hf://datasets/").with_context(wrong)?;
        let (owner, rest) = rest.split_once('/').with_context(wrong)?;
        let (name, path) = rest.split_once('/').unwrap_or((rest, ""));
        // A revision can have slashes only if they are encoded, as in refs%2Fconvert%2Fparquet.
        let (name, revision) = name.split_once('@').unwrap_or((name, "main"));
        let is_name = |name: &str| {
            !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
        };
        let is_path = !path.split('/').any(|part| matches!(part, "." | ".."));
        if !is_name(owner)
            || !is_name(name)
            || revision.is_empty()
            || !is_path
            || item.contains(['?', '#']) && !is_glob(path)
        {
            return Err(wrong());
        }
        let given = &item[..item.len() - path.len()];
        let name = &item["hf://datasets/".len()..][..owner.len() + 1 + name.len()];
        Ok(NamedDataset {
            name,
            revision,
            prefix: format!("{}/", given.trim_end_matches('/')),
            path: path.trim_end_matches('/'),
        })
    }
}

/// Finds the files that an item names.
///
/// # Errors
/// If it names none, or the server does not answer.
pub fn find(item: &str, files: &mut Vec<FoundInput>) -> Result<()> {
    refuse_secrets(item)?;
    let dataset = NamedDataset::parse(item)?;
    let address = std::env::var(VARIABLE).ok().filter(|address| !address.is_empty());
    let address = address.as_deref().unwrap_or(ADDRESS);
    refuse_secrets(address).with_context(|| format!("cannot use the environment variable {VARIABLE}"))?;
    let hub = Hub::at(address)?;
    let what = format!("list the files of {item}");
    let commit = hub.commit(&dataset).with_context(|| format!("cannot {what}"))?;
    let found = hub.files(&dataset, &commit).with_context(|| format!("cannot {what}"))?;
    let before = files.len();
    for (path, by, ListedPath { oid, size, .. }) in found {
        let relative = match by {
            FoundBy::Name => path.rsplit('/').next().unwrap_or_default().to_owned(),
            _ => path.strip_prefix(fixed_prefix_of(dataset.path)).unwrap_or(&path).trim_start_matches('/').to_owned(),
        };
        files.push(FoundInput {
            name: format!("{}{path}", dataset.prefix),
            bytes: size,
            place: Location::Object {
                store: format!("{}/", hub.address),
                key: format!("{}datasets/{}/resolve/{commit}/{path}", hub.base, dataset.name),
            },
            relative,
            by,
            stamp: format!("etag {oid}"),
        });
    }
    ensure!(
        files.len() > before,
        "no input matches {item}: the dataset has no such file at revision {}",
        dataset.revision
    );
    Ok(())
}

/// What comes before the wildcards of a glob, or all of another path.
fn fixed_prefix_of(path: &str) -> &str {
    if is_glob(path) { fixed_prefix(path) } else { path }
}

/// A file or folder, as the server lists it.
#[derive(Debug, Deserialize)]
struct ListedPath {
    #[serde(rename = "type")]
    kind: String,
    path: String,
    #[serde(default)]
    size: u64,
    /// The hash of its content.
    oid: String,
}

/// A server.
struct Hub {
    client: Client,
    /// Scheme, host and port.
    address: String,
    /// The path that all others are below, with `/` at its end, or nothing.
    base: String,
}

impl Hub {
    fn at(address: &str) -> Result<Hub> {
        // Without a default provider the client panics; another part of the program may have
        // installed it.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let url = Url::parse(address).with_context(|| format!("{address} is not a URL"))?;
        ensure!(url.has_host(), "{address} is not the address of a server");
        let base = url.path().trim_matches('/');
        let base = if base.is_empty() { String::new() } else { format!("{base}/") };
        let client = Client::builder().timeout(PATIENCE).build().context("cannot make a client for HTTP")?;
        Ok(Hub { client, address: url[..url::Position::BeforePath].to_owned(), base })
    }

    /// A URL below the address; the parts become percent-encoded where they must.
    fn url(&self, parts: &[&str], query: &str) -> Result<Url> {
        let mut url = Url::parse(&self.address)?;
        if let Ok(mut path) = url.path_segments_mut() {
            path.pop_if_empty();
            path.extend(self.base.split('/').chain(parts.iter().copied()).filter(|part| !part.is_empty()));
        }
        url.set_query(Some(query).filter(|query| !query.is_empty()));
        Ok(url)
    }

    /// The answer to a request, and where the next part of it is; `None` if there is nothing.
    fn get(&self, url: Url) -> Result<Option<(Vec<u8>, Option<String>)>> {
        let (client, asked) = (self.client.clone(), url.clone());
        let answer = wait(async move {
            let answer = client.get(asked).send().await?;
            let (status, link) = (answer.status(), answer.headers().get(header::LINK).cloned());
            Ok::<_, reqwest::Error>((status, link, answer.bytes().await?))
        })?;
        let (status, link, bytes) = answer
            .map_err(|error| anyhow!("{url} does not answer: {}", crate::objects::causes(&error.without_url())))?;
        let next = link.as_ref().and_then(|link| link.to_str().ok()).and_then(next_of);
        match status {
            StatusCode::NOT_FOUND => Ok(None),
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => bail!(
                "{url} answers {status}: there is no such dataset, or not everyone may read it. `hf download` fetches what a token allows"
            ),
            status if !status.is_success() => bail!("{url} answers {status}: {}", shown(&bytes)),
            _ => Ok(Some((bytes.into(), next))),
        }
    }

    /// The commit of the revision.
    fn commit(&self, dataset: &NamedDataset<'_>) -> Result<String> {
        #[derive(Deserialize)]
        struct Revision {
            sha: String,
        }
        let revision = percent_decoded(dataset.revision);
        let parts: Vec<&str> =
            ["api", "datasets"].into_iter().chain(dataset.name.split('/')).chain(["revision", &revision]).collect();
        let url = self.url(&parts, "")?;
        let Some((bytes, _)) = self.get(url.clone())? else {
            bail!("the dataset {} has no revision {revision} at {url}", dataset.name);
        };
        let Revision { sha } =
            serde_json::from_slice(&bytes).with_context(|| format!("{url} answers what is no revision"))?;
        ensure!(!sha.is_empty() && sha.bytes().all(|byte| byte.is_ascii_alphanumeric()), "{url} names no commit");
        Ok(sha)
    }

    /// The files that are named.
    fn files(&self, dataset: &NamedDataset<'_>, commit: &str) -> Result<Vec<(String, FoundBy, ListedPath)>> {
        let path = dataset.path;
        let is_file = |entry: &ListedPath| entry.kind == "file";
        if is_glob(path) {
            let matcher = matcher(path)?;
            let all = self.list(dataset, commit, fixed_prefix(path), true)?.unwrap_or_default();
            let found = all.into_iter().filter(|entry| is_file(entry) && matcher.is_match(&entry.path));
            return Ok(found.map(|entry| (entry.path.clone(), found_by(&matcher, &entry.path), entry)).collect());
        }
        let below = self.list(dataset, commit, path, true)?.unwrap_or_default();
        let below: Vec<ListedPath> = below.into_iter().filter(|entry| is_file(entry) && entry.path != path).collect();
        if !below.is_empty() || path.is_empty() {
            return Ok(below.into_iter().map(|entry| (entry.path.clone(), FoundBy::Folder, entry)).collect());
        }
        let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
        let beside = self.list(dataset, commit, folder, false)?.unwrap_or_default();
        let named = beside.into_iter().filter(|entry| is_file(entry) && entry.path == path);
        Ok(named.map(|entry| (entry.path.clone(), FoundBy::Name, entry)).collect())
    }

    /// The entries of a folder, or all below it; `None` if there is no such folder.
    fn list(
        &self,
        dataset: &NamedDataset<'_>,
        commit: &str,
        folder: &str,
        is_recursive: bool,
    ) -> Result<Option<Vec<ListedPath>>> {
        let parts = ["api", "datasets"].into_iter().chain(dataset.name.split('/')).chain(["tree", commit]);
        let parts: Vec<&str> = parts.chain(folder.split('/')).collect();
        let mut url = self.url(&parts, if is_recursive { "recursive=true" } else { "" })?;
        let mut entries = Vec::new();
        for _ in 0..MOST_PAGES {
            let Some((bytes, next)) = self.get(url.clone())? else { return Ok(None) };
            let page: Vec<ListedPath> =
                serde_json::from_slice(&bytes).with_context(|| format!("{url} answers what is no list of files"))?;
            entries.extend(page);
            let Some(next) = next else { return Ok(Some(entries)) };
            let next = url.join(&next).with_context(|| format!("{url} names no next page"))?;
            ensure!(next.origin() == url.origin() && next != url, "{url} names a next page elsewhere: {next}");
            url = next;
        }
        bail!("{url}: the list of files does not end")
    }
}

/// The next page that a field `Link` names: `<URL>; rel="next"`.
fn next_of(link: &str) -> Option<String> {
    link.split(',').find_map(|part| {
        let (url, rest) = part.trim().strip_prefix('<')?.split_once('>')?;
        rest.contains("rel=\"next\"").then(|| url.to_owned())
    })
}

/// The beginning of an answer, for a message.
fn shown(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(&bytes[..bytes.len().min(200)]).replace(char::is_control, " ");
    hide_passwords(text.trim()).into_owned()
}

/// A revision whose slashes are encoded.
fn percent_decoded(text: &str) -> String {
    text.replace("%2F", "/").replace("%2f", "/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_name_a_dataset_a_revision_and_a_path() {
        let parsed = |item: &'static str| {
            NamedDataset::parse(item).map(|dataset| (dataset.name, dataset.revision, dataset.prefix, dataset.path))
        };
        let is = |name, revision, prefix: &str, path| (name, revision, prefix.to_owned(), path);
        for (item, wanted) in [
            ("hf://datasets/o/n", is("o/n", "main", "hf://datasets/o/n/", "")),
            ("hf://datasets/o/n/", is("o/n", "main", "hf://datasets/o/n/", "")),
            ("hf://datasets/o/n@v1.0", is("o/n", "v1.0", "hf://datasets/o/n@v1.0/", "")),
            ("hf://datasets/o/n/data/", is("o/n", "main", "hf://datasets/o/n/", "data")),
            (
                "hf://datasets/o/n@refs%2Fconvert%2Fparquet/x/*.parquet",
                is("o/n", "refs%2Fconvert%2Fparquet", "hf://datasets/o/n@refs%2Fconvert%2Fparquet/", "x/*.parquet"),
            ),
        ] {
            assert_eq!(parsed(item).unwrap(), wanted);
        }
        for item in [
            "hf://o/n",
            "hf://datasets/",
            "hf://datasets/n",
            "hf://datasets/o/",
            "hf://datasets/o/n@",
            "hf://datasets/o/n/../x",
            "hf://datasets/o/n?x=1",
            "hf://datasets/o%2F/n",
        ] {
            assert!(parsed(item).unwrap_err().to_string().contains("names no dataset"), "{item}");
        }
    }

    #[test]
    fn urls_are_below_the_address() {
        let hub = Hub::at("http://127.0.0.1:1/mirror/").unwrap();
        let url =
            hub.url(&["api", "datasets", "o", "n", "revision", "refs/convert/parquet"], "recursive=true").unwrap();
        assert_eq!(
            url.as_str(),
            "http://127.0.0.1:1/mirror/api/datasets/o/n/revision/refs%2Fconvert%2Fparquet?recursive=true"
        );
        assert_eq!((hub.address.as_str(), hub.base.as_str()), ("http://127.0.0.1:1", "mirror/"));
        assert!(Hub::at("folder").is_err());
    }

    #[test]
    fn the_next_page_is_that_of_the_link() {
        assert_eq!(next_of("<http://a/x?cursor=1>; rel=\"next\"").as_deref(), Some("http://a/x?cursor=1"));
        assert_eq!(next_of("<http://a/>; rel=\"first\", </y>; rel=\"next\"").as_deref(), Some("/y"));
        assert_eq!(next_of("<http://a/>; rel=\"prev\""), None);
    }
}
