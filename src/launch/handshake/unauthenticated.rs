//! Connections that have not said who they are: bounded in number, and told of when they are refused.

use std::collections::VecDeque;
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::{Mutex, PoisonError};

/// Connections that may be strangers at a time. When one more comes the oldest is closed: a process of the run needs
/// milliseconds to say who it is, and tries again, so that those who only hold a place do not keep it out.
const MOST: usize = 128;
/// Refusals that are told one by one; after them only each doubling is.
const TOLD: u64 = 8;

/// The strangers at the door of a process.
pub(crate) struct Strangers {
    state: Mutex<PeerQueue>,
    /// Tells of a refusal.
    say: RefusalSink,
}

/// Says a line whose subject, who refuses, is still missing.
pub(crate) type RefusalSink = Box<dyn Fn(&str) + Send + Sync>;

#[derive(Default)]
struct PeerQueue {
    next: u64,
    waiting: VecDeque<(u64, TcpStream)>,
    refused: u64,
    last: Option<String>,
}

impl Strangers {
    /// None yet; of those that are refused `say` will tell.
    pub fn new(say: RefusalSink) -> Strangers {
        Strangers { state: Mutex::default(), say }
    }

    fn state(&self) -> std::sync::MutexGuard<'_, PeerQueue> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets one in, and closes the oldest where there are too many. The number is for [`Strangers::leave`].
    pub fn enter(&self, socket: &TcpStream) -> std::io::Result<u64> {
        let socket = socket.try_clone()?;
        let mut state = self.state();
        if state.waiting.len() >= MOST {
            state.waiting.pop_front().into_iter().for_each(|(_, oldest)| close(&oldest));
        }
        state.next += 1;
        let number = state.next;
        state.waiting.push_back((number, socket));
        Ok(number)
    }

    /// Forgets one: it has said who it is, or was refused. Says whether it was still let in.
    pub fn leave(&self, number: u64) -> bool {
        let mut state = self.state();
        let before = state.waiting.len();
        state.waiting.retain(|(other, _)| *other != number);
        state.waiting.len() < before
    }

    /// Closes all: nobody else is waited for.
    pub fn close_all(&self) {
        self.state().waiting.drain(..).for_each(|(_, socket)| close(&socket));
    }

    /// Notes a refusal, and tells of it unless there were many.
    pub fn refused(&self, who: SocketAddr, reason: &str) {
        let mut state = self.state();
        state.refused += 1;
        let refused = state.refused;
        state.last = Some(format!("{refused} connections were refused, the last from {who}: {reason}"));
        // Whoever reads what is said may be slow; nobody else waits for that.
        drop(state);
        if refused <= TOLD {
            (self.say)(&format!("refused a connection from {who}: {reason}"));
        } else if refused.is_power_of_two() {
            (self.say)(&format!("refused {refused} connections so far; now from {who}: {reason}"));
        }
    }

    /// What was refused, in words; `None` where nothing was.
    pub fn last(&self) -> Option<String> {
        self.state().last.clone()
    }
}

fn close(socket: &TcpStream) {
    // An error says that it is closed already.
    let _ = socket.shutdown(Shutdown::Both);
}
