"""Attacks on the hub's doors: each is refused, noted, and changes nothing."""

import ipaddress
import json
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest

from agent_logger.hub.access import AccessOptions
from agent_logger.hub.people import LIFETIMES
from agent_logger.hub.roles import ROUTES, Access
from agent_logger.hub.throttle import FAILURES
from agent_logger.web.api.endpoints import V1
from tests.hub.page_hubs import ADMIN, HOST, LEAD, MEMBER, OTHER, SESSIONS, Hub, running_hub

ORIGIN = {"origin": f"https://{HOST}"}
TRUSTING = AccessOptions(trusted_header="x-user", trusted_networks=(ipaddress.ip_network("10.1.0.0/16"),))


@pytest.fixture(scope="module")
def shared_hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hub]:
    folder = tmp_path_factory.mktemp("hub")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(folder))
        with running_hub(folder / "hub") as hub:
            yield hub


@pytest.fixture
def hub(shared_hub: Hub) -> Hub:
    shared_hub.time.seconds += 3600
    shared_hub.with_app(AccessOptions())
    return shared_hub


CLOSED = {key: rule.access for key, rule in ROUTES.items() if rule.access not in (Access.ANYBODY, Access.INVITE)}


def concrete(path: str) -> str:
    for name in ("{session_id}", "{session:path}", "{other}", "{object}", "{key}", "{call}", "{format}"):
        path = path.replace(name, SESSIONS[OTHER])
    return (
        path.replace("{turn:int}", "0")
        .replace("{tool:int}", "0")
        .replace("{generation:int}", "1")
        .replace("{offset:int}", "0")
    )


@pytest.mark.parametrize("route", CLOSED)
def test_every_route_refuses_wrong_tokens_and_notes_it(hub: Hub, route: str) -> None:
    method, path = route.split(" ")
    reader, device = hub.people.reader_token(ADMIN), hub.devices[ADMIN]
    page = hub.cookie(ADMIN).partition("=")[2]
    revoked = hub.people.reader_token(OTHER)
    hub.people.revoke_tokens(OTHER)
    hub.readers[OTHER] = hub.people.reader_token(OTHER)
    wrong = {
        "none": None,
        "empty": "",
        "wrong": "x" * 43,
        "injection": "' OR 1=1 --",
        "invite": hub.people.invite(MEMBER),
        "link": hub.people.link_token(MEMBER),
        "page": page,
        "revoked": revoked,
        "other kind": reader if CLOSED[route] is Access.DEVICE else device,
    }
    for number, (name, token) in enumerate(wrong.items()):
        before = len(hub.refusals())
        headers = {"agent-logger-protocol": "1"} | ORIGIN
        headers |= {} if token is None else {"authorization": f"Bearer {token}"}
        answer = hub.ask(concrete(path), method=method, peer=f"10.7.0.{number}", headers=headers)
        assert answer.status == 401, name
        assert OTHER not in answer.text
        assert len(hub.refusals()) == before + 1, name


@pytest.mark.parametrize("route", [key for key in CLOSED if f" {V1}" not in key and CLOSED[key] is not Access.DEVICE])
def test_the_page_takes_no_reader_token(hub: Hub, route: str) -> None:
    method, path = route.split(" ")
    assert hub.ask(concrete(path), ADMIN, method=method, headers=ORIGIN).status == 401


def test_a_token_of_a_device_pushes_for_that_device_alone(hub: Hub) -> None:
    headers = {"authorization": f"Bearer {hub.devices[MEMBER]}", "agent-logger-protocol": "1"}
    answer = json.loads(hub.ask("/push/v1/device", headers=headers).text)
    (device,) = [device for device in hub.people.devices() if device.person.name == MEMBER]
    assert OTHER not in json.dumps(answer)
    assert device.id in json.dumps(answer)


def test_a_link_signs_in_once_and_not_by_being_looked_at(hub: Hub) -> None:
    token = hub.people.link_token(MEMBER)
    for _ in range(3):  # as programs do that show a preview of a link
        page = hub.ask(f"/open?token={token}")
        assert page.status == 200
        assert "agent-logger hub" in page.text
        assert "<nav" not in page.text  # there is nothing yet that they could open
    answer = hub.ask("/open", method="POST", headers=ORIGIN, form={"token": token})
    assert (answer.status, answer.headers["location"]) == (303, "/")
    (cookie,) = answer.cookies
    assert {"HttpOnly", "SameSite=lax", "Path=/"} <= set(cookie.split("; "))
    assert hub.ask("/", headers={"cookie": cookie.partition(";")[0]}).status == 200
    assert hub.ask("/open", method="POST", headers=ORIGIN, form={"token": token}).status == 401
    assert "link" in hub.refusals()


def test_a_late_link_is_refused(hub: Hub) -> None:
    token = hub.people.link_token(MEMBER)
    hub.time.seconds += LIFETIMES["link"]
    assert hub.ask("/open", method="POST", headers=ORIGIN, form={"token": token}).status == 401


