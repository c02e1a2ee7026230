//! Overlap: pages, or hosts, that share chunks of text (Shivakumar and Garcia-Molina 1998).
//!
//! A *unit* is a page or a host. Pages with one text are copies; the smallest of them, the *centre*,
//! goes on alone, as in the study.
//!
//! ```text
//! tables of a week ─▶ units      facts about pages or hosts; the copies of each text
//!                  ─▶ source     the chunks of each centre, or host, as sets
//!                  ─▶ prefix     pairs by the set join, expanded from rows to units
//!                  ─▶ counting   or pairs by the study's two ways: sorted, or counted coarsely first
//!                  ─▶ follow     or pairs from a former run and what changed since
//!                  ─▶ pairs      each pair at the owner of its smaller unit, with the sizes of both
//!                  ─▶ groups     components of units that overlap, their sizes, and why units are in them
//! ```
//!
//! In reading order: `units`, `hosts` (units that are hosts), `read` (both, from the tables),
//! `copies`, `source`, `pairs`, `prefix`, `counting`; `changes`, `former`, `follow` (a later week);
//! `groups`; `names` reads the URLs of some pages.

mod changes;
mod copies;
mod counting;
mod follow;
mod former;
mod groups;
mod hosts;
mod names;
mod pairs;
mod prefix;
mod read;
mod source;
mod units;

pub use self::changes::{CentresOfWeek, TextChanges, text_changes};
pub use self::copies::{Copies, copies};
pub use self::counting::{
    COMMON_BYTES, COUNTED_BYTES, Coarse, CountingWork, FINGERPRINT_BYTES, PILOTED_BYTES, counted_pairs,
};
pub use self::follow::{FormerCounts, followed_pairs};
pub use self::former::FormerTables;
pub use self::groups::{Group, Groups, LARGEST, groups};
pub use self::names::{PageName, page_names, refusal};
pub use self::pairs::{FamilyChunks, FamilyMember, PairTables, UnitPair};
pub use self::prefix::{FamiliesAndEdges, prefix_pairs};
pub use self::read::{hosts, pages, texts};
pub use self::source::{UnitPass, UnitSource};
pub use self::units::Units;
