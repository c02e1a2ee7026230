//! Processes that join each other, and peers that may not.

use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::Result;
use timely::communication::allocator::zero_copy::stream::Stream;

use super::hello::Message;
use super::identity::{Credentials, Identity, Secrets};
use super::join::{POLL_EVERY, join, listen};
use super::messages::MessageStream;
use super::participant::{Deadlines, Participant, Unjoined, close_after_read};
use super::roster::Roster;
use crate::launch::wire::{Link, keys};

const LOOPBACK: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

/// Long enough for a loaded machine; a test that waits for a deadline has its own.
const PATIENT: Deadlines =
    Deadlines { join: Duration::from_secs(60), handshake: Duration::from_secs(30), hello: Duration::from_secs(30) };

fn secrets() -> Identity {
    Identity::Secrets(Secrets::generate().unwrap())
}

fn keys(folder: &Path) -> Identity {
    keys::make(folder, 3, 1).unwrap();
    Identity::Keys(folder.to_owned())
}

/// Three processes that listen.
fn three(identity: &Identity) -> (Vec<TcpListener>, Roster) {
    let credentials = |me| identity.credentials(me).unwrap();
    let listeners = (0..3).map(|me| listen(LOOPBACK, &credentials(me)).unwrap());
    let (listeners, addresses): (Vec<TcpListener>, Vec<SocketAddr>) = listeners.unzip();
    (listeners, Roster::new(7, 3, addresses))
}

type Joining = JoinHandle<Result<Vec<Option<Link>>>>;

fn start(participant: &Arc<Participant>, listener: TcpListener) -> Joining {
    let participant = participant.clone();
    std::thread::spawn(move || participant.join(&listener))
}

/// Asserts that every two processes can exchange more bytes than sockets hold, and close the
/// connection.
fn assert_joined(joined: Vec<Vec<Option<Link>>>) {
    const BYTES: usize = 3 << 20;
    let mut threads = Vec::new();
    for (me, links) in joined.into_iter().enumerate() {
        for (other, link) in links.into_iter().enumerate() {
            assert_eq!(link.is_none(), me == other);
            let Some(link) = link else { continue };
            let (mut reader, mut writer) = (link.try_clone().unwrap(), link);
            threads.push(std::thread::spawn(move || {
                // A frame of the engine.
                let mut frame = vec![me as u8; 48 + BYTES];
                frame[32..40].copy_from_slice(&(BYTES as u64).to_be_bytes());
                writer.write_all(&frame).unwrap();
                writer.flush().unwrap();
                writer.shutdown(std::net::Shutdown::Write).unwrap();
            }));
            threads.push(std::thread::spawn(move || {
                let mut all = Vec::new();
                reader.read_to_end(&mut all).unwrap();
                assert!(all.len() == 48 + BYTES && all[48..].iter().all(|byte| *byte == other as u8));
            }));
        }
    }
    threads.into_iter().for_each(|thread| thread.join().unwrap());
}

/// Lets an intruder try to join process 0 of three. Returns its error and the last refusal of
/// process 0. The three processes then join each other.
fn intruder(identity: &Identity, intrude: impl FnOnce(&Roster) -> String) -> (String, String) {
    let (listeners, roster) = three(identity);
    let participant = |me| Arc::new(Participant::new(me, roster.clone(), identity.credentials(me).unwrap(), PATIENT));
    let participants: Vec<Arc<Participant>> = (0..3).map(participant).collect();
    let mut listeners = listeners.into_iter();
    let mut threads = vec![start(&participants[0], listeners.next().unwrap())];
    let theirs = intrude(&roster);
    let begun = Instant::now();
    let ours = loop {
        if let Some(last) = participants[0].unauthenticated.last() {
            break last;
        }
        assert!(begun.elapsed() < PATIENT.join, "nothing was refused");
        std::thread::sleep(POLL_EVERY);
    };
    threads.extend(participants[1..].iter().zip(listeners).map(|(participant, listener)| start(participant, listener)));
    assert_joined(threads.into_iter().map(|thread| thread.join().unwrap().unwrap()).collect());
    (theirs, ours)
}

/// Joins as a process with these credentials and returns the error.
fn impostor(me: usize, roster: Roster, credentials: &Credentials) -> String {
    let (listener, _) = listen(LOOPBACK, credentials).unwrap();
    let error = join(me, &listener, &roster, credentials, PATIENT).err().expect("it was refused");
    format!("{error:#}")
}

