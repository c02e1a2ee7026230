//! Two clusters, each a chain of documents, which one document joins: how long it takes to merge
//! them, and to split them again.
//!
//! In a chain blocks of 16 documents overlap by half, as pages of a site that changed from month to
//! month do.

use std::time::Instant;

use anyhow::{Result, ensure};
use serde::Serialize;

use crate::config::Method;
use crate::features::Sketch;
use crate::live::Engine;
use crate::records::{DocumentKey, FeatureBits, mix};

/// Documents that share a key.
const BLOCK: u64 = 16;

/// How long merges and splits of two clusters take, in seconds.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct JoinTimes {
    /// The documents of each cluster.
    pub(super) documents: u64,
    /// The document that joins them comes.
    pub(super) merge_s: f64,
    /// It goes.
    pub(super) split_s: f64,
    /// It goes from a cluster that was one in the tables.
    pub(super) split_of_one_s: f64,
    /// Whether the clusters had the right sizes.
    #[serde(skip)]
    pub(super) is_correct: bool,
}

/// Measures two clusters of so many documents each.
pub(super) fn measure(documents: u64, workers: usize) -> Result<JoinTimes> {
    let method = Method { documents: DocumentKey::Id, ..Method::default() };
    ensure!(method.supershingles >= 6 && method.agreements == 2, "made for two agreements of six supershingles");
    let bridge = |place: u64| {
        let ([a, b, ..], [_, _, c, d, ..]) = (words(0, place), words(1, place));
        vec![(name(9, 0), Some((1, sketch(&method, &[a, b, c, d, mix(1), mix(2)]))))]
    };
    let gone = || vec![(name(9, 0), None)];
    let load = |joined: bool| -> Result<Engine> {
        let mut engine = Engine::new(&method, workers)?;
        let in_chains = || (0..2).flat_map(|chain| (0..documents).map(move |place| (chain, place))).zip(1i64..);
        let last = 2 * documents as i64 + 1;
        let mut load = engine.load(last as usize, 0);
        for ((chain, place), doc) in in_chains() {
            let cluster = if joined { 1 } else { 1 + chain as i64 };
            load.document(doc, &name(chain, place), u128::from(mix(chain << 40 | place)), Some(cluster))?;
        }
        if joined {
            load.document(last, &name(9, 0), 1, Some(1))?;
        }
        for ((chain, place), doc) in in_chains() {
            let Sketch { supershingles, features } = sketch(&method, &words(chain, place));
            load.sketch(doc, &supershingles, &features)?;
        }
        if let Some((_, Some((_, Sketch { supershingles, features })))) = bridge(documents / 2).pop().filter(|_| joined)
        {
            load.sketch(last, &supershingles, &features)?;
        }
        load.finish()?;
        Ok(engine)
    };
    let timed = |engine: &mut Engine, batch: &[(String, Option<(u128, Sketch)>)]| -> Result<f64> {
        let begun = Instant::now();
        engine.apply_known(batch)?;
        Ok(begun.elapsed().as_secs_f64())
    };
    let mut sizes = Vec::new();
    let mut size = |engine: &mut Engine| -> Result<()> {
        sizes.push(engine.document(&name(0, 0))?.size);
        Ok(())
    };
    let mut engine = load(false)?;
    let merge_s = timed(&mut engine, &bridge(documents / 2))?;
    size(&mut engine)?;
    let split_s = timed(&mut engine, &gone())?;
    size(&mut engine)?;
    let mut engine = load(true)?;
    let split_of_one_s = timed(&mut engine, &gone())?;
    size(&mut engine)?;
    let is_correct = sizes == [2 * documents + 1, documents, documents];
    Ok(JoinTimes { documents, merge_s, split_s, split_of_one_s, is_correct })
}

fn name(chain: u64, place: u64) -> String {
    format!("{chain}-{place}")
}

/// The supershingles of a document: it agrees in the first two with its block, and in the next two
/// with a block that begins half a block later.
fn words(chain: u64, place: u64) -> [u64; 6] {
    let (block, later) = (place / BLOCK, (place + BLOCK / 2) / BLOCK);
    let of = |kind: u64, number: u64| mix(chain << 60 ^ kind << 50 ^ number);
    [of(0, block), of(1, block), of(2, later), of(3, later), of(4, place), of(5, place)]
}

fn sketch(method: &Method, supershingles: &[u64]) -> Sketch {
    let mut supershingles = supershingles.to_vec();
    // Methods with more of them: these agree with none.
    while supershingles.len() < method.supershingles {
        supershingles.push(mix(supershingles[4] ^ supershingles.len() as u64));
    }
    let features = (0..method.features).map(|place| mix(supershingles[4] ^ place as u64) as FeatureBits).collect();
    Sketch { features, supershingles }
}
