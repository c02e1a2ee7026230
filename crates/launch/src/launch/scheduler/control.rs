//! The control connection between the supervisor and the agent of a task: frames over TLS.
//!
//! A frame is a byte for its kind, four little-endian bytes of length, and at most 64 KiB; longer
//! data takes several frames. Both sides send a heartbeat at least every second. A side that
//! receives nothing for the config's `timeout` ends the connection. The frames carry what would go
//! through the pipes of a child.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use std::{fmt, io};

use crate::launch::wire::TlsConnection;
use crate::launch::wire::link::watch_silence;

/// The most bytes of a frame.
pub(crate) const MAX_FRAME: usize = 64 << 10;
/// The longest pause between heartbeats.
const BEAT_EVERY: Duration = Duration::from_secs(1);
/// The most bytes of the name of a host.
const MAX_NAME: usize = 255;

/// A frame. Error messages show it by [`std::fmt::Display`], without its bytes; hence no `Debug`
/// except in tests.
#[derive(PartialEq, Eq)]
#[cfg_attr(test, derive(Debug))]
pub(crate) enum ControlFrame {
    /// A heartbeat.
    Beat,
    /// From the agent, first: the name of its host.
    Name(String),
    /// To the agent: start the process.
    Begin,
    /// To the agent: bytes for its stdin.
    Input(Vec<u8>),
    /// To the agent: end of its stdin.
    InputEnd,
    /// To the agent: kill the process.
    Kill,
    /// To the agent: the run has ended with this exit code.
    Finish(u8),
    /// To the supervisor: bytes of the process' stdout.
    Output(Vec<u8>),
    /// To the supervisor: bytes of its stderr.
    Errors(Vec<u8>),
    /// To the supervisor: the process has ended with this wait status of the system.
    Ended(i32),
    /// To the supervisor: the task was told to end, and does so when its process has ended.
    Leaving,
}

/// Shows the kind and the length: the bytes may be anything, and many.
impl fmt::Display for ControlFrame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (kind, length) = match self {
            ControlFrame::Beat => ("beat", 0),
            ControlFrame::Name(name) => ("name", name.len()),
            ControlFrame::Begin => ("begin", 0),
            ControlFrame::Input(bytes) => ("input", bytes.len()),
            ControlFrame::InputEnd => ("end of input", 0),
            ControlFrame::Kill => ("kill", 0),
            ControlFrame::Finish(_) => ("finish", 1),
            ControlFrame::Output(bytes) => ("output", bytes.len()),
            ControlFrame::Errors(bytes) => ("errors", bytes.len()),
            ControlFrame::Ended(_) => ("ended", 4),
            ControlFrame::Leaving => ("leaving", 0),
        };
        write!(f, "`{kind}` ({length} bytes)")
    }
}

impl ControlFrame {
    fn bytes(&self) -> Vec<u8> {
        let (kind, payload): (u8, &[u8]) = match self {
            ControlFrame::Beat => (0, &[]),
            ControlFrame::Name(name) => (1, name.as_bytes()),
            ControlFrame::Begin => (2, &[]),
            ControlFrame::Input(bytes) => (3, bytes),
            ControlFrame::InputEnd => (4, &[]),
            ControlFrame::Kill => (5, &[]),
            ControlFrame::Finish(code) => (6, &[*code]),
            ControlFrame::Output(bytes) => (7, bytes),
            ControlFrame::Errors(bytes) => (8, bytes),
            ControlFrame::Ended(status) => (9, &status.to_le_bytes()),
            ControlFrame::Leaving => (10, &[]),
        };
        [&[kind][..], &(payload.len() as u32).to_le_bytes(), payload].concat()
    }

    /// Reads a frame and not a byte more.
    fn read(from: &mut impl Read) -> io::Result<ControlFrame> {
        let invalid = |text: String| io::Error::new(io::ErrorKind::InvalidData, text);
        let mut head = [0; 5];
        from.read_exact(&mut head)?;
        let [kind, length @ ..] = head;
        let length = u32::from_le_bytes(length) as usize;
        if length > MAX_FRAME {
            return Err(invalid(format!("a frame of {length} bytes: at most {MAX_FRAME} are allowed")));
        }
        let mut payload = vec![0; length];
        from.read_exact(&mut payload)?;
        match (kind, &payload[..]) {
            (0, []) => Ok(ControlFrame::Beat),
            (1, name) if name.len() <= MAX_NAME => {
                let name = String::from_utf8_lossy(name);
                Ok(ControlFrame::Name(name.chars().filter(|c| !c.is_control()).collect()))
            }
            (2, []) => Ok(ControlFrame::Begin),
            (3, _) => Ok(ControlFrame::Input(payload)),
            (4, []) => Ok(ControlFrame::InputEnd),
            (5, []) => Ok(ControlFrame::Kill),
            (6, [code]) => Ok(ControlFrame::Finish(*code)),
            (7, _) => Ok(ControlFrame::Output(payload)),
            (8, _) => Ok(ControlFrame::Errors(payload)),
            (9, status) if status.len() == 4 => {
                Ok(ControlFrame::Ended(i32::from_le_bytes(status.try_into().map_err(io::Error::other)?)))
            }
            (10, []) => Ok(ControlFrame::Leaving),
            _ => Err(invalid(format!("a frame of kind {kind} with {length} bytes, which this version does not know"))),
        }
    }
}

