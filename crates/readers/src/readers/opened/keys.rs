//! What documents can be known by.

/// What the records of an input have that a document can be known by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeysOfInput {
    /// Pages, which have URLs and no ids.
    Pages,
    /// Rows with the id, if the job names a column for it, and with URLs.
    RowsWithUrls,
    /// Rows with the id, if the job names a column for it, and without URLs.
    Rows,
    /// Files that are one document each, without id and URL.
    Files,
    /// The input has no record, or they are seen only when it is read.
    Unknown,
}

impl KeysOfInput {
    pub(in crate::readers) fn of_rows(has_url: Option<bool>) -> KeysOfInput {
        match has_url {
            Some(true) => KeysOfInput::RowsWithUrls,
            Some(false) => KeysOfInput::Rows,
            None => KeysOfInput::Unknown,
        }
    }
}
