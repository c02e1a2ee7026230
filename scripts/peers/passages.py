#!/usr/bin/env python3
"""The repeated passages of nigh beside those of a suffix array, and beside dolma's Bloom filter of n-grams.

    cargo build --release
    pip install numpy pyarrow pydivsufsort dolma
    scripts/peers/passages.py target/release/nigh [MEGABYTES] [memory=2GiB] [workers=2] [without=suffix-array,dolma]

The texts are made up, the same each time: words that are as frequent as those of a language, in lines. Into three of ten a passage of 20 to 400
words of an earlier text is copied, wherever it begins and ends; into one of twenty one of its own; and into one of twenty one of 20 passages of
60 to 150 words.

A window is 50 words that follow each other. The suffix array is that of libdivsufsort, over the numbers of words, with the common prefixes of
neighbours: a window is repeated if it has 50 words in common with the one before or behind it, and the first one of those that are equal stays.
Compared are all words that stand in a repeated window, and those that go: the words of windows that stand before, too, except where such a
window overlaps the first one. "The same words" is said only if no word differs.
dolma compares paragraphs, here lines: one goes if at least half of its n-grams of 50 words were seen before; lines of fewer words are passed over.

Printed for each program: CPU and clock seconds, peak memory of its largest process, and words. A program that is not installed is left out.
"""

import gzip, importlib.util, json, os, pathlib, subprocess, sys, tempfile, time

import numpy

WORDS = 50
VOCABULARY = 30_000
CLUSTER = """[cluster]
week = "2024-01-08"
store = "{folder}/store"
input = ["{folder}/documents/*.jsonl.gz"]
accuracy = false
[cluster.read.columns]
id = "id"
text = "text"
[cluster.method]
similarity = 0.8
verify = "exact"
"""
PASSAGES = """[passages]
store = "{folder}/store"
words = {words}
documents = "all"
"""


def texts(count):
    """Word numbers and, of each, whether a line ends behind it."""
    random = numpy.random.default_rng(1)
    weights = 1 / (numpy.arange(VOCABULARY) + 5)
    cumulated = numpy.cumsum(weights / weights.sum())

    def fresh(length):
        words = numpy.searchsorted(cumulated, random.random(length)).clip(max=VOCABULARY - 1).astype(numpy.uint32)
        return words, random.random(length) < 1 / 60

    popular = [fresh(int(random.integers(60, 151))) for _ in range(20)]
    recent = []
    for _ in range(count):
        words, ends = fresh(int(random.integers(100, 901)))

        def insert(passage):
            at = int(random.integers(0, len(words) + 1))
            return numpy.insert(words, at, passage[0]), numpy.insert(ends, at, passage[1])

        def part(text):
            length = min(int(random.integers(20, 401)), len(text[0]))
            begin = int(random.integers(0, len(text[0]) - length + 1))
            return text[0][begin : begin + length], text[1][begin : begin + length]

        if recent and random.random() < 0.3:
            words, ends = insert(part(recent[int(random.integers(0, len(recent)))]))
        if random.random() < 0.05:
            words, ends = insert(part((words, ends)))
        if random.random() < 0.05:
            words, ends = insert(popular[int(random.integers(0, len(popular)))])
        # A passage may be of any of the last thousand texts.
        recent = recent[-999:] + [(words, ends)]
        yield words, ends


def vocabulary():
    random = numpy.random.default_rng(2)
    letters = numpy.array(list("etaoinshrdlu"))
    made = {}
    while len(made) < VOCABULARY:
        made.setdefault("".join(random.choice(letters, int(random.integers(2, 11)))))
    return list(made)


