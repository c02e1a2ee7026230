//! The identity of processes: how they authenticate each other.

use std::io::Read;
use std::net::SocketAddr;
use std::path::PathBuf;

use anyhow::{Context, Result, ensure};

use crate::launch::wire::TlsKeys;

/// A random number that only the processes of a run know.
pub(crate) type Secret = [u8; 16];

/// The secrets of a run, one for each direction.
#[derive(Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Secrets {
    /// The secret that the connecting process sends.
    pub(crate) hello: Secret,
    /// The secret that the accepting process sends.
    pub(crate) welcome: Secret,
}

impl Secrets {
    /// New secrets from the system's random numbers.
    ///
    /// # Errors
    /// `/dev/urandom` cannot be read.
    pub fn generate() -> Result<Secrets> {
        let mut bytes = [0; 32];
        let mut random = std::fs::File::open("/dev/urandom").context("cannot open the system's random numbers")?;
        random.read_exact(&mut bytes).context("cannot read the system's random numbers")?;
        let mut secrets = Secrets { hello: [0; 16], welcome: [0; 16] };
        secrets.hello.copy_from_slice(&bytes[..16]);
        secrets.welcome.copy_from_slice(&bytes[16..]);
        Ok(secrets)
    }

    /// Refuses an address that secrets may not be used with: plain sockets must stay on this
    /// machine.
    pub(crate) fn allow(address: SocketAddr) -> Result<()> {
        ensure!(
            address.ip().is_loopback(),
            "{address} is not on loopback: other machines are joined by TLS only (`nigh pool keys` makes the keys)"
        );
        Ok(())
    }
}

/// How the processes of a run authenticate each other.
#[derive(Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Identity {
    /// By secrets, over plain sockets: on loopback only.
    Secrets(Secrets),
    /// By the certificates of a pool, over TLS. Each process reads its own files in this folder; no
    /// key is sent.
    Keys(PathBuf),
}

impl Identity {
    /// The credentials of process `me`, read and checked.
    ///
    /// # Errors
    /// A key or certificate is missing or invalid; the message names its file.
    pub fn credentials(&self, me: usize) -> Result<Credentials> {
        match self {
            Identity::Secrets(secrets) => Ok(Credentials::Secrets(*secrets)),
            Identity::Keys(folder) => {
                let keys = TlsKeys::load(folder, me);
                Ok(Credentials::Keys(keys.with_context(|| format!("process {me} cannot join by TLS"))?))
            }
        }
    }
}

/// The credentials of one process.
#[derive(Clone)]
pub enum Credentials {
    /// Secrets, over plain sockets.
    Secrets(Secrets),
    /// Its key and certificate, over TLS.
    Keys(TlsKeys),
}

impl Credentials {
    pub(crate) fn secret(&self, of: fn(&Secrets) -> Secret) -> Option<Secret> {
        match self {
            Credentials::Secrets(secrets) => Some(of(secrets)),
            Credentials::Keys(_) => None,
        }
    }

    /// Refuses an address that these credentials may not be used with.
    pub(crate) fn allow(&self, address: SocketAddr) -> Result<()> {
        match self {
            Credentials::Secrets(_) => Secrets::allow(address),
            Credentials::Keys(_) => Ok(()),
        }
    }
}

/// Whether a received secret is the expected one. Always compares all bytes, so that the time
/// reveals nothing.
pub(crate) fn same_secret(received: Option<Secret>, expected: Option<Secret>) -> bool {
    match (received, expected) {
        (Some(received), Some(expected)) => received.iter().zip(&expected).fold(0, |sum, (a, b)| sum | (a ^ b)) == 0,
        (_, None) => true,
        (None, Some(_)) => false,
    }
}