fn assert_words(text: &str, words: &[&str]) {
    words.iter().for_each(|word| assert!(text.contains(word), "{word}: {text}"));
}

#[test]
fn processes_join_each_other_by_secrets_and_by_keys() {
    let folder = tempfile::tempdir().unwrap();
    for identity in [secrets(), keys(folder.path())] {
        let (listeners, roster) = three(&identity);
        let thread = |(me, listener)| {
            start(&Arc::new(Participant::new(me, roster.clone(), identity.credentials(me).unwrap(), PATIENT)), listener)
        };
        let threads: Vec<Joining> = listeners.into_iter().enumerate().map(thread).collect();
        assert_joined(threads.into_iter().map(|thread| thread.join().unwrap().unwrap()).collect());
    }
}

#[test]
#[cfg(target_os = "linux")]
fn connections_are_watched_for_as_long_as_the_roster_says() {
    let folder = tempfile::tempdir().unwrap();
    for identity in [secrets(), keys(folder.path())] {
        let (listeners, roster) = three(&identity);
        let roster = Roster { peer_timeout: Duration::from_millis(90_500), ..roster };
        let thread = |(me, listener)| {
            start(&Arc::new(Participant::new(me, roster.clone(), identity.credentials(me).unwrap(), PATIENT)), listener)
        };
        let threads: Vec<Joining> = listeners.into_iter().enumerate().map(thread).collect();
        let links: Vec<Link> =
            threads.into_iter().flat_map(|thread| thread.join().unwrap().unwrap()).flatten().collect();
        assert_eq!(links.len(), 6);
        for link in &links {
            assert_eq!(rustix::net::sockopt::tcp_user_timeout(link.socket()).unwrap(), 90_500);
        }
    }
}

#[test]
fn plain_sockets_stay_on_this_machine() {
    let credentials = secrets().credentials(0).unwrap();
    let elsewhere: SocketAddr = "192.0.2.1:0".parse().unwrap();
    assert_words(&format!("{:#}", listen(elsewhere, &credentials).unwrap_err()), &["192.0.2.1:0", "not on loopback"]);
    let (listener, own) = listen(LOOPBACK, &credentials).unwrap();
    let roster = Roster::new(7, 0, vec![own, elsewhere]);
    let error = join(0, &listener, &roster, &credentials, PATIENT).err().unwrap();
    assert_words(&format!("{error:#}"), &["192.0.2.1:0", "not on loopback", "TLS"]);
}

#[test]
fn the_secret_of_another_run_is_refused() {
    let identity = secrets();
    let other = secrets().credentials(1).unwrap();
    let (theirs, ours) = intruder(&identity, |roster| impostor(1, roster.clone(), &other));
    assert_words(&theirs, &["process 1 cannot join process 0", "does not know the secret of this run"]);
    assert_words(&ours, &["it claims to be process 1", "does not know the secret of this run"]);
}

