#!/usr/bin/env python3
"""nigh, Daft and gaoya on the same documents, from JSONL to clusters on disk: CPU seconds and peak memory of each.

    cargo build --release
    cargo build --release --manifest-path scripts/peers/Cargo.toml --bin gaoya_clusters
    pip install daft
    scripts/peers/compare.py target/release/nigh scripts/peers/target/release/gaoya_clusters [DOCUMENTS]

The documents are made up, the same each time: half of them are texts of their own, half are copies of one of those with one
word in 250 changed. Daft's part is its MinHash recipe: normalize, minhash, bands, and components by label propagation
with joins. The programs run one after the other, three times each; the median is printed.
"""

import json, os, pathlib, random, statistics, subprocess, sys, tempfile

ROUNDS = 3
JOB = """[cluster]
week = "2024-01-08"
store = "{store}"
input = ["{input}"]
"""
DAFT = '''
import sys, daft
from daft import col
from daft.functions import chunk, columns_min, minhash, monotonically_increasing_id, normalize
daft.set_runner_native()
pages = daft.read_json(sys.argv[1]).with_column("node", monotonically_increasing_id()).collect()
text = normalize(col("text"), remove_punct=True, lowercase=False, nfd_unicode=False, white_space=True)
hashed = pages.select("node", minhash(text, num_hashes=84, ngram_size=5, seed=1, hash_function="xxhash").alias("hashes"))
BANDS, ROWS = 14, 6
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
    rng = random.Random(1)
    vocabulary = ["".join(rng.choices("etaoinshrdlu", k=rng.randint(2, 10))) for _ in range(30_000)]
    weights = [1 / (rank + 5) for rank in range(len(vocabulary))]
    originals = [rng.choices(vocabulary, weights, k=rng.randint(250, 1090)) for _ in range(count // 2)]
    size = 0
    with open(path, "w") as out:
        for number in range(count):
            words = originals[number % len(originals)]
            if number >= len(originals):
                words = [rng.choice(vocabulary) if rng.random() < 0.004 else word for word in words]
            text = " ".join(words)
            size += len(text)
            out.write(json.dumps({"url": f"http://host{number % 97}.example/{number}", "text": text}) + "\n")
    return size


def run(command):
    """CPU seconds, peak MB of one command."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    error = process.stderr.read().decode(errors="replace")
    _, status, usage = os.wait4(process.pid, 0)
    if status != 0:
        sys.exit(f"{command[0]} failed:\n{error}")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1000


def main():
    if sys.argv[1] == "--make":
        print(documents(sys.argv[2], int(sys.argv[3])))
        return
    nigh, gaoya = sys.argv[1:3]
    count = int(sys.argv[3]) if len(sys.argv) > 3 else 20_000
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        source = folder / "documents.jsonl"
        # In a process of its own: the peak memory of a program that is started counts from that of this one.
        size = int(subprocess.check_output([sys.executable, __file__, "--make", str(source), str(count)]))
        print(f"{count} documents, {size / 1e6:.1f} MB of text")
        (folder / "recipe.py").write_text(DAFT)

        def job(name, more=""):
            path = folder / f"{name}.toml"
            path.write_text(JOB.format(store=folder / name, input=source) + more)
            return [nigh, "run", str(path), "--replace", "--quiet"]

        programs = {
            "nigh": job("plain"),
            "nigh, fold-case": job("folded", "[cluster.method]\nfold-case = true\n"),
            "Daft": [sys.executable, str(folder / "recipe.py"), str(source), str(folder / "daft")],
            "gaoya": [gaoya, str(source), str(folder / "gaoya.tsv")],
        }
        for name, command in programs.items():
            runs = [run(command) for _ in range(ROUNDS)]
            cpu, peak = (statistics.median(values) for values in zip(*runs))
            print(f"{name:<16} {cpu:6.2f} CPU s {size / 1e6 / cpu:7.1f} MB/s {peak:7.0f} MB peak")


main()
