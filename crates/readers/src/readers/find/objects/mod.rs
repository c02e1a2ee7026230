//! Inputs in object stores: `s3://`, `gs://`, `az://`, files of web servers, and `hf://datasets/`.
//!
//! The code is in `cloud`, and for datasets of Hugging Face in `hugging_face`: both are built with
//! the feature `cloud`. Without the feature every URL is an error that names it.

#[cfg(feature = "cloud")]
mod cloud;
#[cfg(feature = "cloud")]
mod hugging_face;

#[cfg(feature = "cloud")]
pub use self::cloud::{find, open};

/// Schemes of object stores and web servers.
const SCHEMES: [&str; 10] = ["s3", "s3a", "gs", "az", "azure", "abfs", "abfss", "http", "https", "hf"];

/// Whether an item is the URL of an object: one of the schemes above.
pub fn is_url(item: &str) -> bool {
    item.split_once("://").is_some_and(|(scheme, _)| SCHEMES.contains(&scheme))
}

/// Finds the objects that URLs name.
///
/// # Errors
/// Always: this program is built without object stores.
#[cfg(not(feature = "cloud"))]
pub fn find(items: &[&String], _: &mut Vec<crate::readers::find::found::FoundInput>) -> anyhow::Result<()> {
    // The message below shows a URL.
    items.iter().try_for_each(|item| crate::objects::refuse_secrets(item))?;
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
