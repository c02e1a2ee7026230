//! Files that several workers read: the pieces have the items of the whole. The first byte says how many pieces, and of which format.
#![no_main]

use nigh::readers::{Format, InputPiece, open, open_piece};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Some((first, bytes)) = bytes.split_first() else { return };
    let format = [Format::Jsonl, Format::Warc, Format::Arc, Format::Parquet][usize::from(*first & 3)];
    let of = 2 + u64::from(*first >> 2);
    let (input, reading) = (nigh_fuzz::input_of(bytes, format), nigh_fuzz::reading());
    let items = |piece: Option<InputPiece>| {
        let mut reader = match piece {
            Some(piece) => open_piece(&input, &reading, piece)?,
            None => open(&input, &reading)?,
        };
        let mut items = Vec::new();
        while let Some(item) = reader.next()? {
            items.push(item);
        }
        anyhow::Ok(items)
    };
    let pieces: Result<Vec<_>, _> = (0..of).map(|number| items(Some(InputPiece { number, of }))).collect();
    // A piece may refuse a file whose records it cannot find; the message says what to do.
    if let (Ok(whole), Ok(pieces)) = (items(None), pieces) {
        assert!(whole.iter().eq(pieces.iter().flatten()), "{whole:?}\n{pieces:?}");
    }
});
