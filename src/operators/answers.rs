//! Answers in the order of the questions: what the owners of partitions say of the records that they got.
//!
//! A record carries no name to answer to. Its sender deals records in the order of its documents, each partition
//! answers in the order in which its records came from that sender, and the sender goes over its documents again: the
//! next answer of a partition belongs to the next record that was dealt to it. So a bit is enough where a record with a
//! name and an answer with a name would be.

use std::cell::RefCell;
use std::rc::Rc;

use timely::container::CapacityContainerBuilder;
use timely::dataflow::channels::pact::Pipeline;
use timely::dataflow::operators::generic::Operator;
use timely::dataflow::{Stream, StreamVec};

use super::block::{Block, BlockBuilder, Dealer, by_part};

/// Answers of one partition, being written: some bits for every record of a sender, in order, and words for some of
/// them.
#[derive(Default)]
pub struct Answering {
    /// By sender.
    senders: Vec<Sender>,
}

#[derive(Default)]
struct Sender {
    bits: Vec<u64>,
    /// Bits written.
    length: usize,
    words: Vec<u64>,
}

/// Bits come in blocks of even base, words in blocks of odd base.
const BITS: u64 = 0;
const WORDS: u64 = 1;

impl Answering {
    /// Adds `count` bits for a sender, at most 64, the first of them lowest.
    #[inline]
    pub fn bits(&mut self, sender: u32, bits: u64, count: usize) {
        let sender = self.sender(sender);
        let used = sender.length % 64;
        match sender.bits.last_mut() {
            Some(last) if used > 0 => {
                *last |= bits << used;
                if used + count > 64 {
                    sender.bits.push(bits >> (64 - used));
                }
            }
            _ => sender.bits.push(bits),
        }
        sender.length += count;
    }

    /// Adds a word for a sender.
    #[inline]
    pub fn word(&mut self, sender: u32, word: u64) {
        self.sender(sender).words.push(word);
    }

    fn sender(&mut self, sender: u32) -> &mut Sender {
        let sender = sender as usize;
        if self.senders.len() <= sender {
            self.senders.resize_with(sender + 1, Sender::default);
        }
        &mut self.senders[sender]
    }

    /// Adds `count` bits for a sender that are all 0; [`Answering::set`] sets some of them.
    pub fn zeros(&mut self, sender: u32, count: usize) {
        let sender = self.sender(sender);
        sender.length += count;
        sender.bits.resize(sender.length.div_ceil(64), 0);
    }

    /// Sets a bit of a sender by its number.
    #[inline]
    pub fn set(&mut self, sender: u32, bit: usize) {
        self.senders[sender as usize].bits[bit >> 6] |= 1 << (bit & 63);
    }

    /// Deals the answers of a partition to those who asked, and begins with the next partition.
    pub fn deal(&mut self, part: u64, dealer: &mut Dealer<u64>) {
        dealer.rebase(part << 1 | BITS);
        for (worker, sender) in self.senders.iter_mut().enumerate() {
            sender.bits.drain(..).for_each(|word| dealer.deal(worker as u64, word));
            sender.length = 0;
        }
        dealer.rebase(part << 1 | WORDS);
        for (worker, sender) in self.senders.iter_mut().enumerate() {
            sender.words.drain(..).for_each(|word| dealer.deal(worker as u64, word));
        }
        dealer.rebase(0);
    }
}

/// Answers of all partitions, being read.
#[derive(Default)]
pub struct Answers {
    queues: Vec<Queue>,
    /// Whether more was asked for than was answered.
    missing: bool,
}

#[derive(Default)]
struct Queue {
    bits: Vec<u64>,
    /// Bits taken.
    at: usize,
    words: Vec<u64>,
    words_at: usize,
}

impl Answers {
    /// Answers of so many partitions.
    pub fn new(partitions: u64) -> Answers {
        Answers { queues: (0..partitions).map(|_| Queue::default()).collect(), missing: false }
    }

