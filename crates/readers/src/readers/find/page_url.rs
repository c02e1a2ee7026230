//! The URL of a file that is one page, by its path.

use crate::reading::Reading;

/// Makes the URL of an HTML file from its path below the named folder: after `base-url`, or as
/// HOST/PATH, the layout of wget. `None` if there is neither.
pub fn page_url(relative: &str, reading: &Reading) -> Option<String> {
    if let Some(base) = &reading.base_url {
        return Some(format!("{}/{}", base.trim_end_matches('/'), escaped(relative, false)));
    }
    let (host, path) = relative.split_once('/')?;
    let name = host.split(':').next().unwrap_or_default();
    let is_host = name.contains('.') && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._".contains(&byte));
    // wget writes the query of a URL into the name of the file.
    is_host.then(|| format!("http://{host}/{}", escaped(path, true)))
}

/// Escapes a path for a URL; `?` is kept if the path ends in a query.
fn escaped(path: &str, query: bool) -> String {
    let mut url = String::with_capacity(path.len());
    for byte in path.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=:@/".contains(&byte) || query && byte == b'?' {
            url.push(char::from(byte));
        } else {
            url.push_str(&format!("%{byte:02X}"));
        }
    }
    url
}
