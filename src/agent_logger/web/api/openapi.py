"""The description of the API, made from the API itself."""

import re
from collections.abc import Mapping
from functools import cache
from typing import Any, get_args

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from agent_logger import __version__
from agent_logger.catalog.ledger.totals import By
from agent_logger.model.session import Witness
from agent_logger.web.api.endpoints import ENDPOINTS, V1, Endpoint, json_answer
from agent_logger.web.filters import MOST, PAGE, Order

DAY = {"type": "string", "format": "date"}
TEXT = {"type": "string", "maxLength": 200}
PARAMETERS: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "agent": ("The agent's whole name", TEXT),
    "project": ("In the project's path", TEXT),
    "model": ("In the model's name", TEXT),
    "title": ("In the title", TEXT),
    "since": ("The first day that counts", DAY),
    "until": ("The last day that counts", DAY),
    "min_cost": ("Dollars at least", {"type": "number"}),
    "witness": ("Who saw it", {"type": "string", "enum": list(get_args(Witness))}),
    "live": ("Only those that run", {"type": "string", "enum": ["1"]}),
    "order": ("What comes first", {"type": "string", "enum": list(get_args(Order)), "default": "active"}),
    "by": ("What is summed up", {"type": "string", "enum": list(get_args(By)), "default": "day"}),
    "q": ("Words, or a phrase in quotes", TEXT),
    "offset": ("How many are left out", {"type": "integer", "minimum": 0, "maximum": 10**9, "default": 0}),
    "limit": ("How many are told", {"type": "integer", "minimum": 1, "maximum": MOST, "default": PAGE}),
    "format": ("JSON, or a table", {"type": "string", "enum": ["json", "csv"], "default": "json"}),
}


async def openapi(_request: Request) -> Response:
    return json_answer(document())


@cache
def document() -> dict[str, Any]:
    kinds = list(dict.fromkeys(endpoint.item for endpoint in ENDPOINTS))
    _, components = msgspec.json.schema_components(kinds, ref_template="#/components/schemas/{name}")
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "agent-logger",
            "version": __version__,
            "description": "What the page shows, for programs. Fields are added, never renamed or taken away.",
        },
        "servers": [{"url": "/"}],
        "paths": {V1 + endpoint.path: {"get": _operation(endpoint)} for endpoint in ENDPOINTS},
        "components": {
            "schemas": components | {"Error": ERROR},
            "securitySchemes": {"cookie": {"type": "apiKey", "in": "cookie", "name": "agent_logger_8081"}},
        },
        "security": [{"cookie": []}],
    }


ERROR = {
    "type": "object",
    "required": ["status", "error", "next_step"],
    "properties": {
        "status": {"type": "integer"},
        "error": {"type": "string"},
        "next_step": {"type": "string"},
    },
}


def _operation(endpoint: Endpoint) -> dict[str, Any]:
    names = [*endpoint.query, "format"] if endpoint.one else [*endpoint.query, "offset", "limit", "format"]
    return {
        "summary": endpoint.summary,
        "operationId": re.sub(r"\W+", "_", endpoint.path).strip("_"),
        "parameters": [*_in_path(endpoint), *map(_in_query, names)],
        "responses": {
            "200": {"description": endpoint.summary, "content": _content(endpoint)},
            "default": {
                "description": "What went wrong, and what to do next",
                "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}},
            },
        },
    }


def _in_path(endpoint: Endpoint) -> list[dict[str, Any]]:
    names = re.findall(r"\{(\w+)\}", endpoint.path)
    return [{"name": name, "in": "path", "required": True, "schema": {"type": "string"}} for name in names]


def _in_query(name: str) -> dict[str, Any]:
    description, schema = PARAMETERS[name]
    return {"name": name, "in": "query", "description": description, "schema": schema}


def _content(endpoint: Endpoint) -> dict[str, Any]:
    item = {"$ref": f"#/components/schemas/{endpoint.item.__name__}"}
    list_schema = {
        "type": "object",
        "required": ["items", "next"],
        "properties": {
            "items": {"type": "array", "items": item},
            "next": {"type": ["string", "null"], "description": "Where more of them are"},
        },
    }
    return {
        "application/json": {"schema": item if endpoint.one else list_schema},
        "text/csv": {"schema": {"type": "string"}},
    }
