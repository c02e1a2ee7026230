#!/usr/bin/env python3
"""Random histories of `nigh live`, each step held against a run over what is there.

    scripts/live_histories.py --nigh target/release/nigh --seeds 0..300
    scripts/live_histories.py --nigh target/release/nigh --seeds 0..100 --similarity 0.8 --verify exact
    scripts/live_histories.py --nigh target/release/nigh --seeds 0..100 --processes 2
    scripts/live_histories.py --nigh target/release/nigh --seeds 17 --keep histories --verbose

A history is a store of ids or of URLs, empty or with a week of a small or the usual method, and some steps, drawn by its seed: batches that
insert, replace, delete and repeat documents, in any order; deletions by name; batches that are sent again, with the same or other lines;
batches that are refused; commits, on request and by --commit-every; ends by SIGTERM and SIGKILL, also while a batch or a commit is under
way, after which an unanswered batch is sent again. Each process that starts has 1, 2 or 4 workers. With --verify each store has a week, whose
method verifies the clusters. With --processes others have a part of the keys, and these are killed, too, or stopped for a moment.

After each step
  * the cluster and the level of each document are those of `nigh run` over what is there, with one worker, in a store of its own;
  * the ids of clusters, and the changes that `/changes` gives, are those of a slow twin, which compares all clusters before and after; their
    numbers go on over ends, kills and restarts;
  * a client that knows clusters by these changes only knows those that are there, or is told to read them again: after an end or a kill,
    where a commit was made or was under way;
  * if nothing is pending, clusters have the ids of the tables; so they have after a kill if the commands of a commit had ended;
  * the first document of each cluster is the canonical one;
  * a batch that is sent again has the answers that it got.
After a commit the clusters are the same, and `rename` says which ids they have now.

Needs pyarrow. Exit codes: 0 all histories agree, 1 some do not (each with the command that shows it again), 2 wrong use, 4 something is
not installed.
"""

import argparse
import concurrent.futures
import http.client
import importlib.util
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from pathlib import Path
from urllib.parse import quote

# Small methods besides that of the study: features, supershingles, agreements, words.
METHODS = [(84, 6, 2, 5), (84, 6, 2, 3), (12, 6, 2, 2), (12, 6, 3, 2), (16, 2, 2, 2), (24, 12, 2, 3)]
VOCABULARY = [a + b for a in ("ka", "lo", "mi", "ne", "ru", "sa", "to") for b in ("be", "da", "fi", "go", "hu", "py", "wa")]
WORKERS = [1, 2, 4]
TIMEOUT = 120
WEEK = "2024-01-08"


class Failure(Exception):
    """Clusters that are not as they should be, or an answer or end that should not be."""


class Broken(Exception):
    """A connection that broke off: the process was killed."""


# --- A process.


class Live:
    """`nigh live` on a store, until it is ended."""

    def __init__(self, nigh, store, flags, folder):
        # A command of a commit that was killed may still have the lock.
        deadline = time.monotonic() + TIMEOUT
        while True:
            self.log = folder / "live.log"
            with self.log.open("w") as log:
                command = [nigh, "live", str(store), "--listen", "127.0.0.1:0", *flags]
                self.child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=log, stdin=subprocess.DEVNULL)
            while self.child.poll() is None:
                found = re.search(r"listening at http://127\.0\.0\.1:(\d+)", self.log.read_text())
                if found:
                    self.port = int(found[1])
                    self.connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=TIMEOUT)
                    return
                if time.monotonic() > deadline:
                    self.end(signal.SIGKILL)
                    raise Failure("nigh live does not start")
                time.sleep(0.005)
            text = self.log.read_text()
            if "another run writes" not in text or time.monotonic() > deadline:
                raise Failure(f"nigh live ended with {self.child.returncode}: {text}")
            time.sleep(0.05)

    def send(self, method, path, body=b"", headers=None):
        """The status and the body of an answer."""
        try:
            self.connection.request(method, path, body, headers or {})
            response = self.connection.getresponse()
            return response.status, response.read()
        except (OSError, http.client.HTTPException) as error:
            self.connection.close()
            raise Broken(f"{method} {path}: {error!r}") from error

    def lines(self, method, path, body=b"", headers=None):
        status, answer = self.send(method, path, body, headers)
        if status != 200:
            raise Failure(f"{method} {path}: {status} {answer.decode(errors='replace')}")
        return [json.loads(line) for line in answer.splitlines()]

    def get(self, path):
        return self.lines("GET", path)[0]

    def metric(self, name):
        _, text = self.send("GET", "/metrics")
        return int(re.search(rf"^{name} (\d+)$", text.decode(), re.M)[1])

    def end(self, how):
        self.connection.close() if hasattr(self, "connection") else None
        self.child.send_signal(how)
        try:
            self.child.wait(TIMEOUT)
        except subprocess.TimeoutExpired:
            self.child.kill()
            self.child.wait()
            raise Failure("it does not end by SIGTERM") from None


