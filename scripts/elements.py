#!/usr/bin/env python3
"""Holds the words of HTML pages against two readers of other houses, over generated pages of every element of HTML, also obsolete ones.

    pip install html5lib selectolax duckdb
    scripts/elements.py NIGH                            5,000 pages
    scripts/elements.py NIGH --seed 7 --pages 20000
    scripts/elements.py NIGH --limits                   also what is a known limit of foreign content

Words w1q, w2q, ... stand everywhere in a page: in text, attributes, comments, and what has no tags. Two answers must be nigh's, too:

  html5lib    which words are text, in which order, where words end, and where lines end; by its tokens, as its tree builder reads them
  lexbor      which of the words w1q, w2q, ... are text, by its tree

RULES says what nigh decides otherwise, and where that is written; both answers are made by these rules. Each kind of page with another answer is
printed as the smallest one found, with its words (`lines`: the words agree, their lines do not; `/` is where the reader ends one). Exit codes:
0 all agree, 1 some do not, 2 wrong use, 4 a package is missing.
"""

import argparse
import collections
import itertools
import json
import random
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

try:
    import duckdb
    import html5lib
    from html5lib import _tokenizer
    from html5lib.constants import tokenTypes as TYPES
    from selectolax.lexbor import LexborHTMLParser
except ImportError as error:
    print(f"{error} (pip install html5lib selectolax duckdb)", file=sys.stderr)
    sys.exit(4)

# What nigh decides, in the words of its documentation.
RULES = """rules and where they are written:
  docs/method.md                 markup becomes white space: words end at every tag and comment, and stay in the order of the source
  docs/method.md                 scripts, styles and comments are markup; nothing else is left out: text in a frameset and a template counts
  docs/method.md                 iframe, noembed, noframes and noscript are read as markup; in html5 the first three are raw text
  docs/tables.md, elements.rs    a tag of a block ends a line; of names from three letters on, three count
  crates/text/src/text/html/scanner.rs   `</>` is a space, NUL ends a word
  crates/text/src/text/html/foreign.rs   what it does not know of html5's tree are known limits"""
DROPPED = {"script", "style"}
FOREIGN = {"svg", "math"}
# Elements of these that have HTML in them.
HOLDERS = set("foreignobject desc title mi mo mn ms mtext annotation-xml".split())
# What ends a style or script of foreign content, beside its own end tag.
BREAKOUTS = set(
    """b big blockquote body br center code dd div dl dt em embed h1 h2 h3 h4 h5 h6 head hr i img li listing menu meta nobr ol p pre ruby s small
    span strong strike sub sup table tt u ul var""".split()
)
# Both readers get other names for these: then what is in them is read as markup, and not left out.
READ = {"iframe", "noembed", "noframes", "frameset", "frame", "template"}
BLOCKS = set(
    """article blockquote body br caption dd div dl dt footer form h1 h2 h3 h4 h5 h6 header hr li nav ol option p pre section table td th
    title tr ul""".split()
)
BEGINNINGS = {name[:3] for name in BLOCKS if len(name) > 2}
RAW = "title textarea style xmp iframe noembed noframes script plaintext".split()
VOID = "area base basefont bgsound br col embed frame hr image img input isindex keygen link meta nextid param source spacer track wbr".split()
ELEMENTS = f"""{' '.join(RAW + VOID)} a abbr acronym address applet article aside audio b bdi bdo big blink blockquote body button canvas caption
    center cite code colgroup command content data datalist dd del details dfn dialog dir div dl dt element em fencedframe fieldset figcaption
    figure font footer form frameset h1 h2 h3 h4 h5 h6 head header hgroup html i ins kbd label legend li listing main map mark marquee math menu
    menuitem meter multicol nav nobr noscript object ol optgroup option output p picture portal pre progress q rb rbc rp rt rtc ruby s samp
    search section select selectedcontent shadow slot small span strike strong sub summary sup svg table tbody td template tfoot th thead time tr
    tt u ul var video x-custom p-x h7 xml é""".split()
