//! What can be asked for, and the addresses of it: every link is made of what [`AskedPage::of`]
//! reads, and no address names a file.

use std::fmt::{self, Write as _};

use crate::live::Refusal;
use crate::records::DocId;

/// The most bytes of a text that is searched for.
const MOST_TEXT: usize = 60 << 10;
/// The most characters of a part of a URL that is searched for.
const MOST_PART: usize = 500;

/// The order of clusters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum ClusterOrder {
    /// Most pages first.
    #[default]
    Size,
    /// Least similar links first, on average.
    Loose,
    /// Those that gained most pages first.
    Growth,
    /// Most hosts first.
    Hosts,
}

impl ClusterOrder {
    pub(super) const ALL: [ClusterOrder; 4] =
        [ClusterOrder::Size, ClusterOrder::Loose, ClusterOrder::Growth, ClusterOrder::Hosts];

    /// Its name in addresses.
    pub(super) fn name(self) -> &'static str {
        match self {
            ClusterOrder::Size => "size",
            ClusterOrder::Loose => "looseness",
            ClusterOrder::Growth => "growth",
            ClusterOrder::Hosts => "hosts",
        }
    }
}

/// Where a search for a part of a URL goes on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct SearchPlace {
    /// The number of the piece of the table of documents.
    pub(super) piece: u64,
    /// A row of it.
    pub(super) row: u64,
}

/// What is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum AskedPage {
    /// The first page.
    Home,
    /// The clusters in an order; pages of lists count from 1.
    Clusters { order: ClusterOrder, page: u64 },
    /// A cluster.
    Cluster { id: i64, page: u64 },
    /// What is known of a page.
    Page { doc: DocId },
    /// Two pages side by side.
    Compare { docs: [DocId; 2] },
    /// A host.
    Host { name: String, page: u64 },
    /// Pages and hosts whose URLs or titles have a text in them.
    Search { part: String, from: SearchPlace },
    /// The pages that are most like a text; `is_scan` allows to read all supershingles.
    Text { text: String, is_scan: bool },
    /// The style of all pages.
    Style,
}

impl fmt::Display for AskedPage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let on_page = |page: &u64, sign: char| if *page > 1 { format!("{sign}page={page}") } else { String::new() };
        match self {
            AskedPage::Home => f.write_str("/"),
            AskedPage::Clusters { order, page } => write!(f, "/clusters?sort={}{}", order.name(), on_page(page, '&')),
            AskedPage::Cluster { id, page } => write!(f, "/cluster/{id}{}", on_page(page, '?')),
            AskedPage::Page { doc } => write!(f, "/page/{doc}"),
            AskedPage::Compare { docs: [a, b] } => write!(f, "/compare?a={a}&b={b}"),
            AskedPage::Host { name, page } => write!(f, "/host?name={}{}", encoded(name), on_page(page, '&')),
            AskedPage::Search { part, from } if *from == SearchPlace::default() => {
                write!(f, "/search?q={}", encoded(part))
            }
            AskedPage::Search { part, from: SearchPlace { piece, row } } => {
                write!(f, "/search?q={}&piece={piece}&row={row}", encoded(part))
            }
            AskedPage::Text { text, is_scan } => {
                write!(f, "/text?text={}{}", encoded(text), if *is_scan { "&scan=yes" } else { "" })
            }
            AskedPage::Style => f.write_str("/style.css"),
        }
    }
}

