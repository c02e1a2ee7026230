#!/usr/bin/env python3
"""A long time of `nigh live` under load: whether its memory stays, and how it answers.

    scripts/live_soak.py --nigh target/release/nigh
    scripts/live_soak.py --nigh target/release/nigh --minutes 60 --documents 200000

First documents are sent until there are --documents of them. Then batches are sent as fast as they are answered, for 20 seconds, and after that
at --load of that rate, for --minutes. Half of the lines of a batch replace documents, a quarter deletes some, and a quarter adds as many: so the
number of documents stays. About half of the documents are near-duplicates of others. The process commits by itself.

Prints a line a minute: documents a second; the median and the 99th percentile of the time from the moment at which a batch should be sent until
its answer; the largest anonymous memory in that minute, as the kernel reports it; the bytes of the journal, and the commits so far. The memory is
flat if its largest value in the second half of the minutes is at most a tenth above that of the first half, and the number of documents is right.

Needs Linux. Exit codes: 0 the memory is flat, 1 it is not, or an answer is wrong, 2 wrong use.
"""

import argparse
import http.client
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

CONNECTIONS = 2
#: Texts of their own; a document has one of them, mostly with a word more.
TEXTS = 5000
FULL_LOAD_SECONDS = 20


class Live:
    def __init__(self, args, folder):
        log = folder / "log"
        command = [args.nigh, "live", str(folder / "store"), "--by", "id", "--listen", "127.0.0.1:0"]
        command += ["--workers", str(args.workers), "--commit-every", args.commit_every]
        with log.open("w") as out:
            self.child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=out, stdin=subprocess.DEVNULL)
        while True:
            found = re.search(r"listening at http://127\.0\.0\.1:(\d+)", log.read_text())
            if found:
                self.port = int(found[1])
                return
            if self.child.poll() is not None:
                sys.exit(f"nigh live ended: {log.read_text()}")
            time.sleep(0.01)

    def memory(self):
        status = Path(f"/proc/{self.child.pid}/status").read_text()
        return int(re.search(r"^RssAnon:\s+(\d+) kB", status, re.M)[1]) << 10

    def metrics(self):
        client = http.client.HTTPConnection("127.0.0.1", self.port, timeout=600)
        client.request("GET", "/metrics")
        text = client.getresponse().read().decode()
        client.close()
        return {name: int(value) for name, value in re.findall(r"^nigh_live_(\w+) (\d+)$", text, re.M)}


