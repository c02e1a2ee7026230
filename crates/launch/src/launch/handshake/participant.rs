//! One connection of two processes of a run: how each side makes sure of the other.
//!
//! ```text
//!    j                                                       i
//! 1  TLS 1.3: j accepts only the certificate of process i; i accepts any certificate of the pool's authority
//! 2  hello: versions, job, epoch, roster, "I am j, you are i"  ─▶  i checks, the certificate's name against j, too
//! 3  j checks  ◀─  welcome: the same of i; or refused, with the reason
//! 4  joined; or refused, with the reason  ─▶  i counts j as joined
//! 5  the engine's frames, both ways
//! ```
//!
//! Without keys there is no step 1, and hello and welcome carry a secret each, which the processes
//! of a run have from the supervisor's pipes. That is allowed on loopback only.
//!
//! If the two sides differ in anything, both report it with both values. An unauthenticated peer
//! costs a thread for some seconds and nothing else: each step has a deadline, slow bytes do not
//! extend it, and the oldest peer is closed to make room (see `unauthenticated`). The process reads
//! no message of a peer without the pool's certificate, and at most 4 KiB of a peer without the
//! secret. Only a peer that has passed step 4 reaches the engine.
//!
//! Known limitation: the secret proves that a peer belongs to the run, but another program may have
//! taken the port of a process that ended. On a machine with hostile users, use keys on loopback,
//! too.

use std::io;
use std::io::Read;
use std::net::{SocketAddr, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};

use super::hello::{Hello, Message};
use super::identity::{Credentials, same_secret};
use super::messages::{MessageStream, Timed};
use super::roster::Roster;
use super::unauthenticated::{RefusalSink, Unauthenticated};
use crate::text::printable;

/// How long a refused peer may take to read the reason.
const CLOSE_DEADLINE: Duration = Duration::from_secs(1);

/// The timeouts of the steps.
#[derive(Clone, Copy, Debug)]
pub struct Deadlines {
    /// Of all connections together.
    pub join: Duration,
    /// Of the TLS handshake of one connection.
    pub handshake: Duration,
    /// Of the hello and welcome of one connection.
    pub hello: Duration,
}

impl Default for Deadlines {
    fn default() -> Deadlines {
        let seconds = Duration::from_secs;
        Deadlines { join: seconds(30), handshake: seconds(5), hello: seconds(5) }
    }
}

/// A process that joins others, and what it knows of them.
pub(crate) struct Participant {
    pub(super) me: usize,
    pub(super) roster: Roster,
    credentials: Credentials,
    pub(super) deadlines: Deadlines,
    /// When all processes must have joined.
    pub(super) until: Instant,
    pub unauthenticated: Unauthenticated,
    /// Whether each process that connects to this one has joined, by rank.
    joined: Mutex<Vec<bool>>,
}

/// The reason why a connection was not joined.
pub(crate) enum Unjoined {
    /// The other side refused, or is not the expected process: another attempt would fail, too.
    Refused(String),
    /// The connection broke or stayed silent.
    Broken(String),
}

impl Participant {
    /// A process of a run. It reports refused connections on stderr, which its supervisor reads.
    pub fn new(me: usize, roster: Roster, credentials: Credentials, deadlines: Deadlines) -> Participant {
        let report = move |text: &str| eprintln!("nigh: process {me} {}", printable(text));
        Participant::with_report(me, roster, credentials, deadlines, Box::new(report))
    }

    /// A process that reports refused connections to `report`.
    pub fn with_report(
        me: usize,
        roster: Roster,
        credentials: Credentials,
        deadlines: Deadlines,
        report: RefusalSink,
    ) -> Participant {
        let joined = Mutex::new(vec![false; roster.addresses.len()]);
        let until = Instant::now() + deadlines.join;
        Participant { me, roster, credentials, deadlines, until, unauthenticated: Unauthenticated::new(report), joined }
    }

    /// Authenticates a peer in a thread of its own, and passes it to `accepted` if it is a process
    /// of the run.
    pub fn authenticate(
        self: &Arc<Participant>,
        socket: TcpStream,
        peer: SocketAddr,
        accepted: impl FnOnce(usize, TcpStream, Option<rustls::Connection>) + Send + 'static,
    ) -> Result<()> {
        // An error of the system may pass: the peer tries again.
        let Ok(number) = self.unauthenticated.add(&socket) else { return Ok(()) };
        let participant = self.clone();
        spawn(move || match participant.welcome(&socket, number) {
            Ok((other, connection)) => accepted(other, socket, connection),
            Err(reason) => {
                participant.unauthenticated.refused(peer, &reason);
                close_after_read(&socket);
                participant.unauthenticated.remove(number);
            }
        })
    }

