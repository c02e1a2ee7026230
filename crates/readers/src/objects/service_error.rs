//! An error of a service: what could not be done, what to do, and each cause once.
//!
//! The texts of the client's errors have those of their causes in them, so a chain of them says the
//! same several times.

use std::error::Error as StdError;
use std::fmt;

use object_store::Error;

use super::hide_passwords;

/// An error of a service.
#[derive(Debug)]
pub struct ServiceError {
    text: String,
    error: Error,
}

impl ServiceError {
    /// The error of a client; `what` is what could not be done: `read URL`.
    pub(super) fn new(error: Error, what: &str) -> ServiceError {
        let causes = causes(&error);
        let text = match missing_bucket(&causes) {
            Some(kind) => format!("cannot {what}: the service has no such {kind}"),
            None => {
                let advice = match error {
                    Error::PermissionDenied { .. } | Error::Unauthenticated { .. } => {
                        "set the credentials in the environment, or AWS_SKIP_SIGNATURE=true for a public bucket"
                    }
                    _ => "check the name, the network, and the settings in the environment",
                };
                format!("cannot {what} ({advice}): {causes}")
            }
        };
        ServiceError { text, error }
    }

    /// The causes.
    pub fn chain(&self) -> impl Iterator<Item = &(dyn StdError + 'static)> {
        anyhow::Chain::new(&self.error)
    }
}

impl fmt::Display for ServiceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

// The causes are in the text: it has no source.
impl StdError for ServiceError {}

/// What an error says, and its causes, without what was said before.
pub fn causes(error: &(dyn StdError + 'static)) -> String {
    let mut text = String::new();
    for cause in anyhow::Chain::new(error) {
        let cause = cause.to_string();
        let cause = cause.trim();
        if text.is_empty() {
            text.push_str(cause);
        } else if !text.contains(cause) {
            text.push_str(": ");
            text.push_str(cause);
        }
    }
    hide_passwords(&text).into_owned()
}

/// What a service says that it does not have, if that is a bucket.
pub(super) fn missing_bucket(text: &str) -> Option<&'static str> {
    let kinds = [("NoSuchBucket", "bucket"), ("ContainerNotFound", "container")];
    kinds.into_iter().find_map(|(code, kind)| text.contains(code).then_some(kind))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug)]
    struct Cause(&'static str, Option<Box<Cause>>);

    impl fmt::Display for Cause {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str(self.0)
        }
    }

    impl StdError for Cause {
        fn source(&self) -> Option<&(dyn StdError + 'static)> {
            self.1.as_deref().map(|cause| cause as &(dyn StdError + 'static))
        }
    }

    fn error(texts: &[&'static str]) -> Error {
        let cause = texts.iter().rev().fold(None, |cause, text| Some(Box::new(Cause(text, cause)))).unwrap();
        Error::Generic { store: "S3", source: cause }
    }

    #[test]
    fn each_cause_is_said_once() {
        let chain = ["GET http://k:s3cret@h/x: error sending", "error sending", "tcp", "refused"];
        let said = ServiceError::new(error(&chain), "read s3://b/x");
        let text = said.to_string();
        assert!(text.starts_with("cannot read s3://b/x (check the name"), "{text}");
        assert!(text.ends_with("GET http://***@h/x: error sending: tcp: refused"), "{text}");
        assert_eq!(format!("{:#}", anyhow::Error::new(said)), text);
        assert_eq!(ServiceError::new(error(&chain), "").chain().count(), 5);
    }

    #[test]
    fn a_bucket_that_is_not_there_is_named_so() {
        let of = |text| ServiceError::new(error(&[text]), "list s3://nobucket/x").to_string();
        assert_eq!(of("404: <Code>NoSuchBucket</Code>"), "cannot list s3://nobucket/x: the service has no such bucket");
        assert!(of("<Code>ContainerNotFound</Code>").ends_with("no such container"));
        assert!(!of("<Code>NoSuchKey</Code>").contains("no such"));
    }
}
