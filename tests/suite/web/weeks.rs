//! The pages of a made web, week by week.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::plan::{Original, WebPlan};
use super::text::{Anchor, Language, MadeDocument, NamedRandom, TextBlock};
use super::truth::{Copying, Fate, UNTITLED};
use super::{WEEKS, WebSize};

/// Documents by host and path.
pub type HostDocuments = BTreeMap<String, BTreeMap<String, Arc<MadeDocument>>>;

/// Makes the pages of all weeks.
pub fn weeks(shape: &WebSize, plan: &WebPlan, language: &Language) -> Vec<HostDocuments> {
    let writer = WebWriter { seed: shape.seed, plan, language };
    let mut own: Vec<HostDocuments> = Vec::new();
    let mut all: Vec<HostDocuments> = Vec::new();
    for week in 0..WEEKS.len() {
        own.push(plan.originals.iter().map(|host| writer.own(host, week, own.last())).collect());
        let hosts = writer.week(week, &own, &all);
        all.push(hosts);
    }
    all
}

struct WebWriter<'a> {
    seed: u64,
    plan: &'a WebPlan,
    language: &'a Language,
}

impl WebWriter<'_> {
    fn random(&self, name: &str) -> NamedRandom {
        NamedRandom::of(self.seed, name)
    }

    /// The pages that a host writes itself, home page excepted: those of the week before, changed,
    /// less some and with some new ones.
    fn own(
        &self,
        host: &Original,
        week: usize,
        before: Option<&HostDocuments>,
    ) -> (String, BTreeMap<String, Arc<MadeDocument>>) {
        let mut pages = BTreeMap::new();
        match before.map(|before| &before[&host.name]) {
            None => {
                let loose = (0..host.loose).map(|number| format!("/page{number}.html"));
                let chapters = |(prefix, pages): &(String, usize)| {
                    let prefix = prefix.clone();
                    (1..*pages).map(move |number| chapter(&prefix, number))
                };
                let paths = loose.chain(host.directories.iter().flat_map(chapters));
                pages.extend(paths.map(|path| (path.clone(), Arc::new(self.page(&host.name, &path)))));
            }
            Some(before) => {
                let written = before.iter().filter(|(path, _)| !path.ends_with("index.html"));
                pages.extend(written.filter_map(|(path, doc)| {
                    self.changed(&format!("{}{path}", host.name), week, doc).map(|doc| (path.clone(), doc))
                }));
                for (prefix, size) in &host.directories {
                    let born = |week: usize| {
                        let mut random = self.random(&format!("{}{prefix} born in {week}", host.name));
                        (*size as f64 * 0.03 + random.share()) as usize
                    };
                    let first = *size + (1..week).map(born).sum::<usize>();
                    let paths = (first..first + born(week)).map(|number| chapter(prefix, number));
                    pages.extend(paths.map(|path| (path.clone(), Arc::new(self.page(&host.name, &path)))));
                }
            }
        }
        for (prefix, _) in &host.directories {
            let index = self.index(&host.name, prefix, &pages);
            pages.insert(format!("{prefix}index.html"), Arc::new(index));
        }
        (host.name.clone(), pages)
    }

    /// A page a week later; `None` if it vanishes.
    fn changed(&self, name: &str, week: usize, doc: &Arc<MadeDocument>) -> Option<Arc<MadeDocument>> {
        let mut random = self.random(&format!("{name} in {week}"));
        match random.below(100) {
            0..2 => None,
            2..5 => Some(Arc::new(self.language.edit_heavily(doc, &mut random))),
            5..17 => Some(Arc::new(self.language.edit_lightly(doc, &mut random))),
            _ => Some(doc.clone()),
        }
    }

    /// The lines at the top and bottom of a site's pages.
    fn frame(&self, host: &str) -> MadeDocument {
        let site = host.trim_end_matches(".example").rsplit('.').next().unwrap_or(host);
        let mut random = self.random(&format!("{site} frame"));
        let header = format!("{} documentation", self.language.title(&mut random, 2));
        let footer = format!("Copyright {}. All rights reserved.", self.language.title(&mut random, 3));
        MadeDocument { header, footer, ..MadeDocument::default() }
    }

    /// A page of a manual, with links to its neighbours.
    fn page(&self, host: &str, path: &str) -> MadeDocument {
        let mut random = self.random(&format!("{host}{path}"));
        let title = self.language.title(&mut random, 4);
        let words = random.within(120, 500);
        let blocks = self.language.blocks(&mut random, words);
        let link = |href: String, label: &str| Anchor { href, label: label.to_owned() };
        let number: Option<usize> = path
            .rsplit_once("/ch")
            .and_then(|(_, name)| name.strip_suffix(".html"))
            .and_then(|number| number.parse().ok());
        let links = match number {
            None => vec![link("/".to_owned(), "Home")],
            Some(number) => {
                let next = link(chapter("", number + 1), "Next");
                let previous = (number > 1).then(|| link(chapter("", number - 1), "Previous"));
                [link("index.html".to_owned(), "Contents"), next].into_iter().chain(previous).collect()
            }
        };
        MadeDocument { title, blocks, links, ..self.frame(host) }
    }

    /// The contents of a directory.
    fn index(&self, host: &str, prefix: &str, pages: &BTreeMap<String, Arc<MadeDocument>>) -> MadeDocument {
        let mut random = self.random(&format!("{host}{prefix}"));
        let title = self.language.title(&mut random, 3);
        let blocks = vec![TextBlock::Text(self.language.sentences(&mut random, 4))];
        let below = pages.iter().filter_map(|(path, doc)| Some((path.strip_prefix(prefix)?, doc)));
        let entries = below.map(|(href, doc)| Anchor { href: href.to_owned(), label: doc.title.clone() });
        let home = Anchor { href: "/".to_owned(), label: "Home".to_owned() };
        MadeDocument { title, blocks, links: entries.chain([home]).collect(), ..self.frame(host) }
    }

    /// The home page: links to all directories, loose pages, the untitled page, and the neighbours.
    fn home(&self, host: &Original, pages: &BTreeMap<String, Arc<MadeDocument>>) -> MadeDocument {
        let mut random = self.random(&format!("{} home", host.name));
        let title = self.language.title(&mut random, 3);
        let blocks = vec![TextBlock::Text(self.language.sentences(&mut random, 6))];
        let is_linked = |path: &str| path.ends_with("index.html") || path.starts_with("/page");
        let entries = pages.iter().filter(|(path, _)| is_linked(path));
        let mut links: Vec<Anchor> =
            entries.map(|(path, doc)| Anchor { href: path.clone(), label: doc.title.clone() }).collect();
        if host.untitled {
            links.push(Anchor { href: UNTITLED.to_owned(), label: "Notes".to_owned() });
        }
        for neighbour in &host.neighbours {
            let at = format!("http://{neighbour}/");
            links.push(Anchor { href: at.clone(), label: format!("See {neighbour}") });
            // Into a directory, too, so that originals have links from other hosts.
            if let Some(original) = self.plan.originals.iter().find(|original| original.name == *neighbour) {
                let (prefix, _) = &original.directories[random.below(original.directories.len())];
                let href = format!("{at}{}index.html", &prefix[1..]);
                links.push(Anchor { href, label: format!("A manual of {neighbour}") });
            }
        }
        MadeDocument { title, blocks, links, ..self.frame(&host.name) }
    }

    /// All hosts of a week. `own` has what the originals wrote up to this week, `all` the weeks
    /// before.
    fn week(&self, week: usize, own: &[HostDocuments], all: &[HostDocuments]) -> HostDocuments {
        let truth = &self.plan.truth;
        let mut hosts = own[week].clone();
        for siblings in &truth.siblings {
            let [first, second] = &siblings.hosts[..] else { unreachable!("sites have two hosts") };
            for prefix in &siblings.directories {
                let pages = own[week][first].iter().filter(|(path, _)| path.starts_with(&**prefix));
                let pages = pages.map(|(path, doc)| (path.clone(), doc.clone()));
                hosts.get_mut(second).unwrap().extend(pages);
            }
        }
        for collection in &truth.collections {
            let source = &own[collection.copying.week_of_source(week)][&collection.of_host];
            let below = source.iter().filter_map(|(path, doc)| Some((path.strip_prefix(&*collection.of_prefix)?, doc)));
            let copies = below.filter_map(|(path, doc)| {
                self.copy(&collection.copying, path, doc).map(|doc| (format!("{}{path}", collection.prefix), doc))
            });
            hosts.get_mut(&collection.host).unwrap().extend(copies);
        }
        let untitled = Arc::new(MadeDocument { title: "Untitled document".to_owned(), ..MadeDocument::default() });
        for host in &self.plan.originals {
            let pages = hosts.get_mut(&host.name).unwrap();
            let home = self.home(host, pages);
            pages.insert("/".to_owned(), Arc::new(home));
            if host.untitled {
                pages.insert(UNTITLED.to_owned(), untitled.clone());
            }
        }
        let mirrors = truth.mirrors.iter().map(|mirror| (&mirror.host, &mirror.of, &mirror.copying));
        let aliases = truth.aliases.iter().map(|alias| (&alias.host, &alias.of, &alias.copying));
        for (host, of, copying) in mirrors.chain(aliases).filter(|(_, _, copying)| copying.weeks.contains(&week)) {
            let source = copying.week_of_source(week);
            let source = if source == week { &hosts[of] } else { &all[source][of] };
            let copies = source.iter().filter_map(|(path, doc)| Some((path.clone(), self.copy(copying, path, doc)?)));
            let copies: BTreeMap<String, Arc<MadeDocument>> = copies.collect();
            if !copies.is_empty() {
                hosts.insert(host.clone(), copies);
            }
        }
        for front in &truth.family {
            hosts.insert(front.clone(), self.front(front, week, &untitled, all.last().map(|before| &before[front])));
        }
        for farm in &truth.farms {
            let hosts_of_farm = farm.hosts.iter().zip(farm.hosts.iter().cycle().skip(1));
            hosts.extend(hosts_of_farm.map(|(host, next)| (host.clone(), self.offers(host, next, farm.pages))));
        }
        hosts
    }

    fn copy(&self, copying: &Copying, path: &str, doc: &Arc<MadeDocument>) -> Option<Arc<MadeDocument>> {
        let mut random = NamedRandom::of(copying.seed, &format!("edit of {path}"));
        match copying.fate(path) {
            Fate::Missing => None,
            Fate::Same => Some(doc.clone()),
            Fate::Light => Some(Arc::new(self.language.edit_lightly(doc, &mut random))),
            Fate::Heavy => Some(Arc::new(self.language.edit_heavily(doc, &mut random))),
        }
    }

    /// A store front: products on the lines of one template, of which some pages lack one.
    fn front(
        &self,
        host: &str,
        week: usize,
        untitled: &Arc<MadeDocument>,
        before: Option<&BTreeMap<String, Arc<MadeDocument>>>,
    ) -> BTreeMap<String, Arc<MadeDocument>> {
        if let Some(before) = before {
            let changed = before.iter().map(|(path, doc)| match path.starts_with("/product") {
                true => {
                    let mut random = self.random(&format!("{host}{path} in {week}"));
                    let is_changed = random.chance(0.05);
                    let doc =
                        if is_changed { Arc::new(self.language.edit_lightly(doc, &mut random)) } else { doc.clone() };
                    (path.clone(), doc)
                }
                false => (path.clone(), doc.clone()),
            });
            return changed.collect();
        }
        let mut template = self.random("template");
        let template: Vec<String> = (0..24).map(|_| self.language.sentences(&mut template, 2)).collect();
        let mut random = self.random(host);
        let product = |random: &mut NamedRandom| {
            let name = self.language.title(random, 2);
            let price = format!("{name}: {} euros.", random.within(2, 900));
            let lines = template.iter().filter(|_| !random.chance(0.03)).cloned().map(TextBlock::Text);
            let mut blocks: Vec<TextBlock> = lines.collect();
            blocks.insert(2.min(blocks.len()), TextBlock::Text(price));
            blocks.insert(3.min(blocks.len()), TextBlock::Text(self.language.sentence(random)));
            let link = Anchor { href: "/".to_owned(), label: "All products".to_owned() };
            MadeDocument { title: name, blocks, links: vec![link], ..MadeDocument::default() }
        };
        let count = random.within(3, 8);
        let mut pages: BTreeMap<String, Arc<MadeDocument>> =
            (0..count).map(|number| (format!("/product{number}.html"), Arc::new(product(&mut random)))).collect();
        pages.insert(UNTITLED.to_owned(), untitled.clone());
        let links = pages.iter().map(|(path, doc)| Anchor { href: path.clone(), label: doc.title.clone() });
        let (title, text) = (self.language.title(&mut random, 2), self.language.sentences(&mut random, 3));
        let home = MadeDocument {
            title,
            blocks: vec![TextBlock::Text(text)],
            links: links.collect(),
            ..MadeDocument::default()
        };
        pages.insert("/".to_owned(), Arc::new(home));
        pages
    }

    /// A host of the farm: one page many times, in which a number differs.
    fn offers(&self, host: &str, next: &str, pages: usize) -> BTreeMap<String, Arc<MadeDocument>> {
        let mut text = self.random("offer");
        let blocks = self.language.blocks(&mut text, 350);
        let title = self.language.title(&mut text, 3);
        let mut random = self.random(host);
        let offer = |number: usize, random: &mut NamedRandom| {
            let mut blocks = blocks.clone();
            blocks.insert(1, TextBlock::Text(format!("Order number {}.", random.number() % 1_000_000)));
            let label = "More offers".to_owned();
            let link = Anchor { href: format!("http://{next}/offer{number}.html"), label };
            let home = Anchor { href: "/".to_owned(), label: "Home".to_owned() };
            MadeDocument { title: title.clone(), blocks, links: vec![link, home], ..MadeDocument::default() }
        };
        let mut made: BTreeMap<String, Arc<MadeDocument>> =
            (0..pages).map(|number| (format!("/offer{number}.html"), Arc::new(offer(number, &mut random)))).collect();
        let links = made.keys().map(|path| Anchor { href: path.clone(), label: "Offer".to_owned() }).collect();
        let text = self.language.sentences(&mut random, 3);
        let home = MadeDocument {
            title: self.language.title(&mut random, 2),
            blocks: vec![TextBlock::Text(text)],
            links,
            ..MadeDocument::default()
        };
        made.insert("/".to_owned(), Arc::new(home));
        made
    }
}

fn chapter(prefix: &str, number: usize) -> String {
    format!("{prefix}ch{number:02}.html")
}
