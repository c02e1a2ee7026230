//! Joining: every two processes of a run connect and authenticate each other. No other peer is
//! accepted.
//!
//! Every process listens on a port and reports it to the supervisor, which sends the [`Roster`] to
//! all. Process j then connects to every i < j and accepts connections of every k > j, all at the
//! same time. These are the numbers of the config, as in certificates and messages; only the engine
//! counts by rank. A connection is joined in these steps:
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
//! If the two sides differ in anything, both report it with both values. A refusal is final for the
//! process that receives it. A connection that breaks or stays silent is tried again until the
//! deadline of the whole: the other process may be busy with unauthenticated peers. Such a peer
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
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail, ensure};

use super::hello::{Hello, Message};
use super::identity::{Credentials, same_secret};
use super::messages::{MessageStream, Timed};
use super::roster::Roster;
use super::unauthenticated::{RefusalSink, Unauthenticated};
use crate::launch::wire::{Link, TlsConnection};
use crate::text::printable;

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

/// How long a refused peer may take to read the reason.
const CLOSE_DEADLINE: Duration = Duration::from_secs(1);
/// The pause before a broken connection is tried again.
const RETRY_PAUSE: Duration = Duration::from_millis(100);
/// How often the listener is polled.
const POLL_EVERY: Duration = Duration::from_millis(2);

/// Listens at `address`, and returns the actual address; the system chooses the port if it is 0.
///
/// # Errors
/// The port is not free, or the address is not on loopback and there are no keys.
pub fn listen(address: SocketAddr, credentials: &Credentials) -> Result<(TcpListener, SocketAddr)> {
    credentials.allow(address)?;
    let listener = TcpListener::bind(address).with_context(|| format!("cannot listen on {address}"))?;
    let address = listener.local_addr().context("cannot find the port")?;
    Ok((listener, address))
}

/// Connects to all other processes of the roster as the process with number `me`. Returns the
/// connections by rank, `None` at its own.
///
/// # Errors
/// A process did not join within the deadline, or refused; the message has its number and the
/// reason.
pub fn join(
    me: usize,
    listener: &TcpListener,
    roster: &Roster,
    credentials: &Credentials,
    deadlines: Deadlines,
) -> Result<Vec<Option<Link>>> {
    ensure!(roster.rank(me).is_some(), "process {me} is not of the {} of the roster", roster.addresses.len());
    roster.addresses.iter().try_for_each(|address| credentials.allow(*address))?;
    Arc::new(Participant::new(me, roster.clone(), credentials.clone(), deadlines)).join(listener)
}

/// A process that joins others.
pub(crate) struct Participant {
    me: usize,
    roster: Roster,
    credentials: Credentials,
    deadlines: Deadlines,
    /// When all processes must have joined.
    until: Instant,
    pub unauthenticated: Unauthenticated,
    /// Whether each process that connects to this one has joined, by rank.
    joined: Mutex<Vec<bool>>,
}

