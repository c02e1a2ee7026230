//! The pages that links lead to whose `target_doc` does not say so: through redirects, and to pages
//! that came later.

use std::sync::Arc;

use anyhow::Result;
use nigh_exchange::Context;

use super::late_targets::LateTargets;
use super::redirects::RedirectTargets;
use crate::records::DocId;
use crate::state::History;
use crate::structures::Ownership;

/// The pages that URLs lead to, beside what `links` says.
#[derive(Debug, Default)]
pub struct UrlTargets {
    redirects: Arc<RedirectTargets>,
    /// Those of own links.
    late: LateTargets,
}

impl UrlTargets {
    /// Those of week number `number`, for own links.
    ///
    /// # Errors
    /// If a file cannot be read (names it), or a worker of this process failed.
    pub fn of_week(cx: &mut Context, history: &History, number: usize, owned: &Ownership) -> Result<Arc<UrlTargets>> {
        let redirects = RedirectTargets::of_week(cx, history, number, owned)?;
        Ok(Arc::new(UrlTargets { redirects, late: LateTargets::of_own(cx, history, number, owned)? }))
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.redirects.is_empty() && self.late.is_empty()
    }

    /// The page that a URL redirects to in the end, if it has no page itself.
    pub fn redirected(&self, url: &str) -> Option<DocId> {
        self.redirects.of(url)
    }

    /// The document of a URL that came after a page that links to it.
    pub fn late(&self, url: &str) -> Option<DocId> {
        self.late.of(url)
    }

    /// The page that a link to this URL leads to, if its `target_doc` is null.
    pub fn of(&self, url: &str) -> Option<DocId> {
        self.redirected(url).or_else(|| self.late(url))
    }
}
