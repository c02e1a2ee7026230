//! A made web with the truth about it: hosts that copy hosts, directories that copy directories,
//! templates, a farm, a bow-tie of links, over four weeks. The same seed gives the same bytes.
//!
//! ```text
//! let web = Web::small();
//! web.week(0).write_jsonl(folder);          // read with COLUMNS in the job
//! twins::host_pairs_by_brute_force(&web.week(0).pages, 0.8, 10)
//! ```
//!
//! Real copies differ from these: edits here are runs of replaced words, and no page has another
//! encoding, a session id in its links or a banner. Links between hosts are on home pages, and on
//! the farm's pages.
//!
//! In reading order: `truth` says what is true, `plan` which hosts there are, `text` what documents
//! are, `weeks` what the pages are, `crawl` how they are written to files, `store` makes a store of
//! these; `twins` has slow algorithms for comparison, `checks` tests all this.

mod checks;
pub mod crawl;
mod plan;
mod store;
mod text;
pub mod truth;
pub mod twins;
mod weeks;

use std::collections::BTreeMap;
use std::sync::LazyLock;

pub use crawl::{COLUMNS, Crawl, CrawledPage};
pub use store::WebStore;
pub use truth::Truth;
pub use twins::exact_resemblance;

/// The weeks of a made web.
pub const WEEKS: [&str; 4] = ["2024-01-08", "2024-01-15", "2024-01-22", "2024-01-29"];

/// How large a web is. Every construct is in it whatever the size.
#[derive(Clone, Copy, Debug)]
pub struct WebSize {
    pub seed: u64,
    /// At least 40.
    pub hosts: usize,
    /// About so many pages in the first week.
    pub pages: usize,
}

impl Default for WebSize {
    /// The web of the research: 390 hosts, about 15,400 pages.
    fn default() -> WebSize {
        WebSize { seed: 1, hosts: 390, pages: 15_400 }
    }
}

impl WebSize {
    /// 40 hosts and about 800 pages: for most tests.
    pub fn small() -> WebSize {
        WebSize { seed: 1, hosts: 40, pages: 800 }
    }
}

/// A made web.
pub struct Web {
    pub truth: Truth,
    weeks: Vec<weeks::HostDocuments>,
    addresses: BTreeMap<String, Vec<String>>,
}

impl Web {
    /// Makes the web of a shape: the same for the same seed.
    pub fn of(shape: &WebSize) -> Web {
        let language = text::Language::of(shape.seed);
        let plan = plan::WebPlan::of(shape, &language);
        let weeks = weeks::weeks(shape, &plan, &language);
        Web { truth: plan.truth, weeks, addresses: plan.addresses }
    }

    /// The small web: made once for all tests.
    pub fn small() -> &'static Web {
        static WEB: LazyLock<Web> = LazyLock::new(|| Web::of(&WebSize::small()));
        &WEB
    }

    /// The web of the research: made once for all tests.
    pub fn of_research() -> &'static Web {
        static WEB: LazyLock<Web> = LazyLock::new(|| Web::of(&WebSize::default()));
        &WEB
    }

    /// The pages of a week, from 0, as a crawler has them.
    pub fn week(&self, week: usize) -> Crawl {
        Crawl::of(self, week)
    }
}
