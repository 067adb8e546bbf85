import json
from datetime import datetime
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from agent_logger.formats import sdk_messages
from agent_logger.formats.exchange_log import from_live, session_of
from agent_logger.records import Exchange, LiveMessage, LiveStart, Message, SessionStart
from agent_logger.session import Compaction, ContextFile, Usage

DATA = Path(__file__).parents[1] / "data"
STREAMS = sorted(DATA.glob("claude-cli/*/*/*stream*.stdout")) + sorted(
    DATA.glob("claude-cli/*/tools_stream/*.stdout")
)

START = SessionStart(
    session_id="1f",
    ts="2026-11-15T08:00:00.000Z",
    model="claude-x",
    cwd="/work",
    tools_available=[],
    permission_mode=None,
    witness="sdk",
)


def said(text: str, message_id: str, parent: str | None = None) -> Message:
    usage = msgspec.Raw(b'{"input_tokens":1,"output_tokens":2,"cache_read_input_tokens":3}')
    return Message(
        source="assistant",
        type="text",
        ts="t",
        text=text,
        message_id=message_id,
        usage=usage,
        parent_tool_use_id=parent,
    )


def used(tool: str, message_id: str) -> Message:
    given = msgspec.Raw(b'{"command":"ls"}')
    return Message(
        source="assistant",
        type="tool_use",
        ts="t",
        name="Bash",
        tool_use_id=tool,
        input=given,
        message_id=message_id,
    )


def answered(tool: str, output: str) -> Message:
    return Message(source="tool", type="result", ts="t", tool_use_id=tool, output=output, is_error=False)


def exchange(*messages: Message, start: str = "2026-11-15T08:00:01.000Z", end: str | None = None) -> Exchange:
    return Exchange(
        session_id="1f",
        exchange=1,
        ts_start=start,
        ts_end=end,
        user_input="list files",
        messages=list(messages),
        stats=None,
    )


def test_messages_of_one_response_are_one_turn_and_count_once() -> None:
    session = session_of([START], [exchange(said("a", "m1"), used("t1", "m1"), answered("t1", "poem.md"))])
    [turn] = session.turns
    assert [block.kind for block in turn.blocks] == ["text", "tool_use", "tool_result"]
    assert (session.usage.input_tokens, session.usage.output_tokens) == (1, 2)
    [call] = session.tool_calls
    assert (call.name, call.input, call.result) == ("Bash", {"command": "ls"}, "poem.md")


def test_a_sub_agent_is_a_thread_of_its_own() -> None:
    prompt = Message(source="user", type="text", ts="t", text="look around", parent_tool_use_id="t1")
    inner = said("found it", "m2", parent="t1")
    session = session_of([START], [exchange(used("t1", "m1"), prompt, inner, answered("t1", "found it"))])
    assert session.threads == ["main", "agent:t1"]
    assert len(session.turns) == 2, "a prompt is no turn"


def test_a_compaction_is_told_and_what_was_taken_along() -> None:
    metadata = {"trigger": "auto", "pre_tokens": 9, "post_tokens": 2}
    told = json.dumps({"type": "system", "subtype": "compact_boundary", "compact_metadata": metadata})
    (boundary,) = sdk_messages.entries(sdk_messages.read(told.encode()), "2026-11-15T08:00:02.000Z")
    instructions = b'[{"path":"/w/CLAUDE.md","scope":"folder","bytes":7,"hmac":"h"}]'
    noted = b'{"cwd":"/w","instructions":%b,"settings":[{"path":"/s","hmac":null}]}' % instructions
    session = session_of(
        [replace(START, context=msgspec.Raw(noted))], [exchange(said("a", "m1"), boundary, said("b", "m2"))]
    )
    at = datetime.fromisoformat("2026-11-15T08:00:02.000Z")
    assert session.compactions == [Compaction(at=at, trigger="auto", tokens_before=9, tokens_after=2)]
    assert session.context_files == [
        ContextFile(kind="instructions", path="/w/CLAUDE.md", bytes=7, hmac="h"),
        ContextFile(kind="settings", path="/s"),
    ]


