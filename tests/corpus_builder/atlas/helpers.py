"""What several tests of the atlas need."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator

from corpus_builder.capture import Capture
from corpus_builder.sources.atlas import AtlasSource


def plain(body: bytes) -> str:
    """Return the text of a page's article, tags stripped, white space folded."""
    page = body.decode("utf-8")
    article = page[page.index("<article>") : page.index("</article>")]
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", article)).split()).replace(" .", ".")


def crawl(source: AtlasSource) -> Iterator[Capture]:
    """Yield all captures of a source; a loss fails the test."""
    for shard in source.shards():
        for item in source.read(shard):
            assert isinstance(item, Capture)
            yield item
