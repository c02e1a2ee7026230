"""How far a run is: a bar of tqdm, of a notebook, or lines."""

from __future__ import annotations

import html
import importlib
import importlib.util
import sys
import time
from typing import Any, Protocol

#: Seconds between two lines, or two pictures in a notebook.
_EVERY = {"lines": 5.0, "notebook": 0.2}


class Bar(Protocol):
    """What shows how far a run is."""

    def show(self, stage: str, done: int, of: int) -> None:
        """``done`` of ``of`` steps of a stage; ``of`` is 0 if that is not known."""

    def close(self) -> None:
        """Ends it."""


def bar(progress: bool | None) -> Bar:
    """The bar that a caller wants: ``None`` is one where a person looks, in a notebook or on a terminal."""
    if progress is False or progress is None and not (_is_notebook() or sys.stderr.isatty()):
        return _Nothing()
    has_tqdm = importlib.util.find_spec("tqdm") is not None
    if _is_notebook():
        return _Tqdm("tqdm.notebook") if has_tqdm and importlib.util.find_spec("ipywidgets") is not None else _Html()
    return _Tqdm("tqdm.std") if has_tqdm else _Lines()


def _is_notebook() -> bool:
    """Whether this is the process of a notebook. It has loaded IPython then."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return type(shell).__name__ == "ZMQInteractiveShell"


class _Nothing:
    def show(self, stage: str, done: int, of: int) -> None:
        pass

    def close(self) -> None:
        pass


class _Tqdm:
    def __init__(self, module: str) -> None:
        self._new: Any = importlib.import_module(module).tqdm
        self._bar: Any = None
        self._stage = ""

    def show(self, stage: str, done: int, of: int) -> None:
        if self._bar is None:
            self._bar = self._new(desc="nigh", leave=False)
        if stage != self._stage:
            self._stage = stage
            self._bar.set_description(f"nigh: {stage}", refresh=False)
            self._bar.reset(total=of or None)
        if of and self._bar.total != of:
            self._bar.total = of
        self._bar.update(done - self._bar.n)
        if done == of:
            self._bar.refresh()

    def close(self) -> None:
        if self._bar is not None:
            self._bar.close()


class _Html:
    """A picture in the cell of a notebook, which is made again."""

    def __init__(self) -> None:
        self._shown: Any = None
        self._stage, self._at = "", 0.0

    def show(self, stage: str, done: int, of: int) -> None:
        now = time.monotonic()
        if stage == self._stage and now - self._at < _EVERY["notebook"]:
            return
        self._stage, self._at = stage, now
        value = f' value="{min(done, of)}" max="{of}"' if of else ""
        self._picture(f"<progress{value}></progress> nigh: {html.escape(stage)} {done:,}{f' of {of:,}' if of else ''}")

    def _picture(self, picture: str) -> None:
        module: Any = importlib.import_module("IPython.display")
        shown = module.HTML(picture)
        if self._shown is None:
            self._shown = module.display(shown, display_id=True)
        else:
            self._shown.update(shown)

    def close(self) -> None:
        if self._shown is not None:
            self._picture("")


class _Lines:
    def __init__(self) -> None:
        self._stage, self._at = "", 0.0

    def show(self, stage: str, done: int, of: int) -> None:
        now = time.monotonic()
        if stage == self._stage and now - self._at < _EVERY["lines"]:
            return
        self._stage, self._at = stage, now
        print(f"nigh: {stage} {done:,}{f' of {of:,}' if of else ''}", file=sys.stderr)

    def close(self) -> None:
        pass
