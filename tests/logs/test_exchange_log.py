import json
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from agent_logger.catalog.ledger.ledger import Ledger
from agent_logger.catalog.ledger.session_responses import responses_of_session
from agent_logger.journal.live_exchanges import from_live
from agent_logger.logs.exchange_log import session_of
from agent_logger.messages import entries as sdk_entries
from agent_logger.messages import sdk
from agent_logger.model.records import (
    ExchangeRecord,
    ExchangeStats,
    Exit,
    LiveMessage,
    LiveStart,
    Message,
    SessionStart,
)
from agent_logger.model.session import Compaction, ContextFile, Turn, Usage

DATA = Path(__file__).parents[1] / "data"
STREAMS = sorted(DATA.glob("claude-cli/*/*/*stream*.stdout")) + sorted(DATA.glob("claude-cli/*/tools_stream/*.stdout"))

MESSAGE = "msg_01AbCdEfGhIjKlMnOpQrStUv"
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


def exchange(*messages: Message, start: str = "2026-11-15T08:00:01.000Z", end: str | None = None) -> ExchangeRecord:
    return ExchangeRecord(
        session_id="1f",
        exchange=1,
        ts_start=start,
        ts_end=end,
        user_input="list files",
        messages=list(messages),
        stats=None,
    )


def test_messages_of_one_response_form_one_turn_counted_once() -> None:
    session = session_of([START], [exchange(said("a", "m1"), used("t1", "m1"), answered("t1", "poem.md"))])
    [turn] = session.turns
    assert [block.kind for block in turn.blocks] == ["text", "tool_use", "tool_result"]
    assert (session.usage.input_tokens, session.usage.output_tokens) == (1, 2)
    [call] = session.tool_calls
    assert (call.name, call.input, call.result) == ("Bash", {"command": "ls"}, "poem.md")


HAIKU = "claude-haiku-4-5"


def counted(output: int, given: int = 1, read: int = 3) -> dict[str, int]:
    return {
        "inputTokens": given,
        "outputTokens": output,
        "cacheReadInputTokens": read,
        "contextWindow": 200_000,
    }


def told(*messages: Message, models: dict[str, Any] | None = None, out: int | None = None) -> list[Turn]:
    """The turns of an exchange whose result has these counters."""
    known: dict[str, Any] = dict.fromkeys(["num_turns", "duration_ms", "duration_api_ms", "tokens_in", "cost_usd"])
    stats = ExchangeStats(
        **known,
        tokens_out=out,
        cache_creation=None,
        cache_read=None,
        stop_reason="end_turn",
        model_usage=msgspec.Raw(json.dumps(models).encode()) if models is not None else msgspec.UNSET,
    )
    messages = tuple(replace(it, model=it.model or HAIKU) for it in messages)
    return session_of([START], [replace(exchange(*messages), stats=stats)]).turns


def outputs(turns: list[Turn]) -> list[tuple[int, bool]]:
    return [(it.usage.output_tokens, it.is_final) for it in turns if it.usage]


ONE, TWO = said("a", "m1"), said("b", "m2")
ENDED = replace(TWO, stop_reason="tool_use", usage=msgspec.Raw(b'{"input_tokens":1,"output_tokens":40}'))
OTHER = replace(TWO, model="claude-opus-4-5")
COUNTERS = [
    pytest.param(told(ONE), [(2, False)], id="nobody says more"),
    pytest.param(told(ONE, models={HAIKU: counted(90)}), [(90, True)], id="one alone is told exactly"),
    pytest.param(told(ONE, models={f"{HAIKU}-20251001": counted(90)}), [(90, True)], id="by another name"),
    pytest.param(told(ONE, models={HAIKU: counted(90, given=8)}), [(2, False)], id="others were counted too"),
    pytest.param(told(ONE, TWO, models={HAIKU: counted(90, 2, 6)}), [(2, False), (2, False)], id="the sum of two"),
    pytest.param(told(ONE, ENDED, models={HAIKU: counted(90, 2)}), [(50, False), (40, True)], id="what ended stays"),
    pytest.param(
        told(ONE, OTHER, models={HAIKU: counted(90), "claude-opus-4-5": counted(7)}),
        [(90, True), (7, True)],
        id="by model",
    ),
    pytest.param(told(ONE, models={HAIKU: counted(1)}), [(2, True)], id="never less than was told"),
    pytest.param(told(ONE, models={HAIKU: "much"}), [(2, False)], id="counters that are none"),
    pytest.param(told(ONE, out=33), [(33, True)], id="an older client, of the main thread"),
    pytest.param(told(said("x", "m3", parent="t1"), ONE, out=33), [(2, False), (33, True)], id="not of a sub-agent"),
    pytest.param(told(replace(ONE, usage=msgspec.UNSET), out=33), [], id="a client that does not count"),
]


@pytest.mark.parametrize(("turns", "wanted"), COUNTERS)
def test_output_tokens_of_a_response_come_from_the_result_counters(
    turns: list[Turn], wanted: list[tuple[int, bool]]
) -> None:
    assert outputs(turns) == wanted


def test_usage_comes_from_the_line_with_a_stop_reason() -> None:
    first = replace(ENDED, stop_reason=None, usage=msgspec.Raw(b'{"output_tokens":1}'))
    for lines in ([first, ENDED], [ENDED, first]):
        assert outputs(told(*lines)) == [(40, True)]


def test_the_ledger_prefers_final_usage_over_partial_usage() -> None:
    early = session_of([START], [exchange(replace(said("a", MESSAGE), model=HAIKU))])
    [turn] = early.turns
    cut = replace(turn, usage=Usage(output_tokens=1), witnesses=frozenset({"transcript"}))
    ledger = Ledger()
    for it in (early, replace(early, exchanges=[replace(early.exchanges[0], turns=[cut])])):
        ledger.add(responses_of_session(it))
    [row] = ledger.rows()
    assert (row.usage, row.partial, row.copies) == (Usage(output_tokens=1), False, 2)


