//! The key of a URL in an index of archives: the host from its end on, then path and query,
//! `org,example)/page?a=1` (SURT).
//!
//! The rules are those of the Internet Archive's canonicalizer, as replayers and indexers have
//! them: no scheme, no `www.`, no default port, lower case, the parameters of the query in order,
//! no ids of sessions. A test compares the keys with those of the program `surt`.

use crate::text::canonical;

/// The key of a URL. One that is not of the web is its own key.
pub(super) fn surt(url: &str) -> String {
    let Some(form) = canonical(url) else { return url.trim().to_owned() };
    let rest = form.as_str().split_once("://").map_or("", |(_, rest)| rest);
    let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let (path, query) = path.split_once('?').map_or((path, None), |(path, query)| (path, Some(query)));
    // The colons of an address of version 6 are in brackets.
    let (host, port) = match host.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => (host, Some(port)),
        _ => (host, None),
    };
    let host = without_www(host).trim_matches('.');
    let mut key = host.rsplit('.').collect::<Vec<_>>().join(",").into_bytes();
    if let Some(port) = port {
        key.extend_from_slice(format!(":{port}").as_bytes());
    }
    key.push(b')');
    let path = escaped(&normalized(&unescaped(path.as_bytes()))).to_ascii_lowercase();
    let path = without_path_session(path);
    key.extend_from_slice(path.strip_suffix(b"/").filter(|path| !path.is_empty()).unwrap_or(&path));
    let query = query.map(|query| escaped(&unescaped(query.as_bytes())).to_ascii_lowercase());
    let query = query.map(without_session).filter(|query| !query.is_empty());
    if let Some(query) = query {
        // Of one argument the name counts before the value: `a=2` comes before `a-b=1`.
        let mut arguments: Vec<Vec<&[u8]>> = query
            .split(|byte| *byte == b'&')
            .map(|argument| argument.splitn(2, |byte| *byte == b'=').collect())
            .collect();
        arguments.sort();
        let arguments: Vec<Vec<u8>> = arguments.iter().map(|argument| argument.join(&b'=')).collect();
        key.push(b'?');
        key.extend_from_slice(&arguments.join(&b'&'));
    }
    String::from_utf8_lossy(&key).into_owned()
}

/// A host without `www.`, `www2.` and the like.
fn without_www(host: &str) -> &str {
    let after = host.strip_prefix("www").map(|rest| rest.trim_start_matches(|digit: char| digit.is_ascii_digit()));
    after.and_then(|rest| rest.strip_prefix('.')).unwrap_or(host)
}

/// Bytes without percent-encoding, also of what was encoded twice.
fn unescaped(bytes: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    loop {
        let (mut decoded, mut rest) = (Vec::with_capacity(bytes.len()), &bytes[..]);
        while let Some((first, after)) = rest.split_first() {
            let digits = after.get(..2).filter(|digits| *first == b'%' && digits.iter().all(u8::is_ascii_hexdigit));
            let value = digits.and_then(|digits| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok());
            decoded.push(value.unwrap_or(*first));
            rest = if value.is_some() { &after[2..] } else { after };
        }
        if decoded.len() == bytes.len() {
            return decoded;
        }
        bytes = decoded;
    }
}

/// Bytes with percent-encoding of blanks, controls, `#`, `%` and what is not ASCII.
fn escaped(bytes: &[u8]) -> Vec<u8> {
    let escape = |byte: &u8| match byte {
        b'#' | b'%' | 0..=b' ' | 0x7f.. => format!("%{byte:02X}").into_bytes(),
        byte => vec![*byte],
    };
    bytes.iter().flat_map(escape).collect()
}

/// A path without empty segments, `.` and `..`.
fn normalized(path: &[u8]) -> Vec<u8> {
    let mut kept: Vec<&[u8]> = Vec::new();
    for segment in path.split(|byte| *byte == b'/').skip(1) {
        match segment {
            b"." => {}
            b".." if !kept.is_empty() => _ = kept.pop(),
            segment => kept.push(segment),
        }
    }
    let mut path = vec![b'/'];
    if let Some((last, before)) = kept.split_last() {
        for segment in before.iter().filter(|segment| !segment.is_empty()) {
            path.extend_from_slice(segment);
            path.push(b'/');
        }
        path.extend_from_slice(last);
    }
    path
}

