#!/usr/bin/env python3
"""What `content = "main"` changes: pages of one template with other texts, and copies of a text under other templates.

    scripts/main_content.py --program target/release/nigh CORPUS

CORPUS is the folder of the test corpus (`week-01/warc/*.warc.gz`). One page is taken of each host of MARKS, which says by hand which
element of it is the main text. Each of these texts is put into each of these pages, in the place of its own. Pages of one text should
then be in one cluster, and others not. Needs a nigh with the feature `main-content`, and Python's lxml.
"""

import argparse
import collections
import copy
import gzip
import itertools
import json
import math
import pathlib
import re
import subprocess
import tempfile

import lxml.html

# Host: the main element, and what of it is not main text.
MARKS = {
    "manual.httpd.example": ("//div[@id='page-content']", None),
    "zookeeper.apache.example": ("//div[@class='contentContainer']", None),
    "storm.apache.example": ("//div[@class='documentation-content']", None),
    "kafka.apache.example": ("//div[@class='contentContainer']", None),
    "www.boost.example": ("//div[@id='content']", None),
    "accumulo.apache.example": ("//div[@id='content']", ".//footer"),
    "flink.apache.example": ("//article", None),
    "httpd.apache.example": ("//div[@id='apcontents']", ".//*[@id='footer']"),
    "netbeans.apache.example": ("//div[contains(@class,'main-content')]", None),
    "doc.rust-lang.example": ("//div[@id='content']", None),
    "orc.apache.example": ("//article", None),
    "rocketmq.apache.example": ("//main", None),
    "blog.rust-lang.example": ("//section[contains(@class,'white')]", None),
    "arm64.guide.debian.example": ("//div[@class='sect1']", None),
    "www.postgresql.example": ("//div[@id='LOGICAL-REPLICATION']", None),
    "datafusion.apache.example": ("//div[contains(@class,'main-content')]", None),
    "www.rust-book.example": ("//div[@id='content']", None),
    "hive.apache.example": ("//div[@class='docs']", None),
    "jdk17.openjdk.example": ("//main", None),
    "faq-ja.debian.example": ("//div[@class='chapter']", None),
    "maint-es.debian.example": ("//div[@class='chapter']", None),
}
FEWEST_WORDS = 30


def pages(corpus):
    """The pages of each host: name and tree."""
    found = collections.defaultdict(list)
    for path in sorted(pathlib.Path(corpus, "week-01/warc").glob("*.warc.gz")):
        data, at = gzip.open(path).read(), 0
        while (end := data.find(b"\r\n\r\n", at)) >= 0:
            head = data[at:end].decode("latin-1")
            length = int(re.search(r"(?i)content-length: *(\d+)", head)[1])
            http, _, body = data[end + 4 : end + 4 + length].partition(b"\r\n\r\n")
            at = end + 4 + length + 4
            if "WARC-Type: response" in head and b"html" in http:
                host = re.search(r"WARC-Target-URI: *<?([^\s>]+)", head)[1].split("/")[2]
                charset = re.search(rb"charset=[\"']?(utf-8|[\w-]+)", http + body[:1500], re.I)
                if host in MARKS:
                    found[host].append(body.decode(charset[1].decode() if charset else "utf-8", "replace"))
    return found


def tree(page):
    return lxml.html.fromstring(page.encode(), parser=lxml.html.HTMLParser(encoding="utf-8"))


def marked(page, host):
    path, without = MARKS[host]
    main = page.xpath(path)[0]
    for part in main.xpath(".//script|.//style") + (main.xpath(without) if without else []):
        part.drop_tree()
    return main


def clusters(program, folder, content):
    """The cluster of each page, and of how many nothing was found."""
    read = f'[cluster.read]\ncontent = "{content}"\n[cluster.read.columns]\nid = "id"\nhtml = "html"\n'
    (folder / "job.toml").write_text(f'[cluster]\n{read}[cluster.method]\nsimilarity = 0.8\nverify = "exact"\n')
    store, out, lines = folder / f"store-{content}", folder / f"out-{content}", folder / "pages.jsonl"
    run = [program, "run", folder / "job.toml", "-q", "--json", "--week", "2024-01-08", "--store", store, "--input", lines]
    summary = json.loads(subprocess.run(run, check=True, stdout=subprocess.PIPE).stdout)
    subprocess.run([program, "export", store, "--out", out, "--what", "annotated"], check=True, stdout=subprocess.DEVNULL)
    rows = [json.loads(line) for line in (out / lines.name).read_text().splitlines()]
    return {row["id"]: row["nigh_cluster"] for row in rows}, summary["counts"]["whole_pages"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default="target/release/nigh")
    parser.add_argument("corpus")
    args = parser.parse_args()
    texts, templates = {}, {}
    for host, found in pages(args.corpus).items():
        page = tree(sorted(found, key=len)[len(found) * 2 // 3])
        if not page.xpath(MARKS[host][0]):
            continue
        texts[host], templates[host] = marked(page, host), page
    texts = {host: text for host, text in texts.items() if len(text.text_content().split()) >= FEWEST_WORDS}
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch)
        with open(folder / "pages.jsonl", "w") as lines:
            for (template, page), (host, text) in itertools.product(templates.items(), texts.items()):
                page = copy.deepcopy(page)
                main = page.xpath(MARKS[template][0])[0]
                main[:], main.text = copy.deepcopy(list(text)), text.text
                html = lxml.html.tostring(page, encoding="unicode")
                lines.write(json.dumps({"id": f"{host} in {template}", "html": html}) + "\n")
        print(f"{len(texts)} texts in {len(templates)} templates: {len(texts) * len(templates)} pages")
        wanted = len(texts) * math.comb(len(templates), 2)
        print("| content | pairs in a cluster | precision | recall | pages without a main content |\n|---|---|---|---|---|")
        for content in ["page", "main"]:
            found, whole = clusters(args.program, folder, content)
            pairs = [(a, b) for a, b in itertools.combinations(found, 2) if found[a] == found[b]]
            right = sum(a.split(" in ")[0] == b.split(" in ")[0] for a, b in pairs)
            print(f"| {content} | {len(pairs)} | {right / max(1, len(pairs)):.3f} | {right / wanted:.3f} | {whole} |")


if __name__ == "__main__":
    main()
