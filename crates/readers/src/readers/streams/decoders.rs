//! The decoders of members: how each kind of member begins, and one slice of it decoded.

use std::io;

use flate2::{Decompress, FlushDecompress, Status};
use liblzma::stream::{Action, Stream};
use zstd::stream::raw::{Decoder, InBuffer, Operation as _, OutBuffer};

/// Decides whether decoded bytes can be the beginning of a member.
pub type Acceptable = fn(&[u8]) -> bool;

/// Stored bytes that decide whether a member begins here: enough for a gzip header with its first
/// block's tables, or a zstd block.
pub(super) const PROBE: usize = 132 << 10;
/// Decoded bytes that decide whether a beginning is acceptable.
const BEGINNING: usize = 64;
/// The largest zstd dictionary that is accepted, in bytes.
pub(super) const DICTIONARY: usize = 64 << 20;
/// The skippable frame that is one, at the beginning of a file.
pub(super) const DICTIONARY_MAGIC: u32 = 0x184D_2A5D;
/// The beginning of a gzip member.
pub(super) const GZIP: &[u8] = &[0x1f, 0x8b, 0x08];
/// The beginning of a zstd frame.
pub(super) const ZSTD: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd];
/// The beginning of a bzip2 stream; a digit and one of the [`BZIP2_BLOCKS`] follow.
pub(super) const BZIP2: &[u8] = b"BZh";
/// The beginning of a block of bzip2, and the end of a stream.
const BZIP2_BLOCKS: [[u8; 6]; 2] = [[0x31, 0x41, 0x59, 0x26, 0x53, 0x59], [0x17, 0x72, 0x45, 0x38, 0x50, 0x90]];
/// The beginning of an xz stream.
pub(super) const XZ: &[u8] = &[0xfd, b'7', b'z', b'X', b'Z', 0];
/// The memory that the dictionary of an xz stream may take, in bytes. `xz -9` makes streams that
/// need half of it.
const XZ_MEMORY: u64 = 128 << 20;

/// The result of one call of a decoder.
pub(super) struct DecoderStep {
    /// Bytes of the input that were taken.
    pub(super) taken: usize,
    /// Whether the member has ended.
    pub(super) ended: bool,
}

/// Whether a file that begins with these bytes is compressed; some dozen of them suffice.
pub(super) fn is_compressed(first: &[u8]) -> bool {
    [GZIP, ZSTD, XZ].iter().any(|magic| first.starts_with(magic)) || skippable(first).is_some() || is_bzip2(first)
}

/// Whether a stream of bzip2 begins here.
pub(super) fn is_bzip2(bytes: &[u8]) -> bool {
    let level_and_block = bytes.strip_prefix(BZIP2).and_then(|rest| rest.split_first_chunk::<7>());
    level_and_block
        .is_some_and(|(rest, _)| matches!(rest[0], b'1'..=b'9') && BZIP2_BLOCKS.iter().any(|block| rest[1..] == *block))
}

/// Returns the decoder of an xz stream, made if it begins.
pub(super) fn xz_stream(stream: &mut Option<Stream>) -> io::Result<&mut Stream> {
    let next = match stream.take() {
        Some(stream) => stream,
        None => Stream::new_stream_decoder(XZ_MEMORY, 0)?,
    };
    Ok(stream.insert(next))
}

/// The dictionary in the content of a skippable frame; `None` if it is damaged.
pub(super) fn dictionary_of(content: &[u8]) -> Option<Vec<u8>> {
    if !content.starts_with(ZSTD) {
        return Some(content.to_vec());
    }
    zstd::bulk::decompress(content, DICTIONARY).ok()
}

/// Returns the magic and the length of the skippable frame that begins here.
pub(super) fn skippable(bytes: &[u8]) -> Option<(u32, usize)> {
    let head: &[u8; 8] = bytes.first_chunk()?;
    let magic = u32::from_le_bytes([head[0], head[1], head[2], head[3]]);
    let length = u32::from_le_bytes([head[4], head[5], head[6], head[7]]);
    (magic & 0xFFFF_FFF0 == 0x184D_2A50).then_some((magic, length as usize))
}