/// A path of ASP.NET without the id of a session: `/(24 characters)/page.aspx`, or `/(s(24
/// characters))/page.aspx`.
fn without_path_session(path: Vec<u8>) -> Vec<u8> {
    let is_id = |bytes: &[u8]| bytes.len() == 24 && bytes.iter().all(u8::is_ascii_alphanumeric);
    let is_group = |group: &[u8]| {
        let inner = group.strip_prefix(b"(").and_then(|group| group.strip_suffix(b")")).unwrap_or_default();
        let of_letters = inner.len().is_multiple_of(27)
            && !inner.is_empty()
            && inner.chunks(27).all(|part| {
                part[0].is_ascii_alphabetic() && part[1] == b'(' && part[26] == b')' && is_id(&part[2..26])
            });
        is_id(inner) || of_letters
    };
    let segments: Vec<&[u8]> = path.split(|byte| *byte == b'/').collect();
    for place in (1..segments.len().saturating_sub(1)).rev() {
        let rest = segments[place + 1..].join(&b'/');
        let is_page = memchr::memmem::find(&rest, b".aspx").is_some_and(|at| at > 0);
        if is_group(segments[place]) && is_page {
            return [&segments[..place], &segments[place + 1..]].concat().join(&b'/');
        }
    }
    path
}

/// A query, lower case, without the ids of sessions.
fn without_session(mut query: Vec<u8>) -> Vec<u8> {
    let alphanumeric =
        |bytes: &[u8], count| bytes.len() >= count && bytes[..count].iter().all(u8::is_ascii_alphanumeric);
    let alphabetic = |bytes: &[u8], count| bytes.len() >= count && bytes[..count].iter().all(u8::is_ascii_alphabetic);
    let value = |bytes: &[u8]| bytes.iter().take_while(|byte| **byte != b'&').count();
    // The length of what follows a name, if that is the id of a session.
    let id = |name: &[u8], rest: &[u8]| match name {
        b"aspsessionid" => {
            (alphabetic(rest, 8) && rest.get(8) == Some(&b'=') && alphabetic(&rest[9..], 24)).then_some(33)
        }
        b"cfid=" => {
            let of_id = value(rest);
            let token = rest[of_id..].strip_prefix(b"&cftoken=").filter(|_| of_id > 0).map(value)?;
            (token > 0).then_some(of_id + 9 + token)
        }
        _ => alphanumeric(rest, 32).then_some(32),
    };
    for name in [&b"jsessionid="[..], b"phpsessid=", b"sid=", b"aspsessionid", b"cfid="] {
        let found = memchr::memmem::rfind_iter(&query, name).find_map(|at| {
            let after = at + name.len();
            let end = after + id(name, &query[after..])?;
            matches!(query.get(end), None | Some(b'&')).then_some((at, end))
        });
        if let Some((at, end)) = found {
            let rest = query.get(end + 1..).unwrap_or_default();
            query = [&query[..at], rest].concat();
        }
    }
    query
}

#[cfg(test)]
mod tests {
    use super::*;

    /// URLs and what the program `surt` 0.3.1 makes of them.
    const KNOWN: [(&str, &str); 20] = [
        ("http://www.example.org/", "org,example)/"),
        ("https://WWW2.Example.org:443/Path/", "org,example)/path"),
        ("http://example.org:8080/a/../b/./c//d?", "org,example:8080)/b/c/d"),
        ("http://example.org/?b=2&a=1&a=0", "org,example)/?a=0&a=1&b=2"),
        ("http://example.org/a?a-b=1&a=2&a", "org,example)/a?a&a=2&a-b=1"),
        ("http://example.org/caf%C3%A9?q=%C3%A9", "org,example)/caf%c3%a9?q=%c3%a9"),
        ("http://example.org/café", "org,example)/caf%c3%a9"),
        ("http://example.org/a%2520b%20c", "org,example)/a%20b%20c"),
        ("http://user:pass@example.org/x#part", "org,example)/x"),
        ("http://bücher.example/", "example,xn--bcher-kva)/"),
        ("http://192.0.2.1/x", "1,2,0,192)/x"),
        ("http://example.org/100%", "org,example)/100%25"),
        ("http://example.org/?jsessionid=0123456789abcdefghijklemopqrstuv", "org,example)/"),
        ("http://example.org/?a=1&PHPSESSID=0123456789abcdefghijklemopqrstuv&b=2", "org,example)/?a=1&b=2"),
        ("http://example.org/?sid=9682993c8daa2c5497996114facdc805&x=y", "org,example)/?x=y"),
        ("http://example.org/?ASPSESSIONIDAQBSDSRT=EOHBLBDDPFCLHKPGGKLILNAM&x=y", "org,example)/?x=y"),
        ("http://example.org/?CFID=304838&CFTOKEN=39942159&x=y", "org,example)/?x=y"),
        ("http://example.org/(s(4hqa0555fwsecu455xqckv45))/mileg.aspx", "org,example)/mileg.aspx"),
        ("http://example.org/(4hqa0555fwsecu455xqckv45)/mileg.aspx", "org,example)/mileg.aspx"),
        ("urn:pageinfo:1", "urn:pageinfo:1"),
    ];

    #[test]
    fn keys_are_those_of_other_programs() {
        for (url, key) in KNOWN {
            assert_eq!(surt(url), key, "{url}");
        }
    }
}
