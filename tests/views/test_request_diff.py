"""The difference between two requests: what was added, removed and changed, each once, and without secrets."""

import json
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from agent_logger.catalog.joining.calls import CallDetail, WireCall
from agent_logger.logs.wire_log.requests import asked_of
from agent_logger.model.records import Request
from agent_logger.views.request_diff import RequestDiff, request_diff

KEY = "sk-ant-api03-" + "Qz7" * 20
BODY: dict[str, Any] = {
    "model": "claude-sonnet-4-5",
    "max_tokens": 100,
    "system": "You fix kettles.",
    "tools": [{"name": "Bash", "description": "Runs"}, {"name": "Read", "description": "Reads"}],
    "messages": [{"role": "user", "content": "one"}, {"role": "assistant", "content": "two"}],
}


def call(body: dict[str, Any]) -> CallDetail:
    request = Request(
        log="l", part="p", ts="2026-11-15T08:45:32.000Z", seq=1, method="POST", path="/v1/messages", headers={},
        body=json.dumps(body), fingerprint=None,
    )  # fmt: skip
    wire_call = WireCall(
        call="c", log=Path("l"), seq=1, thread="main", kind=None, started=None, method="POST", path=request.path
    )
    return CallDetail(
        call=wire_call, request=request, response=None, request_view=asked_of(request, "anthropic"), changes=None
    )


def compare(**changes: Any) -> RequestDiff:
    diff = request_diff(call(BODY), call({**BODY, **changes}))
    assert diff
    return diff


def texts(diff: RequestDiff) -> list[str]:
    return [f"{piece.path} {piece.note}" for piece in diff.diffs]


def test_equal_requests_do_not_differ() -> None:
    assert compare() == RequestDiff([], 2)


def test_every_part_of_a_request_is_compared() -> None:
    changed = compare(
        max_tokens=200,
        system="You fix clocks.",
        tools=[{"name": "Bash", "description": "Runs a command"}, {"name": "Edit"}],
    )
    assert texts(changed) == [
        "settings changed",
        "system prompt changed",
        "tool Bash changed",
        "tool Read removed",
        "tool Edit added",
    ]
    assert ["".join((line.sign, line.text)) for line in changed.diffs[1].lines] == [
        "-You fix kettles.",
        "+You fix clocks.",
    ]


def test_a_message_in_the_middle_is_compared_by_itself() -> None:
    one, two = BODY["messages"]
    changed = compare(messages=[one, {"role": "user", "content": "between"}, two])
    assert (texts(changed), changed.unchanged_messages) == (["message 2 (user) added"], 2)
    changed = compare(messages=[two])
    assert (texts(changed), changed.unchanged_messages) == (["message 1 (user) removed"], 1)
    changed = compare(messages=[one, {"role": "assistant", "content": "three"}])
    assert (texts(changed), changed.unchanged_messages) == (["message 2 (assistant) changed"], 1)


def test_marks_of_the_cache_are_no_difference() -> None:
    marked = [
        {"role": "user", "content": [{"type": "text", "text": "one", "cache_control": {"type": "ephemeral"}}]},
        BODY["messages"][1],
    ]
    assert compare(messages=marked).diffs == []


def test_ids_are_compared_where_texts_are_equal() -> None:
    def result(name: str) -> dict[str, Any]:
        return {"role": "user", "content": [{"type": "tool_result", "tool_use_id": name, "content": "ok"}]}

    diff = request_diff(call({**BODY, "messages": [result("a")]}), call({**BODY, "messages": [result("b")]}))
    assert diff
    assert [line.sign for line in diff.diffs[0].lines].count("+") == 1


def test_keys_are_hidden_in_a_comparison() -> None:
    secret = [{"name": "Bash", "description": KEY}]
    diff = compare(system=KEY, tools=secret, user=KEY, messages=[{"role": "user", "content": KEY}])
    assert KEY not in str(diff)
    assert len(diff.diffs) >= 4


def test_a_call_that_asked_no_model_cannot_be_compared() -> None:
    request = CallDetail(
        call=call(BODY).call, request=call(BODY).request, response=None, request_view=None, changes=None
    )
    assert request_diff(request, call(BODY)) is None


messages = st.lists(
    st.fixed_dictionaries({"role": st.sampled_from(["user", "assistant"]), "content": st.sampled_from("abcde")}),
    max_size=8,
)


@settings(deadline=None)
@given(messages, messages)
def test_every_message_is_unchanged_or_in_a_diff(before: list[Any], after: list[Any]) -> None:
    diff = request_diff(call({**BODY, "messages": before}), call({**BODY, "messages": after}))
    assert diff
    notes = [piece.note for piece in diff.diffs]
    assert diff.unchanged_messages + notes.count("added") + notes.count("changed") == len(after)
    assert diff.unchanged_messages + notes.count("removed") + notes.count("changed") == len(before)
