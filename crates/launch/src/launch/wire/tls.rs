//! Mutual TLS 1.3 between the processes of a pool.
//!
//! Both sides present a certificate of the pool's authority (see `keys`). The client checks that
//! the server's name is that of the process that it connects to. The server learns the client's
//! number from the hello that follows, and checks the name then, with [`TlsKeys::check`]. A client
//! that is refused learns that only when it reads: TLS 1.3 does not acknowledge a client's
//! certificate. Hence the welcome of `participant`.
//!
//! The engine's two threads of a connection share a [`TlsConnection`]. A connection of rustls has
//! one state for both directions, so it is behind a lock; no thread waits for the network while it
//! holds that lock:
//!
//! ```text
//! read:   socket ─▶ raw          lock: raw ─▶ connection ─▶ the engine's buffer
//! write:                         lock: bytes ─▶ connection ─▶ records      records ─▶ socket
//! ```
//!
//! Decrypted bytes are returned before more are read and before the end is checked: the other
//! side's `close_notify` may arrive with its last bytes. A connection that ends without
//! `close_notify` was cut, which is an error. Sessions are not resumed: processes join once.

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

/// The most bytes of one read from a socket.
const RAW: usize = 128 << 10;
/// The most bytes that are encrypted at once; a smaller limit needs more system calls.
const SENT: usize = 128 << 10;

/// The year 5138, when every certificate has expired.
const FAR: Duration = Duration::from_secs(100_000_000_000);

/// The TLS keys of one process: its own key and certificate, and the authority that it trusts.
#[derive(Clone)]
pub struct TlsKeys {
    server: Arc<ServerConfig>,
    client: Arc<ClientConfig>,
    names: Arc<WebPkiServerVerifier>,
}

impl TlsKeys {
    /// Reads the keys of a process from the pool's folder and checks them.
    ///
    /// # Errors
    /// A file is missing, damaged, expired, of another process or of another authority; the message
    /// has its name.
    pub fn load(folder: &Path, process: usize) -> Result<TlsKeys> {
        let (keys, certificate) = TlsKeys::read(folder, process)?;
        check_name(&keys.names, &certificate, process).map_err(|error| {
            let (path, why) = (super::key_files::certificate(folder, process), described(&error));
            anyhow!("{}: {why} (remove it and its key, and `nigh pool keys` makes new ones)", path.display())
        })?;
        Ok(keys)
    }

    /// Reads the keys of a folder without checks, as an intruder would.
    #[cfg(test)]
    pub fn load_unchecked(folder: &Path, process: usize) -> TlsKeys {
        TlsKeys::read(folder, process).unwrap().0
    }

    fn read(folder: &Path, process: usize) -> Result<(TlsKeys, CertificateDer<'static>)> {
        let (path, key) = (super::key_files::certificate(folder, process), super::key_files::key(folder, process));
        let authority: CertificateDer = read(&folder.join(super::key_files::AUTHORITY), "certificate")?;
        let certificate: CertificateDer = read(&path, "certificate")?;
        let mut roots = RootCertStore::empty();
        let not_authority =
            || format!("{} is not a certificate of an authority", folder.join(super::key_files::AUTHORITY).display());
        roots.add(authority).with_context(not_authority)?;
        let (roots, ring) = (Arc::new(roots), Arc::new(rustls::crypto::ring::default_provider()));
        let names = WebPkiServerVerifier::builder_with_provider(roots.clone(), ring.clone()).build();
        let names = names.with_context(not_authority)?;
        let clients =
            WebPkiClientVerifier::builder_with_provider(roots, ring.clone()).build().with_context(not_authority)?;
        let own_files = |error| anyhow::Error::new(error).context(format!("{} and {}", path.display(), key.display()));
        let private_key = || read::<PrivateKeyDer>(&key, "key");
        let only = [&rustls::version::TLS13];
        let server = ServerConfig::builder_with_provider(ring.clone()).with_protocol_versions(&only);
        let server = server.context("ring supports TLS 1.3")?.with_client_cert_verifier(clients);
        let mut server = server.with_single_cert(vec![certificate.clone()], private_key()?).map_err(own_files)?;
        server.session_storage = Arc::new(NoServerSessionStorage {});
        server.send_tls13_tickets = 0;
        let client = ClientConfig::builder_with_provider(ring).with_protocol_versions(&only);
        let client = client.context("ring supports TLS 1.3")?.with_webpki_verifier(names.clone());
        let mut client = client.with_client_auth_cert(vec![certificate.clone()], private_key()?).map_err(own_files)?;
        client.resumption = Resumption::disabled();
        Ok((TlsKeys { server: Arc::new(server), client: Arc::new(client), names }, certificate))
    }

    /// When the certificate of a process expires, in seconds since 1970.
    ///
    /// # Errors
    /// As [`TlsKeys::load`].
    pub fn expiry(folder: &Path, process: usize) -> Result<u64> {
        TlsKeys::load(folder, process)?;
        let (keys, certificate) = TlsKeys::read(folder, process)?;
        let name = server_name(process)?;
        // The error of an expired certificate has the time of its expiry.
        let far = UnixTime::since_unix_epoch(FAR);
        match keys.names.verify_server_cert(&certificate, &[], &name, &[], far) {
            Err(Error::InvalidCertificate(CertificateError::ExpiredContext { not_after, .. })) => {
                Ok(not_after.as_secs())
            }
            _ => Err(anyhow!(
                "{} does not say when it expires",
                super::key_files::certificate(folder, process).display()
            )),
        }
    }

