"""The description of the API, made from the API itself."""

import inspect
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

TEXT = {"type": "string", "maxLength": 200}
PARAMETERS: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "agent": ("The name of the agent, or its short one", TEXT),
    "project": ("The project's path, or text in it", TEXT),
    "model": ("The model's name, or text in it", TEXT),
    "machine": ("The name of the machine, if several homes are read", TEXT),
    "person": ("The name of the person whose machine it is, on a hub", TEXT),
    "title": ("Text in the title", TEXT),
    "since": ("The first day to include, or a time: 2026-11-01, 7d, last week", TEXT),
    "until": ("The last day to include, or a time", TEXT),
    "min_cost": ("The lowest cost in dollars", {"type": "number"}),
    "witness": ("Only sessions with this witness", {"type": "string", "enum": list(get_args(Witness))}),
    "label": ("A label of the session, in any case", TEXT),
    "pinned": ("Only pinned sessions", {"type": "string", "enum": ["1"]}),
    "live": ("Only live sessions", {"type": "string", "enum": ["1"]}),
    "order": (
        "The sort order; the highest value comes first",
        {"type": "string", "enum": list(get_args(Order)), "default": "active"},
    ),
    "by": ("How to group the sums", {"type": "string", "enum": list(get_args(By)), "default": "day"}),
    "tz": ("The zone whose days are meant, such as Europe/Berlin; without it, that of the server", TEXT),
    "q": ("Words, or a phrase in quotes", TEXT),
    "offset": ("How many items to skip", {"type": "integer", "minimum": 0, "maximum": 10**9, "default": 0}),
    "limit": (
        "How many items to return",
        {"type": "integer", "minimum": 1, "maximum": MOST, "default": PAGE},
    ),
    "format": ("JSON or CSV", {"type": "string", "enum": ["json", "csv"], "default": "json"}),
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
            "description": "The data of the page, for programs. Fields are added, never renamed or removed.",
        },
        "servers": [{"url": "/"}],
        "paths": {V1 + endpoint.path: {"get": _operation(endpoint)} for endpoint in ENDPOINTS},
        "components": {
            "schemas": clean_descriptions(components) | {"Error": ERROR},
            "securitySchemes": {"cookie": {"type": "apiKey", "in": "cookie", "name": "agent_logger_8081"}},
        },
        "security": [{"cookie": []}],
    }


def clean_descriptions(schema: Any) -> Any:
    """Return a JSON schema of msgspec's without the indentation of docstrings, which msgspec leaves in."""
    if isinstance(schema, list):
        return [clean_descriptions(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    schema = {name: clean_descriptions(part) for name, part in schema.items()}
    text = schema.get("description")
    return schema | {"description": inspect.cleandoc(text)} if isinstance(text, str) else schema


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
            "next": {"type": ["string", "null"], "description": "The address of the next items"},
        },
    }
    return {
        "application/json": {"schema": item if endpoint.one else list_schema},
        "text/csv": {"schema": {"type": "string"}},
    }
