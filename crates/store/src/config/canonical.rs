//! `canonical` in a job: which documents of a cluster stay, by a policy or by the user's columns,
//! and how many of them.
//!
//! ```toml
//! canonical = "longest"
//! canonical = { by = ["score desc", "length desc"], most = 2, each = "meta.source" }
//! canonical = { by = "longest", only-older = "2024-02-01" }
//! ```

use std::collections::BTreeSet;
use std::fmt;

use serde::de::value::MapAccessDeserializer;
use serde::de::{Error as _, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use xxhash_rust::xxh3::xxh3_64;

use super::policy::{DocumentFacts, Policy};
use super::terms::{MOST_TERMS, Term, TermKey, read_terms};
use crate::readers::ColumnValue;
use crate::records::Week;

/// Which documents of a cluster stay, and are `canonical` in the tables. Of equal ones it is that
/// with the smallest document id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Canonical {
    /// The order of the documents of a cluster: the first ones stay.
    pub by: CanonicalOrder,
    /// How many stay of a cluster, or of each group of it. 0: a cluster of two or more leaves
    /// nothing.
    pub most: u64,
    /// The groups of a cluster: documents with one value in this column, or of one `host`.
    /// Documents without a value are one group.
    pub each: Option<TermKey>,
    /// The batch from which on a document goes only if its cluster has a document of an older
    /// batch: copies within a batch all stay. Of documents of batches before, the first one stays.
    pub only_older: Option<Week>,
}

/// The order of the documents of a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CanonicalOrder {
    /// That of a policy.
    Policy(Policy),
    /// By the first of these in which two documents differ.
    Terms(Vec<Term>),
}

impl Default for Canonical {
    fn default() -> Canonical {
        Canonical::from(CanonicalOrder::Policy(Policy::default()))
    }
}

impl From<CanonicalOrder> for Canonical {
    fn from(by: CanonicalOrder) -> Canonical {
        Canonical { by, most: 1, each: None, only_older: None }
    }
}

impl Canonical {
    /// The columns whose values it needs, in the order of their names.
    pub fn columns(&self) -> Vec<String> {
        let terms = match &self.by {
            CanonicalOrder::Policy(_) => &[][..],
            CanonicalOrder::Terms(terms) => terms,
        };
        let names: BTreeSet<&String> =
            terms.iter().map(|term| &term.key).chain(&self.each).filter_map(TermKey::column).collect();
        names.into_iter().cloned().collect()
    }

    /// Whether the smallest document id alone decides.
    pub fn is_root(&self) -> bool {
        *self == Canonical::from(CanonicalOrder::Policy(Policy::Root))
    }

    /// Whether one document of each cluster stays, apart from what `only_older` keeps.
    pub fn keeps_one(&self) -> bool {
        self.most == 1 && self.group_key().is_none()
    }

    /// What documents are compared by, given the names of the columns whose values they have.
    pub fn comparison<'a>(&'a self, columns: &'a [String]) -> DocumentOrder<'a> {
        DocumentOrder { canonical: self, columns }
    }

    /// Whether documents have groups of which each keeps some.
    fn group_key(&self) -> Option<&TermKey> {
        match &self.by {
            CanonicalOrder::Policy(Policy::PerHost) => Some(self.each.as_ref().unwrap_or(&TermKey::Host)),
            _ => self.each.as_ref(),
        }
    }

    /// The bytes of all orders, if it is known without the documents.
    pub fn order_bytes(&self) -> Option<usize> {
        let batch = self.only_older.map_or(0, |_| BATCH_BYTES);
        match self.by {
            CanonicalOrder::Policy(_) => Some(batch + size_of::<[u64; 2]>()),
            CanonicalOrder::Terms(_) => None,
        }
    }

    /// The columns of `documents` that a comparison reads.
    pub fn table_columns(&self) -> &'static [&'static str] {
        let is_of_columns = |key: &TermKey| key.column().is_some();
        match &self.by {
            _ if self.only_older.is_some() => ALL_COLUMNS,
            CanonicalOrder::Terms(terms) if terms.iter().map(|term| &term.key).chain(&self.each).all(is_of_columns) => {
                &["doc"]
            }
            CanonicalOrder::Policy(policy) if self.each.as_ref().is_none_or(is_of_columns) => policy.table_columns(),
            _ => ALL_COLUMNS,
        }
    }
}

