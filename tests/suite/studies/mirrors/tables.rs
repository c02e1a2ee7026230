//! The tables of the job against its pairs and the weeks of the store.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use nigh::state::Store;

use super::twin::{MirrorsParameters, PairRow, PairRows, SeenWeek, found, seen, twin};
use crate::program::{self, bytes, features, longs, week};
use crate::studies::host_order::{HostNames, HostTwin, leads};

/// Compares `pairs` with the twin, and the other tables with what follows from `pairs` and the
/// weeks. Returns the rows.
pub fn assert_right(store: &Path, parameters: &MirrorsParameters) -> BTreeMap<String, PairRows> {
    let (weeks, found) = (seen(store), found(store));
    for week in &weeks {
        let (found, expected) = (found.get(&week.date).cloned().unwrap_or_default(), twin(week, parameters));
        let names = |rows: &PairRows| rows.keys().cloned().collect::<Vec<_>>();
        assert_eq!(names(&found), names(&expected), "{}", week.date);
        for (hosts, row) in &expected {
            assert_eq!(&found[hosts], row, "{hosts:?} in {}", week.date);
        }
    }
    let mirrors = |date: &str| -> PairRows {
        found
            .get(date)
            .into_iter()
            .flatten()
            .filter(|(_, row)| row.mirror)
            .map(|(a, b)| (a.clone(), b.clone()))
            .collect()
    };
    assert_classes(store, &found, "pairs", parameters.least);
    // What the study counts stands in each store, whatever the job counts.
    let literal =
        MirrorsParameters { study: true, root: false, keep_unresolved: false, farm: None, ..parameters.clone() };
    let as_the_study: BTreeMap<String, PairRows> =
        weeks.iter().map(|week| (week.date.clone(), twin(week, &literal))).collect();
    assert_classes(store, &as_the_study, "study", parameters.least);
    for (row, week) in rows_of(store, "mirrored", &["week", "study_share"]).iter().zip(&weeks) {
        let mirrors = as_the_study[&week.date].clone().into_iter().filter(|(_, row)| row.mirror).collect();
        let share = mirrored_pages(week, &mirrors).len() as f64 / week.pages.len() as f64;
        assert_eq!(row[1], if week.pages.is_empty() { "null".to_owned() } else { share.to_string() }, "{row:?}");
    }
    assert_sizes(store, &found);
    assert_groups(store, &weeks, &mirrors, parameters.least);
    assert_spans(store, &weeks, &mirrors);
    assert_mirrored(store, &weeks, &mirrors);
    assert_lags(store, &weeks, &mirrors);
    found
}

/// All rows of a table, each column as text.
pub fn rows_of(store: &Path, table: &str, columns: &[&str]) -> Vec<Vec<String>> {
    program::rows_of(&store.join("mirrors"), table, columns)
}

/// Compares a column of `classes` with the rows of pairs.
fn assert_classes(store: &Path, found: &BTreeMap<String, PairRows>, column: &str, least: u64) {
    for row in rows_of(store, "classes", &["week", "class", column]) {
        let rows: Vec<&PairRow> = found.get(&row[0]).into_iter().flat_map(BTreeMap::values).collect();
        let count = |test: &dyn Fn(&PairRow) -> bool| rows.iter().filter(|row| test(row)).count();
        let kept = |test: &dyn Fn(&PairRow) -> bool| count(&|row| row.class == "kept" && test(row));
        let expected = match &*row[1] {
            "raw" => count(&|row| row.class != "redirect"),
            "kept-www" => kept(&|row| row.www),
            "kept-last-arc" => kept(&|row| row.numbers[4] >= least as i64),
            "kept-last-four-arcs" => kept(&|row| row.mirror),
            "farm" | "redirect" if column == "study" => {
                assert_eq!(row[2], "null");
                continue;
            }
            class => count(&|row| row.class == class),
        };
        assert_eq!(row[2], expected.to_string(), "{row:?}, {column}");
    }
}

fn assert_sizes(store: &Path, found: &BTreeMap<String, PairRows>) {
    let mut sizes: BTreeMap<(String, i64), u64> = BTreeMap::new();
    for (week, rows) in found {
        for row in rows.values().filter(|row| row.mirror) {
            *sizes.entry((week.clone(), row.numbers[3])).or_default() += 1;
        }
    }
    let sizes: Vec<Vec<String>> =
        sizes.into_iter().map(|((week, size), pairs)| vec![week, size.to_string(), pairs.to_string()]).collect();
    assert_eq!(rows_of(store, "sizes", &["week", "size", "pairs"]), sizes);
}

