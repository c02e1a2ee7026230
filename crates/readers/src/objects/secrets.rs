//! URLs with a secret in them: a password before the host, or a signature in the query.
//!
//! nigh writes the names of inputs into tables, jobs and messages, and publishes them with a store.
//! So it refuses such a URL, and shows it without the secret. Credentials come from the
//! environment, which is written nowhere.

use std::borrow::Cow;

use anyhow::bail;

/// Schemes of Azure, in which `CONTAINER@ACCOUNT` comes before the path.
const WITH_CONTAINER: [&str; 4] = ["az", "azure", "abfs", "abfss"];
/// Parts of the query that are secrets, in lower case: signatures of S3, Google and Azure, and
/// tokens.
const SECRETS: [&str; 9] = [
    "x-amz-signature",
    "x-amz-security-token",
    "x-amz-credential",
    "x-goog-signature",
    "x-goog-credential",
    "signature",
    "sig",
    "token",
    "access_token",
];

/// The parts of a URL: what is before the host, and the query. Both may be absent.
struct UrlParts<'a> {
    scheme: &'a str,
    user: Option<&'a str>,
    /// From the host up to the query.
    rest: &'a str,
    query: Option<&'a str>,
}

impl UrlParts<'_> {
    fn of(url: &str) -> Option<UrlParts<'_>> {
        let (scheme, after) = url.split_once("://")?;
        let (front, query) = after.split_once('?').map_or((after, None), |(front, query)| (front, Some(query)));
        let end = front.find(['/', '#']).unwrap_or(front.len());
        let (user, rest) = match front[..end].rfind('@') {
            Some(at) => (Some(&front[..at]), &front[at + 1..]),
            None => (None, front),
        };
        Some(UrlParts { scheme, user, rest, query })
    }

    /// Whether a user or a password is before the host; a container of Azure is neither.
    fn has_user(&self) -> bool {
        self.user.is_some_and(|user| user.contains(':') || !WITH_CONTAINER.contains(&self.scheme))
    }

    fn has_signature(&self) -> bool {
        let names = self.query.unwrap_or_default().split(['&', ';']).map(|pair| pair.split('=').next().unwrap_or(pair));
        names.into_iter().any(|name| SECRETS.contains(&name.to_ascii_lowercase().as_str()))
    }
}

/// Refuses a URL that contains a password or a signature. Text that is not a URL passes.
///
/// ```
/// use nigh_readers::objects::refuse_secrets;
///
/// assert!(refuse_secrets("https://data.example/crawl/a.warc.gz").is_ok());
/// let error = refuse_secrets("https://me:s3cret@data.example/a.warc.gz").unwrap_err().to_string();
/// assert!(error.starts_with("https://***@data.example/a.warc.gz has a user name or a password"));
/// ```
///
/// # Errors
/// The message shows the URL without its secret, and says where credentials belong.
pub fn refuse_secrets(url: &str) -> anyhow::Result<()> {
    let Some(parts) = UrlParts::of(url) else { return Ok(()) };
    let shown = without_secrets(url);
    if parts.has_user() {
        bail!(
            "{shown} has a user name or a password before the host. nigh would keep it in tables, and does not send it: take it out of \
             the URL. Credentials for buckets come from the environment (AWS_*, GOOGLE_*, AZURE_*); download a web server's protected \
             files first"
        );
    }
    if parts.has_signature() {
        bail!(
            "{shown} is a signed URL. nigh would keep the signature in tables, and cannot read such URLs: name the object as \
             s3://BUCKET/KEY, gs://BUCKET/KEY or az://CONTAINER/KEY with credentials in the environment, or download it first"
        );
    }
    Ok(())
}

