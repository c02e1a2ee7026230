//! The colours of series, for light and dark paper.

/// A colour of a page, and the mark that goes with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ink {
    /// As text.
    Text,
    /// The first colour.
    One,
    /// The second one.
    Two,
    /// The third one.
    Three,
    /// The fourth one.
    Four,
    /// The fifth one.
    Five,
    /// The sixth one.
    Six,
    /// The seventh one.
    Seven,
}

impl Ink {
    /// All of them: the name in styles, and the colour on light and on dark paper.
    pub(super) const ALL: [(Ink, &'static str, [&'static str; 2]); 8] = [
        (Ink::Text, "ink", ["#1d2125", "#e4e7ea"]),
        (Ink::One, "one", ["#0b62a8", "#6db3f2"]),
        (Ink::Two, "two", ["#b4501e", "#f0955f"]),
        (Ink::Three, "three", ["#3c7a2b", "#8fcf7a"]),
        (Ink::Four, "four", ["#7b3fa0", "#c79be8"]),
        (Ink::Five, "five", ["#8a6d00", "#d9be4f"]),
        (Ink::Six, "six", ["#00707a", "#5cc7d1"]),
        (Ink::Seven, "seven", ["#b02a62", "#f18ab5"]),
    ];

    /// Colours of series, one after the other.
    pub const SERIES: [Ink; 7] = [Ink::One, Ink::Two, Ink::Three, Ink::Four, Ink::Five, Ink::Six, Ink::Seven];

    /// The colour of series number `number`, from 0.
    pub fn of(number: usize) -> Ink {
        Ink::SERIES[number % Ink::SERIES.len()]
    }

    /// Its name in styles.
    pub fn name(self) -> &'static str {
        Ink::ALL[self as usize].1
    }
}

/// The style of a file with a plot of its own, for a light or a dark ground. No variables, which
/// few programs but browsers know.
fn style_of_paper(paper: usize) -> String {
    let [text, line, ground] =
        [["#1d2125", "#e4e7ea"], ["#d5d9de", "#363d44"], ["#fdfdfb", "#15181b"]].map(|colours| colours[paper]);
    let mut style = format!(
        "text{{fill:{text}}}.grid{{stroke:{line}}}.ground{{fill:{ground}}}.bar{{stroke:{ground}}}.on-bar{{fill:{ground}}}"
    );
    for (_, name, colours) in Ink::ALL {
        let colour = colours[paper];
        style += &format!(".ink-{name} .dot,.ink-{name} .bar{{fill:{colour}}}");
        style += &format!(".ink-{name} .ring,.ink-{name} .stroke{{stroke:{colour}}}");
    }
    style
}

/// The style of a plot on a light ground.
pub(super) fn light_style() -> String {
    format!(".ring,.stroke{{fill:none;stroke-width:2}}.bar{{stroke-width:.5}}{}", style_of_paper(0))
}

/// The style of a plot that is light or dark as the reader has it.
pub(super) fn style() -> String {
    format!("{}@media(prefers-color-scheme:dark){{{}}}", light_style(), style_of_paper(1))
}
