//! Blocks of records from another process: what is read is what its bytes say.
#![no_main]

use nigh::operators::exchange::Block;
use nigh::records::Edge;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    if let Some((block, length)) = Block::<Edge>::read(bytes) {
        assert!(length <= bytes.len() && bytes[..length].ends_with(block.bytes()));
        assert_eq!(block.part.to_le_bytes(), bytes[..8]);
    }
    if let Some((block, length)) = Block::<u8>::read(bytes) {
        assert_eq!(block.records().len(), length - 32);
    }
});
