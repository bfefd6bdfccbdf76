"""Write the content of an element tree as Markdown: headings, lists, tables, code, paragraphs."""

from __future__ import annotations

import re

from lxml import etree, html

from corpus_builder.textclean import tidy

_BLOCKS = frozenset(
    [
        "address", "article", "aside", "blockquote", "body", "caption", "center", "dd", "details",
        "dialog", "dir", "div", "dl", "dt", "fieldset", "figcaption", "figure", "footer", "form",
        "h1", "h2", "h3", "h4", "h5", "h6", "header", "hgroup", "hr", "html", "legend", "li",
        "main", "menu", "nav", "ol", "p", "section", "summary", "table", "tbody", "td", "tfoot",
        "th", "thead", "tr", "ul", "pre",
    ]
)  # fmt: skip
_SKIPPED = frozenset(["head", "script", "style", "title"])
_HEADINGS = {f"h{level}": "#" * level for level in range(1, 7)}
_SPACES = re.compile(r"[ \t\r\n\f\xa0]+")
_BREAK = "\x1e"  # stands for a forced line break until white space is collapsed
_BREAKS = re.compile(f" ?{_BREAK} ?")
_EDGES = re.compile(r"\A(?:[ \t\r]*\n)+")
_CELL_LIMIT = 400  # characters above which a table is layout, not data
_CELL_BLOCKS = 3  # paragraphs in one cell above which the same holds


def to_markdown(root: html.HtmlElement) -> str:
    """Return the tree's text as Markdown; links keep their text only, pictures are left out."""
    writer = _Writer()
    writer.element(root)
    writer.end_block()
    return tidy("\n".join(writer.lines))


class _Writer:
    """Collects inline text and writes it out a block at a time."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._inline: list[str] = []
        self._mark = ""  # what the next block begins with: a heading's or list item's mark
        self._indent = ""
        self._tight = False  # True between items of a list

    def element(self, element: html.HtmlElement) -> None:
        """Write an element and what it holds."""
        tag = element.tag
        if not isinstance(tag, str) or tag in _SKIPPED:
            return
        if tag == "br":
            self._inline.append(_BREAK)
        elif tag == "pre":
            self._code_block(element)
        elif tag == "table" and _is_data(element):
            self._table(element)
        elif tag in ("ul", "ol", "menu", "dir"):
            self._list(element)
        elif tag in _BLOCKS:
            self._block(element)
        elif tag == "code":
            self._code(element)
        else:
            self._content(element)

    def end_block(self) -> None:
        """Write out the inline text collected so far."""
        text = _inline_text(self._inline)
        self._inline.clear()
        if not text:
            return
        if not self._tight:
            self._blank()
        indent = self._indent
        if self._mark:
            # The mark stands where the indent of its own item ends.
            outer = indent[: len(indent) - len(self._mark)] if indent else ""
            first = outer + self._mark
            self._mark = ""
        else:
            first = indent
        head, *rest = text.split("\n")
        self.lines.append(first + head)
        self.lines.extend(indent + line for line in rest)
        self._tight = False

    def _blank(self) -> None:
        if self.lines and self.lines[-1]:
            self.lines.append("")

    def _content(self, element: html.HtmlElement) -> None:
        if element.text:
            self._inline.append(element.text)
        for child in element:
            self.element(child)
            if child.tail:
                self._inline.append(child.tail)

    def _block(self, element: html.HtmlElement) -> None:
        self.end_block()
        outer = self._indent
        if element.tag in _HEADINGS and not outer:
            self._mark = _HEADINGS[element.tag] + " "
            self._tight = False
            self._inline.append(_inline_text([element.text_content()]).replace("\n", " "))
        else:
            self._indent = outer + "> " if element.tag == "blockquote" else outer
            self._content(element)
        self.end_block()
        self._indent = outer
        if element.tag in _HEADINGS:
            self._mark = ""

    def _list(self, element: html.HtmlElement) -> None:
        self.end_block()
        if not self._indent:
            self._blank()
        number = 1
        outer = self._indent
        self._stray(element.text)
        for child in element:
            if child.tag == "li":
                self._mark = f"{number}. " if element.tag == "ol" else "- "
                number += 1
                self._indent = outer + " " * len(self._mark)
                self._tight = True
                self._content(child)
                self.end_block()
                self._indent, self._mark = outer, ""
            else:
                self.element(child)
            self._stray(child.tail)
        self.end_block()
        if not outer:
            self._blank()

    def _stray(self, text: str | None) -> None:
        """Take text between the items of a list, where none should be."""
        if text and text.strip():
            self._inline.append(text)
            self.end_block()

    def _code(self, element: html.HtmlElement) -> None:
        text = element.text_content()
        plain = text.strip()
        ticks = plain and "`" not in plain and "\n" not in plain
        self._inline.append(f"`{plain}`" if ticks else text)

    def _code_block(self, element: html.HtmlElement) -> None:
        self.end_block()
        text = _EDGES.sub("", element.text_content()).rstrip()
        if text.strip():
            self._blank()
            fence = "```" if "```" not in text else "````"
            for line in [fence, *text.split("\n"), fence]:
                self.lines.append(self._indent + line)
            self.lines.append("")

    def _table(self, element: html.HtmlElement) -> None:
        self.end_block()
        self._blank()
        caption = element.find("caption")
        if caption is not None and (text := _inline_text([caption.text_content()])):
            self.lines.extend([text.replace("\n", " "), ""])
        first = True
        for row in element.iter("tr"):
            cells = [_cell(cell) for cell in row if cell.tag in ("td", "th")]
            if not any(cells):
                continue
            self.lines.append("| " + " | ".join(cells) + " |")
            if first:
                self.lines.append("|" + " --- |" * len(cells))
                first = False
        self.lines.append("")


def _inline_text(pieces: list[str]) -> str:
    """Return collected text with white space collapsed and forced line breaks kept."""
    return _BREAKS.sub("\n", _SPACES.sub(" ", "".join(pieces))).strip(" \n")


def _cell(cell: html.HtmlElement) -> str:
    """Return a table cell as one line."""
    pieces: list[str] = []
    for event, element in etree.iterwalk(cell, events=("start", "end")):
        block = element.tag in _BLOCKS or element.tag == "br"
        if event == "start":
            pieces.append(" " if block else "")
            if isinstance(element.tag, str) and element.tag not in _SKIPPED:
                pieces.append(element.text or "")
        elif element is not cell:
            pieces.append(" " if block else "")
            pieces.append(element.tail or "")
    return _SPACES.sub(" ", "".join(pieces)).strip().replace("|", "\\|")


def _is_data(table: html.HtmlElement) -> bool:
    """Return whether a table holds values rather than the layout of a page."""
    if (table.get("role") or "").lower() in ("presentation", "none"):
        return False
    columns = 0
    for row in table.iter("tr"):
        cells = [cell for cell in row if cell.tag in ("td", "th")]
        columns = max(columns, len(cells))
        for cell in cells:
            if next(cell.iter("table", "pre", "h1", "h2", "h3"), None) is not None:
                return False
            blocks = sum(1 for _ in cell.iter("p", "div"))
            if blocks > _CELL_BLOCKS or len(cell.text_content()) > _CELL_LIMIT:
                return False
    return columns > 1
