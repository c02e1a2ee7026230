#!/usr/bin/env python3
"""Counts how often the intervals of the accuracy lines hold the truth, over many seeds of the method.

    pip install numpy pyarrow
    scripts/accuracy.py [--nigh target/release/nigh] [--seeds 1..200] [--sets few,pairs,...] [--verify none,exact,estimate] [--out FILE]

Made-up sets of texts, whose pairs are compared exactly here, by words and shingles that share no code with nigh. Each is clustered with
each seed. The truth is that of the store of that seed:

    links     of all rows of `evidence`, the share whose two texts are at least so similar
    recall    of all pairs of texts that are at least so similar, the share in one cluster
    expected  the share that the curve predicts to be linked directly, against that of `recall`; with its interval, if the summary has one

    said      seeds in which the line says a share, and not that pairs are too few
    truth     mean of the truth, and its standard deviation over seeds
    share     mean of the share that nigh says
    bias      mean of share - truth
    width     mean width of the interval
    held      seeds in which the interval holds the truth, of those with one

`none` is the default method, whose numbers find few pairs of similarity 0.8; `exact` and `estimate` have similarity = 0.8, and nigh chooses
the numbers. `loose` is `similarity = 0.8` without verification. --out appends one JSON object for each run.

Exit codes: 0 all intervals hold in at least 90% of the seeds; 1 some do not, in a line that is said in at least 20 seeds; 2 wrong use or a
run failed; 4 a package is missing.
"""

import argparse
import json
import random
import re
import statistics
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from pathlib import Path

try:
    import numpy as np
    import pyarrow.parquet as pq
except ImportError as error:
    print(error, file=sys.stderr)
    sys.exit(4)

# A pair counts as similar from 80% on.
ENOUGH = (4, 5)
WORDS = 5
LEAST_HELD = 0.9
LEAST_SAID = 20
NUMBERS = {
    "none": "",
    "loose": "similarity = 0.8\n",
    "estimate": 'similarity = 0.8\nverify = "estimate"\n',
    "exact": 'similarity = 0.8\nverify = "exact"\n',
}
JOB = """\
[cluster]
week = "2024-01-01"
store = "{folder}/store"
input = ["{folder}/texts.jsonl"]
[cluster.keep]
chunks = false
[cluster.read.columns]
id = "id"
text = "text"
[cluster.method]
shards = 4
seed = {seed}
{form}{numbers}"""


class Maker:
    """Makes texts: lists of words that no other text has, and changed copies of them."""

    def __init__(self, seed, word=None):
        self.random = random.Random(seed)
        self.word = word or (lambda: "".join(self.random.choices("abcdefghijklmnopqrstuvwxyz", k=self.random.randint(3, 9))))
        self.vocabulary = [self.word() for _ in range(20_000)]

    def text(self, least=80, most=240):
        return self.random.choices(self.vocabulary, k=self.random.randint(least, most))

    def changed(self, text, similarity, change=None):
        """A copy of about this similarity: some words in a row are others, wherever in the text."""
        shingles = round(len(text) * (1 - similarity) / (1 + similarity))
        if shingles == 0:
            return list(text)
        copy, start = list(text), self.random.randrange(len(text))
        for place in range(start, start + max(1, shingles - WORDS + 1)):
            place %= len(text)
            copy[place] = change(copy[place]) if change else self.random.choice(self.vocabulary)
        return copy

    def near(self, text, least=0.6):
        """A copy of a similarity from `least` to 1; one in six is equal."""
        return self.changed(text, min(1.0, self.random.uniform(least, 1 + (1 - least) / 5)))

    def pairs(self, pairs, alone):
        texts = [self.text() for _ in range(pairs + alone)]
        return texts + [self.near(text) for text in texts[:pairs]]


def few():
    return Maker(1).pairs(15, 2500)


def pairs():
    return Maker(2).pairs(2000, 2000)


def templates():
    """Pages of 50 sites: boilerplate that all pages of a site share, and some words of their own."""
    maker = Maker(3)
    pages = []
    for _ in range(50):
        boilerplate = maker.text(100, 140)
        pages += [boilerplate + maker.text(2, 20) for _ in range(60)]
    return pages


def chains():
    """Each text is a changed copy of the one before it: the ends have little in common."""
    maker = Maker(4)
    texts = []
    for _ in range(250):
        texts.append(maker.text())
        for _ in range(15):
            texts.append(maker.changed(texts[-1], maker.random.uniform(0.85, 0.97)))
    return texts


def large():
    """A few large clusters of very similar texts, and many pairs that are less so."""
    maker = Maker(5)
    texts = maker.pairs(800, 400)
    for size in [400, 200, 100, 100, 50, 50, 20, 20, 20, 10, 10, 10]:
        first = maker.text()
        texts += [first] + [maker.near(first, 0.85) for _ in range(size - 1)]
    return texts


