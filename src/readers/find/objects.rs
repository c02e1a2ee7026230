//! Inputs in object stores: `s3://`, `gs://`, `az://`, and files of web servers.
//!
//! Built only with the feature `cloud`; without it every URL is an error that says so. The work is in `cloud`.

#[cfg(feature = "cloud")]
pub use super::cloud::{find, open};

/// Schemes of object stores and web servers.
const SCHEMES: [&str; 9] = ["s3", "s3a", "gs", "az", "azure", "abfs", "abfss", "http", "https"];

/// Whether an item is the URL of an object.
pub fn is_url(item: &str) -> bool {
    item.split_once("://").is_some_and(|(scheme, _)| SCHEMES.contains(&scheme))
}

/// Finds the objects that some URLs name.
///
/// # Errors
/// Always: this program is built without object stores.
#[cfg(not(feature = "cloud"))]
pub fn find(items: &[&String], _: &mut Vec<super::found::FoundInput>) -> anyhow::Result<()> {
    anyhow::bail!("cannot read {}: this nigh is built without the feature `cloud`", items[0])
}

/// Opens an object.
///
/// # Errors
/// Always: this program is built without object stores.
#[cfg(not(feature = "cloud"))]
pub fn open(name: &str, _: &str, _: &str, _: u64) -> anyhow::Result<Box<dyn std::io::Read + Send>> {
    anyhow::bail!("cannot read {name}: this nigh is built without the feature `cloud`")
}
