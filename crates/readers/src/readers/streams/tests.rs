//! Members of files that the tests make, whole and damaged.

use std::io::{Cursor, Write as _};

use flate2::{Compression, Crc, GzBuilder};
use memchr::memmem;
use proptest::prelude::{Just, Strategy, any, prop, prop_oneof, proptest};

use super::codec::Codec;
use super::members::WHOLE;
use super::{MemberStep, Members, Stored};

/// Makes every gzip member be streamed.
fn streaming(mut members: Members) -> Members {
    if let Codec::Gzip(gzip) = &mut members.codec {
        gzip.to_stream = u32::MAX;
    }
    members
}

/// Reads a file: each start, damage and end of its members, with the number and a hash of the
/// bytes before it.
fn read(mut members: Members) -> Vec<String> {
    let mut bytes = Vec::new();
    let mut steps = Vec::new();
    loop {
        let step = members.step(&mut bytes).unwrap();
        if step != MemberStep::Bytes {
            let hash = xxhash_rust::xxh3::xxh3_64(&bytes);
            steps.push(format!("{} {hash:x} {step:?}", bytes.len()));
            bytes.clear();
        }
        if step == MemberStep::End {
            return steps;
        }
    }
}

/// Asserts that a file gives the same steps whether its members are inflated at once or
/// streamed; returns the steps.
fn assert_same_both_ways(file: &[u8]) -> Vec<String> {
    let open = || {
        let stored = Stored::new(Box::new(Cursor::new(file.to_vec())));
        Members::new(stored, |bytes| !bytes.is_empty()).unwrap()
    };
    let steps = read(open());
    assert_eq!(steps, read(streaming(open())));
    steps
}

/// `length` bytes: the first `repeat` of them random, then these again and again. The smaller
/// `repeat`, the better they compress.
fn content(length: usize, repeat: usize) -> Vec<u8> {
    let mut state = length as u64;
    let random = std::iter::repeat_with(|| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 56) as u8
    });
    let first: Vec<u8> = random.take(repeat.min(length)).collect();
    first.into_iter().cycle().take(length).collect()
}

/// A gzip member with the header fields whose flag bits are set in `fields`.
fn member(content: &[u8], fields: u8, level: u32) -> Vec<u8> {
    let mut builder = GzBuilder::new().mtime(1);
    if fields & 4 != 0 {
        builder = builder.extra(b"ab\x02\0cd".to_vec());
    }
    if fields & 8 != 0 {
        builder = builder.filename("name");
    }
    if fields & 16 != 0 {
        builder = builder.comment("a comment");
    }
    let mut gzip = builder.write(Vec::new(), Compression::new(level));
    gzip.write_all(content).unwrap();
    let mut member = gzip.finish().unwrap();
    if fields & 2 != 0 {
        let lengths = [(4, 2 + 6), (8, "name\0".len()), (16, "a comment\0".len())];
        let header =
            10 + lengths.iter().map(|(bit, length)| if fields & bit != 0 { *length } else { 0 }).sum::<usize>();
        member[3] |= 2;
        let mut crc = Crc::new();
        crc.update(&member[..header]);
        let sum = (crc.sum() as u16).to_le_bytes();
        member.splice(header..header, sum);
    }
    member
}

/// The shortest uncompressed member of at least `stored` stored bytes.
fn member_of(stored: usize) -> Vec<u8> {
    let content = content(stored, usize::MAX);
    let longer = member(&content, 0, 0).len() - stored;
    (stored - 2 * longer..)
        .map(|length| member(&content[..length], 0, 0))
        .find(|member| member.len() >= stored)
        .unwrap()
}

#[test]
fn members_of_sizes_around_the_limits_are_decoded_whole() {
    let small = member(b"small", 0, 6);
    let check = |large: &[u8], length: usize| {
        let file = [&small[..], large, large, &small, large].concat();
        let steps = assert_same_both_ways(&file);
        assert_eq!(steps.len(), 6, "{steps:?}");
        assert!(steps[2].starts_with(&format!("{length} ")), "{length}: {steps:?}");
        assert_same_both_ways(&file[..file.len() - 1]);
    };
    for (stored, decoded) in WHOLE {
        for by in 0..3 {
            let large = member_of(stored - 1 + by);
            let length = u32::from_le_bytes(*large.last_chunk().unwrap());
            check(&large, length as usize);
            let length = decoded - 1 + by;
            check(&member(&content(length, 1), 0, 6), length);
        }
    }
}

