"""URL identity: which addresses are one page.

The key of a page is ``canonical(url)``. The folding rules are those of ``docs/modules.md`` and no
others; a rule that guesses (``www.``, trailing slashes, ``index.html``) would swap two pages.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from hashlib import sha256
from ipaddress import AddressValueError, IPv6Address
from typing import Final
from urllib.parse import quote, unquote

_UNRESERVED: Final = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
_PCHAR: Final = r"A-Za-z0-9._~!$&'()*+,;=:@/-"
# An escape in its normal form: of no unreserved character, in upper case.
_ESCAPE: Final = r"%(?:[0189A-F][0-9A-F]|2[0-9A-CF]|3[A-F]|40|5[B-E]|60|7[B-DF])"
_BROKEN: Final = "%(?![0-9A-Fa-f]{2})"
# (what stands as it is, what is normalised); a path and a query differ in the question mark only.
_PATH: Final = (
    re.compile(f"(?:[{_PCHAR}]++|{_ESCAPE})*+"),
    re.compile(f"%([0-9A-Fa-f]{{2}})|(?:[^%{_PCHAR}]|{_BROKEN})+"),
)
_QUERY: Final = (
    re.compile(f"(?:[{_PCHAR}?]++|{_ESCAPE})*+"),
    re.compile(f"%([0-9A-Fa-f]{{2}})|(?:[^%{_PCHAR}?]|{_BROKEN})+"),
)

_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):")
_HOST_WITH_PORT: Final = re.compile(r"(?:localhost|[^/:@]*\.[^/:@]*):[0-9]*(?:/|\Z)", re.IGNORECASE)
_HOST: Final = re.compile(r"[a-z0-9._~!$&'()*+,;=-]+")
_HOST_LIMIT: Final = 255  # octets of a name in the DNS
_RAW_HOST_LIMIT: Final = 12 * _HOST_LIMIT  # each character as four escaped bytes
_PORT_LIMIT: Final = 65535
_DEFAULT_PORTS: Final = frozenset({80, 443})
_IDEOGRAPHIC_DOTS: Final = re.compile("[\u3002\uff0e\uff61]")
# Code points that the IDNA mapping deletes: soft hyphen, zero width space, variation selectors
# and their kin.
_IGNORED_IN_HOST: Final = re.compile(
    "[\u00ad\u034f\u180b-\u180f\u200b\u2060\u2064\ufe00-\ufe0f\ufeff]"
)

# White space, control characters and the marks that show nothing but turn or join text.
_UNSHOWN_RANGES: Final = (
    (0x00, 0x20),
    (0x7F, 0xA0),
    (0x061C, 0x061C),
    (0x1680, 0x1680),
    (0x2000, 0x200B),
    (0x200E, 0x200F),
    (0x2028, 0x202F),
    (0x205F, 0x206F),
    (0x3000, 0x3000),
    (0xFEFF, 0xFEFF),
)
_UNSHOWN: Final = "".join(
    chr(code) for first, last in _UNSHOWN_RANGES for code in range(first, last + 1)
)
_UNSHOWN_RUN: Final = re.compile(f"[{re.escape(_UNSHOWN)}]+")
_UNWANTED: Final = re.compile(f"[{re.escape(_UNSHOWN)}\ud800-\udfff]")
_BREAK_OR_SURROGATE: Final = re.compile("[\t\n\r]+|([\ud800-\udfff])")

_TRACKING: Final = re.compile(
    r"(?:\A|&)(?:(?:utm|mtm)_[^=&]*|piwik_(?:campaign|keyword|kwd)"
    r"|pk_(?:campaign|cid|content|keyword|kwd|medium|source)"
    r"|(?:fb|g|d|ms|y|ys|tw|tt)clid|gclsrc|[gw]braid|gad_(?:source|campaignid)|_ga|_gl|srsltid"
    r"|_openstat|li_fat_id|igshid|epik|rdt_cid|mc_[ce]id|_hsenc|_hsmi|__hs(?:fp|sc|tc)"
    r"|hsctatracking|mkt_tok|oly_(?:anon|enc)_id|vero_(?:id|conv)|wickedid)(?=[=&]|\Z)",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class _Parts:
    """An http(s) address taken apart; nothing normalised but the scheme and backslashes."""

    scheme: str
    authority: str
    path: str  # "" or begins with a slash
    query: str | None
    fragment: str | None
    bare: bool  # written without a scheme


def display(url: str) -> str:
    """Return the spelling that is stored and shown, which has the same key.

    White space, control characters and invisible marks are removed at the ends; inside, tabs and
    line ends are removed and the others percent-encoded. A lone surrogate becomes U+FFFD.
    """
    text = url.strip(_UNSHOWN)
    if _UNWANTED.search(text) is None:
        return text
    text = _BREAK_OR_SURROGATE.sub(lambda match: "\ufffd" if match[1] else "", text)
    return _UNSHOWN_RUN.sub(lambda match: quote(match[0], safe=""), text)


def canonical(url: str) -> str:
    """Return the key of an address: equal keys are one page; "" if it cannot be http(s).

    Never raises and is idempotent. The key is ASCII and begins with ``https://``.
    """
    parts = _take_apart(display(url))
    if parts is None:
        return ""
    host, port = _host_and_port(parts.authority)
    if not host or (parts.bare and not _is_plausible(host)):
        return ""
    path = _without_dots(_normalised(parts.path, _PATH)) or "/"
    query = _without_tracking(_normalised(parts.query or "", _QUERY))
    key = f"https://{host}{port}{path}"
    if query:
        key += f"?{query}"
    if parts.fragment is not None and parts.fragment.startswith("!"):
        key += f"#{_normalised(parts.fragment, _QUERY)}"
    return key


def page_id(key: str) -> str:
    """Return the page id of a key: the first 20 hex digits of its sha256."""
    return sha256(key.encode("utf-8", "surrogatepass")).hexdigest()[:20]


def host_of(key: str) -> str:
    """Return the host of a key without its port, an IPv6 address in brackets, "" of ""."""
    authority = key.removeprefix("https://").partition("/")[0]
    return _split_port(authority)[0]


def resolve(base: str, link: str) -> str:
    """Return the absolute target of a link on the page ``base``, "" if it is not http(s).

    The spelling of the link is kept (``display``); only the path's dot segments are resolved. A
    base without a scheme has no links.
    """
    link = display(link)
    cut = re.search(r"[?#]", link)
    head, tail = (link[: cut.start()], link[cut.start() :]) if cut else (link, "")
    head = head.replace("\\", "/")
    if _SCHEME.match(head):
        target = link
    else:
        parts = _take_apart(display(base))
        target = _joined(parts, head, tail) if parts and not parts.bare else ""
    return target if _has_scheme(target) and canonical(target) else ""


def _has_scheme(target: str) -> bool:
    match = _SCHEME.match(target)
    return match is not None and match[1].lower() in ("http", "https")


def _joined(base: _Parts, head: str, tail: str) -> str:
    """Join a link without a scheme, cut before its query or fragment, to its base.

    RFC 3986, section 5.2.
    """
    path = base.path or "/"
    if head.startswith("//"):
        return f"{base.scheme}:{head}{tail}"
    if head.startswith("/"):
        path = _without_dots(head)
    elif head:
        path = _without_dots(f"{path.rpartition('/')[0]}/{head}")
    elif not tail.startswith("?") and base.query is not None:
        path += f"?{base.query}"
    host = base.authority.rpartition("@")[2]
    return f"{base.scheme}://{host}{path}{tail}"


def _take_apart(text: str) -> _Parts | None:
    """Take apart what ``display`` gave; ``None`` for another scheme or where no host stands."""
    head, hash_mark, fragment = text.partition("#")
    head, question_mark, query = head.partition("?")
    head = head.replace("\\", "/")
    scheme, bare = "https", False
    match = _SCHEME.match(head)
    if match and match[1].lower() in ("http", "https"):
        scheme = match[1].lower()
        rest = head[match.end() :].lstrip("/")
    elif match and not _HOST_WITH_PORT.match(head):
        return None
    elif head.startswith("//"):
        rest = head.lstrip("/")
    elif head.startswith("/"):
        return None
    else:
        rest, bare = head, True
    authority, slash, path = rest.partition("/")
    if not authority:
        return None
    return _Parts(
        scheme=scheme,
        authority=authority,
        path=slash + path,
        query=query if question_mark else None,
        fragment=fragment if hash_mark else None,
        bare=bare,
    )


def _split_port(authority: str) -> tuple[str, str]:
    """Split host and port; a colon inside the brackets of an IPv6 address belongs to the host."""
    bracket = authority.rfind("]")
    colon = authority.find(":", bracket + 1)
    return (authority, "") if colon < 0 else (authority[:colon], authority[colon + 1 :])


def _host_and_port(authority: str) -> tuple[str, str]:
    """Return the normalised host and ``:port`` ("" for a default one); ("", "") if impossible."""
    host, port = _split_port(authority.rpartition("@")[2])
    port = port.lstrip("0") or port[-1:]
    if not port:
        return _normalised_host(host), ""
    # A digit of another script is no port; five digits are enough for any.
    if not (port.isascii() and port.isdigit()) or len(port) > len(str(_PORT_LIMIT)):
        return "", ""
    number = int(port)
    if number > _PORT_LIMIT:
        return "", ""
    return _normalised_host(host), "" if number in _DEFAULT_PORTS else f":{number}"


def _normalised_host(raw: str) -> str:
    """Return the host in lower case and punycode, "" where no host can look like this."""
    if raw.startswith("["):
        return _ipv6(raw)
    if len(raw) > _RAW_HOST_LIMIT:
        return ""
    host = unquote(raw, errors="replace") if "%" in raw else raw
    if not host.isascii():
        host = _IDEOGRAPHIC_DOTS.sub(".", _IGNORED_IN_HOST.sub("", host))
        host = unicodedata.normalize("NFKC", host)
        # Character by character: a whole word's lower case ends in another sigma.
        host = unicodedata.normalize("NFKC", "".join(map(str.lower, host)))
    host = host.lower().rstrip(".")
    if len(host) > _HOST_LIMIT:
        return ""
    if not host.isascii():
        host = ".".join(map(_ascii_label, host.split(".")))
    return host if _HOST.fullmatch(host) and len(host) <= _HOST_LIMIT else ""


def _ascii_label(label: str) -> str:
    """Return punycode even where IDNA forbids the label: a forbidden name is still a name."""
    return label if label.isascii() else "xn--" + label.encode("punycode").decode("ascii")


def _ipv6(raw: str) -> str:
    """Return the shortest spelling in brackets (RFC 5952), the same in every Python."""
    if not raw.endswith("]") or "%" in raw:
        return ""
    try:
        packed = IPv6Address(raw[1:-1]).packed
    except AddressValueError:
        return ""
    groups = ":".join(f"{packed[i] << 8 | packed[i + 1]:x}" for i in range(0, 16, 2))
    runs = re.findall(r"(?:(?<=:)|^)0(?::0)+(?=:|\Z)", groups)
    if not runs:
        return f"[{groups}]"
    longest = max(runs, key=len)  # the first of equal ones
    before, _, after = f":{groups}:".partition(f":{longest}:")
    return f"[{before.removeprefix(':')}::{after.removesuffix(':')}]"


def _is_plausible(host: str) -> bool:
    """Tell whether a text without a scheme may be meant as an address: a word alone is none."""
    return "." in host.strip(".") or host == "localhost" or host.startswith("[")


def _normalised(text: str, rule: tuple[re.Pattern[str], re.Pattern[str]]) -> str:
    """Decode escaped unreserved characters; encode a lone ``%`` and what may not stand as it is."""
    plain, odd = rule
    return text if plain.fullmatch(text) else odd.sub(_normalised_escape, text)


def _normalised_escape(match: re.Match[str]) -> str:
    if match[1] is None:
        return quote(match[0], safe="")
    character = chr(int(match[1], 16))
    return character if character in _UNRESERVED else match[0].upper()


def _without_dots(path: str) -> str:
    """Resolve ``.`` and ``..`` segments of a path that begins with a slash; empty segments stay."""
    if "/." not in path:
        return path
    kept: list[str] = []
    segments = path.split("/")[1:]
    for segment in segments:
        if segment == "..":
            del kept[-1:]
        elif segment != ".":
            kept.append(segment)
    if segments[-1] in (".", ".."):
        kept.append("")
    return "/" + "/".join(kept)


def _without_tracking(query: str) -> str:
    """Drop the listed tracking parameters, whatever their case; the order of the others stays."""
    if not _TRACKING.search(query):
        return query
    return "&".join(part for part in query.split("&") if not _TRACKING.match(part))
