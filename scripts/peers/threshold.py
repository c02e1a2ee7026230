#!/usr/bin/env python3
"""nigh with and without verification beside Daft's recipe, text-dedup, datatrove, rensa and FastSketchLSH, on documents with copies of known
resemblance.

    cargo build --release
    pip install numpy pyarrow daft rensa fastsketchlsh 'datatrove[processing]' spacy orjson
    python3 -m venv other && other/bin/pip install text-dedup==0.4.0      # it needs older packages than the others
    scripts/peers/threshold.py target/release/nigh [DOCUMENTS] [text-dedup=other/bin/python]

The documents are made up, the same each time: half are texts of their own, half are copies of an earlier one in which single words were changed,
so that the resemblance of the two is between 0.5 and 1. Resemblance is that of sets of five-word shingles, around the end of a text. The truth is
found by brute force: all pairs of at least 0.8, and their components.

Printed for each program: CPU seconds (the median of three runs) and peak memory; the documents that stay if one of each cluster does; of the true pairs, those in one cluster (recall); of the pairs in
one cluster, those in one true component (precision); the largest cluster; and the lines of code that a user writes for it here (0: a command).
Each program has the numbers that it chooses for 0.8 itself, or those of its documentation; rensa and FastSketchLSH look up candidates, and
what they find is connected here if they estimate it to be at least 0.8 similar. A program that is not installed is left out, or that needs
what the machine does not have: semhash fetches a model.
"""

import json, os, pathlib, random, shlex, statistics, subprocess, sys, tempfile

import numpy
import pyarrow.parquet

ROUNDS = 3
# Of these one run is enough.
SLOW = ["datatrove", "text-dedup 0.4.0"]
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


# What libraries of sketches leave to their user: words, shingles, and clusters of the pairs that are found.
SHINGLES = '''
import json, sys, numpy
texts = [json.loads(line)["text"].split() for line in open(sys.argv[1])]
shingles = [[" ".join(words[at : at + 5]) for at in range(max(1, len(words) - 4))] for words in texts]
'''
CLUSTERS = '''
labels = list(range(len(shingles)))
def root(node):
    while labels[node] != node:
        labels[node] = node = labels[labels[node]]
    return node
for a, b in pairs:
    a, b = root(a), root(b)
    labels[max(a, b)] = min(a, b)
numpy.save(sys.argv[2], [root(node) for node in range(len(labels))])
'''
RENSA = '''
from rensa import RMinHash, RMinHashLSH
sketches = RMinHash.from_token_sets(shingles, num_perm=128, seed=42)
index = RMinHashLSH(threshold=0.8, num_perm=128, num_bands=16)
pairs = []
for number, sketch in enumerate(sketches):
    pairs += [(number, other) for other in index.query(sketch) if sketch.jaccard(sketches[other]) >= 0.8]
    index.insert(number, sketch)
'''
FAST_SKETCH = '''
from FastSketchLSH import FastSimilaritySketch, LSH, estimate_jaccard
sketches = FastSimilaritySketch(size=128).batch(shingles, num_threads=1)
index = LSH(num_perm=128, num_bands=16, num_threads=1)
index.insert(sketches)
found = enumerate(index.query(sketches))
pairs = [(a, b) for a, others in found for b in others if b < a and estimate_jaccard(sketches[a], sketches[b]) >= 0.8]
'''
# Its four stages, and all documents with their clusters. It starts this file again in each process.
DATATROVE = '''
import sys
from datatrove.executor import LocalPipelineExecutor
from datatrove.pipeline.dedup import MinhashDedupBuckets, MinhashDedupCluster, MinhashDedupFilter, MinhashDedupSignature
from datatrove.pipeline.dedup.minhash import MinhashConfig
from datatrove.pipeline.readers import JsonlReader
from datatrove.pipeline.writers import JsonlWriter
if __name__ == "__main__":
    source, out = sys.argv[1:]
    config = MinhashConfig(n_grams=5, num_buckets=14, hashes_per_bucket=8)
    read = JsonlReader(source, text_key="text", id_key="url")
    sign = LocalPipelineExecutor([read, MinhashDedupSignature(f"{out}/signatures", config=config)], tasks=1)
    bucket = LocalPipelineExecutor([MinhashDedupBuckets(f"{out}/signatures", f"{out}/buckets", config=config)], tasks=14, workers=1, depends=sign)
    components = MinhashDedupCluster(f"{out}/buckets", f"{out}/remove", config=config, save_cluster_id=True)
    cluster = LocalPipelineExecutor([components], tasks=1, depends=bucket)
    goes = JsonlWriter(f"{out}/goes", compression=None)
    keep = MinhashDedupFilter(f"{out}/remove", exclusion_writer=goes, load_cluster_ids=True)
    LocalPipelineExecutor([read, keep, JsonlWriter(f"{out}/stays", compression=None)], tasks=1, depends=cluster).run()
'''
# By the beginning of a program's name.
LINES = {"Daft": DAFT, "rensa": SHINGLES + RENSA + CLUSTERS, "FastSketchLSH": SHINGLES + FAST_SKETCH + CLUSTERS, "datatrove": DATATROVE}


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