def make(folder, megabytes):
    """Writes texts of so many MB in 16 files; returns how many, and their bytes."""
    names = vocabulary()
    separated = [numpy.array([word + end for word in names], dtype=object) for end in (" ", "\n")]
    (folder / "documents").mkdir()
    files = [gzip.open(folder / "documents" / f"{part:02}.jsonl.gz", "wt", compresslevel=1) for part in range(16)]
    number = size = 0
    for words, ends in texts(1 << 40):
        text = "".join(numpy.where(ends, separated[1][words], separated[0][words])).strip()
        # Files in order: the first texts are in the first file.
        part = min(15, size * 16 // (megabytes * 1_000_000))
        files[part].write(json.dumps({"id": str(number), "text": text, "source": "made"}) + "\n")
        number, size = number + 1, size + len(text)
        if size >= megabytes * 1_000_000:
            break
    for file in files:
        file.close()
    return number, size


def run(command, folder):
    """CPU and clock seconds, and peak MB, of one command."""
    began = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, cwd=folder)
    error = process.stderr.read().decode(errors="replace")
    _, status, usage = os.wait4(process.pid, 0)
    if status != 0:
        sys.exit(f"{command[0]} failed with {status}: {error.strip()[-2000:]}")
    return usage.ru_utime + usage.ru_stime, time.monotonic() - began, usage.ru_maxrss / 1000


def of_nigh(folder, starts):
    """Which words stand in a passage, and which are a copy."""
    import pyarrow.parquet

    documents = pyarrow.parquet.read_table(folder / "store" / "documents", columns=["doc", "id"])
    number, all_docs = documents["id"].to_numpy(zero_copy_only=False).astype(numpy.int64), documents["doc"].to_numpy()
    order = numpy.argsort(all_docs)
    columns = ["doc", "word", "words", "copied"]
    rows = pyarrow.parquet.read_table(folder / "store" / "passages" / "passages", columns=columns)
    doc, word, words, copied = (rows[column].to_numpy().astype(numpy.int64) for column in columns)
    end = starts[number[order[numpy.searchsorted(all_docs, doc, sorter=order)]]] + word + words
    return covered(end - words, end, int(starts[-1])), covered(end - copied, end, int(starts[-1]))


def covered(begins, ends, length):
    """Whether each of so many words stands in one of the runs."""
    depth = numpy.zeros(length + 1, dtype=numpy.int32)
    numpy.add.at(depth, begins, 1)
    numpy.add.at(depth, ends, -1)
    return numpy.cumsum(depth)[:-1] > 0


def suffix_array(out, folder):
    """The same of a suffix array; written for `main`, which measures this as a process of its own."""
    from pydivsufsort import divsufsort, kasai

    number = {word: at for at, word in enumerate(vocabulary())}
    parts, places, length = [], [], 0
    for path in sorted((pathlib.Path(folder) / "documents").iterdir()):
        for line in gzip.open(path, "rt"):
            # A number of its own behind each text: no window goes on there.
            words = [number[word] for word in json.loads(line)["text"].split()] + [VOCABULARY + len(parts)]
            parts.append(numpy.array(words, dtype=numpy.uint32))
            places.append(length)
            length += len(words)
    all_words = numpy.concatenate(parts)
    del parts
    order = divsufsort(all_words)
    common = kasai(all_words, order)
    # `common[i]` is of the suffixes `order[i]` and `order[i + 1]`.
    goes_on = numpy.asarray(common[: length - 1] if len(common) >= length else common) >= WORDS
    group = numpy.r_[0, numpy.cumsum(~goes_on)]
    begins = numpy.flatnonzero(numpy.r_[True, ~goes_on])
    first = numpy.minimum.reduceat(order, begins)[group]
    sizes = numpy.diff(numpy.r_[begins, length])[group]
    repeated, is_copy = order[sizes > 1], first != order
    copies, before = order[is_copy], first[is_copy]
    # What of a copy stands in its first occurrence stays.
    runs = [covered(repeated, repeated + WORDS, length), covered(numpy.maximum(copies, before + WORDS), copies + WORDS, length)]
    kept = numpy.ones(length, dtype=bool)
    kept[numpy.r_[places[1:], length] - 1] = False
    numpy.savez(out, repeated=runs[0][kept], copies=runs[1][kept], starts=numpy.r_[places, length] - numpy.arange(len(places) + 1))


def of_dolma(folder):
    """Which words are in lines that go."""
    goes = []
    for path in sorted((folder / "documents").iterdir()):
        attributes = gzip.open(folder / "attributes" / "lines" / path.name, "rt")
        for line, marks in zip(gzip.open(path, "rt"), attributes, strict=True):
            text, marks = json.loads(line)["text"], json.loads(marks)
            # One character stands between two words.
            words = numpy.fromiter(map(len, text.split()), dtype=numpy.int64)
            begins = numpy.cumsum(words + 1) - words - 1
            of_text = numpy.zeros(len(words), dtype=bool)
            for begin, end, score in marks["attributes"]["lines"]:
                of_text |= (score > 0) & (begins >= begin) & (begins < end)
            goes.append(of_text)
    return numpy.concatenate(goes)