fn assert_groups(store: &Path, weeks: &[SeenWeek], mirrors: &dyn Fn(&str) -> PairRows, least: u64) {
    let mut expected = Vec::new();
    for week in weeks {
        let pairs: HostNames = mirrors(&week.date).into_keys().collect();
        let hosts: BTreeSet<&String> = pairs.iter().flat_map(|(a, b)| [a, b]).collect();
        let both = hosts.iter().flat_map(|target| hosts.iter().map(move |host| (*target, *host)));
        let before = both.filter(|(target, host)| target != host && week.redirected(host, target, least) > 0);
        let before: HostNames = before.map(|(target, host)| (target.clone(), host.clone())).collect();
        let order = match pairs.is_empty() {
            true => Vec::new(),
            false => HostTwin::read(store, &week.date).order(&pairs, &before, &leads(store, &week.date), &|_| 0),
        };
        let mut groups: Vec<BTreeSet<String>> = Vec::new();
        for (a, b) in mirrors(&week.date).into_keys() {
            let mut joined = BTreeSet::from([a, b]);
            groups.retain(|group| {
                let is_apart = group.is_disjoint(&joined);
                if !is_apart {
                    joined.extend(group.iter().cloned());
                }
                is_apart
            });
            groups.push(joined);
        }
        let pages = |host: &String| week.pages.iter().filter(|page| page.host == *host).count();
        let preferred = |group: &BTreeSet<String>| order.iter().find(|host| group.contains(*host)).cloned();
        groups.sort_by_key(|group| preferred(group));
        for (number, group) in (1..).zip(&groups) {
            let chosen = preferred(group).unwrap();
            for host in group {
                let row = [week.date.clone(), i32::to_string(&number), host.clone(), pages(host).to_string()];
                expected.push([&row[..], &[(*host == chosen).to_string()]].concat());
            }
        }
    }
    assert_eq!(rows_of(store, "groups", &["week", "group", "host", "pages", "preferred"]), expected);
}

fn assert_spans(store: &Path, weeks: &[SeenWeek], mirrors: &dyn Fn(&str) -> PairRows) {
    let by_name = |(a, b): (String, String)| if a < b { (a, b) } else { (b, a) };
    let of_weeks: Vec<BTreeSet<(String, String)>> =
        weeks.iter().map(|week| mirrors(&week.date).into_keys().map(by_name).collect()).collect();
    let mut expected = Vec::new();
    for pair in of_weeks.iter().flatten().collect::<BTreeSet<_>>() {
        for begin in 0..weeks.len() {
            let is_mirror = |at: usize| of_weeks.get(at).is_some_and(|pairs| pairs.contains(pair));
            if is_mirror(begin) && (begin == 0 || !is_mirror(begin - 1)) {
                let end = (begin..).find(|at| !is_mirror(*at)).unwrap();
                let (first, last) = (weeks[begin].date.clone(), weeks[end - 1].date.clone());
                let (length, ended) = ((end - begin).to_string(), (end < weeks.len()).to_string());
                expected.push(vec![pair.0.clone(), pair.1.clone(), first, last, length, ended]);
            }
        }
    }
    assert_eq!(rows_of(store, "spans", &["host_a", "host_b", "first", "last", "weeks", "ended"]), expected);
}

/// The pages of a week in a cluster with a page of a mirror of their host, and the largest size of
/// these mirrors.
fn mirrored_pages(week: &SeenWeek, mirrors: &PairRows) -> BTreeMap<i64, i64> {
    let mut hosts: BTreeMap<i64, BTreeSet<&str>> = BTreeMap::new();
    let clustered = || week.pages.iter().filter(|page| page.is_clustered);
    clustered().for_each(|page| _ = hosts.entry(page.root).or_default().insert(&page.host));
    let mut found = BTreeMap::new();
    for page in clustered() {
        let sizes = mirrors.iter().filter_map(|((a, b), row)| {
            let other = if *a == page.host { b } else { a };
            let is_of_page = *a == page.host || *b == page.host;
            (is_of_page && hosts[&page.root].contains(&**other)).then_some(row.numbers[3])
        });
        found.extend(sizes.max().map(|size| (page.doc, size)));
    }
    found
}

/// The checksum and the features of a page.
type PageDownload = (Vec<u8>, Vec<u16>);

