//! How the members of a file are packed, so that the file can be entered at one of them.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;

use flate2::Decompress;
use zstd::stream::raw::{Decoder, Operation as _};

use super::decoders::{
    Acceptable, DICTIONARY, DICTIONARY_MAGIC, DecoderStep, GZIP, ZSTD, begins_gzip, begins_zstd, decode_some,
    dictionary_of, inflate_some, is_compressed, skippable,
};

/// The first bytes of a file that say how it is compressed.
const FIRST: usize = 64;

/// How members are packed.
pub enum MemberPacking {
    /// They are not: the file is plain.
    Plain,
    /// As gzip members.
    Gzip,
    /// As zstd frames, with this dictionary; it is empty if there is none.
    Zstd(Vec<u8>),
}

impl MemberPacking {
    /// The packing of a file; `None` if the file cannot be entered at a member: it is bzip2 or xz,
    /// or its dictionary is damaged.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn of(file: &File) -> io::Result<Option<MemberPacking>> {
        let mut first = vec![0; FIRST];
        let count = read_at(file, &mut first, 0)?;
        first.truncate(count);
        Ok(match skippable(&first) {
            _ if first.starts_with(GZIP) => Some(MemberPacking::Gzip),
            _ if first.starts_with(ZSTD) => Some(MemberPacking::Zstd(Vec::new())),
            Some((DICTIONARY_MAGIC, length)) if length <= DICTIONARY => {
                let mut content = vec![0; length];
                let count = read_at(file, &mut content, 8)?;
                let dictionary = dictionary_of(&content[..count]).filter(|_| count == length);
                // One that begins as a dictionary must be one as a whole.
                dictionary.filter(|dictionary| Decoder::with_dictionary(dictionary).is_ok()).map(MemberPacking::Zstd)
            }
            Some((DICTIONARY_MAGIC, _)) => None,
            Some(_) => Some(MemberPacking::Zstd(Vec::new())),
            None => (!is_compressed(&first)).then_some(MemberPacking::Plain),
        })
    }

    /// The first bytes of a member.
    pub(super) fn magic(&self) -> &'static [u8] {
        if let MemberPacking::Zstd(_) = self { ZSTD } else { GZIP }
    }

    /// A decoder of members; that of a plain file finds none.
    ///
    /// # Errors
    /// If there is no memory for it.
    pub(super) fn decoder(&self) -> io::Result<MemberDecoder> {
        Ok(match self {
            MemberPacking::Plain | MemberPacking::Gzip => MemberDecoder::Gzip(Box::new(Decompress::new_gzip(15))),
            MemberPacking::Zstd(dictionary) => MemberDecoder::Zstd(Decoder::with_dictionary(dictionary)?),
        })
    }

    /// The bytes of what is between members and begins here; 0 if a member does.
    pub(super) fn passed_over(&self, bytes: &[u8]) -> u64 {
        match (self, skippable(bytes)) {
            (MemberPacking::Zstd(_), Some((_, length))) => 8 + length as u64,
            _ => 0,
        }
    }
}

/// Decodes one member after another.
pub(super) enum MemberDecoder {
    Gzip(Box<Decompress>),
    Zstd(Decoder<'static>),
}

impl MemberDecoder {
    /// Whether a member with an acceptable beginning starts here, and how many bytes were read to
    /// decide.
    pub(super) fn begins(&mut self, bytes: &[u8], acceptable: Acceptable) -> (bool, u64) {
        match self {
            MemberDecoder::Gzip(_) => begins_gzip(bytes, acceptable),
            MemberDecoder::Zstd(decoder) => begins_zstd(bytes, decoder, acceptable),
        }
    }

    /// Begins a member.
    pub(super) fn begin(&mut self) -> io::Result<()> {
        match self {
            MemberDecoder::Gzip(stream) => **stream = Decompress::new_gzip(15),
            MemberDecoder::Zstd(decoder) => decoder.reinit()?,
        }
        Ok(())
    }

    /// Decodes into the free capacity of `out`. An error is damage.
    pub(super) fn decode(&mut self, input: &[u8], out: &mut Vec<u8>) -> io::Result<DecoderStep> {
        match self {
            MemberDecoder::Gzip(stream) => inflate_some(stream, input, out),
            MemberDecoder::Zstd(decoder) => decode_some(decoder, input, out),
        }
    }
}

/// Reads as much as there is room for, or up to the end of the file. Returns how much.
pub fn read_at(file: &File, buffer: &mut [u8], at: u64) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match file.read_at(&mut buffer[filled..], at + filled as u64) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    fn of(bytes: &[u8]) -> Option<MemberPacking> {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(bytes).unwrap();
        MemberPacking::of(&file).unwrap()
    }

    #[test]
    fn a_file_with_a_damaged_dictionary_cannot_be_entered() {
        let with = |dictionary: &[u8]| {
            let length = (dictionary.len() as u32).to_le_bytes();
            of(&[&DICTIONARY_MAGIC.to_le_bytes()[..], &length, dictionary, ZSTD].concat())
        };
        assert!(
            matches!(with(b"words as they are"), Some(MemberPacking::Zstd(words)) if words == b"words as they are")
        );
        // The magic number of a dictionary, and no tables.
        assert!(with(&[&[0x37, 0xa4, 0x30, 0xec][..], &[0xff; 400]].concat()).is_none());
        // A frame that is cut.
        let packed = zstd::bulk::compress(&[7; 4000], 3).unwrap();
        assert!(with(&packed).is_some());
        assert!(with(&packed[..packed.len() - 1]).is_none());
        assert!(of(&[&DICTIONARY_MAGIC.to_le_bytes()[..], &[9, 0, 0, 0], b"cut"].concat()).is_none());
    }
}
