//! Made-up words of a script, as often as Zipf's law says.

use crate::records::mix;

/// Frequent words of a script.
const FREQUENT: usize = 20_000;
/// Places of the table that frequent words are drawn from, as a power of two.
const TABLE_BITS: u32 = 18;
/// One word in so many is rare: of a vocabulary that grows with the text, as Heaps' law has it.
const RARE_ONE_IN: u64 = 64;
/// Rare words, as a power of two.
const RARE_BITS: u32 = 22;

/// A script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Script {
    /// Letters of one byte; one word in 200 has an accent.
    Latin,
    /// Letters of two bytes.
    Cyrillic,
    /// Letters of three bytes, without blanks between words.
    Han,
}

impl Script {
    /// What is between two words.
    pub fn blank(self) -> &'static str {
        match self {
            Script::Latin | Script::Cyrillic => " ",
            Script::Han => "",
        }
    }

    /// What is after a sentence.
    pub fn stop(self) -> &'static str {
        match self {
            Script::Latin | Script::Cyrillic => ". ",
            Script::Han => "。",
        }
    }

    /// A word for a random number. Frequent ones are short.
    fn word(self, rank: f64, random: u64) -> String {
        let share = |place: u64| mix(random.wrapping_add(place)) as f64 / u64::MAX as f64;
        let length = |mean: f64| 1 + (share(0) * mean) as u64;
        // The first letters of the list are the most frequent.
        let letter = |letters: &[char], place: u64| {
            letters[((letters.len() as f64 * share(2 * place) * share(2 * place + 1)) as usize).min(letters.len() - 1)]
        };
        // Steps of a table, not a logarithm, which is not the same on every machine.
        let longer = [10.0, 100.0, 1000.0, 10_000.0].iter().filter(|bound| rank >= **bound).count() as f64;
        match self {
            Script::Latin => {
                let letters: Vec<char> = "etaoinshrdlucmfwypvbgkjqxz".chars().collect();
                let mut word: String = (1..=length(3.0 + 2.6 * longer)).map(|place| letter(&letters, place)).collect();
                word.extend((random.is_multiple_of(200)).then_some('é'));
                word
            }
            Script::Cyrillic => {
                let letters: Vec<char> = "оеаинтсрвлкмдпуяыьгзбчйхжшюцщэф".chars().collect();
                (1..=length(3.0 + 2.6 * longer)).map(|place| letter(&letters, place)).collect()
            }
            Script::Han => (1..=length(1.2 + 0.4 * longer))
                .filter_map(|place| char::from_u32(0x4E00 + (5000.0 * share(2 * place) * share(2 * place + 1)) as u32))
                .collect(),
        }
    }
}

/// A word: the number of a frequent one, or above them the number of a rare one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Word(u32);

impl Word {
    /// Any frequent word, for a random number.
    pub fn frequent(random: u64) -> Word {
        Word((random % FREQUENT as u64) as u32)
    }
}

/// The words of a script.
pub struct Vocabulary {
    /// The script.
    pub script: Script,
    /// The frequent words, one after the other.
    text: String,
    /// Where each ends.
    ends: Vec<u32>,
    /// Words as often as they are used.
    table: Vec<u16>,
}

impl Vocabulary {
    /// The words of a script.
    pub fn new(script: Script) -> Vocabulary {
        let (mut text, mut ends) = (String::new(), Vec::new());
        for rank in 0..FREQUENT {
            text.push_str(&script.word(rank as f64, mix(rank as u64)));
            ends.push(text.len() as u32);
        }
        // Rank r has a share of about 1 / (r + 2.7), after Mandelbrot. Sums and quotients are the
        // same on every machine.
        let share = |rank: usize| 1.0 / (rank as f64 + 2.7);
        let whole: f64 = (0..FREQUENT).map(share).sum();
        let (mut table, mut sum) = (Vec::new(), 0.0);
        for rank in 0..FREQUENT {
            sum += share(rank);
            let end = (sum / whole * f64::from(1 << TABLE_BITS)) as usize;
            table.resize(end.clamp(table.len(), 1 << TABLE_BITS), rank as u16);
        }
        table.resize(1 << TABLE_BITS, 0);
        Vocabulary { script, text, ends, table }
    }

    /// A word as often as it is used, for a random number.
    pub fn draw(&self, random: u64) -> Word {
        if random.is_multiple_of(RARE_ONE_IN) {
            return Word(FREQUENT as u32 + (random >> (u64::BITS - RARE_BITS)) as u32);
        }
        Word(u32::from(self.table[(random >> (u64::BITS - TABLE_BITS)) as usize]))
    }

    /// Writes a word.
    pub fn write(&self, word: Word, out: &mut String) {
        let number = word.0 as usize;
        if number >= FREQUENT {
            out.push_str(&self.script.word(FREQUENT as f64, mix(u64::from(word.0))));
            return;
        }
        let start = if number == 0 { 0 } else { self.ends[number - 1] as usize };
        out.push_str(&self.text[start..self.ends[number] as usize]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_as_frequent_as_the_law_says() {
        for script in [Script::Latin, Script::Cyrillic, Script::Han] {
            let words = Vocabulary::new(script);
            let mut counts = vec![0u64; FREQUENT];
            let mut rare = std::collections::BTreeSet::new();
            for n in 0..400_000 {
                let Word(number) = words.draw(mix(n));
                match counts.get_mut(number as usize) {
                    Some(count) => *count += 1,
                    None => assert!(rare.insert(number) || rare.len() > 1000),
                }
            }
            // Rank 0 has 1 / 2.7 of a sum of about 9.3; rank 97 has 1 / 99.7.
            let share = |rank: usize| counts[rank] as f64 / 400_000.0;
            assert!((share(0) / 0.0395 - 1.0).abs() < 0.1, "{}", share(0));
            assert!((share(0) / share(97) / (99.7 / 2.7) - 1.0).abs() < 0.2, "{}", share(0) / share(97));
            assert!((6000..6600).contains(&rare.len()), "{}", rare.len());
        }
    }

    #[test]
    fn words_have_the_letters_of_their_script() {
        let lengths = [Script::Latin, Script::Cyrillic, Script::Han].map(|script| {
            let words = Vocabulary::new(script);
            let mut text = String::new();
            for n in 0..10_000 {
                words.write(words.draw(mix(n)), &mut text);
            }
            let is_of_script = |letter: char| match script {
                Script::Latin => letter.is_ascii_lowercase() || letter == 'é',
                Script::Cyrillic => ('а'..='я').contains(&letter),
                Script::Han => ('\u{4E00}'..='\u{9FFF}').contains(&letter),
            };
            assert!(text.chars().all(is_of_script));
            text.chars().count() as f64 / 10_000.0
        });
        // Letters a word: as in English and Russian text, and Chinese.
        assert!((4.0..6.5).contains(&lengths[0]) && (4.0..6.5).contains(&lengths[1]), "{lengths:?}");
        assert!((1.2..2.2).contains(&lengths[2]), "{lengths:?}");
    }
}
