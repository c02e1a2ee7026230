//! Joining: every two processes of a run connect and authenticate each other. No other peer is
//! accepted.
//!
//! Every process listens on a port and reports it to the supervisor, which sends the [`Roster`] to
//! all. Process j then connects to every i < j and accepts connections of every k > j, all at the
//! same time. These are the numbers of the config, as in certificates and messages; only the engine
//! counts by rank. What each connection goes through, and what keeps others out, is in
//! `participant`.
//!
//! A refusal is final for the process that receives it. A connection that breaks or stays silent is
//! tried again until the deadline of the whole: the other process may be busy with unauthenticated
//! peers.

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use super::identity::Credentials;
use super::participant::{Deadlines, Participant, Unjoined, spawn};
use super::roster::Roster;
use crate::launch::wire::{Link, TlsConnection};

/// The pause before a broken connection is tried again.
const RETRY_PAUSE: Duration = Duration::from_millis(100);
/// How often the listener is polled.
pub(super) const POLL_EVERY: Duration = Duration::from_millis(2);

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

/// A process with its connection, or a final error.
type JoinResult = Result<(usize, Link)>;

impl Participant {
    pub(super) fn join(self: &Arc<Participant>, listener: &TcpListener) -> Result<Vec<Option<Link>>> {
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
}

/// Makes a connection for the engine: without timeouts.
fn joined(socket: TcpStream, connection: Option<rustls::Connection>) -> Result<Link> {
    socket.set_read_timeout(None).and_then(|()| socket.set_write_timeout(None)).context("cannot use a connection")?;
    Ok(match connection {
        Some(connection) => Link::tls(TlsConnection::new(socket, connection)),
        None => Link::plain(socket),
    })
}
