//! Sends and receives the messages of the handshake, each within a deadline.
//!
//! A message is the bytes `nigh-jn\n`, the length of the rest as four little-endian bytes, and
//! JSON.

use std::io;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use rustls::Connection;

use super::hello::Message;

/// The first bytes of every message.
const MAGIC: [u8; 8] = *b"nigh-jn\n";
/// The most bytes of JSON in a message: an unauthenticated peer cannot make the process store more.
const MAX_MESSAGE: usize = 4096;
/// The most characters of a reason.
const MAX_REASON: usize = 1000;

/// A connection, encrypted or not, whose operations end by a deadline.
pub(crate) struct MessageStream<'a> {
    timed: Timed<'a>,
    connection: Option<&'a mut Connection>,
}

impl<'a> MessageStream<'a> {
    pub fn new(socket: &'a TcpStream, connection: Option<&'a mut Connection>, deadline: Instant) -> MessageStream<'a> {
        MessageStream { timed: Timed::new(socket, deadline), connection }
    }

    /// The TLS connection, if there is one.
    pub fn connection(&self) -> Option<&Connection> {
        self.connection.as_deref()
    }

    /// Sends a message.
    pub fn send(&mut self, message: &Message) -> io::Result<()> {
        send(self, message)
    }

    /// Receives a message.
    pub fn receive(&mut self) -> io::Result<Message> {
        receive(self)
    }
}

impl Read for MessageStream<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let Some(connection) = &mut self.connection else { return self.timed.read(out) };
        loop {
            match connection.reader().read(out) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                result => return result,
            }
            if connection.read_tls(&mut self.timed)? == 0 {
                return Ok(0);
            }
            if let Err(error) = connection.process_new_packets() {
                // Sends the alert, so that the other side learns the reason.
                let _ = connection.write_tls(&mut self.timed);
                return Err(io::Error::new(io::ErrorKind::InvalidData, error));
            }
        }
    }
}

impl Write for MessageStream<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.connection {
            Some(connection) => connection.writer().write(bytes),
            None => self.timed.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        let Some(connection) = &mut self.connection else { return self.timed.flush() };
        while connection.wants_write() {
            connection.write_tls(&mut self.timed)?;
        }
        Ok(())
    }
}

/// Writes a message.
fn send(to: &mut impl Write, message: &Message) -> io::Result<()> {
    let cut = |reason: &String| Message::Refused(reason.chars().take(MAX_REASON).collect());
    let json = match message {
        Message::Refused(reason) => serde_json::to_vec(&cut(reason)),
        message => serde_json::to_vec(message),
    };
    let json = json.map_err(io::Error::other)?;
    let length = u32::try_from(json.len()).map_err(io::Error::other)?;
    to.write_all(&[&MAGIC[..], &length.to_le_bytes(), &json].concat())?;
    to.flush()
}

/// Reads a message and not a byte more: the next bytes may be frames of the engine.
///
/// # Errors
/// The bytes are no message: the first ones differ, the length is more than 4096, the JSON is not
/// one of a message.
pub fn receive(from: &mut impl Read) -> io::Result<Message> {
    let invalid = |text: &str| io::Error::new(io::ErrorKind::InvalidData, text.to_owned());
    let mut head = [0; 12];
    from.read_exact(&mut head)?;
    let (magic, length) = head.split_at(MAGIC.len());
    if magic != MAGIC {
        return Err(invalid("this is not a process of nigh: its first bytes differ"));
    }
    let length = u32::from_le_bytes(length.try_into().map_err(io::Error::other)?) as usize;
    if length > MAX_MESSAGE {
        return Err(invalid(&format!("a message of {length} bytes: at most {MAX_MESSAGE} are allowed")));
    }
    let mut json = vec![0; length];
    from.read_exact(&mut json)?;
    serde_json::from_slice(&json)
        .map_err(|error| invalid(&format!("a message that this version does not know ({error})")))
}

/// A socket whose operations end by a deadline, however slowly bytes arrive.
pub(crate) struct Timed<'a> {
    socket: &'a TcpStream,
    deadline: Instant,
}

impl<'a> Timed<'a> {
    pub fn new(socket: &'a TcpStream, deadline: Instant) -> Timed<'a> {
        Timed { socket, deadline }
    }

    fn left(&self) -> io::Result<Option<Duration>> {
        let left = self.deadline.saturating_duration_since(Instant::now());
        if left.is_zero() { Err(io::ErrorKind::TimedOut.into()) } else { Ok(Some(left)) }
    }
}

/// The system reports a timeout as `WouldBlock`.
fn timed_out(error: io::Error) -> io::Error {
    if error.kind() == io::ErrorKind::WouldBlock { io::ErrorKind::TimedOut.into() } else { error }
}

impl Read for Timed<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        self.socket.set_read_timeout(self.left()?)?;
        self.socket.read(out).map_err(timed_out)
    }
}

impl Write for Timed<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.socket.set_write_timeout(self.left()?)?;
        self.socket.write(bytes).map_err(timed_out)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.socket.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::launch::handshake::hello::Hello;
    use crate::launch::handshake::roster::Roster;

    fn hello(me: usize, you: usize) -> Hello {
        Hello::new(me, you, &Roster::new(7, 3, Vec::new()), None)
    }

    #[test]
    fn messages_are_received_as_they_were_sent_and_not_a_byte_more() {
        let mut bytes = Vec::new();
        for message in [
            Message::Hello(hello(1, 0)),
            Message::Welcome(hello(0, 1)),
            Message::Joined,
            Message::Refused("why".into()),
        ] {
            send(&mut bytes, &message).unwrap();
        }
        bytes.extend(b"the engine's");
        let mut rest = &bytes[..];
        assert!(matches!(receive(&mut rest).unwrap(), Message::Hello(received) if received == hello(1, 0)));
        assert!(matches!(receive(&mut rest).unwrap(), Message::Welcome(received) if received == hello(0, 1)));
        assert!(matches!(receive(&mut rest).unwrap(), Message::Joined));
        assert!(matches!(receive(&mut rest).unwrap(), Message::Refused(reason) if reason == "why"));
        assert_eq!(rest, b"the engine's");
        assert_eq!(receive(&mut &bytes[..20]).unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
    }

    #[test]
    fn garbage_and_messages_that_are_too_long_are_refused() {
        let refused = |bytes: &[u8], wanted: &str| {
            let error = receive(&mut &bytes[..]).unwrap_err();
            assert!(error.to_string().contains(wanted), "{error}");
        };
        refused(b"GET / HTTP/1.1\r\n\r\n", "not a process of nigh");
        refused(b"nigh-jn\n\xff\xff\xff\xff", "4294967295 bytes: at most 4096");
        refused(b"nigh-jn\n\x02\0\0\0{}", "does not know");
        let mut bytes = Vec::new();
        send(&mut bytes, &Message::Refused("x".repeat(100_000))).unwrap();
        assert!(matches!(receive(&mut &bytes[..]).unwrap(), Message::Refused(reason) if reason.len() == MAX_REASON));
    }
}
