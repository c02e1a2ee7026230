//! Words on a connection that is being joined, each said and heard in time.
//!
//! A word is the bytes `nigh-jn\n`, the length of what follows as four little-endian bytes, and JSON.

use std::io;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use rustls::Connection;

use super::hello::Message;

/// The first bytes of every word.
const MAGIC: [u8; 8] = *b"nigh-jn\n";
/// The most bytes of JSON in a word; a stranger cannot have more kept.
const MAX_WORD: usize = 4096;
/// The most characters of a reason.
const MAX_REASON: usize = 1000;

/// A connection, encrypted or not, of which every step ends in time.
pub(crate) struct MessageStream<'a> {
    timed: Timed<'a>,
    connection: Option<&'a mut Connection>,
}

impl<'a> MessageStream<'a> {
    pub fn new(socket: &'a TcpStream, connection: Option<&'a mut Connection>, deadline: Instant) -> MessageStream<'a> {
        MessageStream { timed: Timed::new(socket, deadline), connection }
    }

    /// What TLS knows of the other side.
    pub fn connection(&self) -> Option<&Connection> {
        self.connection.as_deref()
    }

    /// Says a word.
    pub fn say(&mut self, word: &Message) -> io::Result<()> {
        say(self, word)
    }

    /// Hears a word.
    pub fn hear(&mut self) -> io::Result<Message> {
        hear(self)
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
                // The other side should hear of it, if it still listens.
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

/// Says a word.
fn say(to: &mut impl Write, word: &Message) -> io::Result<()> {
    let cut = |reason: &String| Message::Refused(reason.chars().take(MAX_REASON).collect());
    let json = match word {
        Message::Refused(reason) => serde_json::to_vec(&cut(reason)),
        word => serde_json::to_vec(word),
    };
    let json = json.map_err(io::Error::other)?;
    let length = u32::try_from(json.len()).map_err(io::Error::other)?;
    to.write_all(&[&MAGIC[..], &length.to_le_bytes(), &json].concat())?;
    to.flush()
}

/// Hears a word, and no byte more: what follows may be the engine's.
fn hear(from: &mut impl Read) -> io::Result<Message> {
    let strange = |what: &str| io::Error::new(io::ErrorKind::InvalidData, what.to_owned());
    let mut head = [0; 12];
    from.read_exact(&mut head)?;
    let (magic, length) = head.split_at(MAGIC.len());
    if magic != MAGIC {
        return Err(strange("this is no process of nigh: its first bytes are others"));
    }
    let length = u32::from_le_bytes(length.try_into().map_err(io::Error::other)?) as usize;
    if length > MAX_WORD {
        return Err(strange(&format!("a word of {length} bytes: at most {MAX_WORD} are heard")));
    }
    let mut json = vec![0; length];
    from.read_exact(&mut json)?;
    serde_json::from_slice(&json).map_err(|error| strange(&format!("a word that this version does not know ({error})")))
}

/// A socket of which every step ends in time, however slowly bytes come.
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

/// The system says that a time ran out as if the socket did not block.
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
    fn words_are_heard_as_they_were_said_and_no_byte_more() {
        let mut bytes = Vec::new();
        for word in [
            Message::Hello(hello(1, 0)),
            Message::Welcome(hello(0, 1)),
            Message::Joined,
            Message::Refused("why".into()),
        ] {
            say(&mut bytes, &word).unwrap();
        }
        bytes.extend(b"the engine's");
        let mut rest = &bytes[..];
        assert!(matches!(hear(&mut rest).unwrap(), Message::Hello(heard) if heard == hello(1, 0)));
        assert!(matches!(hear(&mut rest).unwrap(), Message::Welcome(heard) if heard == hello(0, 1)));
        assert!(matches!(hear(&mut rest).unwrap(), Message::Joined));
        assert!(matches!(hear(&mut rest).unwrap(), Message::Refused(reason) if reason == "why"));
        assert_eq!(rest, b"the engine's");
        assert_eq!(hear(&mut &bytes[..20]).unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
    }

    #[test]
    fn garbage_and_words_too_long_are_not_heard() {
        let refused = |bytes: &[u8], wanted: &str| {
            let error = hear(&mut &bytes[..]).unwrap_err();
            assert!(error.to_string().contains(wanted), "{error}");
        };
        refused(b"GET / HTTP/1.1\r\n\r\n", "no process of nigh");
        refused(b"nigh-jn\n\xff\xff\xff\xff", "4294967295 bytes: at most 4096");
        refused(b"nigh-jn\n\x02\0\0\0{}", "does not know");
        let mut bytes = Vec::new();
        say(&mut bytes, &Message::Refused("x".repeat(100_000))).unwrap();
        assert!(matches!(hear(&mut &bytes[..]).unwrap(), Message::Refused(reason) if reason.len() == MAX_REASON));
    }
}
