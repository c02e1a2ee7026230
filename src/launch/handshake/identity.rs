//! How the processes of a run know each other.

use std::io::Read;
use std::net::SocketAddr;
use std::path::PathBuf;

use anyhow::{Context, Result, ensure};

use crate::launch::wire::Keys;

/// What shows that a process is of the run.
pub(crate) type Secret = [u8; 16];

/// Known to the processes of one run only.
#[derive(Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Secrets {
    /// What the connecting process shows.
    pub(crate) hello: Secret,
    /// What the accepting process shows.
    pub(crate) welcome: Secret,
}

impl Secrets {
    /// New secrets from the system's generator.
    ///
    /// # Errors
    /// Where the system has none.
    pub fn generate() -> Result<Secrets> {
        let mut bytes = [0; 32];
        let mut random = std::fs::File::open("/dev/urandom").context("cannot open the system's random numbers")?;
        random.read_exact(&mut bytes).context("cannot read the system's random numbers")?;
        let mut secrets = Secrets { hello: [0; 16], welcome: [0; 16] };
        secrets.hello.copy_from_slice(&bytes[..16]);
        secrets.welcome.copy_from_slice(&bytes[16..]);
        Ok(secrets)
    }
}

/// How the processes of a run know each other, as a process is told.
#[derive(Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Identity {
    /// By secrets, over plain sockets: on loopback alone.
    Secrets(Secrets),
    /// By the certificates of a pool, over TLS. Each process reads its own files of this folder; no key is sent.
    Keys(PathBuf),
}

impl Identity {
    /// What process `me` shows, read and checked.
    ///
    /// # Errors
    /// Names the file of a key or certificate that does not hold.
    pub fn credentials(&self, me: usize) -> Result<Credentials> {
        match self {
            Identity::Secrets(secrets) => Ok(Credentials::Secrets(*secrets)),
            Identity::Keys(folder) => {
                let keys = Keys::load(folder, me);
                Ok(Credentials::Keys(keys.with_context(|| format!("process {me} cannot join by TLS"))?))
            }
        }
    }
}

/// What one process shows to others.
#[derive(Clone)]
pub enum Credentials {
    /// Secrets, over plain sockets.
    Secrets(Secrets),
    /// Its certificate, over TLS.
    Keys(Keys),
}

impl Credentials {
    pub(crate) fn secret(&self, of: fn(&Secrets) -> Secret) -> Option<Secret> {
        match self {
            Credentials::Secrets(secrets) => Some(of(secrets)),
            Credentials::Keys(_) => None,
        }
    }

    /// What anybody could read or change on the way stays on this machine.
    pub(crate) fn allow(&self, address: SocketAddr) -> Result<()> {
        ensure!(
            matches!(self, Credentials::Keys(_)) || address.ip().is_loopback(),
            "{address} is not on loopback: other machines are joined by TLS only (`nigh pool keys` makes the keys)"
        );
        Ok(())
    }
}

/// Whether the secret that is shown is the own one. All bytes are compared, whether or not the first differ: how long
/// it takes tells nothing.
pub(crate) fn same_secret(shown: Option<Secret>, own: Option<Secret>) -> bool {
    match (shown, own) {
        (Some(shown), Some(own)) => shown.iter().zip(&own).fold(0, |sum, (a, b)| sum | (a ^ b)) == 0,
        (_, None) => true,
        (None, Some(_)) => false,
    }
}
