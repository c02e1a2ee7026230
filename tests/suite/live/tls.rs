//! `nigh live` with TLS: clients that keep to it, and clients that do not.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use serde_json::json;

use crate::live::clients::python_code;
use crate::live::{Live, Response, response, values};
use crate::program::{ran, run};

const TOKEN: &str = "0123456789abcdef0123";

/// The files of a server, and what its clients need.
struct Files {
    folder: tempfile::TempDir,
}

impl Files {
    fn new() -> Files {
        let files = Files { folder: tempfile::tempdir().unwrap() };
        std::fs::write(files.path("token"), format!("{TOKEN}\n")).unwrap();
        for name in ["server", "other"] {
            let names = ["localhost", "127.0.0.1"].map(str::to_owned).to_vec();
            let made = rcgen::generate_simple_self_signed(names).unwrap();
            std::fs::write(files.path(&format!("{name}.pem")), made.cert.pem()).unwrap();
            std::fs::write(files.path(&format!("{name}.key")), made.signing_key.serialize_pem()).unwrap();
        }
        files
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn text(&self, name: &str) -> String {
        self.path(name).to_str().unwrap().to_owned()
    }

    fn start(&self) -> Live {
        let [token, certificate, key] = ["token", "server.pem", "server.key"].map(|name| self.text(name));
        let flags = ["--by", "id", "--token-file", &token, "--tls-cert", &certificate, "--tls-key", &key];
        Live::start(&self.path("store"), &flags)
    }

    /// A connection of a client that trusts a certificate. The handshake is made with the first
    /// bytes.
    fn connect(&self, live: &Live, certificate: &str) -> StreamOwned<ClientConnection, TcpStream> {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_file(self.path(certificate)).unwrap()).unwrap();
        let ring = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(ring).with_protocol_versions(&[&rustls::version::TLS13]);
        let config = config.unwrap().with_root_certificates(roots).with_no_client_auth();
        let name = ServerName::try_from("localhost").unwrap();
        let socket = TcpStream::connect(live.address).unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        StreamOwned::new(ClientConnection::new(Arc::new(config), name).unwrap(), socket)
    }

    fn send(&self, live: &Live, method: &str, path: &str, token: &str, body: &str) -> Response {
        let mut stream = self.connect(live, "server.pem");
        let length = body.len();
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nAuthorization: Bearer {token}\r\n\
             Content-Length: {length}\r\n\r\n{body}"
        )
        .unwrap();
        response(stream).unwrap()
    }
}

#[test]
fn clients_with_the_certificate_and_the_token_are_served() {
    let files = Files::new();
    let live = files.start();
    let line = format!("{}\n", json!({"id": 1, "text": "a b c"}));
    let added = files.send(&live, "POST", "/documents", TOKEN, &line);
    assert_eq!((added.status, values(&added.body)[0]["new"].as_bool()), (200, Some(true)));
    for token in ["", "0123456789abcdef0124", "0123456789abcdef01234"] {
        assert_eq!(files.send(&live, "POST", "/documents", token, &line).status, 401, "{token}");
    }
    assert_eq!(files.send(&live, "GET", "/healthz", "", "").status, 200);
    // Another certificate is not that of this server.
    let error = files.connect(&live, "other.pem").write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap_err().to_string();
    assert!(error.contains("certificate"), "{error}");
    let url = format!("https://localhost:{}", live.address.port());
    if Command::new("curl").arg("--version").output().is_ok() {
        let header = format!("Authorization: Bearer {TOKEN}");
        let ca = files.text("server.pem");
        let ran =
            ran(Command::new("curl").args(["-sS", "--cacert", &ca, "-H", &header, &format!("{url}/documents/1")]));
        assert!(ran.code == Some(0) && ran.stdout.contains("\"id\":\"1\""), "{} {}", ran.stdout, ran.stderr);
    }
    let code = format!(
        "import nigh, ssl\n\
         live = nigh.connect({url:?}, token={TOKEN:?}, cafile={:?})\n\
         print(live.get('1').size)\n\
         try:\n\
         \x20   nigh.connect({url:?}, token={TOKEN:?})\n\
         except ssl.SSLCertVerificationError:\n\
         \x20   print('not trusted')\n",
        files.text("server.pem")
    );
    if let Some(ran) = python_code(&code) {
        assert_eq!(ran.stdout, "1\nnot trusted\n", "{}", ran.stderr);
    }
}

/// A server that closes each connection after one answer, as `nigh live` closes idle ones.
const CLOSING: &str = r#"
import nigh, socket, ssl, threading
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(CERTIFICATE, KEY)
listener = socket.create_server(('127.0.0.1', 0))
is_closed = threading.Event()
def serve():
    for end, body in ((b'\r\n\r\n', b'{"status":"ok"}\n'), (b'}\n', b'')):
        connection = context.wrap_socket(listener.accept()[0], server_side=True)
        while not connection.recv(65536).endswith(end):
            pass
        connection.sendall(b'HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s' % (len(body), body))
        connection.close()
        is_closed.set()
threading.Thread(target=serve, daemon=True).start()
live = nigh.connect(f'https://localhost:{listener.getsockname()[1]}', cafile=CERTIFICATE, patience=30)
is_closed.wait()
print(live.similar(text='a b ' * 100000))
"#;

