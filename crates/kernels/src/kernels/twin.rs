//! Tests every level of this machine against the definition, and all levels against golden vectors.

use std::path::PathBuf;

use proptest::prelude::*;
use walkdir::WalkDir;

use super::{
    BitSet, FeatureRuns, Functions, JoinedWords, Kernels, MarkupBitmaps, ShingleConstants, available, polynomials,
};
use crate::records::{mix, short_hash};

/// The environment variable that names a level which this machine must have, or the tests fail: for
/// runs that test one level.
const EXPECTED: &str = "NIGH_EXPECT_KERNELS";

/// The seed of the default method, which has 84 features of shingles of 5 words, and 6
/// supershingles.
const SEED: u64 = 20_031_107;

/// Pseudo-random numbers, the same in every run.
struct RandomChoices(u64);

impl RandomChoices {
    fn number(&mut self) -> u64 {
        self.0 += 1;
        mix(self.0)
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.number() % bound as u64) as usize
    }

    fn of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len())]
    }
}

/// The definition, and the levels that must return the same bits.
fn levels() -> (&'static Kernels, Vec<&'static Kernels>) {
    let mut levels = available();
    let scalar = levels.pop().expect("the definition is always there");
    assert_eq!(scalar.name(), "scalar");
    (scalar, levels)
}

/// Scripts, as ranges of characters: of letters only, or of letters and others.
const SCRIPTS: [(&str, &[(char, char)]); 12] = [
    ("ascii", &[('a', 'z'), ('A', 'Z'), ('0', '9')]),
    ("latin", &[('a', 'z'), ('à', 'ö'), ('ø', 'ÿ'), ('ā', 'ž')]),
    ("greek", &[('α', 'ω'), ('Α', 'Ρ')]),
    ("cyrillic", &[('а', 'я'), ('А', 'Я')]),
    ("arabic", &[('ا', 'غ'), ('ف', 'ي')]),
    ("devanagari", &[('अ', 'ह'), ('ा', 'ौ')]),
    ("thai", &[('ก', 'ะ'), ('เ', 'ไ')]),
    ("kana", &[('ぁ', 'ゖ'), ('ァ', 'ヺ')]),
    ("han", &[('一', '龥'), ('a', 'z')]),
    ("hangul", &[('가', '힣')]),
    ("four bytes", &[('𝐀', '𝑔'), ('𠀀', '𠀿'), ('😀', '😏')]),
    ("marks", &[('\u{300}', '\u{36F}'), ('¡', '¿'), ('\u{2000}', '\u{206F}'), ('a', 'e')]),
];

fn character(random: &mut RandomChoices, ranges: &[(char, char)]) -> char {
    let (first, last) = random.of(ranges);
    let code = u32::from(first) + random.below((last as u32 - first as u32) as usize + 1) as u32;
    char::from_u32(code).expect("no range crosses the surrogates")
}

/// A text of `words` words, of 1 to `longest` characters each.
fn prose(random: &mut RandomChoices, ranges: &[(char, char)], words: usize, longest: usize) -> String {
    let mut text = String::new();
    for _ in 0..words {
        for _ in 0..=random.below(longest) {
            text.push(character(random, ranges));
        }
        text.push_str(random.of(&[" ", ", ", ".\n", "-", "\u{3000}", " – "]));
    }
    text
}

