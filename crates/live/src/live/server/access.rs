//! Who may send requests to a server: those with its token, or programs of this machine; and
//! whether they are encrypted.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use anyhow::{Result, bail};
use hyper::header::{AUTHORIZATION, HOST, HeaderMap, HeaderValue, ORIGIN};
use ring::digest::{Digest, SHA256, digest};

use super::tls::Tls;
use crate::live::refusal::Refusal;

/// Who may send requests.
#[derive(Clone, Debug, Default)]
pub struct Access {
    /// The SHA-256 of the token that each request must have; of any token if none is given.
    token: Option<[u8; 32]>,
    tls: Option<Arc<Tls>>,
    /// Whether other machines may send requests that are not encrypted.
    is_plain_allowed: bool,
}

impl Access {
    /// Requests with this token; without one, those of this machine.
    ///
    /// # Errors
    /// If the token is shorter than 16 bytes or has others than printable characters of ASCII.
    pub fn new(token: Option<&str>) -> Result<Access> {
        if let Some(token) = token
            && (token.len() < 16 || !token.bytes().all(|byte| byte.is_ascii_graphic()))
        {
            bail!("the token has {} bytes: it must have 16 at least, all printable ASCII without blanks", token.len());
        }
        Ok(Access { token: token.map(sha256), ..Access::default() })
    }

    /// The same, encrypted.
    #[must_use]
    pub fn with_tls(self, tls: Tls) -> Access {
        Access { tls: Some(Arc::new(tls)), ..self }
    }

    /// The same, from other machines without encryption, too: behind a proxy that has it.
    #[must_use]
    pub fn with_plain(self) -> Access {
        Access { is_plain_allowed: true, ..self }
    }

    /// The certificate and key; `None` if requests are not encrypted.
    pub(super) fn tls(&self) -> Option<Arc<Tls>> {
        self.tls.clone()
    }

    /// Whether each request must have a token.
    pub(super) fn needs_token(&self) -> bool {
        self.token.is_some()
    }

    /// `http` or `https`.
    pub fn scheme(&self) -> &'static str {
        if self.tls.is_some() { "https" } else { "http" }
    }

    /// Checks that a server may listen at an address.
    ///
    /// # Errors
    /// If other machines reach the address, and no token is needed, or requests are not encrypted.
    pub fn check(&self, address: SocketAddr) -> Result<()> {
        if address.ip().is_loopback() {
            return Ok(());
        }
        if self.token.is_none() {
            bail!(
                "--listen {address}: without --token-file only an address of this machine is allowed, such as 127.0.0.1:7744"
            );
        }
        if self.tls.is_none() && !self.is_plain_allowed {
            bail!(
                "--listen {address}: others on the network could read the token and the documents; give --tls-cert and \
                 --tls-key, or --without-tls if a proxy encrypts"
            );
        }
        Ok(())
    }

    /// Why a request is refused; `None` if it is not.
    pub(super) fn refusal(&self, headers: &HeaderMap) -> Option<Refusal> {
        let Some(wanted) = &self.token else {
            let is_of_this_machine = headers.get(HOST).is_none_or(is_loopback);
            let is_refused = headers.contains_key(ORIGIN) || !is_of_this_machine;
            let text = "requests of web pages, or for other hosts than this machine, need a token: start nigh with --token-file";
            return is_refused.then(|| Refusal { status: 403, text: text.to_owned() });
        };
        let given = headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok());
        let given = given.and_then(|value| value.strip_prefix("Bearer ")).unwrap_or_default();
        // Hashes of one length, compared as a whole: the time depends on no byte of the token.
        let differs = sha256(given).iter().zip(wanted).fold(0, |differs, (a, b)| differs | (a ^ b));
        let text = "the header `Authorization: Bearer TOKEN` with the token of the server is missing";
        (std::hint::black_box(differs) != 0).then(|| Refusal { status: 401, text: text.to_owned() })
    }
}

fn sha256(text: &str) -> [u8; 32] {
    let digest: Digest = digest(&SHA256, text.as_bytes());
    let mut bytes = [0; 32];
    bytes.copy_from_slice(digest.as_ref());
    bytes
}

/// Whether a `Host` is a name or an address of this machine.
pub fn is_loopback(host: &HeaderValue) -> bool {
    let host = host.to_str().unwrap_or("?");
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => host.rsplit_once(':').map_or(host, |(name, _)| name),
    };
    name.eq_ignore_ascii_case("localhost") || name.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_requests_with_the_token_or_of_this_machine_are_allowed() {
        let headers = |pairs: &[(&'static str, &'static str)]| -> HeaderMap {
            let pair = |(name, value): &(&'static str, &'static str)| {
                (hyper::header::HeaderName::from_static(name), HeaderValue::from_static(value))
            };
            pairs.iter().map(pair).collect()
        };
        let status = |access: &Access, pairs: &[(&'static str, &'static str)]| {
            access.refusal(&headers(pairs)).map_or(200, |refusal| refusal.status)
        };
        let open = Access::new(None).unwrap();
        for (host, wanted) in [
            ("127.0.0.1:7744", 200),
            ("localhost", 200),
            ("[::1]:80", 200),
            ("evil.example", 403),
            ("127.0.0.1.evil.example:80", 403),
            ("10.0.0.1", 403),
        ] {
            assert_eq!(status(&open, &[("host", host)]), wanted, "{host}");
        }
        assert_eq!(status(&open, &[("host", "localhost"), ("origin", "http://localhost")]), 403);
        let closed = Access::new(Some("0123456789abcdef")).unwrap();
        assert_eq!(status(&closed, &[("authorization", "Bearer 0123456789abcdef"), ("origin", "x")]), 200);
        for wrong in ["Bearer 0123456789abcdeg", "Bearer ", "0123456789abcdef", "Bearer 0123456789abcdef0"] {
            assert_eq!(status(&closed, &[("authorization", wrong)]), 401, "{wrong}");
        }
        assert_eq!(status(&closed, &[]), 401);
        assert!(Access::new(Some("short")).is_err());
        let anywhere: SocketAddr = "0.0.0.0:1".parse().unwrap();
        assert!(open.check(anywhere).unwrap_err().to_string().contains("--token-file"));
        assert!(open.clone().with_plain().check(anywhere).unwrap_err().to_string().contains("--token-file"));
        assert!(closed.check(anywhere).unwrap_err().to_string().contains("--tls-cert"));
        closed.with_plain().check(anywhere).unwrap();
    }
}
