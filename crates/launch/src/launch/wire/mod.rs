//! Connections between processes: TLS keys, TLS, the limit of frames, timeouts.
//!
//! In reading order: `key_files` and `keys` (the TLS keys of a pool), `tls` (mutual TLS 1.3),
//! `frames` (the length limit of the engine's messages), `link` (a connection as timely uses it).

pub(crate) mod frames;
pub mod key_files;
#[cfg(any(test, feature = "pool"))]
pub mod keys;
pub(crate) mod link;
pub(crate) mod tls;

pub(crate) use self::frames::REFUSED;
pub use self::frames::{Frames, MAX_FRAME_BYTES};
#[cfg(feature = "pool")]
pub use self::keys::{DEFAULT_DAYS, MadeKeys, make};
pub use self::link::Link;
pub use self::tls::{TlsConnection, TlsKeys};
pub(crate) use self::tls::{described, described_io};