/// Bytes of one kind. 0: letters; 1: random bytes; 2: bytes that are nearly UTF-8; 3: one word; 4:
/// markup; 5: the shortest words; from 6: a text of a script, cut at any byte.
fn bytes(random: &mut RandomChoices, kind: usize, length: usize) -> Vec<u8> {
    const NEARLY: &[u8] = b"aZ0 _\x7F\x80\x9F\xA0\xBF\xC1\xC2\xC3\xD0\xDF\xE0\xE4\xED\xEF\xF0\xF4\xF5\xFF";
    match kind {
        0 => (0..length).map(|_| random.of(b"abcXYZ0189      @[`{/:_")).collect(),
        1 => (0..length).map(|_| random.number() as u8).collect(),
        2 => (0..length).map(|_| random.of(NEARLY)).collect(),
        3 => vec![b'w'; length],
        4 => (0..length).map(|_| random.of(b"<>&\"'a= ")).collect(),
        // So many bounds that they fill the buffer of positions of `narrow`.
        5 => (0..length).map(|i| if i % 2 == 0 || random.below(8) == 0 { b'a' } else { b' ' }).collect(),
        _ => {
            let (_, ranges) = SCRIPTS[kind % SCRIPTS.len()];
            let mut text = prose(random, ranges, length / 4 + 2, 9).into_bytes();
            text.truncate(length);
            text
        }
    }
}

const KINDS: usize = 6 + SCRIPTS.len();

/// The results of a level for a text: the bounds, and the pre-images of each width.
fn shingled(kernels: &Kernels, shingles: &[ShingleConstants], text: &[u8]) -> (Vec<u32>, Vec<Vec<u64>>) {
    // Previous contents of the vectors must not matter.
    let mut bounds = vec![7; 3];
    kernels.words(text, &mut bounds);
    let preimages = shingles.iter().map(|shingles| {
        let mut preimages = vec![7; 3];
        kernels.preimages(shingles, text, &bounds, &mut preimages);
        preimages
    });
    let preimages = preimages.collect();
    (bounds, preimages)
}

/// Compares the joined words of all levels on a text.
fn same_joined(text: &[u8]) {
    let (scalar, levels) = levels();
    for line_end in [b'\n', 0x1E] {
        let joined = |kernels: &Kernels| {
            // Previous contents must not matter.
            let (mut bounds, mut joined, mut of_words) = (Vec::new(), JoinedWords::default(), Vec::new());
            kernels.join(b"a.\nb.\nc", b'\n', &mut bounds, &mut joined);
            kernels.join(text, line_end, &mut bounds, &mut joined);
            kernels.words(text, &mut of_words);
            assert_eq!(bounds, of_words);
            let starts = [joined.line_starts().to_vec(), joined.sentence_starts().to_vec()];
            (joined.words().to_vec(), starts, joined.characters())
        };
        let expected = joined(scalar);
        for level in &levels {
            assert_eq!(joined(level), expected, "{}: {text:x?}", level.name());
        }
    }
}

#[test]
fn every_level_joins_the_same_words_and_finds_the_same_line_ends() {
    let random = &mut RandomChoices(22);
    let pieces: [&[u8]; 18] = [
        b"a",
        b"bc",
        b"longer",
        b"0123456789abcdefghij",
        "\u{e9}".as_bytes(),
        "\u{4e2d}\u{6587}".as_bytes(),
        "\u{1d400}".as_bytes(),
        "\u{2014}".as_bytes(),
        b" ",
        b"  \t ",
        b"\n",
        b"\x1e",
        b".",
        b"...",
        b"\0",
        b"\xff",
        b"\xc3",
        b"                    ",
    ];
    for _ in 0..3000 {
        let count = random.below(100);
        // Of all pieces, or of few kinds: long words, long gaps.
        let kinds = 1 + random.below(pieces.len());
        let first = random.below(pieces.len() + 1 - kinds);
        let text: Vec<u8> = (0..count).flat_map(|_| pieces[first + random.below(kinds)]).copied().collect();
        same_joined(&text);
        // The last block is full, or nearly.
        (0..text.len().min(3)).for_each(|cut| same_joined(&text[cut..]));
    }
}

fn widths(widths: impl IntoIterator<Item = usize>) -> Vec<ShingleConstants> {
    let p = polynomials(SEED, 1).shingles;
    widths.into_iter().map(|width| ShingleConstants::new(p, width)).collect()
}

