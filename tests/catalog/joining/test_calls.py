"""The calls of a session as the wire saw them, in short and in full."""

import json
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from agent_logger.catalog.catalog import Catalog
from agent_logger.catalog.joining.calls import CallDetail, WireCall, call_detail, calls_of
from agent_logger.files.parts import PartFile
from agent_logger.home.facts import register_log_folder
from agent_logger.journal.seal import seal
from agent_logger.logs.wire_log.requests import Change, asked_of, changes
from agent_logger.logs.wire_log.session import session_of
from agent_logger.model.records import Request, WireStart
from agent_logger.model.session import SIDE
from tests.journal.wire_logs import CHAIN, calls, fork, start, write
from tests.logs.wire_log.wire_records import Talk, talk, talks

TALKS = pytest.mark.parametrize("spoken", talks(), ids=lambda it: f"{it.name}-{(it.client_id or '')[:4]}")


def detail(found: list[WireCall], number: int) -> CallDetail:
    told = call_detail(found, found[number].call)
    assert told
    return told


@TALKS
def test_every_call_of_a_log_is_listed_with_its_status_and_usage(tmp_path: Path, spoken: Talk) -> None:
    found = calls_of([write(tmp_path, "log", spoken.records())])
    assert [it.seq for it in found] == list(range(1, len(spoken.calls) + 1))
    assert [it.status for it in found] == [it.truth["status"] for it in spoken.calls]
    assert len({it.call for it in found}) == len(found)
    session = session_of(spoken.records())
    known = {(it.message_id, it.usage) for it in found if it.usage}
    assert {(it.message_id, it.usage) for it in session.turns if it.complete and it.usage} <= known


@TALKS
def test_call_details_contain_the_stored_records(tmp_path: Path, spoken: Talk) -> None:
    records = spoken.records()
    found = calls_of([write(tmp_path, "log", records)])
    for number, (call, captured) in enumerate(zip(found, spoken.calls, strict=True)):
        told = detail(found, number)
        assert told.call == call
        assert (told.request, told.response) == (records[2 * number + 1], records[2 * number + 2])
        if captured.dialect and captured.asked:
            assert told.request_view
            assert told.request_view.model == (captured.asked.get("model") or told.request_view.model)


def test_a_later_call_lists_its_new_messages(tmp_path: Path) -> None:
    found = calls_of([write(tmp_path, "log", CHAIN.records())])
    first, second, third = (detail(found, number) for number in range(3))
    assert first.changes is None
    assert second.changes
    assert third.changes
    assert second.changes.since == found[0].call
    said = [[block.text for it in told.messages for block in it.blocks] for told in (second.changes, third.changes)]
    assert [texts[-1] for texts in said] == ["What was it?", "Again?"]
    assert (second.changes.dropped, second.changes.system, second.changes.tools_added) == (0, None, [])


def test_a_call_is_compared_only_with_the_previous_call_of_its_thread(tmp_path: Path) -> None:
    found = calls_of([write(tmp_path, "log", talk("2.1.325/subagents").records())])
    threads = {it.call: it.thread for it in found}
    for number, call in enumerate(found):
        told = detail(found, number)
        same = [it.call for it in found[:number] if it.thread == call.thread]
        assert (told.changes.since if told.changes else None) == (same[-1] if same else None)
    assert len(set(threads.values())) == 3


def test_side_calls_are_not_compared(tmp_path: Path) -> None:
    found = calls_of([write(tmp_path, "log", talk("2.1.4/resume_chain").records())])
    aside = [number for number, it in enumerate(found) if it.thread == SIDE]
    assert len(aside) > 1
    assert all(detail(found, number).changes is None for number in aside)


def test_a_branch_starts_with_the_calls_of_its_parent(tmp_path: Path) -> None:
    write(tmp_path, "log", [start("log"), *calls(1, 2)])
    branch = write(tmp_path, "log_b1", [start("log_b1"), fork("log", 1), *calls(3)])
    found = calls_of([branch])
    assert [(it.log.stem, it.seq) for it in found] == [("log", 1), ("log_b1", 1)]
    told = detail(found, 1)
    assert told.changes
    assert told.changes.since == "log:1"
    both = calls_of([branch, tmp_path / "log.jsonl"])
    assert sorted((it.log.stem, it.seq) for it in both) == [("log", 1), ("log", 2), ("log_b1", 1)]


def test_a_call_in_flight_has_no_response(tmp_path: Path) -> None:
    found = calls_of([write(tmp_path, "log", CHAIN.records()[:-1])])
    assert [it.complete for it in found] == [True, True, None]
    assert detail(found, 2).response is None


def test_retries_refer_to_the_first_attempt(tmp_path: Path) -> None:
    found = calls_of([write(tmp_path, "log", talk("retry_then_ok").records())])
    again = [it for it in found if it.retry_of]
    assert again
    assert {it.retry_of for it in again} <= {it.seq for it in found if it.status != 200}


