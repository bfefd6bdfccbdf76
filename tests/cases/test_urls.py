"""URL identity: RB-009 to RB-016 but for the loop, which is with the archives."""

from __future__ import annotations

from urllib.parse import quote

import pytest

from tests.cases.worlds import Built, Served, parsed

pytestmark = pytest.mark.shared

INNER = "https://pages.example/i.php?option=a&view=b&id=131"


def test_rb_009_an_encoded_slash_is_another_page(served: Served) -> None:
    urls = [f"https://doi.example/article/10.5555{slash}abc-123" for slash in ("%2F", "/")]
    pages = [served.fetch("crawl", url) for url in urls]
    assert [page["outcome"] for page in pages] == ["ok", "ok"]
    assert pages[0]["text"] != pages[1]["text"]
    assert pages[0]["page_id"] != pages[1]["page_id"]
    for url, page in zip(urls, pages, strict=True):
        read = served.reads("crawl", f"/{url}", accept="application/json")
        data = parsed(read)["data"]
        assert isinstance(data, dict)
        assert data["content"] == page["text"]


def test_rb_010_hosts_that_look_alike_are_two_pages(served: Served) -> None:
    first = served.fetch("crawl", "https://www.office.example/")
    second = served.fetch("crawl", "https://www2.office.example/")
    assert (first["title"], second["title"]) == ("Main office", "Second office")
    for host in ("office.example", "www3.office.example"):
        assert served.fetch("crawl", f"https://{host}/")["outcome"] == "not_in_world"


@pytest.mark.parametrize(
    "url",
    [
        "https://тест.example:8443/путь",
        "https://xn--e1aybc.example:8443/%D0%BF%D1%83%D1%82%D1%8C",
        "HTTPS://ТЕСТ.example:8443/%d0%bf%d1%83%d1%82%d1%8c",
    ],
)
def test_rb_011_a_port_keeps_its_host(url: str, served: Served) -> None:
    assert "timetable of test" in served.text("dumps", url)


@pytest.mark.parametrize(
    "url", ["https://тест.example/путь", "https://тест.example:8444/путь", "https://тест.example"]
)
def test_rb_011_another_port_is_another_page(url: str, served: Served) -> None:
    assert served.fetch("dumps", url)["outcome"] == "not_in_world"


@pytest.mark.parametrize(
    "url",
    [
        "https://bücher.example/",
        "https://BÜCHER.example/",
        "https://xn--bcher-kva.example/",
        "http://XN--BCHER-KVA.example",
        "https://bu\u0308cher.example/",
    ],
)
def test_rb_012_spellings_of_a_host_are_one_page(url: str, served: Served) -> None:
    page = served.fetch("dumps", url)
    assert page["outcome"] == "ok"
    assert page["url"] == "https://bücher.example/"


def test_rb_012_results_show_the_stored_spelling(served: Served) -> None:
    assert served.links("dumps", "timetable of books June")[0] == "https://bücher.example/"


def test_rb_013_a_target_keeps_its_own_query(served: Served) -> None:
    ways = [
        served.reads("dumps", "/jina/", {"url": INNER}),
        served.reads("dumps", f"/{quote(INNER, safe='')}"),
        served.reads("dumps", f"/jina/?url={quote(INNER, safe='')}"),
        served.reads("dumps", f"/{INNER}"),
        served.reads("dumps", f"/jina/{INNER}"),
        served.reads("dumps", f"/jina/{INNER.replace('://', ':/')}"),
    ]
    assert [way.status for way in ways] == [200] * len(ways)
    assert len({way.body for way in ways}) == 1
    assert b"timetable of all" in ways[0].body
    shorter = served.reads("dumps", "/https://pages.example/i.php?option=a")
    assert b"timetable of one" in shorter.body


def test_rb_013_the_other_routes_agree(served: Served) -> None:
    assert "timetable of all" in served.text("dumps", INNER)
    scraped = parsed(served.ask("/w/dumps/scrape", {"url": INNER}))
    assert "timetable of all" in str(scraped["text"])
    by_query = parsed(served.ask(f"/w/dumps/scrape?url={quote(INNER, safe='')}"))
    assert by_query == scraped


def test_rb_015_tracking_parameters_make_no_page(served: Served, builds: dict[str, Built]) -> None:
    for query in ("id=3", "utm_source=other&id=3", "id=3&gclid=z", "fbclid=q&id=3&utm_medium=m"):
        assert "timetable of three" in served.text("dumps", f"https://shop.example/a?{query}")
    assert "timetable of four" in served.text("dumps", "https://shop.example/a?id=4")
    for query in ("", "?id=5", "?utm_source=x"):
        answer = served.fetch("dumps", f"https://shop.example/a{query}")
        assert answer["outcome"] == "not_in_world"
    found = served.links("dumps", "timetable of three March", count=100)
    assert len([url for url in found if url.startswith("https://shop.example/a")]) == 2
    lost = [line for name, line, _ in builds["dumps"].losses if name == "rows.jsonl"]
    assert min(lost) > 9  # the second row of the page says the same, so nothing was lost


def test_rb_016_an_index_is_not_its_folder(served: Served) -> None:
    assert "timetable of folder" in served.text("dumps", "https://site.example/x/")
    assert "timetable of index" in served.text("dumps", "https://site.example/x/index.html")
    assert served.fetch("dumps", "https://site.example/x")["outcome"] == "not_in_world"
