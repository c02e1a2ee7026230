//! Documents to measure with: pieces of a made-up text, or pages of crawl files.

use anyhow::{Context, Result};

use super::setting::Setting;
use crate::config::Config;
use crate::kernels::Kernels;
use crate::readers::{Item, Page};
use crate::records::mix;

/// The number of words of a measured text, which is cut into documents of one length. So few fit in
/// the second-level cache, where a page is when it was just read.
const WORDS: usize = 100_000;

/// A text like English, the same on every machine: 5.1 letters per word on average, a vocabulary by
/// Zipf's law, and one word in 200 of the vocabulary with an accented letter.
pub(crate) fn made_up() -> String {
    let mut state = 0;
    let mut random = || {
        state += 1;
        mix(state) as f64 / u64::MAX as f64
    };
    let vocabulary: Vec<String> = (0..20_000)
        .map(|rank: u32| {
            // Frequent words are short.
            let length = 1 + (random() * (3.0 + f64::from(rank + 1).ln() * 1.15)) as usize;
            let mut word: String = (0..length)
                .map(|_| char::from(b"etaoinshrdlucmfwypvbgkjqxz"[(26.0 * random() * random()) as usize]))
                .collect();
            if random() < 0.005 {
                word.push('é');
            }
            word
        })
        .collect();
    let mut text = String::new();
    for i in 0..WORDS {
        // Inverse transform sampling: rank r gets a share of about 1 / r.
        let rank = (vocabulary.len() as f64).powf(random()) as usize - 1;
        text.push_str(&vocabulary[rank]);
        text.push_str(match i % 23 {
            5 | 13 => ", ",
            22 => ".\n",
            _ => " ",
        });
    }
    text
}

/// Cuts a text into documents of `words` words each.
pub(crate) fn documents<'a>(kernels: &Kernels, text: &'a str, words: usize) -> Vec<&'a str> {
    let mut bounds = Vec::new();
    kernels.words(text.as_bytes(), &mut bounds);
    bounds
        .chunks_exact(2 * words)
        .take(WORDS.div_ceil(words))
        .map(|bounds| &text[bounds[0] as usize..bounds[2 * words - 1] as usize])
        .collect()
}

/// The pages of the input, up to the memory that the program would use by default.
pub(crate) fn pages(setting: &Setting) -> Result<Vec<Page>> {
    let memory = Config::default().memory();
    let (mut all, mut bytes) = (Vec::new(), 0);
    each_page(setting, 0, 1, |page| {
        bytes += page.body.bytes();
        if bytes <= memory {
            all.push(page);
        }
    })?;
    Ok(all)
}

/// Calls `each` for every page in the input files of `worker`, one of `workers`.
pub(crate) fn each_page(setting: &Setting, worker: usize, workers: usize, mut each: impl FnMut(Page)) -> Result<()> {
    let inputs = crate::readers::list(&setting.input, &setting.reading)?;
    for input in inputs.iter().skip(worker).step_by(workers) {
        let mut reader = crate::readers::open(input, &setting.reading)?;
        while let Some(item) = reader.next().with_context(|| format!("cannot read {}", input.name))? {
            if let Item::Page(page) = item {
                each(page);
            }
        }
    }
    Ok(())
}