IN_FOREIGN = """circle defs desc foreignObject g metadata path text textPath tspan title style script a font switch use symbol image annotation
    annotation-xml mi mo mn ms mtext mrow mglyph malignmark semantics mtable mtd maction merror""".split()
CONTEXTS = """@ |<!doctype html><html><head><title>@</title></head><body>@ |<head>@ |<head><noscript>@ |<body><table>@ |<table><tr><td>@ |
    <table><colgroup>@ |<select>@ |<select><option>@ |<p>@ |<ul><li>@ |<button>@ |<svg>@ |<math>@ |<svg><desc>@ |<svg><foreignObject>@ |
    <math><mtext>@ |<math><annotation-xml encoding="text/html">@ |<frameset>@ |<template>@ |<noscript>@ |<noframes>@ |<iframe>@ |<noembed>@ |
    <object>@ |<a href=x>@ |<b><i>@ |<datalist>@ |<form><fieldset>@ |<html></html>@ |<!-- @ -->|<ruby>@ """.replace("|\n    ", "|").split("|")
ATTRIBUTES = """ a=@|  a="@ > @"| a='@ </x> @'| a=@>@| a="</title>@"| a=</script>@| a = "@"| "@"| a"@>| =@| ==">@| a='@"'b=@| /a=@/| href="@"|
    value=@|/|\n| a\t=\n'@>'| a="&quot;@>"| <a| <@>| a=`@ >@`| x\0=@| encoding="text/html"| type=hidden""".replace("|\n   ", "|").split("|")
COMMENTS = """<!-->@|<!--->@|<!---->@|<!--@-->|<!-- @ --!>@|<!-- @ -- > @ -->|<!-- @ -> @ -->|<!--@--@-->|<!--@--!@-->|<!-- <!-- @ --> @ -->|
<!--<!-->@|<!-- @ ---->|<!--@<!--@--!>@|<! @>@|<!@ '>'>@|<?@ ?>@|<?php "@>@" ?>|</ @>@|</>@|<>@|</@|<!doctype @ ">@">|<!DOCTYPE html PUBLIC
 '>@'>|<![CDATA[@]]>@|<![CDATA[ @ > @ ]]>@|<![cdata[@]]>|<![CDATA[@<b>@]]]>@|]]>|-->@|<![if @]>@<![endif]>|<!-->@--!>|<!--@--\0>@-->|<!-""".split("|")
REFERENCES = """@&eacute;@|@&eacute@|@&amp;@|@&amp@|@&notit;@|@&notin;@|@&nosuch;@|@&#65;@|@&#65@|@&#x41;@|@&#X41@|@&#0;@|@&#x80;@|@&#x8a;@|@&#x110000;@|
@&#99999999999;@|@&#xd800;@|@&#xD;@|@&#;@|@&#x;@|@&#x@|@&@|@& @|@&lt;b&gt;@|@&lt;script>@|@&oS;@|@&frac12@|@&shy;@|@&Aacute@|@&acE;@|@&sup2@|@&hearts@|
@&ZeroWidthSpace;@|@&#160;@|@&fjlig;@|@&#128514;@|@&AMP@|@&GT;@|@&copy=@|@&#xFFFE;@|@&#x85;@|@&#150;@""".replace("\n", "").split("|")
ODD = ["\0", "@\0@", "\r", "@\r\n@", "\x0c", "<", "< ", "<\0", "<3@", "<é@>@", "<@", "é@", "@ > @", '"', "'", "=", "/>", "@\x0b@", "@\u00a0@", "日@"]


def raw_text(draw, name):
    """Pieces in and around an element without tags."""
    odd = name[: draw.randint(1, len(name))]
    inside = [
        f"</{odd}", f"</{odd}@", f"</{name}@>", f"</{name.upper()}/>@", f"</{name} @ a='>'>@", f"</ {name}>@", f"<{name}>@", f"</{name}\t>@",
        f"</{name}", f"</{name}\0>", "<!-- @", "-->@", f"<!-- </{name}> @ -->", f"<!--<{name}>@</{name}>@", f"<!--<{name} @</{name}>@-->@", "--!>@",
        "<!-->", "<!---", "&lt;@", "&eacute@", "<b>@</b>", "<i a='@'>", "\n@", "\0@", "<![CDATA[@]]>", "<@", "@", f"<\\/{name}>@", "]]>@",
    ]  # fmt: skip
    end = draw.choice([f"</{name}>", f"</{name.title()} >", f"</{name}/@>", f"</{name}", "", f"</{name}>"])
    return [f"<{name}{attribute(draw)}>", *draw.choices(inside, k=draw.randint(0, 4)), end, " @ "]