/// A stream of bzip2 or xz.
fn stream(content: &[u8], is_xz: bool) -> Vec<u8> {
    let mut out = Vec::new();
    if is_xz {
        liblzma::write::XzEncoder::new(&mut out, 1).write_all(content).unwrap();
    } else {
        bzip2::write::BzEncoder::new(&mut out, bzip2::Compression::new(1)).write_all(content).unwrap();
    }
    out
}

#[test]
fn streams_of_bzip2_and_xz_are_members_and_damage_loses_one() {
    for is_xz in [false, true] {
        let open = |file: &[u8]| {
            let stored = Stored::new(Box::new(Cursor::new(file.to_vec())));
            read(Members::new(stored, |bytes| !bytes.is_empty()).unwrap())
        };
        let (small, large) = (stream(b"small", is_xz), stream(&content(3 << 20, 500_000), is_xz));
        let steps = open(&[&small[..], &large, &small].concat());
        assert_eq!(steps.len(), 4, "{steps:?}");
        assert!(steps[2].starts_with("3145728 ") && steps[3].starts_with("5 "), "{steps:?}");

        let name = if is_xz { "xz" } else { "bzip2" };
        let cut = open(&[&small[..], &large[..large.len() / 2]].concat());
        assert!(cut[2].contains(&format!("{name}: the file ends inside a stream")), "{cut:?}");
        let garbage = open(&[&small[..], b"garbage between streams", &small].concat());
        assert!(garbage[1].contains(&format!("{name}: bytes that are no stream")), "{garbage:?}");
        assert!(garbage[3].starts_with("5 "), "{garbage:?}");
        let mut bad = large.clone();
        bad[large.len() / 2] ^= 0x10;
        let damaged = open(&[&small[..], &bad, &small].concat());
        assert!(damaged[2].contains(&format!("{name}: damaged stream")), "{damaged:?}");
        assert!(damaged.last().unwrap().starts_with("5 "), "{damaged:?}");
        // That of xz is of usual size.
        assert_eq!((damaged[2].starts_with("0 "), damaged[2].contains("may be wrong")), (is_xz, !is_xz), "{damaged:?}");
    }
}

/// A frame of zstd with a checksum.
fn frame(content: &[u8]) -> Vec<u8> {
    let mut encoder = zstd::stream::Encoder::new(Vec::new(), 1).unwrap();
    encoder.include_checksum(true).unwrap();
    encoder.write_all(content).unwrap();
    encoder.finish().unwrap()
}

/// All bytes that a file gives, and the reasons of its damage; the buffer makes no difference.
fn given(file: &[u8]) -> (Vec<u8>, Vec<&'static str>) {
    let [given, with_room] = [0, 32 << 20].map(|capacity| {
        let stored = Stored::new(Box::new(Cursor::new(file.to_vec())));
        let mut members = Members::new(stored, |bytes| !bytes.is_empty()).unwrap();
        let (mut bytes, mut reasons) = (Vec::with_capacity(capacity), Vec::new());
        loop {
            match members.step(&mut bytes).unwrap() {
                MemberStep::End => return (bytes, reasons),
                MemberStep::Damage { reason, .. } => reasons.push(reason),
                MemberStep::Start(_) | MemberStep::Bytes => {}
            }
        }
    });
    assert!(given == with_room, "{} {}", given.0.len(), with_room.0.len());
    given
}

type Packs = fn(&[u8]) -> Vec<u8>;

