//! The plan of a made web: its hosts, what each copies, where each lies; all of it but the pages.

use std::collections::{BTreeMap, BTreeSet};

use super::text::{Language, NamedRandom};
use super::truth::{Alias, AliasKind, BowTie, CopiedDirectory, Copying, CorePart, Farm, Mirror, Siblings, Truth};
use super::{WEEKS, WebSize};

/// A host that writes its pages itself.
pub struct Original {
    pub name: String,
    /// Loose pages at the top, without the home page.
    pub loose: usize,
    pub untitled: bool,
    /// Prefixes and numbers of pages, the index included.
    pub directories: Vec<(String, usize)>,
    /// The hosts that its home page links to: paths of them are drawn later.
    pub neighbours: Vec<String>,
}

/// A web without its pages.
pub struct WebPlan {
    pub truth: Truth,
    pub originals: Vec<Original>,
    pub addresses: BTreeMap<String, Vec<String>>,
}

/// How many hosts there are of each kind.
struct HostKinds {
    mirrors: usize,
    www_mirrors: usize,
    address_aliases: usize,
    www_aliases: usize,
    redirect_aliases: usize,
    family: usize,
    farm: usize,
    sites: usize,
    sources: usize,
    collections: usize,
    originals: usize,
}

impl HostKinds {
    fn of(hosts: usize) -> HostKinds {
        // As many of 390 hosts, and at least as many as all constructs need.
        let of = |part: usize, least: usize| (part * hosts / 390).max(least);
        let (mirrors, www_mirrors, family, farm) = (of(30, 6), of(4, 1), of(50, 6), of(12, 4));
        let (address_aliases, www_aliases, redirect_aliases) = (of(6, 1), of(5, 1), of(5, 2));
        let copies = mirrors + www_mirrors + address_aliases + www_aliases + redirect_aliases;
        let originals = hosts.checked_sub(copies + family + farm).expect("a web has at least 40 hosts");
        let counts = HostKinds {
            mirrors,
            www_mirrors,
            address_aliases,
            www_aliases,
            redirect_aliases,
            family,
            farm,
            sites: of(12, 1),
            sources: of(24, 4),
            collections: of(20, 4),
            originals,
        };
        assert!(counts.originals >= 2 * counts.sites + counts.sources + 8, "a web has at least 40 hosts");
        counts
    }

    /// The hosts that copy a whole host.
    fn copies(&self) -> usize {
        self.mirrors + self.www_mirrors + self.address_aliases + self.www_aliases + self.redirect_aliases
    }
}

/// The pages of each host of the farm in its cluster.
pub const FARM_PAGES: usize = 12;

impl WebPlan {
    pub fn of(shape: &WebSize, language: &Language) -> WebPlan {
        let counts = HostKinds::of(shape.hosts);
        let mut random = NamedRandom::of(shape.seed, "plan");
        let mut plan = WebPlan { truth: Truth::default(), originals: Vec::new(), addresses: BTreeMap::new() };
        let names = names(&counts, language, &mut random);
        plan.siblings(&counts, &names);
        plan.copies(shape.seed, &counts, &names, language, &mut random);
        plan.fronts_and_farms(&counts, language, &mut random);
        plan.sizes(shape, &counts, &names, language, &mut random);
        plan.collections(shape.seed, &counts, language, &mut random);
        plan.parts(&mut random);
        plan.addresses(&counts, &mut random);
        let truth = &mut plan.truth;
        let copies =
            truth.mirrors.iter().map(|mirror| &mirror.host).chain(truth.aliases.iter().map(|alias| &alias.host));
        let others = truth.family.iter().chain(truth.farms.iter().flat_map(|farm| &farm.hosts));
        truth.hosts = names.iter().chain(copies).chain(others).cloned().collect();
        plan
    }

    /// The first hosts are two a site.
    fn siblings(&mut self, counts: &HostKinds, names: &[String]) {
        for pair in names[..2 * counts.sites].chunks(2) {
            self.truth.siblings.push(Siblings { hosts: pair.to_vec(), directories: Vec::new() });
        }
    }

