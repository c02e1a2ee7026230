//! How the processes of a run join.
//!
//! In reading order: `roster` (the processes and their addresses), `identity` (what a process proves), `hello` and `messages`
//! (what processes send each other), `unauthenticated` (limits for peers that have proved nothing yet), `join` (the protocol).

mod hello;
mod identity;
pub(crate) mod join;
mod messages;
mod roster;
mod unauthenticated;

pub use self::identity::{Credentials, Identity, Secrets};
pub use self::join::{Deadlines, join, listen};
pub use self::roster::Roster;
