//! An object of a store as a plain [`Read`].
//!
//! For each open object a task fetches ranges of [`RANGE`] bytes, [`AHEAD`] at a time and in order,
//! and sends them over a channel that holds one range. This takes about 20 MiB of memory for each
//! object. A range that fails is requested again, so that an hour of reading survives a lost
//! connection. From servers without range requests the object is read in one piece.

use std::io::{self, ErrorKind, Read};
use std::ops::Range;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream;
use object_store::path::Path;
use object_store::{Error, ObjectStoreExt as _};
use tokio::sync::mpsc;

use super::client::{ObjectStoreClient, runtime};

/// Bytes fetched by one request.
pub const RANGE: u64 = 4 << 20;
/// Requests for one object that run at the same time.
const AHEAD: usize = 3;
/// How often a range is requested, not counting the client's own repetitions.
const ATTEMPTS: u32 = 5;

/// Opens the first `bytes` bytes of an object for reading.
///
/// # Errors
/// If the runtime cannot be started. Errors of the network appear while reading.
pub fn read(store: ObjectStoreClient, path: Path, bytes: u64) -> anyhow::Result<ObjectReader> {
    let (sender, receiver) = mpsc::channel(1);
    runtime()?.spawn(async move {
        let ranges = (0..bytes.div_ceil(RANGE)).map(|part| part * RANGE..bytes.min((part + 1) * RANGE));
        let fetches = ranges.map(|range| {
            let store = store.clone();
            let path = path.clone();
            async move { part(&store, &path, range).await }
        });
        let mut parts = Box::pin(stream::iter(fetches).buffered(AHEAD));
        let mut first = true;
        while let Some(part) = parts.next().await {
            match part {
                Err(Error::NotSupported { .. }) if first => {
                    // Other requests are already running, and a server may wait until they are read
                    // or dropped.
                    drop(parts);
                    return whole(&store, &path, bytes, &sender).await;
                }
                part => {
                    let failed = part.is_err();
                    if sender.send(part).await.is_err() || failed {
                        return;
                    }
                }
            }
            first = false;
        }
    });
    Ok(ObjectReader { receiver, chunk: Vec::new(), at: 0, left: bytes })
}

/// Fetches a range, with repetitions after errors.
async fn part(store: &ObjectStoreClient, path: &Path, range: Range<u64>) -> Result<Vec<u8>, Error> {
    let mut attempt = 1;
    loop {
        match store.get_range(path, range.clone()).await {
            Ok(bytes) => return Ok(bytes.into()),
            Err(error) if attempt == ATTEMPTS || is_final(&error) => return Err(error),
            Err(_) => tokio::time::sleep(Duration::from_millis(100 << attempt)).await,
        }
        attempt += 1;
    }
}

/// Fetches an object in one piece.
async fn whole(store: &ObjectStoreClient, path: &Path, bytes: u64, sender: &mpsc::Sender<Result<Vec<u8>, Error>>) {
    let mut parts = match store.get(path).await {
        Ok(response) => response.into_stream(),
        Err(error) => {
            // If the reader was dropped, the error is not needed.
            let _ = sender.send(Err(error)).await;
            return;
        }
    };
    let mut sent = 0;
    while sent < bytes {
        let Some(part) = parts.next().await else {
            return;
        };
        sent += part.as_ref().map_or(bytes, |part| part.len() as u64);
        if sender.send(part.map(Vec::from)).await.is_err() {
            return;
        }
    }
}

/// Whether a repetition of the request would fail too.
fn is_final(error: &Error) -> bool {
    use Error::{NotFound, NotImplemented, NotSupported, PermissionDenied, Precondition, Unauthenticated};
    matches!(error, NotFound { .. } | NotImplemented { .. } | NotSupported { .. } | PermissionDenied { .. })
        || matches!(error, Precondition { .. } | Unauthenticated { .. })
}

/// A reader of an object, range by range.
pub struct ObjectReader {
    receiver: mpsc::Receiver<Result<Vec<u8>, Error>>,
    chunk: Vec<u8>,
    at: usize,
    left: u64,
}

impl Read for ObjectReader {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        while self.at == self.chunk.len() && self.left > 0 {
            match self.receiver.blocking_recv() {
                Some(chunk) => (self.chunk, self.at) = (chunk.map_err(io::Error::other)?, 0),
                None => {
                    return Err(io::Error::new(
                        ErrorKind::UnexpectedEof,
                        "the object ended early: it may have been replaced",
                    ));
                }
            }
        }
        let count = out.len().min(self.chunk.len() - self.at).min(usize::try_from(self.left).unwrap_or(usize::MAX));
        out[..count].copy_from_slice(&self.chunk[self.at..self.at + count]);
        self.at += count;
        self.left -= count as u64;
        Ok(count)
    }
}
