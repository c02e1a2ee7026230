//! The stored bytes of an input.

use std::fs::File;
use std::io::Read;

use anyhow::Context as _;

use crate::readers::input::{Input, Location, cannot};

/// Opens the first `bytes` stored bytes of an input: what is added to it later is not read. A local
/// file that was listed as empty may be one whose size the system does not say; it is read whole.
///
/// # Errors
/// If it cannot be opened.
pub(crate) fn source(name: &str, bytes: u64, place: &Location) -> anyhow::Result<Box<dyn Read + Send>> {
    match place {
        Location::File(path) => {
            let file = File::open(path).with_context(|| cannot("open", name))?;
            Ok(if bytes == 0 { Box::new(file) } else { Box::new(file.take(bytes)) })
        }
        Location::Entry { archive, start, packed, unpacked, checksum, packing } => {
            let (source, _) =
                crate::readers::wacz::entry_source(archive, (*start, *packed), (*unpacked, *checksum), *packing)
                    .with_context(|| cannot("open", name))?;
            Ok(source)
        }
        Location::Object { store, key } => crate::readers::find::open(name, store, key, bytes),
    }
}

/// Opens the stored bytes of an input as a file: those of an object are copied to a temporary one
/// without a name.
///
/// # Errors
/// If they cannot be read, or the copy cannot be written.
pub fn stored_file(input: &Input) -> anyhow::Result<File> {
    match &input.place {
        Location::File(path) => File::open(path).with_context(|| cannot("open", &input.name)),
        place => {
            let source = source(&input.name, input.bytes, place)?;
            downloaded(source).with_context(|| cannot("read", &input.name))
        }
    }
}

/// Copies a source to a temporary file without a name, for formats that are not read in order.
///
/// # Errors
/// If the source cannot be read or the file cannot be written.
pub(crate) fn downloaded(mut source: Box<dyn Read + Send>) -> std::io::Result<File> {
    use std::io::{Seek as _, SeekFrom};
    use std::os::unix::fs::OpenOptionsExt as _;
    use std::sync::atomic::{AtomicU64, Ordering};

    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let path = std::env::temp_dir().join(format!("nigh-{}-{number}.parquet", std::process::id()));
    // The file may be a copy of a private object: other users must not be able to open it before it
    // loses its name.
    let mut file = File::options().read(true).write(true).create_new(true).mode(0o600).open(&path)?;
    // The system frees the space when the file is closed, even if the program is killed.
    std::fs::remove_file(&path)?;
    std::io::copy(&mut source, &mut file)?;
    file.seek(SeekFrom::Start(0))?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn only_this_user_may_read_a_downloaded_copy() {
        let file = downloaded(Box::new(&b"PAR1 of a private bucket"[..])).unwrap();
        assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    }
}
