//! How clusters develop over the weeks of a store (Fetterly 2004, section 3).
//!
//! In reading order: `cluster_map` (the clusters of one committed week), `retention`, `births` (and deaths),
//! `host_clusters` (clusters of each host), `change_amounts` (how much pages change from download to download).

mod births;
mod change_amounts;
mod cluster_map;
mod host_clusters;
mod retention;

pub use self::births::{births, deaths};
pub use self::change_amounts::change_amounts;
pub use self::cluster_map::{COULD_NOT_DOWNLOAD, ClusterMap, ClusterOfDoc, cluster_map};
pub use self::host_clusters::host_clusters;
pub use self::retention::retention;
