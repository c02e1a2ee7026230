//! A client of HTTP/1.1 that costs little: one connection, one request after the other.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use anyhow::{Context, Result, ensure};

/// No answer takes so long, except where something hangs.
const LONGEST: Duration = Duration::from_secs(600);

/// A connection to the server.
pub(super) struct HttpClient {
    connection: BufReader<TcpStream>,
    answer: Vec<u8>,
}

impl HttpClient {
    pub(super) fn connect(address: SocketAddr) -> Result<HttpClient> {
        let socket = TcpStream::connect(address).with_context(|| format!("cannot connect to {address}"))?;
        socket.set_nodelay(true)?;
        socket.set_read_timeout(Some(LONGEST))?;
        Ok(HttpClient { connection: BufReader::new(socket), answer: Vec::new() })
    }

    /// Sends a body, and returns the body of the answer.
    pub(super) fn post(&mut self, path: &str, body: &[u8]) -> Result<&[u8]> {
        self.send("POST", path, body)
    }

    /// Asks for a text.
    pub(super) fn get(&mut self, path: &str) -> Result<String> {
        self.send("GET", path, b"").map(|answer| String::from_utf8_lossy(answer).into_owned())
    }

    fn send(&mut self, method: &str, path: &str, body: &[u8]) -> Result<&[u8]> {
        let head = format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {}\r\n\r\n", body.len());
        let request = [head.as_bytes(), body].concat();
        self.connection.get_mut().write_all(&request).context("cannot send a request")?;
        let mut line = String::new();
        let (mut status, mut length) = (String::new(), 0);
        loop {
            line.clear();
            ensure!(self.connection.read_line(&mut line)? > 0, "the server closed the connection");
            let line = line.trim_end();
            if status.is_empty() {
                line.clone_into(&mut status);
            } else if line.is_empty() {
                break;
            } else if let Some((name, value)) = line.split_once(':')
                && name.eq_ignore_ascii_case("content-length")
            {
                length = value.trim().parse().context("the length of an answer")?;
            }
        }
        self.answer.resize(length, 0);
        self.connection.read_exact(&mut self.answer)?;
        ensure!(status.starts_with("HTTP/1.1 200"), "{status}: {}", String::from_utf8_lossy(&self.answer));
        Ok(&self.answer)
    }
}