/// Compares all levels on a text; `description` says how the text was made, if they differ.
fn same_shingles(shingles: &[ShingleConstants], text: &[u8], description: &dyn Fn() -> String) {
    let (scalar, levels) = levels();
    let (expected_bounds, expected) = shingled(scalar, shingles, text);
    for level in levels {
        let (bounds, preimages) = shingled(level, shingles, text);
        assert_eq!(bounds, expected_bounds, "{}: bounds of {}: {text:x?}", level.name(), description());
        for ((preimages, expected), shingles) in preimages.iter().zip(&expected).zip(shingles) {
            let width = shingles.width;
            assert!(preimages == expected, "{}: pre-images of width {width} of {}", level.name(), description());
        }
    }
}

#[test]
fn this_machine_has_the_level_under_test() {
    let names: Vec<&str> = available().iter().map(|level| level.name()).collect();
    if let Ok(expected) = std::env::var(EXPECTED) {
        assert!(names.contains(&expected.as_str()), "{expected} is not among {}", names.join(", "));
    }
}

#[test]
fn every_level_finds_the_same_shingles_at_every_length() {
    let random = &mut RandomChoices(1);
    let shingles = widths([5]);
    let lengths = (0..=200).chain(505..=520).chain(1018..=1030).chain(4090..=4102);
    for length in lengths {
        for kind in 0..KINDS {
            let start = random.below(64);
            // The buffer has more of the same before and after the text, which must not matter.
            let buffer = bytes(random, kind, start + length + 70);
            let text = &buffer[start.min(buffer.len())..(start + length).min(buffer.len())];
            same_shingles(&shingles, text, &|| format!("{length} bytes of kind {kind}"));
        }
    }
}

#[test]
fn every_level_finds_the_same_shingles_at_every_start() {
    let random = &mut RandomChoices(2);
    let shingles = widths([5]);
    for kind in 0..KINDS {
        let buffer = bytes(random, kind, 600);
        for start in 0..64 {
            for end in [start + 61, start + 64, start + 130, buffer.len() - start] {
                same_shingles(&shingles, &buffer[start..end], &|| format!("{start}..{end} of kind {kind}"));
            }
        }
    }
}

#[test]
fn every_level_joins_words_of_every_length_in_every_width() {
    let random = &mut RandomChoices(3);
    let shingles = widths((1..=8).chain([64]));
    for length in (1..=40).chain([200, 255, 256, 257, 339, 340, 341, 342, 511, 512, 1021, 1022, 1023, 1024, 1025, 3000])
    {
        // A long word alone, among long words, and among short words: first, in between, and last.
        let long = |random: &mut RandomChoices| (0..length).map(|_| random.of(b"abcdefgh")).collect::<Vec<u8>>();
        for place in 0..8 {
            let mut words: Vec<Vec<u8>> = (0..place).map(|_| vec![random.of(b"xyz"); random.below(19) + 1]).collect();
            words.push(long(random));
            if place % 3 == 0 {
                words.extend((0..place).map(|_| long(random)));
            }
            if place % 2 == 0 {
                words.extend((0..70).map(|_| vec![random.of(b"xyz"); random.below(19) + 1]));
            }
            same_shingles(&shingles, &words.join(&b' '), &|| format!("{} words, one of {length}", words.len()));
        }
    }
    // The chunks of 512 words of AVX-512 end in the middle of wide shingles.
    let wide = widths([5, 9, 10, 12, 33, 63, 64]);
    for words in [448, 511, 512, 513, 521, 560, 575, 576, 577, 600, 640, 1024, 1025, 1100] {
        let text = prose(random, SCRIPTS[0].1, words, 6);
        same_shingles(&wide, text.as_bytes(), &|| format!("{words} words in wide shingles"));
    }
    for words in 0..=12 {
        let text = prose(random, SCRIPTS[0].1, words, 20);
        same_shingles(&shingles, text.as_bytes(), &|| format!("{words} words"));
        same_shingles(&shingles, text.trim_end().as_bytes(), &|| format!("{words} words, the last at the end"));
    }
}

