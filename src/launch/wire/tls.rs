//! Mutual TLS 1.3 between the processes of a pool.
//!
//! Both sides show a certificate of the pool's authority (see `keys`). Who connects checks that the other's name is
//! that of the process it looks for; who accepts learns the number from the hello that follows, and checks the name
//! then, with [`Keys::check`]. A client that is refused learns it only when it reads: TLS 1.3 has no answer to its
//! certificate. Hence the welcome of `join`.
//!
//! [`Tls`] is what the engine's two threads of a connection share. A connection of rustls is one state for both
//! directions, so that it lies behind a lock; no thread waits for the network while it holds it:
//!
//! ```text
//! read:   socket ─▶ raw          lock: raw ─▶ connection ─▶ the engine's buffer
//! write:                         lock: bytes ─▶ connection ─▶ records      records ─▶ socket
//! ```
//!
//! What the connection has decrypted is taken before more is read, and before the end is looked at: the other side's
//! goodbye may come with its last bytes. A connection that ends without a goodbye was cut, which is an error.
//! Sessions are not resumed: processes join once.

use std::io;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use rustls::client::danger::ServerCertVerifier;
use rustls::client::{Resumption, WebPkiServerVerifier};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::{NoServerSessionStorage, WebPkiClientVerifier};
use rustls::{
    AlertDescription, CertificateError, ClientConfig, ClientConnection, Connection, Error, RootCertStore, ServerConfig,
    ServerConnection,
};

/// Bytes that are read from a socket at once.
const RAW: usize = 128 << 10;
/// Bytes that are encrypted at once: as many system calls are made for fewer.
const SENT: usize = 128 << 10;

/// The year 5138: no certificate is valid for so long.
const FAR: Duration = Duration::from_secs(100_000_000_000);

/// What one process needs to join others: its own key, and whom to trust.
#[derive(Clone)]
pub struct Keys {
    server: Arc<ServerConfig>,
    client: Arc<ClientConfig>,
    names: Arc<WebPkiServerVerifier>,
}

impl Keys {
    /// Reads the keys of a process from the pool's folder, and checks that they hold.
    ///
    /// # Errors
    /// Names the file that is missing, damaged, expired, of another process or of another authority.
    pub fn load(folder: &Path, process: usize) -> Result<Keys> {
        let (keys, own) = Keys::read(folder, process)?;
        named_as(&keys.names, &own, process).map_err(|error| {
            let (path, why) = (super::key_files::certificate(folder, process), described(&error));
            anyhow!("{}: {why} (remove it and its key, and `nigh pool keys` makes new ones)", path.display())
        })?;
        Ok(keys)
    }

    /// The keys of a folder with whatever certificate lies there: those of an intruder.
    #[cfg(test)]
    pub fn load_unchecked(folder: &Path, process: usize) -> Keys {
        Keys::read(folder, process).unwrap().0
    }

    fn read(folder: &Path, process: usize) -> Result<(Keys, CertificateDer<'static>)> {
        let (path, key) = (super::key_files::certificate(folder, process), super::key_files::key(folder, process));
        let authority: CertificateDer = read(&folder.join(super::key_files::AUTHORITY), "certificate")?;
        let own: CertificateDer = read(&path, "certificate")?;
        let mut roots = RootCertStore::empty();
        let named =
            || format!("{} is no certificate of an authority", folder.join(super::key_files::AUTHORITY).display());
        roots.add(authority).with_context(named)?;
        let (roots, ring) = (Arc::new(roots), Arc::new(rustls::crypto::ring::default_provider()));
        let names = WebPkiServerVerifier::builder_with_provider(roots.clone(), ring.clone()).build();
        let names = names.with_context(named)?;
        let clients = WebPkiClientVerifier::builder_with_provider(roots, ring.clone()).build().with_context(named)?;
        let mine = |error| anyhow::Error::new(error).context(format!("{} and {}", path.display(), key.display()));
        let private = || read::<PrivateKeyDer>(&key, "key");
        let only = [&rustls::version::TLS13];
        let server = ServerConfig::builder_with_provider(ring.clone()).with_protocol_versions(&only);
        let server = server.context("ring has TLS 1.3")?.with_client_cert_verifier(clients);
        let mut server = server.with_single_cert(vec![own.clone()], private()?).map_err(mine)?;
        server.session_storage = Arc::new(NoServerSessionStorage {});
        server.send_tls13_tickets = 0;
        let client = ClientConfig::builder_with_provider(ring).with_protocol_versions(&only);
        let client = client.context("ring has TLS 1.3")?.with_webpki_verifier(names.clone());
        let mut client = client.with_client_auth_cert(vec![own.clone()], private()?).map_err(mine)?;
        client.resumption = Resumption::disabled();
        Ok((Keys { server: Arc::new(server), client: Arc::new(client), names }, own))
    }

