//! Makes the keys of a pool: one authority, and a certificate of it for each process.
//!
//! A folder of keys holds
//!
//! ```text
//! authority.pem      the authority that all processes trust
//! authority.key      signs further certificates: the owner of the pool keeps it, no process needs it
//! process-007.pem    has the name `process-7.nigh.internal`; it is accepted under no other name
//! process-007.key    of process 7 only
//! ```
//!
//! Process 7 needs `authority.pem` and its own two files. Keys are ECDSA on P-256, readable by
//! their owner only.
//!
//! No file is overwritten. Each file is written under a temporary name, synced, and then linked to
//! its own name. A key is written before its certificate, so that an interrupted run continues with
//! the key that exists.
//!
//! Certificates of processes expire. Processes do not check the expiry of the authority's
//! certificate: to retire an authority, make another one in another folder.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::time::{Duration, SystemTime};

use anyhow::{Context, Result, ensure};
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose,
};

use super::key_files::{AUTHORITY, certificate, key, name};
use super::tls::TlsKeys;

/// Seconds of a day.
const DAY: u64 = 24 * 60 * 60;
/// The default validity of certificates in days.
pub const DEFAULT_DAYS: u32 = 365;
/// The validity in the authority's certificate, in days.
const AUTHORITY_DAYS: u32 = 20 * 365;
/// Certificates are valid from this time ago: clocks of other machines may be late.
const EARLIER: Duration = Duration::from_secs(DAY);

/// The file of the authority's key.
const AUTHORITY_KEY: &str = "authority.key";

/// The result of [`make`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MadeKeys {
    /// Whether a new authority was made; otherwise the folder had one.
    pub new_authority: bool,
    /// The processes with new certificates.
    pub made: Vec<usize>,
    /// The processes that had a valid certificate.
    pub kept: Vec<usize>,
}

/// Makes the keys of a pool in a folder, with certificates that are valid for `days` days. Existing
/// keys and certificates are kept.
///
/// # Errors
/// A file cannot be read or written, or is invalid, such as an expired certificate; the message has
/// its name.
pub fn make(folder: &Path, processes: usize, days: u32) -> Result<MadeKeys> {
    std::fs::create_dir_all(folder).with_context(|| format!("cannot make the folder {}", folder.display()))?;
    let authority = folder.join(AUTHORITY);
    let new_authority = !authority.exists();
    let pair = pair(&folder.join(AUTHORITY_KEY), &authority)?;
    let parameters = authority_parameters()?;
    if new_authority {
        let certificate = parameters.self_signed(&pair).context("cannot sign the authority's certificate")?;
        create(&authority, certificate.pem().as_bytes(), false)?;
    }
    let issuer = Issuer::new(parameters, pair);
    let mut all = MadeKeys { new_authority, made: Vec::new(), kept: Vec::new() };
    for process in 0..processes {
        let path = certificate(folder, process);
        let new = !path.exists();
        let pair = self::pair(&key(folder, process), &path)?;
        if new {
            let certificate = process_parameters(process, days)?.signed_by(&pair, &issuer);
            let certificate = certificate.with_context(|| format!("cannot sign {}", path.display()))?;
            create(&path, certificate.pem().as_bytes(), false)?;
        }
        // The checks of the process itself: they would find, for instance, an authority's
        // certificate of another key.
        TlsKeys::load(folder, process)?;
        if new { &mut all.made } else { &mut all.kept }.push(process);
    }
    Ok(all)
}

/// Reads the key of a file; makes a new one if neither the file nor its certificate exists.
fn pair(path: &Path, certificate: &Path) -> Result<KeyPair> {
    if !path.exists() {
        ensure!(
            !certificate.exists(),
            "{} has no key: {} is missing (put it back, or remove the certificate to have both made again)",
            certificate.display(),
            path.display()
        );
        let pair = KeyPair::generate().context("cannot make a key")?;
        create(path, pair.serialize_pem().as_bytes(), true)?;
        return Ok(pair);
    }
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    KeyPair::from_pem(&text).with_context(|| format!("{} is not a key", path.display()))
}