#[test]
fn every_level_reads_real_pages_alike() {
    let data = data("formats");
    let mut pages = vec![std::fs::read(data.join("pages.warc")).unwrap()];
    let files = WalkDir::new(data.join("html")).sort_by_file_name().into_iter().map(Result::unwrap);
    pages.extend(files.filter(|file| file.file_type().is_file()).map(|file| std::fs::read(file.path()).unwrap()));
    assert!(pages.len() > 5);
    for page in pages {
        same_shingles(&widths([5]), &page, &|| "a page".into());
        same_marks(&page);
    }
}

/// Compares the marks of all levels on a page, from every position.
fn same_marks(page: &[u8]) {
    let (scalar, levels) = levels();
    let (mut expected, mut marks) = (MarkupBitmaps::default(), MarkupBitmaps::default());
    scalar.marks(page, &mut expected);
    for level in levels {
        level.marks(&[b'<'; 300], &mut marks); // marks left from another page must not matter
        level.marks(page, &mut marks);
        for from in 0..=page.len() {
            let next = |marks: &MarkupBitmaps| (marks.text_end(from), marks.tag_mark(from));
            assert_eq!(next(&marks), next(&expected), "{}: from {from} of {} bytes", level.name(), page.len());
        }
    }
}

#[test]
fn every_level_marks_the_same_bytes() {
    let random = &mut RandomChoices(4);
    for kind in [1, 4] {
        for length in (0..=200).chain(505..=520).chain(1018..=1030).chain(4090..=4102) {
            let start = random.below(64);
            let buffer = bytes(random, kind, start + length + 70);
            same_marks(&buffer[start..start + length]);
        }
    }
}

/// `count` pre-images of one kind: random, few distinct ones, short ones, all equal, and extremes.
fn preimages(random: &mut RandomChoices, kind: usize, count: usize) -> Vec<u64> {
    let few = [random.number(), random.number(), random.number()];
    let mut all: Vec<u64> = (0..count)
        .map(|_| match kind {
            0 => random.number(),
            1 => random.of(&few),
            2 => {
                let shift = random.below(64);
                random.number() >> shift
            }
            3 => few[0],
            4 => 0,
            5 => u64::MAX,
            _ => random.of(&[0, 1, u64::MAX, 1 << 63, few[0]]),
        })
        .collect();
    // The position of a pre-image must not matter: one of the last is also somewhere before, most
    // often in a full block.
    if kind == 0 && count > 1 {
        let place = random.below(count);
        all[place] = all[count - 1];
    }
    all
}

#[test]
fn every_level_finds_the_same_minima() {
    let random = &mut RandomChoices(5);
    let all = polynomials(SEED, 85).features;
    let many: Vec<u64> = all.iter().cycle().take(300).copied().collect();
    for functions in [127, 128, 129, 300].map(|count| Functions::new(&many[..count])) {
        for count in [1, 12, 13, 20, 64, 65, 130, 513, 1100] {
            for kind in 0..7 {
                same_minima(&functions, &preimages(random, kind, count), kind);
            }
        }
    }
    for functions in [1, 7, 8, 84, 85].map(|count| Functions::new(&all[..count])) {
        for count in (1..=140).chain(505..=520).chain([575, 576, 577]).chain(1020..=1030) {
            for kind in 0..7 {
                let buffer = preimages(random, kind, count + 3);
                same_minima(&functions, &buffer[random.below(4)..][..count], kind);
            }
        }
    }
}

/// Compares the minima of all levels.
fn same_minima(functions: &Functions, preimages: &[u64], kind: usize) {
    let (scalar, levels) = levels();
    let (mut expected, mut minima) = (vec![], vec![7]);
    scalar.minima(functions, preimages, &mut expected);
    for level in &levels {
        level.minima(functions, preimages, &mut minima);
        let (name, count) = (level.name(), preimages.len());
        assert!(minima == expected, "{name}: {count} pre-images of kind {kind}, {} functions", functions.count());
    }
}