/// A process with its connection, or a final error.
type JoinResult = Result<(usize, Link)>;

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

    fn join(self: &Arc<Participant>, listener: &TcpListener) -> Result<Vec<Option<Link>>> {
        let links = self.connect_all(listener);
        self.unauthenticated.close_all();
        links
    }

    /// Connects to the processes below this one and accepts those above.
    fn connect_all(self: &Arc<Participant>, listener: &TcpListener) -> Result<Vec<Option<Link>>> {
        let (me, numbers) = (self.me, &self.roster.numbers);
        let mut links: Vec<Option<Link>> = numbers.iter().map(|_| None).collect();
        let (sender, results) = channel();
        for other in numbers.iter().copied().take_while(|other| *other < me) {
            let (participant, sender) = (self.clone(), sender.clone());
            spawn(move || sender.send(participant.connect(other)).unwrap_or(()))?;
        }
        listener.set_nonblocking(true).context("cannot listen")?;
        let mut missing = numbers.len() - 1;
        while missing > 0 {
            self.accept(listener, &sender)?;
            match results.recv_timeout(POLL_EVERY) {
                Ok(Ok((other, link))) => {
                    link.watch_silence(self.roster.peer_timeout).context("cannot set the timeouts of a connection")?;
                    let rank = self.roster.rank(other).context("only processes of the roster join")?;
                    missing -= usize::from(links[rank].replace(link).is_none());
                }
                Ok(Err(error)) => return Err(error),
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {}
            }
            // The threads that connect from here have more exact errors, and some time to report
            // them.
            if Instant::now() > self.until + RETRY_PAUSE {
                let late = numbers.iter().zip(&links).filter(|(number, link)| **number != me && link.is_none());
                let late: Vec<String> = late.map(|(number, _)| number.to_string()).collect();
                let refused = self.unauthenticated.last().map_or_else(String::new, |last| format!("; {last}"));
                let (late, seconds) = (late.join(", "), self.deadlines.join.as_secs_f32());
                bail!("process {late} did not join process {me} within {seconds} s{refused}");
            }
        }
        Ok(links)
    }

    /// Accepts the connections that wait at the listener, each in a thread of its own.
    fn accept(self: &Arc<Participant>, listener: &TcpListener, sender: &Sender<JoinResult>) -> Result<()> {
        loop {
            let (socket, peer) = match listener.accept() {
                Ok(accepted) => accepted,
                // No connection waits; or an error of one connection or of the system, which may
                // pass: the deadline bounds it.
                Err(_) => return Ok(()),
            };
            let sender = sender.clone();
            self.authenticate(socket, peer, move |other, socket, connection| {
                let _ = sender.send(joined(socket, connection).map(|link| (other, link)));
            })?;
        }
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

    #[cfg(feature = "pool")]
    /// Forgets that a process has joined: it may join again.
    pub fn forget(&self, other: usize) {
        if let Some(rank) = self.roster.rank(other) {
            self.joined.lock().unwrap_or_else(PoisonError::into_inner)[rank] = false;
        }
    }

    /// Steps 1 to 4 as the process that accepts. The error is the reason of the refusal.
    fn welcome(&self, socket: &TcpStream, number: u64) -> Result<(usize, Option<rustls::Connection>), String> {
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

    /// Connects to a process; tries again until the deadline.
    fn connect(&self, other: usize) -> JoinResult {
        let me = self.me;
        let rank = self.roster.rank(other).with_context(|| format!("there is no process {other} in the roster"))?;
        let address = self.roster.addresses[rank];
        loop {
            let error = match self.attempt(other, address) {
                Ok(link) => return Ok((other, link)),
                Err(Unjoined::Refused(reason)) => {
                    bail!("process {me} cannot join process {other} at {address}: {reason}")
                }
                Err(Unjoined::Broken(reason)) => reason,
            };
            if Instant::now() + RETRY_PAUSE >= self.until {
                let seconds = self.deadlines.join.as_secs_f32();
                bail!("process {me} could not join process {other} at {address} within {seconds} s: {error}");
            }
            std::thread::sleep(RETRY_PAUSE);
        }
    }

    fn attempt(&self, other: usize, address: SocketAddr) -> Result<Link, Unjoined> {
        let left = self.until.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
        let socket = TcpStream::connect_timeout(&address, left).map_err(|error| Unjoined::Broken(error.to_string()))?;
        let connection = self.introduce(&socket, other)?;
        joined(socket, connection).map_err(|error| Unjoined::Broken(format!("{error:#}")))
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

/// The reason why a connection was not joined.
pub(crate) enum Unjoined {
    /// The other side refused, or is not the expected process: another attempt would fail, too.
    Refused(String),
    /// The connection broke or stayed silent.
    Broken(String),
}

/// Makes a connection for the engine: without timeouts.
fn joined(socket: TcpStream, connection: Option<rustls::Connection>) -> Result<Link> {
    socket.set_read_timeout(None).and_then(|()| socket.set_write_timeout(None)).context("cannot use a connection")?;
    Ok(match connection {
        Some(connection) => Link::tls(TlsConnection::new(socket, connection)),
        None => Link::plain(socket),
    })
}

/// Closes a connection after the other side could read the last message: with unread bytes, the
/// system would discard that message.
fn close_after_read(socket: &TcpStream) {
    let mut rest = Timed::new(socket, Instant::now() + CLOSE_DEADLINE);
    if socket.shutdown(std::net::Shutdown::Write).is_ok() {
        let _ = io::copy(&mut (&mut rest).take(64 << 10), &mut io::sink());
    }
    let _ = socket.shutdown(std::net::Shutdown::Both);
}

fn spawn(work: impl FnOnce() + Send + 'static) -> Result<()> {
    let thread = std::thread::Builder::new().name("nigh:join".into()).spawn(work);
    thread.map(|_| ()).map_err(|error| anyhow!("cannot start a thread to join others: {error}"))
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::net::{IpAddr, Ipv4Addr};
    use std::path::Path;
    use std::thread::JoinHandle;

    use timely::communication::allocator::zero_copy::stream::Stream;

    use super::*;
    use crate::launch::handshake::identity::{Identity, Secrets};
    use crate::launch::handshake::roster::Roster;
    use crate::launch::wire::keys;

    const LOOPBACK: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

    /// Long enough for a loaded machine; a test that waits for a deadline has its own.
    const PATIENT: Deadlines =
        Deadlines { join: Duration::from_secs(60), handshake: Duration::from_secs(30), hello: Duration::from_secs(30) };

    fn secrets() -> Identity {
        Identity::Secrets(Secrets::generate().unwrap())
    }

    fn keys(folder: &Path) -> Identity {
        keys::make(folder, 3, 1).unwrap();
        Identity::Keys(folder.to_owned())
    }

    /// Three processes that listen.
    fn three(identity: &Identity) -> (Vec<TcpListener>, Roster) {
        let credentials = |me| identity.credentials(me).unwrap();
        let listeners = (0..3).map(|me| listen(LOOPBACK, &credentials(me)).unwrap());
        let (listeners, addresses): (Vec<TcpListener>, Vec<SocketAddr>) = listeners.unzip();
        (listeners, Roster::new(7, 3, addresses))
    }

    type Joining = JoinHandle<Result<Vec<Option<Link>>>>;

    fn start(participant: &Arc<Participant>, listener: TcpListener) -> Joining {
        let participant = participant.clone();
        std::thread::spawn(move || participant.join(&listener))
    }

    /// Asserts that every two processes can exchange more bytes than sockets hold, and close the
    /// connection.
    fn assert_joined(joined: Vec<Vec<Option<Link>>>) {
        const BYTES: usize = 3 << 20;
        let mut threads = Vec::new();
        for (me, links) in joined.into_iter().enumerate() {
            for (other, link) in links.into_iter().enumerate() {
                assert_eq!(link.is_none(), me == other);
                let Some(link) = link else { continue };
                let (mut reader, mut writer) = (link.try_clone().unwrap(), link);
                threads.push(std::thread::spawn(move || {
                    // A frame of the engine.
                    let mut frame = vec![me as u8; 48 + BYTES];
                    frame[32..40].copy_from_slice(&(BYTES as u64).to_be_bytes());
                    writer.write_all(&frame).unwrap();
                    writer.flush().unwrap();
                    writer.shutdown(std::net::Shutdown::Write).unwrap();
                }));
                threads.push(std::thread::spawn(move || {
                    let mut all = Vec::new();
                    reader.read_to_end(&mut all).unwrap();
                    assert!(all.len() == 48 + BYTES && all[48..].iter().all(|byte| *byte == other as u8));
                }));
            }
        }
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    }

    /// Lets an intruder try to join process 0 of three. Returns its error and the last refusal of
    /// process 0. The three processes then join each other.
    fn intruder(identity: &Identity, intrude: impl FnOnce(&Roster) -> String) -> (String, String) {
        let (listeners, roster) = three(identity);
        let participant =
            |me| Arc::new(Participant::new(me, roster.clone(), identity.credentials(me).unwrap(), PATIENT));
        let participants: Vec<Arc<Participant>> = (0..3).map(participant).collect();
        let mut listeners = listeners.into_iter();
        let mut threads = vec![start(&participants[0], listeners.next().unwrap())];
        let theirs = intrude(&roster);
        let begun = Instant::now();
        let ours = loop {
            if let Some(last) = participants[0].unauthenticated.last() {
                break last;
            }
            assert!(begun.elapsed() < PATIENT.join, "nothing was refused");
            std::thread::sleep(POLL_EVERY);
        };
        threads.extend(
            participants[1..].iter().zip(listeners).map(|(participant, listener)| start(participant, listener)),
        );
        assert_joined(threads.into_iter().map(|thread| thread.join().unwrap().unwrap()).collect());
        (theirs, ours)
    }

    /// Joins as a process with these credentials and returns the error.
    fn impostor(me: usize, roster: Roster, credentials: &Credentials) -> String {
        let (listener, _) = listen(LOOPBACK, credentials).unwrap();
        let error = join(me, &listener, &roster, credentials, PATIENT).err().expect("it was refused");
        format!("{error:#}")
    }

    fn assert_words(text: &str, words: &[&str]) {
        words.iter().for_each(|word| assert!(text.contains(word), "{word}: {text}"));
    }

    #[test]
    fn processes_join_each_other_by_secrets_and_by_keys() {
        let folder = tempfile::tempdir().unwrap();
        for identity in [secrets(), keys(folder.path())] {
            let (listeners, roster) = three(&identity);
            let thread = |(me, listener)| {
                start(
                    &Arc::new(Participant::new(me, roster.clone(), identity.credentials(me).unwrap(), PATIENT)),
                    listener,
                )
            };
            let threads: Vec<Joining> = listeners.into_iter().enumerate().map(thread).collect();
            assert_joined(threads.into_iter().map(|thread| thread.join().unwrap().unwrap()).collect());
        }
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn connections_are_watched_for_as_long_as_the_roster_says() {
        let folder = tempfile::tempdir().unwrap();
        for identity in [secrets(), keys(folder.path())] {
            let (listeners, roster) = three(&identity);
            let roster = Roster { peer_timeout: Duration::from_millis(90_500), ..roster };
            let thread = |(me, listener)| {
                start(
                    &Arc::new(Participant::new(me, roster.clone(), identity.credentials(me).unwrap(), PATIENT)),
                    listener,
                )
            };
            let threads: Vec<Joining> = listeners.into_iter().enumerate().map(thread).collect();
            let links: Vec<Link> =
                threads.into_iter().flat_map(|thread| thread.join().unwrap().unwrap()).flatten().collect();
            assert_eq!(links.len(), 6);
            for link in &links {
                assert_eq!(rustix::net::sockopt::tcp_user_timeout(link.socket()).unwrap(), 90_500);
            }
        }
    }

    #[test]
    fn plain_sockets_stay_on_this_machine() {
        let credentials = secrets().credentials(0).unwrap();
        let elsewhere: SocketAddr = "192.0.2.1:0".parse().unwrap();
        assert_words(
            &format!("{:#}", listen(elsewhere, &credentials).unwrap_err()),
            &["192.0.2.1:0", "not on loopback"],
        );
        let (listener, own) = listen(LOOPBACK, &credentials).unwrap();
        let roster = Roster::new(7, 0, vec![own, elsewhere]);
        let error = join(0, &listener, &roster, &credentials, PATIENT).err().unwrap();
        assert_words(&format!("{error:#}"), &["192.0.2.1:0", "not on loopback", "TLS"]);
    }

    #[test]
    fn the_secret_of_another_run_is_refused() {
        let identity = secrets();
        let other = secrets().credentials(1).unwrap();
        let (theirs, ours) = intruder(&identity, |roster| impostor(1, roster.clone(), &other));
        assert_words(&theirs, &["process 1 cannot join process 0", "does not know the secret of this run"]);
        assert_words(&ours, &["it claims to be process 1", "does not know the secret of this run"]);
    }

    #[test]
    fn the_certificate_of_another_pool_is_refused() {
        let (own, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let identity = keys(own.path());
        let foreign = keys(other.path()).credentials(1).unwrap();
        let (theirs, ours) = intruder(&identity, |roster| impostor(1, roster.clone(), &foreign));
        // It does not accept our certificate either, and refuses before it sends its own.
        assert_words(&theirs, &["process 1 cannot join process 0", "not of the authority of this pool"]);
        assert_words(&ours, &["127.0.0.1", "the other side refuses the connection"]);
        // A process that accepts any certificate is refused for its own.
        let mixed = tempfile::tempdir().unwrap();
        for (from, name) in [(&own, "authority.pem"), (&other, "process-001.pem"), (&other, "process-001.key")]
            .map(|(f, n)| (f.path(), n))
        {
            std::fs::copy(from.join(name), mixed.path().join(name)).unwrap();
        }
        let unchecked = Credentials::Keys(crate::launch::wire::TlsKeys::load_unchecked(mixed.path(), 1));
        let (theirs, ours) = intruder(&identity, |roster| impostor(1, roster.clone(), &unchecked));
        assert_words(&theirs, &["process 1 cannot join process 0", "the other side refuses the connection"]);
        assert_words(&ours, &["the certificate is not of the authority of this pool"]);
    }

    #[test]
    fn a_certificate_serves_its_own_process_only() {
        let folder = tempfile::tempdir().unwrap();
        let identity = keys(folder.path());
        let second = identity.credentials(2).unwrap();
        let (theirs, ours) = intruder(&identity, |roster| impostor(1, roster.clone(), &second));
        let reason = "that of process-2.nigh.internal, not of process-1.nigh.internal";
        assert_words(&theirs, &["process 1 cannot join process 0", "it refuses", reason]);
        assert_words(&ours, &["claims to be process 1", reason]);
    }

    /// The errors of both sides of a connection that is not joined: process 1, which connects, and
    /// process 0, which accepts.
    fn unjoined(client: Credentials, server: Credentials) -> (String, String) {
        let (listener, address) = listen(LOOPBACK, &server).unwrap();
        let roster = Roster::new(7, 3, vec![address; 2]);
        let participant = |me, credentials| Participant::new(me, roster.clone(), credentials, PATIENT);
        let (one, zero) = (participant(1, client), participant(0, server));
        let connecting = std::thread::spawn(move || match one.introduce(&TcpStream::connect(address).unwrap(), 0) {
            Err(Unjoined::Refused(reason)) => reason,
            Err(Unjoined::Broken(reason)) => panic!("it would try again: {reason}"),
            Ok(_) => panic!("it joined"),
        });
        let (socket, _) = listener.accept().unwrap();
        let number = zero.unauthenticated.add(&socket).unwrap();
        let ours = zero.welcome(&socket, number).expect_err("it is not joined");
        close_after_read(&socket);
        (connecting.join().unwrap(), ours)
    }

    #[test]
    fn a_certificate_that_expires_before_a_handshake_is_reported_by_both_sides() {
        let shown = "the certificate expired on 2023-11-14T22:13:20Z";
        let own = "the other side refuses the connection: this one's certificate has expired there";
        for expired in [1, 0] {
            let folder = tempfile::tempdir().unwrap();
            let identity = keys(folder.path());
            keys::expire(folder.path(), expired);
            // The process loaded its file when the certificate was still valid.
            let late = Credentials::Keys(crate::launch::wire::TlsKeys::load_unchecked(folder.path(), expired));
            let valid = identity.credentials(1 - expired).unwrap();
            let (client, server) = if expired == 1 { (late, valid) } else { (valid, late) };
            let (theirs, ours) = unjoined(client, server);
            let (late, valid) = if expired == 1 { (theirs, ours) } else { (ours, theirs) };
            assert_words(&late, &[own]);
            assert_words(&valid, &[shown]);
        }
    }

    #[test]
    fn a_process_of_an_earlier_generation_and_of_another_job_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        for identity in [secrets(), keys(folder.path())] {
            let own = identity.credentials(1).unwrap();
            let reason = "process 1 is of epoch 2, process 0 is of epoch 3";
            let (theirs, ours) = intruder(&identity, |roster| impostor(1, Roster { epoch: 2, ..roster.clone() }, &own));
            assert_words(&theirs, &["process 1 cannot join process 0", "it refuses", reason]);
            assert_words(&ours, &[reason]);
            let reason = "process 1 does job 0000000000000008, process 0 does job 0000000000000007";
            let (theirs, ours) = intruder(&identity, |roster| impostor(1, Roster { job: 8, ..roster.clone() }, &own));
            assert_words(&theirs, &["it refuses", reason]);
            assert_words(&ours, &[reason]);
        }
    }

    #[test]
    fn garbage_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        for (identity, reason) in
            [(secrets(), "this is not a process of nigh"), (keys(folder.path()), "this is not TLS")]
        {
            let (_, ours) = intruder(&identity, |roster| {
                let mut garbage = TcpStream::connect(roster.addresses[0]).unwrap();
                garbage.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
                let mut answer = Vec::new();
                // The system may cut the connection.
                let _ = garbage.read_to_end(&mut answer);
                String::from_utf8_lossy(&answer).into_owned()
            });
            assert_words(&ours, &["1 connections were refused, the last from 127.0.0.1", reason]);
        }
    }

    #[test]
    fn the_reason_of_a_stranger_does_not_act_on_the_terminal() {
        let identity = secrets();
        let listener = TcpListener::bind(LOOPBACK).unwrap();
        let stranger = std::thread::spawn({
            let listener = listener.try_clone().unwrap();
            move || {
                let (socket, _) = listener.accept().unwrap();
                let mut messages = MessageStream::new(&socket, None, Instant::now() + PATIENT.hello);
                let _ = messages.receive();
                messages.send(&Message::Refused("\x1b]0;pwned\x07\x1b[2J\nnigh: all is well".into())).unwrap();
                close_after_read(&socket);
            }
        });
        let credentials = identity.credentials(1).unwrap();
        let (own, address) = listen(LOOPBACK, &credentials).unwrap();
        let roster = Roster::new(7, 3, vec![listener.local_addr().unwrap(), address]);
        let error = join(1, &own, &roster, &credentials, PATIENT).err().unwrap();
        assert_words(&format!("{error:#}"), &[r"it refuses: \u{1b}]0;pwned\u{7}\u{1b}[2J\u{a}nigh: all is well"]);
        stranger.join().unwrap();
    }

    #[test]
    fn too_many_silent_peers_do_not_keep_the_processes_of_the_run_out() {
        let folder = tempfile::tempdir().unwrap();
        for identity in [secrets(), keys(folder.path())] {
            let mut silent = Vec::new();
            let (_, ours) = intruder(&identity, |roster| {
                silent.extend((0..200).map(|_| TcpStream::connect(roster.addresses[0]).unwrap()));
                String::new()
            });
            assert_words(&ours, &["it closed the connection, or was closed to make room"]);
        }
    }

    #[test]
    fn slow_bytes_do_not_extend_a_deadline() {
        let identity = secrets();
        let (listeners, roster) = three(&identity);
        let deadlines = Deadlines { join: PATIENT.join, handshake: PATIENT.hello, hello: Duration::from_millis(300) };
        let participant = Arc::new(Participant::new(0, roster.clone(), identity.credentials(0).unwrap(), deadlines));
        let (socket, server) = {
            let socket = TcpStream::connect(roster.addresses[0]).unwrap();
            (socket, listeners[0].accept().unwrap().0)
        };
        // A byte every 20 ms would keep the connection open without end if each byte extended the
        // deadline.
        let ended = Arc::new(std::sync::atomic::AtomicBool::new(false));
        let dripping = std::thread::spawn({
            let (ended, mut socket) = (ended.clone(), socket.try_clone().unwrap());
            move || {
                for byte in b"nigh-jn\n\xff\x0f\0\0".iter().chain(std::iter::repeat(&b' ')) {
                    if ended.load(std::sync::atomic::Ordering::Relaxed) || socket.write_all(&[*byte]).is_err() {
                        return;
                    }
                    std::thread::sleep(Duration::from_millis(20));
                }
            }
        });
        let number = participant.unauthenticated.add(&server).unwrap();
        let reason = participant.welcome(&server, number).err().unwrap();
        ended.store(true, std::sync::atomic::Ordering::Relaxed);
        assert_words(&reason, &["it did not identify itself within 0.3 s"]);
        dripping.join().unwrap();
    }

    #[test]
    fn a_process_that_does_not_join_is_named_with_the_connections_that_were_refused() {
        let identity = secrets();
        let (mut listeners, roster) = three(&identity);
        let short = Deadlines { join: Duration::from_secs(2), ..PATIENT };
        let mut garbage = TcpStream::connect(roster.addresses[0]).unwrap();
        garbage.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
        let credentials = identity.credentials(0).unwrap();
        let error = join(0, &listeners.remove(0), &roster, &credentials, short).err().unwrap();
        assert_words(
            &format!("{error:#}"),
            &["process 1, 2 did not join process 0 within 2 s", "not a process of nigh"],
        );
        // A process to which this one connects is named with its address.
        drop(listeners.remove(0));
        let credentials = identity.credentials(2).unwrap();
        let error = join(2, &listeners.remove(0), &roster, &credentials, short).err().unwrap();
        assert_words(&format!("{error:#}"), &["could not join process", "127.0.0.1:", "within 2 s"]);
    }

    #[test]
    fn a_frame_that_claims_too_much_ends_a_joined_connection() {
        let folder = tempfile::tempdir().unwrap();
        for identity in [secrets(), keys(folder.path())] {
            let (listeners, roster) = three(&identity);
            let roster = Roster::new(7, 3, roster.addresses[..2].to_vec());
            let thread = |(me, listener)| {
                start(
                    &Arc::new(Participant::new(me, roster.clone(), identity.credentials(me).unwrap(), PATIENT)),
                    listener,
                )
            };
            let threads: Vec<Joining> = listeners.into_iter().take(2).enumerate().map(thread).collect();
            let mut links = threads.into_iter().map(|thread| thread.join().unwrap().unwrap());
            let (mut zero, mut one) = (links.next().unwrap(), links.next().unwrap());
            let (mut reader, mut writer) = (zero[1].take().unwrap(), one[0].take().unwrap());
            let mut frame = [0; 48];
            frame[32..40].copy_from_slice(&(1u64 << 60).to_be_bytes());
            writer.write_all(&frame).unwrap();
            writer.flush().unwrap();
            let error = reader.read_to_end(&mut Vec::new()).unwrap_err();
            assert_words(&error.to_string(), &["refused a frame of 1152921504606846976 bytes"]);
        }
    }
}
