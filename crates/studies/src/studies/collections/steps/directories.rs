//! Directories: the prefixes of URLs that end in a slash.

use xxhash_rust::xxh3::xxh3_64;

/// Directories of a URL, at most: some URLs have thousands of slashes.
const MOST: usize = 32;

/// A directory of a URL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Directory {
    /// A hash of the text.
    pub hash: u64,
    /// The hash of the directory around it, or 0.
    pub parent: u64,
    /// The hash of the next directory of the URL within it, or 0.
    pub within: u64,
    /// The bytes of the text, from the beginning of the URL.
    pub length: usize,
}

/// The directories of a canonical URL, the outermost first: that is the whole host. A query has
/// none.
pub fn directories(url: &str) -> impl Iterator<Item = Directory> {
    let host = url.find("://").map_or(0, |at| at + "://".len());
    let path = &url[..url.find(['?', '#']).unwrap_or(url.len())];
    let slashes = path.match_indices('/').map(|(at, _)| at).filter(move |at| *at >= host).take(MOST);
    let mut hashed = slashes.map(move |at| (directory_hash(&url[..=at]), at + 1)).peekable();
    let mut parent = 0;
    std::iter::from_fn(move || {
        let (hash, length) = hashed.next()?;
        let within = hashed.peek().map_or(0, |(within, _)| *within);
        Some(Directory { hash, parent: std::mem::replace(&mut parent, hash), within, length })
    })
}

/// The directories of a canonical URL as texts, the outermost first; those of a directory end with
/// itself.
pub fn directory_texts(url: &str) -> impl Iterator<Item = &str> {
    directories(url).filter_map(|of| url.get(..of.length))
}

/// The hash of a directory.
pub fn directory_hash(text: &str) -> u64 {
    xxh3_64(text.as_bytes()).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_begin_with_the_host_and_end_before_the_query() {
        let of = |url: &'static str| directories(url).map(|of| &url[..of.length]).collect::<Vec<_>>();
        assert_eq!(of("http://a.example/"), ["http://a.example/"]);
        assert_eq!(
            of("http://[::1]:8080/a/b/c.html?d=/e/"),
            ["http://[::1]:8080/", "http://[::1]:8080/a/", "http://[::1]:8080/a/b/"]
        );
        let parents: Vec<u64> = directories("http://a.example/b/c").map(|of| of.parent).collect();
        assert_eq!(parents, [0, directory_hash("http://a.example/")]);
        let within: Vec<u64> = directories("http://a.example/b/c").map(|of| of.within).collect();
        assert_eq!(within, [directory_hash("http://a.example/b/"), 0]);
        assert_eq!(directories(&format!("http://a.example{}", "/".repeat(5000))).count(), MOST);
        assert_eq!(directories("").count(), 0);
    }
}
