"""The schema of the routes at ``/openapi.json``, made from the wire models.

The routes themselves are plain, so that answers are written as bytes; the schema is therefore put
together here. Control routes are left out.
"""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from world_client import wire

_REFERENCE = "#/components/schemas/{model}"
_MODELS: tuple[type[BaseModel], ...] = (
    wire.SearchRequest,
    wire.SearchResponse,
    wire.SearchBatchRequest,
    wire.SearchBatchResponse,
    wire.FetchRequest,
    wire.FetchResponse,
    wire.ProblemResponse,
)
_PROBLEMS = {
    "400": "The request cannot be used; the message names the field.",
    "401": "The key is missing or not known.",
    "413": "The body is too large.",
    "503": "Overloaded (with Retry-After), or a part of the server failed.",
    "504": "The work did not end in time.",
}
_STRING: dict[str, object] = {"type": "string"}
_SERPER_FIELDS: dict[str, object] = {
    "q": {"type": "string", "description": "The query."},
    "num": {"type": "integer", "minimum": 1, "default": 10, "description": "Counts as 100 above."},
    "page": {"type": "integer", "minimum": 1, "default": 1},
    "tbs": {"type": "string", "description": "qdr:h|d|w|m|y or cdr:1,cd_min:M/D/Y,cd_max:M/D/Y."},
    "gl": _STRING,
    "hl": _STRING,
    "location": _STRING,
    "autocorrect": {"type": "boolean"},
}
_SCRAPE_FIELDS: dict[str, object] = {"url": _STRING, "includeMarkdown": {"type": "boolean"}}


def document(title: str, version: str) -> dict[str, object]:
    """Return the OpenAPI document."""
    _, definitions = models_json_schema(
        [(model, "validation") for model in _MODELS],
        ref_template=_REFERENCE,
    )
    return {
        "openapi": "3.1.0",
        "info": {"title": title, "version": version},
        "paths": {**_native_paths(), **_dialect_paths(), **_service_paths()},
        "components": {
            "schemas": definitions["$defs"],
            "securitySchemes": {
                "key": {"type": "apiKey", "in": "header", "name": "X-API-KEY"},
                "bearer": {"type": "http", "scheme": "bearer"},
            },
        },
        "security": [{}, {"key": []}, {"bearer": []}],
    }


def _native_paths() -> dict[str, object]:
    return {
        "/v1/search": _native("Search", wire.SearchRequest, wire.SearchResponse),
        "/v1/search/batch": _native(
            "Several searches at once", wire.SearchBatchRequest, wire.SearchBatchResponse
        ),
        "/v1/fetch": _native("Read a page", wire.FetchRequest, wire.FetchResponse),
    }


def _native(summary: str, sent: type[BaseModel], given: type[BaseModel]) -> dict[str, object]:
    responses: dict[str, object] = {"200": _answer("The answer.", _schema(given))}
    for status, meaning in _PROBLEMS.items():
        responses[status] = _answer(meaning, _schema(wire.ProblemResponse))
    return {
        "post": {"summary": summary, "requestBody": _body(_schema(sent)), "responses": responses}
    }


def _dialect_paths() -> dict[str, object]:
    search: dict[str, object] = {"type": "object", "required": ["q"], "properties": _SERPER_FIELDS}
    batch = {"anyOf": [search, {"type": "array", "items": search, "maxItems": wire.MAX_BATCH}]}
    scrape = {"type": "object", "required": ["url"], "properties": _SCRAPE_FIELDS}
    target = {
        "name": "target",
        "in": "path",
        "required": True,
        "schema": _STRING,
        "description": "The address, with its query string, as it is or percent-encoded.",
    }
    page = {"200": _answer("The page.", _STRING, "text/plain")}
    return {
        "/search": {
            "post": {
                "summary": "Serper search",
                "requestBody": _body(batch),
                "responses": {"200": _answer("The hits.", {"type": "object"})},
            },
            "get": {
                "summary": "Serper search by query string",
                "parameters": _query(_SERPER_FIELDS),
                "responses": {"200": _answer("The hits.", {"type": "object"})},
            },
        },
        "/scrape": {
            "post": {
                "summary": "Serper scrape",
                "requestBody": _body(scrape),
                "responses": {"200": _answer("The text.", {"type": "object"})},
            }
        },
        "/{target}": {"get": {"summary": "Jina Reader", "parameters": [target], "responses": page}},
        "/": {
            "post": {
                "summary": "Jina Reader; Serper scrape when X-API-KEY is sent",
                "requestBody": _body(scrape),
                "responses": page,
            },
        },
    }


def _service_paths() -> dict[str, object]:
    rows = {
        "/health": ("The process lives.", "application/json"),
        "/ready": (
            "Calls would be answered truly; 503 names the failing part.",
            "application/json",
        ),
        "/metrics": ("Metrics of all processes for Prometheus.", "text/plain"),
        "/info": ("The served worlds.", "application/json"),
    }
    return {
        path: {"get": {"summary": text, "responses": {"200": _answer(text, {}, kind)}}}
        for path, (text, kind) in rows.items()
    }


def _schema(model: type[BaseModel]) -> dict[str, object]:
    return {"$ref": _REFERENCE.format(model=model.__name__)}


def _body(schema: Mapping[str, object]) -> dict[str, object]:
    return {"required": True, "content": {"application/json": {"schema": schema}}}


def _answer(
    meaning: str, schema: dict[str, object], kind: str = "application/json"
) -> dict[str, object]:
    return {"description": meaning, "content": {kind: {"schema": schema}}}


def _query(fields: dict[str, object]) -> list[object]:
    return [
        {"name": name, "in": "query", "required": name == "q", "schema": schema}
        for name, schema in fields.items()
    ]