    /// Forgets that a process has joined: it may join again.
    #[cfg(feature = "pool")]
    pub fn forget(&self, other: usize) {
        if let Some(rank) = self.roster.rank(other) {
            self.joined.lock().unwrap_or_else(PoisonError::into_inner)[rank] = false;
        }
    }

    /// Steps 1 to 4 as the process that accepts. The error is the reason of the refusal.
    pub(super) fn welcome(
        &self,
        socket: &TcpStream,
        number: u64,
    ) -> Result<(usize, Option<rustls::Connection>), String> {
        let handshake_error = |error: io::Error| self.described(&error, self.deadlines.handshake);
        socket.set_nonblocking(false).and_then(|()| socket.set_nodelay(true)).map_err(handshake_error)?;
        let mut connection = match &self.credentials {
            Credentials::Secrets(_) => None,
            Credentials::Keys(keys) => Some(keys.accept().map_err(|error| crate::launch::wire::described(&error))?),
        };
        if let Some(connection) = &mut connection {
            self.handshake(socket, connection).map_err(handshake_error)?;
        }
        let hello_error = |error: io::Error| self.described(&error, self.deadlines.hello);
        let mut messages = self.messages(socket, &mut connection);
        let Message::Hello(hello) = messages.receive().map_err(hello_error)? else {
            return Err("its first message is not a hello".into());
        };
        let own = Hello::new(self.me, hello.me, &self.roster, self.credentials.secret(|secrets| secrets.welcome));
        if let Err(reason) = self
            .check_identity(&messages, &hello)
            .and_then(|()| own.check(&hello))
            .and_then(|()| self.check_free(hello.me))
        {
            // The peer is refused, whether it receives the reason or not.
            let _ = messages.send(&Message::Refused(reason.clone()));
            return Err(reason);
        }
        messages.send(&Message::Welcome(own)).map_err(hello_error)?;
        match messages.receive().map_err(hello_error)? {
            Message::Joined => {}
            Message::Refused(reason) => return Err(format!("process {} refuses: {reason}", hello.me)),
            _ => return Err("its last message is not that it has joined".into()),
        }
        // The connection may have been closed to make room, with this message still to be read.
        if !self.unauthenticated.remove(number) {
            return Err("it was closed to make room for other connections".into());
        }
        let mut joined = self.joined.lock().unwrap_or_else(PoisonError::into_inner);
        // `check_free` has found its rank.
        let is_first = self.roster.rank(hello.me).is_some_and(|rank| !std::mem::replace(&mut joined[rank], true));
        if !is_first {
            return Err(format!("process {} has joined already", hello.me));
        }
        Ok((hello.me, connection))
    }

    /// Checks that the sender of a hello is the process that it claims to be.
    fn check_identity(&self, messages: &MessageStream<'_>, hello: &Hello) -> Result<(), String> {
        let me = hello.me;
        match (&self.credentials, messages.connection()) {
            (Credentials::Keys(keys), Some(connection)) => keys
                .check(connection, me)
                .map_err(|error| format!("it claims to be process {me}: {}", crate::launch::wire::described(&error))),
            (credentials, _) if same_secret(hello.secret, credentials.secret(|secrets| secrets.hello)) => Ok(()),
            _ => Err(format!("it claims to be process {me}, and does not know the secret of this run")),
        }
    }

    /// Checks that a process may connect to this one and has not joined yet.
    fn check_free(&self, other: usize) -> Result<(), String> {
        let joined = self.joined.lock().unwrap_or_else(PoisonError::into_inner);
        match self.roster.rank(other).and_then(|rank| joined.get(rank)) {
            Some(_) if other <= self.me => {
                Err(format!("process {other} must wait for a connection of process {}, not connect to it", self.me))
            }
            Some(true) => Err(format!("process {other} has joined already")),
            Some(false) => Ok(()),
            None => Err(format!("there is no process {other} among {}", joined.len())),
        }
    }

