"""Clean text: what may stand in a title, a text or a header of a page."""

from __future__ import annotations

import os
import re

_LINE_ENDS = re.compile(r"\r\n?|\u2028|\u2029|\x0b|\x0c|\x85")
# Everything below U+0020 but tab and newline, DEL, the C1 controls, and the code points that
# Unicode sets aside as no characters.
_REMOVED = re.compile(
    "[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f\ufdd0-\ufdef\ufffe\uffff\ufeff]"
    "|["
    + "".join(chr((plane << 16) | 0xFFFE) + chr((plane << 16) | 0xFFFF) for plane in range(1, 17))
    + "]"
)
_SURROGATES = re.compile("[\ud800-\udfff]")
_BLANK_LINES = re.compile(r"\n{3,}")
_TRAILING = re.compile(r"[ \t]+$", re.MULTILINE)
_SPACES = re.compile(r"\s+")


def clean(text: str) -> str:
    """Return the text without control characters, with LF line ends and no lone surrogate.

    Tab and newline stay. A lone surrogate becomes U+FFFD; a byte-order mark inside the text goes.
    Nothing else changes: no Unicode normalisation, no folding.
    """
    text = _LINE_ENDS.sub("\n", text)
    text = _REMOVED.sub("", text)
    return _SURROGATES.sub("\ufffd", text)


def tidy(text: str) -> str:
    """Return clean text without trailing spaces, runs of blank lines, or blank ends."""
    return _BLANK_LINES.sub("\n\n", _TRAILING.sub("", clean(text))).strip("\n")


def one_line(text: str) -> str:
    """Return clean text with every run of white space as one space, for titles and link texts."""
    return _SPACES.sub(" ", clean(text)).strip()


def header_text(value: bytes) -> str:
    """Return a header's bytes as one clean line: UTF-8 where valid, else Latin-1."""
    try:
        text = value.decode("utf-8")
    except UnicodeDecodeError:
        text = value.decode("latin-1")
    return one_line(text)


def path_text(path: str) -> str:
    """Return a file's path as valid text, with bytes that are not UTF-8 as escapes."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")
