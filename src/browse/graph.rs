//! The links that hold pages of a cluster together, as a picture: a tree for each group of linked
//! pages, one line for each page.
//!
//! Each page hangs on one other page. So the links of n pages are a forest, if pages that hang on
//! each other count once; a link that would close a circle is told in words. The page with most
//! links is the root of its tree. No two labels overlap, and the picture is as wide as a phone.

use std::collections::BTreeMap;

use crate::markup::Html;

/// The width of the picture, and the height of a line.
const WIDTH: usize = 360;
const LINE: usize = 24;
/// The room for the circles of all levels of a tree.
const LEVELS: usize = 150;
/// The size of letters.
const LETTERS: &str = "14";

/// A page.
#[derive(Clone, Debug)]
pub(super) struct GraphNode {
    /// Its number in the list of pages, if it is there; else its document.
    pub(super) label: String,
    /// How it is known.
    pub(super) name: String,
    /// Whether it stays if duplicates are removed.
    pub(super) stays: bool,
}

/// A link between two pages, by their places in the list of nodes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct GraphLink {
    pub(super) page: usize,
    pub(super) neighbour: usize,
    /// Supershingles that both have.
    pub(super) agreements: i32,
    pub(super) similarity: f32,
}

/// A line of the picture.
#[derive(Clone, Debug, PartialEq)]
struct GraphLine {
    node: usize,
    level: usize,
    /// The line of the page that it hangs on, and the link.
    above: Option<(usize, GraphLink)>,
}

/// The lines, and the links that close circles.
fn lines(nodes: usize, links: &[GraphLink]) -> (Vec<GraphLine>, Vec<GraphLink>) {
    let mut of_node: Vec<BTreeMap<usize, GraphLink>> = vec![BTreeMap::new(); nodes];
    for link in links.iter().filter(|link| link.page != link.neighbour) {
        of_node[link.page].entry(link.neighbour).or_insert(*link);
        of_node[link.neighbour].entry(link.page).or_insert(*link);
    }
    let mut roots: Vec<usize> = (0..nodes).collect();
    roots.sort_by_key(|node| (std::cmp::Reverse(of_node[*node].len()), *node));
    let (mut lines, mut circles) = (Vec::new(), Vec::new());
    // Breadth first, to know what hangs on what; then depth first, to draw it.
    let mut above: Vec<Option<(usize, GraphLink)>> = vec![None; nodes];
    let mut is_seen = vec![false; nodes];
    for root in roots {
        if is_seen[root] {
            continue;
        }
        is_seen[root] = true;
        let mut queue = vec![root];
        let mut at = 0;
        let mut below: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        while let Some(node) = queue.get(at).copied() {
            at += 1;
            for (other, link) in &of_node[node] {
                if !is_seen[*other] {
                    is_seen[*other] = true;
                    above[*other] = Some((node, *link));
                    below.entry(node).or_default().push(*other);
                    queue.push(*other);
                } else if node < *other
                    && above[node].map(|of| of.0) != Some(*other)
                    && above[*other].map(|of| of.0) != Some(node)
                {
                    circles.push(*link);
                }
            }
        }
        let mut places: BTreeMap<usize, usize> = BTreeMap::new();
        let mut stack = vec![(root, 0)];
        while let Some((node, level)) = stack.pop() {
            places.insert(node, lines.len());
            let above = above[node].map(|(parent, link)| (places[&parent], link));
            lines.push(GraphLine { node, level, above });
            stack.extend(below.get(&node).into_iter().flatten().rev().map(|other| (*other, level + 1)));
        }
    }
    (lines, circles)
}

/// The group of each node: nodes that links join, directly or through others, have one number.
pub(super) fn groups(nodes: usize, links: &[GraphLink]) -> Vec<usize> {
    let mut groups: Vec<usize> = (0..nodes).collect();
    for GraphLink { page, neighbour, .. } in links {
        let (one, other) = (groups[*page], groups[*neighbour]);
        groups.iter_mut().filter(|group| **group == other).for_each(|group| *group = one);
    }
    groups
}