    /// Mirrors and aliases of the hosts that follow, the sources, in turn.
    fn copies(
        &mut self,
        seed: u64,
        counts: &HostKinds,
        names: &[String],
        language: &Language,
        random: &mut NamedRandom,
    ) {
        let sources = &names[2 * counts.sites..][..counts.sources];
        let mut turns = sources.iter().cycle();
        let mut next = || turns.next().expect("a cycle has no end").clone();
        for number in 0..counts.mirrors {
            let (host, of) = (format!("mirror{number}.{}.example", language.name(random)), next());
            let mut copying = Copying {
                kept: random.between(0.6, 1.0),
                light: random.between(0.0, 0.3),
                heavy: random.between(0.0, 0.15),
                lag: usize::from(random.chance(0.3)),
                ..Copying::whole(random.number())
            };
            // One of each kind, however small the web is; the sixth has no address.
            match number {
                0 => copying = Copying::whole(seed),
                1 => (copying.kept, copying.light, copying.heavy, copying.lag) = (0.6, 0.2, 0.1, 0),
                2 => copying.weeks = 1..WEEKS.len(),
                3 => copying.weeks = 0..WEEKS.len() - 1,
                4 => copying.lag = 1,
                5 => _ = self.truth.unresolved.insert(host.clone()),
                // Most pages are edited: the hard ones to find.
                number if number % 5 == 1 => copying.light = random.between(0.6, 0.8),
                _ => {}
            }
            self.truth.mirrors.push(Mirror { host, of, www: false, copying });
        }
        // A host has one name with `www.` at most.
        let with_www = counts.www_mirrors + counts.www_aliases;
        assert!(with_www <= counts.sources);
        for (number, of) in sources.iter().enumerate().take(with_www) {
            let of = of.clone();
            let (host, whole) = (format!("www.{of}"), Copying::whole(random.number()));
            if number < counts.www_mirrors {
                let copying = Copying { kept: 0.9, ..whole };
                self.truth.mirrors.push(Mirror { host, of, www: true, copying });
            } else {
                self.truth.aliases.push(Alias { host, of, kind: AliasKind::Www, copying: whole });
            }
        }
        for number in 0..counts.address_aliases {
            let host = format!("alias{number}.{}.example", language.name(random));
            let copying = Copying::whole(random.number());
            self.truth.aliases.push(Alias { host, of: next(), kind: AliasKind::Address, copying });
        }
        for number in 0..counts.redirect_aliases {
            let host = format!("old{number}.{}.example", language.name(random));
            let kept = if number % 2 == 0 { 0.0 } else { 0.35 };
            let copying = Copying { kept, ..Copying::whole(random.number()) };
            self.truth.aliases.push(Alias { host, of: next(), kind: AliasKind::Redirect, copying });
        }
    }

    fn fronts_and_farms(&mut self, counts: &HostKinds, language: &Language, random: &mut NamedRandom) {
        self.truth.family =
            (0..counts.family).map(|number| format!("shop{number}.{}.example", language.name(random))).collect();
        let hosts =
            (0..counts.farm).map(|number| format!("offers{number}.{}.example", language.name(random))).collect();
        self.truth.farms.push(Farm { hosts, pages: FARM_PAGES });
    }

    /// How large the originals are: the budget of pages less what is copied or made of a template.
    /// Sources are large.
    fn sizes(
        &mut self,
        shape: &WebSize,
        counts: &HostKinds,
        names: &[String],
        language: &Language,
        random: &mut NamedRandom,
    ) {
        let is_source = |at: usize| (2 * counts.sites..2 * counts.sites + counts.sources).contains(&at);
        let copies_of_source = 0.8 * counts.copies() as f64 / counts.sources as f64;
        let factors: Vec<f64> = (0..counts.originals)
            .map(|at| if is_source(at) { random.between(1.7, 2.0) } else { random.between(0.4, 1.0).powi(2) * 2.0 })
            .collect();
        let weight = |(at, factor): (usize, &f64)| factor * if is_source(at) { 1.0 + copies_of_source } else { 1.0 };
        let copied = 12 * counts.collections + 8 * counts.sites;
        let fixed = counts.farm * (FARM_PAGES + 1) + counts.family * 7 + copied;
        let budget = shape.pages.saturating_sub(fixed) as f64;
        let scale = budget / factors.iter().enumerate().map(weight).sum::<f64>();
        for (name, factor) in names.iter().zip(factors) {
            let pages = ((scale * factor) as usize).max(9);
            self.originals.push(original(name, pages, language, random));
        }
        // The first directory of a site's first host is on the second, too.
        for siblings in &mut self.truth.siblings {
            let first = self.originals.iter().find(|host| host.name == siblings.hosts[0]);
            siblings.directories = vec![first.expect("a sibling is an original").directories[0].0.clone()];
        }
    }

