"""The table of role, level and route: who may request what. `access.py` applies it, and nothing else decides.

A route that is not in the table is refused. A level says how much of sessions a route shows at most: numbers without
names and texts; titles, which stand for everything that lists of sessions have; contents. What the owner of a session
has not shared is not on the hub at all.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from starlette.routing import BaseRoute, Match, Mount
from starlette.types import Scope

from agent_logger.hub.people import Role
from agent_logger.web.api.endpoints import V1
from agent_logger.web.site import STATIC


class Access(StrEnum):
    ANYBODY = "anybody"  # without a token, or with that of a link in a form
    INVITE = "invite"  # with an invite in the body of the request
    DEVICE = "device"  # a device token
    READER = "reader"  # a reader token (the API alone), the page's cookie or a trusted header
    ADMIN = "admin"  # the same, of an admin


class Level(StrEnum):
    NUMBERS = "numbers"
    TITLES = "titles"
    CONTENTS = "contents"


class SessionScope(StrEnum):
    OWN = "own"
    ALL = "all"


@dataclass(frozen=True, slots=True)
class Rule:
    access: Access
    level: Level | None = None  # none: nothing of any session
    is_page: bool = False  # about one session, for a browser: of others it is shown in a frame without scripts


# Whose sessions a role sees at a level.
SEES: Mapping[tuple[Role, Level], SessionScope] = {
    (Role.MEMBER, Level.NUMBERS): SessionScope.ALL,
    (Role.MEMBER, Level.TITLES): SessionScope.OWN,
    (Role.MEMBER, Level.CONTENTS): SessionScope.OWN,
    **{(role, level): SessionScope.ALL for role in (Role.LEAD, Role.ADMIN) for level in Level},
}

_ANYBODY, _DEVICE, _ADMIN = Rule(Access.ANYBODY), Rule(Access.DEVICE), Rule(Access.ADMIN)
_SIGNED_IN = Rule(Access.READER)
_NUMBERS, _TITLES, _CONTENTS = (Rule(Access.READER, level) for level in Level)
_PAGE = Rule(Access.READER, Level.CONTENTS, is_page=True)
_SESSION = "GET /sessions/{session_id}"
_API_SESSION = f"GET {V1}/sessions/{{session_id}}"

ROUTES: Mapping[str, Rule] = {
    # without a token
    "GET /static": _ANYBODY,
    "GET /open": _ANYBODY,
    "POST /open": _ANYBODY,
    "GET /health": _ANYBODY,
    "GET /metrics": _ANYBODY,  # has no names
    # devices; these routes check the token themselves
    "POST /push/v1/join": Rule(Access.INVITE),
    "GET /push/v1/device": _DEVICE,
    "POST /push/v1/leave": _DEVICE,
    "POST /push/v1/withdrawals": _DEVICE,
    "PUT /push/v1/sessions/{session:path}": _DEVICE,
    "PUT /push/v1/objects/{object}/{generation:int}": _DEVICE,
    "PUT /push/v1/objects/{object}/{generation:int}/{offset:int}": _DEVICE,
    # the page
    "GET /": _TITLES,
    "GET /team": _NUMBERS,
    "GET /sessions": _TITLES,
    "GET /live": _TITLES,
    "GET /search": _CONTENTS,
    "GET /palette": _TITLES,
    "GET /why": _TITLES,
    "GET /events": _NUMBERS,
    "GET /reads": _SIGNED_IN,
    "POST /sign-out": _SIGNED_IN,
    _SESSION: _PAGE,
    **{
        f"{_SESSION}{rest}": _PAGE
        for rest in ("/turns/{turn:int}", "/timeline", "/wire", "/wire/{call}", "/tree", "/beside/{other}", "/why")
    },
    **{
        f"{_SESSION}{rest}": _CONTENTS
        for rest in (
            "/head",
            "/events",
            "/parts/{key}",
            "/rest/{key}",
            "/agents/{turn:int}",
            "/turns/{turn:int}/tools/{tool:int}",
            "/turns/{turn:int}/way",
            "/find",
            "/export/{format}",
        )
    },
    # for programs
    f"GET {V1}/usage": _NUMBERS,
    f"GET {V1}/sessions": _TITLES,
    f"GET {V1}/ledger": _TITLES,
    f"GET {V1}/search": _CONTENTS,
    f"GET {V1}/openapi.json": _SIGNED_IN,
    f"GET {V1}/reads": _SIGNED_IN,
    f"GET {V1}/people": _ADMIN,
    f"GET {V1}/audit": _ADMIN,
    _API_SESSION: _CONTENTS,
    **{
        f"{_API_SESSION}{rest}": _CONTENTS
        for rest in ("/exchanges", "/turns", "/ledger", "/calls", "/calls/{call}", "/tree", "/beside/{other}")
    },
}

# What may be asked of the numbers of all: what is shared at the level of numbers, without names that people give.
NUMBERS_BY = frozenset({"day", "week", "month", "model", "agent", "machine", "person"})
NAMES = frozenset({"project", "title", "label", "pinned", "witness", "min_cost", "live"})


def table_text() -> str:
    """Return the table of roles for the documentation: whose sessions each role sees at each level."""
    rows = [["role", *(level.value for level in Level), "people and audit"]]
    for role in Role:
        people = "yes" if role is Role.ADMIN else "no"
        rows.append([role.value, *(SEES[role, level].value for level in Level), people])
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows)
    return "\n".join(line.rstrip() for line in lines)


def route_key(route: BaseRoute, method: str) -> str:
    path = "/static" if isinstance(route, Mount) or _path(route).startswith(STATIC) else _path(route)
    return f"{'GET' if method == 'HEAD' else method} {path}"


def matching_route(routes: list[BaseRoute], scope: Scope) -> tuple[BaseRoute, Mapping[str, object]] | None:
    """Return the route of a request and the values in its path."""
    for route in routes:
        match, child = route.matches(scope)
        if match is Match.FULL:
            return route, child.get("path_params", {})
    return None


def scope_of(role: Role, rule: Rule, query: Mapping[str, str]) -> SessionScope:
    """Return whose sessions a request is answered from. Questions about names are answered from what the person may see
    the names of, on routes that show numbers alone, too."""
    level = rule.level or Level.CONTENTS
    if level is Level.NUMBERS and (query.get("by", "day") not in NUMBERS_BY or any(query.get(name) for name in NAMES)):
        level = Level.TITLES
    return SEES[role, level]


def _path(route: BaseRoute) -> str:
    path: str = getattr(route, "path", "")
    return path
