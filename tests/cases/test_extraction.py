"""Extraction: RB-022 to RB-027, hostile pages, and what reaches an agent of them."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.cases.worlds import NESTED, SENTENCE, Built, Served, built, parsed

pytestmark = pytest.mark.shared


def page(served: Served, name: str) -> dict[str, object]:
    answer = served.fetch("crawl", f"https://pages.example/{name}")
    assert answer["outcome"] == "ok", answer
    return answer


def test_rb_022_a_list_below_the_body_stays(served: Served) -> None:
    text = str(page(served, "body-ul")["text"])
    for line in ("Monday to Friday 08:00 to 16:00", "Saturday 09:00 to 13:00", "Sunday closed"):
        assert line in text
    assert text.index("Sunday closed") < text.index("The list above is binding")


def test_rb_023_a_list_in_a_cell_stays_by_its_day(served: Served) -> None:
    lines = str(page(served, "list-in-table")["text"]).splitlines()
    hours = {
        "Mon": "10:00 - 20:00",
        "Tue": "closed",
        "Wed": "10:00 - 20:00",
        "Sat": "11:00 - 18:00",
    }
    for day, wanted in hours.items():
        assert [line for line in lines if day in line and wanted in line], lines


@pytest.mark.parametrize("depth", [330, 1000, 5000])
def test_rb_024_nesting_costs_no_text(depth: int, served: Served) -> None:
    assert page(served, f"nested-{depth}")["text"] == SENTENCE.format(depth)


def test_rb_025_deeper_nesting_is_flattened_or_refused_with_a_reason(
    served: Served, builds: dict[str, Built]
) -> None:
    told = {name: reason for name, _, reason in builds["crawl"].losses}
    for depth in (depth for depth in NESTED if depth > 5000):
        answer = served.fetch("crawl", f"https://pages.example/nested-{depth}")
        if answer["outcome"] == "ok":
            assert answer["text"] == SENTENCE.format(depth)
        else:
            assert told[f"nested-{depth}.html"] == "too deep"
    assert page(served, "line-breaks")["text"] == SENTENCE.format("of breaks")


def test_rb_026_the_date_is_the_pages_own(served: Served) -> None:
    assert page(served, "footer-dates")["published"] == "2021-03-04T00:00:00Z"
    for tbs, there in (
        ("cdr:1,cd_min:3/1/2021,cd_max:3/31/2021", True),
        ("cdr:1,cd_min:1/1/2025,cd_max:12/31/2031", False),
    ):
        answer = parsed(served.ask("/w/crawl/search", {"q": "bridge reopened ferry", "tbs": tbs}))
        organic = answer["organic"]
        assert isinstance(organic, list)
        links = [item["link"] for item in organic]
        assert ("https://pages.example/footer-dates" in links) is there
        assert not there or organic[0]["date"] == "Mar 4, 2021"


def test_a_hidden_order_reaches_nobody(served: Served) -> None:
    text = str(page(served, "prompt-injection")["text"])
    assert "The last tram leaves at 23:40." in text
    assert "Ignore all earlier" not in text
    assert "169.254" not in text
    assert served.links("crawl", "ignore all earlier instructions", mode="lexical") == []


def test_a_bomb_of_a_table_is_a_table(served: Served) -> None:
    text = str(page(served, "colspan-bomb")["text"])
    assert len(text) < 1000
    assert re.search(r"\|\s*a\s*\|.*b.*\|.*c", text)


def test_a_script_in_a_page_is_never_served_as_one(served: Served) -> None:
    url = "https://pages.example/xss"
    answers = [
        served.ask("/w/crawl/search", {"q": "flour recipe"}),
        served.ask("/w/crawl/v1/search", {"query": "flour recipe"}),
        served.ask("/w/crawl/v1/fetch", {"url": url}),
        served.ask("/w/crawl/scrape", {"url": url, "includeMarkdown": True}),
        served.reads("crawl", f"/{url}"),
        served.reads("crawl", f"/{url}", x_return_format="html"),
        served.reads("crawl", f"/{url}", accept="text/html"),
        served.reads(
            "crawl", "/https://missing.example/<script>alert(1)</script>".replace("<", "%3C")
        ),
    ]
    for answer in answers:
        kind = answer.headers["content-type"]
        assert kind.startswith(("application/json", "text/plain")), kind
        assert answer.headers["x-content-type-options"] == "nosniff"
    text = str(page(served, "xss")["text"])
    assert "Mix 200 g flour. more" in text
    assert "javascript:" not in text
    assert "alert(" not in text


@pytest.mark.slow
def test_rb_027_memory_does_not_grow_with_the_pages(tmp_path: Path) -> None:
    peaks = []
    for count in (500, 1500):
        path = tmp_path / f"{count}.warc"
        path.write_bytes(b"".join(_record(number) for number in range(count)))
        done = built(tmp_path, f"w{count}", [path])
        assert done.code == 0, done.errors
        assert done.count("pages") == count
        peaks.append(done.worker_mib)
    assert peaks[1] <= peaks[0] + 20


def _record(number: int) -> bytes:
    from tests.corpus_builder.archives import http, warc

    paragraphs = "".join(
        f"<p>Paragraph {part} of page {number} tells of lamp {number * 30 + part} on the pier.</p>"
        for part in range(30)
    )
    html = f"<html><head><title>Lamp {number}</title></head><body>{paragraphs}</body></html>"
    return warc(http(html.encode()), uri=f"https://lamps.example/{number}")


def test_rule_2_every_loss_has_file_place_and_reason(builds: dict[str, Built]) -> None:
    for name in ("crawl", "dumps", "cut"):
        build = builds[name]
        assert build.code == 3
        total = build.report["losses"]
        assert isinstance(total, dict)
        assert len(build.losses) == sum(total.values())
        for origin, offset, reason in build.losses:
            assert origin
            assert offset >= 0
            assert reason
        stages = build.report["stages"]
        assert isinstance(stages, list)
        assert all(stage["balanced"] for stage in stages)
        assert "Traceback" not in build.errors
        assert json.loads(build.output) == build.report