    /// A new connection for the server side.
    pub(crate) fn accept(&self) -> Result<Connection, Error> {
        let mut connection = ServerConnection::new(self.server.clone())?;
        connection.set_buffer_limit(Some(SENT));
        Ok(connection.into())
    }

    /// A new connection for the client side, to a process.
    pub(crate) fn connect(&self, process: usize) -> Result<Connection, Error> {
        let mut connection = ClientConnection::new(self.client.clone(), server_name(process)?)?;
        connection.set_buffer_limit(Some(SENT));
        Ok(connection.into())
    }

    /// Checks that the peer of a connection has presented the certificate of a process.
    pub(crate) fn check(&self, connection: &Connection, process: usize) -> Result<(), Error> {
        let presented =
            connection.peer_certificates().and_then(|all| all.first()).ok_or(Error::NoCertificatesPresented)?;
        check_name(&self.names, presented, process)
    }
}

/// Reads the first item of a PEM file.
fn read<T: PemObject>(path: &Path, what: &str) -> Result<T> {
    let bytes = std::fs::read(path)
        .with_context(|| format!("cannot read the {what} {} (`nigh pool keys` makes keys)", path.display()))?;
    T::from_pem_slice(&bytes).map_err(|error| anyhow!("{} is not a {what}: {error}", path.display()))
}

fn server_name(process: usize) -> Result<ServerName<'static>, Error> {
    ServerName::try_from(super::key_files::name(process)).map_err(|error| Error::General(error.to_string()))
}

/// Checks that a certificate is valid and has the name of a process.
fn check_name(names: &WebPkiServerVerifier, certificate: &CertificateDer, process: usize) -> Result<(), Error> {
    let name = server_name(process)?;
    names.verify_server_cert(certificate, &[], &name, &[], UnixTime::now()).map(|_| ())
}

/// The message for an error of TLS; it says what is wrong with a certificate.
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
            // The names have the form `DnsName("...")`.
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

/// The message for an I/O error; [`described`] makes it for an error of TLS within it.
pub(crate) fn described_io(error: &io::Error) -> String {
    match error.get_ref().and_then(|inner| inner.downcast_ref::<Error>()) {
        Some(inner) => described(inner),
        None => error.to_string(),
    }
}

/// A joined connection; the thread that reads and the thread that writes share it.
#[derive(Clone)]
pub struct TlsConnection(Arc<TlsState>);

struct TlsState {
    socket: TcpStream,
    connection: Mutex<Connection>,
    raw: Mutex<Raw>,
    /// Records on their way to the socket. A thread holds this lock while it sends, so that records
    /// stay in order.
    records: Mutex<Vec<u8>>,
}

/// Bytes of the socket that the connection has not decrypted yet.
struct Raw {
    bytes: Box<[u8]>,
    at: usize,
    end: usize,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl TlsConnection {
    /// A connection after its handshake, on a blocking socket.
    pub(crate) fn new(socket: TcpStream, connection: Connection) -> TlsConnection {
        let raw = Raw { bytes: vec![0; RAW].into(), at: 0, end: 0 };
        let (connection, raw, records) = (Mutex::new(connection), Mutex::new(raw), Mutex::default());
        TlsConnection(Arc::new(TlsState { socket, connection, raw, records }))
    }

    /// The socket below.
    pub(crate) fn socket(&self) -> &TcpStream {
        &self.0.socket
    }

    /// Lets `write` give the connection data to send, and sends the records.
    fn send<T>(&self, write: impl FnOnce(&mut Connection) -> io::Result<T>) -> io::Result<T> {
        let mut records = lock(&self.0.records);
        records.clear();
        let result = {
            let mut connection = lock(&self.0.connection);
            let result = write(&mut connection)?;
            while connection.wants_write() {
                connection.write_tls(&mut *records)?;
            }
            result
        };
        (&self.0.socket).write_all(&records)?;
        Ok(result)
    }

    /// Sends `close_notify` and ends one direction or both.
    ///
    /// # Errors
    /// Errors of the socket.
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

/// Fills `out` with decrypted bytes of the connection and of `raw`. Returns the number of bytes, or
/// `None` if it needs more of the socket.
fn decrypt(connection: &mut Connection, raw: &mut Raw, out: &mut [u8]) -> io::Result<Option<usize>> {
    let mut filled = 0;
    while filled < out.len() {
        match connection.reader().read(&mut out[filled..]) {
            Ok(0) => return Ok(Some(filled)),
            Ok(more) => {
                filled += more;
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
    Ok((filled > 0).then_some(filled))
}

impl Read for TlsConnection {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if out.is_empty() {
            return Ok(0);
        }
        let mut raw = lock(&self.0.raw);
        loop {
            if let Some(filled) = decrypt(&mut lock(&self.0.connection), &mut raw, out)? {
                return Ok(filled);
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

impl Write for TlsConnection {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.send(|connection| connection.writer().write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        // `write` has sent everything.
        Ok(())
    }
}
