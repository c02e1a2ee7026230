//! The features of sampled hosts: made where the texts of their paths were read.
//!
//! ```text
//! URLs, a second time ─▶ the texts of sampled paths ─▶ features of paths ─▶ the worker of the host: those that it has twice
//!                                                  └─▶ features of hosts, whole paths
//! ```

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use anyhow::{Result, bail};
use bytemuck::{Pod, Zeroable};
use nigh_exchange::{BlockOf, Context, Dealer, KeptRecords, Keyed, by_group};

use super::hosts::SampledPath;
use super::stage::UrlStage;
use super::terms::{FeatureKind, Terms, whole_path};
use super::urls::{UrlSource, check_same_host, host_and_path, text_hash};

/// A feature of a path of a host, on its way to the worker that counts how often the host has it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
struct PathFeature {
    host: u64,
    feature: u64,
    urls: u64,
}

impl Keyed for PathFeature {
    fn key(&self) -> u64 {
        self.host
    }
}

/// A feature of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
pub struct HostFeature {
    /// The hash of the feature.
    pub feature: u64,
    /// The hash of the host.
    pub host: u64,
    /// The number of its URLs.
    pub urls: u64,
    /// The kind of the feature.
    pub kind: u64,
}

impl Keyed for HostFeature {
    fn key(&self) -> u64 {
        self.feature
    }
}

/// What this worker read of sampled hosts.
#[derive(Clone, Debug, Default)]
pub struct SampledTexts {
    /// The names of hosts, by their hashes, and whether a sampled path has the scheme `http`: of
    /// hosts of which this worker read one.
    pub names: BTreeMap<u64, (String, bool)>,
    /// The texts of sampled paths: the hash of the host, that of the path, and the text.
    pub paths: Vec<(u64, u64, Box<str>)>,
}

/// Reads the texts of sampled paths, `sample`, and makes the features of their hosts.
///
/// # Errors
/// If URLs cannot be read, or changed since they were read first; if two hosts have the same hash;
/// or a worker of this process failed.
pub fn host_features(
    cx: &mut Context,
    stage: &UrlStage,
    source: &impl UrlSource,
    sample: &[SampledPath],
) -> Result<(KeptRecords<HostFeature>, SampledTexts)> {
    let mut texts = SampledTexts::default();
    let features = Rc::new(RefCell::new(cx.kept::<HostFeature>()));
    let mut of_paths = cx.kept::<PathFeature>();
    let (mut terms, mut found) = (Terms::default(), Vec::new());
    let (mut place, mut rest) = (0, sample.iter().peekable());
    source.each(&mut |url, _| {
        if let Some(sampled) = rest.next_if(|sampled| sampled.place == place) {
            let SampledPath { host, path, urls, is_first, is_plain, .. } = *sampled;
            let (name, text) = host_and_path(url);
            if text_hash(name) != host || text_hash(text) != path {
                bail!("the URLs changed while they were read: {url} is where another one was");
            }
            let (known, has_plain) = texts.names.entry(host).or_insert_with(|| (name.to_owned(), false));
            check_same_host(known, name)?;
            *has_plain |= is_plain == 1;
            texts.paths.push((host, path, text.into()));
            let mut features = features.borrow_mut();
            let mut push =
                |feature: u64, kind: FeatureKind| features.push(HostFeature { feature, host, urls, kind: kind as u64 });
            if is_first == 1 {
                found.clear();
                terms.read(name);
                terms.of_host(&mut found);
                found.iter().try_for_each(|feature| push(*feature, FeatureKind::Host))?;
            }
            terms.read(text);
            if !terms.has_tool() {
                if stage.whole_paths && text != "/" {
                    push(whole_path(path), FeatureKind::WholePath)?;
                }
                found.clear();
                terms.of_path(&mut found);
                found.iter().try_for_each(|feature| of_paths.push(PathFeature { host, feature: *feature, urls }))?;
            }
        }
        place += 1;
        Ok(())
    })?;
    if rest.next().is_some() {
        bail!("the URLs changed while they were read: there are fewer than before");
    }
    let each = {
        let (features, watch) = (features.clone(), cx.watch().clone());
        move |of_host: &[PathFeature], _: &mut Dealer<u8>| {
            let twice = of_host.chunk_by(|a, b| a.feature == b.feature).filter(|paths| paths.len() > 1);
            let mut features = features.borrow_mut();
            for PathFeature { host, feature, urls } in twice.map(|paths| paths[0]) {
                watch.check(features.push(HostFeature { feature, host, urls, kind: FeatureKind::Path as u64 }));
            }
        }
    };
    by_group(cx, "Features", of_paths, each, |_: BlockOf<u8>| {})?;
    let features = features.replace(cx.kept());
    Ok((features, texts))
}