    /// The next bit of a partition.
    #[inline]
    pub fn bit(&mut self, part: u64) -> bool {
        let queue = &mut self.queues[part as usize];
        let Some(word) = queue.bits.get(queue.at >> 6) else {
            self.missing = true;
            return false;
        };
        let bit = word >> (queue.at & 63) & 1;
        queue.at += 1;
        bit == 1
    }

    /// The next two bits of a partition, where all are taken in twos.
    #[inline]
    pub fn bit_pair(&mut self, part: u64) -> (bool, bool) {
        let queue = &mut self.queues[part as usize];
        let Some(word) = queue.bits.get(queue.at >> 6) else {
            self.missing = true;
            return (false, false);
        };
        let bits = word >> (queue.at & 63);
        queue.at += 2;
        (bits & 1 == 1, bits & 2 == 2)
    }

    /// The next word of a partition.
    pub fn word(&mut self, part: u64) -> u64 {
        let queue = &mut self.queues[part as usize];
        queue.words_at += 1;
        let word = queue.words.get(queue.words_at - 1).copied();
        self.missing |= word.is_none();
        word.unwrap_or(0)
    }

    fn take(&mut self, block: &Block<u64>) {
        let queue = &mut self.queues[(block.base >> 1) as usize];
        match block.base & 1 {
            BITS => queue.bits.extend(block.records()),
            _ => queue.words.extend(block.records()),
        }
    }

    /// Whether every answer was read, and no more: otherwise the second time went over something else than the first.
    pub fn is_read(&self) -> bool {
        let read = |queue: &Queue| queue.at.div_ceil(64) == queue.bits.len() && queue.words_at == queue.words.len();
        !self.missing && self.queues.iter().all(read)
    }
}

/// Takes answers in at those who asked.
pub fn answered<'scope>(
    answers: Stream<'scope, u64, Block<u64>>,
    kept: &Rc<RefCell<Answers>>,
) -> StreamVec<'scope, u64, ()> {
    let kept = kept.clone();
    answers
        .unary::<BlockBuilder<u64>, _, _, _>(by_part(), "Answered", |_, _| {
            move |input, _output| {
                let mut kept = kept.borrow_mut();
                input.for_each(|_, block| kept.take(&std::mem::take(block)));
            }
        })
        .unary::<CapacityContainerBuilder<Vec<()>>, _, _, _>(Pipeline, "End", |_, _| {
            |input, _| input.for_each(|_, _| {})
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn answers_come_back_in_order() {
        let mut answering = Answering::default();
        let mut dealer = Dealer::new(0, 2, &Arc::default());
        let mut kept = [Answers::new(3), Answers::new(3)];
        let bit = |sender: u64, part: u64, i: u64| crate::records::mix(sender << 60 | part << 50 | i) & 1;
        for part in 0..3u64 {
            for sender in 0..2u64 {
                for chunk in [64u64, 64, 10, 64, 1, 3] {
                    let before = answering.sender(sender as u32).length as u64;
                    let bits = (0..chunk).map(|i| bit(sender, part, before + i) << i).sum();
                    answering.bits(sender as u32, bits, chunk as usize);
                }
                (0..part * 3000).for_each(|word| answering.word(sender as u32, word + sender));
                answering.zeros(sender as u32, 100);
                answering.set(sender as u32, 206 + 99);
            }
            answering.deal(part, &mut dealer);
            dealer.full().for_each(|block| kept[block.part as usize].take(&block));
        }
        for (sender, kept) in kept.iter_mut().enumerate() {
            let sender = sender as u64;
            for part in 0..3 {
                (0..206).for_each(|i| assert_eq!(kept.bit(part), bit(sender, part, i) == 1, "{sender} {part} {i}"));
                (0..99).for_each(|_| assert!(!kept.bit(part)));
                assert!(!kept.is_read());
                assert!(kept.bit(part));
                (0..part * 3000).for_each(|word| assert_eq!(kept.word(part), word + sender));
            }
            assert!(kept.is_read());
            // What was not answered is no answer.
            (0..64).for_each(|_| _ = kept.bit(1));
            assert!(!kept.is_read());
        }
    }
}
