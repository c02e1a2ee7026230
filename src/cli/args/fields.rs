//! The flags of `nigh run` that stand for fields of its job.

use clap::Args;
use clap::builder::BoolishValueParser;

use super::is_typed;
use crate::config::Similarity;
use crate::job_file::JobField;

/// Flags for the fields that datasets need; each takes the place of the job's field of its name.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Fields of the job")]
pub(crate) struct FieldFlags {
    /// How similar two documents of a cluster are at least, 0.5 to 0.99. nigh then chooses the
    /// numbers of the method, unless --preset names them.
    #[arg(long, value_name = "SIMILARITY", env = "NIGH_SIMILARITY", value_parser = similarity)]
    similarity: Option<Similarity>,
    /// Whether and how linked documents are checked; needs a similarity.
    #[arg(long, value_name = "HOW", env = "NIGH_VERIFY", value_parser = ["none", "estimate", "exact"])]
    verify: Option<String>,
    /// The numbers of the method by name: fetterly-2004, or minhash-BxR for B bands of R features.
    #[arg(long, value_name = "NAME", env = "NIGH_PRESET")]
    preset: Option<String>,
    /// What a word is: letters, code (identifiers and symbols), characters, or icu (by dictionaries
    /// in scripts without blanks); or how many words of letters a shingle has. A pattern is for a
    /// job.
    #[arg(long, value_name = "RULE_OR_NUMBER", env = "NIGH_WORDS")]
    words: Option<String>,
    /// The words in a shingle [default: 5, of characters 24].
    #[arg(long, value_name = "N", env = "NIGH_SHINGLE")]
    shingle: Option<i64>,
    /// Compare words without their case.
    #[arg(long, env = "NIGH_FOLD_CASE", value_parser = truth())]
    fold_case: bool,
    /// Column of the ids of documents, in JSONL, Parquet, CSV and Arrow.
    #[arg(long, value_name = "COLUMN", env = "NIGH_ID")]
    id: Option<String>,
    /// Column of the URLs of documents [default: url, if there is one].
    #[arg(long, value_name = "COLUMN", env = "NIGH_URL")]
    url: Option<String>,
    /// Column of the texts of documents [default: text]. Given more than once: the columns whose
    /// texts are joined, in this order, with a line break between.
    #[arg(long, value_name = "COLUMN", env = "NIGH_TEXT")]
    text: Vec<String>,
    /// What becomes of two records with one id or URL.
    #[arg(long, value_name = "WHAT", env = "NIGH_SAME_ID", value_parser = ["equal", "first", "reject", "row"])]
    same_id: Option<String>,
}

/// What a variable of a flag without a value may say: `true`, `yes`, `on`, `1`, and their
/// opposites.
pub(in crate::cli) fn truth() -> BoolishValueParser {
    BoolishValueParser::new()
}

fn similarity(text: &str) -> Result<Similarity, String> {
    let number: f64 = text.parse().map_err(|_| format!("`{text}` is not a number: allowed is 0.5 to 0.99"))?;
    Similarity::try_from(number)
}

impl FieldFlags {
    /// The fields that are given.
    pub(crate) fn fields(&self) -> Vec<JobField> {
        let FieldFlags { similarity, verify, preset, words, shingle, fold_case, id, url, text, same_id } = self;
        let number_or_text =
            |value: &String| value.parse::<i64>().map_or_else(|_| value.clone().into(), toml::Value::from);
        let of_text = |value: &Option<String>| value.clone().map(toml::Value::from);
        let texts = match &text[..] {
            [] => None,
            [text] => Some(text.as_str().into()),
            all => Some(all.to_vec().into()),
        };
        let (method, read, columns): (&[_], &[_], &[_]) = (&["method"], &["read"], &["read", "columns"]);
        let fields = [
            ("--similarity", method, "similarity", similarity.map(|similarity| f64::from(similarity).into())),
            ("--verify", method, "verify", of_text(verify)),
            ("--preset", method, "preset", of_text(preset)),
            ("--words", method, "words", words.as_ref().map(number_or_text)),
            ("--shingle", method, "shingle", shingle.map(toml::Value::from)),
            ("--fold-case", method, "fold-case", fold_case.then_some(true.into())),
            ("--id", columns, "id", of_text(id)),
            ("--url", columns, "url", of_text(url)),
            ("--text", columns, "text", texts),
            ("--same-id", read, "same-id", of_text(same_id)),
        ];
        let field = |(flag, tables, name, value)| {
            Some(JobField { flag, tables, name, value: value?, is_typed: is_typed(flag) })
        };
        fields.into_iter().filter_map(field).collect()
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct FieldLine {
        #[command(flatten)]
        flags: FieldFlags,
    }

    fn fields(arguments: &[&str]) -> Vec<JobField> {
        FieldLine::try_parse_from([&["nigh"], arguments].concat()).map(|line| line.flags.fields()).unwrap()
    }

    #[test]
    fn flags_are_fields_of_their_names() {
        assert!(fields(&[]).is_empty());
        let all = ["--similarity", "0.85", "--verify", "exact", "--preset", "minhash-14x8", "--fold-case"];
        let words = ["--words", "code", "--shingle", "8"];
        let columns = ["--id", "key", "--url", "address", "--text", "body", "--same-id", "first"];
        let fields = fields(&[&all[..], &words, &columns].concat());
        assert_eq!(fields.len(), 10);
        for field in &fields {
            assert_eq!(field.flag, format!("--{}", field.name));
        }
        assert_eq!(fields[0].value, toml::Value::Float(0.85));
        assert_eq!(fields[3].value, "code".into());
        let columns = ["input", "output"].map(toml::Value::from).to_vec();
        assert_eq!(self::fields(&["--text", "input", "--text", "output"])[0].value, toml::Value::Array(columns));
        assert_eq!(self::fields(&["--words", "7"])[0].value, toml::Value::Integer(7));
        let error = FieldLine::try_parse_from(["nigh", "--similarity", "80"]).err().unwrap().to_string();
        assert!(error.contains("allowed is 0.5 to 0.99"), "{error}");
    }
}
