"""What a notebook shows, executed by a kernel: a store, a week, a cluster, a figure, progress, and what an interrupt does.

Ends with 4 if `nbclient` or `ipykernel` is not there. Run as test_memory.py.
"""

from __future__ import annotations

import sys
import tempfile
import time
import unittest
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

try:
    import ipykernel  # noqa: F401
    import jupyter_client
    import nbclient
    import nbformat
except ImportError as error:
    print(f"{error}: python3 -m pip install nbclient ipykernel", file=sys.stderr)
    sys.exit(4)

import nigh

ROOT = Path(__file__).parents[2]
HOSTILE = "<script>alert(1)</script>&\u202e <b>bold"


class Seen(HTMLParser):
    """The tags of a piece of HTML, and its text."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.open: list[str] = []
        self.text = ""
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.tags.append(tag)
        if tag not in ("img",):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag, tag

    def handle_data(self, data: str) -> None:
        self.text += data


class Notebook(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.store = self.folder / "store"

    def executed(self, *cells: str) -> list[Any]:
        """Executes cells in a kernel. Returns what each shows."""
        notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
        nbclient.NotebookClient(notebook, timeout=120, kernel_name="python3", resources={"metadata": {"path": str(ROOT)}}).execute()
        return [cell.outputs for cell in notebook.cells]

    def html(self, outputs: list[Any]) -> Seen:
        shown = [output for output in outputs if output.output_type == "execute_result"]
        self.assertEqual(len(shown), 1, outputs)
        seen = Seen(shown[0]["data"]["text/html"])
        self.assertEqual(seen.open, [])
        self.assertFalse({"script", "style", "link", "iframe", "b"} & set(seen.tags))
        return seen

    def test_a_store_a_week_a_cluster_and_figures(self) -> None:
        nigh.run("run", "jobs/example.toml", "--quiet", "--store", self.store)
        summary = nigh.open(self.store).summary()
        largest = summary["levels"][0]["largest"][0]
        store, week, cluster, figures, figure, missing = self.executed(
            f"import nigh\nstore = nigh.open({str(self.store)!r})\nstore",
            "store.run()",
            f"store.cluster({largest['cluster_id']})",
            "store.figures",
            "store.figures['Fetterly 2004, Fig. 1']",
            "try:\n    store.figures['no such figure']\nexcept KeyError as error:\n    print(error)",
        )
        seen = self.html(store)
        self.assertIn(f"{summary['levels'][0]['clusters']:,}", seen.text)
        self.assertIn("clusters", seen.text)
        seen = self.html(week)
        self.assertIn(f"{summary['counts']['documents']:,} pages", seen.text)
        self.assertEqual(seen.tags.count("table"), 2)
        self.assertIn(largest["name"], seen.text)
        seen = self.html(cluster)
        self.assertIn(f"Cluster {largest['cluster_id']}: {largest['urls']:,} pages", seen.text)
        self.assertEqual(seen.tags.count("tr"), 1 + min(20, largest["urls"]))
        seen = self.html(figures)
        self.assertIn("Fetterly 2004, Fig. 1", seen.text)
        seen = self.html(figure)
        self.assertEqual(seen.tags.count("img"), 1)
        self.assertIn("there is no figure no such figure", missing[0]["text"])

    def test_hostile_texts_stay_texts(self) -> None:
        import pyarrow as pa

        words = " ".join(f"word{place}" for place in range(100))
        rows = pa.table({"id": [HOSTILE, HOSTILE + "2"], "text": [words, words + " more"]})
        nigh.cluster(rows, id="id", similarity=0.8, store=self.store)
        cluster_id = nigh.open(self.store).rows("clusters")["cluster_id"].to_pylist()[0]
        week, cluster = self.executed(f"import nigh\nstore = nigh.open({str(self.store)!r})\nstore.run()", f"store.cluster({cluster_id})")
        for outputs in (week, cluster):
            seen = self.html(outputs)
            self.assertIn("<script>alert(1)</script>&\\u{202e} <b>bold", seen.text)

    def test_progress_is_shown_in_the_cell_and_goes(self) -> None:
        rows = "import nigh, pyarrow as pa\nrows = pa.table({'text': [f'w{n} ' * 50 for n in range(1000)]})\n"
        hidden = "import importlib.util\nimportlib.util.find_spec = lambda name: None\n"
        shown, silent = self.executed(hidden + rows + "len(nigh.cluster(rows, similarity=0.8))", "len(nigh.cluster(rows, similarity=0.8, progress=False))")
        pictures = [output["data"]["text/html"] for output in shown if output.output_type == "display_data"]
        # One picture, which is empty at the end.
        self.assertEqual(pictures, [""])
        self.assertEqual([output["data"]["text/plain"] for output in shown if output.output_type == "execute_result"], ["1000"])
        self.assertEqual([output.output_type for output in silent], ["execute_result"])
        self.assertEqual([output for output in shown if output.output_type == "stream"], [])

    def test_an_interrupt_of_the_kernel_ends_the_program(self) -> None:
        manager = jupyter_client.KernelManager(kernel_name="python3")
        manager.start_kernel()
        self.addCleanup(manager.shutdown_kernel, now=True)
        client = manager.client()
        client.start_channels()
        self.addCleanup(client.stop_channels)
        client.wait_for_ready(timeout=60)
        mark = self.folder / "reading"
        code = f"""
import time, os, subprocess, pathlib
import pyarrow as pa, nigh
def batches():
    yield pa.record_batch({{"text": ["some words"]}})
    pathlib.Path({str(mark)!r}).write_text(" ".join(pathlib.Path(f"/proc/self/task/{{os.getpid()}}/children").read_text().split()))
    time.sleep(600)
nigh.cluster(pa.RecordBatchReader.from_batches(pa.schema({{"text": pa.string()}}), batches()))
"""
        message = client.execute(code)
        while not (mark.is_file() and mark.read_text()):
            time.sleep(0.05)
        manager.interrupt_kernel()
        while True:
            reply = client.get_shell_msg(timeout=60)
            if reply["parent_header"].get("msg_id") == message:
                break
        self.assertEqual((reply["content"]["status"], reply["content"].get("ename")), ("error", "KeyboardInterrupt"))
        self.assertTrue(mark.read_text())
        for child in mark.read_text().split():
            self.assertFalse(Path(f"/proc/{child}").exists())


if __name__ == "__main__":
    unittest.main()
