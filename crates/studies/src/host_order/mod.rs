//! The order of hosts: of several copies, the one on the first host stays. All studies that choose
//! between hosts choose by this order.
//!
//! ```text
//! a host that has more comes before one that has less; of the others comes first
//!     that with more links from other hosts to its pages with replicas
//!     that with more pages
//!     that of which an earlier week saw a page
//!     that whose pages change first
//!     that with the smaller hash of its name
//! ```
//!
//! | file | what |
//! |---|---|
//! | `facts` | what is known of a host, and its rank: all lines but the first |
//! | `leads` | which of two mirrors changes first |
//! | `in_common` | which of two hosts has more |
//! | `places` | the order of both |
//! | `week_hosts` | facts of some hosts, from the tables of a week, on all workers |
//!
//! What a study does not know of a host counts as equal, so that step is skipped: without tables of
//! the mirrors job no host changes first, and without weeks a host has no pages and no links. The
//! documentation of each study says what it does not know.

mod facts;
mod in_common;
mod leads;
mod places;
mod week_hosts;

pub use self::facts::{HostFacts, HostRank, host_hash};
pub use self::in_common::{PagesInCommon, RelatedHosts};
pub use self::leads::HostLeads;
pub use self::places::{HostNumber, places};
pub use self::week_hosts::HostsOfWeek;