    /// When the certificate of a process expires, in seconds since 1970.
    ///
    /// # Errors
    /// As [`Keys::load`].
    pub fn expiry(folder: &Path, process: usize) -> Result<u64> {
        Keys::load(folder, process)?;
        let (keys, own) = Keys::read(folder, process)?;
        let name = server_name(process)?;
        // What has expired by then says when it did.
        let far = UnixTime::since_unix_epoch(FAR);
        match keys.names.verify_server_cert(&own, &[], &name, &[], far) {
            Err(Error::InvalidCertificate(CertificateError::ExpiredContext { not_after, .. })) => {
                Ok(not_after.as_secs())
            }
            _ => Err(anyhow!(
                "{} does not say when it expires",
                super::key_files::certificate(folder, process).display()
            )),
        }
    }

    /// The side that accepts a connection.
    pub(crate) fn accept(&self) -> Result<Connection, Error> {
        let mut connection = ServerConnection::new(self.server.clone())?;
        connection.set_buffer_limit(Some(SENT));
        Ok(connection.into())
    }

    /// The side that connects to a process.
    pub(crate) fn connect(&self, process: usize) -> Result<Connection, Error> {
        let mut connection = ClientConnection::new(self.client.clone(), server_name(process)?)?;
        connection.set_buffer_limit(Some(SENT));
        Ok(connection.into())
    }

    /// Checks that the other side of a connection has the certificate of a process.
    pub(crate) fn check(&self, connection: &Connection, process: usize) -> Result<(), Error> {
        let shown = connection.peer_certificates().and_then(|all| all.first()).ok_or(Error::NoCertificatesPresented)?;
        named_as(&self.names, shown, process)
    }
}

/// Reads the first item of a PEM file.
fn read<T: PemObject>(path: &Path, what: &str) -> Result<T> {
    let bytes = std::fs::read(path)
        .with_context(|| format!("cannot read the {what} {} (`nigh pool keys` makes keys)", path.display()))?;
    T::from_pem_slice(&bytes).map_err(|error| anyhow!("{} is no {what}: {error}", path.display()))
}

fn server_name(process: usize) -> Result<ServerName<'static>, Error> {
    ServerName::try_from(super::key_files::name(process)).map_err(|error| Error::General(error.to_string()))
}

fn named_as(names: &WebPkiServerVerifier, certificate: &CertificateDer, process: usize) -> Result<(), Error> {
    let name = server_name(process)?;
    names.verify_server_cert(certificate, &[], &name, &[], UnixTime::now()).map(|_| ())
}

/// An error of TLS in words: what is wrong with the certificate, where it is that.
pub(crate) fn described(error: &Error) -> String {
    use CertificateError as Certificate;
    let day = |time: &UnixTime| {
        let day = i64::try_from(time.as_secs()).ok().and_then(|seconds| jiff::Timestamp::from_second(seconds).ok());
        day.map_or_else(|| format!("{} s of the epoch", time.as_secs()), |day| day.to_string())
    };
    match error {
        Error::InvalidCertificate(Certificate::ExpiredContext { not_after, .. }) => {
            format!("the certificate expired on {}", day(not_after))
        }
        Error::InvalidCertificate(Certificate::NotValidYetContext { not_before, time }) => {
            let (begin, now) = (day(not_before), day(time));
            format!("the certificate is valid from {begin} on, and this machine's clock says {now}")
        }
        Error::InvalidCertificate(Certificate::UnknownIssuer | Certificate::BadSignature) => {
            "the certificate is not of the authority of this pool".into()
        }
        Error::InvalidCertificate(Certificate::NotValidForNameContext { presented, expected }) => {
            // The names come as `DnsName("...")`.
            let name = |name: &String| name.split('"').nth(1).unwrap_or(name).to_owned();
            let presented: Vec<String> = presented.iter().map(name).collect();
            format!("the certificate is that of {}, not of {}", presented.join(", "), expected.to_str())
        }
        Error::NoCertificatesPresented => "no certificate was shown".into(),
        Error::InvalidMessage(_) => "this is not TLS".into(),
        Error::AlertReceived(AlertDescription::CertificateExpired) => {
            "the other side refuses the connection: this one's certificate has expired there (CertificateExpired)"
                .into()
        }
        Error::AlertReceived(alert) => format!("the other side refuses the connection ({alert:?})"),
        error => error.to_string(),
    }
}