def test_a_sealed_log_gives_the_same_calls(tmp_path: Path) -> None:
    path = write(tmp_path, "log", CHAIN.records())
    plain = calls_of([path])
    assert seal(PartFile(tmp_path, "log"))
    assert calls_of([path]) == plain
    assert detail(plain, 1).response


def test_the_catalog_finds_calls_by_session_id_and_unique_call_prefix(tmp_path: Path) -> None:
    folder = tmp_path / "logs"
    start_record, *rest = CHAIN.records()
    named = [replace(it, call=f"019a-{it.seq}") if isinstance(it, Request) else it for it in rest]
    write(folder / "anthropic", "20261115-080000-abcd", [start_record, *named])
    register_log_folder(tmp_path, folder)
    with Catalog.open(tmp_path) as catalog:
        assert CHAIN.client_id
        assert [it.call for it in catalog.calls(CHAIN.client_id)] == ["019a-1", "019a-2", "019a-3"]
        told = catalog.call(CHAIN.client_id, "019a-2")
        assert told
        assert told.call.usage == session_of(CHAIN.records()).turns[1].usage
        assert catalog.call(CHAIN.client_id, "019a-") is None  # may be any
        assert catalog.call(CHAIN.client_id, "nothing") is None
        assert catalog.calls("nothing") == []


# ---------------------------------------------------------------- what changed

SENT: dict[str, Any] = {
    "model": "claude-haiku-4-5",
    "system": [{"type": "text", "text": "Be kind.", "cache_control": {"type": "ephemeral"}}],
    "tools": [{"name": "Read", "description": "reads"}, {"name": "Bash"}],
    "messages": [{"role": "user", "content": [{"type": "text", "text": "hello", "cache_control": {}}]}],
}
MORE = [
    {"role": "assistant", "content": [{"type": "text", "text": "hi"}]},
    {"role": "user", "content": "again"},
]


def told(before: dict[str, Any], after: dict[str, Any], path: str = "/v1/messages") -> Any:
    first, second = (asked_of(sent(it, path), "anthropic") for it in (before, after))
    assert first
    assert second
    return changes(first, second, "x")


def sent(body: dict[str, Any], path: str = "/v1/messages") -> Request:
    return Request(ts="", seq=1, method="POST", path=path, headers={}, body=json.dumps(body), fingerprint=None)


def test_a_moved_cache_control_marker_is_not_a_change() -> None:
    moved = {**SENT, "messages": [{"role": "user", "content": "hello"}, *MORE]}
    found = told(SENT, moved)
    assert (found.unchanged, found.dropped) == (1, 0)
    assert [(it.role, [block.text for block in it.blocks]) for it in found.messages] == [
        ("assistant", ["hi"]),
        ("user", ["again"]),
    ]


def test_rewritten_messages_are_counted_as_dropped_and_new() -> None:
    before = {**SENT, "messages": [*SENT["messages"], *MORE]}
    after = {**SENT, "messages": [*SENT["messages"], {"role": "user", "content": "a summary"}]}
    found = told(before, after)
    assert (found.unchanged, found.dropped, len(found.messages)) == (1, 2, 1)


def test_changes_of_system_prompt_model_and_tools_are_listed() -> None:
    tools = [{"name": "Read", "description": "reads files"}, {"name": "Grep"}]
    found = told(SENT, {**SENT, "system": "Be quick.", "tools": tools, "model": "claude-opus-5-5"})
    assert found.system == Change(before="Be kind.", after="Be quick.")
    assert found.model == Change(before="claude-haiku-4-5", after="claude-opus-5-5")
    assert (found.tools_added, found.tools_removed, found.tools_changed) == (["Grep"], ["Bash"], ["Read"])
    same = told(SENT, SENT)
    assert (same.system, same.model, same.tools_changed, same.messages) == (None, None, [], [])


def test_all_messages_are_new_in_a_request_with_a_previous_response_id() -> None:
    first = {"model": "gpt-5", "input": [{"role": "user", "content": "hello"}]}
    output = {"type": "function_call_output", "call_id": "c", "output": "42"}
    found = told(first, {"model": "gpt-5", "previous_response_id": "resp_1", "input": [output]}, "/v1/responses")
    assert (found.unchanged, found.dropped) == (0, 0)
    assert [(it.role, it.blocks[0].kind, it.blocks[0].text) for it in found.messages] == [
        ("function_call_output", "tool_result", "42")
    ]


@pytest.mark.parametrize("body", ["", "{", "[]", "null", '{"messages": 7}', '{"messages":[[]],"tools":{}}'])
def test_a_malformed_request_body_has_no_unchanged_messages(tmp_path: Path, body: str) -> None:
    odd = replace(sent(SENT), body=body)
    records = [WireStart(ts="", provider="anthropic", upstream="u"), sent(SENT), replace(odd, seq=2)]
    found = calls_of([write(tmp_path, "log", records)])
    told = detail(found, 1)
    assert told.request.body == body
    assert told.changes is None or told.changes.unchanged == 0