/// The picture of links, and of others that join the groups which those leave.
pub(super) fn picture(nodes: &[GraphNode], links: &[GraphLink], joining: &[GraphLink]) -> Html {
    let (lines, circles) = lines(nodes.len(), &[links, joining].concat());
    let deepest = lines.iter().map(|line| line.level).max().unwrap_or(0).max(6);
    let x = |line: &GraphLine| 12 + line.level * LEVELS / deepest;
    let y = |place: usize| LINE / 2 + place * LINE;
    let mut html = Html::default();
    html.own("<figure class=\"graph\">\n<svg role=\"img\" font-size=\"").own(LETTERS).own("\" viewBox=\"0 0 ");
    html.text(WIDTH).own(" ").text(lines.len() * LINE).own("\" aria-label=\"");
    html.text(format!("Links between {} pages", nodes.len())).own("\">\n");
    for (place, line) in lines.iter().enumerate() {
        if let Some((above, link)) = line.above {
            let class = if link.similarity < 0.9 { "link loose" } else { "link" };
            html.own("<path class=\"").own(class).own("\" d=\"M");
            html.text(format!("{} {}V{}H{}", x(&lines[above]), y(above) + 6, y(place), x(line) - 6)).own("\"/>\n");
        }
    }
    for (place, line) in lines.iter().enumerate() {
        let node = &nodes[line.node];
        html.own("<circle r=\"5\" class=\"").own(if node.stays { "stays" } else { "node" });
        html.own("\" cx=\"").text(x(line)).own("\" cy=\"").text(y(place)).own("\"><title>");
        html.text(node.name.chars().take(200).collect::<String>()).own("</title></circle>\n<text x=\"");
        html.text(x(line) + 11).own("\" y=\"").text(y(place) + 5).own("\">").text(&node.label);
        if let Some((_, GraphLink { agreements, similarity, .. })) = line.above {
            html.text(format!(": {similarity:.2}, {agreements} agree"));
        }
        html.own("</text>\n");
    }
    html.own("</svg>\n<figcaption>");
    html.text(
        "Numbers are those of the list. Each link has the similarity of the two pages, and how \
         many supershingles agree; it is dashed below 0.90. ",
    );
    html.text("A ring is the page that stays if duplicates are removed.");
    for GraphLink { page, neighbour, .. } in joining {
        let [a, b] = [page, neighbour].map(|place| &nodes[*place].label);
        html.text(format!(
            " The link of {a} and {b} is not in the list: by its features it joins two groups of pages."
        ));
    }
    if lines.iter().filter(|line| line.above.is_none()).count() > 1 {
        html.text(" Groups without a line between them are joined by links that are not shown here.");
    }
    for GraphLink { page, neighbour, agreements, similarity } in circles {
        let [a, b] = [page, neighbour].map(|place| &nodes[place].label);
        html.text(format!(" {a} and {b} are linked, too: {similarity:.2}, {agreements} agree."));
    }
    html.own("</figcaption>\n</figure>\n");
    html
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::mix;

    fn link(page: usize, neighbour: usize) -> GraphLink {
        GraphLink { page, neighbour, agreements: 3, similarity: 0.95 }
    }

    #[test]
    fn groups_are_what_links_join() {
        let found = groups(6, &[link(0, 1), link(2, 3), link(3, 1), link(4, 4)]);
        let is_one = |a: usize, b: usize| found[a] == found[b];
        assert!(is_one(0, 1) && is_one(0, 2) && is_one(0, 3), "{found:?}");
        assert!(!is_one(0, 4) && !is_one(4, 5) && !is_one(0, 5), "{found:?}");
    }

    #[test]
    fn a_link_of_features_is_told_as_one() {
        let node = |label: &str| GraphNode { label: label.to_owned(), name: label.to_owned(), stays: false };
        let text = picture(&[node("3"), node("7")], &[], &[link(0, 1)]).into_text();
        assert!(text.contains("The link of 3 and 7 is not in the list"), "{text}");
    }

    #[test]
    fn every_page_has_a_line_and_every_link_is_told() {
        for seed in 0..300 {
            let nodes = 1 + (mix(seed) % 12) as usize;
            let at = |n: usize| (mix(seed << 20 | n as u64) % nodes as u64) as usize;
            let links: Vec<GraphLink> = (0..nodes).filter(|n| n % 4 != 3).map(|n| link(n, at(n))).collect();
            let (lines, circles) = lines(nodes, &links);
            let mut seen: Vec<usize> = lines.iter().map(|line| line.node).collect();
            seen.sort_unstable();
            assert!(seen.into_iter().eq(0..nodes), "{lines:?}");
            let pair = |link: &GraphLink| (link.page.min(link.neighbour), link.page.max(link.neighbour));
            let mut told: Vec<(usize, usize)> = Vec::new();
            for (place, line) in lines.iter().enumerate() {
                let Some((above, link)) = line.above else {
                    assert_eq!(line.level, 0);
                    continue;
                };
                assert!(above < place && lines[above].level + 1 == line.level);
                let ends = [lines[above].node, line.node];
                assert_eq!(pair(&link), (ends[0].min(ends[1]), ends[0].max(ends[1])));
                told.push(pair(&link));
            }
            told.extend(circles.iter().map(pair));
            told.sort_unstable();
            let mut expected: Vec<(usize, usize)> = links.iter().map(pair).filter(|(a, b)| a != b).collect();
            expected.sort_unstable();
            expected.dedup();
            assert_eq!(told, expected, "seed {seed}");
        }
    }
}
