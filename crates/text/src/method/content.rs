//! What of a web page is its text.

use anyhow::{Result, ensure};
use serde::{Deserialize, Serialize};

/// What of a web page is its text: the key `content` of `[cluster.read]`. It is kept with the
/// method, because all pages of a store must be read alike.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Content {
    /// All that is not markup.
    #[default]
    Page,
    /// The main content, without menus, footers and the like. If none is found, as of `Page`.
    Main,
}

impl Content {
    /// The value in a job.
    pub fn name(self) -> &'static str {
        match self {
            Content::Page => "page",
            Content::Main => "main",
        }
    }

    /// Checks that this program can find it.
    ///
    /// # Errors
    /// If it is the main content, and the program is built without the feature `main-content`.
    pub fn check(self) -> Result<()> {
        ensure!(
            self == Content::Page || cfg!(feature = "main-content"),
            "content = \"main\": this nigh is built without the feature `main-content`, and reads whole pages only"
        );
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_without_the_feature_refuses_the_main_content() {
        Content::Page.check().unwrap();
        let refused = Content::Main.check().map_err(|error| error.to_string()).err();
        assert_eq!(refused.is_none(), cfg!(feature = "main-content"));
        assert!(refused.is_none_or(|text| text.contains("built without the feature `main-content`")));
    }
}
