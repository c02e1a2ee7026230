//! One exchange by key: records go to the owners of their keys, and answers come back to the
//! senders.

use anyhow::Result;
use bytemuck::Pod;
use timely::dataflow::operators::Probe;

use super::key_ranges::KeyRanges;
use super::partitions::{EachPartition, group_blocks};
use super::ranges::{BeginInput, RangeDealer, deal_ranges, opener};
use super::spill::{Partition, SpillBuffer, WaitingBlocks};
use crate::blocks::block::{Block, BlockOf};
use crate::blocks::dealer::{Dealer, OpenBlocks};
use crate::context::Context;
use crate::dataflow::{run_dataflow, sink};

/// Deals records by the hashes of their keys, groups one range of keys at a time, and hands the
/// answers to the workers that they are dealt to.
///
/// `open` begins to read the input, once for each range of `cut`; the function that it returns
/// deals some more records, and returns `false` when there were none left. `each` is called with
/// every own partition, and deals answers to partitions that are workers' indices: usually to
/// `from` of a block. `take` receives the answers that are dealt to this worker. Neither may depend
/// on the order of the blocks of two senders.
///
/// ```text
/// for each range of keys:
///     open()(dealer) until it returns false
///     for each own partition:
///         each(partition, dealer)
///     take(block) for each block of answers
/// ```
///
/// # Errors
/// If the input cannot be read, or a worker of this process failed.
#[allow(clippy::too_many_arguments, reason = "each is a part of the exchange, and callers name their own")]
pub fn by_key<R, A, F>(
    cx: &mut Context,
    name: &str,
    cut: KeyRanges,
    waiting: SpillBuffer<R>,
    open: impl FnMut() -> F + 'static,
    mut each: impl FnMut(&Partition<'_, R>, &mut Dealer<A>) -> Result<()> + 'static,
    mut take: impl FnMut(BlockOf<A>) + 'static,
) -> Result<()>
where
    R: Pod,
    A: Pod,
    F: FnMut(&mut RangeDealer<'_, R>) -> Result<bool> + 'static,
{
    let watch = cx.watch();
    let index = cx.index();
    let exchange = KeyExchange {
        cut,
        records: Dealer::<R>::new(index, 0, watch).into_blocks(),
        open: opener(cut, open),
        waiting: waiting.into_waiting(),
        answers: cx.dealer::<A>().into_blocks(),
        each: Box::new(move |partition, dealer| each(&Partition::of(partition), Dealer::of(dealer))),
        take: Box::new(move |block| take(block.open())),
    };
    exchange.run(cx, name)
}

/// An exchange by key of records and answers of any types.
struct KeyExchange {
    cut: KeyRanges,
    records: OpenBlocks,
    open: BeginInput,
    waiting: WaitingBlocks,
    answers: OpenBlocks,
    each: EachPartition,
    take: Box<dyn FnMut(Block)>,
}

impl KeyExchange {
    fn run(self, cx: &mut Context, name: &str) -> Result<()> {
        let watch = &cx.watch().clone();
        let KeyExchange { cut, records, open, waiting, answers, each, take } = self;
        run_dataflow(cx, |scope, probe| {
            let grouped = {
                let probe = probe.clone();
                move |range: u64| !probe.less_than(&(range + 1))
            };
            let records = deal_ranges(scope, name, cut, records, watch, open, Box::new(grouped));
            let answers = group_blocks(records, name, waiting, answers, watch, each);
            sink(answers, "Received", take).probe_with(probe);
        })
    }
}
