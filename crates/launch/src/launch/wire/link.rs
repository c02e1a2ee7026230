//! A connection between two processes as the engine uses it: plain or TLS, with the length limit of
//! frames and a timeout of silence.

use std::io;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

use timely::communication::allocator::zero_copy::stream::Stream;

use super::frames::Frames;
use super::tls::TlsConnection;

/// The longest pause between keepalive probes; the system allows nine hours at most.
const MAX_PAUSE: Duration = Duration::from_secs(2 * 60 * 60);

/// A joined connection: plain on loopback, otherwise TLS. Frames that it returns are within the
/// length limit.
pub struct Link {
    wire: Wire,
    frames: Frames,
}

/// The connection below.
#[derive(Debug)]
enum Wire {
    Plain(TcpStream),
    Tls(TlsConnection),
}

impl std::fmt::Debug for TlsConnection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "TLS over {:?}", self.socket())
    }
}

impl Link {
    /// A plain connection, on loopback.
    pub(crate) fn plain(socket: TcpStream) -> Link {
        Link { wire: Wire::Plain(socket), frames: Frames::default() }
    }

    /// An encrypted connection.
    pub(crate) fn tls(tls: TlsConnection) -> Link {
        Link { wire: Wire::Tls(tls), frames: Frames::default() }
    }

    pub(crate) fn socket(&self) -> &TcpStream {
        match &self.wire {
            Wire::Plain(socket) => socket,
            Wire::Tls(tls) => tls.socket(),
        }
    }

    /// Ends the connection when the other machine does not answer for `timeout`.
    pub(crate) fn watch_silence(&self, timeout: Duration) -> io::Result<()> {
        watch_silence(self.socket(), timeout)
    }
}

/// Ends a connection when the other machine does not answer for `timeout`: it acknowledges neither
/// sent bytes nor, if there are none, the system's keepalive probes. A frozen process is not
/// noticed: the system of its machine answers.
pub(crate) fn watch_silence(socket: &TcpStream, timeout: Duration) -> io::Result<()> {
    use rustix::net::sockopt;
    let pause = (timeout / 4).clamp(Duration::from_secs(1), MAX_PAUSE);
    sockopt::set_socket_keepalive(socket, true)?;
    sockopt::set_tcp_keepidle(socket, pause)?;
    sockopt::set_tcp_keepintvl(socket, pause)?;
    sockopt::set_tcp_keepcnt(socket, 3)?;
    #[cfg(target_os = "linux")]
    // The system's value is a signed number.
    sockopt::set_tcp_user_timeout(socket, i32::try_from(timeout.as_millis()).unwrap_or(i32::MAX).unsigned_abs())?;
    Ok(())
}

impl Read for Link {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let read = match &mut self.wire {
            Wire::Plain(socket) => socket.read(out),
            Wire::Tls(tls) => tls.read(out),
        }?;
        self.frames.pass(&out[..read])?;
        Ok(read)
    }
}

impl Write for Link {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.wire {
            Wire::Plain(socket) => socket.write(bytes),
            Wire::Tls(tls) => tls.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.wire {
            Wire::Plain(socket) => socket.flush(),
            Wire::Tls(tls) => tls.flush(),
        }
    }
}

impl Stream for Link {
    /// The engine reads from one handle and writes to the other.
    fn try_clone(&self) -> io::Result<Link> {
        let wire = match &self.wire {
            Wire::Plain(socket) => Wire::Plain(socket.try_clone()?),
            Wire::Tls(tls) => Wire::Tls(tls.clone()),
        };
        Ok(Link { wire, frames: self.frames.clone() })
    }

    fn set_nonblocking(&self, nonblocking: bool) -> io::Result<()> {
        self.socket().set_nonblocking(nonblocking)
    }

    fn shutdown(&self, how: Shutdown) -> io::Result<()> {
        match &self.wire {
            Wire::Plain(socket) => socket.shutdown(how),
            Wire::Tls(tls) => tls.shutdown(how),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn any_timeout_of_a_config_is_accepted() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let socket = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        for timeout in [Duration::from_millis(1), Duration::from_secs(20), Duration::from_secs(200_000), Duration::MAX]
        {
            watch_silence(&socket, timeout).unwrap_or_else(|error| panic!("{timeout:?}: {error}"));
        }
    }
}