def attribute(draw):
    return "".join(draw.choices(ATTRIBUTES, k=draw.choice([0, 0, 0, 1, 1, 2])))


def element(draw, names, depth=0):
    """Pieces of an element: nested, void, closed by itself or not at all."""
    name = draw.choice(names)
    name = name.upper() if draw.random() < 0.3 else name
    around = draw.choice(["@", " @ ", "", "@ @"])
    pieces = [f"<{name}{attribute(draw)}{draw.choice(['>', '>', '>', '/>', ' />'])}", around]
    for _ in range(draw.choice([0, 1, 1, 2]) if depth < 2 else 0):
        pieces += element(draw, [name] + names, depth + 1) if draw.random() < 0.7 else [draw.choice(ODD + COMMENTS + REFERENCES)]
    return [*pieces, draw.choice([f"</{name}>", f"</{name} >", f"</{name}{attribute(draw)}>", ""]), draw.choice(["@", " @ "])]


def page(draw):
    """The pieces of a page. A `@` is a new word."""
    pieces = [draw.choice(CONTEXTS)]
    for _ in range(draw.choice([1, 1, 2, 2, 3, 5])):
        kind = draw.random()
        if kind < 0.5:
            pieces += element(draw, ELEMENTS if kind < 0.4 else IN_FOREIGN + ["svg", "math"])
        elif kind < 0.75:
            pieces += raw_text(draw, draw.choice(RAW))
        elif kind < 0.8:
            pieces.append(f"</{draw.choice(ELEMENTS + IN_FOREIGN)}>@")
        else:
            pieces += [draw.choice(COMMENTS if kind < 0.9 else REFERENCES + ODD), " "]
    return [*pieces, " @"]


def html_of(pieces):
    number = itertools.count(1)
    return re.sub("@", lambda _: f"w{next(number)}q", "".join(pieces))


class Tokens(_tokenizer.HTMLTokenizer):
    """Shows each token to the parser's `seen` before and after the tree builder reads it."""

    def __iter__(self):
        for token in super().__iter__():
            mode = self.parser.phase
            self.parser.seen(token)
            yield token
            self.parser.was_read(token, mode)

    def cdataSectionState(self):  # a section is markup at both ends
        mark = {"type": TYPES["Comment"], "data": None}
        self.tokenQueue.append(mark)
        goes_on = super().cdataSectionState()
        self.tokenQueue.append(mark)
        return goes_on


