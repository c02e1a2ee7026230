"""The client of `nigh live` against the program, and against servers that are busy or break off. Needs the standard library only.

Run by scripts/wheel.sh with the wheel installed, and by tests/suite/live/clients.rs with the program on PATH.
"""

import http.client
import http.server
import json
import pickle
import socketserver
import subprocess
import tempfile
import threading
import time
import unittest
from collections.abc import Callable
from pathlib import Path

import nigh
from nigh import live


class Server:
    """`nigh live` on a store, until the test ends."""

    def __init__(self, test: unittest.TestCase, store: Path, *flags: str, by: str = "id", port: str = "0") -> None:
        command = [nigh.program(), "live", str(store), "--listen", f"127.0.0.1:{port}", "--by", by, "--workers", "1", *flags]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        test.addCleanup(self.end)
        assert self.process.stderr is not None
        said = []
        for line in self.process.stderr:
            said.append(line)
            if "listening at " in line:
                self.url = line.split("listening at ")[1].strip()
                break
        else:
            raise AssertionError("".join(said))
        threading.Thread(target=self.process.stderr.read, daemon=True).start()

    def end(self) -> None:
        self.process.kill()
        self.process.wait()
        if self.process.stderr is not None:
            self.process.stderr.close()


class Scripted(http.server.BaseHTTPRequestHandler):
    """A server that answers as it is told: by a status, or `None` to break off. The last answer is repeated. `retry` has the statuses that
    say when to ask again."""

    protocol_version = "HTTP/1.1"
    script: list[int | None] = []
    seen: list[tuple[str, str | None]] = []
    retry: frozenset[int] = frozenset({429})

    def answer(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        type(self).seen.append((f"{self.command} {self.path}", self.headers.get("Batch-Id")))
        status = self.script.pop(0) if len(self.script) > 1 else self.script[0]
        if status is None:
            self.close_connection = True
            return
        body = json.dumps({"error": "as told", "week": None, "documents": 0, "deleted": 0, "status": "ok"}).encode()
        body = b"" if status == 200 and self.path == "/documents" else body
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        if status in self.retry:
            self.send_header("Retry-After", "1")
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_POST = do_DELETE = answer

    def log_message(self, format: str, *args: object) -> None:
        pass


def words(family: int, own: int = 0) -> str:
    return " ".join(f"w{family}x{place}" for place in range(120)) + (f" own{own}" if own else "")


class Listener(socketserver.ThreadingTCPServer):
    """As `http.server` has it, without a look-up of the name of this machine."""

    daemon_threads = True


class Live(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def test_documents_are_answered_with_their_clusters(self) -> None:
        server = Server(self, self.folder / "store")
        with nigh.connect(server.url) as client:
            first, second, third = client.add(
                [{"id": 1, "text": words(1)}, {"id": "2", "html": f"<p>{words(1)}"}, {"id": 3, "text": words(2)}]
            )
            self.assertEqual((first.id, first.url, first.name, first.new, first.stays), ("1", None, "1", True, True))
            self.assertEqual((second.cluster, second.size, second.level, second.canonical), (-1, 2, "identical", "1"))
            self.assertFalse(second.stays)
            self.assertEqual(second.nearest, (live.Near("1", 1.0, -1),))
            self.assertEqual((third.cluster, third.level, third.nearest), (None, None, ()))
            self.assertEqual(client.similar(text=words(1), most=1), [live.Near("1", 1.0, -1)])
            self.assertEqual(client.similar(html=words(7)), [])
            self.assertEqual(client.similar(text=words(1), most=1, exact=True), [live.Near("1", 1.0, -1, 1.0)])
            self.assertEqual([near.exact for near in client.get("2", exact=True).nearest], [1.0])
            self.assertEqual(client.cluster(-1), live.Cluster(-1, 2, "1", ("1", "2")))
            self.assertEqual([change.event for change in client.changes()], ["birth"])
            committed = client.commit()
            self.assertEqual((committed.documents, committed.deleted), (3, 0))
            self.assertEqual(nigh.open(self.folder / "store").weeks, [committed.week])
            now = client.get("2")
            self.assertTrue(now.doc is not None and now.cluster is not None and now.cluster > 0 and not now.new)
            deleted = client.delete("2")
            self.assertTrue(deleted.deleted and deleted.cluster is None and not deleted.stays)
            events = [(change.number, change.event) for change in client.changes(1)]
            self.assertEqual(events, [(2, "rename"), (3, "death")])
            [again] = client.add([{"id": 1, "delete": True}])
            self.assertTrue(again.deleted)

    def test_names_may_have_any_characters(self) -> None:
        server = Server(self, self.folder / "store")
        names = ["a/b?c#d%e", "é 中\U0001f600", "..", "?", "a&most=1"]
        with nigh.connect(server.url + "/") as client:
            client.add({"id": name, "text": words(number)} for number, name in enumerate(names))
            for name in names:
                self.assertEqual(client.get(name).name, name)
                self.assertEqual(client.delete(name).name, name)
        of_urls = Server(self, self.folder / "urls", by="url")
        with nigh.connect(of_urls.url) as client:
            [answer] = client.add([{"url": "HTTP://a.example/x?y=1&z=é", "text": words(1)}])
            self.assertEqual(client.get(answer.name).url, answer.url)
            self.assertTrue((answer.url or "").startswith("http://a.example/x?"), answer.url)

    def test_many_documents_are_sent_in_batches_and_a_repeated_call_takes_none_twice(self) -> None:
        server = Server(self, self.folder / "store")
        documents = [{"id": number, "text": words(number % 900)} for number in range(2500)]
        with nigh.connect(server.url) as client:
            answers = client.add(documents, batch="first")
            self.assertEqual([answer.id for answer in answers], [str(number) for number in range(2500)])
            self.assertTrue(all(answer.new for answer in answers))
            self.assertEqual(client.add(documents, batch="first"), answers)
            self.assertFalse(any(answer.new for answer in client.add(iter(documents), batch_size=2500)))
            self.assertEqual(client.add([]), [])
            with self.assertRaises(ValueError):
                client.add(documents, batch_size=0)

    def test_threads_share_a_client(self) -> None:
        server = Server(self, self.folder / "store")
        with nigh.connect(server.url) as client:

            def add(thread: int) -> None:
                for number in range(20):
                    [answer] = client.add([{"id": f"{thread}-{number}", "text": words(thread)}])
                    self.assertEqual(answer.id, f"{thread}-{number}")

            threads = [threading.Thread(target=add, args=[thread]) for thread in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            self.assertEqual(client.get("3-19").size, 20)

    def test_errors_have_types(self) -> None:
        server = Server(self, self.folder / "store")
        with nigh.connect(server.url) as client:
            calls: list[tuple[Callable[[], object], type[nigh.Refused], int, str]] = [
                (lambda: client.get("x"), live.NotFound, 404, "no document x"),
                (lambda: client.delete("x"), live.NotFound, 404, "no document x"),
                (lambda: client.cluster(17), live.NotFound, 404, "no cluster 17"),
                (lambda: client.add([{"id": 1, "text": "a"}, {"text": "a"}]), live.BadRequest, 400, "line 2: no `id`"),
                (lambda: client.add([{"id": 1, "text": "\udc80"}]), live.BadRequest, 400, "line 1"),
                (lambda: client.add([{"id": 1, "text": "x" * (5 << 20)}]), live.BadRequest, 413, "line 1 has"),
                (lambda: client.similar(text="-"), live.BadRequest, 400, "no word"),
                (lambda: list(client.changes(99)), live.Gone, 410, "read the clusters again"),
            ]
            for call, kind, status, reason in calls:
                with self.assertRaises(nigh.Refused) as refused:
                    call()
                error = refused.exception
                self.assertEqual((type(error), error.status), (kind, status))
                self.assertIn(reason, error.message)
                self.assertEqual(str(pickle.loads(pickle.dumps(error))), str(error))
            client.add([{"id": 1, "text": "a b c"}], batch="b")
            with self.assertRaises(live.Conflict):
                client.add([{"id": 1, "text": "d e f"}], batch="b")
            with self.assertRaises(ValueError):
                client.similar()
            self.assertEqual(client.get("1").size, 1)
        for address in ["127.0.0.1:7744", "ftp://a.example", "http://", "http://a.example/?x"]:
            with self.assertRaises(ValueError):
                nigh.connect(address)
        with self.assertRaisesRegex(ValueError, "https"):
            nigh.connect("http://a.example", token="0123456789abcdef")

    def test_a_token_is_sent(self) -> None:
        (self.folder / "token").write_text("0123456789abcdef\n")
        server = Server(self, self.folder / "store", "--token-file", str(self.folder / "token"))
        with nigh.connect(server.url, token="0123456789abcdef") as client:
            self.assertEqual(list(client.changes()), [])
        for token in (None, "0123456789abcdeg"):
            with nigh.connect(server.url, token=token) as client, self.assertRaises(live.NotAllowed):
                client.get("1")

    def test_a_server_that_starts_again_is_waited_for(self) -> None:
        store = self.folder / "store"
        server = Server(self, store)
        with nigh.connect(server.url) as client:
            client.add([{"id": 1, "text": words(1)}])
            server.end()
            again: list[Server] = []
            port = server.url.rsplit(":", 1)[1]

            def start() -> None:
                time.sleep(0.5)
                again.append(Server(self, store, by="id", port=port))

            thread = threading.Thread(target=start)
            thread.start()
            [answer] = client.add([{"id": 2, "text": words(1)}])
            thread.join()
            self.assertEqual((answer.size, answer.canonical), (2, "1"))

    def scripted(self, *script: int | None, retry: frozenset[int] = frozenset({429})) -> str:
        Scripted.script, Scripted.seen, Scripted.retry = [200, *script], [], retry
        server = Listener(("127.0.0.1", 0), Scripted)
        thread = threading.Thread(target=server.serve_forever, args=[0.02])
        thread.start()
        self.addCleanup(server.server_close)
        self.addCleanup(thread.join)
        self.addCleanup(server.shutdown)
        return f"http://127.0.0.1:{server.server_address[1]}"

    def test_a_busy_server_is_waited_for_within_the_patience(self) -> None:
        begun = time.monotonic()
        with nigh.connect(self.scripted(429, None, 429, 200)) as client:
            self.assertEqual(client.add([{"id": 1}], batch="b"), [])
        self.assertEqual(Scripted.seen[1:], [("POST /documents", "b")] * 4)
        self.assertGreater(time.monotonic() - begun, 2, "Retry-After says a second, twice")
        with nigh.connect(self.scripted(429), patience=0.5) as client, self.assertRaises(live.Busy):
            client.get("1")
        self.assertEqual(len(Scripted.seen), 2)
        with nigh.connect(self.scripted(503)) as client, self.assertRaises(live.Unavailable):
            client.get("1")
        with nigh.connect(self.scripted(302)) as client, self.assertRaisesRegex(nigh.Refused, "302"):
            client.get("1")

    def test_a_server_that_says_when_is_asked_again(self) -> None:
        begun = time.monotonic()
        with nigh.connect(self.scripted(503, 503, 200, retry=frozenset({503}))) as client:
            self.assertEqual(client.add([{"id": 1}], batch="b"), [])
        self.assertEqual(Scripted.seen[1:], [("POST /documents", "b")] * 3)
        self.assertGreater(time.monotonic() - begun, 2, "Retry-After says a second, twice")
        with nigh.connect(self.scripted(503, retry=frozenset({503})), patience=0.5) as client, self.assertRaises(live.Unavailable):
            client.get("1")
        self.assertEqual(len(Scripted.seen), 2)
        # A commit may have been made.
        calls: list[Callable[[live.Client], object]] = [lambda client: client.commit(), lambda client: client.delete("1")]
        for call in calls:
            with nigh.connect(self.scripted(503, 200, retry=frozenset({503}))) as client, self.assertRaises(live.Unavailable):
                call(client)
            self.assertEqual(len(Scripted.seen), 2)

    def test_what_may_be_done_once_only_is_sent_once(self) -> None:
        calls: list[tuple[Callable[[live.Client], object], str]] = [
            (lambda client: client.commit(), "POST /commit"),
            (lambda client: client.delete("1"), "DELETE /documents/1"),
        ]
        for call, sent in calls:
            with nigh.connect(self.scripted(None)) as client, self.assertRaises((OSError, http.client.HTTPException)):
                call(client)
            self.assertEqual(Scripted.seen[1:], [(sent, None)])
        with nigh.connect(self.scripted(429, 200)) as client:
            self.assertEqual(client.commit(), live.Committed(None, 0, 0))


if __name__ == "__main__":
    unittest.main()