class Sender:
    """A connection with documents of its own."""

    def __init__(self, number, live, args, texts):
        self.number, self.args, self.texts = number, args, texts
        self.rng = random.Random(number)
        self.client = http.client.HTTPConnection("127.0.0.1", live.port, timeout=600)
        self.names, self.next, self.batches, self.sent = [], 0, 0, 0
        self.times = []

    def line(self, name):
        rng = self.rng
        text = rng.choice(self.texts)
        # An exact copy, or with a word more.
        return {"id": name, "text": text if rng.random() < 0.1 else f"{text} own{rng.randrange(1 << 40)}"}

    def added(self):
        self.next += 1
        self.names.append(f"{self.number}-{self.next}")
        return self.line(self.names[-1])

    def removed(self):
        place = self.rng.randrange(len(self.names))
        self.names[place], self.names[-1] = self.names[-1], self.names[place]
        return {"id": self.names.pop(), "delete": True}

    def batch(self):
        size = self.args.batch
        lines = [self.removed() for _ in range(size // 4)]
        lines += [self.line(name) for name in self.rng.sample(self.names, size - 2 * (size // 4))]
        return lines + [self.added() for _ in range(size // 4)]

    def send(self, lines):
        body = b"".join(json.dumps(line).encode() + b"\n" for line in lines)
        while True:
            self.client.request("POST", "/documents", body, {"Batch-Id": f"{self.number}-{self.batches}"})
            answer = self.client.getresponse()
            text = answer.read()
            if answer.status != 429:
                break
            time.sleep(1)
        if answer.status != 200 or text.count(b"\n") != len(lines):
            raise RuntimeError(f"{answer.status}: {text[:1000].decode(errors='replace')}")
        self.batches += 1
        self.sent += len(lines)

    def fill(self, count):
        while len(self.names) < count:
            self.send([self.added() for _ in range(min(500, count - len(self.names)))])

    def full_load(self, seconds):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.send(self.batch())

    def paced(self, period, seconds):
        begun = time.monotonic()
        turn = 0
        while (due := begun + turn * period) < begun + seconds:
            lines = self.batch()
            time.sleep(max(0.0, due - time.monotonic()))
            self.send(lines)
            self.times.append(time.monotonic() - due)
            turn += 1


def on_all(senders, work):
    """Does the same with all senders at a time."""
    faults = []

    def one(sender):
        try:
            work(sender)
        except Exception as fault:
            faults.append(fault)

    threads = [threading.Thread(target=one, args=[sender]) for sender in senders]
    for thread in threads:
        thread.start()
    return threads, faults


def wait(threads, faults):
    for thread in threads:
        thread.join()
    if faults:
        raise faults[0]


def quantile(times, share):
    return 1000 * sorted(times)[int(len(times) * share)] if times else 0.0


def soak(args, live):
    rng = random.Random(0)
    words = ["".join(rng.choices("etaoinshrdlu", k=rng.randint(2, 10))) for _ in range(30_000)]
    texts = [" ".join(rng.choices(words, k=args.words)) for _ in range(min(TEXTS, args.documents // 2))]
    senders = [Sender(number, live, args, texts) for number in range(CONNECTIONS)]
    begun = time.monotonic()
    wait(*on_all(senders, lambda sender: sender.fill(args.documents // CONNECTIONS)))
    print(f"{args.documents} documents of {args.words} words in {time.monotonic() - begun:.0f} s, {live.memory() / 1e6:.0f} MB", flush=True)
    sent = sum(sender.sent for sender in senders)
    begun = time.monotonic()
    wait(*on_all(senders, lambda sender: sender.full_load(FULL_LOAD_SECONDS)))
    rate = (sum(sender.sent for sender in senders) - sent) / (time.monotonic() - begun)
    print(f"full load: {rate:.0f} lines a second in batches of {args.batch}; from now on {args.load:.0%} of it", flush=True)

    period = CONNECTIONS * args.batch / (args.load * rate)
    threads, faults = on_all(senders, lambda sender: sender.paced(period, 60 * args.minutes))
    print("minute  lines/s  p50 ms   p99 ms  memory MB  journal MB  commits  documents", flush=True)
    peaks = []
    seen = [len(sender.times) for sender in senders]
    for minute in range(1, args.minutes + 1):
        before, begun, peak = sum(sender.sent for sender in senders), time.monotonic(), 0
        while time.monotonic() < begun + 60 and not faults:
            peak = max(peak, live.memory())
            time.sleep(0.2)
        if faults:
            break
        times = [time_ for sender, count in zip(senders, seen) for time_ in sender.times[count:]]
        seen = [len(sender.times) for sender in senders]
        metrics = live.metrics()
        peaks.append(peak)
        lines = (sum(sender.sent for sender in senders) - before) / 60
        print(
            f"{minute:6} {lines:8.0f} {quantile(times, 0.5):7.1f} {quantile(times, 0.99):8.1f} {peak / 1e6:10.0f} "
            f"{metrics['journal_bytes'] / 1e6:11.1f} {metrics['commits_total']:8} {metrics['documents']:10}",
            flush=True,
        )
    wait(threads, faults)
    half = len(peaks) // 2
    first, second = max(peaks[:half], default=0), max(peaks[half:])
    documents = live.metrics()["documents"]
    is_flat = second <= 1.1 * first or half == 0
    print(f"largest memory: {first / 1e6:.0f} MB in the first half, {second / 1e6:.0f} MB in the second: {'flat' if is_flat else 'NOT FLAT'}")
    wanted = sum(len(sender.names) for sender in senders)
    if documents != wanted:
        print(f"{documents} documents, NOT {wanted}")
    return is_flat and documents == wanted


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nigh", required=True, type=lambda text: str(Path(text).resolve()), help="the program to try")
    parser.add_argument("--documents", default=20_000, type=int, help="documents that are there all the time (default: 20000)")
    parser.add_argument("--words", default=300, type=int, help="words of a text (default: 300)")
    parser.add_argument("--batch", default=20, type=int, help="lines of a batch (default: 20)")
    parser.add_argument("--minutes", default=10, type=int, help="minutes under load (default: 10)")
    parser.add_argument("--load", default=0.8, type=float, help="the share of the full load (default: 0.8)")
    parser.add_argument("--commit-every", default="1min", help="when the process commits (default: 1min)")
    parser.add_argument("--workers", default=1, type=int, help="workers of the process (default: 1)")
    args = parser.parse_args()
    if not os.access(args.nigh, os.X_OK) or args.documents < 10 * args.batch or args.batch < 4:
        parser.error("--nigh must be a program, --batch 4 at least, and --documents ten batches")
    with tempfile.TemporaryDirectory(prefix="nigh-live-soak-") as folder:
        live = Live(args, Path(folder))
        try:
            is_well = soak(args, live)
        finally:
            live.child.terminate()
            live.child.wait()
    sys.exit(0 if is_well else 1)


if __name__ == "__main__":
    main()
