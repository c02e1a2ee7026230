//! How the members of a file are compressed, with the state of the decoder.

use std::io;

use flate2::Decompress;
use liblzma::stream::Stream;
use nigh_kernels::kernels::Inflater;
use zstd::stream::raw::Decoder;

use super::decoders::{GZIP, XZ, ZSTD, is_bzip2, skippable};

/// The flag `FHCRC` of a gzip header.
const HEADER_CHECKSUM: u8 = 2;

pub(super) enum Codec {
    Plain,
    Gzip(Gzip),
    Zstd(Decoder<'static>),
    Bzip2(Option<Box<bzip2::Decompress>>),
    Xz(Option<Stream>),
}

/// The two ways to decode a gzip member: at once or streamed.
pub(super) struct Gzip {
    pub(super) whole: Inflater,
    pub(super) stream: Option<Box<Decompress>>,
    /// Members that are still to be streamed without an attempt to inflate them at once.
    pub(super) to_stream: u32,
    /// The value that `to_stream` had after the last member that was too large; doubled each time.
    pub(super) penalty: u32,
}

impl Codec {
    /// The reason of damage that is noticed in a member; `is_held`: nothing of it was handed out.
    pub(super) fn damaged(&self, is_held: bool) -> &'static str {
        match (self, is_held) {
            (Codec::Zstd(_), true) => "zstd: damaged frame",
            (Codec::Zstd(_), false) => "zstd: damaged frame (what was read of it may be wrong)",
            (Codec::Bzip2(_), true) => "bzip2: damaged stream",
            (Codec::Bzip2(_), false) => "bzip2: damaged stream (what was read of it may be wrong)",
            (Codec::Xz(_), true) => "xz: damaged stream",
            (Codec::Xz(_), false) => "xz: damaged stream (what was read of it may be wrong)",
            (Codec::Plain | Codec::Gzip(_), true) => "gzip: damaged member",
            (Codec::Plain | Codec::Gzip(_), false) => "gzip: damaged member (what was read of it may be wrong)",
        }
    }

    pub(super) fn unfinished(&self) -> &'static str {
        match self {
            Codec::Zstd(_) => "zstd: the file ends inside a frame",
            Codec::Bzip2(_) => "bzip2: the file ends inside a stream",
            Codec::Xz(_) => "xz: the file ends inside a stream",
            Codec::Plain | Codec::Gzip(_) => "gzip: the file ends inside a member",
        }
    }

    pub(super) fn unknown(&self) -> &'static str {
        match self {
            Codec::Zstd(_) => "zstd: bytes that are no frame",
            Codec::Bzip2(_) => "bzip2: bytes that are no stream",
            Codec::Xz(_) => "xz: bytes that are no stream",
            Codec::Plain | Codec::Gzip(_) => "gzip: bytes that are no member",
        }
    }
}

impl Gzip {
    /// Whether to try to inflate the member with this header at once.
    pub(super) fn tries_at_once(&mut self, header: &[u8]) -> bool {
        let is_streamed = self.to_stream > 0;
        self.to_stream = self.to_stream.saturating_sub(1);
        // Only streaming checks the checksum of a header.
        !is_streamed && header.get(3).is_some_and(|flags| flags & HEADER_CHECKSUM == 0)
    }
}

/// Members of gzip, of which none was too large.
pub(super) fn gzip() -> Codec {
    Codec::Gzip(Gzip { whole: Inflater::default(), stream: None, to_stream: 0, penalty: 0 })
}

/// How the file is compressed that begins with these bytes; `None` if it is not.
pub(super) fn kind(bytes: &[u8]) -> Option<io::Result<Codec>> {
    if bytes.starts_with(GZIP) {
        return Some(Ok(gzip()));
    }
    if bytes.starts_with(ZSTD) || skippable(bytes).is_some() {
        return Some(Decoder::new().map(Codec::Zstd));
    }
    if is_bzip2(bytes) {
        return Some(Ok(Codec::Bzip2(None)));
    }
    bytes.starts_with(XZ).then_some(Ok(Codec::Xz(None)))
}
