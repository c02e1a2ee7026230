"""A client of ``nigh live``: documents are added over HTTP, and answered with their clusters.

>>> import nigh
>>> live = nigh.connect("http://127.0.0.1:7744")  # doctest: +SKIP
>>> [answer] = live.add([{"id": "17", "text": "the quick brown fox"}])  # doctest: +SKIP
>>> answer.cluster, answer.size, answer.new  # doctest: +SKIP
(None, 1, True)

Only the standard library is needed. See docs/live.md for what the answers mean.
"""

from __future__ import annotations

import http.client
import ipaddress
import json
import socket
import ssl
import threading
import time
import uuid
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Literal
from urllib.parse import quote, urlsplit

__all__ = [
    "Answer",
    "BadRequest",
    "Busy",
    "Change",
    "Client",
    "Cluster",
    "Committed",
    "Conflict",
    "Gone",
    "Level",
    "Near",
    "NotAllowed",
    "NotFound",
    "Refused",
    "Unavailable",
    "connect",
]

Level = Literal["similar", "identical", "exact"]

#: The most bytes of lines that are sent as one batch. The server takes 16 MiB.
_BATCH_BYTES = 8 << 20
#: The most changes of one answer.
_CHANGES = 10_000
#: The longest time between two attempts, in seconds.
_LONGEST_WAIT = 5.0


