//! The avoid list: prefixes of URLs whose pages are copies, so that a crawler need not fetch them
//! (Cho 2000, section 5).

use std::collections::BTreeMap;

use anyhow::Result;
use nigh_exchange::Context;
use serde::{Deserialize, Serialize};

use super::directories::directory_texts;
use super::members::CollectionPage;
use super::page_texts::PageTexts;
use super::prefixes::Prefixes;
use crate::records::DocId;
use crate::structures::CompactSort;

/// A prefix to avoid.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct AvoidPrefix {
    /// The prefix: a URL up to a slash.
    pub prefix: String,
    /// Its host.
    pub host: String,
    /// The prefix of the principal collection of which most of its copies are.
    pub principal: String,
    /// The crawled pages below it.
    pub pages: u64,
    /// Those that are copies.
    pub copies: u64,
    /// The bytes of the crawled pages.
    pub bytes: u64,
    /// The URLs below it that links name and of which no week has a page.
    pub named: u64,
}

/// The directory of a collection, from the text of its first page.
pub fn collection_prefix<'a>(url: &'a str, prefixes: &Prefixes, collection: DocId) -> &'a str {
    let length = prefixes.of_collections.get(&collection).copied().unwrap_or_default();
    url.get(..length as usize).unwrap_or_default()
}

/// The avoid list of a week, in the order of prefixes, the same at every worker. None of them
/// begins with another one.
///
/// `members` are own pages, ascending; `texts` has those of the examples of pure directories and of
/// the first pages of own collections.
///
/// # Errors
/// If a worker of this process failed.
pub fn avoid_list(
    cx: &mut Context,
    members: &[CollectionPage],
    prefixes: &Prefixes,
    texts: &PageTexts,
) -> Result<Vec<AvoidPrefix>> {
    let member = |doc: DocId| members.binary_search_by_key(&doc, |page| page.doc).ok().map(|at| &members[at]);
    let mut own = Vec::new();
    for directory in &prefixes.pure {
        let Some(page) = member(directory.example) else { continue };
        let text = texts.of(directory.example);
        let prefix = AvoidPrefix {
            prefix: text.url.get(..directory.length as usize).unwrap_or_default().to_owned(),
            host: text.host.clone(),
            principal: String::new(),
            pages: directory.pages.into(),
            copies: directory.copies.into(),
            bytes: directory.bytes,
            named: directory.named.into(),
        };
        own.push((prefix, page.principal));
    }
    let mut all = cx.sorted(own)?;
    // A pure directory may lie in one that is not, and that in a pure one. Sorted, those within a
    // prefix follow it.
    let mut outer: Option<String> = None;
    all.retain(|(next, _)| {
        let is_within = outer.as_ref().is_some_and(|outer| next.prefix.starts_with(outer));
        if !is_within {
            outer = Some(next.prefix.clone());
        }
        !is_within
    });
    let mut principals: Vec<DocId> = all.iter().map(|(_, principal)| *principal).collect();
    principals.sort_rows();
    principals.dedup();
    let own = principals.into_iter().filter(|principal| member(*principal).is_some());
    let text = |principal| match collection_prefix(&texts.of(principal).url, prefixes, principal) {
        // It lies on several hosts: that of its first page.
        "" => directory_texts(&texts.of(principal).url).next().unwrap_or_default().to_owned(),
        prefix => prefix.to_owned(),
    };
    let own = own.map(|principal| (principal, text(principal))).collect();
    let texts: BTreeMap<DocId, String> = cx.sorted(own)?.into_iter().collect();
    let named = |(prefix, principal): (AvoidPrefix, DocId)| AvoidPrefix {
        principal: texts.get(&principal).cloned().unwrap_or_default(),
        ..prefix
    };
    Ok(all.into_iter().map(named).collect())
}
