"""The same for programs: JSON that fits its own description, CSV that is harmless, pages that leave nothing out."""

import csv
import io
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_logger.web.api.endpoints import ENDPOINTS
from agent_logger.web.api.openapi import PARAMETERS
from agent_logger.web.api.tables import FORMULA, escape_formula
from agent_logger.web.filters import PageQuery
from tests.clients import ROOT
from tests.web import homes
from tests.web.page_process import Page, showing

SCHEMATHESIS = ROOT / ".venv/bin/schemathesis"


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    home = tmp_path_factory.mktemp("home")
    homes.real_sessions(home)
    homes.demo(home)
    with showing(home) as page:
        yield page


@pytest.fixture(scope="module")
def cookie(page: Page) -> str:
    return page.cookie()


def told(page: Page, cookie: str, path: str) -> Any:
    answer = page.ask(f"/api/v1{path}", cookie=cookie)
    assert (answer.status, answer.headers["content-type"]) == (200, "application/json"), answer.text[:300]
    return json.loads(answer.body)


def test_every_parameter_of_the_api_is_described() -> None:
    names = {name for endpoint in ENDPOINTS for name in endpoint.query}
    assert names - PARAMETERS.keys() == set()


@pytest.fixture(scope="module")
def document(page: Page, cookie: str) -> Any:
    return told(page, cookie, "/openapi.json")


@pytest.fixture(scope="module")
def demo(page: Page, cookie: str) -> Any:
    (session,) = told(page, cookie, "/sessions?project=tea-timer")["items"]
    return session


def test_every_response_matches_the_openapi_document(page: Page, cookie: str, document: Any, demo: Any) -> None:
    call = told(page, cookie, f"/sessions/{demo['id']}/calls")["items"][1]["call"]
    assert len(document["paths"]) == 14
    for path, operations in document["paths"].items():
        schema = operations["get"]["responses"]["200"]["content"]["application/json"]["schema"]
        asked = path.removeprefix("/api/v1").format(
            session_id=homes.FORKED if "other" in path else demo["id"], other=homes.FORK, call=call
        )
        answer = told(page, cookie, f"{asked}?q=timer&since=2026-01-01")
        validator = pytest.importorskip("jsonschema").Draft202012Validator
        validator({**schema, "components": document["components"]}).validate(answer)
        assert answer.get("items", answer) or path.endswith("health"), path


def test_pagination_returns_every_session_once(page: Page, cookie: str) -> None:
    everything = [it["id"] for it in told(page, cookie, "/sessions?limit=1000")["items"]]
    found, address = [], "/sessions?limit=7"
    while address:
        answer = told(page, cookie, address)
        found += [it["id"] for it in answer["items"]]
        address = (answer["next"] or "").removeprefix("/api/v1")
    assert found == everything
    assert len(set(found)) == len(found) > 30


def test_two_sessions_side_by_side_start_at_the_fork(page: Page, cookie: str) -> None:
    found = told(page, cookie, f"/sessions/{homes.FORKED}/beside/{homes.FORK}")["items"]
    said = {(it["session"], "".join(block["text"] for block in it["blocks"])) for it in found}
    assert (homes.FORKED, "After the failure.") in said
    assert (homes.FORK, "In the fork.") in said
    assert page.ask(f"/api/v1/sessions/{homes.FORKED}/beside/nothing", cookie=cookie).status == 404


