//! The terms of a host's name and of a path, and the features that they make (Bharat and Broder
//! 1999, section 3).
//!
//! A term is a run of letters, in lower case, or a run of digits, which counts as `*`. A feature is
//! a pair of terms that follow each other; in a path with their place, so that the same directories
//! at another depth are another feature.
//!
//! ```text
//! www.d299.example     www d * example     (www d) (d *) (* example)
//! /lib/v2/Index.html   lib v * index html  (0 lib v) (1 v *); a pair with a stop term is none
//! ```
//!
//! The study drops stop terms; here the pairs with them are dropped, and other pairs keep their
//! places.

use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::records::fold;

/// Terms that say nothing: a pair of terms with one of them is no feature of a path.
const STOP: [&[u8]; 8] = [b"htm", b"html", b"txt", b"main", b"index", b"home", b"bin", b"cgi"];
/// Names of programs that make pages: a URL with one of them has no features.
const TOOLS: [&[u8]; 3] = [b"nph", b"dynaweb", b"zyview"];
/// The term for any run of digits.
const NUMBER: &[u8] = b"*";

/// What a feature is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u64)]
pub enum FeatureKind {
    /// Two terms of the name of the host.
    Host,
    /// Two terms of a path, with their place.
    Path,
    /// A path as a whole.
    WholePath,
}

impl FeatureKind {
    /// The weight of a feature, before it is divided by the number of its hosts: S in the study.
    pub fn weight(self) -> u64 {
        match self {
            FeatureKind::Host => 4,
            FeatureKind::Path | FeatureKind::WholePath => 1,
        }
    }
}

/// The terms of a text, as hashes, and what is known of each.
#[derive(Clone, Debug, Default)]
pub struct Terms {
    terms: Vec<(u64, bool)>,
    has_tool: bool,
    lower: Vec<u8>,
}

impl Terms {
    /// Finds the terms of a text; what is not ASCII is between terms, also if it is escaped
    /// (`%D0`).
    pub fn read(&mut self, text: &str) {
        self.terms.clear();
        self.has_tool = false;
        self.lower.clear();
        let mut rest = text.as_bytes();
        while let Some((first, behind)) = rest.split_first() {
            let is_escape = *first == b'%' && behind.len() > 1 && behind[..2].iter().all(u8::is_ascii_hexdigit);
            self.lower.push(first.to_ascii_lowercase());
            rest = if is_escape { &behind[2..] } else { behind };
        }
        let class = |byte: &u8| match byte {
            b'a'..=b'z' => 1,
            b'0'..=b'9' => 2,
            _ => 0,
        };
        for run in self.lower.chunk_by(|a, b| class(a) == class(b)) {
            let term = match class(&run[0]) {
                0 => continue,
                1 => run,
                _ => NUMBER,
            };
            self.has_tool |= TOOLS.contains(&term);
            self.terms.push((xxh3_64_with_seed(term, 0), STOP.contains(&term)));
        }
    }

    /// Whether a term is the name of a tool.
    pub fn has_tool(&self) -> bool {
        self.has_tool
    }

    /// Adds the features of a host's name, each once, to `features`.
    pub fn of_host(&self, features: &mut Vec<u64>) {
        let pairs = self.terms.windows(2).map(|pair| fold(&[FeatureKind::Host as u64, pair[0].0, pair[1].0]));
        features.extend(pairs);
        features.sort_unstable();
        features.dedup();
    }

    /// Adds the features of a path to `features`: they are distinct, since each has its place.
    pub fn of_path(&self, features: &mut Vec<u64>) {
        let pairs = self.terms.windows(2).enumerate().filter(|(_, pair)| !pair[0].1 && !pair[1].1);
        features.extend(pairs.map(|(at, pair)| fold(&[FeatureKind::Path as u64, at as u64, pair[0].0, pair[1].0])));
    }
}

/// The feature that a path is as a whole.
pub fn whole_path(path: u64) -> u64 {
    fold(&[FeatureKind::WholePath as u64, path])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(text: &str) -> Vec<u64> {
        let (mut terms, mut features) = (Terms::default(), Vec::new());
        terms.read(text);
        terms.of_path(&mut features);
        features
    }

    fn host(text: &str) -> Vec<u64> {
        let (mut terms, mut features) = (Terms::default(), Vec::new());
        terms.read(text);
        terms.of_host(&mut features);
        features
    }

    #[test]
    fn digits_are_one_term_and_letters_are_folded() {
        assert_eq!(path("/lib/v2/page"), path("/LIB/V17/Page"));
        assert_eq!(path("/d299/a").len(), 2);
        assert_ne!(path("/lib/va/page"), path("/lib/v2/page"));
        assert_eq!(path("/caf%C3%A9/x_y%"), path("/caf/x.y"), "an escape is between terms");
        assert!(path("/%D0%BF%D1%80/%D0/x").is_empty());
    }

    #[test]
    fn the_place_of_a_pair_in_a_path_counts() {
        let (near, deep) = (path("/a/b"), path("/x/a/b"));
        assert_eq!((near.len(), deep.len()), (1, 2));
        assert!(!deep.contains(&near[0]));
        assert_eq!(path("/a/b/a/b").len(), 3);
    }

    #[test]
    fn stop_terms_make_no_features_of_paths() {
        assert!(path("/index.html").is_empty());
        assert_eq!(path("/a/b/index.html"), path("/a/b/main.txt"));
        assert_eq!(path("/a/b/index.html").len(), 1);
        assert!(path("/").is_empty() && path("").is_empty());
    }

    #[test]
    fn tools_are_seen_as_whole_terms() {
        let has_tool = |text: &str| {
            let mut terms = Terms::default();
            terms.read(text);
            terms.has_tool()
        };
        assert!(has_tool("/cgi-bin/nph-search/x") && has_tool("/DynaWeb/a"));
        assert!(!has_tool("/dynawebs/a") && !has_tool("/"));
    }

    #[test]
    fn hosts_with_ports_and_addresses_have_terms() {
        assert_eq!(host("www.a.example").len(), 2);
        assert_eq!(host("www.a.example:8080").len(), 3);
        assert_eq!(host("10.0.0.1").len(), 1, "three pairs of numbers are one feature");
        assert_eq!(host("[::1]").len(), 0);
        assert_eq!(host("xn--bcher-kva.example").len(), 3);
        assert_eq!(host("index.main.example").len(), 2, "a name has no stop terms");
    }
}
