#!/usr/bin/env python3
"""Near-duplicate source files by each rule of words, against all pairs by exact comparison.

    scripts/source_code.py --program target/release/nigh --ending .rs ~/.cargo/registry/src
    scripts/source_code.py --program target/release/nigh --ending .py /usr/lib/python3

Takes up to 2,000 files, adds an edited copy of every tenth in five ways, and runs nigh with similarity 0.8 and exact
verification. The truth is computed here: sets of shingles, all pairs of at least 0.8, components of these pairs.
"""

import argparse
import collections
import hashlib
import json
import math
import pathlib
import re
import resource
import subprocess
import tempfile

LEAST = 0.8
KEYWORDS = {"self", "return", "import", "from", "None", "True", "False", "else", "pub", "impl", "struct", "match", "Self"}


def source_files(folders, ending, most):
    """The files, in an order that looks random and is the same each time."""
    paths = [path for folder in folders for path in pathlib.Path(folder).rglob("*" + ending) if path.is_file()]
    paths.sort(key=lambda path: hashlib.sha256(str(path).encode()).digest())
    found = []
    for path in paths:
        text = path.read_bytes()
        if 500 <= len(text) <= 60_000 and text.isascii() and b"\0" not in text:
            found.append((str(path), text.decode("ascii")))
        if len(found) == most:
            break
    return found


def edited(kind, text):
    """A copy of a source file that a person or a formatter changed."""
    lines = text.split("\n")
    if kind == "indented":
        return "\n".join(re.sub("^ +", lambda blanks: "\t" * len(blanks.group()), line) + "  " for line in lines)
    if kind == "spaced":
        return re.sub(r"([=(){},:;+*-])", r" \1 ", text)
    if kind == "header":
        return "\n".join("# or // line %d of a licence that only this copy has" % line for line in range(4)) + "\n" + text
    if kind == "renamed":
        names = collections.Counter(re.findall(r"[A-Za-z_]{4,}", text))
        names = [name for name, count in names.most_common(40) if name not in KEYWORDS and count < len(lines) / 12]
        return re.sub(r"\b%s\b" % names[0], "renamed_here", text) if names else text + "\n"
    # One line in forty is gone.
    return "\n".join(line for number, line in enumerate(lines) if number % 40 != 20)


KINDS = ["indented", "spaced", "header", "renamed", "cut"]


def words_of(rule, text):
    if rule == "letters":
        return re.findall(r"[A-Za-z0-9]+", text)
    if rule == "code":
        return re.findall(r"[a-z0-9_]+|[!-/:-@[-`{-~]", text.lower())
    return re.findall(r"[!-~]", text)


def shingles_of(words, width):
    longer = words + words * math.ceil(width / max(len(words), 1)) if words else []
    return {hash(tuple(longer[first : first + width])) for first in range(len(words))}


def similar_pairs(sets):
    """All pairs of at least LEAST, by prefixes of the rarest shingles; exact."""
    frequency = collections.Counter(shingle for shingles in sets for shingle in shingles)
    index, pairs = collections.defaultdict(list), {}
    for number, shingles in enumerate(sets):
        rarest = sorted(shingles, key=lambda shingle: (frequency[shingle], shingle))
        candidates = set()
        for shingle in rarest[: len(rarest) - math.ceil(LEAST * len(rarest)) + 1]:
            candidates.update(index[shingle])
            index[shingle].append(number)
        for other in candidates:
            shared = len(shingles & sets[other])
            similarity = shared / (len(shingles) + len(sets[other]) - shared)
            if similarity >= LEAST:
                pairs[other, number] = similarity
    return pairs


def components(count, pairs):
    root = list(range(count))

    def find(node):
        while root[node] != node:
            root[node] = root[root[node]]
            node = root[node]
        return node

    for a, b in pairs:
        a, b = find(a), find(b)
        root[max(a, b)] = min(a, b)
    return [find(node) for node in range(count)]


def clusters_of_nigh(program, rule, width, folder, lines):
    """The cluster of each document, and the CPU seconds of the run."""
    store, listed = folder / f"store-{rule}-{width}", folder / f"{rule}-{width}.jsonl"
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    flags = ["--similarity", str(LEAST), "--verify", "exact", "--words", rule, "--shingle", str(width), "--no-accuracy"]
    subprocess.run([program, "run", "-q", "--week", "2024-01-08", "--store", store, "--input", lines, "--id", "id", *flags], check=True,
                   stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    out = folder / f"out-{rule}-{width}"
    subprocess.run([program, "export", store, "--out", out, "--what", "annotated"], check=True, stdout=subprocess.DEVNULL)
    rows = [json.loads(line) for line in (out / lines.name).read_text().splitlines()]
    clusters = {int(row["id"]): row["nigh_cluster"] for row in rows}
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return [clusters[number] for number in range(len(clusters))], cpu


def pairs_of(clusters):
    members = collections.defaultdict(list)
    for number, cluster in enumerate(clusters):
        members[cluster].append(number)
    return {(a, b) for of in members.values() for a in of for b in of if a < b}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default="target/release/nigh")
    parser.add_argument("--ending", default=".rs")
    parser.add_argument("--most", type=int, default=2000)
    parser.add_argument("folders", nargs="+")
    args = parser.parse_args()
    files = source_files(args.folders, args.ending, args.most)
    texts, copies = [text for _, text in files], []
    for number in range(0, len(files), 10):
        kind = KINDS[number // 10 % len(KINDS)]
        copies.append((kind, number, len(texts)))
        texts.append(edited(kind, texts[number]))
    print(f"{len(files)} files {args.ending}, {sum(map(len, texts)) / 1e6:.1f} MB with {len(copies)} edited copies")
    print("| words | shingle | pairs of 0.8 and more | in one cluster | clusters as by all pairs | " + " | ".join(KINDS) + " | CPU s |")
    print("|---|---|---|---|---|" + "---|" * (len(KINDS) + 1))
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch)
        lines = folder / "files.jsonl"
        lines.write_text("".join(json.dumps({"id": str(number), "text": text}) + "\n" for number, text in enumerate(texts)))
        for rule, width in [("letters", 5), ("code", 5), ("code", 8), ("characters", 24)]:
            pairs = similar_pairs([shingles_of(words_of(rule, text), width) for text in texts])
            truth = components(len(texts), pairs)
            found, cpu = clusters_of_nigh(args.program, rule, width, folder, lines)
            linked = sum(found[a] == found[b] for a, b in pairs)
            of_truth, of_nigh = pairs_of(truth), pairs_of(found)
            by_kind = []
            for kind in KINDS:
                of_kind = [(a, b) for copied, a, b in copies if copied == kind]
                by_kind.append(f"{sum(found[a] == found[b] for a, b in of_kind)}/{len(of_kind)}")
            same = f"{len(of_truth & of_nigh)} of {len(of_truth)} pairs, {len(of_nigh - of_truth)} more"
            print(f"| {rule} | {width} | {len(pairs)} | {linked} | {same} | {' | '.join(by_kind)} | {cpu:.1f} |")


if __name__ == "__main__":
    main()