/// The pre-image with this image under `t^64 + p`, `p` odd: the image divided by `t` 64 times.
fn preimage(p: u64, image: u64) -> u64 {
    (0..64).fold(image, |rest, _| if rest & 1 == 1 { (rest ^ p) >> 1 | 1 << 63 } else { rest >> 1 })
}

#[test]
fn every_level_distinguishes_images_with_the_same_leading_byte() {
    let random = &mut RandomChoices(7);
    let (scalar, levels) = levels();
    let p = polynomials(SEED, 1).features[0];
    let functions = Functions::new(&[p]);
    for count in [1, 2, 8, 9, 20, 63, 64, 65, 512, 513, 600, 1024, 1030] {
        for (leading, shift) in [(0, 8), (0x7F << 56, 8), (u64::MAX << 56, 8), (u64::MAX << 8, 56), (u64::MAX, 63)] {
            let preimages: Vec<u64> = (0..count).map(|_| preimage(p, leading | random.number() >> shift)).collect();
            let (mut expected, mut minima) = (vec![], vec![7]);
            scalar.minima(&functions, &preimages, &mut expected);
            for level in &levels {
                level.minima(&functions, &preimages, &mut minima);
                assert_eq!(minima, expected, "{}: {count} images from {leading:x}", level.name());
            }
        }
    }
}

#[test]
fn every_level_fingerprints_runs_alike() {
    let random = &mut RandomChoices(6);
    let (scalar, levels) = levels();
    let p = polynomials(SEED, 1).supershingles;
    for length in (1..=16).chain([84, 85]) {
        let runs = FeatureRuns::new(p, length);
        for kind in 0..7 {
            let features = preimages(random, kind, 84);
            let (mut expected, mut supershingles) = (vec![], vec![7]);
            scalar.supershingles(&runs, &features, &mut expected);
            for level in &levels {
                level.supershingles(&runs, &features, &mut supershingles);
                assert_eq!(supershingles, expected, "{}: runs of {length}, kind {kind}", level.name());
            }
        }
    }
}

#[test]
fn every_level_finds_the_same_words_in_a_bit_set() {
    let random = &mut RandomChoices(8);
    let (scalar, levels) = levels();
    for (width, size) in
        [(1, 1), (1, 64), (2, 1), (3, 16), (6, 1), (6, 64), (7, 8), (8, 1024), (9, 2), (13, 4), (64, 32)]
    {
        // Half of the bits set, only the first and the last one, and all.
        let random_bits: Vec<u64> = (0..size).map(|_| random.number()).collect();
        let ends = |word: usize| u64::from(word == 0) | u64::from(word + 1 == size) << 63;
        for bits in [random_bits, (0..size).map(ends).collect(), vec![u64::MAX; size]] {
            let salts: Vec<u64> = (0..width).map(|_| random.number()).collect();
            let set = BitSet::new(bits, &salts);
            for rows in [0, 1, 2, 7, 8, 11, 64, 65, 200] {
                let words: Vec<u64> = (0..rows * width).map(|_| random.number()).collect();
                let (mut expected, mut bits) = (vec![], vec![7]);
                scalar.held(&set, &words, &mut expected);
                assert_eq!(expected.len(), words.len().div_ceil(64));
                for level in &levels {
                    level.held(&set, &words, &mut bits);
                    assert_eq!(bits, expected, "{}: {rows} rows of {width}, {size} words of bits", level.name());
                }
            }
        }
    }
}

proptest! {
    #[test]
    fn every_level_reads_any_text_alike(text: String) {
        same_shingles(&widths([2, 5]), text.as_bytes(), &|| "a text".into());
    }

    #[test]
    fn every_level_reads_any_bytes_alike(text: Vec<u8>) {
        same_shingles(&widths([5]), &text, &|| "some bytes".into());
        same_marks(&text);
    }
}

