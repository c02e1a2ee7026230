//! What a process is asked that has a part of the keys, and what it answers.
//!
//! A message is its length, four bytes in little-endian order, and as many bytes of postcard. Both
//! sides begin with a [`PartHello`]. Then each request has one reply; the process that asks sends
//! the next request when it has that.
//!
//! The messages go over the standard input and output of the process, which only the process that
//! started it has: so there is no key. What comes is checked all the same, for `ssh` may print
//! something before it.

use std::io::{ErrorKind, Read, Write};

use anyhow::{Context, Result, bail, ensure};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::live::engine::keys::{EdgeChange, KeyShare, NodeLists};
use crate::records::FeatureBits;
use crate::text::printable;

/// The version of the messages.
const PROTOCOL: u32 = 1;
/// What a hello begins with.
const MAGIC: [u8; 8] = *b"nighkeys";
/// The most bytes of a message, and of a hello.
pub(super) const MOST_BYTES: usize = 64 << 20;
const MOST_OF_HELLO: usize = 256;

/// Which program sends. Later versions may add fields, and keep these.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct PartHello {
    magic: [u8; 8],
    protocol: u32,
    program: String,
}

/// What is asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Request {
    /// To begin with a part of the keys and of the features, without nodes and documents.
    Begin { part: KeyShare, width: usize, agreements: usize, features: usize },
    /// To take nodes out of their keys, in this order.
    Remove { nodes: Vec<u32> },
    /// To add nodes to their keys, in this order, with the supershingles of each.
    Insert { nodes: Vec<u32>, vectors: Vec<u64> },
    /// The ends of the edges of nodes.
    Neighbours { nodes: Vec<u32> },
    /// Nodes that share a key with vectors, at most so many of each key.
    Sharing { vectors: Vec<u64>, most: usize },
    /// To note the features of documents.
    Note { docs: Vec<u32>, features: Vec<FeatureBits> },
    /// The features of documents.
    Features { docs: Vec<u32> },
    /// How many features documents have in common with others: so many documents for each of these.
    Compare { features: Vec<FeatureBits>, lengths: Vec<u32>, docs: Vec<u32> },
    /// Nothing.
    Ping,
}

/// What is answered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum PartReply {
    /// To [`Request::Begin`], [`Request::Note`] and [`Request::Ping`].
    Ready,
    /// To [`Request::Remove`] and [`Request::Insert`]: the edges that go and come.
    Edges(Vec<EdgeChange>),
    /// To [`Request::Neighbours`], as of [`super::KeyPart::neighbours`]; and to
    /// [`Request::Sharing`], a list for each vector.
    Lists(NodeLists),
    /// To [`Request::Features`].
    Features(Vec<FeatureBits>),
    /// To [`Request::Compare`]: a number for each document.
    Equal(Vec<u16>),
}

/// Sends the hello of this program.
pub(super) fn send_hello(output: &mut impl Write) -> Result<()> {
    let program = env!("CARGO_PKG_VERSION").to_owned();
    send(output, &PartHello { magic: MAGIC, protocol: PROTOCOL, program })
}

/// Reads the hello of the other side, and checks that it is this program in this version.
///
/// # Errors
/// If it is not; the text says what came.
pub(super) fn receive_hello(input: &mut impl Read) -> Result<()> {
    let bytes = receive_bytes(input, MOST_OF_HELLO)?.context("the other side has ended before its hello")?;
    let hello = postcard::from_bytes(&bytes).ok().filter(|hello: &PartHello| hello.magic == MAGIC);
    let Some(PartHello { protocol, program, .. }) = hello else {
        bail!("no hello of nigh, {} bytes: {}", bytes.len(), printable(&String::from_utf8_lossy(&bytes)));
    };
    let own = env!("CARGO_PKG_VERSION");
    ensure!(
        protocol == PROTOCOL && program == own,
        "nigh {} with messages of version {protocol}, and this is nigh {own} with messages of version {PROTOCOL}: use one version",
        printable(&program)
    );
    Ok(())
}

/// Sends a message.
pub(super) fn send(output: &mut impl Write, message: &impl Serialize) -> Result<()> {
    output.write_all(&bytes_of(message)?)?;
    Ok(output.flush()?)
}

/// The bytes of a message, as they are sent.
///
/// # Errors
/// If it is too long.
pub(super) fn bytes_of(message: &impl Serialize) -> Result<Vec<u8>> {
    let mut bytes = postcard::to_extend(message, vec![0; 4]).context("a message is plain data")?;
    let length = bytes.len() - 4;
    ensure!(length <= MOST_BYTES, "a message of {length} bytes: at most {MOST_BYTES} are allowed");
    bytes[..4].copy_from_slice(&(length as u32).to_le_bytes());
    Ok(bytes)
}

/// Reads a message; `None` if the other side has ended after the last one.
///
/// # Errors
/// If it is too long or cut, or not a message; and those of the connection.
pub(super) fn receive<M: DeserializeOwned>(input: &mut impl Read) -> Result<Option<M>> {
    let Some(bytes) = receive_bytes(input, MOST_BYTES)? else { return Ok(None) };
    match postcard::take_from_bytes(&bytes) {
        Ok((message, [])) => Ok(Some(message)),
        Ok((_, rest)) => bail!("a message of {} bytes has {} bytes more than its content", bytes.len(), rest.len()),
        Err(error) => bail!("{} bytes that are not a message: {error}", bytes.len()),
    }
}

