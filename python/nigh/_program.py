"""Runs the program: its input, progress, messages and errors."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import shutil
import signal
import subprocess
import sys
import sysconfig
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any

from ._progress import Bar

#: Seconds that the program has to end by itself, when it is told to.
_PATIENCE = 10.0


class Failed(RuntimeError):
    """The program failed. ``code`` is its exit code, ``message`` what it said."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message or f"nigh ended with exit code {code}")
        self.code = code
        self.message = message


class WrongUse(Failed, ValueError):
    """An argument, or what became of it in the job, is wrong."""


class NoColumn(WrongUse, LookupError):
    """The data lacks a column that an argument names, or has two of that name."""

    def __init__(self, message: str) -> None:
        super().__init__(2, message)


class TooManyRejects(Failed):
    """More records could not be read than the job allows."""


class Killed(Failed):
    """A signal ended the program: ``signal`` is its number. The kernel sends SIGKILL where memory is short."""

    def __init__(self, number: int, message: str) -> None:
        try:
            name = signal.Signals(number).name
        except ValueError:
            name = f"signal {number}"
        super().__init__(-number, f"{name} ended nigh" + (f": {message}" if message else ""))
        self.signal = number


def _error(code: int, message: str) -> Failed:
    """The error of an exit code: docs/running.md lists them."""
    if code < 0:
        return Killed(-code, message)
    kinds: dict[int, type[Failed]] = {2: WrongUse, 3: TooManyRejects}
    return kinds.get(code, Failed)(code, message)


def program() -> str:
    """The path of the program: that of this installation, or the first one on ``PATH``.

    Raises ``FileNotFoundError`` if there is none.
    """
    name = "nigh" + (sysconfig.get_config_var("EXE") or "")
    here = Path(sysconfig.get_path("scripts")) / name
    if here.is_file():
        return str(here)
    found = shutil.which(name)
    if found is None:
        raise FileNotFoundError("the program nigh is neither beside this Python nor on PATH: install the wheel of nigh, or put the program on PATH")
    return found


def run(*arguments: str | os.PathLike[str]) -> str:
    """Runs the program, and returns what it prints. What it says besides goes to standard error at its end.

    Raises ``Failed`` if it ends with another exit code than 0.
    """
    printed, said = execute(arguments)
    if said:
        print(said, file=sys.stderr)
    return printed


class Pipe:
    """Standard input of the program, as pyarrow writes to it. ``is_broken`` if the program no longer reads. ``written`` is called after each write."""

    def __init__(self, file: IO[bytes], written: Callable[[], None]) -> None:
        self._file = file
        self._written = written
        self.is_broken = False
        self.closed = False

    def write(self, data: Any) -> int:
        """Writes bytes to the program, all of them."""
        rest = memoryview(data).cast("B")
        count = len(rest)
        try:
            while rest:
                rest = rest[self._file.write(rest) :]
        except BrokenPipeError:
            self.is_broken = True
            raise
        self._written()
        return count

    def flush(self) -> None:
        """Nothing waits here."""

    def close(self) -> None:
        """The pipe is closed by the function that made it."""


def execute(
    arguments: tuple[str | os.PathLike[str], ...],
    *,
    feed: Callable[[Pipe], None] | None = None,
    bar: Bar | None = None,
    notices: bool = True,
) -> tuple[str, str]:
    """Runs the program. Returns what it prints, and what else it says that is no event.

    ``feed`` writes to its standard input. Its events, if ``--json`` is among the arguments, move ``bar`` once ``feed`` has returned; notices
    go to standard error as they come, while ``feed`` runs after each of its writes, and without ``notices`` only warnings. Whatever is raised meanwhile, by ``feed`` or by Ctrl-C, ends the program first.

    Raises ``Failed`` if it ends with another exit code than 0.
    """
    command = [program(), *(os.fspath(argument) for argument in arguments)]
    # What the caller passes counts, not the variables of the shell that stand for flags.
    passed = ("NIGH_KERNELS", "NIGH_CLOUD_CREDENTIALS", "NIGH_HUB", "NIGH_COMMON_CRAWL")
    environment = {name: value for name, value in os.environ.items() if not name.startswith("NIGH_") or name in passed}
    stdin = subprocess.DEVNULL if feed is None else subprocess.PIPE
    child = subprocess.Popen(command, stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment, bufsize=0)
    with _ended(child):
        said = _Said(child, bar, notices)
        if feed is not None:
            assert child.stdin is not None
            pipe = Pipe(child.stdin, said.show_notices)
            try:
                feed(pipe)
            except Exception:
                # The program ended while it was written to: its error says why.
                if not pipe.is_broken:
                    raise
            child.stdin.close()
        printed, message = said.until_the_end()
        code = child.wait()
    if code != 0:
        raise _error(code, said.error or message)
    return printed, message


