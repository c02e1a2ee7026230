//! Dataflows of blocks: sources, operators and sinks whose logic is behind a pointer.
//!
//! Timely's own `source` and `unary` are compiled once for each closure that they are given, with
//! all of the operator around it. The functions here have timely's names and take such closures,
//! too, but give them to timely as trait objects, so that timely is compiled once. They call a
//! closure once for each time that the operator is scheduled: that does not show beside the blocks
//! that it works on.

use anyhow::Result;
use timely::dataflow::channels::pact::{DistributorPact, ParallelizationContract};
use timely::dataflow::operators::generic::builder_rc::OperatorBuilder;
use timely::dataflow::operators::generic::{InputHandleCore, OperatorInfo, OutputBuilder, OutputBuilderSession};
use timely::dataflow::operators::probe::Handle;
use timely::dataflow::operators::{Capability, CapabilityTrait, InputCapability, generic};
use timely::dataflow::{Scope, Stream};
use timely::progress::Timestamp;
use timely::progress::frontier::MutableAntichain;
use timely::progress::operate::FrontierInterest;

use super::context::Context;
use super::run::run_to_end;
use crate::blocks::block::{Block, BlockBuilder, ByPart, by_part};

/// A stream of blocks.
pub type BlockStream<'scope, T = u64> = Stream<'scope, T, Block>;

/// The input of an operator: the blocks whose partitions are the worker's own.
pub type BlockInput<T = u64> =
    InputHandleCore<T, Block, <DistributorPact<fn(usize) -> ByPart> as ParallelizationContract<T, Block>>::Puller>;

/// The output of an operator.
pub type BlockOutput<'a, T = u64> = OutputBuilderSession<'a, T, BlockBuilder>;

type SourceLogic = dyn FnMut(&mut BlockOutput<'_>);
type MakeSource<'a> = Box<dyn FnOnce(Capability<u64>, OperatorInfo) -> Box<SourceLogic> + 'a>;
type UnaryLogic<T> = dyn FnMut(&mut BlockInput<T>, &MutableAntichain<T>, &mut BlockOutput<'_, T>);
type MakeUnary<'a, T> = Box<dyn FnOnce(Capability<T>, OperatorInfo) -> Box<UnaryLogic<T>> + 'a>;

/// Builds a dataflow and runs it to its end. `build` probes what must end with the handle that it
/// is given.
///
/// # Errors
/// If a worker of this process failed.
pub fn run_dataflow(cx: &mut Context, build: impl FnOnce(Scope<'_, u64>, &Handle<u64>)) -> Result<()> {
    let probe = Handle::new();
    let handle = &probe;
    install(cx, |scope| build(scope, handle));
    run_to_end(cx, &probe)
}

/// Builds a dataflow of the worker.
pub fn install(cx: &mut Context, build: impl FnOnce(Scope<'_, u64>)) {
    let mut build = Some(build);
    install_once(cx, &mut |scope| build.take().expect("a dataflow is built once")(scope));
}

fn install_once(cx: &mut Context, build: &mut dyn FnMut(Scope<'_, u64>)) {
    cx.worker().dataflow::<u64, _, _>(build);
}

/// Emits blocks at the time of a capability.
pub fn emit<T: Timestamp>(
    blocks: impl Iterator<Item = Block>,
    output: &mut BlockOutput<'_, T>,
    at: &impl CapabilityTrait<T>,
) {
    let mut session = output.session_with_builder(at);
    blocks.for_each(|mut block| session.give_container(&mut block));
}

/// The time of blocks that arrived.
///
/// Timely lets a container have several times, or none: it is then not counted, and may arrive
/// after the end of its round. Every operator here emits blocks with a capability of one time.
///
/// # Panics
/// If the blocks have several times or none: a fault in this program.
pub fn time_of<T: Timestamp>(arrived: &InputCapability<T>) -> T {
    arrived.stamp().expect_singleton().clone()
}

/// A capability to emit blocks later, at the time of blocks that arrived.
///
/// # Panics
/// As [`time_of`].
pub fn hold<T: Timestamp>(arrived: &InputCapability<T>, output: &BlockOutput<'_, T>) -> Capability<T> {
    arrived.delayed(&time_of(arrived), output.output_index())
}

/// A source of blocks. `make` receives its capability and returns its logic, which is called
/// whenever the source is scheduled.
pub fn source<'scope, L: FnMut(&mut BlockOutput<'_>) + 'static>(
    scope: Scope<'scope, u64>,
    name: &str,
    make: impl FnOnce(Capability<u64>, OperatorInfo) -> L,
) -> BlockStream<'scope> {
    boxed_source(scope, name, Box::new(|capability, info| Box::new(make(capability, info))))
}

fn boxed_source<'scope>(scope: Scope<'scope, u64>, name: &str, make: MakeSource<'_>) -> BlockStream<'scope> {
    generic::operator::source::<_, BlockBuilder, _, _>(scope, name, make)
}

/// Exchanges blocks to the owners of their partitions, where `logic` is called whenever some have
/// arrived.
pub fn unary<'scope, T: Timestamp, L: FnMut(&mut BlockInput<T>, &mut BlockOutput<'_, T>) + 'static>(
    blocks: BlockStream<'scope, T>,
    name: &str,
    make: impl FnOnce(OperatorInfo) -> L,
) -> BlockStream<'scope, T> {
    let make = |_, info| -> Box<UnaryLogic<T>> {
        let mut logic = make(info);
        Box::new(move |input, _frontier, output| logic(input, output))
    };
    boxed_unary(blocks, name, FrontierInterest::Never, Box::new(make))
}

/// Exchanges blocks to the owners of their partitions, where the logic is called whenever some have
/// arrived, or the frontier has moved. `make` receives the operator's capability and returns the
/// logic.
pub fn unary_frontier<'scope, L>(
    blocks: BlockStream<'scope>,
    name: &str,
    make: impl FnOnce(Capability<u64>, OperatorInfo) -> L,
) -> BlockStream<'scope>
where
    L: FnMut(&mut BlockInput, &MutableAntichain<u64>, &mut BlockOutput<'_>) + 'static,
{
    let make = |capability, info| -> Box<UnaryLogic<u64>> { Box::new(make(capability, info)) };
    boxed_unary(blocks, name, FrontierInterest::Always, Box::new(make))
}

fn boxed_unary<'scope, T: Timestamp>(
    blocks: BlockStream<'scope, T>,
    name: &str,
    interest: FrontierInterest,
    make: MakeUnary<'_, T>,
) -> BlockStream<'scope, T> {
    let mut builder = OperatorBuilder::new(name.to_owned(), blocks.scope());
    let info = builder.operator_info();
    let mut input = builder.new_input(blocks, by_part());
    builder.set_notify_for(0, interest);
    let (output, stream) = builder.new_output();
    let mut output = OutputBuilder::<_, BlockBuilder>::from(output);
    builder.build(move |mut capabilities| {
        let capability = capabilities.pop().expect("an operator has a capability for its output");
        let mut logic = make(capability, info);
        move |frontiers| logic(&mut input, &frontiers[0], &mut output.activate())
    });
    stream
}

/// Exchanges blocks to the owners of their partitions, and calls `take` with each block there. The
/// stream has no blocks: it ends when all are taken.
pub fn sink<'scope>(
    blocks: BlockStream<'scope>,
    name: &str,
    mut take: impl FnMut(Block) + 'static,
) -> BlockStream<'scope> {
    unary(blocks, name, |_| move |input, _output| input.for_each(|_, block| take(std::mem::take(block))))
}
