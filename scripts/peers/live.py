#!/usr/bin/env python3
"""`nigh live`, datasketch's MinHashLSH over Redis, and the indexes in memory of gaoya and rensa on the same documents, each answered as it
comes: documents a second of each.

    apt-get install redis-server
    pip install datasketch redis gaoya rensa
    cargo build --release
    scripts/peers/live.py target/release/nigh [DOCUMENTS]

The documents are made up, the same each time: half of them are texts of their own, half are copies of one of those with one word in 250
changed. All have 84 hash functions of shingles of five words, in 14 bands of 6: so the same share of pairs of each similarity is found, and
half of those at 0.60. (rensa makes its numbers from one permutation, and gaoya leaves out what it estimates to be less than 0.6 similar.)

A batch of datasketch is 100 documents: it makes the MinHash of each and asks for those that share a band, and puts the batch into Redis by
one insertion session. nigh takes the same batches by HTTP, and answers each document with its cluster, too. Then single documents: each is
answered before the next one is sent. Redis keeps all in memory here, without a log (its default); nigh writes a journal to the disk and
syncs it before each answer. The client of both is this process: its CPU time is in the figures of datasketch, and
for nigh it has the making of JSON only.
"""

import http.client, json, os, pathlib, random, re, shutil, socket, subprocess, sys, tempfile, time

FEATURES, BANDS, ROWS, WORDS = 84, 14, 6, 5
BATCH, SINGLE = 100, 500
JOB = f"""[cluster]
[cluster.read.columns]
id = "id"
[cluster.method]
features = {FEATURES}
supershingles = {BANDS}
agreements = 1
words = {WORDS}
"""