# --- The slow twin of ids and changes.


def named(before, now, rank, new_id):
    """The clusters by id after a batch, and the changes, by the rule of the weeks of a store. `before` has those before it by id; `now` the
    sets of names now. Every cluster is compared with every other one."""
    root = lambda documents: min(rank[name] for name in documents)
    now = sorted((documents for documents in now if len(documents) > 1), key=root)
    shared = {(id, at): len(had & documents) for id, had in before.items() for at, documents in enumerate(now)}
    successor = {}
    for id in before:
        places = [at for at in range(len(now)) if shared[id, at]]
        successor[id] = max(places, key=lambda at: (shared[id, at], -at), default=None)
    ids = []
    for at in range(len(now)):
        succeeded = [id for id in before if successor[id] == at]
        ids.append(max(succeeded, key=lambda id: (shared[id, at], id > 0, -abs(id))) if succeeded else new_id(now[at]))
    changes = []

    def change(event, cluster, into, was, after, documents):
        changes.append({"event": event, "cluster": cluster, "into": into, "before": was, "after": after, "documents": documents})

    for at, id in enumerate(ids):
        if not any(shared[old, at] for old in before):
            change("birth", id, None, 0, len(now[at]), len(now[at]))
    for id, had in before.items():
        if successor[id] is None:
            change("death", id, None, len(had), 0, len(had))
        for at, other in enumerate(ids):
            sizes = len(had), len(now[at])
            if not shared[id, at]:
                continue
            if other != id:
                change("merge" if successor[id] == at else "split", id, other, *sizes, shared[id, at])
            elif sizes[0] != sizes[1]:
                change("grow" if sizes[0] < sizes[1] else "shrink", id, None, *sizes, abs(sizes[1] - sizes[0]))
    changes.sort(key=lambda of: (of["cluster"], of["event"], of["into"] is not None, of["into"] or 0))
    return dict(zip(ids, now)), changes


# --- A history.


