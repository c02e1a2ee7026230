//! URLs.
//!
//! In reading order: `canonical` (the canonical form of a URL, the links of a page, the registered
//! domain of a host), `plain` (resolves the usual forms of links faster), `patterns` (sets of URLs,
//! by URL, host or prefix).

mod canonical;
mod patterns;
mod plain;

pub use self::canonical::{CanonicalUrl, canonical, canonical_host, domain, out_links};
pub use self::patterns::{InvalidPattern, UrlPatterns};
pub use self::plain::URL_BYTES;