def of_datatrove(folder, count):
    """The smallest document of each cluster; documents that are in none have no number of a cluster."""
    labels = numpy.arange(count)
    first = {}
    for part in ["stays", "goes"]:
        for path in sorted((folder / part).iterdir()):
            for line in open(path):
                document = json.loads(line)
                cluster = document["metadata"].get("minhash_cluster_id", -1)
                if cluster >= 0:
                    number = number_of(document["id"])
                    labels[number] = first.setdefault(cluster, number)
    return labels


def of_text_dedup(python, folder, count):
    """Its union of sets is an object of its own module."""
    code = "import json, pickle, sys; union = pickle.load(open(sys.argv[1], 'rb')); print(json.dumps([union.find(n) for n in range(int(sys.argv[2]))]))"
    return numpy.array(json.loads(subprocess.check_output([python, "-c", code, str(folder / "uf.pkl"), str(count)], text=True)))


def pairs_within(labels):
    sizes = numpy.unique(labels, return_counts=True)[1]
    return int((sizes * (sizes - 1) // 2).sum())


def run(name, command, folder):
    """CPU seconds, peak MB of one command; `None` if it fails."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, cwd=folder)
    error = process.stderr.read().decode(errors="replace")
    _, status, usage = os.wait4(process.pid, 0)
    if status != 0:
        print(f"{name} failed with {status}: {error.strip().splitlines()[-1:]}", file=sys.stderr)
        return None
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1000


def main():
    if sys.argv[1] == "--make":
        print(documents(sys.argv[2], int(sys.argv[3])))
        return
    nigh = str(pathlib.Path(sys.argv[1]).resolve())
    pythons = dict(argument.split("=", 1) for argument in sys.argv[2:] if "=" in argument)
    counts = [int(argument) for argument in sys.argv[2:] if "=" not in argument]
    count = counts[0] if counts else 20_000
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        source = folder / "documents.jsonl"
        # In a process of its own: the peak memory of a program that is started counts from that of this one.
        size = int(subprocess.check_output([sys.executable, __file__, "--make", str(source), str(count)]))
        recipes = {"daft": DAFT, "rensa": SHINGLES + RENSA + CLUSTERS, "fast-sketch": SHINGLES + FAST_SKETCH + CLUSTERS, "datatrove": DATATROVE}
        for name, recipe in recipes.items():
            (folder / f"recipe-{name}.py").write_text(recipe)

        def job(name, verify, accuracy):
            path = folder / f"{name}.toml"
            path.write_text(JOB.format(store=folder / name, input=source, verify=verify, accuracy=accuracy))
            return [nigh, "run", str(path), "--replace", "--quiet", "--workers", "1"]

        def of_recipe(name, out):
            return ["sh", "-c", f"rm -rf {folder}/{out} && exec {sys.executable} recipe-{name}.py {source} {folder}/{out}"]

        # text-dedup and datatrove write the documents that stay, too.
        export = [nigh, "export", str(folder / "exported"), "--workers", "1", "--out", str(folder / "kept")]
        exported = ["sh", "-c", f"rm -rf {folder}/kept && {shlex.join(job('exported', 'exact', 'false'))} && {shlex.join(export)}"]
        text_dedup = [str(pathlib.Path(pythons.get("text-dedup", sys.executable)).absolute()), "-m", "text_dedup.minhash", "--path", "json", "--data_files", str(source), "--split", "train"]
        text_dedup += ["--column", "text", "--output", str(folder / "text-dedup"), "--threshold", str(SIMILARITY), "--ngram", "5"]
        text_dedup += ["--hash_func", "xxh3", "--debug", "--num_proc", "1", "--cache_dir", str(folder / "cache")]
        programs = {
            "nigh, no check": (job("none", "none", "false"), lambda: of_nigh(folder / "none", count)),
            "nigh, estimate": (job("estimate", "estimate", "false"), lambda: of_nigh(folder / "estimate", count)),
            "nigh, exact": (job("exact", "exact", "false"), lambda: of_nigh(folder / "exact", count)),
            "nigh, exact, accuracy": (job("sampled", "exact", "true"), lambda: of_nigh(folder / "sampled", count)),
            "nigh, exact, export": (exported, lambda: of_nigh(folder / "exported", count)),
            "Daft, recipe": (of_recipe("daft", "daft"), lambda: of_daft(folder / "daft", count)),
            "rensa": (of_recipe("rensa", "rensa.npy"), lambda: numpy.load(folder / "rensa.npy")),
            "FastSketchLSH": (of_recipe("fast-sketch", "fast-sketch.npy"), lambda: numpy.load(folder / "fast-sketch.npy")),
            "datatrove": (of_recipe("datatrove", "datatrove"), lambda: of_datatrove(folder / "datatrove", count)),
            "text-dedup 0.4.0": (text_dedup, lambda: of_text_dedup(text_dedup[0], folder / "text-dedup", count)),
        }
        # All programs run before this one takes memory for the truth.
        measured = {}
        for name, (command, labels) in programs.items():
            runs = [run(name, command, folder) for _ in range(1 if name in SLOW else ROUNDS)]
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
            code = next((recipe for start, recipe in LINES.items() if name.startswith(start)), "")
            lines = sum(1 for line in code.splitlines() if line.strip())
            print(
                f"{name:<22} {cpu:7.2f} CPU s {peak:7.0f} MB  {len(numpy.unique(labels)):6} stay  recall {recall:.4f}  precision {both / max(within, 1):.4f}  largest cluster {largest}  {lines} lines"
            )


main()