    /// Steps 1 to 4 as the process that connects.
    pub fn introduce(&self, socket: &TcpStream, other: usize) -> Result<Option<rustls::Connection>, Unjoined> {
        socket.set_nodelay(true).map_err(|error| Unjoined::Broken(error.to_string()))?;
        let refused = |error: &rustls::Error| Unjoined::Refused(crate::launch::wire::described(error));
        let mut connection = match &self.credentials {
            Credentials::Secrets(_) => None,
            Credentials::Keys(keys) => Some(keys.connect(other).map_err(|error| refused(&error))?),
        };
        if let Some(connection) = &mut connection
            && let Err(error) = self.handshake(socket, connection)
        {
            // The other side may not have read the alert with the reason yet.
            close_after_read(socket);
            return Err(self.unjoined(&error, self.deadlines.handshake));
        }
        let hello_error = |error: io::Error| self.unjoined(&error, self.deadlines.hello);
        let mut messages = self.messages(socket, &mut connection);
        let own = Hello::new(self.me, other, &self.roster, self.credentials.secret(|secrets| secrets.hello));
        // A process that TLS refuses learns that when it reads, and may be unable to write by then.
        let sent = messages.send(&Message::Hello(own.clone()));
        let welcome = match (messages.receive(), sent) {
            (Ok(Message::Welcome(welcome)), _) => welcome,
            (Ok(Message::Refused(reason)), _) => {
                // Without TLS this may be any program that listens at the address.
                return Err(Unjoined::Refused(format!("it refuses: {}", printable(&reason))));
            }
            (Ok(_), _) => return Err(Unjoined::Refused("its first message is not a welcome".into())),
            (Err(error), _) => return Err(hello_error(error)),
        };
        let secret = same_secret(welcome.secret, self.credentials.secret(|secrets| secrets.welcome));
        let known = secret.then_some(()).ok_or_else(|| "it does not know the secret of this run".to_owned());
        if let Err(reason) = known.and_then(|()| own.check(&welcome)) {
            let _ = messages.send(&Message::Refused(reason.clone()));
            close_after_read(socket);
            return Err(Unjoined::Refused(reason));
        }
        messages.send(&Message::Joined).map_err(hello_error)?;
        Ok(connection)
    }

    fn handshake(&self, socket: &TcpStream, connection: &mut rustls::Connection) -> io::Result<()> {
        let mut timed = Timed::new(socket, self.deadline(self.deadlines.handshake));
        while connection.is_handshaking() || connection.wants_write() {
            if let Err(error) = connection.complete_io(&mut timed) {
                // The alert with the reason may still be in the buffer, behind other records.
                while connection.wants_write() && connection.write_tls(&mut timed).is_ok() {}
                return Err(error);
            }
        }
        Ok(())
    }

    /// The deadline of a step that starts now.
    fn deadline(&self, step: Duration) -> Instant {
        (Instant::now() + step).min(self.until)
    }

    fn messages<'a>(&self, socket: &'a TcpStream, connection: &'a mut Option<rustls::Connection>) -> MessageStream<'a> {
        MessageStream::new(socket, connection.as_mut(), self.deadline(self.deadlines.hello))
    }

    /// The message for an error of the network.
    fn described(&self, error: &io::Error, step: Duration) -> String {
        match error.kind() {
            io::ErrorKind::TimedOut => format!("it did not identify itself within {} s", step.as_secs_f32()),
            io::ErrorKind::UnexpectedEof => {
                "it closed the connection, or was closed to make room, before it had identified itself".into()
            }
            _ => crate::launch::wire::described_io(error),
        }
    }

    /// Classifies an error: an error of TLS or an invalid message is final, an error of the network
    /// may pass.
    fn unjoined(&self, error: &io::Error, step: Duration) -> Unjoined {
        let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
        match error.kind() {
            _ if inner.is_some() => Unjoined::Refused(crate::launch::wire::described_io(error)),
            io::ErrorKind::InvalidData => Unjoined::Refused(error.to_string()),
            _ => Unjoined::Broken(self.described(error, step)),
        }
    }
}

/// Closes a connection after the other side could read the last message: with unread bytes, the
/// system would discard that message.
pub(super) fn close_after_read(socket: &TcpStream) {
    let mut rest = Timed::new(socket, Instant::now() + CLOSE_DEADLINE);
    if socket.shutdown(std::net::Shutdown::Write).is_ok() {
        let _ = io::copy(&mut (&mut rest).take(64 << 10), &mut io::sink());
    }
    let _ = socket.shutdown(std::net::Shutdown::Both);
}

pub(super) fn spawn(work: impl FnOnce() + Send + 'static) -> Result<()> {
    let thread = std::thread::Builder::new().name("nigh:join".into()).spawn(work);
    thread.map(|_| ()).map_err(|error| anyhow!("cannot start a thread to join others: {error}"))
}