/// Inflates into the free capacity of `out`.
pub(super) fn inflate_some(inflate: &mut Decompress, input: &[u8], out: &mut Vec<u8>) -> io::Result<DecoderStep> {
    let before = inflate.total_in();
    let status = inflate.decompress_vec(input, out, FlushDecompress::None).map_err(io::Error::other)?;
    Ok(DecoderStep { taken: (inflate.total_in() - before) as usize, ended: status == Status::StreamEnd })
}

/// Decodes a zstd frame into the free capacity of `out`.
pub(super) fn decode_some(decoder: &mut Decoder<'static>, input: &[u8], out: &mut Vec<u8>) -> io::Result<DecoderStep> {
    let mut input = InBuffer::around(input);
    let end = out.len();
    let mut output = OutBuffer::around_pos(out, end);
    let hint = decoder.run(&mut input, &mut output)?;
    Ok(DecoderStep { taken: input.pos(), ended: hint == 0 })
}

/// Decodes a part of a bzip2 stream into the free capacity of `out`.
pub(super) fn unpack_some(stream: &mut bzip2::Decompress, input: &[u8], out: &mut Vec<u8>) -> io::Result<DecoderStep> {
    let before = stream.total_in();
    let status = stream.decompress_vec(input, out).map_err(io::Error::other)?;
    Ok(DecoderStep { taken: (stream.total_in() - before) as usize, ended: status == bzip2::Status::StreamEnd })
}

/// Decodes a part of an xz stream into the free capacity of `out`.
pub(super) fn expand_some(stream: &mut Stream, input: &[u8], out: &mut Vec<u8>) -> io::Result<DecoderStep> {
    let before = stream.total_in();
    let status = stream.process_vec(input, out, Action::Run).map_err(|error| match error {
        liblzma::stream::Error::MemLimit => io::Error::from(io::ErrorKind::OutOfMemory),
        error => io::Error::other(error),
    })?;
    Ok(DecoderStep {
        taken: (stream.total_in() - before) as usize,
        ended: status == liblzma::stream::Status::StreamEnd,
    })
}

/// Returns whether a gzip member with an acceptable beginning starts here, and how many bytes were
/// read to decide.
pub(super) fn begins_gzip(bytes: &[u8], acceptable: Acceptable) -> (bool, u64) {
    // The three highest flag bits are reserved and must be zero.
    if !bytes.starts_with(GZIP) || bytes.get(3).is_none_or(|flags| flags & 0xe0 != 0) {
        return (false, 4);
    }
    let mut out = Vec::with_capacity(BEGINNING);
    let probe = &bytes[..bytes.len().min(PROBE)];
    let mut inflate = Decompress::new_gzip(15);
    let step = inflate_some(&mut inflate, probe, &mut out);
    (step.is_ok() && acceptable(&out), inflate.total_in().max(64))
}

/// Returns whether a zstd frame with an acceptable beginning starts here, and how many bytes were
/// read to decide. The decoder, which has the dictionary, begins again: a dictionary can be so
/// large that to load it for each place takes too long.
pub(super) fn begins_zstd(bytes: &[u8], decoder: &mut Decoder<'static>, acceptable: Acceptable) -> (bool, u64) {
    let mut out = Vec::with_capacity(BEGINNING);
    let probe = &bytes[..bytes.len().min(PROBE)];
    let step = decoder.reinit().and_then(|()| decode_some(decoder, probe, &mut out));
    let read = step.as_ref().map_or(64, |step| step.taken as u64);
    (step.is_ok() && acceptable(&out), read.max(64))
}

/// Returns whether an xz stream with an acceptable beginning starts here, and how many bytes were
/// read to decide.
pub(super) fn begins_xz(bytes: &[u8], acceptable: Acceptable) -> (bool, u64) {
    let mut decoder = None;
    let mut out = Vec::with_capacity(BEGINNING);
    let probe = &bytes[..bytes.len().min(PROBE)];
    let step = xz_stream(&mut decoder).and_then(|stream| expand_some(stream, probe, &mut out));
    let read = step.as_ref().map_or(64, |step| step.taken as u64);
    (step.is_ok() && acceptable(&out), read.max(64))
}
