//! Overlap: pages, or hosts, that share chunks of text (Shivakumar and Garcia-Molina 1998).
//!
//! A *unit* is a page or a host. Pages with one text are copies; the smallest of them, the
//! *centre*, goes on alone, as in the study.
//!
//! ```text
//! tables of a week ─▶ units      facts about pages or hosts; the copies of each text
//!                  ─▶ source     the chunks of each centre, or host, as sets
//!                  ─▶ prefix     pairs by the set join, expanded from distinct sets to units
//!                  ─▶ counting   or pairs by the study's two ways: sorted, or counted coarsely first
//!                  ─▶ follow     or pairs from a former run and what changed since
//!                  ─▶ unit_pairs each pair at the owner of its smaller unit, with the sizes of both
//!                  ─▶ groups     components of units that overlap, their sizes, and why units are in them
//! ```
//!
//! In reading order: `units`, `hosts` (units that are hosts), `read_units` (both, from the tables),
//! `copies`, `source`, `unit_pairs`, `found_pairs` (what both ways find besides), `prefix`,
//! `counting`; `text_changes`, `former`, `follow` (a later week); `groups`; `page_names` reads the
//! URLs of some pages.

mod copies;
mod counting;
mod follow;
mod former;
mod found_pairs;
mod groups;
mod hosts;
mod page_names;
mod prefix;
mod read_units;
mod source;
mod text_changes;
mod unit_pairs;
mod units;

pub use self::copies::{Copies, copies};
pub use self::counting::{COMMON_BYTES, COUNTED_BYTES, Coarse, FINGERPRINT_BYTES, PILOTED_BYTES, counted_pairs};
pub use self::follow::{FormerCounts, followed_pairs};
pub use self::former::FormerTables;
pub use self::found_pairs::{CountingWork, FamiliesAndEdges};
pub use self::groups::{Group, Groups, LARGEST, groups};
pub use self::page_names::{PageName, page_names, refusal};
pub use self::prefix::prefix_pairs;
pub use self::read_units::{hosts, pages, texts};
pub use self::source::{UnitPass, UnitSource};
pub use self::text_changes::{CentresOfWeek, TextChanges, text_changes};
pub use self::unit_pairs::{FamilyChunks, FamilyMember, PairTables, UnitPair};
pub use self::units::Units;