def test_a_sub_agent_has_its_own_thread() -> None:
    prompt = Message(source="user", type="text", ts="t", text="look around", parent_tool_use_id="t1")
    inner = said("found it", "m2", parent="t1")
    session = session_of([START], [exchange(used("t1", "m1"), prompt, inner, answered("t1", "found it"))])
    assert session.threads == ["main", "agent:t1"]
    assert len(session.turns) == 2, "a prompt is no turn"


def test_compactions_and_context_files_are_read() -> None:
    metadata = {"trigger": "auto", "pre_tokens": 9, "post_tokens": 2}
    told = json.dumps({"type": "system", "subtype": "compact_boundary", "compact_metadata": metadata})
    (boundary,) = sdk_entries.entries(sdk.read(told.encode()), "2026-11-15T08:00:02.000Z")
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
def test_a_malformed_context_note_is_ignored(noted: bytes) -> None:
    assert session_of([replace(START, context=msgspec.Raw(noted))], []).context_files == []


def test_a_tool_result_without_a_tool_use_is_listed() -> None:
    session = session_of([START], [exchange(said("a", "m1"), answered("lost", "late"))])
    assert [(call.id, call.name, call.result) for call in session.tool_calls] == [("lost", None, "late")]


def test_setting_the_clock_back_gives_no_negative_duration() -> None:
    back = exchange(start="2026-11-15T08:00:01.000Z", end="2026-11-14T08:00:00.000Z")
    session = session_of([START], [back])
    [it] = session.exchanges
    assert it.started == it.ended
    assert session.started == session.ended


def test_a_log_without_a_session_start_is_still_a_session() -> None:
    session = session_of([], [exchange(said("a", "m1"))])
    assert (session.id, session.title, session.project) == ("1f", "list files", None)


def test_live_messages_without_a_live_start_form_an_exchange() -> None:
    message = LiveMessage(id="x", message=said("a", "m1"))
    start = LiveStart(id="y", session_id="1f", exchange=3, ts_start="t", user_input="go")
    found = {it.id: it for it in from_live([message, start])}
    assert (found["x"].exchange, len(found["x"].messages)) == (0, 1)
    assert (found["y"].exchange, found["y"].user_input, found["y"].messages) == (3, "go", [])


@pytest.mark.parametrize("path", STREAMS, ids=lambda it: "-".join(it.parts[-3:]))
def test_every_tool_use_in_real_client_streams_is_read(path: Path) -> None:
    lines = [json.loads(line) for line in path.read_text().splitlines() if line.startswith("{")]
    messages = [sdk.read(json.dumps(line).encode()) for line in lines]
    entries = [entry for message in messages for entry in sdk_entries.entries(message, "t")]
    uses = [it for it in entries if it.type == "tool_use"]
    raw_uses = sum(
        block.get("type") == "tool_use"
        for line in lines
        if line["type"] == "assistant"
        for block in line["message"]["content"]
    )
    assert len(uses) == raw_uses


def test_sample_streams_of_real_clients_exist() -> None:
    assert len(STREAMS) > 3


def test_one_hour_cache_writes_are_reported_and_cost_more() -> None:
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


def test_a_malformed_block_does_not_lose_the_rest_of_the_message() -> None:
    odd = {"type": "tool_use", "id": 5, "name": ["x"]}
    blocks = [{"type": "text", "text": "one"}, odd, {"type": "text", "text": "two"}]
    said = {"type": "assistant", "session_id": "s", "message": {"id": "m", "model": "x", "content": blocks}}
    told = list(sdk_entries.entries(sdk.read(json.dumps(said).encode()), "t"))
    assert [(it.type, it.plain_text, it.message_id) for it in told] == [
        ("text", "one", "m"),
        ("unknown", "", "m"),
        ("text", "two", "m"),
    ]
    assert json.loads(bytes(told[1].content or b"")) == odd


@pytest.mark.parametrize("field", ["origin", "error", "isReplay", "message"])
def test_a_malformed_field_does_not_hide_the_other_fields(field: str) -> None:
    said = {"type": "user", "session_id": "s", "uuid": "u", "tool_use_result": {"x": 1}, field: ["odd"]}
    found = sdk.read(json.dumps(said).encode())
    assert (found.type, found.session_id, found.uuid, found.is_replay) == ("user", "s", "u", False)


@pytest.mark.parametrize(
    ("text", "is_prompt"),
    [
        ("Again?", True),
        ("What does <local-command-stdout> mean?", True),
        ("", True),
        ("<local-command-stdout>Compacted </local-command-stdout>", False),
        ("<command-name>/cost</command-name>", False),
    ],
)
def test_client_command_output_is_not_user_input(text: str, is_prompt: bool) -> None:
    message = {"role": "user", "content": text}
    said = {"type": "user", "session_id": "s", "uuid": "u", "isReplay": True, "message": message}
    assert sdk.read(json.dumps(said).encode()).prompt == (text if is_prompt else None)


@pytest.mark.parametrize(("status", "count"), [(0, 1), (1, 2)])
def test_a_note_of_the_session_after_a_result_is_no_exchange(status: int, count: int) -> None:
    """Unless it has the exit of a run that failed."""
    note = Message(source="system", type="session_requests", ts="t")
    noted = msgspec.structs.replace(exchange(note), exchange=2, user_input=None, exit=Exit(status=status, signal=None))
    session = session_of([START], [exchange(said("Here.", MESSAGE)), noted])
    assert len(session.exchanges) == count
