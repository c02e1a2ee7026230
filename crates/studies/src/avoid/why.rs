//! Why a prefix need not be fetched: by which findings.

/// A finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum WhyCopy {
    /// Another name of a host.
    Alias,
    /// URLs that redirect.
    Redirect,
    /// Hosts that share pages, by the mirrors job.
    Content,
    /// Hosts that mirror each other, by the mirrors-by-url job.
    Url,
    /// A copied collection.
    Collection,
    /// Pages with the same text.
    Copies,
}

impl WhyCopy {
    /// All of them, the order in which a row has them.
    pub const ALL: [WhyCopy; 6] =
        [WhyCopy::Alias, WhyCopy::Redirect, WhyCopy::Content, WhyCopy::Url, WhyCopy::Collection, WhyCopy::Copies];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            WhyCopy::Alias => "alias",
            WhyCopy::Redirect => "redirect",
            WhyCopy::Content => "mirror by content",
            WhyCopy::Url => "mirror by URL",
            WhyCopy::Collection => "collection",
            WhyCopy::Copies => "exact copies",
        }
    }
}

/// A set of findings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Whys(u8);

impl Whys {
    pub fn of(why: WhyCopy) -> Whys {
        Whys(1 << why as u8)
    }

    pub fn add(&mut self, others: Whys) {
        self.0 |= others.0;
    }

    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    pub fn has(self, why: WhyCopy) -> bool {
        self.0 & Whys::of(why).0 > 0
    }
}
