"""The main text of a page as Markdown, by the means that suits the page.

On pages with little but their content, all that is left after navigation and hidden parts are
removed is the text; extraction by scoring loses lists and short sections there. On pages full of
other things (sharing, adverts, comments) trafilatura finds the article.
"""

from __future__ import annotations

import copy
import re

from lxml import html

from corpus_builder.boilerplate import is_cluttered, remove_hidden, remove_surroundings
from corpus_builder.markdown import to_markdown
from corpus_builder.textclean import tidy

_WORD = re.compile(r"\w+")
_LEAST_SHARE = 0.05  # of the words shown, below which the scored extraction missed the content
_LEAST_WORDS = 40


def main_text(root: html.HtmlElement) -> str:
    """Return the page's content as Markdown, "" if it shows no text. Changes the tree."""
    remove_hidden(root)
    scored = _scored(root) if is_cluttered(root) else ""
    remove_surroundings(root)
    if scored and _suffices(scored, root):
        return scored
    return to_markdown(root)


def _scored(root: html.HtmlElement) -> str:
    """Return what trafilatura takes for the article, "" if it finds none."""
    from trafilatura import extract

    found = extract(
        copy.deepcopy(root),
        output_format="markdown",
        fast=True,
        include_comments=False,
        include_links=False,
        include_tables=True,
    )
    return tidy(found or "")


def _suffices(text: str, root: html.HtmlElement) -> bool:
    """Return whether the extraction holds a fair share of what the page shows."""
    words = len(_WORD.findall(text))
    shown = sum(len(_WORD.findall(piece)) for piece in root.itertext() if isinstance(piece, str))
    return words >= min(_LEAST_WORDS, shown) and words >= _LEAST_SHARE * shown
