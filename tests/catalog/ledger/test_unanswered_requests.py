"""Requests that a client wrote down, and no answer: they count as unknown, once."""

import json
import time
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from agent_logger.catalog.catalog import Catalog
from agent_logger.catalog.ledger.rows import LedgerRow
from agent_logger.catalog.ledger.totals import total
from agent_logger.model.not_itemised import AT_WORK_SECONDS
from tests.providers.captures import DATA

ID = "11111111-2222-4333-8444-555555555555"
MODEL = "claude-opus-5-5"
Line = dict[str, Any]


def at(second: int) -> str:
    return f"2026-11-15T07:00:{second:02}.000Z"


def prompt(second: int) -> Line:
    return {
        "type": "user",
        "uuid": f"u{second}",
        "timestamp": at(second),
        "sessionId": ID,
        "message": {"role": "user", "content": f"question {second}"},
    }


def request(second: int) -> Line:
    return {
        "type": "api-request",
        "id": f"r{second}",
        "timestamp": at(second),
        "sessionId": ID,
        "params": {"model": MODEL},
    }


def response(second: int) -> Line:
    usage = {"input_tokens": 10, "output_tokens": 20}
    message = {
        "id": f"msg_01{second:022}",
        "role": "assistant",
        "model": MODEL,
        "content": [{"type": "text", "text": "Yes."}],
        "usage": usage,
        "stop_reason": "end_turn",
    }
    return {
        "type": "assistant",
        "uuid": f"a{second}",
        "timestamp": at(second),
        "sessionId": ID,
        "message": message,
    }


def synthetic(second: int, *, is_error: bool) -> Line:
    line = response(second)
    message = line["message"] | {"id": f"synthetic-{second}", "model": "<synthetic>", "usage": None}
    return line | {"message": message, "isApiErrorMessage": is_error}


def error(second: int, status: int | None) -> Line:
    return {
        "type": "system",
        "subtype": "api_error",
        "uuid": f"e{second}",
        "timestamp": at(second),
        "sessionId": ID,
        "error": {"status": status, "message": "an error"},
    }


def end(*counted: int) -> Line:
    """The client's total, of so many responses."""
    usage = {"inputTokens": 10 * sum(counted), "outputTokens": 20 * sum(counted)}
    return {"type": "cost-state", "sessionId": ID, "totalCostUSD": 0.001, "modelUsage": {MODEL: usage}}


def file_of(home: Path, agent: str | None = None) -> Path:
    folder = home / ".claude/projects/-p"
    path = folder / ID / f"subagents/agent-{agent}.jsonl" if agent else folder / f"{ID}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


def write(path: Path, lines: Iterable[Line]) -> None:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))


def ledger_of(home: Path, folder: str = ".agent-logger") -> list[LedgerRow]:
    with Catalog.open(home / folder) as catalog:
        rows = list(catalog.ledger())
        for summary in catalog.sessions():
            session = catalog.session(summary.id)
            assert session is not None
            assert session.cost.unpriced == summary.cost.unpriced == total(rows).unpriced
        return rows


def unknown(rows: Iterable[LedgerRow]) -> list[LedgerRow]:
    return [row for row in rows if row.tokens is None]