#[test]
fn the_certificate_of_another_pool_is_refused() {
    let (own, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let identity = keys(own.path());
    let foreign = keys(other.path()).credentials(1).unwrap();
    let (theirs, ours) = intruder(&identity, |roster| impostor(1, roster.clone(), &foreign));
    // It does not accept our certificate either, and refuses before it sends its own.
    assert_words(&theirs, &["process 1 cannot join process 0", "not of the authority of this pool"]);
    assert_words(&ours, &["127.0.0.1", "the other side refuses the connection"]);
    // A process that accepts any certificate is refused for its own.
    let mixed = tempfile::tempdir().unwrap();
    for (from, name) in
        [(&own, "authority.pem"), (&other, "process-001.pem"), (&other, "process-001.key")].map(|(f, n)| (f.path(), n))
    {
        std::fs::copy(from.join(name), mixed.path().join(name)).unwrap();
    }
    let unchecked = Credentials::Keys(crate::launch::wire::TlsKeys::load_unchecked(mixed.path(), 1));
    let (theirs, ours) = intruder(&identity, |roster| impostor(1, roster.clone(), &unchecked));
    assert_words(&theirs, &["process 1 cannot join process 0", "the other side refuses the connection"]);
    assert_words(&ours, &["the certificate is not of the authority of this pool"]);
}

#[test]
fn a_certificate_serves_its_own_process_only() {
    let folder = tempfile::tempdir().unwrap();
    let identity = keys(folder.path());
    let second = identity.credentials(2).unwrap();
    let (theirs, ours) = intruder(&identity, |roster| impostor(1, roster.clone(), &second));
    let reason = "that of process-2.nigh.internal, not of process-1.nigh.internal";
    assert_words(&theirs, &["process 1 cannot join process 0", "it refuses", reason]);
    assert_words(&ours, &["claims to be process 1", reason]);
}

/// The errors of both sides of a connection that is not joined: process 1, which connects, and
/// process 0, which accepts.
fn unjoined(client: Credentials, server: Credentials) -> (String, String) {
    let (listener, address) = listen(LOOPBACK, &server).unwrap();
    let roster = Roster::new(7, 3, vec![address; 2]);
    let participant = |me, credentials| Participant::new(me, roster.clone(), credentials, PATIENT);
    let (one, zero) = (participant(1, client), participant(0, server));
    let connecting = std::thread::spawn(move || match one.introduce(&TcpStream::connect(address).unwrap(), 0) {
        Err(Unjoined::Refused(reason)) => reason,
        Err(Unjoined::Broken(reason)) => panic!("it would try again: {reason}"),
        Ok(_) => panic!("it joined"),
    });
    let (socket, _) = listener.accept().unwrap();
    let number = zero.unauthenticated.add(&socket).unwrap();
    let ours = zero.welcome(&socket, number).expect_err("it is not joined");
    close_after_read(&socket);
    (connecting.join().unwrap(), ours)
}

#[test]
fn a_certificate_that_expires_before_a_handshake_is_reported_by_both_sides() {
    let shown = "the certificate expired on 2023-11-14T22:13:20Z";
    let own = "the other side refuses the connection: this one's certificate has expired there";
    for expired in [1, 0] {
        let folder = tempfile::tempdir().unwrap();
        let identity = keys(folder.path());
        keys::expire(folder.path(), expired);
        // The process loaded its file when the certificate was still valid.
        let late = Credentials::Keys(crate::launch::wire::TlsKeys::load_unchecked(folder.path(), expired));
        let valid = identity.credentials(1 - expired).unwrap();
        let (client, server) = if expired == 1 { (late, valid) } else { (valid, late) };
        let (theirs, ours) = unjoined(client, server);
        let (late, valid) = if expired == 1 { (theirs, ours) } else { (ours, theirs) };
        assert_words(&late, &[own]);
        assert_words(&valid, &[shown]);
    }
}

#[test]
fn a_process_of_an_earlier_generation_and_of_another_job_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    for identity in [secrets(), keys(folder.path())] {
        let own = identity.credentials(1).unwrap();
        let reason = "process 1 is of epoch 2, process 0 is of epoch 3";
        let (theirs, ours) = intruder(&identity, |roster| impostor(1, Roster { epoch: 2, ..roster.clone() }, &own));
        assert_words(&theirs, &["process 1 cannot join process 0", "it refuses", reason]);
        assert_words(&ours, &[reason]);
        let reason = "process 1 does job 0000000000000008, process 0 does job 0000000000000007";
        let (theirs, ours) = intruder(&identity, |roster| impostor(1, Roster { job: 8, ..roster.clone() }, &own));
        assert_words(&theirs, &["it refuses", reason]);
        assert_words(&ours, &[reason]);
    }
}

#[test]
fn garbage_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    for (identity, reason) in [(secrets(), "this is not a process of nigh"), (keys(folder.path()), "this is not TLS")] {
        let (_, ours) = intruder(&identity, |roster| {
            let mut garbage = TcpStream::connect(roster.addresses[0]).unwrap();
            garbage.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
            let mut answer = Vec::new();
            // The system may cut the connection.
            let _ = garbage.read_to_end(&mut answer);
            String::from_utf8_lossy(&answer).into_owned()
        });
        assert_words(&ours, &["1 connections were refused, the last from 127.0.0.1", reason]);
    }
}

#[test]
fn the_reason_of_a_stranger_does_not_act_on_the_terminal() {
    let identity = secrets();
    let listener = TcpListener::bind(LOOPBACK).unwrap();
    let stranger = std::thread::spawn({
        let listener = listener.try_clone().unwrap();
        move || {
            let (socket, _) = listener.accept().unwrap();
            let mut messages = MessageStream::new(&socket, None, Instant::now() + PATIENT.hello);
            let _ = messages.receive();
            messages.send(&Message::Refused("\x1b]0;pwned\x07\x1b[2J\nnigh: all is well".into())).unwrap();
            close_after_read(&socket);
        }
    });
    let credentials = identity.credentials(1).unwrap();
    let (own, address) = listen(LOOPBACK, &credentials).unwrap();
    let roster = Roster::new(7, 3, vec![listener.local_addr().unwrap(), address]);
    let error = join(1, &own, &roster, &credentials, PATIENT).err().unwrap();
    assert_words(&format!("{error:#}"), &[r"it refuses: \u{1b}]0;pwned\u{7}\u{1b}[2J\u{a}nigh: all is well"]);
    stranger.join().unwrap();
}

