//! What is true of a made web: which hosts and directories are copies of which, and where hosts lie
//! in the bow-tie.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use super::text::NamedRandom;

/// What became of a page of the source in a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fate {
    /// The copy lacks it.
    Missing,
    /// The same bytes.
    Same,
    /// One short run of words differs: a resemblance of at least 0.8.
    Light,
    /// Half of the text differs: a resemblance below 0.8.
    Heavy,
}

/// How pages are copied. The shares are of pages other than home pages, `index.html` and untitled
/// pages: a copy has these as they are.
#[derive(Clone, Debug)]
pub struct Copying {
    /// The share of the source's pages that the copy has; at 0 it has no index either.
    pub kept: f64,
    /// The shares of these that are edited lightly and heavily.
    pub light: f64,
    pub heavy: f64,
    /// The weeks in which the copy exists, from 0.
    pub weeks: Range<usize>,
    /// By how many weeks it is behind its source.
    pub lag: usize,
    pub(super) seed: u64,
}

impl Copying {
    /// A copy of everything in all weeks.
    pub(super) fn whole(seed: u64) -> Copying {
        Copying { kept: 1.0, light: 0.0, heavy: 0.0, weeks: 0..super::WEEKS.len(), lag: 0, seed }
    }

    /// What became of a page: of a host, named by its path; of a directory, by what follows the
    /// prefix. It is the same in all weeks.
    pub fn fate(&self, path: &str) -> Fate {
        if self.kept == 0.0 {
            return Fate::Missing;
        }
        if path.ends_with('/') || path.ends_with("index.html") || path == UNTITLED {
            return Fate::Same;
        }
        let mut random = NamedRandom::of(self.seed, path);
        if !random.chance(self.kept) {
            return Fate::Missing;
        }
        match random.share() {
            edited if edited < self.heavy => Fate::Heavy,
            edited if edited < self.heavy + self.light => Fate::Light,
            _ => Fate::Same,
        }
    }

    /// The week whose pages of the source the copy shows in a week.
    pub fn week_of_source(&self, week: usize) -> usize {
        week.saturating_sub(self.lag)
    }
}

/// A host that copies a host, under the same paths, on machines of its own.
#[derive(Clone, Debug)]
pub struct Mirror {
    pub host: String,
    pub of: String,
    /// Its name is that of the source, but for a leading `www.`.
    pub www: bool,
    pub copying: Copying,
}

/// Why two names are one host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AliasKind {
    /// Another name of the same addresses.
    Address,
    /// The name with `www.`, of the same addresses.
    Www,
    /// It has an address of its own; most of its URLs redirect to the source. The others are
    /// copies: `copying` keeps them.
    Redirect,
}

/// A second name of a host.
#[derive(Clone, Debug)]
pub struct Alias {
    pub host: String,
    pub of: String,
    pub kind: AliasKind,
    /// What it serves.
    pub copying: Copying,
}

/// A directory that is a copy of a directory of another host.
#[derive(Clone, Debug)]
pub struct CopiedDirectory {
    pub host: String,
    /// Begins and ends with `/`.
    pub prefix: String,
    pub of_host: String,
    pub of_prefix: String,
    pub copying: Copying,
}

/// Hosts of one site: they have some directories in common and differ elsewhere.
#[derive(Clone, Debug)]
pub struct Siblings {
    pub hosts: Vec<String>,
    /// The prefixes of the common directories, the same on all of the hosts.
    pub directories: Vec<String>,
}

/// Hosts with one page in very many copies: at least 10 on each.
#[derive(Clone, Debug)]
pub struct Farm {
    pub hosts: Vec<String>,
    /// The pages of each host in the cluster.
    pub pages: usize,
}

/// Where a host lies, seen from the core.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CorePart {
    /// Its pages lead to the core, which does not lead to them.
    In,
    /// Its pages lead to each other.
    Core,
    /// The core leads to its pages, which do not lead back.
    Out,
    /// Neither.
    Disconnected,
}

/// The parts of the bow-tie. Pages of one host lead to each other, except untitled pages, which
/// lead nowhere: one of In is disconnected, and one of Core is in Out.
#[derive(Clone, Debug, Default)]
pub struct BowTie {
    pub parts: BTreeMap<String, CorePart>,
}

impl BowTie {
    /// The hosts of a part.
    pub fn hosts(&self, part: CorePart) -> BTreeSet<&str> {
        self.parts.iter().filter(|(_, of)| **of == part).map(|(host, _)| host.as_str()).collect()
    }

    /// The part of a page.
    pub fn part(&self, host: &str, path: &str) -> CorePart {
        match self.parts[host] {
            CorePart::In if path == UNTITLED => CorePart::Disconnected,
            CorePart::Core if path == UNTITLED => CorePart::Out,
            part => part,
        }
    }
}

/// The path of the page without more than the title "Untitled document".
pub const UNTITLED: &str = "/untitled.html";

/// All that is true by construction. What follows from it is not listed: two mirrors of one host
/// are mirrors of each other.
#[derive(Clone, Debug, Default)]
pub struct Truth {
    pub mirrors: Vec<Mirror>,
    pub aliases: Vec<Alias>,
    pub collections: Vec<CopiedDirectory>,
    pub siblings: Vec<Siblings>,
    pub farms: Vec<Farm>,
    /// The store fronts: 3 to 8 pages each of one template.
    pub family: Vec<String>,
    pub bow_tie: BowTie,
    /// Hosts without an address.
    pub unresolved: BTreeSet<String>,
    /// All hosts, also those that only redirect.
    pub hosts: Vec<String>,
}
