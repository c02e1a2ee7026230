//! Peers that have not authenticated themselves yet: bounds their number, and reports those that
//! are refused.

use std::collections::VecDeque;
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::{Mutex, PoisonError};

use crate::text::printable;

/// The most unauthenticated connections at a time. One more closes the oldest: a process of the run
/// needs milliseconds to authenticate itself, and tries again, so connections that stay silent
/// cannot keep it out.
const MAX_CONNECTIONS: usize = 128;
/// How many refusals are reported one by one; after these, only each doubling of their number is.
const REPORTED: u64 = 8;

/// The unauthenticated peers of a process.
pub(crate) struct Unauthenticated {
    state: Mutex<PeerQueue>,
    /// Reports a refusal.
    report: RefusalSink,
}

/// Receives a message about refused connections; its subject, the process that refuses, is still
/// missing.
pub(crate) type RefusalSink = Box<dyn Fn(&str) + Send + Sync>;

#[derive(Default)]
struct PeerQueue {
    next: u64,
    waiting: VecDeque<(u64, TcpStream)>,
    refused: u64,
    last: Option<String>,
}

impl Unauthenticated {
    /// No peers yet; refusals go to `report`.
    pub fn new(report: RefusalSink) -> Unauthenticated {
        Unauthenticated { state: Mutex::default(), report }
    }

    fn state(&self) -> std::sync::MutexGuard<'_, PeerQueue> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a connection, and closes the oldest if there are too many. Returns a number for
    /// [`Unauthenticated::remove`].
    pub fn add(&self, socket: &TcpStream) -> std::io::Result<u64> {
        let socket = socket.try_clone()?;
        let mut state = self.state();
        if state.waiting.len() >= MAX_CONNECTIONS {
            state.waiting.pop_front().into_iter().for_each(|(_, oldest)| close(&oldest));
        }
        state.next += 1;
        let number = state.next;
        state.waiting.push_back((number, socket));
        Ok(number)
    }

    /// Removes a connection that was authenticated or refused. Returns `false` if it was closed
    /// before, to make room.
    pub fn remove(&self, number: u64) -> bool {
        let mut state = self.state();
        let before = state.waiting.len();
        state.waiting.retain(|(other, _)| *other != number);
        state.waiting.len() < before
    }

    /// Closes all connections: no further process is expected.
    pub fn close_all(&self) {
        self.state().waiting.drain(..).for_each(|(_, socket)| close(&socket));
    }

    /// Counts a refusal, and reports it unless there were many.
    pub fn refused(&self, peer: SocketAddr, reason: &str) {
        // It may be in the words of the peer.
        let reason = printable(reason);
        let mut state = self.state();
        state.refused += 1;
        let refused = state.refused;
        state.last = Some(format!("{refused} connections were refused, the last from {peer}: {reason}"));
        // The report may be slow: no other connection waits for it.
        drop(state);
        if refused <= REPORTED {
            (self.report)(&format!("refused a connection from {peer}: {reason}"));
        } else if refused.is_power_of_two() {
            (self.report)(&format!("refused {refused} connections so far; now from {peer}: {reason}"));
        }
    }

    /// A message about all refusals so far; `None` if there were none.
    pub fn last(&self) -> Option<String> {
        self.state().last.clone()
    }
}

fn close(socket: &TcpStream) {
    // An error means that it is closed already.
    let _ = socket.shutdown(Shutdown::Both);
}