def test_the_timeline_shows_calls_and_tools_in_time_order(page: Page, cookie: str, demo: Any) -> None:
    """As the wire measured it, where it did; the agent at work lies within the call that started it."""
    drawn = page.ask(f"{demo['url']}/timeline?exchange=3", cookie=cookie).text
    rows = re.findall(r"<tr class=.*?</tr>", drawn, re.DOTALL)
    labels = [re.findall(r"#turn-(\d+)\">(.*?)<", row)[0] for row in rows]
    model = "claude-sonnet-4-5"
    assert labels == [("4", model), ("4", "Agent"), ("5", model), ("5", "Grep"), ("6", model), ("7", model)]
    bars = [[float(it) for it in re.findall(r'class="waits .*?x="(.*?)".*?width="(.*?)"', row)[0]] for row in rows]
    (begins, lasts), inside = bars[1], bars[2:5]
    # The wire may see the end of a call a little after its client, who goes on with it.
    assert all(begins <= x and x + width <= begins + 1.05 * lasts + 1 for x, width in inside), bars
    assert bars[0][0] < begins < bars[5][0]
    first_bytes = [len(re.findall(r'class="num">\d+ ms', row)) for row in rows]
    assert first_bytes == [2, 1, 2, 1, 2, 2], "a tool has no first byte, a call on the wire has one"


def test_a_damaged_line_is_reported_with_its_offset(tmp_path: Path) -> None:
    homes.real_sessions(tmp_path)
    (broken, *_) = sorted((tmp_path / ".claude/projects").rglob("*.jsonl"))
    key = "sk-ant-api03-" + "Qz7" * 20
    size = broken.stat().st_size
    with broken.open("a") as file:
        file.write(f'{{"type":"user","key":"{key}",<script>\n')
    with showing(tmp_path) as page:
        cookie, until = page.cookie(), time.monotonic() + 60
        while (found := told(page, cookie, "/health/checkup"))["at"] is None and time.monotonic() < until:
            time.sleep(0.1)
    (damage,) = [it for it in found["damage"] if it["path"] == str(broken)]
    assert (damage["offset"], "<script>" in damage["text"], key in damage["text"]) == (size, True, False)
    assert found["files"] > 30


def test_costs_agree_across_endpoints(page: Page, cookie: str, demo: Any) -> None:
    rows = told(page, cookie, f"/sessions/{demo['id']}/ledger")["items"]
    usage = told(page, cookie, "/usage?by=session")["items"]
    (of_session,) = [it for it in usage if it["key"] == demo["id"]]
    assert sum(it["cost_usd"] for it in rows) == pytest.approx(demo["cost_usd"])
    assert of_session["cost_usd"] == pytest.approx(demo["cost_usd"])
    exchanges = told(page, cookie, f"/sessions/{demo['id']}/exchanges")["items"]
    assert sum(it["cost_usd"] for it in exchanges) == pytest.approx(demo["cost_usd"])
    assert {it["witnesses"][0] for it in rows} == {"sdk"}
    assert all("seen by 2 sources" in it["why"] for it in rows)


def test_a_turn_has_the_same_number_on_the_page_and_in_the_terminal(page: Page, cookie: str, demo: Any) -> None:
    show = [sys.executable, "-m", "agent_logger", "show", demo["id"], "--turn", "1"]
    done = subprocess.run(show, env=page.environment, capture_output=True, text=True, check=True)
    assert "Half minutes get lost" in done.stdout
    turns = told(page, cookie, f"/sessions/{demo['id']}/turns")["items"]
    hit = told(page, cookie, "/search?q=rounds+kettle")["items"][0]
    for number, turn in enumerate(turns):
        assert turn["number"] == number
    assert "kettle.py" in str(turns[hit["turn"]]["blocks"])
    assert hit["url"].endswith(f"#turn-{hit['turn']}")
    for path in (f"/sessions/{demo['id']}/turns/1", f"/sessions/{demo['id']}"):
        shown = page.ask(path, cookie=cookie).text
        (said,) = re.findall(r'<article class="turn" id="turn-1">(.*?)</article>', shown, re.DOTALL)
        assert "Half minutes get lost" in said


def test_filters_narrow_the_session_list(page: Page, cookie: str) -> None:
    codex = told(page, cookie, "/sessions?agent=codex")["items"]
    assert {it["agent"] for it in codex} == {"codex"}
    assert told(page, cookie, "/sessions?until=2000-01-01")["items"] == []
    assert told(page, cookie, "/sessions?witness=wire")["items"][0]["title"].startswith("My tea timer")
    assert told(page, cookie, "/sessions?min_cost=1000")["items"] == []


