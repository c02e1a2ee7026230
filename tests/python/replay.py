"""Makes archives with copies of pages; and replays an export of archives in pywb, and holds it against what was exported.

    replay.py make FOLDER
    replay.py check INPUTS EXPORT INDEX

INPUTS and EXPORT are folders of WARC, ARC and WACZ files, INDEX the file that `nigh export --cdxj` wrote. Every page of the inputs is replayed from a
collection that pywb has indexed, and from one with the index of nigh: its bytes must be those of the inputs. Archives are checked with warcio
and py-wacz. Prints what it has seen as JSON. It ends with 1 if something is wrong, and with 4 if a package is missing.
"""

import base64
import gzip
import hashlib
import json
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import zipfile
from pathlib import Path

try:
    import pywb
    import requests
    import surt
    import wacz
    from warcio.archiveiterator import ArchiveIterator
except ImportError as error:
    print(f"not installed: {error.name} (pip install pywb wacz warcio)", file=sys.stderr)
    sys.exit(4)

# The pages of which there are copies.
PAGES = [f"<!doctype html><title>Page {n}</title><p>" + " ".join(f"word{n * 7919 + place * 31}" for place in range(90)) for n in range(12)]

# The whole script, and one request, in seconds.
LIMIT, PATIENCE = 240, 30


def digest(algorithm, data, form):
    value = hashlib.new(algorithm, data).digest()
    return f"{algorithm}:" + {"base32": base64.b32encode(value).decode(), "lower": base64.b32encode(value).decode().lower(), "hex": value.hex()}[form]


class Archive:
    """The records of a file. Each has a URL and a time of its own."""

    count = 0

    def __init__(self, host, line_end="\r\n", fields=b""):
        self.host, self.line_end, self.fields, self.records = host, line_end, fields, []

    def add(self, kind, fields, block, media="application/http; msgtype=response"):
        Archive.count += 1
        head = {"WARC-Type": kind, "WARC-Record-ID": f"<urn:uuid:00000000-0000-4000-8000-{Archive.count:012}>", "WARC-Date": self.date()}
        head |= {"WARC-Target-URI": self.url(), "Content-Type": media, **fields, "Content-Length": len(block)}
        text = "".join(f"{name}: {value}\n" for name, value in head.items()).encode() + self.fields
        record = b"WARC/1.0\n" + text + b"\n"
        self.records.append(record.replace(b"\n", self.line_end.encode()) + block + b"\r\n\r\n")

    def page(self, n, form="base32", algorithm="sha1", encoding=None, chunks=None, digests=True):
        payload = PAGES[n].encode()
        fields = "Server: x\r\n"
        if encoding:
            payload, fields = gzip.compress(payload, mtime=0), f"{fields}Content-Encoding: gzip\r\n"
        named = {"WARC-Payload-Digest": digest(algorithm, payload, form)} if digests else {}
        if chunks:
            parts = [payload[at : at + chunks] for at in range(0, len(payload), chunks)]
            payload, fields = b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in parts) + b"0\r\n\r\n", f"{fields}Transfer-Encoding: chunked\r\n"
        head = f"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\n{fields}\r\n"
        self.add("response", named, head.encode() + payload)

    def resource(self, n):
        self.add("resource", {"WARC-Payload-Digest": digest("sha1", PAGES[n].encode(), "base32")}, PAGES[n].encode(), "text/html")

    def of_arc(self, n, chunks=None):
        Archive.count += 1
        body = PAGES[n].encode()
        fields = "Transfer-Encoding: chunked\r\n" if chunks else ""
        body = b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body) if chunks else body
        block = f"HTTP/1.0 200 OK\r\nContent-Type: text/html\r\n{fields}\r\n".encode() + body
        date = "".join(filter(str.isdigit, self.date()))
        self.records.append(f"{self.url()} 192.0.2.1 {date} text/html {len(block)}\n".encode() + block + b"\n")

    def date(self):
        return f"2024-01-02T03:{Archive.count // 60:02}:{Archive.count % 60:02}Z"

    def url(self):
        return f"http://{self.host}.example/Page/{Archive.count}?b=x%20y&a={self.host}"

    def write(self, path):
        path.write_bytes(b"".join(gzip.compress(record, mtime=0) if path.suffix == ".gz" else record for record in self.records))


def make(folder):
    folder.mkdir()
    first = Archive("www.first")
    for n in range(8):
        first.page(n)
    first.resource(8)
    first.page(9, digests=False, chunks=50)
    first.write(folder / "a.warc.gz")
    second = Archive("second")
    second.page(0, form="hex")
    second.page(1, encoding="gzip")
    second.page(1, encoding="gzip")
    second.page(2, chunks=100)
    second.page(3, form="lower")
    second.page(4, digests=False)
    second.page(5, form="hex", algorithm="sha256")
    second.page(6, algorithm="md5", form="hex")
    second.resource(8)
    second.page(8)
    second.page(9, digests=False, chunks=50)
    second.write(folder / "b.warc.gz")
    odd = Archive("odd", line_end="\n", fields="X-Place: Z\xfcrich\n".encode("latin-1"))
    for n in range(3):
        odd.page(n)
    odd.write(folder / "c.warc")
    old = Archive("old")
    first_line = b"1 0 Maker\nURL IP-address Archive-date Content-type Archive-length\n"
    old.records.append(b"filedesc://old.arc.gz 0.0.0.0 20240102030405 text/plain %d\n%s\n" % (len(first_line), first_line))
    for n in (2, 3, 10, 10):
        old.of_arc(n)
    old.of_arc(4, chunks=True)
    old.write(folder / "d.arc.gz")
    packed = Archive("packed")
    for n in (5, 6, 11, 11):
        packed.page(n)
    with tempfile.TemporaryDirectory() as work:
        packed.write(Path(work) / "data.warc.gz")
        run(program("wacz"), "create", "--detect-pages", "--title", "A title", "-o", folder / "e.wacz", Path(work) / "data.warc.gz")