#[test]
fn a_damaged_member_of_usual_size_gives_nothing_and_one_that_the_file_cuts_what_is_left() {
    let text: String = (0..2000).map(|n| format!("row {n} of {}\n", n * 7919)).collect();
    let text = text.as_bytes();
    let whole = [&b"small"[..], text, b"small"].concat();
    let kinds: [Packs; 4] =
        [|content| member(content, 0, 6), frame, |content| stream(content, false), |content| stream(content, true)];
    for (kind, pack) in kinds.into_iter().enumerate() {
        let (small, packed) = (pack(b"small"), pack(text));
        let mut damaged = 0;
        for place in (0..packed.len()).step_by(packed.len() / 60) {
            let mut bad = packed.clone();
            bad[place] ^= 4;
            let (bytes, reasons) = given(&[&small[..], &bad, &small].concat());
            // Some bits have no meaning.
            assert!(bytes == whole || bytes == b"smallsmall" && !reasons.is_empty(), "{kind} {place} {reasons:?}");
            damaged += usize::from(bytes != whole);
        }
        assert!(damaged > 50, "{kind} {damaged}");
        for missing in [2, 9, packed.len() / 2] {
            let left = &packed[..packed.len() - missing];
            let (bytes, reasons) = given(&[&small[..], left, &small].concat());
            assert!(bytes == b"smallsmall" && reasons.len() == 1, "{kind} {missing} {reasons:?}");
            let (bytes, reasons) = given(&[&small[..], left].concat());
            assert!(bytes.starts_with(b"small") && whole.starts_with(&bytes), "{kind} {missing}");
            assert!(reasons.len() == 1 && reasons[0].contains("the file ends inside"), "{kind} {reasons:?}");
            // Where blocks are decoded as a whole, half of one is none.
            assert!(kind != 0 || bytes.len() > 10_000, "{missing} {}", bytes.len());
        }
    }
}

#[test]
fn the_damage_of_a_large_member_says_that_what_was_read_may_be_wrong() {
    let text: String = (0..2000).map(|n| format!("row {n} of {}\n", n * 7919)).collect();
    let text = text.repeat(300).into_bytes();
    for (mut bad, small) in [(member(&text, 0, 1), member(b"small", 0, 6)), (frame(&text), frame(b"small"))] {
        *bad.last_mut().unwrap() ^= 0x80;
        let file = [&bad[..], &small].concat();
        let (bytes, reasons) = given(&file);
        assert!(bytes.len() > WHOLE[1].1 && bytes.ends_with(b"small"), "{}", bytes.len());
        assert!(reasons.len() == 1 && reasons[0].ends_with("(what was read of it may be wrong)"), "{reasons:?}");
        assert_same_both_ways(&file);
    }
}

#[test]
fn an_xz_stream_that_claims_a_large_dictionary_is_refused() {
    let mut file = stream(b"words", true);
    // The header of the block, after that of the stream: its length in units of 4 bytes, less
    // one; the filter 0x21 with one byte for the size of the dictionary, here 1 GiB; and at its
    // end its checksum.
    let header = 12..12 + 4 * (usize::from(file[12]) + 1);
    let size = memmem::find(&file[header.clone()], &[0x21, 1]).unwrap() + 2;
    file[header.start + size] = 36;
    let mut crc = Crc::new();
    crc.update(&file[header.start..header.end - 4]);
    file[header.end - 4..header.end].copy_from_slice(&crc.sum().to_le_bytes());
    let stored = Stored::new(Box::new(Cursor::new(file)));
    let steps = read(Members::new(stored, |bytes| !bytes.is_empty()).unwrap());
    assert!(steps[1].contains("xz: a dictionary of more than 128 MiB"), "{steps:?}");
}

#[test]
fn wrong_checksums_and_sizes_are_damage() {
    let good = member(b"good", 0, 6);
    for back in 1..=8 {
        let mut bad = member(b"words and words", 28, 6);
        let changed = bad.len() - back;
        bad[changed] ^= 0x10;
        let steps = assert_same_both_ways(&[&good[..], &bad, &good].concat());
        assert!(steps.iter().any(|piece| piece.contains("gzip: damaged member")), "{steps:?}");
        assert!(steps[steps.len() - 1].starts_with("4 "), "{steps:?}");
    }
    let mut bad = member(b"words and words", 2, 6);
    assert_eq!(assert_same_both_ways(&bad).len(), 2);
    bad[5] ^= 1;
    assert_same_both_ways(&bad);
}