/// All columns of `documents` that a comparison may read.
const ALL_COLUMNS: &[&str] = &["doc", "file", "offset", "crawled", "host", "words", "bytes", "fetched", "url"];

/// The bytes of the batch at the beginning of an order, if only documents of older batches count.
const BATCH_BYTES: usize = size_of::<u64>();

/// Which documents of a group stay, one by one in their order.
#[derive(Clone, Debug)]
pub struct ChosenSoFar {
    most: u64,
    before: u64,
    only_older: bool,
    /// The batch of the first document, if all of its documents stay.
    batch: Option<[u8; BATCH_BYTES]>,
}

impl ChosenSoFar {
    /// Of a group of which no document came yet.
    pub fn new(canonical: &Canonical) -> ChosenSoFar {
        ChosenSoFar { most: canonical.most, before: 0, only_older: canonical.only_older.is_some(), batch: None }
    }

    /// Whether the next document stays, whose order begins with these bytes.
    pub fn stays(&mut self, order: &[u8]) -> bool {
        let batch = order.first_chunk().filter(|_| self.only_older);
        if self.before == 0 {
            // The batches before `only_older` are 0: their documents are chosen.
            self.batch = batch.copied().filter(|batch| *batch != [0; BATCH_BYTES]);
        }
        let is_among_first = self.before < self.most;
        self.before += 1;
        is_among_first || (self.batch.is_some() && self.batch.as_ref() == batch)
    }
}

/// Compares documents with the values of some columns.
#[derive(Clone, Copy)]
pub struct DocumentOrder<'a> {
    canonical: &'a Canonical,
    columns: &'a [String],
}

impl DocumentOrder<'_> {
    /// Writes the order of a document in its cluster: bytes, of which the smallest stay. `values`
    /// are those of the document in the columns.
    pub fn write_order(&self, document: &DocumentFacts<'_>, values: &[Option<ColumnValue>], order: &mut Vec<u8>) {
        order.clear();
        if let Some(since) = self.canonical.only_older {
            // Batches before are one; each from this date on is a later one.
            let batch = document.crawled.checked_sub(since.days()).and_then(|days| u32::try_from(days).ok());
            order.extend(batch.map_or(0, |days| u64::from(days) + 1).to_be_bytes());
        }
        match &self.canonical.by {
            CanonicalOrder::Policy(policy) => {
                order.extend(policy.order(document).into_iter().flat_map(u64::to_be_bytes))
            }
            CanonicalOrder::Terms(terms) => {
                terms.iter().for_each(|term| term.write_key(document, self.value(&term.key, values), order))
            }
        }
    }

    /// The group of a document in its cluster: 0 if the cluster is one.
    pub fn group(&self, document: &DocumentFacts<'_>, values: &[Option<ColumnValue>]) -> u64 {
        match self.canonical.group_key() {
            None => 0,
            Some(TermKey::Host) => xxh3_64(document.host.unwrap_or_default().as_bytes()),
            Some(key) => {
                let mut bytes = Vec::new();
                let term = Term::ascending(key.clone());
                term.write_key(document, self.value(key, values), &mut bytes);
                xxh3_64(&bytes)
            }
        }
    }

    fn value<'v>(&self, key: &TermKey, values: &'v [Option<ColumnValue>]) -> Option<&'v ColumnValue> {
        let number = self.columns.iter().position(|column| key.column() == Some(column))?;
        values[number].as_ref()
    }
}

impl fmt::Display for CanonicalOrder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CanonicalOrder::Policy(policy) => f.write_str(policy.name()),
            CanonicalOrder::Terms(terms) => {
                let texts: Vec<String> = terms.iter().map(Term::to_string).collect();
                f.write_str(&texts.join(", "))
            }
        }
    }
}

impl std::str::FromStr for CanonicalOrder {
    type Err = String;

    /// Reads the name of a policy, or terms with commas between them.
    fn from_str(text: &str) -> Result<CanonicalOrder, String> {
        if let Some(policy) = Policy::of_name(text) {
            return Ok(CanonicalOrder::Policy(policy));
        }
        let terms = read_terms(text)?;
        // One word is a name of a policy with a mistake, or a column.
        Ok(CanonicalOrder::Terms(terms))
    }
}

