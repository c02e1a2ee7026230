//! Processes connect to each other.
//!
//! Every process listens on a port and tells the supervisor, which tells the [`Roster`] to all. Process j then
//! connects to every i < j:
//!
//! ```text
//! j ──▶ i   magic, the run's secret, j
//! i ──▶ j   the run's second secret
//! ```
//!
//! Both secrets reach the processes over the supervisor's pipes only; whoever does not know the first
//! is dropped without a byte of answer, and never reaches the engine. All steps have a deadline.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

/// How long joining may take altogether.
const JOIN_DEADLINE: Duration = Duration::from_secs(30);
/// How long one connection may take to say who it is.
const HELLO_DEADLINE: Duration = Duration::from_secs(2);
/// The first bytes of a connection: the protocol and its version.
const MAGIC: [u8; 8] = *b"nigh/1\r\n";

/// The processes of one generation of a run: started together, ended together.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Roster {
    /// A hash of what the run computes.
    pub job: u64,
    /// Which start of the run's processes this is, from 0: a straggler of an earlier one is refused.
    pub epoch: u64,
    /// Where each process listens, by its number.
    pub addresses: Vec<SocketAddr>,
}

/// Known to the processes of one run only.
#[derive(Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Secrets {
    /// What the connecting process shows.
    hello: [u8; 16],
    /// What the accepting process shows.
    welcome: [u8; 16],
}

impl Secrets {
    /// New secrets from the system's generator.
    ///
    /// # Errors
    /// Where the system has none.
    pub fn generate() -> Result<Secrets> {
        let mut bytes = [0; 32];
        let mut random = std::fs::File::open("/dev/urandom").context("cannot open the system's random numbers")?;
        random.read_exact(&mut bytes).context("cannot read the system's random numbers")?;
        let mut secrets = Secrets { hello: [0; 16], welcome: [0; 16] };
        secrets.hello.copy_from_slice(&bytes[..16]);
        secrets.welcome.copy_from_slice(&bytes[16..]);
        Ok(secrets)
    }
}

/// Opens this process' port at `address`; the system chooses one for port 0.
///
/// # Errors
/// Where the system gives none.
pub fn listen(address: SocketAddr) -> Result<(TcpListener, SocketAddr)> {
    // Strangers know the secrets of no run, but nothing else would hide what the processes then say.
    ensure!(address.ip().is_loopback(), "{address} is not on loopback");
    let listener = TcpListener::bind(address).with_context(|| format!("cannot listen on {address}"))?;
    let address = listener.local_addr().context("cannot tell the port")?;
    Ok((listener, address))
}

/// Connects to all other processes of the roster; this one is number `me`.
///
/// # Errors
/// Names the process that did not join within the deadline.
pub fn join(me: usize, listener: &TcpListener, roster: &Roster, secrets: &Secrets) -> Result<Vec<Option<TcpStream>>> {
    let deadline = Instant::now() + JOIN_DEADLINE;
    let mut sockets: Vec<Option<TcpStream>> = roster.addresses.iter().map(|_| None).collect();
    for (other, address) in roster.addresses.iter().enumerate().take(me) {
        let socket =
            connect(me, *address, secrets).with_context(|| format!("process {me} cannot join process {other}"))?;
        sockets[other] = Some(socket);
    }
    listener.set_nonblocking(true).context("cannot listen")?;
    while sockets.iter().skip(me + 1).any(|socket| socket.is_none()) {
        if Instant::now() > deadline {
            let missing: Vec<usize> = (me + 1..sockets.len()).filter(|other| sockets[*other].is_none()).collect();
            bail!("processes {missing:?} did not join process {me} within {} s", JOIN_DEADLINE.as_secs());
        }
        match listener.accept() {
            Ok((socket, _)) => {
                // A stranger, or one that stalls, costs its deadline and nothing else.
                if let Ok((other, socket)) = welcome(socket, secrets)
                    && other > me
                    && other < sockets.len()
                    && sockets[other].is_none()
                {
                    sockets[other] = Some(socket);
                }
            }
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
                std::thread::sleep(Duration::from_millis(2))
            }
            Err(error) => return Err(error).context("cannot accept a connection"),
        }
    }
    Ok(sockets)
}

fn connect(me: usize, address: SocketAddr, secrets: &Secrets) -> Result<TcpStream> {
    let mut socket = TcpStream::connect_timeout(&address, JOIN_DEADLINE)?;
    socket.set_nodelay(true)?;
    // The other process may still be busy with strangers.
    socket.set_read_timeout(Some(JOIN_DEADLINE))?;
    let mut hello = Vec::from(MAGIC);
    hello.extend(secrets.hello);
    hello.extend((me as u64).to_le_bytes());
    socket.write_all(&hello)?;
    let mut answer = [0; 16];
    socket.read_exact(&mut answer)?;
    ensure!(answer == secrets.welcome, "what answers there is not of this run");
    socket.set_read_timeout(None)?;
    Ok(socket)
}

fn welcome(mut socket: TcpStream, secrets: &Secrets) -> Result<(usize, TcpStream)> {
    socket.set_nonblocking(false)?;
    socket.set_nodelay(true)?;
    let deadline = Instant::now() + HELLO_DEADLINE;
    let mut hello = [0; 32];
    let mut read = 0;
    while read < hello.len() {
        let left = deadline.saturating_duration_since(Instant::now());
        ensure!(!left.is_zero(), "too slow");
        socket.set_read_timeout(Some(left))?;
        match socket.read(&mut hello[read..])? {
            0 => bail!("closed"),
            more => read += more,
        }
    }
    // All bytes are compared, whether or not the first differ: how long it takes tells nothing.
    let difference = MAGIC.iter().chain(&secrets.hello).zip(&hello).fold(0, |sum, (a, b)| sum | (a ^ b));
    ensure!(difference == 0, "not of this run");
    let other = usize::try_from(u64::from_le_bytes(hello[24..].try_into()?))?;
    socket.write_all(&secrets.welcome)?;
    socket.set_read_timeout(None)?;
    Ok((other, socket))
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use super::*;

    const LOOPBACK: SocketAddr = SocketAddr::new(IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 0);

    #[test]
    fn processes_join_each_other_and_strangers_do_not() {
        let secrets = Secrets::generate().unwrap();
        let (listeners, addresses): (Vec<TcpListener>, Vec<_>) = (0..3).map(|_| listen(LOOPBACK).unwrap()).unzip();
        let roster = Roster { job: 7, epoch: 0, addresses };
        // Strangers: garbage, the wrong secret, one that says nothing.
        let mut garbage = TcpStream::connect(roster.addresses[0]).unwrap();
        garbage.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
        let silent = TcpStream::connect(roster.addresses[0]).unwrap();
        let stranger = std::thread::spawn({
            let address = roster.addresses[0];
            move || connect(1, address, &Secrets::generate().unwrap()).is_err()
        });
        let threads: Vec<_> = listeners
            .into_iter()
            .enumerate()
            .map(|(me, listener)| {
                let roster = roster.clone();
                std::thread::spawn(move || join(me, &listener, &roster, &secrets).unwrap())
            })
            .collect();
        let mut joined: Vec<_> = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
        drop((garbage, silent));
        assert!(stranger.join().unwrap());
        for (me, other) in [(0, 1), (0, 2), (1, 2)] {
            joined[me][other].as_mut().unwrap().write_all(&[me as u8, other as u8]).unwrap();
            let mut bytes = [0; 2];
            joined[other][me].as_mut().unwrap().read_exact(&mut bytes).unwrap();
            assert_eq!(bytes, [me as u8, other as u8]);
        }
    }
}