fn data(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/data").join(name)
}

/// The texts of the golden vectors, with their names.
fn golden_texts() -> Vec<(String, Vec<u8>)> {
    let random = &mut RandomChoices(8);
    let mut texts: Vec<(String, Vec<u8>)> = [
        ("one word", "word"),
        ("two words", "near duplicates"),
        ("a pangram", "The quick brown fox jumps over the lazy dog; THE QUICK BROWN FOX jumps again."),
        ("what parts words", "snake_case, kebab-case, it's, 3.14, e-mail@example.org, a\u{A0}b, c\u{200B}d"),
        ("accents", "Ça où déjà naïve Straße señor œuvre Łódź e\u{301}t"),
        ("numbers", "½ ² Ⅷ ٣ ५ 𝟘 ① 1234567890 0"),
        ("every script", "нет ηώς سلام नमस्ते ไทย こんにちは 東京 서울 𝒜𝒷 😀 end"),
    ]
    .map(|(name, text)| (name.to_owned(), text.as_bytes().to_vec()))
    .into();
    texts.push((
        "no UTF-8".into(),
        b"caf\xE9 \xE4\xB8 a\xC3\xA9\xC3 \xF0\x9D\x90\x80b \xED\xA0\x80 \xC0\xAF x\xFFy".into(),
    ));
    texts.push(("a word of 5000 bytes".into(), [&[b'q'; 5000], &b" and five short ones behind it"[..]].concat()));
    texts.push(("words of 400 bytes".into(), [[b'r'; 400].as_slice(), b" "].concat().repeat(30)));
    for (script, ranges) in SCRIPTS {
        for words in [4, 40, 700] {
            texts.push((format!("{script}, {words} words"), prose(random, ranges, words, 11).into_bytes()));
        }
    }
    texts
}

/// The results of a level for the golden texts and the default method, as a table of hashes of
/// little-endian numbers.
fn golden(kernels: &Kernels) -> String {
    let polynomials = polynomials(SEED, 84);
    let shingles = [ShingleConstants::new(polynomials.shingles, 5)];
    let functions = Functions::new(&polynomials.features);
    let runs = FeatureRuns::new(polynomials.supershingles, 84 / 6);
    let mut table = "text\thash\twords\tpreimages\tminima\tsupershingles\n".to_owned();
    let hash = |numbers: &[u64]| short_hash(&numbers.iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<u8>>());
    for (name, text) in golden_texts() {
        let (bounds, preimages) = shingled(kernels, &shingles, &text);
        let (mut minima, mut supershingles) = (vec![], vec![]);
        kernels.minima(&functions, &preimages[0], &mut minima);
        kernels.supershingles(&runs, &minima, &mut supershingles);
        let row = [
            short_hash(&text),
            (bounds.len() / 2).to_string(),
            hash(&preimages[0]),
            hash(&minima),
            hash(&supershingles),
        ];
        table += &format!("{name}\t{}\n", row.join("\t"));
    }
    table
}

/// The table is part of the format: with other numbers, pages no longer match those of existing
/// stores. After an intended change, `cargo test -p nigh-kernels twin -- --ignored` writes it again
/// from the definition.
#[test]
fn every_level_computes_the_golden_vectors() {
    let expected = std::fs::read_to_string(data("kernels.tsv")).unwrap();
    for level in available() {
        let table = golden(level);
        for (row, expected) in table.lines().zip(expected.lines()) {
            assert_eq!(row, expected, "{}", level.name());
        }
        assert_eq!(table.lines().count(), expected.lines().count());
    }
}

#[test]
#[ignore = "writes tests/data/kernels.tsv"]
fn golden_vectors_are_written_again() {
    let (scalar, _) = levels();
    std::fs::write(data("kernels.tsv"), golden(scalar)).unwrap();
}
