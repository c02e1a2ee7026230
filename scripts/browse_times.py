#!/usr/bin/env python3
"""How long `nigh browse` takes for a page, by kind of page.

    scripts/browse_times.py target/release/nigh STORE [PAGES]

Starts the server, and follows links at random from its first page, a few of each kind from each page, until so many pages were asked for
(300). Words of the titles and URLs that it meets are searched for. Printed for each kind of page: how many, and their median and longest
time in milliseconds, measured by the client. A page that is not answered with 200 ends it with an error.
"""

import collections, html, random, re, subprocess, sys, time, urllib.error, urllib.parse, urllib.request

# Links of one kind that are followed from a page, and pages that are asked for of a kind.
FOLLOWED, OF_A_KIND = 6, 40


def kind(address):
    """An address without its numbers and values."""
    path, _, query = address.partition("?")
    names = ",".join(sorted(part.split("=")[0] for part in query.split("&"))) if query else ""
    return re.sub(r"\d+", "N", path) + (f"?{names}" if names else "")


def main():
    nigh, store = sys.argv[1:3]
    most = int(sys.argv[3]) if len(sys.argv) > 3 else 300
    rng = random.Random(1)
    server = subprocess.Popen([nigh, "browse", store, "--listen", "127.0.0.1:0"], stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
    try:
        base = None
        started = time.monotonic()
        for line in server.stderr:
            if found := re.search(r"open (http://\S+)", line):
                base = found[1].rstrip("/")
                break
        if base is None:
            sys.exit(f"{nigh} browse {store} ended before it listened")
        print(f"ready after {time.monotonic() - started:.1f} s")
        times, seen, waiting = collections.defaultdict(list), set(), ["/"]
        while waiting and len(seen) < most:
            address = waiting.pop(rng.randrange(len(waiting)))
            if address in seen or len(times[kind(address)]) >= OF_A_KIND:
                continue
            seen.add(address)
            begun = time.perf_counter()
            try:
                page = urllib.request.urlopen(base + address, timeout=60).read().decode()
            except urllib.error.HTTPError as error:
                sys.exit(f"{address}: {error}")
            times[kind(address)].append((1000 * (time.perf_counter() - begun), address))
            links = [html.unescape(link) for link in re.findall(r'href="(/[^"]*)"', page)]
            words = re.findall(r"[\w/.:-]{4,}", re.sub(r"<[^>]*>", " ", page))
            links += [f"/search?q={urllib.parse.quote(word)}" for word in rng.sample(words, min(2, len(words)))]
            of_kind = collections.Counter()
            for link in links:
                of_kind[kind(link)] += 1
                if link not in seen and of_kind[kind(link)] <= FOLLOWED:
                    waiting.append(link)
        for name, found in sorted(times.items()):
            if found:
                found.sort()
                print(f"{name:<28} {len(found):4} pages  median {found[len(found) // 2][0]:7.1f} ms  longest {found[-1][0]:7.1f} ms  {found[-1][1][:80]}")
    finally:
        server.terminate()
        server.wait(30)


main()
