"""The hub's page and API: who sees what, and what is noted of it."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import BaseRoute, Route

from agent_logger.hub.access import AccessOptions
from agent_logger.hub.people import Role
from agent_logger.hub.roles import ROUTES, SEES, Level, SessionScope, route_key
from agent_logger.web.api.endpoints import V1
from tests.hub.page_hubs import ADMIN, LEAD, MEMBER, OTHER, ROLES, SESSIONS, Hub, add_device, running_hub, settle


@pytest.fixture(scope="module")
def shared_hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hub]:
    folder = tmp_path_factory.mktemp("hub")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(folder))
        patch.setenv("TZ", "UTC")
        with running_hub(folder / "hub") as hub:
            yield hub


@pytest.fixture
def hub(shared_hub: Hub) -> Hub:
    shared_hub.time.seconds += 3600
    shared_hub.with_app(AccessOptions())
    return shared_hub


def items(hub: Hub, path: str, reader: str) -> list[dict[str, object]]:
    answer = hub.ask(path, reader)
    assert answer.status == 200, answer.text
    found: list[dict[str, object]] = json.loads(answer.text)["items"]
    return found


# ---------------------------------------------------------------- the table


def routes_of(hub: Hub) -> list[tuple[BaseRoute, str]]:
    routes: list[BaseRoute] = hub.app.app.router.routes
    return [(route, method) for route in routes for method in sorted(getattr(route, "methods", None) or {"GET"})]


def test_every_route_has_a_row_in_the_table_and_every_row_a_route(hub: Hub) -> None:
    keys = {route_key(route, method) for route, method in routes_of(hub)}
    assert keys == set(ROUTES)


def test_a_route_without_a_row_is_refused_to_everybody(hub: Hub) -> None:
    async def secret(_request: Request) -> Response:
        return PlainTextResponse("secret")

    hub.with_app(AccessOptions(), Route("/forgotten", secret))
    assert {hub.ask("/forgotten", reader).status for reader in (None, *ROLES)} == {403}


def test_every_role_and_level_has_a_scope() -> None:
    assert set(SEES) == {(role, level) for role in Role for level in Level}
    assert {key for key, scope in SEES.items() if scope is SessionScope.OWN} == {
        (Role.MEMBER, Level.TITLES),
        (Role.MEMBER, Level.CONTENTS),
    }


PARAMETERS = {
    "{session_id}": "{session}",
    "{turn:int}": "1",
    "{tool:int}": "0",
    "{key}": "1",
    "{format}": "md",
    "{call}": "none",
    "{other}": "{session}",
}
READ_ROUTES = [
    key.partition(" ")[2]
    for key, rule in ROUTES.items()
    if rule.level and key.startswith("GET") and "events" not in key
]
ABOUT_SESSIONS = [path for path in READ_ROUTES if "{session_id}" in path]
# Nothing is there: the sessions have no calls on the wire, and no sub-agents.
EMPTY = (
    "/sessions/{session_id}/wire/{call}",
    "/sessions/{session_id}/agents/{turn:int}",
    f"{V1}/sessions/{{session_id}}/calls/{{call}}",
)


def path_of(route: str, session: str) -> str:
    for name, value in PARAMETERS.items():
        route = route.replace(name, value)
    return route.replace("{session}", session) + ("?q=prompt" if route.endswith(("/search", "/find")) else "")


def ask(hub: Hub, path: str, reader: str) -> tuple[int, str]:
    """By the door that the route has: the token for programs, the cookie for the page; framed, as a browser does."""
    if path.startswith(V1):
        answer = hub.ask(path, reader)
    else:
        answer = hub.browse(path, reader)
        if 'src="/sessions/' in answer.text:
            answer = hub.browse(f"{path}{'&' if '?' in path else '?'}frame=1", reader)
    return answer.status, answer.text


@pytest.mark.parametrize("route", ABOUT_SESSIONS)
def test_a_member_opens_own_sessions_and_no_others(hub: Hub, route: str) -> None:
    status, text = ask(hub, path_of(route, SESSIONS[MEMBER]), MEMBER)
    assert status == (404 if route in EMPTY else 200), text
    status, text = ask(hub, path_of(route, SESSIONS[OTHER]), MEMBER)
    assert status == 404
    assert OTHER not in text


@pytest.mark.parametrize("route", READ_ROUTES)
def test_no_route_shows_a_member_names_or_texts_of_others(hub: Hub, route: str) -> None:
    path = path_of(route, SESSIONS[MEMBER])
    for query in ("", "by=session", "by=project", "by=tool", f"person={OTHER}", "q=prompt", "title=prompt", "part=1"):
        _, text = ask(hub, f"{path}{'&' if '?' in path else '?'}{query}" if query else path, MEMBER)
        assert SESSIONS[OTHER] not in text
        assert not [word for word in ("prompt-of", "answer-of", "tool-of") if f"{word}-{OTHER}" in text]


@pytest.mark.parametrize("role", [LEAD, ADMIN])
@pytest.mark.parametrize("route", ABOUT_SESSIONS)
def test_leads_and_admins_open_what_is_shared(hub: Hub, route: str, role: str) -> None:
    status, text = ask(hub, path_of(route, SESSIONS[OTHER]), role)
    assert status == (404 if route in EMPTY else 200), text


CONTENTS = [path for path in ABOUT_SESSIONS if ROUTES[f"GET {path}"].level is Level.CONTENTS and path not in EMPTY]


@pytest.mark.parametrize("route", [*CONTENTS, "/search", f"{V1}/search"])
def test_reading_contents_of_others_is_noted_once_and_shown_to_them(hub: Hub, route: str) -> None:
    hub.with_app(AccessOptions())  # nothing is noted yet
    path, before = path_of(route, SESSIONS[OTHER]), len(hub.people.reads_of(OTHER, 1000))
    for _ in range(2):
        ask(hub, path, LEAD)
    new = hub.people.reads_of(OTHER, 1000)[: len(hub.people.reads_of(OTHER, 1000)) - before]
    assert [(event.person, event.session, event.detail) for event in new] == [(LEAD, SESSIONS[OTHER], route)]
    assert {"person": LEAD, "route": route} in [
        {name: row[name] for name in ("person", "route")} for row in items(hub, f"{V1}/reads", OTHER)
    ]
    assert route.replace("{", "{") in hub.browse("/reads", OTHER).text


@pytest.mark.parametrize("route", CONTENTS)
def test_reading_own_contents_is_not_noted(hub: Hub, route: str) -> None:
    ask(hub, path_of(route, SESSIONS[LEAD]), LEAD)
    assert not [event for event in hub.people.reads_of(LEAD, 1000) if event.person == LEAD]


# ---------------------------------------------------------------- numbers of the team


def test_usage_by_person_has_a_row_for_each_person_for_everybody(hub: Hub) -> None:
    for reader in ROLES:
        rows = items(hub, f"{V1}/usage?by=person", reader)
        assert {row["key"]: row["responses"] for row in rows} == dict.fromkeys(ROLES, 2)
    assert {row["key"] for row in items(hub, f"{V1}/usage?by=machine", MEMBER)} == {f"laptop-{name}" for name in ROLES}
    assert [row["responses"] for row in items(hub, f"{V1}/usage?by=person&person=cleo", MEMBER)] == [2]


@pytest.mark.parametrize("query", ["by=session", "by=project", "by=tool", "by=day&project=x", "by=person&title=prompt"])
def test_numbers_that_tell_names_are_own_ones_for_a_member(hub: Hub, query: str) -> None:
    own = items(hub, f"{V1}/usage?{query}", MEMBER)
    assert sum(int(str(row["responses"])) for row in own) <= 2
    assert SESSIONS[OTHER] not in json.dumps(own)


def test_the_team_page_shows_people_to_everybody(hub: Hub) -> None:
    for reader in (MEMBER, LEAD):
        text = hub.browse("/team?days=365", reader).text
        assert all(name in text for name in ROLES)


def test_days_are_those_of_the_zone_that_is_given(hub: Hub) -> None:
    assert hub.ask(f"{V1}/usage?by=day&tz=Pacific/Kiritimati", LEAD).status == 200
    for zone in ("No/Where", "../../../etc/passwd", "/etc/passwd", "%00", "Europe"):
        assert hub.ask(f"{V1}/usage?by=day&tz={zone}", LEAD).status == 400


def test_lists_have_people_and_machines(hub: Hub) -> None:
    text = hub.browse("/sessions", LEAD).text
    assert all(name in text for name in ROLES)
    (row,) = items(hub, f"{V1}/sessions?person={OTHER}", LEAD)
    assert (row["people"], row["machines"]) == ([OTHER], [f"laptop-{OTHER}"])
    (row,) = items(hub, f"{V1}/sessions", MEMBER)
    assert row["people"] == [MEMBER]


# ---------------------------------------------------------------- contents of others


def test_contents_of_others_are_in_a_frame_without_scripts(hub: Hub) -> None:
    page = hub.browse(f"/sessions/{SESSIONS[OTHER]}", LEAD)
    assert "prompt-of" not in page.text.partition("<body")[2]
    assert 'sandbox="allow-top-navigation-by-user-activation"' in page.text
    framed = hub.browse(f"/sessions/{SESSIONS[OTHER]}?frame=1", LEAD)
    assert f"prompt-of-{OTHER}" in framed.text
    assert f"tool-of-{OTHER}" in framed.text
    policy = framed.headers["content-security-policy"]
    assert policy.startswith("sandbox allow-top-navigation-by-user-activation;")
    assert "script-src" not in policy
    assert "default-src 'none'" in policy
    assert "<script" not in framed.text
    assert "&lt;script&gt;" in framed.text


@pytest.mark.parametrize("route", [path for path in CONTENTS if not path.startswith(V1)])
def test_no_answer_with_contents_of_others_can_run_a_script(hub: Hub, route: str) -> None:
    path = path_of(route, SESSIONS[OTHER])
    framed = hub.browse(f"{path}{'&' if '?' in path else '?'}frame=1", LEAD)
    assert framed.status == 200
    assert framed.headers["content-security-policy"].startswith("sandbox ")


def test_own_sessions_are_pages_as_on_the_own_machine(hub: Hub) -> None:
    page = hub.browse(f"/sessions/{SESSIONS[LEAD]}?frame=1", LEAD)
    assert f"prompt-of-{LEAD}" in page.text
    assert "<iframe" not in page.text
    assert "script-src 'self'" in page.headers["content-security-policy"]


# ---------------------------------------------------------------- a session of two people


def test_a_session_belongs_to_the_first_person_who_shared_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    with running_hub(tmp_path / "hub") as hub:
        both = SESSIONS[OTHER]
        add_device(hub, tmp_path / "more", MEMBER, "desk", both)  # a copy, or a forgery
        settle(hub)
        assert set(json.loads(hub.ask(f"{V1}/sessions/{both}", LEAD).text)["people"]) == {MEMBER, OTHER}
        assert hub.ask(f"{V1}/sessions/{both}", OTHER).status == 200
        assert hub.ask(f"{V1}/sessions/{both}", MEMBER).status == 404
        for path in (f"{V1}/sessions", f"{V1}/search?q=prompt", f"{V1}/ledger", f"{V1}/usage?by=session"):
            assert both not in hub.ask(path, MEMBER).text
            assert both in hub.ask(path, OTHER).text


def test_admins_list_people_and_the_audit_and_others_do_not(hub: Hub) -> None:
    rows = items(hub, f"{V1}/people", ADMIN)
    assert {row["name"]: row["role"] for row in rows} == {name: str(role) for name, role in ROLES.items()}
    assert items(hub, f"{V1}/audit", ADMIN)
    for reader in (LEAD, MEMBER):
        for path in (f"{V1}/people", f"{V1}/audit"):
            assert hub.ask(path, reader).status == 403
            assert path in hub.refusals()