@pytest.mark.parametrize("noted", [b"[]", b'{"instructions":7}', b"null", b"{}"])
def test_what_is_noted_in_another_form_is_nothing(noted: bytes) -> None:
    assert session_of([replace(START, context=msgspec.Raw(noted))], []).context_files == []


def test_a_result_without_a_use_is_kept() -> None:
    session = session_of([START], [exchange(said("a", "m1"), answered("lost", "late"))])
    assert [(call.id, call.name, call.result) for call in session.tool_calls] == [("lost", None, "late")]


def test_a_clock_that_was_set_back_makes_no_negative_duration() -> None:
    back = exchange(start="2026-11-15T08:00:01.000Z", end="2026-11-14T08:00:00.000Z")
    session = session_of([START], [back])
    [it] = session.exchanges
    assert it.started == it.ended
    assert session.started == session.ended


def test_a_log_without_a_beginning_is_still_a_session() -> None:
    session = session_of([], [exchange(said("a", "m1"))])
    assert (session.id, session.title, session.project) == ("1f", "list files", None)


def test_live_messages_without_their_beginning_are_an_exchange_too() -> None:
    message = LiveMessage(id="x", message=said("a", "m1"))
    start = LiveStart(id="y", session_id="1f", exchange=3, ts_start="t", user_input="go")
    found = {it.id: it for it in from_live([message, start])}
    assert (found["x"].exchange, len(found["x"].messages)) == (0, 1)
    assert (found["y"].exchange, found["y"].user_input, found["y"].messages) == (3, "go", [])


@pytest.mark.parametrize("path", STREAMS, ids=lambda it: "-".join(it.parts[-3:]))
def test_what_real_clients_print_is_read(path: Path) -> None:
    lines = [json.loads(line) for line in path.read_text().splitlines() if line.startswith("{")]
    messages = [sdk_messages.read(json.dumps(line).encode()) for line in lines]
    entries = [entry for message in messages for entry in sdk_messages.entries(message, "t")]
    uses = [it for it in entries if it.type == "tool_use"]
    raw_uses = sum(
        block.get("type") == "tool_use"
        for line in lines
        if line["type"] == "assistant"
        for block in line["message"]["content"]
    )
    assert len(uses) == raw_uses


def test_there_are_real_streams_to_read() -> None:
    assert len(STREAMS) > 3


def test_what_goes_into_the_cache_for_an_hour_is_told_and_costs_more() -> None:
    tokens = b'"input_tokens":10,"output_tokens":20,"cache_creation_input_tokens":1000'
    split = b'"cache_creation":{"ephemeral_5m_input_tokens":400,"ephemeral_1h_input_tokens":600}'
    usages = [b"{%s}" % tokens, b"{%s,%s,%s}" % (tokens, split, b'"service_tier":"standard"')]
    messages = [
        Message(
            source="assistant",
            type="text",
            ts="2026-11-15T08:00:02.000Z",
            text="x",
            message_id=f"msg_{number}",
            model="claude-haiku-4-5",
            usage=msgspec.Raw(usage),
        )
        for number, usage in enumerate(usages)
    ]
    session = session_of([START], [exchange(*messages)])
    plain, hour = session.turns
    assert plain.usage == Usage(input_tokens=10, output_tokens=20, cache_write_tokens=1000)
    assert hour.usage == replace(plain.usage, cache_write_1h_tokens=600)
    assert (plain.service_tier, hour.service_tier) == (None, "standard")
    # $1, $5, and for the cache $1.25 and $2 a million
    assert plain.cost and plain.cost.nano_usd == 10 * 1000 + 20 * 5000 + 1000 * 1250
    assert hour.cost and hour.cost.nano_usd == 10 * 1000 + 20 * 5000 + 400 * 1250 + 600 * 2000
    assert session.cost.nano_usd == plain.cost.nano_usd + hour.cost.nano_usd