@pytest.mark.parametrize(("order", "field"), [("cost", "cost_usd"), ("turns", "turns"), ("nonsense", "ended")])
def test_sessions_are_ordered_from_highest_to_lowest(page: Page, cookie: str, order: str, field: str) -> None:
    found = [it[field] or 0 for it in told(page, cookie, f"/sessions?order={order}&since=2026-01-01")["items"]]
    assert len(set(found)) > 3
    assert found == sorted(found, reverse=True)


def test_a_call_includes_its_request_body_and_event_times(page: Page, cookie: str, demo: Any) -> None:
    calls = told(page, cookie, f"/sessions/{demo['id']}/calls")["items"]
    assert len(calls) == 8
    detail = told(page, cookie, f"/sessions/{demo['id']}/calls/{calls[1]['call']}")
    assert json.loads(detail["request_body"])["messages"][0]["content"].startswith("My tea timer")
    assert [it["name"] for it in detail["events"]][0 :: len(detail["events"]) - 1] == [
        "message_start",
        "message_stop",
    ]
    times = [it["at_ms"] for it in detail["events"]]
    assert times == sorted(times)
    assert detail["new_messages"] == 2


@pytest.mark.parametrize("path", ["/sessions", "/usage?by=model", "/ledger", "/search?q=timer", "/health"])
def test_every_list_endpoint_returns_csv(page: Page, cookie: str, path: str) -> None:
    mark = "&" if "?" in path else "?"
    answer = page.ask(f"/api/v1{path}{mark}format=csv", cookie=cookie)
    head, *rows = csv.reader(io.StringIO(answer.text))
    items = told(page, cookie, path)["items"]
    assert len(rows) == len(items)
    if items:
        assert head == list(items[0])


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/sessions/no-such-session", 404),
        ("/sessions/no-such-session/turns", 404),
        ("/sessions/..%2F..%2Fetc%2Fpasswd", 404),
        ("/nothing", 404),
        ("/search?q=tool:", 400),
    ],
)
def test_an_error_response_includes_a_next_step(page: Page, cookie: str, path: str, status: int) -> None:
    answer = page.ask(f"/api/v1{path}", cookie=cookie)
    assert answer.status == status
    assert set(json.loads(answer.body)) == {"status", "error", "next_step"}


def test_an_invalid_search_shows_its_error_on_the_page(page: Page, cookie: str) -> None:
    answer = page.ask("/search?q=tool:", cookie=cookie)
    assert (answer.status, "tool: needs a value, for example tool:Bash." in answer.text) == (200, True)


@given(st.text())
def test_no_csv_cell_starts_a_formula(text: str) -> None:
    assert not escape_formula(text).startswith(FORMULA)


@given(
    st.dictionaries(st.sampled_from(["since", "until", "min_cost", "offset", "limit", "live", "witness"]), st.text())
)
def test_any_query_string_is_parsed_without_error_and_round_trips(query: dict[str, str]) -> None:
    wanted = PageQuery.of(query)
    assert wanted.filter() is not None
    assert PageQuery.of(dict(_pairs(wanted.query_string(offset=wanted.offset)))) == wanted


def _pairs(query: str) -> list[tuple[str, str]]:
    from urllib.parse import parse_qsl

    return parse_qsl(query.removeprefix("?"), keep_blank_values=True)


@pytest.mark.long
@pytest.mark.needs("schemathesis")
@pytest.mark.timeout(600)
def test_schemathesis_finds_no_server_error_or_schema_mismatch(page: Page, cookie: str, tmp_path: Path) -> None:
    line = [str(SCHEMATHESIS), "run", f"{page.url}/api/v1/openapi.json", "--header", f"Cookie: {cookie}"]
    line += ["--checks", "not_a_server_error,response_schema_conformance,content_type_conformance"]
    line += ["--max-examples", "60", "--seed", "1", "--generation-database", "none"]
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
    done = subprocess.run(line, capture_output=True, text=True, cwd=tmp_path, env=environment, check=False)
    assert done.returncode == 0, done.stdout[-4000:]