def test_a_late_or_revoked_sign_in_is_refused(hub: Hub) -> None:
    cookie = {"cookie": hub.cookie(MEMBER)}
    assert hub.ask("/", headers=cookie).status == 200
    hub.people.revoke_tokens(MEMBER)
    assert hub.ask("/", headers=cookie).status == 401
    hub.readers[MEMBER] = hub.people.reader_token(MEMBER)
    cookie = {"cookie": hub.cookie(MEMBER)}
    hub.time.seconds += LIFETIMES["page"]
    assert hub.ask("/", headers=cookie).status == 401


def test_where_people_use_https_the_cookie_is_secure_and_of_this_host_alone(hub: Hub) -> None:
    hub.with_app(AccessOptions(is_secure=True))
    form = {"token": hub.people.link_token(MEMBER)}
    (cookie,) = hub.ask("/open", method="POST", headers=ORIGIN, form=form).cookies
    assert cookie.startswith("__Host-")
    assert "Secure" in cookie.split("; ")


def test_forms_of_other_sites_change_nothing(hub: Hub) -> None:
    cookie = hub.cookie(MEMBER)
    token = csrf_token(hub, cookie)
    other = csrf_token(hub, hub.cookie(OTHER))
    for headers, form in (
        ({}, {"csrf_token": token}),  # no origin
        ({"origin": "https://evil.example"}, {"csrf_token": token}),
        ({"origin": "null"}, {"csrf_token": token}),
        ({**ORIGIN, "sec-fetch-site": "cross-site"}, {"csrf_token": token}),
        (ORIGIN, {}),
        (ORIGIN, {"csrf_token": ""}),
        (ORIGIN, {"csrf_token": other}),
        (ORIGIN, {"csrf_token": "é"}),
    ):
        assert hub.ask("/sign-out", method="POST", headers={"cookie": cookie, **headers}, form=form).status == 403
        assert hub.ask("/", headers={"cookie": cookie}).status == 200
    assert "form of another site" in hub.refusals()
    answer = hub.ask("/sign-out", method="POST", headers={"cookie": cookie, **ORIGIN}, form={"csrf_token": token})
    assert answer.status == 200
    assert hub.ask("/", headers={"cookie": cookie}).status == 401


def csrf_token(hub: Hub, cookie: str) -> str:
    text = hub.ask("/", headers={"cookie": cookie}).text
    return text.partition('name="csrf_token" value="')[2].partition('"')[0]


def test_a_form_that_signs_in_is_taken_from_this_hub_alone(hub: Hub) -> None:
    token = hub.people.link_token(MEMBER)
    for headers in ({}, {"origin": "https://evil.example"}, {"origin": "null"}):
        assert hub.ask("/open", method="POST", headers=headers, form={"token": token}).status == 403
    large = hub.ask("/open", method="POST", headers=ORIGIN, form={"token": "x" * 200_000})
    assert large.status == 413


def test_other_sites_read_nothing_and_links_in_messages_work(hub: Hub) -> None:
    cookie = {"cookie": hub.cookie(MEMBER)}
    assert hub.ask("/sessions", headers={**cookie, "origin": "https://evil.example"}).status == 403
    other_site = {**cookie, "sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors"}
    assert hub.ask("/sessions", headers=other_site).status == 403
    link = {**cookie, "sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"}
    assert hub.ask("/sessions", headers=link).status == 200


# ---------------------------------------------------------------- the header of a proxy


def test_a_trusted_header_signs_in_from_its_network_alone(hub: Hub) -> None:
    hub.with_app(TRUSTING)
    assert hub.ask("/", headers={"x-user": LEAD}, peer="10.1.2.3").status == 200
    for peer in ("10.2.0.1", "127.0.0.1", "::1", "10.1.2.3.4", "", "unknown"):
        before = hub.refusals().count("trusted header from elsewhere")
        assert hub.ask("/", headers={"x-user": ADMIN}, peer=peer).status == 401
        assert hub.refusals().count("trusted header from elsewhere") == before + 1
    assert hub.ask("/", headers={"x-forwarded-for": "10.1.2.3", "x-user": ADMIN}, peer="10.2.0.1").status == 401


def test_a_trusted_header_that_names_nobody_is_refused(hub: Hub) -> None:
    hub.with_app(TRUSTING)
    for name in ("", "nobody", "' OR 1=1 --", "ann,lea", "\xff"):
        assert hub.ask("/", headers={"x-user": name}, peer="10.1.2.3").status == 403, name
    hub.people.invite("dora")
    assert hub.ask("/", headers={"x-user": "dora"}, peer="10.1.2.3").status == 200
    hub.people.revoke_person("dora")
    assert hub.ask("/", headers={"x-user": "dora"}, peer="10.1.2.3").status == 403


def test_without_the_option_no_header_signs_in(hub: Hub) -> None:
    assert hub.ask("/", headers={"x-user": ADMIN}, peer="10.1.2.3").status == 401