/// What stays, for people.
impl fmt::Display for Canonical {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let of_policy = if matches!(self.by, CanonicalOrder::Policy(_)) { "the policy " } else { "" };
        match self.most {
            0 => return f.write_str("nothing"),
            1 => write!(f, "the first by {of_policy}{}", self.by)?,
            most => write!(f, "the first {most} by {of_policy}{}", self.by)?,
        }
        if let Some(each) = &self.each {
            write!(f, ", of each {each}")?;
        }
        match self.only_older {
            Some(since) => write!(f, "; of batches from {since} on, all that duplicate nothing of an older batch"),
            None => Ok(()),
        }
    }
}

/// The fields of `canonical` as a table.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct CanonicalFields {
    #[serde(default = "default_by")]
    by: CanonicalOrder,
    #[serde(default = "default_most", skip_serializing_if = "is_default_most")]
    most: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    each: Option<TermKey>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    only_older: Option<Week>,
}

fn default_by() -> CanonicalOrder {
    CanonicalOrder::Policy(Policy::default())
}

fn default_most() -> u64 {
    1
}

fn is_default_most(most: &u64) -> bool {
    *most == default_most()
}

impl Serialize for Canonical {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Canonical { by: CanonicalOrder::Policy(policy), most: 1, each: None, only_older: None } => {
                policy.serialize(serializer)
            }
            Canonical { by, most, each, only_older } => {
                let (by, each) = (by.clone(), each.clone());
                CanonicalFields { by, most: *most, each, only_older: *only_older }.serialize(serializer)
            }
        }
    }
}

impl<'de> Deserialize<'de> for Canonical {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Canonical, D::Error> {
        struct Canonicals;

        impl<'de> Visitor<'de> for Canonicals {
            type Value = Canonical;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the name of a policy, or a table with `by`, `most`, `each` and `only-older`")
            }

            fn visit_str<E: serde::de::Error>(self, name: &str) -> Result<Canonical, E> {
                match Policy::of_name(name) {
                    Some(policy) => Ok(CanonicalOrder::Policy(policy).into()),
                    None => Err(E::unknown_variant(name, &Policy::NAMES)),
                }
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Canonical, A::Error> {
                let CanonicalFields { by, most, each, only_older } =
                    CanonicalFields::deserialize(MapAccessDeserializer::new(map))?;
                if by == CanonicalOrder::Policy(Policy::PerHost)
                    && each.as_ref().is_some_and(|key| *key != TermKey::Host)
                {
                    return Err(A::Error::custom(
                        "`by = \"per-host\"` keeps one document of each host, and `each` names other groups: choose one of the two",
                    ));
                }
                let canonical = Canonical { by, most, each, only_older };
                if only_older.is_some() && !canonical.keeps_one() {
                    return Err(A::Error::custom(
                        "`only-older` says how many documents of a cluster stay: leave out `most`, `each` and `per-host`",
                    ));
                }
                Ok(canonical)
            }
        }

        deserializer.deserialize_any(Canonicals)
    }
}

