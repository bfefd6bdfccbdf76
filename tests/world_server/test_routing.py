from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from world_server import routing
from world_server.errors import WrongMethodError
from world_server.routing import (
    INDEX,
    NOWHERE,
    READER,
    SCRAPE,
    SEARCH,
    SLASH,
    SWITCH,
    TABLE,
    Route,
    check_method,
    resolve,
)


def scope(path: str, method: str = "GET", **headers: str) -> dict[str, Any]:
    raw, _, query = path.partition("?")
    return {
        "method": method,
        "path": raw,
        "raw_path": raw.encode(),
        "query_string": query.encode(),
        "headers": [
            (name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()
        ],
    }


@pytest.mark.parametrize(
    ("asked", "route"),
    [
        (scope("/search", "POST"), SEARCH),
        (scope("/search?q=x"), SEARCH),
        (scope("/search/?q=x"), SEARCH),
        (scope("/serper/search", "POST"), SEARCH),
        (scope("/search", "POST", host="google.serper.dev"), SEARCH),
        (scope("/search", "POST", host="Google.Serper.Dev:443"), SEARCH),
        (scope("/scrape", "POST"), SCRAPE),
        (scope("/", "POST", host="scrape.serper.dev"), SCRAPE),
        (scope("/", "POST", x_api_key="k"), SCRAPE),
        (scope("/", "POST"), READER),
        (scope("/?url=https://a.example"), READER),
        (scope("/?x=1&url=a"), READER),
        (scope("/?q=url=1"), INDEX),
        (scope("/"), INDEX),
        (scope("/https://a.example/search"), READER),
        (scope("/HTTP://a.example/"), READER),
        (scope("/https%3A%2F%2Fa.example"), READER),
        (scope("/httpx"), NOWHERE),
        (scope("/jina/a.example"), READER),
        (scope("/jina/"), INDEX),
        (scope("/a.example", host="r.jina.ai"), READER),
        (scope("/search", host="r.jina.ai"), READER),
        (scope("/", host="r.jina.ai"), INDEX),
        (scope("/", "POST", host="r.jina.ai"), READER),
        (scope("/v1/fetch", host="google.serper.dev"), NOWHERE),
        (scope("/v1/worlds/atlas/switch", "POST"), SWITCH),
        (scope("/nothing"), NOWHERE),
        (scope("/v1"), NOWHERE),
        (scope("/w/"), NOWHERE),
        (scope("/w/atlas"), SLASH),
        (scope("/w/atlas", "HEAD"), SLASH),
        (scope("/w/atlas", "POST"), READER),
        (scope("/w/atlas/"), INDEX),
        (scope("/w/atlas/search?q=x"), SEARCH),
        (scope("/ui/../search"), NOWHERE),
    ],
)
def test_where_a_request_goes(asked: dict[str, Any], route: Route) -> None:
    assert resolve(asked).route is route


@pytest.mark.parametrize("path", sorted(TABLE))
def test_every_fixed_path_is_met_plainly_and_under_a_world(path: str) -> None:
    assert resolve(scope(path)).route is TABLE[path]
    found = resolve(scope(f"/w/atlas-2.1{path}"))
    assert (found.route, found.world) == (TABLE[path], "atlas-2.1")


@pytest.mark.parametrize(
    ("path", "tail"),
    [
        ("/https://a.example/x?y=1&z=%2F", "https://a.example/x?y=1&z=%2F"),
        ("/jina/https://a.example/%2Fx", "https://a.example/%2Fx"),
        (
            "/w/atlas/https://a.example/?u=https://b.example",
            "https://a.example/?u=https://b.example",
        ),
        ("/w/atlas/jina/a.example", "a.example"),
        ("/https%3A%2F%2Fa.example", "https%3A%2F%2Fa.example"),
    ],
)
def test_what_follows_is_kept_raw(path: str, tail: str) -> None:
    assert resolve(scope(path)).tail == tail


@pytest.mark.parametrize(
    "name",
    [
        "../x",
        "%2e%2e",
        "..",
        "a" * 65,
        "CON",
        "\u2024\u2024",
        "a\0",
        "-a",
        ".a",
        "",
        "a%00",
        "a\u0301",
    ],
)
def test_a_world_of_a_bad_name_is_nowhere(name: str) -> None:
    assert resolve(scope(f"/w/{name}/search?q=x")).route is NOWHERE


@given(st.text(max_size=60), st.sampled_from(["GET", "POST"]))
def test_no_path_raises(path: str, method: str) -> None:
    text = path.encode("utf-8", "replace").decode()
    assert resolve(scope(f"/{text}", method)).route is not None
    assert resolve(scope(f"/w/{text}", method)).route is not None
    asked = {**scope("/", method), "raw_path": path.encode("utf-8", "surrogatepass")}
    assert resolve(asked).route is not None


def test_a_server_without_raw_paths_works_too() -> None:
    asked = scope("/https://a.example/a b")
    asked["raw_path"] = None
    assert resolve(asked).tail == "https://a.example/a%20b"


def test_methods() -> None:
    route = TABLE["/v1/search"]
    check_method(route, "POST")
    with pytest.raises(WrongMethodError) as caught:
        check_method(route, "GET")
    assert caught.value.allowed == ("POST",)
    check_method(SEARCH, "GET")
    check_method(SEARCH, "HEAD")
    with pytest.raises(WrongMethodError):
        check_method(route, "HEAD")
    check_method(NOWHERE, "DELETE")


def test_routes_of_agents_need_a_key_and_control_its_own() -> None:
    for path, route in TABLE.items():
        public = path in {"/health", "/ready", "/favicon.ico"} or path.startswith("/ui/")
        assert (route.access is routing.Access.PUBLIC) is public, path
    assert SWITCH.access is routing.Access.CONTROL
    assert READER.access is routing.Access.KEY
    assert not READER.key_in_query
