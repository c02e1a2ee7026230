//! What folders and globs hold besides inputs, counted so that the user can see it.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt;

use nigh_kernels::structures::CompactSort;

/// Kinds that are named.
const NAMED: usize = 6;

/// What folders and globs hold besides inputs, by kind: an ending such as `*.txt`, or another
/// reason.
///
/// ```
/// use nigh_readers::readers::LeftOut;
/// let mut left_out = LeftOut::default();
/// for name in ["a.txt", "b.txt", "c.md"] {
///     left_out.add(format!("*.{}", name.rsplit_once('.').unwrap().1), name);
/// }
/// assert_eq!(left_out.to_string(), "*.txt: 2 (a.txt and others), *.md: 1 (c.md)");
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LeftOut(BTreeMap<String, CountedKind>);

/// The files of one kind.
#[derive(Clone, Debug, Default, PartialEq)]
struct CountedKind {
    count: u64,
    /// The name of the first one.
    first: String,
}

impl LeftOut {
    /// Counts a file of this kind.
    pub fn add(&mut self, kind: impl Into<String>, name: &str) {
        let counted = self.0.entry(kind.into()).or_default();
        counted.count += 1;
        if counted.count == 1 {
            counted.first = name.to_owned();
        }
    }

    /// Whether nothing was left out.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Display for LeftOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut kinds: Vec<(&String, &CountedKind)> = self.0.iter().collect();
        kinds.sort_items_by_key(|(_, counted)| Reverse(counted.count));
        for (place, (kind, CountedKind { count, first })) in kinds.iter().take(NAMED).enumerate() {
            let separator = if place == 0 { "" } else { ", " };
            let others = if *count == 1 { "" } else { " and others" };
            write!(f, "{separator}{kind}: {count} ({first}{others})")?;
        }
        match kinds.iter().skip(NAMED).map(|(_, counted)| counted.count).sum::<u64>() {
            0 => Ok(()),
            rest => write!(f, ", others: {rest}"),
        }
    }
}