#[test]
fn the_client_in_python_sends_again_on_a_connection_that_was_closed_while_idle() {
    let files = Files::new();
    let code = format!("CERTIFICATE, KEY = {:?}, {:?}\n{CLOSING}", files.text("server.pem"), files.text("server.key"));
    if let Some(ran) = python_code(&code) {
        assert_eq!(ran.stdout, "[]\n", "{}", ran.stderr);
    }
}

#[test]
fn what_would_not_be_safe_is_refused_at_the_start() {
    let files = Files::new();
    let refused = |flags: &[&str], reason: &str| {
        let store = files.text("store");
        let ran = run(&[&["live", &store, "--listen", "0.0.0.0:0"], flags].concat());
        assert!(ran.code == Some(2) && ran.stderr.contains(reason), "{flags:?}: {}", ran.stderr);
        assert!(!Path::new(&store).exists());
    };
    let [token, certificate, key, other] =
        ["token", "server.pem", "server.key", "other.key"].map(|name| files.text(name));
    refused(&[], "--token-file");
    refused(&["--without-tls"], "--token-file");
    refused(&["--tls-cert", &certificate, "--tls-key", &key], "--token-file");
    refused(&["--token-file", &token], "--tls-cert");
    refused(&["--token-file", &token, "--tls-cert", &certificate], "--tls-key");
    refused(&["--token-file", &token, "--tls-cert", &certificate, "--tls-key", &other], "KeyMismatch");
    refused(&["--token-file", &token, "--tls-cert", &token, "--tls-key", &key], "no certificate");
    refused(&["--token-file", &token, "--tls-cert", &key, "--tls-key", &key, "--without-tls"], "cannot be used with");
}

#[test]
fn clients_that_do_not_keep_to_tls_hold_no_other_one_up() {
    let files = Files::new();
    let live = files.start();
    let begun = Instant::now();
    let connect = || TcpStream::connect(live.address).unwrap();
    // The hello of a client, as its first bytes.
    let mut hello = Vec::new();
    files.connect(&live, "server.pem").conn.write_tls(&mut hello).unwrap();
    // Handshakes that do not begin, or do not end; and heads and bodies that do not end after one.
    let mut open: Vec<TcpStream> = Vec::new();
    for part in [&[][..], &hello[..1], &hello[..hello.len() / 2], &hello] {
        for _ in 0..30 {
            let mut socket = connect();
            socket.write_all(part).unwrap();
            open.push(socket);
        }
    }
    let mut slow = Vec::new();
    let head = format!("POST /documents HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {TOKEN}\r\n");
    for part in ["POST /docu".to_owned(), format!("{head}Content-Length: 900\r\n\r\n{{\"id\":1,")] {
        for _ in 0..10 {
            let mut stream = files.connect(&live, "server.pem");
            stream.write_all(part.as_bytes()).unwrap();
            slow.push(stream);
        }
    }
    let line = format!("{}\n", json!({"id": 1, "text": "a b c"}));
    assert_eq!(files.send(&live, "POST", "/documents", TOKEN, &line).status, 200);
    // No TLS, and a record that claims more than TLS allows.
    let plain = format!("{head}Content-Length: {}\r\n\r\n{line}", line.len());
    for bytes in [plain.as_bytes(), b"GET / HTTP/1.1\r\n\r\n", &[0xff; 3000], &[22, 3, 1, 0xff, 0xff, 1, 0, 0]] {
        let mut socket = connect();
        let _ = socket.write_all(bytes);
        socket.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        let mut answer = Vec::new();
        let _ = socket.read_to_end(&mut answer);
        // At most an alert of TLS.
        assert!(answer.len() < 50 && !answer.starts_with(b"HTTP"), "{answer:?}");
    }
    // A handshake whose bytes are changed, and bytes that are changed after one.
    let mut changed = hello.clone();
    changed[hello.len() / 2..].iter_mut().for_each(|byte| *byte ^= 0x55);
    let _ = connect().write_all(&changed);
    let mut stream = files.connect(&live, "server.pem");
    stream.write_all(b"POST /docu").unwrap();
    let _ = stream.sock.write_all(&[23, 3, 3, 0, 40, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18]);
    drop(stream);
    // A gigabyte.
    let mut stream = files.connect(&live, "server.pem");
    stream.write_all(format!("{head}Content-Length: 1000000000\r\n\r\n").as_bytes()).unwrap();
    let mut first = String::new();
    BufReader::new(stream).read_line(&mut first).unwrap();
    assert!(first.starts_with("HTTP/1.1 413"), "{first}");
    // A connection that is cut in the middle of a body.
    let mut stream = files.connect(&live, "server.pem");
    stream.write_all(format!("{head}Content-Length: 50\r\n\r\n{{\"id\":2,").as_bytes()).unwrap();
    drop(stream);
    assert_eq!(files.send(&live, "GET", "/documents/1", TOKEN, "").status, 200);
    assert_eq!(files.send(&live, "GET", "/documents/2", TOKEN, "").status, 404);
    // They hold on to their connections meanwhile. That these end is a test of the server.
    assert!(begun.elapsed() < Duration::from_secs(60), "a bound that only a hang breaks");
    drop((open, slow));
}
