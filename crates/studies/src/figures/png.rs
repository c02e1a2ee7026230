//! A plot as PNG: its SVG, drawn by resvg with the fonts of this machine.

use anyhow::{Context as _, Result};
use resvg::tiny_skia::{Pixmap, Transform};
use resvg::usvg::fontdb::{Database, Family, Query};
use resvg::usvg::{Options, Tree};

/// Pixels of the picture for each of the SVG: sharp on a screen with small pixels and in print.
const SCALE: f32 = 2.0;

/// What draws plots.
pub(super) struct Drawer {
    options: Options<'static>,
}

impl Drawer {
    /// A drawer with the fonts of this machine.
    ///
    /// # Errors
    /// If the machine has none: plots would have no letters.
    pub(super) fn new() -> Result<Drawer> {
        let mut options = Options::default();
        options.fontdb_mut().load_system_fonts();
        Drawer::with_fonts(options)
    }

    fn with_fonts(mut options: Options<'static>) -> Result<Drawer> {
        let fonts = options.fontdb_mut();
        let sans_serif = Query { families: &[Family::SansSerif], ..Query::default() };
        if fonts.query(&sans_serif).is_none() {
            let family = other_family(fonts).context(
                "--format png: this machine has no fonts, by which letters are drawn: install some (fonts-dejavu-core of Debian), \
                 or ask for svg",
            )?;
            fonts.set_sans_serif_family(family);
        }
        Ok(Drawer { options })
    }

    /// The PNG of a drawing.
    ///
    /// # Errors
    /// If the drawing is not SVG: that is a fault of nigh.
    pub(super) fn draw(&self, svg: &str) -> Result<Vec<u8>> {
        let tree = Tree::from_str(svg, &self.options).context("reading the SVG of a plot")?;
        let size = tree.size().to_int_size().scale_by(SCALE).context("the size of a plot")?;
        let mut pixels = Pixmap::new(size.width(), size.height()).context("the pixels of a plot")?;
        resvg::render(&tree, Transform::from_scale(SCALE, SCALE), &mut pixels.as_mut());
        pixels.encode_png().context("writing a plot as PNG")
    }
}

/// The family that stands for one without serifs where the usual one is missing: the first of those
/// known to have none, or the first by name.
fn other_family(fonts: &Database) -> Option<String> {
    let families = || fonts.faces().flat_map(|face| &face.families).map(|(family, _)| family);
    ["DejaVu Sans", "Liberation Sans", "Noto Sans", "Helvetica"]
        .into_iter()
        .find_map(|known| families().find(|family| *family == known))
        .or_else(|| families().min())
        .cloned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_without_fonts_is_told_so() {
        let Err(error) = Drawer::with_fonts(Options::default()) else { panic!("there are no fonts in it") };
        assert!(error.to_string().contains("has no fonts"), "{error}");
    }

    #[test]
    fn letters_are_drawn_where_there_are_fonts() {
        let Ok(drawer) = Drawer::new() else { return };
        let drawing = |inside: &str| {
            let svg = format!(
                "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"60\" height=\"20\" viewBox=\"0 0 60 20\" \
                 font-family=\"system-ui, sans-serif\" font-size=\"15\"><style>text{{fill:#1d2125}}.ground{{fill:#fdfdfb}}</style>\
                 <rect class=\"ground\" width=\"100%\" height=\"100%\"/>{inside}</svg>"
            );
            Pixmap::decode_png(&drawer.draw(&svg).unwrap()).unwrap()
        };
        let dark = |pixels: &Pixmap| pixels.pixels().iter().filter(|pixel| pixel.red() < 128).count();
        let empty = drawing("");
        assert_eq!((empty.width(), empty.height(), dark(&empty)), (120, 40, 0));
        assert!(empty.pixels().iter().all(|pixel| (pixel.red(), pixel.blue(), pixel.alpha()) == (253, 251, 255)));
        // A letter is a part of its height wide, and its strokes are thinner than that.
        let letters = dark(&drawing("<text x=\"5\" y=\"16\">2004</text>"));
        assert!((100..1000).contains(&letters), "{letters}");
        assert!(drawer.draw("no SVG").is_err());
    }
}