CASES: dict[str, tuple[Sequence[Line], int]] = {
    "killed before the first answer": ([prompt(1), request(2)], 1),
    "answered": ([prompt(1), request(2), response(3)], 0),
    "killed at the second request": ([prompt(1), request(2), response(3), prompt(4), request(5)], 1),
    "killed and resumed": (
        [prompt(1), request(2), synthetic(6, is_error=False), prompt(7), request(8), response(9), end(1)],
        1,
    ),
    "refused with a status": ([prompt(1), request(2), error(3, 529), request(4), response(5)], 0),
    "refused for good": ([prompt(1), request(2), synthetic(3, is_error=True)], 0),
    "an error event, and asked again": ([prompt(1), request(2), request(3), response(4)], 0),
    "the connection was lost": ([prompt(1), request(2), error(3, None), request(4), response(5)], 1),
    "the connection was lost, and the client counted it": (
        [prompt(1), request(2), error(3, None), request(4), response(5), end(1, 1)],
        0,
    ),
    "interrupted by a person": ([prompt(1), request(2), prompt(4), request(5), response(6)], 1),
    "interrupted by a person, and the client counted it": (
        [prompt(1), request(2), prompt(4), request(5), response(6), end(1)],
        0,
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_a_request_counts_as_unknown_unless_it_was_answered_refused_or_counted(name: str, home: Path) -> None:
    lines, expected = CASES[name]
    write(file_of(home), lines)
    rows = unknown(ledger_of(home))
    assert len(rows) == expected
    for row in rows:
        assert (row.model, row.session, row.why) == (
            MODEL,
            ID,
            "the response to this request was not recorded (transcript); counted as unknown",
        )


@pytest.mark.parametrize("name", CASES)
def test_a_file_read_as_it_grows_gives_the_same_rows_as_the_whole_file(name: str, home: Path) -> None:
    lines, _ = CASES[name]
    for count in range(1, len(lines) + 1):
        write(file_of(home), lines[:count])
        grown, whole = ledger_of(home), ledger_of(home, f"fresh-{count}")
        assert sorted(grown, key=repr) == sorted(whole, key=repr), count


def test_a_request_in_flight_counts_as_unknown_after_a_timeout(home: Path) -> None:
    def aged(line: Line, seconds: float) -> Line:
        return line | {"timestamp": (datetime.now(UTC) - timedelta(seconds=seconds)).isoformat()}

    write(file_of(home), [aged(prompt(1), 1000), aged(request(2), AT_WORK_SECONDS - 3)])
    assert unknown(ledger_of(home)) == []
    deadline = time.monotonic() + 30
    while not (rows := unknown(ledger_of(home))) and time.monotonic() < deadline:
        time.sleep(0.5)
    assert len(rows) == 1
    with file_of(home).open("a") as file:
        file.write(json.dumps(aged(response(3), 0)) + "\n")
    assert unknown(ledger_of(home)) == []


@pytest.mark.parametrize(
    ("main", "expected"),
    [
        pytest.param([prompt(1), request(2), response(3)], 1, id="killed"),
        pytest.param([prompt(1), request(2), response(3), response(9), end(1, 1)], 0, id="ended"),
        pytest.param(
            [
                prompt(1),
                request(2),
                response(3),
                synthetic(7, is_error=False),
                prompt(8),
                response(9),
                end(1),
            ],
            1,
            id="killed and resumed",
        ),
    ],
)
def test_a_subagent_request_is_included_in_the_total_of_a_client_that_ended(
    main: list[Line], expected: int, home: Path
) -> None:
    write(file_of(home), main)
    write(file_of(home, "abc"), [prompt(4), request(5), response(6), request(6)])
    assert len(unknown(ledger_of(home))) == expected


@pytest.mark.parametrize("name", ["kill9_resume", "disconnect_midstream", "sse_error_event", "retry_then_ok"])
def test_reading_a_growing_file_of_a_real_client_gives_the_same_rows(name: str, home: Path) -> None:
    [path] = (DATA / "claude-cli/2.1.325" / name / "home").glob(".claude/projects/*/*.jsonl")
    target = home / ".claude/projects/-p" / path.name
    target.parent.mkdir(parents=True)
    lines = path.read_bytes().splitlines(keepends=True)
    for count in range(8, len(lines) + 1):
        target.write_bytes(b"".join(lines[:count]))
        grown = ledger_of(home)
    whole = ledger_of(home, "fresh")
    assert sorted(grown, key=repr) == sorted(whole, key=repr)
    assert len(unknown(whole)) == (name == "kill9_resume")
