//! TLS 1.3 of a server: its certificate and key, which are read again when their files change.
//!
//! Certificates that are renewed every few weeks need no restart. If the files are damaged, those
//! that were read before stay, and a warning says so.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use anyhow::{Context, Result, anyhow, ensure};
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

/// The files are looked at this often.
const LOOK: Duration = Duration::from_secs(60);

/// What is called with a warning.
type Warn = Box<dyn Fn(&str) + Send + Sync>;

/// The certificate and the key of a server.
pub struct Tls {
    certificate: PathBuf,
    key: PathBuf,
    current: Mutex<Current>,
    warn: Warn,
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tls").field("certificate", &self.certificate).field("key", &self.key).finish_non_exhaustive()
    }
}

/// What was read.
struct Current {
    config: Arc<ServerConfig>,
    /// When the files were changed before they were read.
    changed: [Option<SystemTime>; 2],
    looked: Instant,
    /// Why the files as they are now are not used; empty if they are.
    fault: String,
}

impl Tls {
    /// Reads a certificate, with those that lead to its authority, and its key, from files of PEM.
    /// `warn` is called if they change later, and cannot be used.
    ///
    /// # Errors
    /// If a file cannot be read, is not what it should be, or the key is that of another
    /// certificate.
    pub fn read(certificate: &Path, key: &Path, warn: impl Fn(&str) + Send + Sync + 'static) -> Result<Tls> {
        let changed = [certificate, key].map(changed);
        let config = config(certificate, key)?;
        let current = Mutex::new(Current { config, changed, looked: Instant::now(), fault: String::new() });
        Ok(Tls { certificate: certificate.to_owned(), key: key.to_owned(), current, warn: Box::new(warn) })
    }

    /// What a connection needs that begins now.
    pub(super) fn config(&self) -> Arc<ServerConfig> {
        self.config_after(LOOK)
    }

    /// As [`Tls::config`], if the files are looked at this often.
    fn config_after(&self, look: Duration) -> Arc<ServerConfig> {
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        if current.looked.elapsed() >= look {
            current.looked = Instant::now();
            let now = [&self.certificate, &self.key].map(|path| changed(path));
            if now != current.changed {
                // While only one of both is there, the other one does not fit: they are tried
                // again.
                match config(&self.certificate, &self.key) {
                    Ok(config) => (current.config, current.changed, current.fault) = (config, now, String::new()),
                    Err(error) => {
                        let fault = format!("{error:#}: the certificate that was read before is used");
                        if fault != current.fault {
                            (self.warn)(&fault);
                            current.fault = fault;
                        }
                    }
                }
            }
        }
        current.config.clone()
    }
}

fn changed(path: &Path) -> Option<SystemTime> {
    std::fs::metadata(path).and_then(|metadata| metadata.modified()).ok()
}

fn config(certificate: &Path, key: &Path) -> Result<Arc<ServerConfig>> {
    let read =
        |path: &Path, flag: &str| std::fs::read(path).with_context(|| format!("cannot read {flag} {}", path.display()));
    let chain = read(certificate, "--tls-cert")?;
    let chain: Result<Vec<CertificateDer<'static>>, _> = CertificateDer::pem_slice_iter(&chain).collect();
    let chain = chain.map_err(|error| anyhow!("--tls-cert {} is not PEM: {error}", certificate.display()))?;
    ensure!(!chain.is_empty(), "--tls-cert {} has no certificate in PEM", certificate.display());
    let private_key = PrivateKeyDer::from_pem_slice(&read(key, "--tls-key")?)
        .map_err(|error| anyhow!("--tls-key {} is not a key in PEM: {error}", key.display()))?;
    let ring = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ServerConfig::builder_with_provider(ring).with_protocol_versions(&[&rustls::version::TLS13]);
    let builder = builder.context("ring supports TLS 1.3")?.with_no_client_auth();
    let mut config = builder
        .with_single_cert(chain, private_key)
        .map_err(|error| anyhow!("{} and {}: {error}", certificate.display(), key.display()))?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(folder: &Path, name: &str) -> [PathBuf; 2] {
        let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
        let paths = ["pem", "key"].map(|end| folder.join(format!("{name}.{end}")));
        std::fs::write(&paths[0], made.cert.pem()).unwrap();
        std::fs::write(&paths[1], made.signing_key.serialize_pem()).unwrap();
        paths
    }

    #[test]
    fn files_that_change_are_read_again_if_they_are_good() {
        let folder = tempfile::tempdir().unwrap();
        let [certificate, key] = write(folder.path(), "a");
        let (warn, warnings) = std::sync::mpsc::channel();
        let tls = Tls::read(&certificate, &key, move |text| warn.send(text.to_owned()).unwrap()).unwrap();
        let warnings = || warnings.try_iter().collect::<Vec<String>>();
        let first = tls.config();
        let now = || tls.config_after(Duration::ZERO);
        assert!(Arc::ptr_eq(&now(), &first));
        let [other, other_key] = write(folder.path(), "b");
        // The time of a file may be coarse.
        let later = SystemTime::now() + Duration::from_secs(5);
        let replace = |from: &Path, to: &Path| {
            std::fs::copy(from, to).unwrap();
            std::fs::File::options().write(true).open(to).unwrap().set_modified(later).unwrap();
        };
        replace(&other, &certificate);
        for _ in 0..2 {
            assert!(Arc::ptr_eq(&now(), &first), "the key is still that of the first");
        }
        let [warning] = &warnings()[..] else { panic!("a fault is said once") };
        assert!(warning.contains("KeyMismatch") && warning.contains(certificate.to_str().unwrap()), "{warning}");
        replace(&other_key, &key);
        assert!(Arc::ptr_eq(&tls.config(), &first), "the files are not looked at each time");
        let second = now();
        assert!(!Arc::ptr_eq(&second, &first));
        assert!(Arc::ptr_eq(&now(), &second));
        assert_eq!(warnings(), Vec::<String>::new());
        std::fs::remove_file(&key).unwrap();
        assert!(Arc::ptr_eq(&now(), &second) && warnings()[0].contains("cannot read --tls-key"));
    }

    #[test]
    fn what_is_wrong_with_a_file_is_said() {
        let folder = tempfile::tempdir().unwrap();
        let ([certificate, key], [_, other]) = (write(folder.path(), "a"), write(folder.path(), "b"));
        let (missing, text) = (folder.path().join("missing"), folder.path().join("text"));
        std::fs::write(&text, "dear diary").unwrap();
        for (certificate, key, reason) in [
            (&missing, &key, "cannot read --tls-cert"),
            (&certificate, &missing, "cannot read --tls-key"),
            (&text, &key, "has no certificate in PEM"),
            (&certificate, &text, "is not a key in PEM"),
            (&certificate, &other, "KeyMismatch"),
        ] {
            let error = format!("{:#}", Tls::read(certificate, key, |_| {}).unwrap_err());
            assert!(error.contains(reason), "{reason}: {error}");
        }
    }
}