/// Reads the bytes of a message. No more memory is taken than bytes come.
fn receive_bytes(input: &mut impl Read, most: usize) -> Result<Option<Vec<u8>>> {
    let mut length = [0; 4];
    let read = read_up_to(input, &mut length)?;
    if read == 0 {
        return Ok(None);
    }
    ensure!(read == 4, "cut after {read} bytes of a length");
    let claimed = u32::from_le_bytes(length) as usize;
    ensure!(
        claimed <= most,
        "a message of {claimed} bytes, of which at most {most} are allowed; it begins with {:?}",
        printable(&String::from_utf8_lossy(&length))
    );
    let mut bytes = Vec::new();
    input.take(claimed as u64).read_to_end(&mut bytes)?;
    ensure!(bytes.len() == claimed, "cut after {} of {claimed} bytes of a message", bytes.len());
    Ok(Some(bytes))
}

/// Fills a buffer as far as bytes come before the end.
fn read_up_to(input: &mut impl Read, buffer: &mut [u8]) -> Result<usize> {
    let mut read = 0;
    while read < buffer.len() {
        match input.read(&mut buffer[read..]) {
            Ok(0) => break,
            Ok(more) => read += more,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(read)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hello(magic: [u8; 8], protocol: u32, program: &str) -> Vec<u8> {
        bytes_of(&PartHello { magic, protocol, program: program.into() }).unwrap()
    }

    #[test]
    fn messages_come_as_they_were_sent() {
        let requests = [
            Request::Begin { part: KeyShare { number: 1, count: 3 }, width: 6, agreements: 2, features: 84 },
            Request::Note { docs: vec![1], features: vec![0, u16::MAX] },
            Request::Features { docs: vec![u32::MAX] },
            Request::Compare { features: vec![1], lengths: vec![2], docs: vec![3, 4] },
            Request::Remove { nodes: vec![3, u32::MAX] },
            Request::Insert { nodes: vec![7], vectors: vec![0, u64::MAX, 5] },
            Request::Neighbours { nodes: Vec::new() },
            Request::Sharing { vectors: vec![1, 2], most: 8 },
            Request::Ping,
        ];
        let mut bytes = Vec::new();
        send_hello(&mut bytes).unwrap();
        requests.iter().for_each(|request| send(&mut bytes, request).unwrap());
        let mut input = &bytes[..];
        receive_hello(&mut input).unwrap();
        for request in requests {
            assert_eq!(receive(&mut input).unwrap(), Some(request));
        }
        assert_eq!(receive::<Request>(&mut input).unwrap(), None);
    }

    #[test]
    fn another_program_or_version_is_refused() {
        let own = env!("CARGO_PKG_VERSION");
        receive_hello(&mut &hello(MAGIC, PROTOCOL, own)[..]).unwrap();
        for (bytes, reason) in [
            (hello(*b"nighkeyz", PROTOCOL, own), "no hello of nigh"),
            (hello(MAGIC, PROTOCOL + 1, own), "use one version"),
            (hello(MAGIC, PROTOCOL, "0.0.1"), "nigh 0.0.1 with messages of version 1"),
            (hello(MAGIC, PROTOCOL, &"x".repeat(1000)), "at most 256 are allowed"),
            (bytes_of(&Request::Ping).unwrap(), "no hello of nigh"),
            (b"Welcome to Ubuntu\n".to_vec(), "it begins with \"Welc\""),
            (b"\x03\0\0\0\x1b[m".to_vec(), "no hello of nigh, 3 bytes"),
            (Vec::new(), "ended before its hello"),
        ] {
            let error = receive_hello(&mut &bytes[..]).unwrap_err().to_string();
            assert!(error.contains(reason) && !error.contains('\x1b'), "{reason}: {error}");
        }
    }

    #[test]
    fn bytes_that_are_not_a_message_are_refused() {
        let whole = bytes_of(&PartReply::Edges(vec![EdgeChange { a: 1, b: 2, difference: -1 }; 40])).unwrap();
        for end in 1..whole.len() {
            let error = receive::<PartReply>(&mut &whole[..end]).unwrap_err().to_string();
            assert!(error.starts_with("cut after "), "{error}");
        }
        let longer = |bytes: &[u8]| [&(bytes.len() as u32).to_le_bytes()[..], bytes].concat();
        let with_more = longer(&[&whole[4..], b"x"].concat());
        let many = [&[1][..], &[0xff; 4], &[0x0f]].concat();
        for (bytes, reason) in [
            (with_more, "1 bytes more than its content"),
            (longer(&whole[4..whole.len() - 1]), "not a message"),
            (longer(&[9]), "not a message"),
            // Four billion edges, of which none comes.
            (longer(&many), "not a message"),
            (longer(b""), "not a message"),
            ((MOST_BYTES as u32 + 1).to_le_bytes().to_vec(), "at most 67108864 are allowed"),
            (u32::MAX.to_le_bytes().to_vec(), "a message of 4294967295 bytes"),
            // The memory of a claimed length is not taken before its bytes come.
            ((MOST_BYTES as u32).to_le_bytes().to_vec(), "cut after 0 of 67108864 bytes"),
        ] {
            let error = receive::<PartReply>(&mut &bytes[..]).unwrap_err().to_string();
            assert!(error.contains(reason), "{reason}: {error}");
        }
        // Each bit of a message that is changed is another message or an error, and no panic.
        for bit in 0..8 * whole.len() {
            let mut bytes = whole.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            let _ = receive::<PartReply>(&mut &bytes[..]);
        }
    }

    #[test]
    fn a_message_that_is_too_long_is_not_sent() {
        let request = Request::Neighbours { nodes: vec![u32::MAX; MOST_BYTES / 5 + 1] };
        assert!(send(&mut Vec::new(), &request).unwrap_err().to_string().contains("at most"));
    }
}