def main():
    if sys.argv[1] == "--make":
        return print(*make(pathlib.Path(sys.argv[2]), int(sys.argv[3])))
    if sys.argv[1] == "--suffix-array":
        return suffix_array(*sys.argv[2:])
    nigh = str(pathlib.Path(sys.argv[1]).resolve())
    options = dict(argument.split("=", 1) for argument in sys.argv[2:] if "=" in argument)
    megabytes = next((int(argument) for argument in sys.argv[2:] if "=" not in argument), 100)
    without = options.get("without", "").split(",")
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        # In a process of its own: the peak memory of a program that is started counts from that of this one.
        made = subprocess.check_output([sys.executable, __file__, "--make", str(folder), str(megabytes)], text=True)
        count, size = map(int, made.split())
        print(f"{count} texts, {size / 1e6:.1f} MB", flush=True)
        for name, job in [("cluster", CLUSTER), ("passages", PASSAGES)]:
            (folder / f"{name}.toml").write_text(job.format(folder=folder, words=WORDS))
        (folder / "memory.toml").write_text(f'memory = "{options.get("memory", "2GiB")}"\n')
        flags = ["--quiet", "--workers", options.get("workers", "2"), "--config", "memory.toml"]
        measured = {f"nigh run, {name}": run([nigh, "run", f"{name}.toml", *flags], folder) for name in ["cluster", "passages"]}
        words = {}
        if "suffix-array" not in without and importlib.util.find_spec("pydivsufsort"):
            out = folder / "suffixes.npz"
            measured["suffix array"] = run([sys.executable, __file__, "--suffix-array", str(out), str(folder)], folder)
            found = numpy.load(out)
            repeated, copies = of_nigh(folder, found["starts"])
            words["suffix array"] = [int(found["repeated"].sum()), int(found["copies"].sum())]
            words["nigh run, passages"] = [int(repeated.sum()), int(copies.sum())]
            differ = int((repeated != found["repeated"]).sum()), int((copies != found["copies"]).sum())
        dolma = pathlib.Path(sys.executable).with_name("dolma")
        if "dolma" not in without and dolma.exists():
            config = {
                "documents": [f"{folder}/documents/*.jsonl.gz"],
                "dedupe": {
                    "name": "lines",
                    "paragraphs": {
                        "attribute_name": "lines",
                        "by_ngram": {"ngram_length": WORDS, "stride": 1, "overlap_threshold": 0.5, "skip_short_paragraphs": True},
                    },
                    "skip_empty": True,
                },
                "bloom_filter": {
                    "file": f"{folder}/bloom.bin",
                    "read_only": False,
                    "estimated_doc_count": size // 6,
                    "desired_false_positive_rate": 0.0001,
                },
                "processes": int(options.get("workers", "2")),
                "work_dir": {"input": f"{folder}/in", "output": f"{folder}/out"},
            }
            (folder / "dolma.json").write_text(json.dumps(config))
            measured["dolma, n-grams"] = run([str(dolma), "-c", "dolma.json", "dedupe"], folder)
            goes = of_dolma(folder)
            words["dolma, n-grams"] = [None, int(goes.sum())]
        for name, (cpu, clock, peak) in measured.items():
            said = ", ".join(f"{number:,} words {what}" for number, what in zip(words.get(name, []), ["repeated", "go"]) if number is not None)
            print(f"{name:<20} {cpu:8.1f} CPU s {clock:8.1f} s {peak:7.0f} MB  {said}")
        if "suffix array" in measured:
            print("nigh and the suffix array: " + ("the same words" if differ == (0, 0) else f"{differ[0]} and {differ[1]} words differ"))
            if "dolma, n-grams" in measured:
                both = int((goes & found["copies"]).sum())
                print(f"of the words that go by dolma {both:,} go by the suffix array, too")


if __name__ == "__main__":
    main()
