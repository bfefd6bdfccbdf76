"""Decode a body: byte-order mark, HTTP header, meta element, then the bytes themselves."""

from __future__ import annotations

import codecs
import re

_MARKS = (
    (b"\xef\xbb\xbf", "utf-8"),
    (b"\xff\xfe\x00\x00", "utf-32-le"),
    (b"\x00\x00\xfe\xff", "utf-32-be"),
    (b"\xff\xfe", "utf-16-le"),
    (b"\xfe\xff", "utf-16-be"),
)
# What browsers take a label to mean, where Python is stricter or of another opinion.
_MEANT = {
    "ascii": "cp1252",
    "iso8859-1": "cp1252",
    "iso8859-9": "cp1254",
    "iso8859-11": "cp874",
    "tis-620": "cp874",
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "shift_jis": "cp932",
    "euc_kr": "cp949",
    "big5": "big5hkscs",
}
# Labels that browsers know and Python does not.
_LABELS = {
    "gb_2312-80": "gb18030",
    "x-gbk": "gb18030",
    "x-sjis": "cp932",
    "windows-31j": "cp932",
    "x-euc-jp": "euc_jp",
    "ks_c_5601-1987": "cp949",
    "windows-949": "cp949",
    "cn-big5": "big5hkscs",
    "x-x-big5": "big5hkscs",
    "big5-hkscs": "big5hkscs",
    "dos-874": "cp874",
    "windows-874": "cp874",
    "iso-8859-8-i": "iso8859-8",
    "x-cp1251": "cp1251",
    "x-cp1252": "cp1252",
    "unicode-1-1-utf-8": "utf-8",
    "x-mac-cyrillic": "mac-cyrillic",
    "macintosh": "mac-roman",
}
_SINGLE_BYTE = re.compile(r"cp125\d|cp874|iso8859-\d+|koi8-[rut]|mac-\w+|latin\w*")
_UNUSABLE = frozenset({"utf-7", "idna", "punycode", "raw_unicode_escape", "unicode_escape"})
_META = re.compile(
    rb"""<meta\b[^>]{0,1000}?\bcharset\s*=\s*["']?\s*([A-Za-z0-9_.:-]+)"""
    rb"""|<\?xml\b[^>]{0,200}?\bencoding\s*=\s*["']([A-Za-z0-9_.:-]+)""",
    re.IGNORECASE,
)
_META_SEARCHED = 16 * 1024
_PLAIN_RUN = re.compile(rb"([\x00-\x7f]{2})[\x00-\x7f]{14,}")
_SAMPLE = 256 * 1024
_TOLERATED = 0.02  # damaged characters a page may have and still be read by its label


def decode(body: bytes, declared: str = "", *, html: bool = True) -> str:
    """Return the body as text; what cannot be decoded becomes U+FFFD. Never raises.

    Valid UTF-8 wins over a wrong single-byte label, and a label that the bytes contradict counts
    as none. Without a usable label the whole body decides, not its beginning.
    """
    for mark, name in _MARKS:
        if body.startswith(mark):
            return body[len(mark) :].decode(name, "replace")
    labels = [declared]
    found = _META.search(body[:_META_SEARCHED]) if html else None
    if found:
        meta = (found[1] or found[2]).decode("ascii").lower()
        # A document whose meta element can be read as ASCII is not in UTF-16.
        labels.append("utf-8" if meta.startswith(("utf-16", "utf-32")) else meta)
    utf8 = _strict(body, "utf-8")
    for label in labels:
        name = codec(label)
        if name and (text := _by_label(body, name, utf8)) is not None:
            return text
    if utf8 is not None:
        return utf8
    return body.decode(detect(body), "replace")


def codec(label: str) -> str:
    """Return the name of the codec that browsers mean by a label, "" if there is none."""
    wanted = label.strip().lower()
    try:
        name = codecs.lookup(_LABELS.get(wanted, wanted)).name
    except (LookupError, ValueError):
        return ""
    return "" if name in _UNUSABLE else _MEANT.get(name, name)


def _by_label(body: bytes, name: str, utf8: str | None) -> str | None:
    """Return the text by its label, or None if the bytes say that the label is wrong."""
    if utf8 is not None and (name == "utf-8" or _SINGLE_BYTE.fullmatch(name)):
        return utf8
    try:
        text = _strict(body, name)
        if text is not None:
            return text
        text = body.decode(name, "replace")
    except (LookupError, TypeError):
        return None  # a codec between other things than bytes and text
    foreign = sum(byte > 127 for byte in body[:_SAMPLE])
    damaged = text[:_SAMPLE].count("\ufffd")
    return text if damaged <= 2 + _TOLERATED * foreign else None


def _strict(body: bytes, name: str) -> str | None:
    try:
        text = body.decode(name)
    except UnicodeDecodeError:
        return None
    return text if isinstance(text, str) else None


def detect(body: bytes) -> str:
    """Return the most likely codec of a body that is not UTF-8 and says nothing of itself."""
    wide = _wide(body)
    if wide:
        return wide
    # Long runs of ASCII say nothing; a run's first bytes may belong to a character before it.
    sample = _PLAIN_RUN.sub(rb"\1 ", body)[:_SAMPLE]
    from resiliparse.parse.encoding import detect_encoding

    name = codec(detect_encoding(sample, max_len=_SAMPLE, html5_compatible=False) or "")
    return name if name and name != "utf-8" else "cp1252"


def _wide(body: bytes) -> str:
    """Return UTF-16's name if every second byte is mostly zero, "" if not."""
    head = body[:4096]
    pairs = len(head) // 2
    if pairs < 8:
        return ""
    if head[1::2].count(0) > 0.7 * pairs and head[::2].count(0) < 0.1 * pairs:
        return "utf-16-le"
    if head[::2].count(0) > 0.7 * pairs and head[1::2].count(0) < 0.1 * pairs:
        return "utf-16-be"
    return ""
