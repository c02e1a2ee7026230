"""A pipeline of Scrapy that drops pages which are near-duplicates of pages that came before them.

Start `nigh live crawl`, and add to the settings of the project:

    ITEM_PIPELINES = {"scrapy_pipeline.SkipNearDuplicates": 300}
    NIGH_URL = "http://127.0.0.1:7744"

Items have `url`, and `html` or `text`. After the crawl
`nigh.connect(...).commit()`, or `nigh live --commit-every`, makes the tables.
"""

from __future__ import annotations

from typing import Any

import nigh
from itemadapter import ItemAdapter
from scrapy.exceptions import DropItem
from scrapy.utils.defer import maybe_deferred_to_future
from twisted.internet.threads import deferToThread


class SkipNearDuplicates:
    """Asks `nigh live` about each item. The crawl goes on meanwhile: the question waits in a thread."""

    def __init__(self, url: str, token: str | None) -> None:
        self.live = nigh.connect(url, token=token)

    @classmethod
    def from_crawler(cls, crawler: Any) -> SkipNearDuplicates:
        url = crawler.settings.get("NIGH_URL")
        if not url:
            raise ValueError("the setting NIGH_URL is missing: it is the address of `nigh live`, http://127.0.0.1:7744")
        return cls(url, crawler.settings.get("NIGH_TOKEN"))

    def close_spider(self, spider: Any = None) -> None:
        self.live.close()

    async def process_item(self, item: Any, spider: Any = None) -> Any:
        fields = ItemAdapter(item)
        document = {name: fields[name] for name in ("url", "html", "text") if fields.get(name) is not None}
        [answer] = await maybe_deferred_to_future(deferToThread(self.live.add, [document]))
        if not answer.stays:
            raise DropItem(f"{answer.name} is like {answer.canonical} ({answer.level})")
        return item