class Parser(html5lib.HTMLParser):
    """The text of a page by RULES, its lines ended by line feeds. `limits` says whether the page has what nigh does not know of the tree."""

    def mainLoop(self):
        self.text, self.drops, self.limits = [], "", False
        self.tokenizer.__class__ = Tokens
        super().mainLoop()

    def resetInsertionMode(self):
        nodes = self.tree.openElements  # `select` has no mode
        self.tree.openElements = [node for node in nodes if node.name != "select"]
        super().resetInsertionMode()
        self.tree.openElements = nodes

    def seen(self, token):
        kind, data = token["type"], token.get("data")
        if self.drops in DROPPED:  # in foreign content, where html5 reads markup
            self.limits |= kind == TYPES["StartTag"] or kind == TYPES["EndTag"] and token["name"] != self.drops or "<" in (data or "")
            self.limits |= kind == TYPES["ParseError"] and "eof" in data
        if kind in (TYPES["Characters"], TYPES["SpaceCharacters"]):
            if not self.drops:
                self.text.append(data.replace("\n", " "))
        elif kind in (TYPES["StartTag"], TYPES["EndTag"], TYPES["EmptyTag"]):
            name = token["name"]
            if kind == TYPES["StartTag"] and self.drops in DROPPED and name in BREAKOUTS:
                self.drops = ""
            if kind == TYPES["EndTag"]:
                # nigh takes some for those of an element around, and knows not of others that they are.
                namesake = next((node for node in reversed(self.tree.openElements) if node.name.lower() == name), None)
                if any(map(self.is_foreign, self.tree.openElements[-1:])):
                    self.limits |= name in BREAKOUTS or bool(namesake) and not self.is_foreign(namesake)
                self.limits |= name in HOLDERS and bool(namesake) and not self.is_foreign(namesake)
                inside = itertools.takewhile(lambda node: node is not namesake, reversed(self.tree.openElements))
                self.limits |= bool(namesake) and any(node.name.lower() in HOLDERS for node in inside)
                if self.drops not in DROPPED or name in FOREIGN | {self.drops}:
                    self.drops = ""
                # Within an element of HTML no foreign one is closed; html5lib would.
                if namesake and namesake.namespace != self.tree.defaultNamespace == self.tree.openElements[-1].namespace:
                    token["name"] = f"x-{name}"
                    self.limits = True
            if self.drops not in DROPPED:
                self.text.append("\n" if name in BLOCKS or name[:3] in BEGINNINGS else " ")
            if name in READ:
                token["name"] = f"x-{name}"
        elif kind in (TYPES["Comment"], TYPES["Doctype"]):
            self.text.append(" ")
            if kind == TYPES["Comment"] and (data is None or data.startswith("[CDATA[")):
                self.limits |= data is not None  # lexbor reads some as sections
        elif data == "expected-closing-tag-but-got-right-bracket":
            self.text.append(" ")

    def was_read(self, token, mode):
        if "Select" in type(self.phase).__name__:
            self.phase = mode  # the standard has none of its own for `select` since 2025
        if token["type"] != TYPES["StartTag"]:
            return
        is_raw = self.tokenizer.state != self.tokenizer.dataState
        if self.drops not in DROPPED and token["name"] in DROPPED and (is_raw or not token["selfClosing"]):
            self.drops = "raw" if is_raw else token["name"] if self.is_foreign(self.tree.openElements[-1]) else ""

    def is_foreign(self, node):
        return node.namespace != self.tree.defaultNamespace


def by_html5lib(html):
    """The lines, as words with a blank between them, and whether the page is beyond a known limit."""
    parser = Parser()
    parser.parse(html)
    # nigh's letters are those of Unicode's property Alphabetic, which circled ones have, too.
    kept = "".join(c if c.isalnum() or "\u24b6" <= c <= "\u24e9" or c == "\n" else " " for c in "".join(parser.text))
    return [" ".join(line.split()) for line in kept.split("\n") if line.strip()], parser.limits


def by_lexbor(html):
    """The words w1q, w2q, ... that are text."""
    html = re.sub(rf"(?i)<(/?)({'|'.join(READ)})(?=[\s/>])", r"<\1x-\2", html)
    tree = LexborHTMLParser(html)
    tree.strip_tags(list(DROPPED))
    texts = [node.text_content or "" for node in tree.root.traverse(include_text=True) if node.tag == "-text"]
    return re.findall(r"w\d+q", " ".join(texts))


