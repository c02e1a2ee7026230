//! Pipes as inputs: each is copied once, while inputs are listed, to a private temporary file.
//!
//! A pipe gives its bytes only once, and a run opens an input several times: to recognise the
//! format, in any of its processes, and again after a restart. So all of these read the copy. The
//! name of the input stays the one that the user gave; its [stamp] is a digest of the content,
//! because the name tells nothing about it.
//!
//! A copy has no name on Linux: it is removed as soon as it is made, and the processes of the run
//! open it as `/proc/PID/fd/N` of the process that listed the inputs. So the system frees the space
//! at the end of this process, even after a kill. Elsewhere the copy keeps its name until the
//! [`Spool`] is dropped.
//!
//! [stamp]: crate::readers::Input::stamp

use std::fs::{File, Metadata};
use std::io::{self, ErrorKind, Read, Seek as _, Write as _};
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use xxhash_rust::xxh3::Xxh3;

use super::found::{FoundBy, FoundInput};
use crate::readers::input::{Input, Location};
use crate::units::Bytes;

/// The name of standard input.
pub const STANDARD_INPUT: &str = "-";
/// How the stamp of a pipe begins.
const CONTENT: &str = "content ";
/// Bytes that are copied at once.
const CHUNK: usize = 1 << 20;
/// A copy that takes longer than this is reported ...
const FIRST_REPORT: Duration = Duration::from_secs(5);
/// ... and again after each time of this length.
const NEXT_REPORT: Duration = Duration::from_secs(60);

/// What happens to inputs that give their bytes only once.
pub enum Pipes<'a> {
    /// They are refused, for this reason.
    Refuse(&'static str),
    /// They are copied.
    Copy(&'a mut Spool),
    /// They are no inputs, nor is what comes from a file descriptor: that of an earlier run is
    /// gone, and what comes now is something else.
    PassOver,
}

impl Input {
    /// Whether this run alone has the input: it came from standard input, a pipe or a file
    /// descriptor. An input of the same name of another run is something else.
    pub fn is_of_this_run(&self) -> bool {
        self.stamp.starts_with(CONTENT) || is_passing(&self.name)
    }
}

/// The copies of the pipes of one run.
pub struct Spool {
    folder: PathBuf,
    notify: Arc<dyn Fn(&str) + Send + Sync>,
    copies: Vec<PipeCopy>,
}

/// The copy of one pipe.
struct PipeCopy {
    /// Device and inode of the pipe.
    pipe: (u64, u64),
    /// Open as long as the copy is needed.
    _file: File,
    /// The path of the copy, if it still has a name.
    named: Option<PathBuf>,
}

impl Drop for PipeCopy {
    fn drop(&mut self) {
        if let Some(path) = &self.named {
            // If this fails, the copy stays, readable by this user alone.
            let _ = std::fs::remove_file(path);
        }
    }
}

impl Spool {
    /// Copies to the system's folder for temporary files (`TMPDIR`). A copy that takes long is
    /// reported to `notify`.
    pub fn new(notify: Arc<dyn Fn(&str) + Send + Sync>) -> Spool {
        Spool { folder: std::env::temp_dir(), notify, copies: Vec::new() }
    }

    /// Whether nothing was copied.
    pub fn is_empty(&self) -> bool {
        self.copies.is_empty()
    }

    /// Copies an open pipe; `None` if it is a second name of a pipe that was copied already.
    fn copy(
        &mut self,
        name: &str,
        open: impl FnOnce() -> io::Result<File>,
        metadata: &Metadata,
    ) -> Result<Option<FoundInput>> {
        let pipe = (metadata.dev(), metadata.ino());
        if self.copies.iter().any(|copy| copy.pipe == pipe) {
            return Ok(None);
        }
        let (mut copy, path) = self.create(pipe)?;
        let copied = Arc::new(AtomicU64::new(0));
        let reports = self.report(name, &copied);
        let mut source = open().with_context(|| crate::readers::input::cannot("open", name))?;
        let (bytes, digest) = copy_all(name, &mut source, &mut copy._file, &copied, &self.folder)?;
        drop(reports);
        self.copies.push(copy);
        let relative = Path::new(name).file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
        let stamp = format!("{CONTENT}{digest:032x}");
        Ok(Some(FoundInput {
            name: name.to_owned(),
            bytes,
            place: Location::File(path),
            relative,
            by: FoundBy::Name,
            stamp,
        }))
    }

    /// Makes the file for a copy. Returns the path by which all processes of the run open it.
    fn create(&self, pipe: (u64, u64)) -> Result<(PipeCopy, PathBuf)> {
        let path = self.folder.join(format!("nigh-{}-{}.pipe", std::process::id(), self.copies.len()));
        let failed =
            || format!("cannot make the copy of a pipe in {} (TMPDIR names another folder)", self.folder.display());
        let file =
            File::options().read(true).write(true).create_new(true).mode(0o600).open(&path).with_context(failed)?;
        let open = PathBuf::from(format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd()));
        let mut copy = PipeCopy { pipe, _file: file, named: Some(path.clone()) };
        let is_same = |other: Metadata| {
            copy._file.metadata().is_ok_and(|own| (own.dev(), own.ino()) == (other.dev(), other.ino()))
        };
        if !File::open(&open).and_then(|file| file.metadata()).is_ok_and(is_same) {
            return Ok((copy, path));
        }
        std::fs::remove_file(&path).with_context(failed)?;
        copy.named = None;
        Ok((copy, open))
    }

    /// Reports a copy that takes long, from another thread, until the returned sender is dropped.
    /// The reading thread may wait for a process that has not opened the pipe yet.
    fn report(&self, name: &str, copied: &Arc<AtomicU64>) -> Sender<()> {
        let (sender, receiver) = channel::<()>();
        let (name, notify, copied) = (name.to_owned(), self.notify.clone(), copied.clone());
        std::thread::spawn(move || {
            let mut wait = FIRST_REPORT;
            while receiver.recv_timeout(wait) == Err(RecvTimeoutError::Timeout) {
                let bytes = Bytes(copied.load(Ordering::Relaxed));
                notify(&format!(
                    "copying the pipe {name} to a temporary file, because its bytes can be read only once: {bytes} so far"
                ));
                wait = NEXT_REPORT;
            }
        });
        sender
    }
}