def documents(count):
    rng = random.Random(1)
    vocabulary = ["".join(rng.choices("etaoinshrdlu", k=rng.randint(2, 10))) for _ in range(30_000)]
    weights = [1 / (rank + 5) for rank in range(len(vocabulary))]
    originals = [rng.choices(vocabulary, weights, k=rng.randint(250, 1090)) for _ in range(count // 2)]
    for number in range(count):
        words = originals[number % len(originals)]
        if number >= len(originals):
            words = [rng.choice(vocabulary) if rng.random() < 0.004 else word for word in words]
        yield str(number), " ".join(words)


def in_batches(all, size):
    return [all[at : at + size] for at in range(0, len(all), size)]


class Nigh:
    def __init__(self, program, folder):
        # A store of the method: with one document, which is like no other one.
        (folder / "job.toml").write_text(JOB)
        (folder / "first.jsonl").write_text(json.dumps({"id": "first", "text": "the first document is like no other one here"}))
        store = str(folder / "store")
        run = [program, "run", str(folder / "job.toml"), "-q", "--store", store, "--week", "2024-01-08"]
        subprocess.run([*run, "--input", str(folder / "first.jsonl")], check=True, stdout=subprocess.DEVNULL)
        with (folder / "log").open("w") as log:
            command = [program, "live", store, "--workers", "1", "--listen", "127.0.0.1:0"]
            self.child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=log)
        while not (found := re.search(r"listening at http://127\.0\.0\.1:(\d+)", (folder / "log").read_text())):
            if self.child.poll() is not None:
                sys.exit((folder / "log").read_text())
            time.sleep(0.01)
        self.client = http.client.HTTPConnection("127.0.0.1", int(found[1]))

    def add(self, batch):
        """The documents of a batch that are like another one."""
        body = b"".join(json.dumps({"id": name, "text": text}).encode() + b"\n" for name, text in batch)
        self.client.request("POST", "/documents", body)
        answer = self.client.getresponse()
        lines = [json.loads(line) for line in answer.read().splitlines()]
        assert answer.status == 200, lines
        return sum(bool(line["size"] > 1) for line in lines)


class Datasketch:
    def __init__(self, folder):
        import redis
        from datasketch import MinHash, MinHashLSH

        self.minhash = MinHash
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        command = ["redis-server", "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir", str(folder)]
        self.child = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        client = redis.Redis(port=port)
        for _ in range(500):
            try:
                client.ping()
                break
            except redis.ConnectionError:
                time.sleep(0.01)
        storage = {"type": "redis", "redis": {"host": "127.0.0.1", "port": port}, "basename": b"peers"}
        self.lsh = MinHashLSH(num_perm=FEATURES, params=(BANDS, ROWS), storage_config=storage)

    def sketch(self, text):
        words = text.split(" ")
        sketch = self.minhash(num_perm=FEATURES)
        sketch.update_batch({" ".join(words[at : at + WORDS]).encode() for at in range(max(1, len(words) - WORDS + 1))})
        return sketch

    def add(self, batch):
        sketches = [(name, self.sketch(text)) for name, text in batch]
        like = sum(bool(self.lsh.query(sketch)) for _, sketch in sketches)
        with self.lsh.insertion_session(buffer_size=len(batch)) as session:
            for name, sketch in sketches:
                session.insert(name, sketch, check_duplication=False)
        return like


class Gaoya:
    child = None

    def __init__(self, folder):
        from gaoya.minhash import MinHashStringIndex

        self.index = MinHashStringIndex(32, 0.6, BANDS, ROWS, None, "word", False, (WORDS, WORDS))

    def add(self, batch):
        like = 0
        for name, text in batch:
            like += bool(self.index.query(text))
            self.index.insert_document(int(name), text)
        return like


class Rensa:
    child = None

    def __init__(self, folder):
        from rensa import RMinHash, RMinHashLSH

        self.minhash, self.lsh = RMinHash, RMinHashLSH(threshold=0.6, num_perm=FEATURES, num_bands=BANDS)

    def add(self, batch):
        like = 0
        for name, text in batch:
            words = text.split(" ")
            sketch = self.minhash(num_perm=FEATURES, seed=1)
            sketch.update([" ".join(words[at : at + WORDS]) for at in range(max(1, len(words) - WORDS + 1))])
            like += bool(self.lsh.query(sketch))
            self.lsh.insert(int(name), sketch)
        return like


def cpu(child):
    """CPU seconds of this process, and of the one that it asks."""
    if child is None:
        return time.process_time()
    return time.process_time() + of_process(child.pid)


def of_process(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(") ", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def main():
    program = str(pathlib.Path(sys.argv[1]).resolve())
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 10_000
    if shutil.which("redis-server") is None:
        sys.exit("redis-server is not installed: apt-get install redis-server")
    all = list(documents(count))
    batches = in_batches(all[: count - SINGLE], BATCH) + in_batches(all[count - SINGLE :], 1)
    single = len(batches) - SINGLE
    print(f"{count} documents, {sum(len(text) for _, text in all) / 1e6:.1f} MB of text; batches of {BATCH}, then {SINGLE} single ones")
    print(f"{'':<22} {'a second':>9} {'CPU s':>7} {'single, ms':>11} {'like others':>12}")
    with tempfile.TemporaryDirectory() as folder:
        peers = [("nigh live", lambda at: Nigh(program, at)), ("gaoya", Gaoya), ("rensa", Rensa), ("datasketch and Redis", Datasketch)]
        for name, start in peers:
            own = pathlib.Path(folder) / name.split()[0]
            own.mkdir()
            peer = start(own)
            try:
                before = cpu(peer.child)
                begun = time.monotonic()
                like = sum(map(peer.add, batches[:single]))
                seconds = time.monotonic() - begun
                spent = cpu(peer.child) - before
                begun = time.monotonic()
                like += sum(map(peer.add, batches[single:]))
                each = (time.monotonic() - begun) / SINGLE
            finally:
                if peer.child:
                    peer.child.terminate()
                    peer.child.wait()
            print(f"{name:<22} {(count - SINGLE) / seconds:9.0f} {spent:7.1f} {1000 * each:11.2f} {like:12}", flush=True)


main()