#[test]
fn too_many_silent_peers_do_not_keep_the_processes_of_the_run_out() {
    let folder = tempfile::tempdir().unwrap();
    for identity in [secrets(), keys(folder.path())] {
        let mut silent = Vec::new();
        let (_, ours) = intruder(&identity, |roster| {
            silent.extend((0..200).map(|_| TcpStream::connect(roster.addresses[0]).unwrap()));
            String::new()
        });
        assert_words(&ours, &["it closed the connection, or was closed to make room"]);
    }
}

#[test]
fn slow_bytes_do_not_extend_a_deadline() {
    let identity = secrets();
    let (listeners, roster) = three(&identity);
    let deadlines = Deadlines { join: PATIENT.join, handshake: PATIENT.hello, hello: Duration::from_millis(300) };
    let participant = Arc::new(Participant::new(0, roster.clone(), identity.credentials(0).unwrap(), deadlines));
    let (socket, server) = {
        let socket = TcpStream::connect(roster.addresses[0]).unwrap();
        (socket, listeners[0].accept().unwrap().0)
    };
    // A byte every 20 ms would keep the connection open without end if each byte extended the
    // deadline.
    let ended = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let dripping = std::thread::spawn({
        let (ended, mut socket) = (ended.clone(), socket.try_clone().unwrap());
        move || {
            for byte in b"nigh-jn\n\xff\x0f\0\0".iter().chain(std::iter::repeat(&b' ')) {
                if ended.load(std::sync::atomic::Ordering::Relaxed) || socket.write_all(&[*byte]).is_err() {
                    return;
                }
                std::thread::sleep(Duration::from_millis(20));
            }
        }
    });
    let number = participant.unauthenticated.add(&server).unwrap();
    let reason = participant.welcome(&server, number).err().unwrap();
    ended.store(true, std::sync::atomic::Ordering::Relaxed);
    assert_words(&reason, &["it did not identify itself within 0.3 s"]);
    dripping.join().unwrap();
}

#[test]
fn a_process_that_does_not_join_is_named_with_the_connections_that_were_refused() {
    let identity = secrets();
    let (mut listeners, roster) = three(&identity);
    let short = Deadlines { join: Duration::from_secs(2), ..PATIENT };
    let mut garbage = TcpStream::connect(roster.addresses[0]).unwrap();
    garbage.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
    let credentials = identity.credentials(0).unwrap();
    let error = join(0, &listeners.remove(0), &roster, &credentials, short).err().unwrap();
    assert_words(&format!("{error:#}"), &["process 1, 2 did not join process 0 within 2 s", "not a process of nigh"]);
    // A process to which this one connects is named with its address.
    drop(listeners.remove(0));
    let credentials = identity.credentials(2).unwrap();
    let error = join(2, &listeners.remove(0), &roster, &credentials, short).err().unwrap();
    assert_words(&format!("{error:#}"), &["could not join process", "127.0.0.1:", "within 2 s"]);
}

#[test]
fn a_frame_that_claims_too_much_ends_a_joined_connection() {
    let folder = tempfile::tempdir().unwrap();
    for identity in [secrets(), keys(folder.path())] {
        let (listeners, roster) = three(&identity);
        let roster = Roster::new(7, 3, roster.addresses[..2].to_vec());
        let thread = |(me, listener)| {
            start(&Arc::new(Participant::new(me, roster.clone(), identity.credentials(me).unwrap(), PATIENT)), listener)
        };
        let threads: Vec<Joining> = listeners.into_iter().take(2).enumerate().map(thread).collect();
        let mut links = threads.into_iter().map(|thread| thread.join().unwrap().unwrap());
        let (mut zero, mut one) = (links.next().unwrap(), links.next().unwrap());
        let (mut reader, mut writer) = (zero[1].take().unwrap(), one[0].take().unwrap());
        let mut frame = [0; 48];
        frame[32..40].copy_from_slice(&(1u64 << 60).to_be_bytes());
        writer.write_all(&frame).unwrap();
        writer.flush().unwrap();
        let error = reader.read_to_end(&mut Vec::new()).unwrap_err();
        assert_words(&error.to_string(), &["refused a frame of 1152921504606846976 bytes"]);
    }
}
