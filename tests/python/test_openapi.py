"""Holds `nigh live` against the description of its requests that it serves, by schemathesis: the program is on PATH.

schemathesis makes requests that the description allows and others that it does not, the same ones each time. No answer may have a status, a
type or a form that the description does not have; what the description forbids must be refused, and what it allows must be taken. Afterwards
the process is killed, and must start again with the same documents. This module has the hooks of schemathesis, too.

Ends with 4 if schemathesis is not there.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import quote

try:
    import schemathesis
except ImportError as error:
    print(f"schemathesis is not there: {error}", file=sys.stderr)
    sys.exit(4)

TOKEN = "0123456789abcdef0123"
#: What the description cannot say of a request that it allows: why it may be refused.
REASONS = [
    "has no word",
    "is not base64",
    "bytes: in this store it has",
    "`supershingles` and `features` need each other",
    "not an http or https address",
]
CONFIG = """
[checks]
# Reasons of 400 are looked at below. 410 is of a change that is not kept any more.
positive_data_acceptance = { expected-statuses = ["2xx", "400", "404", "409", "410"] }
negative_data_rejection = { expected-statuses = ["400", "401", "404", "405", "409", "413"] }
"""


@schemathesis.serializer("application/x-ndjson")
def written(_context: Any, value: Any) -> bytes:
    lines = value if isinstance(value, list) else [value]
    return b"".join(json.dumps(line).encode() + b"\n" for line in lines)


@schemathesis.deserializer("application/x-ndjson")
def read(_context: Any, response: Any) -> Any:
    return [json.loads(line) for line in response.content.splitlines()]


@schemathesis.check
def valid_requests_are_taken(_context: Any, response: Any, case: Any) -> None:
    """Those that are refused have a reason that the description cannot have."""
    if response.status_code == 400 and case.meta is not None and case.meta.generation.mode.is_positive:
        text = json.loads(response.content)["error"]
        assert any(reason in text for reason in REASONS), text


@schemathesis.hook
def map_path_parameters(_context: Any, values: dict[str, Any] | None) -> dict[str, Any] | None:
    """Half of the names, and of the ids of clusters, are of what is there."""
    if values is None:
        return None
    name, cluster = values.get("name"), values.get("id")
    if isinstance(name, str) and name and len(name) % 2:
        values["name"] = os.environ["NIGH_NAME"]
    if isinstance(cluster, int) and not isinstance(cluster, bool) and cluster % 2:
        # A commit gives it another id.
        values["id"] = json.loads(sent(os.environ["NIGH_STAYS"], os.environ["NIGH_TOKEN"]))["cluster"]
    return values


def sent(url: str, token: str, body: bytes | None = None) -> str:
    """The answer to a request."""
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    with urllib.request.urlopen(urllib.request.Request(url, body, headers), timeout=60) as answer:
        text: str = answer.read().decode()
        return text


class Server:
    """`nigh live` on a store."""

    def __init__(self, folder: Path, by: str, token: str) -> None:
        self.token = token
        command = ["nigh", "live", str(folder / "store"), "--listen", "127.0.0.1:0", "--by", by, "--workers", "2"]
        if token:
            (folder / "token").write_text(token)
            command += ["--token-file", str(folder / "token")]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
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

    def documents(self) -> int:
        found = re.search(r"^nigh_live_documents (\d+)$", sent(self.url + "/metrics", self.token), re.M)
        assert found is not None
        return int(found[1])

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


def hold(by: str, token: str) -> tuple[int, str]:
    """Runs schemathesis against a server. Returns its exit code, and what it prints."""
    names = ["1", "2"] if by == "id" else ["http://a.example/1", "http://a.example/2"]
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        server = Server(folder, by, token)
        try:
            # Requests delete and replace the first one. The others stay, as a cluster.
            words = " ".join(f"w{place}" for place in range(100))
            for name in [*names, names[1] + "0"]:
                sent(server.url + "/documents", token, json.dumps({by: name, "text": words}).encode())
            (folder / "schemathesis.toml").write_text(CONFIG)
            phases = "coverage,fuzzing,stateful" if by == "id" else "coverage,fuzzing"
            command = [sys.executable, "-m", "schemathesis.cli", "--config-file", str(folder / "schemathesis.toml"), "run"]
            command += [server.url + "/openapi.json", "--seed", "1", "--max-examples", "8", "--no-color", "--no-shrink"]
            command += ["--phases", phases, "--continue-on-failure", "--generation-database", "none"]
            command += ["--request-timeout", "30", "--warnings", "off"]
            # Commits take the most of the time: those of one of the servers are enough.
            command += ["--exclude-path", "/commit"] if by == "url" else []
            command += ["--header", f"Authorization: Bearer {token}"] if token else []
            hooks = {"SCHEMATHESIS_HOOKS": "test_openapi", "PYTHONPATH": str(Path(__file__).parent), "NIGH_NAME": names[0]}
            stays = f"{server.url}/documents/{quote(names[1], safe='')}"
            environment = {**os.environ, **hooks, "NIGH_STAYS": stays, "NIGH_TOKEN": token}
            ran = subprocess.run(command, env=environment, cwd=folder, capture_output=True, text=True, timeout=300)
            text = f"by {by}, {'with a' if token else 'without a'} token\n{ran.stdout}{ran.stderr}"
            assert server.process.poll() is None, text
            count = server.documents()
            assert count >= 2, text
            server.kill()
            server = Server(folder, by, token)
            assert server.documents() == count, f"{server.documents()} documents after a kill, {count} before"
            return ran.returncode, text
        finally:
            server.kill()


def main() -> None:
    with ThreadPoolExecutor() as pool:
        runs = list(pool.map(hold, ["id", "url"], [TOKEN, ""]))
    for code, text in runs:
        print(text[-20_000:] if code else "\n".join(text.splitlines()[-25:]))
    sys.exit(1 if any(code for code, _ in runs) else 0)


if __name__ == "__main__":
    main()
