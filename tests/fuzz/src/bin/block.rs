//! Blocks of records from another process: what is read is what its bytes say.
#![no_main]

use nigh::operators::exchange::Block;
use nigh::records::Edge;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    if let Some((block, length)) = Block::<Edge>::read(bytes) {
        assert!(length <= bytes.len() && bytes[..length].ends_with(block.bytes()));
        let head = [block.part.to_le_bytes(), block.common.to_le_bytes()].concat();
        assert!(bytes.starts_with(&head) && bytes[16..20] == block.from.to_le_bytes());
    }
    if let Some((block, length)) = Block::<u8>::read(bytes) {
        assert_eq!(block.records().len(), length - 32);
    }
});