    /// Directories of sources and siblings' neighbours on hosts that nobody mirrors.
    fn collections(&mut self, seed: u64, counts: &HostKinds, language: &Language, random: &mut NamedRandom) {
        let plain = 2 * counts.sites + counts.sources;
        let (givers, takers) = (&self.originals[2 * counts.sites..], &self.originals[plain..]);
        let mut directories: Vec<(&str, &str, usize)> = givers
            .iter()
            .flat_map(|host| host.directories.iter().map(|(prefix, pages)| (&*host.name, &**prefix, *pages)))
            .collect();
        random.shuffle(&mut directories);
        // The largest first: at least one of a small web has 10 pages and more.
        let largest = (0..directories.len()).max_by_key(|at| directories[*at].2).expect("hosts have directories");
        directories.swap(0, largest);
        let mut takers: Vec<&str> = takers.iter().map(|host| &*host.name).collect();
        random.shuffle(&mut takers);
        for number in 0..counts.collections {
            // Two of three are copied once, the others twice.
            let (of_host, of_prefix, _) = directories[number * 3 / 4 % directories.len()];
            let taken = |host: &str| self.truth.collections.iter().any(|other: &CopiedDirectory| other.host == host);
            let host = takers.iter().find(|host| **host != of_host && !taken(host));
            let host = (*host.expect("there are more hosts than collections")).to_owned();
            let name = language.name(random);
            let prefix = match number % 3 {
                0 => format!("/mirrors/{name}{number}/"),
                1 => format!("/pub/{name}/copies{number}/"),
                _ => format!("/{name}{number}/"),
            };
            let copying = match number {
                0 => Copying::whole(seed),
                _ => Copying {
                    kept: random.between(0.85, 1.0),
                    light: if number % 4 == 3 { random.between(0.6, 0.9) } else { random.between(0.0, 0.2) },
                    lag: random.below(2),
                    ..Copying::whole(random.number())
                },
            };
            let (of_host, of_prefix) = (of_host.to_owned(), of_prefix.to_owned());
            self.truth.collections.push(CopiedDirectory { host, prefix, of_host, of_prefix, copying });
        }
    }

    /// The bow-tie: originals in turn, copies by what they copy and by whether their source's home
    /// page names them.
    fn parts(&mut self, random: &mut NamedRandom) {
        let part = |at: usize| match at * 7 % 20 {
            0..6 => CorePart::Core,
            6..10 => CorePart::In,
            10..15 => CorePart::Out,
            _ => CorePart::Disconnected,
        };
        let mut parts: BTreeMap<String, CorePart> =
            self.originals.iter().enumerate().map(|(at, host)| (host.name.clone(), part(at))).collect();
        let mut of: BTreeMap<CorePart, Vec<String>> = BTreeMap::new();
        for host in &self.originals {
            of.entry(parts[&host.name]).or_default().push(host.name.clone());
        }
        let any = |part: CorePart, random: &mut NamedRandom| of[&part][random.below(of[&part].len())].clone();
        let mut seen: BTreeMap<CorePart, usize> = BTreeMap::new();
        let mut out = of[&CorePart::Out].iter();
        for host in &mut self.originals {
            let part = parts[&host.name];
            let number = seen.entry(part).or_default();
            *number += 1;
            match part {
                // A ring, a second link into the core, and a share of the hosts of Out.
                CorePart::Core => {
                    let core = &of[&CorePart::Core];
                    host.neighbours = vec![core[*number % core.len()].clone(), any(CorePart::Core, random)];
                    let share =
                        if *number == core.len() { usize::MAX } else { of[&CorePart::Out].len().div_ceil(core.len()) };
                    host.neighbours.extend(out.by_ref().take(share).cloned());
                }
                CorePart::In => host.neighbours = vec![any(CorePart::Core, random), any(CorePart::In, random)],
                CorePart::Out | CorePart::Disconnected => host.neighbours = vec![any(part, random)],
            }
        }
        for (at, mirror) in self.truth.mirrors.iter().enumerate() {
            let is_linked = at % 2 == 0;
            let part = parts[&mirror.of];
            if is_linked {
                let source = self.originals.iter_mut().find(|host| host.name == mirror.of);
                source.expect("a source is an original").neighbours.push(mirror.host.clone());
            }
            parts.insert(mirror.host.clone(), if is_linked { part } else { of_copy(part) });
        }
        for alias in self.truth.aliases.iter().filter(|alias| alias.copying.kept > 0.0) {
            parts.insert(alias.host.clone(), of_copy(parts[&alias.of]));
        }
        let others = self.truth.family.iter().chain(self.truth.farms.iter().flat_map(|farm| &farm.hosts));
        parts.extend(others.map(|host| (host.clone(), CorePart::Disconnected)));
        self.truth.bow_tie = BowTie { parts };
    }