class History:
    def __init__(self, seed, args, folder):
        self.rng = random.Random(seed)
        self.args, self.folder, self.log = args, folder, []
        self.store = folder / "store"
        self.by = self.rng.choice(["id", "id", "url"])
        self.names = self.rng.choice([8, 20, 40, 80])
        self.words = self.rng.choice([12, 60, 200])
        self.method = None
        self.there = {}  # By name: its line.
        self.came, self.next = {}, 0  # By name: when it came.
        self.texts = []
        self.sent = []  # Batches: id, body, answer.
        self.ids = {}  # The clusters by id, of two documents or more.
        self.used = set()  # All ids that clusters had.
        self.given = 0  # None after a commit that was killed: the tables do not say how many ids were given.
        self.number = 0  # Of the last change that was seen, by whichever process.
        self.known = {}  # The sizes of clusters by id, as these changes say.
        self.is_new = True  # Whether a process has started since the last check, or another one was ended.
        self.has_gap = False  # Whether changes after that number may be gone, and numbers left out: a commit was made.
        self.left_out = False  # Whether numbers may be left out after that number: the same, also if that was read after the commit.
        self.committed = 0  # Commits of the store at the last check.
        self.commits = 0
        self.runs = self.kills = 0
        self.live = None

    def say(self, text):
        self.log.append(text)
        if self.args.verbose:
            print(f"  {text}", flush=True)

    # What documents are.

    def name(self):
        number = self.rng.randrange(self.names)
        return str(number) if self.by == "id" else f"http://{'ab'[number % 2]}.example/{number}"

    def text(self):
        rng = self.rng
        kind = rng.random()
        if kind < 0.06:
            return rng.choice(["", " - ", "one"])
        if kind < 0.25 and self.texts:
            return rng.choice(self.texts)
        if kind < 0.8 and self.texts:
            # A few words changed: so there are chains of similar texts.
            words = rng.choice(self.texts[-20:]).split()
            for _ in range(rng.randint(1, 1 + len(words) // 40)):
                words[rng.randrange(len(words))] = rng.choice(VOCABULARY)
        else:
            words = rng.choices(VOCABULARY, k=rng.randint(self.words // 2, self.words))
        text = " ".join(words)
        self.texts.append(text)
        return text

    def line(self):
        rng, name = self.rng, self.name()
        line = {self.by: int(name) if self.by == "id" and rng.random() < 0.5 else name}
        kind = rng.random()
        if kind < 0.25:
            return line | {"delete": True}
        return line | ({"html": f"<title>t</title><p>{self.text()}</p>"} if kind < 0.4 else {"text": self.text()})

    def batch(self):
        lines = [self.line() for _ in range(self.rng.choice([1, 1, 3, 6, 12, 30]))]
        # The same line again, or another one of the same document.
        lines += [self.rng.choice(lines) for _ in range(self.rng.randint(0, 2))]
        self.rng.shuffle(lines)
        return lines

    # Processes.

    def start(self):
        self.live = None
        workers = self.rng.choice(WORKERS)
        flags = ["--workers", str(workers)]
        flags += ["--by", self.by] if self.rng.random() < 0.3 or not self.sent else []
        flags += ["--processes", str(self.args.processes)] if self.args.processes > 1 else []
        self.commits_itself = self.rng.random() < 0.2
        flags += ["--commit-every", str(self.rng.choice([10, 40]))] if self.commits_itself else []
        self.say(f"start {' '.join(flags)}")
        self.live = Live(self.args.nigh, self.store, flags, self.folder)
        # It may commit at once what is in the journal.
        self.commits = 0
        self.is_new = True

    def end(self, how):
        self.say(f"end by {how.name}")
        self.live.end(how)
        self.live = None

    def last_number(self):
        """The number of the last change that the process has."""
        since = 0
        while True:
            status, answer = self.live.send("GET", f"/changes?since={since}&most=10000")
            if status == 410:
                since = int(re.search(rb"before number (\d+) ", answer)[1]) - 1
            elif not answer:
                return since
            else:
                since = json.loads(answer.splitlines()[-1])["number"]

    def kill_later(self, most):
        seconds = self.rng.random() * most
        child = self.live.child
        timer = threading.Timer(seconds, child.kill)
        timer.start()
        self.say(f"kill after {seconds * 1000:.0f} ms")
        self.kills += 1
        return timer

    # Other processes, which have parts of the keys.

    def others(self):
        """Their process ids."""
        found = []
        for path in Path("/proc").glob("[0-9]*"):
            try:
                parent = int((path / "stat").read_text().rsplit(") ", 1)[1].split()[1])
                if parent == self.live.child.pid and b"live-keys" in (path / "cmdline").read_bytes():
                    found.append(int(path.name))
            except (OSError, ValueError, IndexError):
                pass  # It has ended.
        return sorted(found)

    def end_other(self):
        """Kills one of them, or stops it for a moment."""
        others = self.others()
        if others:
            try:
                if self.end_by == signal.SIGSTOP:
                    os.kill(others[self.end_place % len(others)], signal.SIGSTOP)
                    time.sleep(0.02)
                    os.kill(others[self.end_place % len(others)], signal.SIGCONT)
                else:
                    os.kill(others[self.end_place % len(others)], signal.SIGKILL)
            except ProcessLookupError:
                pass

    def end_other_later(self, most):
        seconds = self.rng.random() * most
        # The first process reads the store again.
        self.is_new = True
        self.end_by, self.end_place = self.rng.choice([signal.SIGKILL, signal.SIGKILL, signal.SIGSTOP]), self.rng.randrange(8)
        timer = threading.Timer(seconds, self.end_other)
        timer.start()
        self.say(f"{self.end_by.name} of another process after {seconds * 1000:.0f} ms")
        self.kills += 1
        return timer

    def patiently(self, method, path, body=b"", headers=None):
        """The lines of an answer, once the other processes run."""
        deadline = time.monotonic() + TIMEOUT
        while True:
            status, answer = self.live.send(method, path, body, headers)
            if status == 200:
                return [json.loads(line) for line in answer.splitlines()]
            if status != 503 or b"process" not in answer or time.monotonic() > deadline:
                raise Failure(f"{method} {path}: {status} {answer.decode(errors='replace')}")
            self.say(f"refused: {answer.decode().strip()}")
            time.sleep(0.02)

    def settle(self):
        """Waits until the other processes run, whichever was killed."""
        self.patiently("POST", "/similar", json.dumps({"text": "ka lo mi"}).encode())

    # Steps.

    def apply(self, lines):
        last = {}
        for place, line in enumerate(lines):
            last[str(line[self.by])] = (place, line)
        for name, (place, line) in sorted(last.items(), key=lambda item: item[1][0]):
            if line.get("delete"):
                self.there.pop(name, None)
                self.came.pop(name, None)
            else:
                self.there[name] = line
                if name not in self.came:
                    self.came[name] = self.next
                    self.next += 1

    def post(self, lines, is_killed):
        """Sends a batch, and again if the process is killed meanwhile."""
        body = "".join(json.dumps(line) + "\n" for line in lines).encode()
        id = f"b{len(self.sent)}"
        self.say(f"batch {id} of {len(lines)}: {' '.join(('-' if line.get('delete') else '+') + str(line[self.by]) for line in lines)}")
        if is_killed and self.args.processes > 1 and self.rng.random() < 0.6:
            timer = self.end_other_later(0.03)
            answer = self.patiently("POST", "/documents", body, {"Batch-Id": id})
            timer.join()
            self.settle()
            if self.commits_itself:
                # A commit may have been under way.
                self.given = None
            again = self.live.lines("POST", "/documents", body, {"Batch-Id": id})
            if answer != again:
                raise Failure(f"batch {id}, which was answered before a kill, has other answers: {answer} {again}")
            return self.take(id, body, lines, answer)
        timer = self.kill_later(0.03) if is_killed else None
        try:
            answer = self.live.lines("POST", "/documents", body, {"Batch-Id": id})
        except Broken:
            if not is_killed:
                raise
            answer = None
        if timer:
            timer.join()
            self.live.child.wait()
            if self.commits_itself:
                # A commit may have been under way.
                self.given = None
            self.say("answered" if answer is not None else "not answered")
            self.start()
            again = self.live.lines("POST", "/documents", body, {"Batch-Id": id})
            if answer is not None and answer != again:
                raise Failure(f"batch {id}, which was answered before a kill, has other answers: {answer} {again}")
            answer = again
        self.take(id, body, lines, answer)

    def take(self, id, body, lines, answer):
        """Checks the answers of a batch, and notes it."""
        if [str(line[self.by]) for line in lines] != [of[self.by] for of in answer]:
            raise Failure(f"the answers of {id} are of other documents: {answer}")
        known = set(self.there)
        self.apply(lines)
        for of in answer:
            name = of[self.by]
            if of.get("deleted", False) != (name not in self.there) or (name in self.there and of["new"] != (name not in known)):
                raise Failure(f"the answer of {name} in {id} is wrong: {of}")
        self.sent.append((id, body, answer))

    def step(self):
        """Makes a step. Returns how the ids are checked after it: by the `twin`, as the `same`, or as `renamed`. `resync` is after a kill: by
        the twin, if nothing was committed meanwhile, and else they are taken as they are."""
        rng, kind = self.rng, self.rng.random()
        if kind < 0.55:
            self.post(self.batch(), is_killed=False)
            return "twin"
        if kind < 0.65:
            self.post(self.batch(), is_killed=True)
            return "resync"
        if kind < 0.72 and self.there:
            name = rng.choice(sorted(self.there))
            self.say(f"delete {name}")
            of = self.live.lines("DELETE", f"/documents/{quote(name, safe='')}")[0]
            if of.get("deleted") is not True:
                raise Failure(f"{name} is not deleted: {of}")
            self.apply([{self.by: name, "delete": True}])
            return "twin"
        if kind < 0.80 and self.sent:
            for id, body, answer in rng.sample(self.sent, min(3, len(self.sent))):
                self.say(f"batch {id} again")
                again = self.live.lines("POST", "/documents", body, {"Batch-Id": id})
                if again != answer:
                    raise Failure(f"batch {id} is answered in another way: {answer}, then {again}")
                status, _ = self.live.send("POST", "/documents", body + b"\n{}", {"Batch-Id": id})
                if status != 409:
                    raise Failure(f"other lines with the id {id} are answered with {status}")
            return "same"
        if kind < 0.84:
            self.say("a batch that is refused")
            lines = [json.dumps(line).encode() for line in self.batch()] + [rng.choice([b"{", b"{}", b"\xff", b"[]", b"7"])]
            rng.shuffle(lines)
            status, answer = self.live.send("POST", "/documents", b"\n".join(lines), {"Batch-Id": f"bad{rng.random()}"})
            if status != 400 or b"line " not in answer:
                raise Failure(f"it is not refused: {status} {answer}")
            return "same"
        if kind < 0.92:
            self.end(rng.choice([signal.SIGTERM, signal.SIGKILL]))
            self.start()
            return "same"
        if kind < 0.97:
            self.say("commit")
            # Also of lines that bring nothing to the tables the journal begins again.
            self.left_out |= self.live.metric("nigh_live_pending_lines") > 0
            self.live.lines("POST", "/commit")
            return "renamed"
        self.say("commit")
        if self.args.processes > 1 and rng.random() < 0.6:
            timer = self.end_other_later(0.4)
            self.patiently("POST", "/commit")
            timer.join()
            self.settle()
            self.given = None
            return "resync"
        # As above. (Ready features are not sent here.)
        self.has_gap |= self.live.metric("nigh_live_pending_lines") > 0
        timer = self.kill_later(0.4)
        try:
            self.live.lines("POST", "/commit")
        except Broken:
            pass
        timer.join()
        self.live.child.wait()
        own, next = self.store / "_nigh" / "live", self.committed + 1
        self.start()
        commands = sum((own / name).exists() for name in (f"deleted-{next:05}.txt", f"documents-{next:05}.jsonl"))
        commits = self.tables()[0] - self.committed
        self.say(f"{commits} of {commands} commands had ended")
        if commits:
            self.given = None
        if commands and commits == commands and not self.commits_itself and self.live.metric("nigh_live_pending_lines"):
            raise Failure("the tables are those of a commit that was killed, and the journal did not begin again")
        return "resync"

    # Checks.

    def tables(self):
        """The number of commits of the store, and the cluster of each document in the tables of its last week."""
        import pyarrow.parquet

        path = self.store / "_nigh" / "manifest.json"
        manifest = json.loads(path.read_text()) if path.exists() else {"commits": 0, "weeks": []}
        clusters = {}
        for week in manifest["weeks"][-1:]:
            for file in sorted(self.store.glob(f"clusters/week={week['week']}/**/*.parquet")):
                for row in pyarrow.parquet.read_table(file, partitioning=None).to_pylist():
                    clusters[row[self.by]] = row["cluster_id"]
        return manifest["commits"], clusters

    def run(self):
        """What a run finds: the sets of all documents, and the strictest level of each document."""
        import pyarrow.parquet

        store = self.folder / "run"
        shutil.rmtree(store, ignore_errors=True)
        source = self.folder / "there.jsonl"
        source.write_text("".join(json.dumps(line) + "\n" for line in self.there.values()))
        self.week(store, source)
        rows = []
        for path in sorted(store.glob(f"clusters/week={WEEK}/**/*.parquet")):
            rows += pyarrow.parquet.read_table(path, partitioning=None).to_pylist()
        if sorted(row[self.by] for row in rows) != sorted(self.there):
            raise Failure("the run has other documents: a fault of this script")
        sets, levels = {}, {}
        for row in rows:
            sets.setdefault(row["similar_root"], set()).add(row[self.by])
            shared = [level for level in ("exact", "identical", "similar") if row[f"{level}_size"] > 1]
            levels[row[self.by]] = shared[0] if shared else None
        self.runs += 1
        return [frozenset(of) for of in sets.values()], levels

    def week(self, store, source):
        job = self.folder / "job.toml"
        columns = f'[cluster.read.columns]\n{self.by} = "{self.by}"\nhtml = "html"\n'
        method = "shards = 2\n"
        if self.method:
            method += "features = {}\nsupershingles = {}\nagreements = {}\nwords = {}\n".format(*self.method)
        if self.args.verify:
            method += f'similarity = {self.args.similarity}\nverify = "{self.args.verify}"\n'
        job.write_text(f"[cluster]\n{columns}[cluster.method]\n{method}")
        command = [self.args.nigh, "run", str(job), "-q", "--store", str(store), "--week", WEEK, "--input", str(source), "--workers", "1"]
        ran = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT, stdin=subprocess.DEVNULL)
        if ran.returncode != 0:
            raise Failure(f"{' '.join(command)}: {ran.stderr}")

    def check(self, how):
        # Waits for a commit that the last batch made due: requests are answered one after the other.
        self.live.send("GET", "/clusters/0")
        commits = self.live.metric("nigh_live_commits_total")
        if commits != self.commits and how in ("twin", "same"):
            how = "resync"
        if commits and how == "resync":
            # Ids that the batch gave were replaced by those of the tables before anything could be asked.
            self.given = None
        self.commits = commits
        documents = {name: self.live.get(f"/documents/{quote(name, safe='')}") for name in self.there}
        found, order = {}, {}
        for id in {of["cluster"] for of in documents.values()} - {None}:
            cluster = self.live.get(f"/clusters/{id}?most=10000")
            found[id], order[id] = frozenset(cluster["documents"]), cluster["documents"]
            if cluster["size"] != len(order[id]) or len(found[id]) != len(order[id]) or cluster["canonical"] != order[id][0]:
                raise Failure(f"a cluster contradicts itself: {cluster}")
        sets, levels = self.run() if self.there else ([], {})
        wanted = {frozenset(of) for of in sets if len(of) > 1}
        if set(found.values()) != wanted:
            raise Failure(f"other clusters: only live {sorted(map(sorted, set(found.values()) - wanted))}, only the run {sorted(map(sorted, wanted - set(found.values())))}")
        end = float("inf")
        rank = {name: (end if of["doc"] is None else of["doc"], self.came[name]) for name, of in documents.items()}
        for name, of in documents.items():
            others = found.get(of["cluster"], frozenset([name]))
            if name not in others or of["size"] != len(others) or of["level"] != levels[name]:
                raise Failure(f"the answer of {name} is wrong: {of}; the run has the level {levels[name]}")
            if of["canonical"] != min(others, key=rank.get):
                raise Failure(f"the canonical document of {name} is wrong: {of}")
            # Of candidates, verified clusters have a part.
            is_far = lambda near: near not in others and not self.args.verify
            if any(is_far(near["name"]) or near["name"] == name for near in of["nearest"]):
                raise Failure(f"{name} is near documents of other clusters: {of}")
            if of.get("estimated"):
                raise Failure(f"{name} was compared by estimate, though all texts are at hand: {of}")
        if self.live.metric("nigh_live_documents") != len(self.there):
            raise Failure("the number of documents is wrong")
        committed, of_tables = self.tables()
        if self.live.metric("nigh_live_pending_lines") == 0:
            of_live = {name: of["cluster"] for name, of in documents.items()}
            if of_live != of_tables:
                raise Failure(f"nothing is pending, and clusters have other ids than in the tables: {of_live}, {of_tables}")
        self.check_ids(how, found, order, rank)
        self.has_gap |= committed != self.committed and self.number != self.told_again
        self.left_out |= committed != self.committed
        self.committed, self.is_new = committed, False

    def check_ids(self, how, found, order, rank):
        for id, names in order.items():
            if names != sorted(names, key=rank.get):
                raise Failure(f"the documents of cluster {id} are in another order: {names}")
        if how == "first":
            self.known = {id: len(documents) for id, documents in found.items()}
        may_be_gone = self.is_new and (self.has_gap or self.given is None)
        changes = self.changes(found, may_be_gone)
        seen = [change["number"] for change in changes or []]
        if how == "same":
            if found != self.ids or changes:
                raise Failure(f"ids have changed: {self.ids}, then {found}; {changes}")
        elif how == "twin" or how == "resync" and self.given is not None:
            # A process that was killed, and took the batch before or after, too.
            self.check_twin(found, rank, changes)
        elif how == "renamed":
            old = {documents: id for id, documents in self.ids.items()}
            wanted = {(old[documents], id) for id, documents in found.items() if old[documents] != id}
            # Done one by one, no id is taken that another cluster has.
            now = {id: id for id in self.ids}
            for change in changes:
                if change["event"] != "rename" or change["cluster"] not in now or change["into"] in now:
                    raise Failure(f"no rename after a commit: {change} of {changes}")
                now[change["into"]] = now.pop(change["cluster"])
            if {(old, id) for id, old in now.items() if id != old} != wanted:
                raise Failure(f"other changes after a commit than {wanted}: {changes}")
            if any(id < 0 for id in found):
                raise Failure(f"a cluster has no id of the tables after a commit: {found}")
        self.ids = found
        self.used |= set(found)
        if seen:
            self.number, self.has_gap, self.left_out = seen[-1], False, False

    def changes(self, found, may_be_gone):
        """The changes after the last one that was seen. A client that follows them knows the clusters that are there now; or it is told to
        read these again: then there are no changes (None), and the numbers go on from those of the process."""
        self.told_again = None
        status, answer = self.live.send("GET", f"/changes?since={self.number}&most=10000")
        sizes = {id: len(documents) for id, documents in found.items()}
        if status == 410 and may_be_gone:
            self.number = self.told_again = self.last_number()
            self.known, self.has_gap = sizes, False
            return None
        if status != 200:
            raise Failure(f"changes after {self.number}: {status} {answer.decode(errors='replace')}")
        changes = [json.loads(line) for line in answer.splitlines()]
        before = dict(self.known)
        for change in changes:
            id, into, size = change["cluster"], change.get("into"), change["after"]
            if change["event"] in ("death", "merge", "rename"):
                self.known.pop(id, None)
            if change["event"] != "death":
                self.known[id if into is None else into] = size
        if self.known != sizes:
            raise Failure(f"by {changes} after {self.number}, {before} becomes {self.known}, and there are {sizes}")
        return changes

    def check_twin(self, found, rank, changes):
        of_set = {documents: id for id, documents in found.items()}

        def new_id(documents):
            id = of_set[documents]
            if id >= 0 or id in self.used or (self.given is not None and id != -self.given - 1):
                raise Failure(f"a new cluster has the id {id}, after {self.given} that were given")
            self.given = -id
            return id

        ids, wanted = named(self.ids, list(found.values()), rank, new_id)
        if ids != found:
            raise Failure(f"other ids: {found}, not {ids}")
        if changes is not None:
            numbers = [change.pop("number") for change in changes]
            changes = [{"into": None} | change for change in changes]
            first = numbers[0] if numbers and (self.has_gap or self.left_out) else self.number + 1
            if changes != wanted or numbers != list(range(first, first + len(wanted))):
                raise Failure(f"other changes after {self.number}: {numbers} {changes}, not {wanted}")

    def play(self):
        try:
            if self.rng.random() < 0.5 or self.args.verify:
                self.method = self.rng.choice(METHODS)
                self.say(f"a week with the method {self.method}")
                while len(self.there) < 5:
                    self.apply([line for line in self.batch() if "delete" not in line])
                source = self.folder / "first.jsonl"
                source.write_text("".join(json.dumps(line) + "\n" for line in self.there.values()))
                self.week(self.store, source)
            self.start()
            self.check("first")
            for _ in range(self.args.steps):
                self.check(self.step())
        finally:
            if self.live and self.live.child.poll() is None:
                self.live.end(signal.SIGKILL)
        return self.runs, self.kills


# --- The program.


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nigh", required=True, type=lambda text: str(Path(text).resolve()), help="the program to try")
    parser.add_argument("--seeds", default="0..300", type=seeds, metavar="N or N..M", help="the histories (default: 0..300; M is excluded)")
    parser.add_argument("--similarity", type=float, default=0.8, help="the least similarity, with --verify (default: 0.8)")
    parser.add_argument("--verify", choices=["estimate", "exact"], help="verify clusters in this way")
    parser.add_argument("--processes", default=1, type=int, help="processes that share the keys (default: 1)")
    parser.add_argument("--steps", default=16, type=int, help="steps of a history (default: 16)")
    parser.add_argument("--jobs", default=1, type=int, help="histories at a time (default: 1)")
    parser.add_argument("--minutes", type=float, help="begin no further history after this time")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="work in DIR, and keep the stores of histories that fail")
    parser.add_argument("--verbose", action="store_true", help="print the steps")
    args = parser.parse_args()
    if importlib.util.find_spec("pyarrow") is None:
        fail(4, "not installed: pyarrow (pip install pyarrow)")
    if not os.access(args.nigh, os.X_OK):
        fail(2, f"{args.nigh} is not a program")
    with tempfile.TemporaryDirectory(prefix="nigh-live-histories-") as temporary:
        root = args.keep.resolve() if args.keep else Path(temporary)
        root.mkdir(parents=True, exist_ok=True)
        sys.exit(1 if play_all(args, root) else 0)


def play_all(args, root):
    begun, failed, played, runs, kills = time.monotonic(), [], 0, 0, 0
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        results = pool.map(lambda seed: play(seed, args, root, begun), args.seeds)
        for seed, result in zip(args.seeds, results):
            if result is None:
                continue
            played += 1
            if isinstance(result, str):
                failed.append(seed)
                verify = f" --similarity {args.similarity} --verify {args.verify}" if args.verify else ""
                verify += f" --processes {args.processes}" if args.processes > 1 else ""
                again = f"{sys.argv[0]} --nigh {args.nigh} --seeds {seed} --steps {args.steps}{verify} --keep {args.keep or 'histories'} --verbose"
                print(f"seed {seed} FAILED: {result}\n  again: {again}", flush=True)
            else:
                runs, kills = runs + result[0], kills + result[1]
    seconds = time.monotonic() - begun
    print(f"{played} histories in {seconds:.0f} s, {runs} runs, {kills} kills, {len(failed)} histories failed: {failed}")
    return failed


def play(seed, args, root, begun):
    """Plays one history. Returns its runs and kills, or what is wrong; None if the time is up."""
    if args.minutes is not None and time.monotonic() - begun > 60 * args.minutes:
        return None
    folder = root / f"seed-{seed}"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    history = History(seed, args, folder)
    try:
        result = history.play()
    except (Failure, Broken) as failure:
        return f"{failure}\n  steps:\n    " + "\n    ".join(history.log)
    except Exception:
        return f"{traceback.format_exc()}\n  steps:\n    " + "\n    ".join(history.log)
    shutil.rmtree(folder)
    return result


def seeds(text):
    match = re.fullmatch(r"(\d+)(?:\.\.(\d+))?", text)
    if match is None:
        raise argparse.ArgumentTypeError(f"{text} is neither N nor N..M")
    first = int(match[1])
    return range(first, int(match[2]) if match[2] else first + 1)


def fail(code, text):
    print(f"live_histories: {text}", file=sys.stderr)
    sys.exit(code)


if __name__ == "__main__":
    main()