/// Copies a pipe to its end. Returns the number of bytes and their XXH3 digest.
fn copy_all(name: &str, source: &mut File, copy: &mut File, copied: &AtomicU64, folder: &Path) -> Result<(u64, u128)> {
    let mut hash = Xxh3::new();
    let mut chunk = vec![0; CHUNK];
    loop {
        let count = match source.read(&mut chunk) {
            Ok(0) => break,
            Ok(count) => count,
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) => return Err(error).with_context(|| format!("cannot read {name}")),
        };
        hash.update(&chunk[..count]);
        copy.write_all(&chunk[..count]).with_context(|| {
            format!("cannot write the copy of the pipe {name} to {} (TMPDIR names another folder)", folder.display())
        })?;
        copied.fetch_add(count as u64, Ordering::Relaxed);
    }
    Ok((copied.load(Ordering::Relaxed), hash.digest128()))
}

impl Pipes<'_> {
    /// Finds the input on standard input: a copy of a pipe, or the file that it comes from. `None`
    /// if it was found before.
    ///
    /// # Errors
    /// If standard input is a terminal or a device, or a pipe that is refused.
    pub fn standard_input(&mut self) -> Result<Option<FoundInput>> {
        use std::os::fd::AsFd as _;
        if matches!(self, Pipes::PassOver) {
            return Ok(None);
        }
        let stdin = io::stdin().as_fd().try_clone_to_owned().map(File::from).context("cannot open standard input")?;
        let metadata = stdin.metadata().context("cannot read standard input")?;
        let kind = metadata.file_type();
        if !(kind.is_fifo() || kind.is_socket() || kind.is_file()) {
            bail!(
                "the input {STANDARD_INPUT} is standard input, and that is a terminal, a folder or a device: pipe a file into it"
            );
        }
        let at_start = (&stdin).stream_position().is_ok_and(|position| position == 0);
        match (kind.is_file() && at_start).then(|| real_path(Path::new("/dev/stdin"), &metadata)).flatten() {
            Some(path) => Ok(Some(FoundInput::file(STANDARD_INPUT.to_owned(), path, &metadata))),
            None => self.take(STANDARD_INPUT, || Ok(stdin), &metadata),
        }
    }

    /// Finds the input that a path names which is not a regular file, or not one for every process:
    /// a pipe, or a file descriptor.
    ///
    /// # Errors
    /// If it is a socket or a device, or a pipe that is refused.
    pub fn special(&mut self, name: &str, path: &Path, metadata: &Metadata) -> Result<Option<FoundInput>> {
        if matches!(self, Pipes::PassOver) {
            return Ok(None);
        }
        let kind = metadata.file_type();
        if !(kind.is_fifo() || kind.is_file()) {
            bail!(
                "{name} is a socket or a device, and inputs are files and pipes: write it to a file, and name that file"
            );
        }
        match real_path(path, metadata) {
            Some(path) if kind.is_file() => Ok(Some(FoundInput::file(name.to_owned(), path, metadata))),
            _ => self.take(name, || File::open(path), metadata),
        }
    }

    fn take(
        &mut self,
        name: &str,
        open: impl FnOnce() -> io::Result<File>,
        metadata: &Metadata,
    ) -> Result<Option<FoundInput>> {
        match self {
            Pipes::Refuse(reason) => bail!("{name} is a pipe, whose bytes can be read only once: {reason}"),
            Pipes::Copy(spool) => spool.copy(name, open, metadata),
            Pipes::PassOver => Ok(None),
        }
    }
}