/// A URL as messages show it: `***` in the place of a user and password, and `...` in the place of
/// a query.
///
/// ```
/// use nigh_readers::objects::without_secrets;
///
/// assert_eq!(without_secrets("http://me:s3cret@a.example/x?sig=abc"), "http://***@a.example/x?...");
/// assert_eq!(without_secrets("s3://bucket/a.warc.gz"), "s3://bucket/a.warc.gz");
/// ```
pub fn without_secrets(url: &str) -> Cow<'_, str> {
    let Some(parts) = UrlParts::of(url) else { return Cow::Borrowed(url) };
    let hides_query = parts.query.is_some() && (parts.has_signature() || matches!(parts.scheme, "http" | "https"));
    if !parts.has_user() && !hides_query {
        return Cow::Borrowed(url);
    }
    let user = match parts.user {
        Some(_) if parts.has_user() => "***@".to_owned(),
        Some(container) => format!("{container}@"),
        None => String::new(),
    };
    let query = match parts.query {
        Some(_) if hides_query => "?...".to_owned(),
        Some(query) => format!("?{query}"),
        None => String::new(),
    };
    Cow::Owned(format!("{}://{user}{}{query}", parts.scheme, parts.rest))
}

/// A text in which URLs have no user and no password, such as the message of a client that quotes
/// the endpoint of a service.
///
/// ```
/// use nigh_readers::objects::hide_passwords;
///
/// let message = "error sending request for url (http://key:s3cret@127.0.0.1:9000/bucket?list-type=2): refused";
/// assert_eq!(hide_passwords(message), "error sending request for url (http://***@127.0.0.1:9000/bucket?list-type=2): refused");
/// ```
pub fn hide_passwords(text: &str) -> Cow<'_, str> {
    let mut hidden = String::new();
    let mut rest = text;
    while let Some(scheme) = rest.find("://") {
        let (before, after) = rest.split_at(scheme + 3);
        let is_end =
            |c: char| c.is_whitespace() || matches!(c, '/' | '?' | '#' | '"' | '\'' | '`' | '(' | ')' | '<' | '>');
        let host = after.find(is_end).unwrap_or(after.len());
        let user = after[..host].rfind('@').filter(|at| after[..*at].contains(':'));
        hidden.push_str(before);
        rest = match user {
            Some(at) => {
                hidden.push_str("***");
                &after[at..]
            }
            None => after,
        };
    }
    hidden.push_str(rest);
    if hidden == text { Cow::Borrowed(text) } else { Cow::Owned(hidden) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_are_hidden_wherever_they_are_in_a_text() {
        for (text, wanted) in [
            ("no URL: a@b", "no URL: a@b"),
            ("http://host:80/a@b:c x", "http://host:80/a@b:c x"),
            ("az://container@account/x", "az://container@account/x"),
            ("http://u:p@h", "http://***@h"),
            ("(s3://k:p@w@h/x) and `https://u:@h?q`: http://", "(s3://***@h/x) and `https://***@h?q`: http://"),
        ] {
            assert_eq!(hide_passwords(text), wanted);
        }
    }

    #[test]
    fn passwords_and_signatures_are_refused_and_not_shown() {
        for url in [
            "http://user:s3cret@host/t.warc",
            "https://s3cret@host/",
            "s3://key:s3cret@bucket/x/*.warc.gz",
            "https://bucket.s3.amazonaws.com/x.warc?X-Amz-Date=1&X-Amz-Signature=s3cret",
            "https://account.blob.core.windows.net/c/x?sv=1&sig=s3cret",
            "s3://bucket/x?X-Amz-Signature=s3cret",
            "abfss://container:s3cret@account.dfs.core.windows.net/x",
        ] {
            let error = refuse_secrets(url).unwrap_err().to_string();
            assert!(!error.contains("s3cret") && error.contains("environment"), "{error}");
            assert!(!without_secrets(url).contains("s3cret"));
        }
    }

    #[test]
    fn names_without_secrets_pass() {
        for url in [
            "s3://bucket/a@b/x.warc.gz",
            "https://host/~user@mail/x?page=2",
            "abfss://container@account.dfs.core.windows.net/x",
            "s3://bucket/what?.warc.gz",
            "crawl/a@b:c/x.warc.gz",
        ] {
            refuse_secrets(url).unwrap();
        }
        assert_eq!(without_secrets("s3://bucket/what?.warc.gz"), "s3://bucket/what?.warc.gz");
        assert_eq!(without_secrets("https://host/x?page=2"), "https://host/x?...");
    }
}