def sizes():
    """Clusters of all sizes, each with a similarity of its own: some are found, some are not."""
    maker = Maker(6)
    texts = [maker.text() for _ in range(500)]
    for number in range(1, 301):
        first, similarity = maker.text(), maker.random.uniform(0.86, 0.99)
        texts += [first] + [maker.changed(first, similarity) for _ in range(max(1, 250 // number))]
    return texts


def one():
    """One cluster, which has most pairs and which a sample of pages may miss, among many pairs that are found seldom."""
    maker = Maker(9)
    texts = [maker.text() for _ in range(3000)]
    first = maker.text()
    pairs = [maker.changed(text, maker.random.uniform(0.8, 0.9)) for text in texts[:1000]]
    return texts + pairs + [maker.changed(first, maker.random.uniform(0.97, 1)) for _ in range(60)]


def cases():
    """Pairs of which some differ in the case of letters, and some in words."""
    maker = Maker(7)
    texts = [maker.text() for _ in range(3000)]
    copies = [maker.changed(maker.near(text, 0.7), maker.random.uniform(0.8, 1), str.title) for text in texts[:2000]]
    return texts + copies


def han():
    """Pairs of texts with words of Latin letters and runs of Han letters."""
    letters = random.Random(8)
    han = lambda: "".join(chr(letters.randrange(0x4E00, 0x9FA0)) for _ in range(letters.randint(2, 6)))
    latin = lambda: "".join(letters.choices("abcdefghijklmnopqrstuvwxyz", k=5))
    return Maker(8, lambda: han() if letters.random() < 0.7 else latin()).pairs(1500, 1000)


# The texts of each set, and the form in which they are compared.
SETS = {
    "few": (few, ""),
    "pairs": (pairs, ""),
    "templates": (templates, ""),
    "chains": (chains, ""),
    "large": (large, ""),
    "sizes": (sizes, ""),
    "one": (one, ""),
    "cased": (cases, ""),
    "folded": (cases, "fold-case = true\n"),
    "letters": (han, ""),
    "runs": (han, 'spaceless = "runs"\n'),
}


class Truth:
    """The exact similarities of the texts of a set."""

    def __init__(self, texts, form):
        self.numbers = {}
        self.shingles = [self.numbered(text, form) for text in texts]
        self.known = {}
        self.a, self.b = self.similar_pairs()

    def numbered(self, text, form):
        """The distinct shingles of a text: five words each, around its end. A word is a run of letters and digits, or one Han letter."""
        word = r"[^\W_]+" if "runs" in form else r"[\u4e00-\u9fff]|[^\W_\u4e00-\u9fff]+"
        words = re.findall(word, text.lower() if "fold-case" in form else text)
        words = words + (words * WORDS)[: WORDS - 1]
        shingles = zip(*(words[start : len(words) - WORDS + 1 + start] for start in range(WORDS)))
        return {self.numbers.setdefault(" ".join(shingle), len(self.numbers)) for shingle in shingles}

    def similar_pairs(self):
        """All pairs that are similar enough, by number: the texts with each shingle are pairs that share one more."""
        texts_with = defaultdict(list)
        for number, shingles in enumerate(self.shingles):
            for shingle in shingles:
                texts_with[shingle].append(number)
        lists = Counter(tuple(texts) for texts in texts_with.values() if len(texts) > 1)
        shared = np.zeros((len(self.shingles), len(self.shingles)), np.uint16)
        for texts, times in lists.items():
            shared[np.ix_(texts, texts)] += np.uint16(times)
        sizes = np.array([len(shingles) for shingles in self.shingles])
        found = []
        for number in range(len(sizes)):
            others = number + 1 + np.flatnonzero(shared[number, number + 1 :])
            both = shared[number, others].astype(np.int64)
            others = others[is_enough(both, sizes[number] + sizes[others] - both)]
            found.append(np.stack([np.full(len(others), number), others]))
        return np.concatenate(found, axis=1)

    def is_similar(self, a, b):
        key = (min(a, b), max(a, b))
        if key not in self.known:
            shared = len(self.shingles[a] & self.shingles[b])
            self.known[key] = is_enough(shared, len(self.shingles[a]) + len(self.shingles[b]) - shared)
        return self.known[key]


def is_enough(shared, union):
    return shared * ENOUGH[1] >= union * ENOUGH[0]


def table(store, name, columns):
    files = sorted(store.glob(f"{name}/week=*/*.parquet"))
    rows = [pq.ParquetFile(file).read(columns) for file in files]
    return [np.concatenate([part.column(column).to_numpy() for part in rows]) for column in columns]


def run(nigh, folder, form, numbers, seed, truth):
    """Clusters a set with a seed: what the lines say, and the truth about that store."""
    store = folder / "store"
    subprocess.run(["rm", "-rf", str(store)], check=True)
    (folder / "job.toml").write_text(JOB.format(folder=folder, form=form, numbers=numbers, seed=seed))
    command = [nigh, "run", str(folder / "job.toml"), "--workers", "1", "-q"]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode != 0:
        fail(2, f"{' '.join(command)}: {done.stderr}")
    said = json.loads(next(store.glob("_nigh/week=*/*/summary.json")).read_text())["accuracy"]
    ids, docs, roots = table(store, "clusters", ["id", "doc", "similar_root"])
    text_of = {doc: int(number) for number, doc in zip(ids, docs)}
    root = np.empty(len(docs), np.int64)
    root[ids.astype(np.int64)] = roots
    links = [truth.is_similar(text_of[a], text_of[b]) for a, b in zip(*table(store, "evidence", ["doc", "neighbour"]))]
    together = root[truth.a] == root[truth.b]
    recall = float(together.mean()) if len(together) else None
    return {
        "links": line(said["links"], "too few links" in done.stdout, statistics.fmean(links) if links else None),
        "recall": line(said["recall"], "too few pairs" in done.stdout, recall),
        "expected": line(expected(said), "too few pairs" in done.stdout, recall),
    }


def expected(said):
    """What the curve expects of recall, with its interval."""
    share = said["expected"]
    return None if share is None else {"share": share, "low": said.get("expected_low"), "high": said.get("expected_high")}


def line(said, is_few, true):
    """What a line says: the share with its interval, if these are said, and the truth."""
    if said is None or true is None or is_few:
        return {"true": true}
    return {"true": true, "share": said["share"], "low": said["low"], "high": said["high"]}


def report(name, verify, runs):
    """Prints the lines of a set; returns whether enough intervals hold the truth."""
    good = True
    for kind in ("links", "recall", "expected"):
        lines = [run[kind] for run in runs]
        said = [line for line in lines if "share" in line]
        true = [line["true"] for line in lines if line["true"] is not None]
        cells = [f"{name:<10}{verify:<9}{kind:<9}{len(said):>5}"]
        deviation = statistics.pstdev(true) if true else 0
        cells.append(f"{statistics.fmean(true):>8.4f}{deviation:>8.4f}" if true else f"{'-':>16}")
        if said:
            share = statistics.fmean(line["share"] for line in said)
            bias = statistics.fmean(line["share"] - line["true"] for line in said)
            cells.append(f"{share:>8.4f}{bias:>+9.4f}")
        with_interval = [line for line in said if line["low"] is not None]
        if with_interval:
            # The tables hold single numbers: half a millionth is rounding.
            held = sum(line["low"] - 5e-7 <= line["true"] <= line["high"] + 5e-7 for line in with_interval)
            width = statistics.fmean(line["high"] - line["low"] for line in with_interval)
            is_held = len(with_interval) < LEAST_SAID or held >= LEAST_HELD * len(with_interval)
            good = good and is_held
            cells.append(f"{width:>8.4f}{held:>6} of {len(with_interval)}{'' if is_held else '  TOO FEW HOLD'}")
        print("".join(cells), flush=True)
    return good


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nigh", default="target/release/nigh", help="the program")
    parser.add_argument("--seeds", default="1..200", metavar="A..B", help="seeds of the method, both ends with them")
    parser.add_argument("--sets", default=",".join(SETS), help="names of sets, with commas")
    parser.add_argument("--verify", default="none,exact", help=f"some of {', '.join(NUMBERS)}, with commas")
    parser.add_argument("--out", type=Path, metavar="FILE", help="appends what each run said, as JSON lines")
    args = parser.parse_args()
    bounds = re.fullmatch(r"(\d+)\.\.(\d+)", args.seeds)
    names, variants = args.sets.split(","), args.verify.split(",")
    unknown = [name for name in names if name not in SETS] + [name for name in variants if name not in NUMBERS]
    if unknown or not bounds:
        fail(2, f"not known: {', '.join(unknown)}" if unknown else f"--seeds {args.seeds}: not of the form 1..200")
    seeds = range(int(bounds[1]), int(bounds[2]) + 1)
    print(f"{'set':<10}{'verify':<9}{'line':<9}{'said':>5}{'truth':>8}{'+-':>8}{'share':>8}{'bias':>9}{'width':>8}  held")
    good = True
    for name in names:
        make, form = SETS[name]
        texts = [" ".join(words) for words in make()]
        # Texts of one cluster do not follow each other.
        random.Random(0).shuffle(texts)
        truth = Truth(texts, form)
        with tempfile.TemporaryDirectory() as folder:
            rows = (json.dumps({"id": str(number), "text": text}) + "\n" for number, text in enumerate(texts))
            (Path(folder) / "texts.jsonl").write_text("".join(rows))
            for verify in variants:
                runs = []
                for seed in seeds:
                    runs.append(run(args.nigh, Path(folder), form, NUMBERS[verify], seed, truth))
                    if args.out:
                        with args.out.open("a") as out:
                            out.write(json.dumps({"set": name, "verify": verify, "seed": seed, **runs[-1]}) + "\n")
                good = report(name, verify, runs) and good
    sys.exit(0 if good else 1)


def fail(code, message):
    print(f"accuracy.py: {message}", file=sys.stderr)
    sys.exit(code)


if __name__ == "__main__":
    main()
