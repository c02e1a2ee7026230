//! Answers until clients have read them: how many bytes these are, and bodies that are written in
//! parts.
//!
//! A part is copied when the connection can take it, and the answer is dropped when its last part
//! was taken. So what a connection holds after that is small, whether it is encrypted or not.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};

use super::Client;
use crate::live::refusal::Refusal;
use crate::live::service::Lines;

/// The bytes of a part.
const PART: usize = 64 << 10;

/// The bytes of all answers that clients have not read yet.
#[derive(Clone)]
pub(super) struct UnreadAnswers {
    bytes: Arc<AtomicUsize>,
    /// If there are so many, no other answer is made.
    most: usize,
}

impl UnreadAnswers {
    /// No bytes, of `most`.
    pub(super) fn new(most: usize) -> UnreadAnswers {
        UnreadAnswers { bytes: Arc::default(), most }
    }

    /// Refuses what needs an answer, if too many bytes wait.
    pub(super) fn refusal(&self) -> Option<Refusal> {
        let is_full = self.bytes.load(Ordering::Relaxed) >= self.most;
        let text = || "the answers to other requests wait to be read: send it again later".to_owned();
        is_full.then(|| Refusal { status: 429, text: text() })
    }

    /// Counts an answer until it is dropped.
    pub(super) fn hold(&self, lines: Lines) -> HeldAnswer {
        self.bytes.fetch_add(lines.len(), Ordering::Relaxed);
        HeldAnswer { lines, unread: self.clone() }
    }
}

/// An answer, which counts as not read.
pub(super) struct HeldAnswer {
    lines: Lines,
    unread: UnreadAnswers,
}

impl AsRef<[u8]> for HeldAnswer {
    fn as_ref(&self) -> &[u8] {
        &self.lines
    }
}

impl Drop for HeldAnswer {
    fn drop(&mut self) {
        self.unread.bytes.fetch_sub(self.lines.len(), Ordering::Relaxed);
    }
}

/// The body of an answer to a client.
pub(super) struct AnswerBody {
    rest: Bytes,
    client: Arc<Client>,
}

impl AnswerBody {
    pub(super) fn new(bytes: Bytes, client: Arc<Client>) -> AnswerBody {
        client.is_sent_to.store(true, Ordering::Relaxed);
        AnswerBody { rest: bytes, client }
    }
}

impl Body for AnswerBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if self.rest.is_empty() {
            return Poll::Ready(None);
        }
        self.client.parts.fetch_add(1, Ordering::Relaxed);
        let bytes = PART.min(self.rest.len());
        let part = Bytes::copy_from_slice(&self.rest.split_to(bytes));
        Poll::Ready(Some(Ok(Frame::data(part))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.rest.len() as u64)
    }
}

impl Drop for AnswerBody {
    fn drop(&mut self) {
        self.client.is_sent_to.store(false, Ordering::Relaxed);
    }
}