impl AskedPage {
    /// Reads an address: a path and its query.
    ///
    /// # Errors
    /// If there is no such page, or a parameter is unknown, there twice, or not what it must be.
    pub(super) fn of(path: &str, query: Option<&str>) -> Result<AskedPage, Refusal> {
        let mut given = QueryParameters::of(query.unwrap_or_default())?;
        let asked = match path {
            "/" => AskedPage::Home,
            "/style.css" => AskedPage::Style,
            "/clusters" => {
                let order = given.take("sort").unwrap_or_else(|| ClusterOrder::default().name().to_owned());
                let of_name = ClusterOrder::ALL.into_iter().find(|of| of.name() == order);
                let names = ClusterOrder::ALL.map(ClusterOrder::name).join(", ");
                let order = of_name.ok_or_else(|| Refusal::bad(format!("sort={order}: it must be one of {names}")))?;
                AskedPage::Clusters { order, page: given.page()? }
            }
            "/compare" => AskedPage::Compare { docs: [given.doc("a")?, given.doc("b")?] },
            "/host" => AskedPage::Host { name: given.need("name")?, page: given.page()? },
            "/search" => {
                let part = given.need("q")?.trim().to_owned();
                if part.chars().count() > MOST_PART {
                    return Err(Refusal::bad(format!("q has more than {MOST_PART} characters: give a part of it")));
                }
                let from =
                    SearchPlace { piece: given.number("piece")?.unwrap_or(0), row: given.number("row")?.unwrap_or(0) };
                AskedPage::Search { part, from }
            }
            "/text" => {
                let text = given.need("text")?;
                if text.len() > MOST_TEXT {
                    return Err(Refusal::bad(format!(
                        "text has more than {MOST_TEXT} bytes: `nigh find` takes longer ones"
                    )));
                }
                let is_scan = match given.take("scan").as_deref() {
                    None => false,
                    Some("yes") => true,
                    Some(other) => return Err(Refusal::bad(format!("scan={other}: it must be yes"))),
                };
                AskedPage::Text { text, is_scan }
            }
            _ => match path
                .strip_prefix("/cluster/")
                .map(|id| (true, id))
                .or(path.strip_prefix("/page/").map(|id| (false, id)))
            {
                Some((is_cluster, id)) => {
                    let id: i64 =
                        id.parse().ok().filter(|id| *id >= 0).ok_or_else(|| {
                            Refusal::bad(format!("{}: the last part must be a number from 0", cut(path)))
                        })?;
                    if is_cluster {
                        AskedPage::Cluster { id, page: given.page()? }
                    } else {
                        AskedPage::Page { doc: DocId::from_table(id) }
                    }
                }
                None => return Err(Refusal::missing(format!("no page has the address {}", cut(path)))),
            },
        };
        given.check_all_taken()?;
        Ok(asked)
    }
}

/// The first characters of a text of others, for a message.
fn cut(text: &str) -> String {
    text.chars().take(100).collect()
}

/// The parameters of a query.
struct QueryParameters(Vec<(String, String)>);

impl QueryParameters {
    fn of(query: &str) -> Result<QueryParameters, Refusal> {
        let mut pairs: Vec<(String, String)> = Vec::new();
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let name = decoded(name)?;
            if pairs.iter().any(|(other, _)| *other == name) {
                return Err(Refusal::bad(format!("the parameter {} is there twice", cut(&name))));
            }
            pairs.push((name, decoded(value)?));
        }
        Ok(QueryParameters(pairs))
    }

    fn take(&mut self, name: &str) -> Option<String> {
        let place = self.0.iter().position(|(of, _)| of == name)?;
        Some(self.0.swap_remove(place).1)
    }

    fn need(&mut self, name: &str) -> Result<String, Refusal> {
        let missing = || Refusal::bad(format!("the parameter {name} is missing or empty"));
        self.take(name).filter(|value| !value.trim().is_empty()).ok_or_else(missing)
    }

    fn number(&mut self, name: &str) -> Result<Option<u64>, Refusal> {
        let Some(value) = self.take(name) else { return Ok(None) };
        let number = value.parse().ok().filter(|number| *number <= i64::MAX as u64);
        let bad = || Refusal::bad(format!("{name}={} is not a number from 0", cut(&value)));
        number.ok_or_else(bad).map(Some)
    }

    /// The page of a list.
    fn page(&mut self) -> Result<u64, Refusal> {
        match self.number("page")? {
            Some(0) => Err(Refusal::bad("page=0: pages count from 1")),
            page => Ok(page.unwrap_or(1)),
        }
    }

    fn doc(&mut self, name: &str) -> Result<DocId, Refusal> {
        let missing = || Refusal::bad(format!("the parameter {name} is missing: choose two pages"));
        Ok(DocId::from_table(self.number(name)?.ok_or_else(missing)? as i64))
    }

    fn check_all_taken(&self) -> Result<(), Refusal> {
        match self.0.first() {
            None => Ok(()),
            Some((name, _)) => Err(Refusal::bad(format!("this page has no parameter {}", cut(name)))),
        }
    }
}