@contextlib.contextmanager
def _ended(child: subprocess.Popen[bytes]) -> Iterator[None]:
    """Ends the program if something is raised, and waits for it."""
    try:
        yield
    except BaseException:
        # Before its standard input is closed, which would be the end of the data.
        if child.poll() is None:
            child.terminate()
            try:
                child.wait(_PATIENCE)
            except BaseException:
                child.kill()
        child.wait()
        raise
    finally:
        if child.stdin is not None:
            with contextlib.suppress(OSError):
                child.stdin.close()


class _Said:
    """What the program prints and says, read by two threads, so that no pipe fills up. The caller's thread shows it."""

    def __init__(self, child: subprocess.Popen[bytes], bar: Bar | None, notices: bool) -> None:
        self.error = ""
        self._bar = bar
        self._notices = notices
        self._printed: list[bytes] = []
        self._other: list[str] = []
        self._lines: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        stdout, stderr = child.stdout, child.stderr
        assert stdout is not None and stderr is not None
        self._reads_printed = threading.Thread(target=lambda: self._printed.append(_all_of(stdout)), daemon=True)
        self._reads_lines = threading.Thread(target=self._read_lines, args=(stderr,), daemon=True)
        self._reads_printed.start()
        self._reads_lines.start()

    def _read_lines(self, stderr: IO[bytes]) -> None:
        rest = b""
        with stderr:
            while data := stderr.read(1 << 16):
                *lines, rest = (rest + data).split(b"\n")
                for line in lines:
                    self._lines.put(line.decode(errors="replace"))
        if rest:
            self._lines.put(rest.decode(errors="replace"))
        self._lines.put(None)

    def show_notices(self) -> None:
        """Shows what the program has said until now. The bar is not moved: the caller shows how much is written."""
        with contextlib.suppress(queue.Empty):
            while (line := self._lines.get_nowait()) is not None:
                self._show(line, moves_bar=False)
            self._lines.put(None)

    def until_the_end(self) -> tuple[str, str]:
        """Shows what the program says until it ends. Returns what it printed, and what it said besides."""
        while (line := self._lines.get()) is not None:
            self._show(line)
        self._reads_printed.join()
        return b"".join(self._printed).decode(errors="replace"), "\n".join(self._other).strip()

    def _show(self, line: str, *, moves_bar: bool = True) -> None:
        event = _event(line)
        if event is None:
            self._other.append(line)
            return
        kind, message = event["event"], event.get("message", "")
        if kind == "progress":
            if self._bar is not None and moves_bar:
                self._bar.show(event["stage"], event.get("steps") or 0, event.get("of_steps") or 0)
        elif kind in ("error", "stopped"):
            self.error = message
        elif message and (self._notices or event.get("level") == "warning"):
            print(f"nigh: {message}", file=sys.stderr)


def _all_of(file: IO[bytes]) -> bytes:
    with file:
        return file.read()


def _event(line: str) -> dict[str, Any] | None:
    """An event of ``--json``; ``None`` if the line is something else."""
    if not line.startswith("{"):
        return None
    try:
        event = json.loads(line)
    except ValueError:
        return None
    return event if isinstance(event, dict) and "event" in event else None