/// An I/O error in words, one of TLS within it as [`described`] does.
pub(crate) fn described_io(error: &io::Error) -> String {
    match error.get_ref().and_then(|inner| inner.downcast_ref::<Error>()) {
        Some(inner) => described(inner),
        None => error.to_string(),
    }
}

/// A connection that was joined, shared by the thread that reads and the one that writes.
#[derive(Clone)]
pub struct Tls(Arc<TlsState>);

struct TlsState {
    socket: TcpStream,
    connection: Mutex<Connection>,
    raw: Mutex<Raw>,
    /// Records on their way to the socket; whoever holds it sends, so that records stay in order.
    records: Mutex<Vec<u8>>,
}

/// Bytes of the socket that the connection has not taken yet.
struct Raw {
    bytes: Box<[u8]>,
    at: usize,
    end: usize,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Tls {
    /// A connection whose handshake is over, on a socket that blocks.
    pub(crate) fn new(socket: TcpStream, connection: Connection) -> Tls {
        let raw = Raw { bytes: vec![0; RAW].into(), at: 0, end: 0 };
        let (connection, raw, records) = (Mutex::new(connection), Mutex::new(raw), Mutex::default());
        Tls(Arc::new(TlsState { socket, connection, raw, records }))
    }

    /// The socket below.
    pub(crate) fn socket(&self) -> &TcpStream {
        &self.0.socket
    }

    /// Gives the connection something to send, and sends it.
    fn send<T>(&self, say: impl FnOnce(&mut Connection) -> io::Result<T>) -> io::Result<T> {
        let mut records = lock(&self.0.records);
        records.clear();
        let said = {
            let mut connection = lock(&self.0.connection);
            let said = say(&mut connection)?;
            while connection.wants_write() {
                connection.write_tls(&mut *records)?;
            }
            said
        };
        (&self.0.socket).write_all(&records)?;
        Ok(said)
    }

    /// Says goodbye, and ends one direction or both.
    ///
    /// # Errors
    /// As the socket.
    pub fn shutdown(&self, how: Shutdown) -> io::Result<()> {
        if how != Shutdown::Read {
            self.send(|connection| {
                connection.send_close_notify();
                Ok(())
            })?;
        }
        self.0.socket.shutdown(how)
    }
}

/// Fills `out` with what the connection has decrypted or can decrypt of `raw`; `None` where it needs more.
fn decrypt(connection: &mut Connection, raw: &mut Raw, out: &mut [u8]) -> io::Result<Option<usize>> {
    let mut given = 0;
    while given < out.len() {
        match connection.reader().read(&mut out[given..]) {
            Ok(0) => return Ok(Some(given)),
            Ok(more) => {
                given += more;
                continue;
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
        if raw.at == raw.end {
            break;
        }
        raw.at += connection.read_tls(&mut &raw.bytes[raw.at..raw.end])?;
        connection.process_new_packets().map_err(io::Error::other)?;
    }
    Ok((given > 0).then_some(given))
}

impl Read for Tls {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if out.is_empty() {
            return Ok(0);
        }
        let mut raw = lock(&self.0.raw);
        loop {
            if let Some(given) = decrypt(&mut lock(&self.0.connection), &mut raw, out)? {
                return Ok(given);
            }
            match (&self.0.socket).read(&mut raw.bytes) {
                Ok(0) => return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the connection was cut")),
                Ok(read) => (raw.at, raw.end) = (0, read),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}

impl Write for Tls {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.send(|connection| connection.writer().write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        // Whatever was written was sent.
        Ok(())
    }
}
