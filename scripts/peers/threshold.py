#!/usr/bin/env python3
"""nigh with and without verification, Daft's recipe and text-dedup, on documents with copies of known resemblance.

    cargo build --release
    pip install numpy pyarrow daft text-dedup==0.4.0
    scripts/peers/threshold.py target/release/nigh [DOCUMENTS]

The documents are made up, the same each time: half are texts of their own, half are copies of an earlier one in which single words were changed,
so that the resemblance of the two is between 0.5 and 1. Resemblance is that of sets of five-word shingles, around the end of a text. The truth is
found by brute force: all pairs of at least 0.8, and their components.

Printed for each program: CPU seconds (the median of three runs) and peak memory; the documents that stay if one of each cluster does; of the true pairs, those in one cluster (recall); of the pairs in
one cluster, those in one true component (precision); and the largest cluster. Each program has the numbers that it chooses for 0.8 itself, or
those of its documentation. A program that is not installed is left out.
"""

import json, os, pathlib, pickle, random, shlex, statistics, subprocess, sys, tempfile

import numpy
import pyarrow.parquet

ROUNDS = 3
SIMILARITY = 0.8
JOB = """[cluster]
week = "2024-01-08"
store = "{store}"
input = ["{input}"]
accuracy = {accuracy}
[cluster.method]
similarity = 0.8
verify = "{verify}"
"""
# Daft's MinHash recipe: 64 hashes, cut so that 0.8 is the threshold with the least sum of both errors.
DAFT = '''
import sys, daft
from daft import col
from daft.functions import chunk, columns_min, minhash, monotonically_increasing_id, normalize
daft.set_runner_native()
pages = daft.read_json(sys.argv[1]).with_column("node", monotonically_increasing_id()).collect()
text = normalize(col("text"), remove_punct=True, lowercase=False, nfd_unicode=False, white_space=True)
hashed = pages.select("node", minhash(text, num_hashes=64, ngram_size=5, seed=1, hash_function="xxhash").alias("hashes"))
BANDS, ROWS = 5, 12
bands = hashed.select("node", chunk(col("hashes"), ROWS).alias("bands"))
bands = bands.with_column("band", daft.lit(list(range(BANDS)))).explode("bands", "band")
groups = bands.groupby("band", "bands").agg(col("node").min().alias("least"))
edges = bands.join(groups, on=["band", "bands"]).where(col("node") != col("least")).select("node", "least").distinct().collect()
labels = pages.select("node", col("node").alias("label")).collect()
while True:
    both = edges.select(col("node").alias("a"), col("least").alias("b")).concat(edges.select(col("least").alias("a"), col("node").alias("b")))
    heard = both.join(labels, left_on="b", right_on="node").groupby("a").agg(col("label").min().alias("heard"))
    joined = labels.join(heard, left_on="node", right_on="a", how="left")
    new = joined.select("node", columns_min(col("heard"), col("label")).alias("label")).collect()
    if new.sum("label").to_pydict() == labels.sum("label").to_pydict():
        break
    labels = new
pages.select("node", "url").join(labels, on="node").write_parquet(sys.argv[2])
'''


def documents(path, count):
    """Writes the documents; returns the bytes of text."""
    rng = random.Random(1)
    vocabulary = ["".join(rng.choices("etaoinshrdlu", k=rng.randint(2, 10))) for _ in range(30_000)]
    weights = [1 / (rank + 5) for rank in range(len(vocabulary))]
    texts, size = [], 0
    with open(path, "w") as out:
        for number in range(count):
            if texts and rng.random() < 0.5:
                words = list(texts[rng.randrange(len(texts))])
                wanted = rng.uniform(0.5, 1.0)
                # A changed word costs five shingles on both sides.
                changed = round(len(words) * (1 - wanted) / (5 * (1 + wanted)))
                for at in rng.sample(range(len(words)), changed):
                    words[at] = rng.choice(vocabulary)
            else:
                words = rng.choices(vocabulary, weights, k=rng.randint(250, 1090))
            texts.append(words)
            text = " ".join(words)
            size += len(text)
            out.write(json.dumps({"url": f"http://host{number % 97}.example/{number}", "text": text}) + "\n")
    return size


def true_pairs(path):
    """All pairs of at least the similarity: two arrays of document numbers."""
    words, hashes, owners, sizes = {}, [], [], []
    with open(path) as lines:
        for number, line in enumerate(lines):
            text = json.loads(line)["text"].split()
            ids = numpy.array([words.setdefault(word, len(words)) for word in text], dtype=numpy.uint64)
            shingles = numpy.zeros(len(ids), dtype=numpy.uint64)
            for place in range(5):
                shingles = (shingles * numpy.uint64(0x9E3779B97F4A7C15)) ^ numpy.roll(ids, -place)
                shingles ^= shingles >> numpy.uint64(29)
                shingles *= numpy.uint64(0xBF58476D1CE4E5B9)
            shingles = numpy.unique(shingles)
            hashes.append(shingles)
            owners.append(numpy.full(len(shingles), number, dtype=numpy.uint64))
            sizes.append(len(shingles))
    hashes, owners, sizes = numpy.concatenate(hashes), numpy.concatenate(owners), numpy.array(sizes)
    order = numpy.lexsort((owners, hashes))
    hashes, owners = hashes[order], owners[order]
    starts = numpy.flatnonzero(numpy.r_[True, hashes[1:] != hashes[:-1]])
    lengths = numpy.diff(numpy.r_[starts, len(hashes)])
    pairs = []
    for length in numpy.unique(lengths[lengths > 1]):
        of_length = starts[lengths == length]
        for a in range(length):
            for b in range(a + 1, length):
                pairs.append(owners[of_length + a] << numpy.uint64(32) | owners[of_length + b])
    pairs, shared = numpy.unique(numpy.concatenate(pairs), return_counts=True)
    a, b = (pairs >> numpy.uint64(32)).astype(int), (pairs & numpy.uint64(0xFFFFFFFF)).astype(int)
    enough = shared / (sizes[a] + sizes[b] - shared) >= SIMILARITY
    return a[enough], b[enough], len(sizes)


