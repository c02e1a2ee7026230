//! A process that has a part of the keys and features: answers one request after the other.

use std::io::{Read, Write};

use anyhow::{Context, Result, ensure};

use super::features::PartFeatures;
use super::messages::{PartReply, Request, receive, receive_hello, send, send_hello};
use crate::features::equal_features;
use crate::live::engine::keys::{KeyPart, MOST_NODES, NodeLists};

/// Keeps a part of the keys and features of `nigh live` until the input ends, which is when the
/// process that asks has ended.
///
/// # Errors
/// If what comes is not of this version of nigh, is cut, or contradicts what came before.
pub fn serve_keys(mut input: impl Read, mut output: impl Write) -> Result<()> {
    send_hello(&mut output)?;
    receive_hello(&mut input)?;
    let mut parts = None;
    while let Some(request) = receive(&mut input)? {
        let reply = answer(&mut parts, request)?;
        send(&mut output, &reply)?;
    }
    Ok(())
}

/// What a process has of an engine.
struct ServedParts {
    keys: KeyPart,
    features: PartFeatures,
}

fn answer(parts: &mut Option<ServedParts>, request: Request) -> Result<PartReply> {
    if request == Request::Ping {
        return Ok(PartReply::Ready);
    }
    if let Request::Begin { part, width, agreements, features } = request {
        ensure!(
            part.number < part.count && (1..=width).contains(&agreements) && features > 0,
            "part {} of {}, {agreements} of {width} supershingles, {features} features",
            part.number,
            part.count
        );
        let keys = KeyPart::new(part, width, agreements);
        *parts = Some(ServedParts { keys, features: PartFeatures::new(part.count as usize, features) });
        return Ok(PartReply::Ready);
    }
    let ServedParts { keys, features: noted } = parts.as_mut().context("a request before the begin")?;
    let (width, width_of_doc) = (keys.width(), noted.width());
    let mut edges = Vec::new();
    let mut lists = NodeLists::default();
    match request {
        Request::Remove { nodes } => {
            for node in nodes {
                keys.remove(node, &mut |edge| edges.push(edge));
            }
            Ok(PartReply::Edges(edges))
        }
        Request::Insert { nodes, vectors } => {
            ensure!(
                vectors.len() == nodes.len() * width && nodes.iter().all(|node| *node < MOST_NODES),
                "{} nodes with {} supershingles, of {width} each",
                nodes.len(),
                vectors.len()
            );
            for (node, vector) in nodes.into_iter().zip(vectors.chunks_exact(width)) {
                keys.set_vector(node, vector);
                keys.insert(node, &mut |edge| edges.push(edge));
            }
            Ok(PartReply::Edges(edges))
        }
        Request::Neighbours { nodes } => {
            nodes.into_iter().for_each(|node| keys.neighbours(node, &mut lists));
            Ok(PartReply::Lists(lists))
        }
        Request::Sharing { vectors, most } => {
            ensure!(vectors.len().is_multiple_of(width), "{} supershingles, of {width} each", vectors.len());
            vectors.chunks_exact(width).for_each(|vector| keys.sharing(vector, most, &mut lists));
            Ok(PartReply::Lists(lists))
        }
        Request::Note { docs, features } => {
            ensure!(
                features.len() == docs.len() * width_of_doc,
                "{} documents with {} features, of {width_of_doc} each",
                docs.len(),
                features.len()
            );
            docs.into_iter().zip(features.chunks_exact(width_of_doc)).for_each(|(doc, of)| noted.set(doc, of));
            Ok(PartReply::Ready)
        }
        Request::Features { docs } => {
            let mut found = Vec::with_capacity(docs.len() * width_of_doc);
            docs.into_iter().for_each(|doc| noted.add_to(doc, &mut found));
            Ok(PartReply::Features(found))
        }
        Request::Compare { features, lengths, docs } => {
            let count: usize = lengths.iter().map(|length| *length as usize).sum();
            ensure!(
                features.len() == lengths.len() * width_of_doc && count == docs.len(),
                "{} features, of {width_of_doc} each, that are compared with {count} of {} documents",
                features.len(),
                docs.len()
            );
            let mut docs = docs.into_iter();
            let mut equal = Vec::with_capacity(docs.len());
            for (features, length) in features.chunks_exact(width_of_doc).zip(lengths) {
                let of = docs.by_ref().take(length as usize);
                equal.extend(of.map(|doc| equal_features(noted.of(doc), features) as u16));
            }
            Ok(PartReply::Equal(equal))
        }
        Request::Begin { .. } | Request::Ping => Ok(PartReply::Ready),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::live::engine::keys::KeyShare;

    /// What a process sends to these requests after its hello, and how it ends.
    fn served(requests: &[Request]) -> (Vec<PartReply>, Result<()>) {
        let mut input = Vec::new();
        send_hello(&mut input).unwrap();
        requests.iter().for_each(|request| send(&mut input, request).unwrap());
        let mut output = Vec::new();
        let end = serve_keys(&input[..], &mut output);
        let mut output = &output[..];
        receive_hello(&mut output).unwrap();
        (std::iter::from_fn(|| receive(&mut output).unwrap()).collect(), end)
    }

    #[test]
    fn requests_that_contradict_are_refused() {
        let begin = |number, width, agreements| {
            let part = KeyShare { number, count: 2 };
            Request::Begin { part, width, agreements, features: 4 }
        };
        let compare = |features, lengths: &[u32]| Request::Compare {
            features: vec![1; features],
            lengths: lengths.to_vec(),
            docs: vec![1, 3],
        };
        let insert =
            |nodes: &[u32], vectors: usize| Request::Insert { nodes: nodes.to_vec(), vectors: vec![7; vectors] };
        for (requests, reason) in [
            (vec![begin(2, 6, 2)], "part 2 of 2"),
            (vec![begin(1, 6, 7)], "7 of 6 supershingles"),
            (vec![begin(1, 6, 0)], "0 of 6 supershingles"),
            (vec![Request::Neighbours { nodes: vec![1] }], "before the begin"),
            (vec![begin(1, 6, 2), insert(&[1, 2], 6)], "2 nodes with 6 supershingles"),
            (vec![begin(1, 6, 2), insert(&[MOST_NODES], 6)], "1 nodes with 6"),
            (vec![begin(1, 6, 2), Request::Note { docs: vec![1], features: vec![1; 5] }], "5 features, of 4 each"),
            (vec![begin(1, 6, 2), compare(4, &[3])], "3 of 2 documents"),
            (vec![begin(1, 6, 2), compare(5, &[1, 1])], "5 features"),
            (vec![begin(1, 6, 2), Request::Sharing { vectors: vec![1; 7], most: 1 }], "7 supershingles"),
        ] {
            let (replies, end) = served(&requests);
            assert_eq!(replies.len() + 1, requests.len());
            assert!(end.unwrap_err().to_string().contains(reason), "{reason}");
        }
        let (replies, end) = served(&[Request::Ping, begin(0, 6, 2), insert(&[1], 6), begin(0, 6, 2)]);
        end.unwrap();
        assert_eq!(replies, [PartReply::Ready, PartReply::Ready, PartReply::Edges(Vec::new()), PartReply::Ready]);
    }
}
