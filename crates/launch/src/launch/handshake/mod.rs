//! The handshake of processes: how the processes of a run connect and authenticate each other.
//!
//! In reading order: `join` (all connections of a process), `participant` (the protocol of one
//! connection), `roster` (the processes and their addresses), `identity` (how a process
//! authenticates itself), `hello` (the messages, and what they must agree on), `messages` (sends
//! and receives them in time), `unauthenticated` (limits for peers that have not authenticated
//! themselves yet).

mod hello;
mod identity;
mod join;
mod messages;
pub(crate) mod participant;
mod roster;
#[cfg(test)]
mod tests;
pub(crate) mod unauthenticated;

pub use self::hello::Message;
pub use self::identity::{Credentials, Identity, Secrets};
pub use self::join::{join, listen};
pub use self::messages::receive;
pub use self::participant::Deadlines;
pub use self::roster::Roster;