def archives(folder, work):
    """The WARC and ARC files below a folder; those of a WACZ are unpacked."""
    for path in sorted(folder.rglob("*")):
        if any(part.startswith(".") for part in path.relative_to(folder).parts):
            continue
        if path.suffix == ".wacz":
            with zipfile.ZipFile(path) as whole:
                for name in whole.namelist():
                    if name.startswith("archive/") and name.endswith((".warc", ".warc.gz")):
                        to = work / f"{path.stem}-{Path(name).name}"
                        to.write_bytes(whole.read(name))
                        yield to
        elif path.is_file():
            yield path


def records(path):
    with open(path, "rb") as file:
        yield from ArchiveIterator(file, arc2warc=True)


def pages(paths):
    """The pages of archives: their bytes by URL and time."""
    found = {}
    for record in (record for path in paths for record in records(path)):
        is_page = record.rec_type == "resource" or record.rec_type == "response" and record.http_headers and record.http_headers.get_statuscode() == "200"
        media_type = record.http_headers.get_header("Content-Type") if record.http_headers else record.content_type
        if is_page and (media_type or "").startswith("text/html"):
            digits = "".join(filter(str.isdigit, record.rec_headers.get_header("WARC-Date")))[:14]
            found[record.rec_headers.get_header("WARC-Target-URI"), digits] = record.content_stream().read()
    return found


def run(*command, cwd=None):
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=LIMIT)
    if done.returncode:
        raise SystemExit(f"{' '.join(map(str, command))} ends with {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout


def program(name):
    return str(Path(sys.executable).with_name(name)) if Path(sys.executable).with_name(name).exists() else name


def free_port():
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        return server.getsockname()[1]


def replay(folder, collection, wanted):
    """Starts pywb, and compares each page with what it answers. Returns what differs."""
    port = free_port()
    server = subprocess.Popen(
        [program("wayback"), "-b", "127.0.0.1", "-p", str(port)], cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        url = f"http://127.0.0.1:{port}/{collection}"
        end = time.monotonic() + 60
        while True:
            try:
                requests.get(f"{url}/", timeout=PATIENCE)
                break
            except requests.ConnectionError:
                if server.poll() is not None or time.monotonic() > end:
                    raise SystemExit(f"pywb does not answer (it ended with {server.poll()})")
                time.sleep(0.1)
        wrong = []
        for (page, digits), body in wanted.items():
            answer = requests.get(f"{url}/{digits}id_/{page}", timeout=PATIENCE, allow_redirects=False)
            if answer.status_code != 200 or answer.content != body:
                wrong.append(f"{page} at {digits}: {answer.status_code}, {len(answer.content)} bytes for {len(body)}")
        return wrong
    finally:
        server.kill()
        server.wait()


def check(inputs, export, index):
    signal.alarm(LIMIT)
    with tempfile.TemporaryDirectory() as work:
        work = Path(work)
        for name in ("inputs", "export"):
            (work / name).mkdir()
        before, after = list(archives(inputs, work / "inputs")), list(archives(export, work / "export"))
        wanted = pages(before)
        for path in export.rglob("*.wacz"):
            run(program("wacz"), "validate", "-f", path)
        kinds = {}
        for path in after:
            run(program("warcio"), "check", path)
            for record in records(path):
                kinds[record.rec_type] = kinds.get(record.rec_type, 0) + 1
        # pywb's own index.
        run(program("wb-manager"), "init", "own", cwd=work)
        for path in export.rglob("*"):
            if path.suffix == ".wacz":
                run(program("wb-manager"), "add", "--unpack-wacz", "own", path, cwd=work)
            elif path.is_file() and not path.parent.name.startswith("."):
                run(program("wb-manager"), "add", "own", path, cwd=work)
        wrong = replay(work, "own", wanted)
        # The index of nigh; of a WACZ, pywb does not read an archive in its place.
        run(program("wb-manager"), "init", "given", cwd=work)
        given, lines = work / "collections/given", index.read_text().splitlines()
        (given / "indexes").mkdir(exist_ok=True)
        for path in after:
            shutil.copy(path, given / "archive")
        renamed = []
        for line in lines:
            key, digits, fields = line.split(" ", 2)
            fields = json.loads(fields)
            if surt.surt(fields["url"]) != key:
                wrong.append(f"the key of {fields['url']} is {key}, not {surt.surt(fields['url'])}")
            fields["filename"] = fields["filename"].replace(".wacz/archive/", "-")
            renamed.append(f"{key} {digits} {json.dumps(fields)}\n")
        (given / "indexes/index.cdxj").write_text("".join(sorted(renamed)))
        wrong += [f"by the index of nigh: {text}" for text in replay(work, "given", wanted)]
        if lines != sorted(lines):
            wrong.append("the index is not sorted")
        print(json.dumps({"pages": len(wanted), "lines": len(lines), **dict(sorted(kinds.items()))}))
        if wrong:
            raise SystemExit("\n".join(wrong))


if __name__ == "__main__":
    {"make": make, "check": check}[sys.argv[1]](*map(Path, sys.argv[2:]))
