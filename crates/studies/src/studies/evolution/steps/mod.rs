//! How clusters develop over the weeks of a store (Fetterly 2004, section 3).
//!
//! In reading order:
//!
//! - `cluster_map`: the cluster of every document in one committed week;
//! - `retention`: how much of each cluster of the first week is still together in a later week;
//! - `births`: the clusters that new URLs join, and the clusters that disappeared URLs leave;
//! - `host_clusters`: the number of clusters of each host;
//! - `change_amounts`: how much pages change from download to download.

mod births;
mod change_amounts;
mod cluster_map;
mod host_clusters;
mod retention;

pub use self::births::{births, deaths};
pub use self::change_amounts::change_amounts;
pub use self::cluster_map::cluster_map;
pub use self::host_clusters::host_clusters;
pub use self::retention::retention;
