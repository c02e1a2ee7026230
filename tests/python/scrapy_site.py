"""Crawls a site of this machine with Scrapy and scripts/scrapy_pipeline.py, beside a `nigh live` of its own.

Prints the paths of the pages that stay, as JSON. Ends with 4 if Scrapy is not there.
"""

from __future__ import annotations

import http.server
import json
import socketserver
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2] / "scripts"))

try:
    import scrapy
    from scrapy.crawler import CrawlerProcess
except ImportError as error:
    print(f"scrapy is not there: {error}", file=sys.stderr)
    sys.exit(4)

import nigh

#: Pages of each family: they differ by a word of two thousand, so that each is like each other one, whichever comes first.
FAMILIES = {"news": 5, "shop": 3, "about": 1, "wiki": 4}


def page(family: str, number: int) -> str:
    words = " ".join(f"{family}{place}" for place in range(2000))
    links = "".join(f'<a href="/{name}/{other}"></a>' for name, count in FAMILIES.items() for other in range(count))
    return f"<html><title>{family}</title><p>{words} own{number}</p>{links}</html>"


class Site(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        family, _, number = self.path.strip("/").partition("/")
        body = page(family or "news", int(number or 0)).encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        pass


class Listener(socketserver.ThreadingTCPServer):
    daemon_threads = True


class Pages(scrapy.Spider):
    name = "pages"

    def parse(self, response: Any) -> Iterator[Any]:
        yield {"url": response.url, "html": response.text}
        yield from response.follow_all(css="a")


def main() -> None:
    site = Listener(("127.0.0.1", 0), Site)
    threading.Thread(target=site.serve_forever, daemon=True).start()
    with tempfile.TemporaryDirectory() as folder:
        command = [nigh.program(), "live", f"{folder}/store", "--listen", "127.0.0.1:0", "--workers", "1"]
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as live:
            try:
                assert live.stderr is not None
                url = next(line.split("listening at ")[1].strip() for line in live.stderr if "listening at " in line)
                out = Path(folder) / "items.jsonl"
                process = CrawlerProcess(
                    {
                        "ITEM_PIPELINES": {"scrapy_pipeline.SkipNearDuplicates": 300},
                        "NIGH_URL": url,
                        "FEEDS": {str(out): {"format": "jsonlines"}},
                        "ROBOTSTXT_OBEY": False,
                        "TELNETCONSOLE_ENABLED": False,
                        "LOG_LEVEL": "WARNING",
                    }
                )
                process.crawl(Pages, start_urls=[f"http://127.0.0.1:{site.server_address[1]}/news/0"])
                process.start()
                # The first page is crawled twice: links lead to it.
                stayed = [json.loads(line)["url"].split("/", 3)[3] for line in out.read_text().splitlines()]
                with nigh.connect(url) as client:
                    metrics = {family: client.get(f"http://127.0.0.1:{site.server_address[1]}/{family}/0").size for family in FAMILIES}
                print(json.dumps({"stayed": sorted(set(stayed)), "sizes": metrics}))
            finally:
                live.kill()
    site.shutdown()


main()