/// A value of a query, as a browser writes that of a form: every byte that is not a letter, a digit
/// or one of `-._~` as `%` and two digits.
fn encoded(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            // Writing to a string does not fail.
            let _ = write!(out, "%{byte:02X}");
        }
    }
    out
}

/// A text of a query; `+` is a blank.
fn decoded(text: &str) -> Result<String, Refusal> {
    let bad = || Refusal::bad("the address has a % without two hexadecimal digits, or is not UTF-8");
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        let digit = |byte: Option<u8>| byte.and_then(|byte| char::from(byte).to_digit(16));
        bytes.push(match byte {
            b'%' => {
                let (Some(high), Some(low)) = (digit(rest.next()), digit(rest.next())) else { return Err(bad()) };
                (high * 16 + low) as u8
            }
            b'+' => b' ',
            byte => byte,
        });
    }
    String::from_utf8(bytes).map_err(|_| bad())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(address: &str) -> Result<AskedPage, Refusal> {
        let (path, query) = address.split_once('?').map_or((address, None), |(path, query)| (path, Some(query)));
        AskedPage::of(path, query)
    }

    #[test]
    fn every_address_is_read_as_it_was_meant() {
        let doc = DocId::new(3, 17);
        let hostile = "a&b=<c>\"'+%20 é/../\u{202e}#?".to_owned();
        let mut all = vec![
            AskedPage::Home,
            AskedPage::Style,
            AskedPage::Page { doc },
            AskedPage::Compare { docs: [doc, DocId::new(0, 0)] },
            AskedPage::Cluster { id: i64::MAX, page: 7 },
            AskedPage::Cluster { id: 0, page: 1 },
            AskedPage::Host { name: hostile.clone(), page: 2 },
            AskedPage::Search { part: hostile.clone(), from: SearchPlace::default() },
            AskedPage::Search { part: "x".to_owned(), from: SearchPlace { piece: 3, row: 9 } },
            AskedPage::Text { text: hostile.clone(), is_scan: false },
            AskedPage::Text { text: hostile, is_scan: true },
        ];
        all.extend(ClusterOrder::ALL.map(|order| AskedPage::Clusters { order, page: 3 }));
        for asked in all {
            assert_eq!(read(&asked.to_string()), Ok(asked.clone()), "{asked}");
        }
        assert_eq!(read("/clusters"), Ok(AskedPage::Clusters { order: ClusterOrder::Size, page: 1 }));
        assert_eq!(
            read("/search?q=a+b"),
            Ok(AskedPage::Search { part: "a b".to_owned(), from: SearchPlace::default() })
        );
    }

    #[test]
    fn bad_addresses_are_refused() {
        for (address, status) in [
            ("/nothing", 404),
            ("/../../etc/passwd", 404),
            ("//", 404),
            ("/style.css/../x", 404),
            ("/cluster/", 400),
            ("/cluster/x", 400),
            ("/cluster/-1", 400),
            ("/cluster/1/2", 400),
            ("/page/99999999999999999999", 400),
            ("/clusters?sort=rank", 400),
            ("/clusters?page=0", 400),
            ("/clusters?page=-1", 400),
            ("/clusters?page=1&page=2", 400),
            ("/clusters?other=1", 400),
            ("/compare?a=1", 400),
            ("/compare?a=1&b=x", 400),
            ("/host", 400),
            ("/host?name=", 400),
            ("/search?q=%zz", 400),
            ("/search?q=%FF", 400),
            ("/search?q=a&row=18446744073709551615", 400),
            ("/text?text=a&scan=maybe", 400),
        ] {
            assert_eq!(read(address).map_err(|refusal| refusal.status), Err(status), "{address}");
        }
    }
}
