//! Colours on a terminal: the heads of tables are bold, and the names of facts are cyan.

use std::fmt::Display;

use anstream::{AutoStream, ColorChoice};
use anstyle::{AnsiColor, Style};

/// The style of the head of a table.
const HEAD: Style = Style::new().bold();
/// The style of the name of a fact.
const NAME: Style = AnsiColor::Cyan.on_default();

/// Whether lines have colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Colors {
    None,
    Ansi,
}

impl Colors {
    /// Those of stdout: some, if it is a terminal that has them and the environment does not forbid
    /// them (`NO_COLOR`, `CLICOLOR=0`, `TERM=dumb`); `CLICOLOR_FORCE` asks for them in a pipe, too.
    pub(super) fn of_stdout() -> Colors {
        match AutoStream::choice(&std::io::stdout()) {
            ColorChoice::Never => Colors::None,
            _ => Colors::Ansi,
        }
    }

    /// The head of a table.
    pub(super) fn head(self, line: String) -> String {
        self.styled(HEAD, line)
    }

    /// The name of a fact.
    pub(super) fn name(self, name: String) -> String {
        self.styled(NAME, name)
    }

    fn styled(self, style: Style, text: impl Display + Into<String>) -> String {
        match self {
            Colors::None => text.into(),
            Colors::Ansi => format!("{style}{text}{style:#}"),
        }
    }
}
