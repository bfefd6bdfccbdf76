from __future__ import annotations

import re

from pydantic import BaseModel

from tests.world_server.conftest import Running
from world_client import wire
from world_server.openapi import document
from world_server.routing import TABLE


async def test_the_schema_is_served_without_its_page(running: Running) -> None:
    reply = await running.client.get("/openapi.json")
    assert reply.status_code == 200
    assert reply.json() == document("SearchWorld", running.app.version)
    assert (await running.client.get("/docs")).status_code == 404


def test_every_route_for_callers_is_described_and_no_control_route() -> None:
    described = document("x", "1")["paths"]
    assert isinstance(described, dict)
    hidden = {"/serper/search", "/serper/scrape", "/favicon.ico", "/ui/app.js", "/ui/style.css"}
    assert set(TABLE) - hidden <= set(described)
    assert not any("switch" in path for path in described)
    for path, route in TABLE.items():
        if path in described:
            methods = {method.upper() for method in described[path]}
            assert methods <= set(route.methods)


def test_every_reference_leads_to_a_schema() -> None:
    text = str(document("x", "1"))
    schemas = document("x", "1")["components"]["schemas"]  # type: ignore[index]
    names = set(re.findall(r"#/components/schemas/(\w+)", text))
    assert names
    assert names <= set(schemas)


def test_the_schemas_are_those_of_the_wire() -> None:
    schemas = document("x", "1")["components"]["schemas"]  # type: ignore[index]
    for name in (
        "SearchRequest",
        "SearchResponse",
        "FetchRequest",
        "FetchResponse",
        "ProblemResponse",
    ):
        model: type[BaseModel] = getattr(wire, name)
        assert set(schemas[name]["properties"]) == set(model.model_fields)