fn assert_mirrored(store: &Path, weeks: &[SeenWeek], mirrors: &dyn Fn(&str) -> PairRows) {
    let row = |week: &SeenWeek| {
        let pages = mirrored_pages(week, &mirrors(&week.date)).len();
        vec![week.date.clone(), pages.to_string(), week.pages.len().to_string()]
    };
    let expected: Vec<Vec<String>> = weeks.iter().map(row).collect();
    assert_eq!(rows_of(store, "mirrored", &["week", "pages", "documents"]), expected);
    // Changes of the pages that are mirrored in the first week, by size.
    let first = mirrored_pages(&weeks[0], &mirrors(&weeks[0].date));
    let mut downloads: BTreeMap<i64, Vec<PageDownload>> = BTreeMap::new();
    let count = Store::at(store).manifest().unwrap().unwrap().method.features;
    for seen in weeks {
        let folder = week(store, &seen.date);
        let vectors = features(&folder);
        for (doc, checksum) in
            longs(&folder, "documents", "doc").into_iter().zip(bytes(&folder, "documents", "checksum"))
        {
            downloads.entry(doc).or_default().push((checksum, vectors.get(&doc).cloned().unwrap_or_default()));
        }
    }
    let mut expected: BTreeMap<(String, String), u64> = BTreeMap::new();
    for (doc, size) in first {
        let class = match size {
            1 => "1",
            2..=10 => "2-10",
            11..=100 => "11-100",
            _ => "101-1000",
        };
        for pair in downloads[&doc].windows(2) {
            let equal = pair[0].1.iter().zip(&pair[1].1).filter(|(a, b)| a == b).count();
            let change = match equal {
                _ if pair[0].0 == pair[1].0 => "no-change",
                _ if equal == count => "no-text-change",
                0 => "complete",
                _ if equal <= count / 3 => "large",
                _ if equal <= 2 * (count / 3) => "medium",
                _ => "small",
            };
            *expected.entry((class.to_owned(), change.to_owned())).or_default() += 1;
        }
    }
    let found = rows_of(store, "changes", &["class", "change", "pairs"]).into_iter().filter(|row| row[2] != "0");
    let found: BTreeMap<(String, String), u64> =
        found.map(|row| ((row[0].clone(), row[1].clone()), row[2].parse().unwrap())).collect();
    assert_eq!(found, expected);
}

fn assert_lags(store: &Path, weeks: &[SeenWeek], mirrors: &dyn Fn(&str) -> PairRows) {
    // The features of each path of each host, by week.
    let mut contents: BTreeMap<(&str, &str), BTreeMap<usize, i64>> = BTreeMap::new();
    for (number, seen) in weeks.iter().enumerate() {
        let folder = week(store, &seen.date);
        let vectors = longs(&folder, "features", "doc").into_iter().zip(longs(&folder, "features", "vector"));
        let vectors: BTreeMap<i64, i64> = vectors.collect();
        for page in &seen.pages {
            let vector = vectors.get(&page.doc).copied().unwrap_or_default();
            contents.entry((&page.host, &page.rest)).or_default().insert(number, vector);
        }
    }
    let pairs: BTreeSet<(String, String)> = weeks.iter().flat_map(|week| mirrors(&week.date).into_keys()).collect();
    let both = pairs.into_iter().flat_map(|(a, b)| [(a.clone(), b.clone()), (b, a)]);
    let mut lags: BTreeMap<(String, String, bool, Option<usize>), u64> = BTreeMap::new();
    for (host, copy) in both.collect::<BTreeSet<_>>() {
        for ((_, path), of_host) in contents.iter().filter(|((of, _), _)| *of == host) {
            let Some(of_copy) = contents.get(&(&*copy, path)) else { continue };
            for at in 1..weeks.len() {
                let (Some(old), Some(new)) = (of_host.get(&(at - 1)), of_host.get(&at)) else { continue };
                if old == new || *new == 0 || !of_copy.contains_key(&at) || of_copy.get(&(at - 1)) == Some(new) {
                    continue;
                }
                let lag = (at..weeks.len()).find(|later| of_copy.get(later) == Some(new)).map(|later| later - at);
                *lags.entry((host.clone(), copy.clone(), lag.is_none(), lag)).or_default() += 1;
            }
        }
    }
    let row = |((host, copy, _, lag), changes): ((String, String, bool, Option<usize>), u64)| {
        vec![host, copy, lag.map_or_else(|| "null".to_owned(), |lag| lag.to_string()), changes.to_string()]
    };
    let expected: Vec<Vec<String>> = lags.into_iter().map(row).collect();
    assert_eq!(rows_of(store, "lags", &["host", "copy", "weeks", "changes"]), expected);
}