    /// One address a host; one host in twenty has two, and one in thirty none.
    fn addresses(&mut self, counts: &HostKinds, random: &mut NamedRandom) {
        let mut last = 0;
        let mut next = || {
            last += 1;
            format!("198.18.{}.{}", last / 250, last % 250 + 1)
        };
        for (at, host) in self.originals.iter().enumerate() {
            let addresses = if at % 20 == 7 { vec![next(), next()] } else { vec![next()] };
            // A host that is not copied may lack one.
            if at >= 2 * counts.sites + counts.sources && at % 30 == 11 {
                self.truth.unresolved.insert(host.name.clone());
            }
            self.addresses.insert(host.name.clone(), addresses);
        }
        self.truth.mirrors.iter().for_each(|mirror| _ = self.addresses.insert(mirror.host.clone(), vec![next()]));
        for alias in &self.truth.aliases {
            let addresses = match alias.kind {
                AliasKind::Address | AliasKind::Www => self.addresses[&alias.of].clone(),
                AliasKind::Redirect => vec![next()],
            };
            self.addresses.insert(alias.host.clone(), addresses);
        }
        // Store fronts share three machines; the farm's hosts share none, or they would be aliases.
        let machines = [next(), next(), next()];
        for front in &self.truth.family {
            self.addresses.insert(front.clone(), vec![machines[random.below(3)].clone()]);
        }
        for host in self.truth.farms.iter().flat_map(|farm| &farm.hosts) {
            self.addresses.insert(host.clone(), vec![next()]);
        }
        self.addresses.retain(|host, _| !self.truth.unresolved.contains(host));
    }
}

/// Where a copy lies that nothing links to: it has the outgoing links of its source only.
fn of_copy(source: CorePart) -> CorePart {
    match source {
        CorePart::Core | CorePart::In => CorePart::In,
        CorePart::Out | CorePart::Disconnected => CorePart::Disconnected,
    }
}

/// The names of the originals: siblings, sources, the others.
fn names(counts: &HostKinds, language: &Language, random: &mut NamedRandom) -> Vec<String> {
    let mut sites = BTreeSet::new();
    let mut site = |random: &mut NamedRandom| loop {
        let site = format!("{}-{}", language.name(random), language.name(random));
        if sites.insert(site.clone()) {
            break site;
        }
    };
    let mut names = Vec::new();
    for _ in 0..counts.sites {
        let site = site(random);
        names.extend(["docs", "api"].map(|kind| format!("{kind}.{site}.example")));
    }
    while names.len() < counts.originals {
        let kind = ["docs.", "manual.", "guide.", "wiki.", ""][random.below(5)];
        names.push(format!("{kind}{}.example", site(random)));
    }
    names
}

/// A host of so many pages: loose ones, and directories of 5 to 60.
fn original(name: &str, pages: usize, language: &Language, random: &mut NamedRandom) -> Original {
    let untitled = random.chance(0.7);
    let mut left = pages - 1 - usize::from(untitled);
    let mut directories = Vec::new();
    while left >= 7 || directories.is_empty() {
        let pages = random.within(5, (left - 2).clamp(5, 60));
        let (name, other) = (language.name(random), language.name(random));
        let number = directories.len();
        let prefix = if random.chance(0.5) { format!("/{name}{number}/") } else { format!("/{name}{number}/{other}/") };
        directories.push((prefix, pages));
        left = left.saturating_sub(pages);
    }
    Original { name: name.to_owned(), loose: left, untitled, directories, neighbours: Vec::new() }
}