/// A connection between the supervisor and an agent; clones share the connection.
#[derive(Clone)]
pub(crate) struct Control {
    tls: TlsConnection,
    sending: Arc<Mutex<()>>,
}

impl Control {
    /// A connection whose two sides have authenticated each other. It ends when the other side is
    /// silent for `timeout`.
    pub fn new(socket: TcpStream, connection: rustls::Connection, timeout: Duration) -> io::Result<Control> {
        watch_silence(&socket, timeout)?;
        socket.set_read_timeout(Some(timeout))?;
        socket.set_write_timeout(Some(timeout))?;
        let control = Control { tls: TlsConnection::new(socket, connection), sending: Arc::default() };
        std::thread::Builder::new().name("nigh:beat".into()).spawn({
            let (control, pause) = (control.clone(), BEAT_EVERY.min(timeout / 4));
            move || {
                while control.send(&ControlFrame::Beat).is_ok() {
                    std::thread::sleep(pause);
                }
            }
        })?;
        Ok(control)
    }

    /// Sends a frame.
    pub fn send(&self, frame: &ControlFrame) -> io::Result<()> {
        let _guard = self.sending.lock().unwrap_or_else(PoisonError::into_inner);
        let sent = self.tls.clone().write_all(&frame.bytes());
        if sent.is_err() {
            // Part of a frame may be sent: nothing can follow it.
            self.cut();
        }
        sent
    }

    /// Receives the next frame.
    pub fn receive(&self) -> io::Result<ControlFrame> {
        ControlFrame::read(&mut self.tls.clone())
    }

    /// Ends the sending direction.
    pub fn end(&self) {
        // An error means that the other side has ended.
        let _ = self.tls.shutdown(Shutdown::Write);
    }

    /// Ends the connection at once; data on its way may be lost.
    pub fn cut(&self) {
        let _ = self.tls.socket().shutdown(Shutdown::Both);
    }

    /// The addresses of the two ends, this one's first.
    pub fn addresses(&self) -> io::Result<(SocketAddr, SocketAddr)> {
        Ok((self.tls.socket().local_addr()?, self.tls.socket().peer_addr()?))
    }
}

/// The message for a broken connection.
pub(crate) fn broke(error: &io::Error, timeout: Duration) -> String {
    match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
            format!("nothing was received for {} s", timeout.as_secs_f32())
        }
        io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe => {
            "the connection ended".to_owned()
        }
        _ => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_read_as_they_were_written() {
        let frames = [
            ControlFrame::Beat,
            ControlFrame::Name("node-1".into()),
            ControlFrame::Begin,
            ControlFrame::Input(vec![7; MAX_FRAME]),
            ControlFrame::InputEnd,
            ControlFrame::Kill,
            ControlFrame::Finish(143),
            ControlFrame::Output(b"out".to_vec()),
            ControlFrame::Errors(Vec::new()),
            ControlFrame::Ended(-1),
            ControlFrame::Leaving,
        ];
        let bytes: Vec<u8> = frames.iter().flat_map(ControlFrame::bytes).collect();
        let mut rest = &bytes[..];
        frames.iter().for_each(|frame| assert_eq!(ControlFrame::read(&mut rest).unwrap(), *frame));
        assert_eq!(ControlFrame::read(&mut rest).unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
    }

    #[test]
    fn a_message_has_the_kind_and_the_length_of_a_frame() {
        assert_eq!(ControlFrame::Output(vec![7; MAX_FRAME]).to_string(), "`output` (65536 bytes)");
        assert_eq!(ControlFrame::Name("node-1".into()).to_string(), "`name` (6 bytes)");
        assert_eq!(ControlFrame::Begin.to_string(), "`begin` (0 bytes)");
    }

    #[test]
    fn invalid_frames_are_refused() {
        let refused = |bytes: &[u8], wanted: &str| {
            let error = ControlFrame::read(&mut &bytes[..]).unwrap_err();
            assert!(error.to_string().contains(wanted), "{error}");
        };
        refused(&[7, 1, 0, 1, 0], "65537 bytes: at most 65536");
        refused(&[7, 255, 255, 255, 255], "4294967295 bytes");
        refused(&[77, 0, 0, 0, 0], "kind 77");
        refused(&[6, 0, 0, 0, 0], "kind 6 with 0 bytes");
        refused(&[9, 1, 0, 0, 0, 5], "kind 9 with 1 bytes");
        refused(&ControlFrame::Name("x".repeat(300)).bytes(), "kind 1 with 300 bytes");
        let odd = ControlFrame::Name("a\u{1b}[31m\n".into()).bytes();
        assert_eq!(ControlFrame::read(&mut &odd[..]).unwrap(), ControlFrame::Name("a[31m".into()));
    }
}