class Refused(RuntimeError):
    """The server refused a request. ``status`` is that of HTTP, ``message`` the reason."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(f"{message} (HTTP {status})")
        self.status = status
        self.message = message

    def __reduce__(self) -> tuple[type[Refused], tuple[int, str]]:
        return type(self), (self.status, self.message)


class BadRequest(Refused):
    """A document or a request is malformed, or too large."""


class NotAllowed(Refused):
    """The token is missing or wrong, or the server takes requests of its own machine only."""


class NotFound(Refused):
    """There is no such document or cluster."""


class Conflict(Refused):
    """The id of a batch was that of other documents, or its answers are not kept any more."""


class Gone(Refused):
    """Changes after this number are not kept any more: read the clusters again."""


class Busy(Refused):
    """Too many requests wait, and did so for as long as this client is patient."""


class Unavailable(Refused):
    """The server cannot do it: its disk is full, or a commit failed, or a process of it is gone for longer than this client is patient."""


_REFUSALS: dict[int, type[Refused]] = {
    400: BadRequest,
    401: NotAllowed,
    403: NotAllowed,
    404: NotFound,
    408: BadRequest,
    409: Conflict,
    410: Gone,
    413: BadRequest,
    429: Busy,
    503: Unavailable,
}


@dataclass(frozen=True)
class Near:
    """A document that is like another one. ``similarity`` is an estimate; ``exact`` is there if it was asked for, and both texts are at hand."""

    name: str
    similarity: float
    cluster: int | None
    exact: float | None = None


@dataclass(frozen=True)
class Change:
    """What became of a cluster: ``birth``, ``death``, ``grow``, ``shrink``, ``merge``, ``split`` or ``rename``."""

    event: str
    cluster: int
    into: int | None
    before: int
    after: int
    documents: int
    #: The number of the change, for ``Client.changes``; none in the answers of documents.
    number: int | None = None


@dataclass(frozen=True)
class Answer:
    """What is known of a document."""

    id: str | None
    url: str | None
    doc: int | None
    new: bool
    deleted: bool
    cluster: int | None
    size: int
    level: Level | None
    canonical: str | None
    nearest: tuple[Near, ...]
    changes: tuple[Change, ...]
    #: Whether the estimate decided about documents that may be in a cluster with this one, though texts should.
    estimated: bool = False

    @property
    def name(self) -> str:
        """The id or URL by which the server knows the document."""
        return self.id if self.id is not None else self.url or ""

    @property
    def stays(self) -> bool:
        """Whether the document is the first one of its cluster, or in none: the others are its near-duplicates."""
        return not self.deleted and self.canonical == self.name


@dataclass(frozen=True)
class Cluster:
    """A cluster with its first documents."""

    cluster: int
    size: int
    canonical: str
    documents: tuple[str, ...]
    #: As that of an answer.
    estimated: bool = False


@dataclass(frozen=True)
class Committed:
    """What a commit made. ``week`` is ``YYYY-MM-DD``; ``None`` if the store has no table yet."""

    week: str | None
    documents: int
    deleted: int


def _near(value: Mapping[str, Any]) -> Near:
    return Near(value["name"], value["similarity"], value["cluster"], value.get("exact"))


def _change(value: Mapping[str, Any]) -> Change:
    return Change(
        value["event"],
        value["cluster"],
        value.get("into"),
        value["before"],
        value["after"],
        value["documents"],
        value.get("number"),
    )


def _answer(value: Mapping[str, Any]) -> Answer:
    return Answer(
        id=value.get("id"),
        url=value.get("url"),
        doc=value["doc"],
        new=value["new"],
        deleted=value.get("deleted", False),
        cluster=value["cluster"],
        size=value["size"],
        level=value["level"],
        canonical=value["canonical"],
        nearest=tuple(map(_near, value["nearest"])),
        changes=tuple(map(_change, value["changes"])),
        estimated=value.get("estimated", False),
    )


class Client:
    """A connection to ``nigh live``. Threads may share it: their requests are sent one after the other."""

    def __init__(
        self,
        url: str,
        *,
        token: str | None = None,
        cafile: str | None = None,
        timeout: float = 600.0,
        patience: float = 60.0,
    ) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
            raise ValueError(f"{url} is not the address of a server: write http://HOST:PORT or https://HOST:PORT")
        if token is not None and parts.scheme == "http" and not _is_loopback(parts.hostname):
            raise ValueError(f"{url}: a token for another machine needs https, so that no other one reads it")
        self.url = url
        self._host = parts.hostname
        self._port = parts.port
        self._path = parts.path.rstrip("/")
        self._context = ssl.create_default_context(cafile=cafile) if parts.scheme == "https" else None
        self._headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        self._timeout = timeout
        self._patience = patience
        self._lock = threading.RLock()
        self._connection: http.client.HTTPConnection | None = None

    def add(
        self, documents: Iterable[Mapping[str, object]], *, batch: str | None = None, batch_size: int = 1000
    ) -> list[Answer]:
        """Adds documents, replaces those that are there, and returns an answer for each, in their order.

        A document has ``id`` or ``url``, and ``text`` or ``html``; with ``"delete": True`` it is deleted. Documents are sent in batches
        of ``batch_size`` at most. Each batch is taken as a whole and once, also if it has to be sent again.

        ``batch`` names the documents for a call that is repeated after a failure: what was taken is not taken twice.

        Raises ``BadRequest`` if a document is malformed: then its batch is not taken, but batches before it are.
        """
        name = uuid.uuid4().hex if batch is None else batch
        answers: list[Answer] = []
        for number, lines in enumerate(_batches(documents, batch_size)):
            part = name if number == 0 else f"{name}.{number}"
            answers += map(_answer, self._lines("POST", "/documents", lines, {"Batch-Id": part}))
        return answers

    def get(self, name: str, *, exact: bool = False) -> Answer:
        """What is known of a document, by its id or URL; with exact similarities, if ``exact``. Raises ``NotFound`` if it is not there."""
        return _answer(self._value("GET", f"/documents/{quote(name, safe='')}{'?exact=true' if exact else ''}"))

    def delete(self, name: str) -> Answer:
        """Deletes a document. Raises ``NotFound`` if it is not there."""
        return _answer(self._value("DELETE", f"/documents/{quote(name, safe='')}", is_once=True))

    def similar(self, *, text: str | None = None, html: str | None = None, most: int = 100, exact: bool = False) -> list[Near]:
        """The documents that are most like a text or a page, which is not added; with exact similarities, if ``exact``.

        Raises ``BadRequest`` if it has no word.
        """
        if (text is None) == (html is None):
            raise ValueError("give either text or html")
        body = {"text": text} if html is None else {"html": html}
        return [_near(value) for value in self._lines("POST", f"/similar?most={most}&exact={str(exact).lower()}", _line(body))]

    def cluster(self, cluster: int, *, most: int = 100) -> Cluster:
        """A cluster with ``most`` of its documents at most. Raises ``NotFound`` if it is not there."""
        value = self._value("GET", f"/clusters/{cluster}?most={most}")
        documents = tuple(value["documents"])
        return Cluster(value["cluster"], value["size"], value["canonical"], documents, value.get("estimated", False))

    def changes(self, since: int = 0) -> Iterator[Change]:
        """What became of clusters after the change of this number, until now. Raises ``Gone`` if that is not kept any more."""
        while True:
            values = self._lines("GET", f"/changes?since={since}&most={_CHANGES}")
            yield from map(_change, values)
            if not values:
                return
            since = values[-1]["number"]

    def commit(self) -> Committed:
        """Makes a batch of the store of what came since its tables were made, and waits for it, however long it takes."""
        value = self._value("POST", "/commit", is_once=True, is_long=True)
        return Committed(value["week"], value["documents"], value["deleted"])

    def close(self) -> None:
        """Closes the connection. The next request opens another one."""
        with self._lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"nigh.connect({self.url!r})"

    def _value(self, method: str, path: str, *, is_once: bool = False, is_long: bool = False) -> dict[str, Any]:
        value: dict[str, Any] = json.loads(self._request(method, path, b"", {}, is_once, is_long))
        return value

    def _lines(
        self, method: str, path: str, body: bytes = b"", headers: Mapping[str, str] | None = None
    ) -> list[dict[str, Any]]:
        answer = self._request(method, path, body, headers or {}, False, False)
        return [json.loads(line) for line in answer.splitlines()]

    def _request(
        self,
        method: str,
        path: str,
        body: bytes,
        headers: Mapping[str, str],
        is_once: bool,
        is_long: bool,
    ) -> bytes:
        """The body of the answer. A server that is busy, or not there, is asked again; what may be done once only is sent once.

        So is one that cannot answer now, but says when: one of its processes may be gone, say.
        """
        until = time.monotonic() + self._patience
        backoff = 0.1
        with self._lock:
            while True:
                if is_once:
                    # A connection that was idle may be closed by the server, which is seen too late.
                    self.close()
                try:
                    status, after, answer = self._send(method, path, body, headers, is_long)
                except (OSError, http.client.HTTPException) as error:
                    self.close()
                    is_sent = not isinstance(error, ConnectionRefusedError)
                    # An idle connection that the server has closed ends so with TLS.
                    is_closed = isinstance(error, (ssl.SSLEOFError, ssl.SSLZeroReturnError))
                    is_final = isinstance(error, (ssl.SSLError, socket.gaierror, TimeoutError)) and not is_closed
                    wait, backoff = backoff, min(2 * backoff, _LONGEST_WAIT)
                    if is_final or (is_once and is_sent) or time.monotonic() + wait > until:
                        raise
                else:
                    if status == 200:
                        return answer
                    wait = max(after or 0.0, 0.1)
                    # What was refused with 503 may have been done in part.
                    is_passing = status == 429 or (status == 503 and after is not None and not is_once)
                    if not is_passing or time.monotonic() + wait > until:
                        raise _REFUSALS.get(status, Refused)(status, _reason(answer))
                time.sleep(wait)

    def _send(
        self, method: str, path: str, body: bytes, headers: Mapping[str, str], is_long: bool
    ) -> tuple[int, float | None, bytes]:
        """Sends a request. Returns the status, the seconds to wait before it is sent again, if the server says these, and the body."""
        if self._connection is None:
            seconds = None if is_long else self._timeout
            if self._context is None:
                self._connection = http.client.HTTPConnection(self._host, self._port, timeout=seconds)
            else:
                self._connection = http.client.HTTPSConnection(
                    self._host, self._port, timeout=seconds, context=self._context
                )
        self._connection.request(method, self._path + path, body, {**self._headers, **headers})
        response = self._connection.getresponse()
        answer = response.read()
        if response.will_close or is_long:
            self.close()
        return response.status, _seconds(response.getheader("Retry-After")), answer


def connect(
    url: str,
    *,
    token: str | None = None,
    cafile: str | None = None,
    timeout: float = 600.0,
    patience: float = 60.0,
) -> Client:
    """Connects to ``nigh live`` at ``http://HOST:PORT`` or ``https://HOST:PORT``.

    ``token`` is that of the server; ``cafile`` has the certificate to trust, if the system does not know it. An answer may take ``timeout``
    seconds, except that of a commit. A server that is busy or not there is asked again for ``patience`` seconds.

    Raises ``OSError`` if there is no server, ``Refused`` if there is another one than ``nigh live``.
    """
    client = Client(url, token=token, cafile=cafile, timeout=timeout, patience=patience)
    try:
        answer = client._request("GET", "/healthz", b"", {}, False, False)
        try:
            is_live = json.loads(answer)["status"] == "ok"
        except (ValueError, KeyError, TypeError):
            is_live = False
        if not is_live:
            raise Refused(200, f"{url} is not a server of nigh live")
    except BaseException:
        client.close()
        raise
    return client


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def _line(value: Mapping[str, object]) -> bytes:
    # A lone surrogate has no UTF-8; the escape of JSON for it is refused by the server, with the line.
    return json.dumps(value, separators=(",", ":"), allow_nan=False).encode() + b"\n"


def _batches(documents: Iterable[Mapping[str, object]], size: int) -> Iterator[bytes]:
    """The lines of documents, in batches. The same documents always give the same batches."""
    if size < 1:
        raise ValueError(f"batch_size is {size}: it must be 1 at least")
    lines: list[bytes] = []
    length = 0
    for document in documents:
        line = _line(document)
        if lines and (len(lines) == size or length + len(line) > _BATCH_BYTES):
            yield b"".join(lines)
            lines, length = [], 0
        lines.append(line)
        length += len(line)
    if lines:
        yield b"".join(lines)


def _seconds(header: str | None) -> float | None:
    """What Retry-After says, within a bound; none without it."""
    if header is None:
        return None
    try:
        return min(max(float(header), 0.0), _LONGEST_WAIT)
    except ValueError:
        return 1.0


def _reason(body: bytes) -> str:
    try:
        return str(json.loads(body)["error"])
    except (ValueError, KeyError, TypeError):
        return body[:300].decode("utf-8", "replace").strip() or "refused without a reason"