class Nigh:
    def __init__(self, program, folder):
        self.program, self.folder = program, folder

    def cluster(self, documents):
        """Clusters documents, by id."""
        crawl, job = self.folder / "pages.jsonl", self.folder / "job.toml"
        crawl.write_text("".join(json.dumps({"id": id, "html": html}) + "\n" for id, html in documents.items()))
        job.write_text('[cluster]\n[cluster.read.columns]\nid = "id"\nhtml = "html"\n')
        shutil.rmtree(self.folder / "store", ignore_errors=True)
        options = ["--week", "2024-01-08", "--store", self.folder / "store", "--input", crawl, "--no-accuracy", "--workers", "1", "--quiet"]
        subprocess.run([self.program, "run", job, *options], check=True, stdout=subprocess.DEVNULL)

    def differ(self, pages):
        """From which reader each page differs: `html5lib` (or only in `lines`), `lexbor`, or none; with `limit: ` where a limit is known."""
        read = [by_html5lib(html) for html in pages]
        documents = {f"p{n}": html for n, html in enumerate(pages)}
        documents |= {f"e{n}": "<br>".join(found[0]) for n, found in enumerate(read)}
        self.cluster(documents)
        tables = [f"'{self.folder}/store/{table}/week=*/*.parquet'" for table in ("documents", "chunks")]
        rows = duckdb.sql(f"SELECT id, hex(text), hex(lines) FROM {tables[0]} JOIN {tables[1]} USING (doc)").fetchall()
        hashes = {id: (text, lines) for id, text, lines in rows}
        for n, (html, (lines, is_limit)) in enumerate(zip(pages, read)):
            ours, theirs, kind = hashes.get(f"p{n}"), hashes.get(f"e{n}"), ""
            if ours != theirs:
                kind = "lines" if ours and theirs and ours[0] == theirs[0] else "html5lib"
            elif set(re.findall(r"w\d+q", " ".join(lines))) != set(by_lexbor(html)):
                kind = "lexbor"
            yield f"limit: {kind}" if kind and is_limit else kind

    def words(self, pages):
        """What nigh reads in pages."""
        self.cluster({f"p{n}": html for n, html in enumerate(pages)} | {"other": "another page of six words here"})
        for n in range(len(pages)):
            command = [self.program, "why", self.folder / "store", f"p{n}", "other", "--json"]
            texts = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)["texts"]
            yield " ".join(passage["text"] for passage in texts["differing"][0])


def smallest(nigh, found):
    """Leaves out of each page what it does not need to differ in the same way: pieces, then tags, then characters. Equal pages become one."""
    for cut in (list, lambda units: re.findall(r"<[^<>]*>|@|[^<@]+|<", "".join(units)), lambda units: list("".join(units))):
        larger, found = dict.fromkeys((tuple(cut(units)), kind) for units, kind in found), {}
        while larger:
            tried, better = [], {}
            for units, kind in larger:
                for length in sorted({len(units) // 2, len(units) // 4, 1} - {0}, reverse=True):
                    tried += [((units, kind), units[:n] + units[n + length :]) for n in range(0, len(units), length)]
            for (key, units), kind in zip(tried, nigh.differ([html_of(units) for _, units in tried])):
                if kind == key[1]:
                    better.setdefault(key, (units, kind))  # the shortest come first
            found |= {key: None for key in larger if key not in better}
            larger = dict.fromkeys(better.values())
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, epilog=RULES)
    parser.add_argument("nigh", type=Path, metavar="NIGH", help="the program")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--pages", type=int, default=5000)
    parser.add_argument("--limits", action="store_true", help="also print pages that differ by a known limit")
    args = parser.parse_args()
    draw = random.Random(args.seed)
    pages = [page(draw) for _ in range(args.pages)]
    with tempfile.TemporaryDirectory() as folder:
        nigh = Nigh(args.nigh.resolve(), Path(folder))
        kinds = list(nigh.differ([html_of(pieces) for pieces in pages]))
        shown = [(pieces, kind) for pieces, kind in zip(pages, kinds) if kind and (args.limits or not kind.startswith("limit"))]
        found = smallest(nigh, shown[:150])
        examples = [html_of(units) for units, _ in found]
        for html, ours, (_, kind) in zip(examples, nigh.words(examples), found):
            theirs = f"  html5lib  {' / '.join(by_html5lib(html)[0])}\n  lexbor    {' '.join(by_lexbor(html))}"
            print(f"{kind}: {html!r}\n  nigh      {ours}\n{theirs}")
    totals = collections.Counter(kind or "agree" for kind in kinds)
    print(f"{args.pages} pages: {', '.join(f'{count} {kind}' for kind, count in sorted(totals.items()))}")
    sys.exit(1 if any(kind and not kind.startswith("limit") for kind in kinds) else 0)


if __name__ == "__main__":
    main()