fn authority_parameters() -> Result<CertificateParams> {
    let mut parameters =
        valid(CertificateParams::new(Vec::new()).context("cannot name the authority")?, AUTHORITY_DAYS);
    parameters.distinguished_name.push(DnType::CommonName, "nigh pool authority");
    // It signs processes, not other authorities.
    parameters.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    parameters.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    Ok(parameters)
}

fn process_parameters(process: usize, days: u32) -> Result<CertificateParams> {
    let parameters = CertificateParams::new(vec![name(process)]).context("cannot name a process")?;
    let mut parameters = valid(parameters, days);
    parameters.distinguished_name.push(DnType::CommonName, name(process));
    parameters.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    parameters.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
    Ok(parameters)
}

/// Sets the validity: from [`EARLIER`] ago until `days` days from now.
fn valid(mut parameters: CertificateParams, days: u32) -> CertificateParams {
    let now = SystemTime::now();
    parameters.not_before = (now - EARLIER).into();
    parameters.not_after = (now + Duration::from_secs(u64::from(days) * DAY)).into();
    parameters
}

/// Replaces the certificate of a process by an expired one.
#[cfg(test)]
pub(crate) fn expire(folder: &Path, process: usize) {
    let pair = |path: std::path::PathBuf| KeyPair::from_pem(&std::fs::read_to_string(path).unwrap()).unwrap();
    let mut parameters = process_parameters(process, DEFAULT_DAYS).unwrap();
    let second = |seconds: u64| std::time::UNIX_EPOCH + Duration::from_secs(seconds);
    (parameters.not_before, parameters.not_after) = (second(1_600_000_000).into(), second(1_700_000_000).into());
    let issuer = Issuer::new(authority_parameters().unwrap(), pair(folder.join(AUTHORITY_KEY)));
    let expired = parameters.signed_by(&pair(key(folder, process)), &issuer).unwrap();
    std::fs::write(certificate(folder, process), expired.pem()).unwrap();
}

/// Writes a new file, whole or not at all.
fn create(path: &Path, bytes: &[u8], private: bool) -> Result<()> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let temporary = path.with_file_name(format!(".{name}.{}.tmp", std::process::id()));
    let write = || -> std::io::Result<()> {
        let mut file = options(private).open(&temporary)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        // Unlike a rename, a link fails if the name exists.
        std::fs::hard_link(&temporary, path)?;
        std::fs::remove_file(&temporary)?;
        File::open(path.parent().unwrap_or(Path::new(".")))?.sync_all()
    };
    write().map_err(|error| {
        // The temporary file may not exist.
        let _ = std::fs::remove_file(&temporary);
        anyhow::Error::new(error).context(format!("cannot write {}", path.display()))
    })
}

