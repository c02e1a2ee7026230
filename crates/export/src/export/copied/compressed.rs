//! A file of the compression that its name says.

use std::io::{BufWriter, Write};
use std::path::Path;

use anyhow::{Result, bail};
use flate2::Compression;
use flate2::write::GzEncoder;

use crate::export::place::Output;

/// The level of zstd, which is its default.
const ZSTD_LEVEL: i32 = 3;

/// A file that is written, in members of the compression that its name says.
pub(crate) struct Compressed {
    member: OpenMember,
    kind: StoredAs,
    /// Whether nothing was written.
    is_empty: bool,
}

/// How the bytes are stored.
#[derive(Clone, Copy)]
enum StoredAs {
    Plain,
    Gzip,
    Zstd,
}

impl StoredAs {
    fn of_name(path: &Path) -> Result<StoredAs> {
        let name = path.to_string_lossy().to_ascii_lowercase();
        Ok(match name.rsplit('.').next() {
            Some("gz") => StoredAs::Gzip,
            Some("zst" | "zstd") => StoredAs::Zstd,
            Some("bz2" | "xz") => {
                let name = path.display();
                bail!(
                    "{name} would be compressed as its name says, and nigh writes .gz and .zst: give --format jsonl or parquet, or --list for \
                     what is to be removed"
                )
            }
            _ => StoredAs::Plain,
        })
    }
}

/// The member that is being written.
enum OpenMember {
    /// None is begun, or the file is plain.
    None(BufWriter<Output>),
    Gzip(Box<GzEncoder<BufWriter<Output>>>),
    Zstd(Box<zstd::Encoder<'static, BufWriter<Output>>>),
    /// An error came in between.
    Lost,
}

impl Compressed {
    /// Begins a file whose bytes are stored as they come.
    pub(crate) fn stored(file: Output) -> Compressed {
        Compressed {
            member: OpenMember::None(BufWriter::with_capacity(1 << 20, file)),
            kind: StoredAs::Plain,
            is_empty: true,
        }
    }

    /// Begins a file that will have the name `path`.
    ///
    /// # Errors
    /// If the name says a compression that is not written.
    pub(crate) fn named(file: Output, path: &Path) -> Result<Compressed> {
        Ok(Compressed { kind: StoredAs::of_name(path)?, ..Compressed::stored(file) })
    }

    /// Compresses what is written from now on as the name `path` says. No member is begun.
    ///
    /// # Errors
    /// If the name says a compression that is not written.
    pub(crate) fn compress_as(&mut self, path: &Path) -> Result<()> {
        self.kind = StoredAs::of_name(path)?;
        Ok(())
    }

    /// Ends the member: the next bytes begin another one.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub(crate) fn end_member(&mut self) -> std::io::Result<()> {
        self.member = OpenMember::None(match std::mem::replace(&mut self.member, OpenMember::Lost) {
            OpenMember::None(file) => file,
            OpenMember::Gzip(encoder) => encoder.finish()?,
            OpenMember::Zstd(encoder) => encoder.finish()?,
            OpenMember::Lost => return Err(lost()),
        });
        Ok(())
    }

    /// Ends the file.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub(crate) fn finish(mut self) -> std::io::Result<Output> {
        // A file without records is a member without bytes.
        if self.is_empty {
            self.member()?;
        }
        self.end_member()?;
        match self.member {
            OpenMember::None(file) => file.into_inner().map_err(std::io::IntoInnerError::into_error),
            _ => Err(lost()),
        }
    }

    /// The writer of the member, which is begun if it is not.
    fn member(&mut self) -> std::io::Result<&mut dyn Write> {
        if !matches!((&self.member, self.kind), (OpenMember::None(_), StoredAs::Gzip | StoredAs::Zstd)) {
            return match &mut self.member {
                OpenMember::None(file) => Ok(file),
                OpenMember::Gzip(encoder) => Ok(encoder),
                OpenMember::Zstd(encoder) => Ok(encoder),
                OpenMember::Lost => Err(lost()),
            };
        }
        let OpenMember::None(file) = std::mem::replace(&mut self.member, OpenMember::Lost) else { return Err(lost()) };
        self.member = match self.kind {
            StoredAs::Plain => OpenMember::None(file),
            StoredAs::Gzip => OpenMember::Gzip(Box::new(GzEncoder::new(file, Compression::default()))),
            StoredAs::Zstd => OpenMember::Zstd(Box::new(zstd::Encoder::new(file, ZSTD_LEVEL)?)),
        };
        self.member()
    }
}

/// The error of a writer that failed before.
fn lost() -> std::io::Error {
    std::io::Error::other("writing failed before")
}

impl Write for Compressed {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.is_empty = false;
        self.member()?.write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.member()?.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_compressed_as_its_name_says() {
        let folder = tempfile::tempdir().unwrap();
        for (name, magic) in [
            ("a.jsonl.gz", &[0x1f, 0x8b][..]),
            ("a.jsonl.zst", &[0x28, 0xb5, 0x2f, 0xfd]),
            ("a.jsonl.ZSTD", &[0x28, 0xb5, 0x2f, 0xfd]),
            ("a.jsonl", b"text"),
        ] {
            let path = folder.path().join(name);
            let mut named = Compressed::named(Output::create(&path).unwrap(), &path).unwrap();
            named.write_all(b"text").unwrap();
            named.finish().unwrap();
            assert!(std::fs::read(&path).unwrap().starts_with(magic), "{name}");
            let mut stored = Compressed::stored(Output::create(&path).unwrap());
            stored.compress_as(&path).unwrap();
            stored.write_all(b"text").unwrap();
            stored.finish().unwrap();
            assert!(std::fs::read(&path).unwrap().starts_with(magic), "{name}");
        }
        let file = Output::create(&folder.path().join("a")).unwrap();
        assert!(Compressed::stored(file).compress_as(Path::new("a.txt.bz2")).is_err());
    }
}