/// Whether the name of an input is that of standard input or of a file descriptor, which give
/// something else in each run.
pub fn is_passing(name: &str) -> bool {
    name == STANDARD_INPUT || is_own_descriptor(Path::new(name))
}

/// Whether the path of a file means another file in another process: a file descriptor.
pub fn is_own_descriptor(path: &Path) -> bool {
    path.starts_with("/dev") && !path.starts_with("/dev/shm") || path.starts_with("/proc")
}

/// The path without links of a file, if it leads to the file with this metadata.
fn real_path(path: &Path, metadata: &Metadata) -> Option<PathBuf> {
    let real = path.canonicalize().ok()?;
    let found = std::fs::metadata(&real).ok()?;
    ((found.dev(), found.ino()) == (metadata.dev(), metadata.ino())).then_some(real)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pipe_is_copied_once_and_all_openings_read_the_copy() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pipe");
        rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
        let content: Vec<u8> = (0..3_000_000_u32).map(|i| (i % 251) as u8).collect();
        let writer = std::thread::spawn({
            let (path, content) = (path.clone(), content.clone());
            move || std::fs::write(path, content).unwrap()
        });
        let mut spool = Spool { folder: folder.path().to_owned(), ..Spool::new(Arc::new(|_| {})) };
        let metadata = std::fs::metadata(&path).unwrap();
        let mut pipes = Pipes::Copy(&mut spool);
        let name = path.to_str().unwrap();
        let input = pipes.special(name, &path, &metadata).unwrap().unwrap();
        writer.join().unwrap();
        assert_eq!((input.name.as_str(), input.bytes), (name, content.len() as u64));
        assert_eq!(input.stamp, format!("content {:032x}", xxhash_rust::xxh3::xxh3_128(&content)));
        let Location::File(copy) = &input.place else { panic!("{:?}", input.place) };
        for _ in 0..2 {
            assert!(std::fs::read(copy).unwrap() == content);
        }
        assert_eq!(std::fs::metadata(copy).unwrap().mode() & 0o777, 0o600);
        // A second name of the same pipe is no second input.
        assert!(pipes.special("other", &path, &metadata).unwrap().is_none());
        drop(spool);
        let left: Vec<_> = std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(left, ["pipe"]);
    }

    #[test]
    fn devices_are_refused_and_pipes_if_the_caller_says_so() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pipe");
        rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
        let mut pipes = Pipes::Refuse("write it to a file");
        let mut error = |path: &Path| {
            let metadata = std::fs::metadata(path).unwrap();
            pipes.special("x", path, &metadata).map(drop).unwrap_err().to_string()
        };
        assert_eq!(error(&path), "x is a pipe, whose bytes can be read only once: write it to a file");
        assert!(error(Path::new("/dev/zero")).starts_with("x is a socket or a device"));
    }
}