/// Files of members of all kinds with other bytes between them, some bytes changed and some
/// missing at the end; and the contents of the members, each as [`read`] writes it.
fn mangled() -> impl Strategy<Value = (Vec<u8>, Vec<String>)> {
    let length = prop_oneof![20 => 0..2000_usize, 6 => 30_000..140_000_usize, 1 => 900_000..1_300_000_usize];
    let repeat = prop_oneof![Just(1_usize), Just(300), Just(usize::MAX)];
    let fields = prop_oneof![Just(0_u8), (0..32_u8).prop_map(|fields| fields & 30)];
    let member = (length, repeat, fields, 0..10_u32).prop_map(|(length, repeat, fields, level)| {
        let content = content(length, repeat);
        let written = format!("{} {:x}", content.len(), xxhash_rust::xxh3::xxh3_64(&content));
        (member(&content, fields, level), written)
    });
    let between =
        prop_oneof![8 => Just(Vec::new()), 1 => Just(vec![0; 9]), 1 => Just(b"\x1f\x8b\x08 garbage".to_vec())];
    let members = prop::collection::vec((member, between), 0..12);
    let changes = prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4);
    let missing = prop_oneof![3 => Just(0), 1 => 0..100_usize];
    (members, changes, missing).prop_map(|(members, changes, missing)| {
        let contents = members.iter().map(|((_, written), _)| written.clone()).collect();
        let all = members.into_iter();
        let mut file: Vec<u8> = all.flat_map(|((member, _), between)| [member, between].concat()).collect();
        for (index, byte) in changes {
            if !file.is_empty() {
                let changed = index.index(file.len());
                file[changed] = byte;
            }
        }
        file.truncate(file.len().saturating_sub(missing));
        (file, contents)
    })
}

/// Asserts the same steps both ways, with one exception: a changed member that still decodes to
/// its content. zlib refuses an incomplete set of codes that libdeflate accepts; checksum and
/// size are right.
fn assert_same_both_ways_or_intact(file: &[u8], contents: &[String]) {
    let open = || {
        let stored = Stored::new(Box::new(Cursor::new(file.to_vec())));
        Members::new(stored, |bytes| !bytes.is_empty()).unwrap()
    };
    let (at_once, streamed) = (read(open()), read(streaming(open())));
    let mut after = streamed.iter();
    for step in &at_once {
        let other = after.next().unwrap();
        if step != other {
            let (content, event) = step.split_at(step.match_indices(' ').nth(1).unwrap().0);
            assert!(contents.iter().any(|known| known == content), "{at_once:?} {streamed:?}");
            assert!(other.contains("gzip: damaged member"), "{at_once:?} {streamed:?}");
            let next = after.next().unwrap();
            assert!(next.starts_with("0 ") && next.ends_with(event), "{at_once:?} {streamed:?}");
        }
    }
    assert!(after.next().is_none(), "{at_once:?} {streamed:?}");
}

/// What is not read of a file.
fn unread(file: &[u8]) -> (u64, bool) {
    let stored = Stored::new(Box::new(Cursor::new(file.to_vec())));
    let mut members = Members::new(stored, |bytes| !bytes.is_empty()).unwrap();
    while members.step(&mut Vec::new()).unwrap() != MemberStep::End {}
    (members.unread().bytes, members.unread().ends_early)
}

#[test]
fn stored_bytes_that_are_not_read_are_counted() {
    let (a, b) = (member(&content(3000, 300), 0, 6), member(&content(5000, usize::MAX), 0, 6));
    assert_eq!(unread(&[&a[..], &b, &a].concat()), (0, false));
    // Of a member that the end of the file cuts, nothing tells how much is missing.
    for cut in [1, 9, b.len() / 2] {
        let left = b.len() - cut;
        assert_eq!(unread(&[&a[..], &b[..left]].concat()), (left as u64, true));
    }
    let mut damaged = b.clone();
    damaged[b.len() / 2..][..20].fill(0xff);
    let (bytes, ends_early) = unread(&[&a[..], &damaged, &a].concat());
    assert!(bytes > 0 && bytes <= b.len() as u64 && !ends_early, "{bytes} {ends_early}");
    assert_eq!(unread(&[&a[..], b"garbage", &a].concat()), (7, false));
    let (a, b) = (content(3000, 300), zstd::bulk::compress(&content(900_000, usize::MAX), 1).unwrap());
    let a = zstd::bulk::compress(&a, 1).unwrap();
    assert_eq!(unread(&[&a[..], &b].concat()), (0, false));
    assert_eq!(unread(&[&a[..], &b[..b.len() / 3]].concat()), (b.len() as u64 / 3, true));
}

proptest! {
    #[test]
    fn members_inflated_at_once_are_the_members_streamed((file, contents) in mangled()) {
        assert_same_both_ways_or_intact(&file, &contents);
    }
}