def components(a, b, count):
    """The smallest document of the component of each."""
    parent = list(range(count))

    def root(node):
        while parent[node] != node:
            parent[node] = parent[parent[node]]
            node = parent[node]
        return node

    for x, y in zip(a.tolist(), b.tolist()):
        x, y = root(x), root(y)
        parent[max(x, y)] = min(x, y)
    return numpy.array([root(node) for node in range(count)])


def number_of(url):
    return int(url.rsplit("/", 1)[1])


def of_nigh(store, count):
    table = pyarrow.parquet.read_table(store / "clusters", columns=["url", "similar_root"]).to_pydict()
    labels = numpy.zeros(count, dtype=numpy.int64)
    labels[[number_of(url) for url in table["url"]]] = table["similar_root"]
    return labels


def of_daft(folder, count):
    table = pyarrow.parquet.read_table(folder, columns=["url", "label"]).to_pydict()
    labels = numpy.zeros(count, dtype=numpy.int64)
    labels[[number_of(url) for url in table["url"]]] = table["label"]
    return labels


def of_text_dedup(folder, count):
    with open(folder / "uf.pkl", "rb") as file:
        union = pickle.load(file)
    return numpy.array([union.find(node) for node in range(count)])


def pairs_within(labels):
    sizes = numpy.unique(labels, return_counts=True)[1]
    return int((sizes * (sizes - 1) // 2).sum())


def run(command, folder):
    """CPU seconds, peak MB of one command; `None` if it fails."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, cwd=folder)
    error = process.stderr.read().decode(errors="replace")
    _, status, usage = os.wait4(process.pid, 0)
    if status != 0:
        print(f"{command[0]} failed: {error.strip().splitlines()[-1:]}", file=sys.stderr)
        return None
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1000


def main():
    if sys.argv[1] == "--make":
        print(documents(sys.argv[2], int(sys.argv[3])))
        return
    nigh = str(pathlib.Path(sys.argv[1]).resolve())
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 20_000
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        source = folder / "documents.jsonl"
        # In a process of its own: the peak memory of a program that is started counts from that of this one.
        size = int(subprocess.check_output([sys.executable, __file__, "--make", str(source), str(count)]))
        (folder / "recipe.py").write_text(DAFT)

        def job(name, verify, accuracy):
            path = folder / f"{name}.toml"
            path.write_text(JOB.format(store=folder / name, input=source, verify=verify, accuracy=accuracy))
            return [nigh, "run", str(path), "--replace", "--quiet", "--workers", "1"]

        # text-dedup writes the documents that stay, too.
        export = [nigh, "export", str(folder / "exported"), "--workers", "1", "--out", str(folder / "kept")]
        exported = ["sh", "-c", f"rm -rf {folder}/kept && {shlex.join(job('exported', 'exact', 'false'))} && {shlex.join(export)}"]
        text_dedup = [sys.executable, "-m", "text_dedup.minhash", "--path", "json", "--data_files", str(source), "--split", "train"]
        text_dedup += ["--column", "text", "--output", str(folder / "text-dedup"), "--threshold", str(SIMILARITY), "--ngram", "5"]
        text_dedup += ["--hash_func", "xxh3", "--debug", "--num_proc", "1", "--cache_dir", str(folder / "cache")]
        programs = {
            "nigh, no check": (job("none", "none", "false"), lambda: of_nigh(folder / "none", count)),
            "nigh, estimate": (job("estimate", "estimate", "false"), lambda: of_nigh(folder / "estimate", count)),
            "nigh, exact": (job("exact", "exact", "false"), lambda: of_nigh(folder / "exact", count)),
            "nigh, exact, accuracy": (job("sampled", "exact", "true"), lambda: of_nigh(folder / "sampled", count)),
            "nigh, exact, export": (exported, lambda: of_nigh(folder / "exported", count)),
            "Daft, recipe": ([sys.executable, "recipe.py", str(source), str(folder / "daft")], lambda: of_daft(folder / "daft", count)),
            "text-dedup 0.4.0": (text_dedup, lambda: of_text_dedup(folder / "text-dedup", count)),
        }
        # All programs run before this one takes memory for the truth.
        measured = {}
        for name, (command, labels) in programs.items():
            runs = [run(command, folder) for _ in range(ROUNDS)]
            if None not in runs:
                measured[name] = ([statistics.median(values) for values in zip(*runs)], labels())
        a, b, _ = true_pairs(source)
        truth = components(a, b, count)
        stay = len(numpy.unique(truth))
        print(f"{count} documents, {size / 1e6:.1f} MB of text, {len(a)} pairs of at least {SIMILARITY}; {stay} stay")
        for name, ((cpu, peak), labels) in measured.items():
            within = pairs_within(labels)
            both = pairs_within(numpy.unique(numpy.stack([labels, truth]), axis=1, return_inverse=True)[1].ravel())
            recall = (labels[a] == labels[b]).mean()
            largest = numpy.unique(labels, return_counts=True)[1].max()
            print(
                f"{name:<22} {cpu:7.2f} CPU s {peak:7.0f} MB  {len(numpy.unique(labels)):6} stay  recall {recall:.4f}  precision {both / max(within, 1):.4f}  largest cluster {largest}"
            )


main()
