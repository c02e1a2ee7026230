//! The bundles with what is known of pages, where pages come into a week otherwise than by its
//! waves.

use anyhow::Result;

use crate::state::{BundleName, BundleWriter, Unfinished};
use crate::tables::{ChunkRow, DocumentRow, FeatureRow, FoundLinkRow, LinkRow, UrlRow, ValueRow};

/// Writers of the tables that have a piece for each segment.
pub(super) struct PageBundles {
    pub(super) documents: BundleWriter<DocumentRow<'static>>,
    pub(super) features: BundleWriter<FeatureRow<'static>>,
    pub(super) chunks: BundleWriter<ChunkRow<'static>>,
    pub(super) urls: BundleWriter<UrlRow<'static>>,
    pub(super) links: BundleWriter<LinkRow<'static>>,
    /// Links whose targets are looked up later.
    pub(super) found_links: BundleWriter<FoundLinkRow<'static>>,
    /// Only if the week has the table.
    pub(super) values: BundleWriter<ValueRow<'static>>,
}

impl PageBundles {
    pub(super) fn new(unfinished: &Unfinished, name: BundleName) -> PageBundles {
        PageBundles {
            documents: unfinished.bundle(name),
            features: unfinished.bundle(name),
            chunks: unfinished.bundle(name),
            urls: unfinished.bundle(name),
            links: unfinished.bundle(name),
            found_links: unfinished.bundle(name),
            values: unfinished.bundle(name),
        }
    }

    /// Ends them. One without pieces leaves no file.
    pub(super) fn finish(self) -> Result<()> {
        self.documents.finish()?;
        self.features.finish()?;
        self.chunks.finish()?;
        self.urls.finish()?;
        self.links.finish()?;
        self.found_links.finish()?;
        self.values.finish()
    }
}
