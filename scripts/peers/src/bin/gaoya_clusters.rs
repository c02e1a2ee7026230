//! Clusters the documents of a JSONL file with gaoya alone: what a user of the crate would write.
//!
//! Shingles of five words, 84 functions in 14 bands of 6, candidates checked by the estimate at
//! 0.8, union-find; one line `URL<tab>CLUSTER` for each document goes to the output.
//! `gaoya_clusters IN.jsonl OUT.tsv`

use std::io::{BufRead, BufReader, BufWriter, Write};

use anyhow::{Context, Result};
use gaoya::minhash::{MinHashIndex, MinHasher, MinHasher32};

#[derive(serde::Deserialize)]
struct Document {
    url: String,
    text: String,
}

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let (input, output) =
        arguments.next().zip(arguments.next()).context("usage: gaoya_clusters IN.jsonl OUT.tsv")?;
    let hasher = MinHasher32::new(84);
    let mut index = MinHashIndex::<u32, u32>::new(14, 6, 0.8);
    let (mut urls, mut parents) = (Vec::new(), Vec::<u32>::new());
    for line in BufReader::new(std::fs::File::open(&input)?).lines() {
        let Document { url, text } = serde_json::from_str(&line?)?;
        let words: Vec<&str> = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect();
        let signature = hasher.create_signature(words.windows(5).map(|shingle| shingle.join(" ")));
        let document = urls.len() as u32;
        parents.push(document);
        for near in index.query_owned(&signature) {
            let (a, b) = (root(&parents, near), root(&parents, document));
            parents[a.max(b) as usize] = a.min(b);
        }
        index.insert(document, signature);
        urls.push(url);
    }
    let mut out = BufWriter::new(std::fs::File::create(&output)?);
    for (document, url) in urls.iter().enumerate() {
        writeln!(out, "{url}\t{}", root(&parents, document as u32))?;
    }
    out.flush().context("cannot write the clusters")
}

fn root(parents: &[u32], mut document: u32) -> u32 {
    while parents[document as usize] != document {
        document = parents[document as usize];
    }
    document
}