#[cfg(unix)]
fn options(private: bool) -> OpenOptions {
    use std::os::unix::fs::OpenOptionsExt;
    let mut options = OpenOptions::new();
    options.write(true).create_new(true).mode(if private { 0o600 } else { 0o644 });
    options
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn listed(folder: &Path) -> Vec<(String, Vec<u8>)> {
        let mut all: Vec<_> = std::fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap())
            .map(|entry| (entry.file_name().into_string().unwrap(), std::fs::read(entry.path()).unwrap()))
            .collect();
        all.sort();
        all
    }

    #[test]
    fn keys_are_made_once_and_more_of_them_later() {
        let folder = tempfile::tempdir().unwrap();
        let pool = folder.path().join("a/pool");
        assert_eq!(make(&pool, 2, 30).unwrap(), MadeKeys { new_authority: true, made: vec![0, 1], kept: vec![] });
        let first = listed(&pool);
        let names: Vec<&str> = first.iter().map(|(name, _)| name.as_str()).collect();
        let wanted = "authority.key authority.pem process-000.key process-000.pem process-001.key process-001.pem";
        assert_eq!(names.join(" "), wanted);
        for (name, _) in &first {
            let mode = std::fs::metadata(pool.join(name)).unwrap().permissions().mode() & 0o777;
            assert_eq!(mode & 0o077 == 0, name.ends_with(".key"), "{name}: {mode:o}");
        }
        assert_eq!(make(&pool, 3, 30).unwrap(), MadeKeys { new_authority: false, made: vec![2], kept: vec![0, 1] });
        assert!(first.iter().all(|file| listed(&pool).contains(file)), "existing files are unchanged");
        assert_eq!(make(&pool, 3, 30).unwrap().made, Vec::<usize>::new());
    }

    #[test]
    fn an_interrupted_run_continues_with_the_existing_keys() {
        let folder = tempfile::tempdir().unwrap();
        make(folder.path(), 1, 30).unwrap();
        let keys = ["authority.key", "process-000.key"].map(|name| std::fs::read(folder.path().join(name)).unwrap());
        std::fs::remove_file(folder.path().join("authority.pem")).unwrap();
        std::fs::remove_file(folder.path().join("process-000.pem")).unwrap();
        assert_eq!(make(folder.path(), 1, 30).unwrap().made, [0]);
        let after = ["authority.key", "process-000.key"].map(|name| std::fs::read(folder.path().join(name)).unwrap());
        assert_eq!(after, keys);
    }

    #[test]
    fn an_invalid_file_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let refused = |words: &[&str]| {
            let error = format!("{:#}", make(folder.path(), 2, 30).unwrap_err());
            words.iter().for_each(|word| assert!(error.contains(word), "{word}: {error}"));
        };
        make(folder.path(), 1, 30).unwrap();
        let other = tempfile::tempdir().unwrap();
        make(other.path(), 1, 30).unwrap();
        let (own, key) = (folder.path().join("authority.pem"), folder.path().join("authority.key"));
        std::fs::rename(&key, folder.path().join("kept")).unwrap();
        refused(&["authority.pem has no key", "authority.key is missing"]);
        std::fs::write(&key, "dear diary").unwrap();
        refused(&["authority.key is not a key"]);
        std::fs::rename(folder.path().join("kept"), &key).unwrap();
        std::fs::copy(other.path().join("authority.pem"), &own).unwrap();
        refused(&["process-000.pem", "not of the authority"]);
    }

    #[test]
    fn the_error_of_an_expired_certificate_has_the_file_and_the_time() {
        let folder = tempfile::tempdir().unwrap();
        make(folder.path(), 1, 30).unwrap();
        expire(folder.path(), 0);
        for error in [TlsKeys::load(folder.path(), 0).err().unwrap(), make(folder.path(), 1, 30).unwrap_err()] {
            let error = format!("{error:#}");
            assert!(error.contains("process-000.pem: the certificate expired on 2023-11-14T22:13:20Z"), "{error}");
        }
    }

    #[test]
    fn the_expiry_of_a_certificate_is_returned() {
        let folder = tempfile::tempdir().unwrap();
        make(folder.path(), 2, 30).unwrap();
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs();
        let left = TlsKeys::expiry(folder.path(), 1).unwrap() - now;
        assert!((29 * DAY..=30 * DAY).contains(&left), "{left} s");
        assert!(format!("{:#}", TlsKeys::expiry(folder.path(), 2).unwrap_err()).contains("process-002.pem"));
    }

    #[test]
    fn the_certificate_of_one_process_does_not_serve_another() {
        let folder = tempfile::tempdir().unwrap();
        make(folder.path(), 2, 30).unwrap();
        let path = |name: &str| folder.path().join(name);
        let refused = |words: &[&str]| {
            let error = format!("{:#}", TlsKeys::load(folder.path(), 1).err().unwrap());
            words.iter().for_each(|word| assert!(error.contains(word), "{word}: {error}"));
        };
        std::fs::copy(path("process-000.pem"), path("process-001.pem")).unwrap();
        refused(&["process-001.pem", "process-001.key", "KeyMismatch"]);
        std::fs::copy(path("process-000.key"), path("process-001.key")).unwrap();
        refused(&["process-001.pem", "that of process-0.nigh.internal, not of process-1.nigh.internal"]);
    }
}
