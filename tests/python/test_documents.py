"""`scripts/documents.py` on pages with blocks that fail. Ends with 4 if Polars is not there. Run as test_memory.py."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import textwrap
import unittest
from pathlib import Path

try:
    import polars  # noqa: F401
except ImportError as error:
    print(f"{error}: python3 -m pip install polars", file=sys.stderr)
    sys.exit(4)

SCRIPT = Path(__file__).parents[2] / "scripts" / "documents.py"


class Documents(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        # The store of the pages, which these blocks do not use.
        self.program = self.folder / "nigh"
        self.program.write_text('#!/bin/sh\nwhile [ $# -gt 0 ]; do [ "$1" != --store ] || mkdir -p "$2"; shift; done\n')
        self.program.chmod(0o755)

    def checked(self, kind: str, source: str, output: str, *flags: str) -> tuple[subprocess.CompletedProcess[str], bool]:
        """Runs a page of one block. Returns how that ended, and whether the page is as it was."""
        page = self.folder / "page.md"
        text = f"# Page\n\n```{kind}\n{textwrap.dedent(source).strip()}\n```\n\n```text\n{output}\n```\n"
        page.write_text(text)
        command = [sys.executable, SCRIPT, "--kind", kind, *flags, page]
        done = subprocess.run(command, env={**os.environ, "NIGH": str(self.program)}, capture_output=True, text=True, check=False)
        return done, page.read_text() == text

    def test_a_block_that_fails_is_wrong_whatever_it_prints(self) -> None:
        failing = {"python": 'print("as expected")\nraise ValueError("it failed later")', "sh": "echo as expected\nfalse"}
        for kind, source in failing.items():
            for expected in ("as expected", "something else"):
                for flags in ([], ["--write"]):
                    done, is_same = self.checked(kind, source, expected, *flags)
                    self.assertEqual(done.returncode, 1, (kind, expected, flags, done.stdout))
                    self.assertIn("1 outputs were compared, 1 differ", done.stdout)
                    self.assertIn("line 8: it failed", done.stdout)
                    self.assertIn("ended with 1", done.stderr)
                    self.assertTrue(is_same)

    def test_an_error_that_the_page_shows_is_none(self) -> None:
        done, _ = self.checked("sh", "echo 'nigh: no such store' >&2\nexit 2", "nigh: no such store")
        self.assertEqual(done.returncode, 0, done.stdout)

    def test_what_a_block_prints_is_compared_and_written(self) -> None:
        self.assertEqual(self.checked("python", "print(1 + 1)", "2")[0].returncode, 0)
        self.assertEqual(self.checked("python", "print(1 + 1)", "3")[0].returncode, 1)
        done, is_same = self.checked("python", "print(1 + 1)", "3", "--write")
        self.assertEqual((done.returncode, is_same), (0, False))
        self.assertIn("```text\n2\n```", (self.folder / "page.md").read_text())


if __name__ == "__main__":
    unittest.main()