def test_behind_a_proxy_peers_are_those_that_it_names(hub: Hub) -> None:
    hub.with_app(AccessOptions(behind_proxy=True))
    hub.ask("/", headers={"x-forwarded-for": "192.0.2.6, 203.0.113.9"}, peer="127.0.0.1")
    hub.ask("/", headers={"x-forwarded-for": "192.0.2.7"}, peer="198.51.100.1")
    peers = {event.peer for event in hub.people.events(1000)}
    assert {"203.0.113.9", "198.51.100.1"} <= peers
    assert not {"127.0.0.1", "192.0.2.6", "192.0.2.7"} & {event.peer for event in hub.people.events(2)}


# ---------------------------------------------------------------- throttling, injection


def test_a_peer_that_tries_tokens_has_to_wait(hub: Hub) -> None:
    known = {"authorization": f"Bearer {hub.readers[LEAD]}"}
    path, peer = f"{V1}/usage", "10.66.0.1"
    assert hub.ask(path, headers=known, peer=peer).status == 200
    for _ in range(FAILURES):
        assert hub.ask(path, headers={"authorization": f"Bearer {'x' * 43}"}, peer=peer).status == 401
    noted = len(hub.refusals())
    answer = hub.ask(path, headers={"authorization": f"Bearer {'x' * 43}"}, peer=peer)
    assert (answer.status, answer.headers["retry-after"]) == (429, "60")
    assert len(hub.refusals()) == noted
    token = hub.people.link_token(MEMBER)
    assert hub.ask("/open", method="POST", headers=ORIGIN, form={"token": token}, peer=peer).status == 429
    assert hub.ask(path, headers=known, peer=peer).status == 200  # others behind the same address go on
    assert hub.ask("/open", method="POST", headers=ORIGIN, form={"token": token}, peer="10.66.0.2").status == 303


HOSTILE = (
    "' OR '1'='1",
    "1; DROP TABLE people; --",
    "%00",
    "../../../../etc/passwd",
    "..%2f..%2f..%2fetc%2fpasswd",
    "%25",
    "\\..\\..",
    "_",
    "*",
    '") OR 1=1 --',
    "{{7*7}}",
    "<script>alert(1)</script>",
    "%ff%fe",
    "x" * 5000,
)


@pytest.mark.parametrize("value", HOSTILE)
def test_no_parameter_reaches_others_or_the_disk(hub: Hub, value: str) -> None:
    given = value if "%" in value else quote(value, safe="")
    paths = [f"/sessions/{given}", f"/sessions/{given}/wire", f"{V1}/sessions/{given}", f"{V1}/sessions/{given}/turns"]
    own = SESSIONS[MEMBER]
    paths += [f"/sessions/{own}/{rest}/{given}" for rest in ("parts", "rest", "beside", "wire", "export")]
    names = (
        "agent",
        "project",
        "model",
        "machine",
        "person",
        "title",
        "label",
        "since",
        "until",
        "min_cost",
        "by",
        "tz",
    )
    for name in (*names, "witness", "order", "offset", "limit", "format", "q", "period", "days", "part", "frame"):
        paths += [f"{base}?{name}={given}" for base in ("/", "/team", "/sessions", "/search", "/why", "/palette")]
        paths += [f"{V1}/{base}?{name}={given}" for base in ("sessions", "usage", "ledger", "search")]
    people = len(hub.people.people())
    cookie = {"cookie": hub.cookie(MEMBER)}
    for path in paths:
        answer = hub.ask(path, MEMBER) if path.startswith(V1) else hub.ask(path, headers=cookie)
        assert answer.status in (200, 300, 400, 404), path
        assert "root:" not in answer.text
        assert answer.headers["content-type"] == "application/json" or "<script>alert" not in answer.text
        assert SESSIONS[OTHER] not in answer.text
    assert len(hub.people.people()) == people


def test_the_time_to_refuse_says_nothing_about_tokens(hub: Hub) -> None:
    """A token is looked up by its hash: one that shares all characters but the last with a real one takes as long as
    any other."""
    real = hub.people.reader_token(LEAD)
    near, far = real[:-1] + ("A" if real[-1] != "A" else "B"), "x" * 43

    def fastest(token: str, network: str) -> float:
        times = []
        for number in range(200):
            began = time.perf_counter()
            assert hub.people.reader_of(token, f"{network}.{number}") is None
            times.append(time.perf_counter() - began)
        return min(times)

    assert 0.2 < fastest(near, "10.50.0") / fastest(far, "10.51.0") < 5


def test_nothing_of_the_machine_of_the_hub_is_on_its_page(hub: Hub, tmp_path: Path) -> None:
    for path in ("/health", "/demo", f"{V1}/health", f"{V1}/health/checkup", "/health/damage/0"):
        answer = hub.browse(path, ADMIN)
        assert answer.status == 404 or "proxies" not in answer.text
        assert str(tmp_path.parent) not in answer.text