impl Serialize for CanonicalOrder {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            CanonicalOrder::Policy(policy) => policy.serialize(serializer),
            CanonicalOrder::Terms(terms) => terms.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for CanonicalOrder {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<CanonicalOrder, D::Error> {
        struct Orders;

        impl<'de> Visitor<'de> for Orders {
            type Value = CanonicalOrder;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the name of a policy, or a list of terms such as `score desc`")
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<CanonicalOrder, E> {
                text.parse().map_err(E::custom)
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<CanonicalOrder, A::Error> {
                let mut terms: Vec<Term> = Vec::new();
                while let Some(term) = list.next_element()? {
                    terms.push(term);
                }
                match terms.len() {
                    0 => Err(A::Error::custom("`by` is empty: name a policy, or columns")),
                    more if more > MOST_TERMS => {
                        Err(A::Error::custom(format!("`by` has {more} terms: allowed are {MOST_TERMS}")))
                    }
                    _ => Ok(CanonicalOrder::Terms(terms)),
                }
            }
        }

        deserializer.deserialize_any(Orders)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Serialize, Deserialize)]
    struct JobWithCanonical {
        canonical: Canonical,
    }

    fn job(text: &str) -> Result<Canonical, String> {
        toml::from_str(text).map(|job: JobWithCanonical| job.canonical).map_err(|error| error.to_string())
    }

    #[test]
    fn every_form_is_read_as_it_is_written() {
        for text in [
            "canonical = \"first\"\n",
            "canonical = \"per-host\"\n",
            "[canonical]\nby = \"longest\"\nmost = 3\n",
            "[canonical]\nby = \"first\"\nmost = 0\n",
            "[canonical]\nby = \"longest\"\nonly-older = \"2024-02-01\"\n",
            "[canonical]\nby = [\"score desc\", \"length desc\", 'source in [\"a\",\"b, c\"]', \"`my column`\"]\neach = \"meta.source\"\n",
        ] {
            let canonical = job(text).unwrap();
            assert_eq!(toml::to_string(&JobWithCanonical { canonical }).unwrap(), text);
        }
        let of = |text: &str| job(text).unwrap();
        assert_eq!(of("canonical = { by = \"score desc, source in [1, \\\"b\\\"]\" }").columns(), ["score", "source"]);
        assert_eq!(
            of("canonical = { each = \"a\" }"),
            Canonical { each: Some(TermKey::Column("a".into())), ..Canonical::default() }
        );
        for (text, says) in [
            ("canonical = \"longest\"", "the first by the policy longest"),
            ("canonical = { by = \"day, flag desc\", most = 2 }", "the first 2 by day, flag desc"),
        ] {
            assert_eq!(of(text).to_string(), says);
        }
        assert!(of("canonical = \"root\"").is_root() && !of("canonical = { by = \"root\", most = 2 }").is_root());
    }

    #[test]
    fn mistakes_say_what_is_allowed() {
        for (text, wanted) in [
            ("canonical = \"best\"", "unknown variant `best`, expected one of `first`, `longest`"),
            ("canonical = { by = [] }", "`by` is empty"),
            (
                "canonical = { by = [\"score down\"] }",
                "`score down`: allowed are NAME, NAME asc, NAME desc and NAME in [...]",
            ),
            ("canonical = { by = [\"a in [b]\"] }", "`a in [b]`: the values stand in brackets as JSON"),
            ("canonical = { by = [\"a in [[1]]\"] }", "allowed are texts, numbers and booleans"),
            ("canonical = { by = [\"\"] }", "a term without a name"),
            ("canonical = { by = [\"host\"] }", "`host` is for `each`"),
            ("canonical = { of = 1 }", "unknown field `of`"),
            ("canonical = { only-older = \"2024-02-01\", most = 2 }", "leave out `most`, `each` and `per-host`"),
            (
                "canonical = { only-older = \"2024-02-01\", by = \"per-host\" }",
                "leave out `most`, `each` and `per-host`",
            ),
            ("canonical = { only-older = \"soon\" }", "YYYY-MM-DD"),
            ("canonical = { most = -1 }", "most"),
            (
                "canonical = { by = [\"a\",\"a\",\"a\",\"a\",\"a\",\"a\",\"a\",\"a\",\"a\"] }",
                "has 9 terms: allowed are 8",
            ),
            ("canonical = 3", "the name of a policy, or a table"),
        ] {
            let error = job(text).unwrap_err();
            assert!(error.contains(wanted), "{text}: {error}");
        }
    }

    #[test]
    fn all_of_a_batch_stay_that_duplicate_nothing_older() {
        let canonical = job("canonical = { by = \"longest\", only-older = \"2024-02-01\" }").unwrap();
        let since = canonical.only_older.unwrap().days();
        let order = |crawled: i32, words: u64| {
            let mut order = Vec::new();
            let document = DocumentFacts { crawled, words, ..DocumentFacts::default() };
            canonical.comparison(&[]).write_order(&document, &[], &mut order);
            assert_eq!(canonical.order_bytes(), Some(order.len()));
            order
        };
        let words_that_stay = |documents: &[(i32, u64)]| {
            let mut orders: Vec<_> =
                documents.iter().map(|&(batch, words)| (order(since + batch, words), words)).collect();
            orders.sort_unstable();
            let mut chosen = ChosenSoFar::new(&canonical);
            orders.into_iter().filter(|(order, _)| chosen.stays(order)).map(|(_, words)| words).collect::<Vec<_>>()
        };
        // Of batches before, the longest one of all of them.
        assert_eq!(words_that_stay(&[(-1, 1), (-9, 2), (-2, 3), (0, 4), (5, 5)]), [3]);
        assert_eq!(words_that_stay(&[(5, 9), (0, 1), (0, 2), (1, 8), (0, 1)]), [2, 1, 1]);
        assert_eq!(words_that_stay(&[(7, 1), (7, 2)]), [2, 1]);
        assert!(canonical.to_string().ends_with("from 2024-02-01 on, all that duplicate nothing of an older batch"));
        assert!(canonical.table_columns().contains(&"crawled") && !canonical.is_root());
    }
}
