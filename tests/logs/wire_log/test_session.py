"""Wire logs become sessions: the calls of real clients, and of logs that nobody should have written."""

import base64
import gzip
import json
from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace as changed

from agent_logger.logs.wire_log.session import session_of
from agent_logger.model.records import Chunk, Fork, Identity, Record, Request, Response, Rewrite, Timing, WireStart
from agent_logger.model.session import Exchange, Session, ToolCall, Usage
from tests.logs.wire_log.wire_records import Talk, request, response, shuffled, talk, talks, thread, ts
from tests.providers.captures import Capture

TALKS = pytest.mark.parametrize("spoken", [pytest.param(it, id=f"{it.name} {it.client_id or ''}") for it in talks()])
START = WireStart(ts=ts(0), provider="anthropic", upstream="api.anthropic.com", session="log")


def inputs(session: Session) -> list[str | None]:
    return [it.user_input for it in session.exchanges]


def ends(session: Session) -> list[str | None]:
    return [it.end_reason for it in session.exchanges]


# ---------------------------------------------------------------- real clients


def true_usage(calls: Iterable[Capture]) -> dict[str, int]:
    """Of the complete responses, in the words of any provider. Tokens that were not cached are not told by all."""
    told = [it.truth["usage"] for it in calls if it.truth["complete"] and it.truth["usage"]]

    def total(*names: str) -> int:
        return sum(it.get(name, 0) for it in told for name in names)

    return {
        "read": total("input_tokens", "prompt_tokens", "promptTokenCount")
        + total("cache_creation_input_tokens", "cache_read_input_tokens"),
        "written": total("cache_creation_input_tokens"),
        "output": total("output_tokens", "completion_tokens", "candidatesTokenCount"),
    }


def usage_of_complete(session: Session) -> dict[str, int]:
    usage = sum((it.usage for it in session.turns if it.complete and it.usage), Usage())
    return {
        "read": usage.context_tokens,
        "written": usage.cache_write_tokens,
        "output": usage.output_tokens,
    }


def scripted_tools(call: Capture) -> list[tuple[str, Any]]:
    blocks = (call.turn or {}).get("content") or []
    answered = call.truth["status"] == 200 and call.truth["complete"]
    return [(it["name"], it["input"]) for it in blocks if it["type"] == "tool_use" and answered]


@TALKS
@pytest.mark.parametrize("rejoined", [True, False], ids=["rejoined", "older"])
def test_session_usage_matches_the_capture_manifest(spoken: Talk, rejoined: bool) -> None:
    session = session_of(spoken.records(rejoined=rejoined))
    assert usage_of_complete(session) == true_usage(spoken.calls)
    if all(it.complete or it.usage is None for it in session.turns):
        assert session.usage == sum((it.usage for it in session.turns if it.usage), Usage())


@TALKS
@pytest.mark.parametrize("rejoined", [True, False], ids=["rejoined", "older"])
def test_tool_calls_match_the_scripted_scenario(spoken: Talk, rejoined: bool) -> None:
    session = session_of(spoken.records(rejoined=rejoined))
    used = [(it.name, it.input) for turn in session.turns if turn.complete for it in turn.tool_calls]
    sides = [call for call in spoken.calls if thread(call) == "side"]
    others = [call for call in spoken.calls if thread(call) != "side"]
    assert used == [tool for call in (*others, *sides) for tool in scripted_tools(call)]


@TALKS
def test_every_tool_call_before_the_last_turn_has_a_result(spoken: Talk) -> None:
    session = session_of(spoken.records())
    for name in session.threads:
        turns = [it for it in session.turns if it.thread == name and it.complete]
        assert all(it.result for turn in turns[:-1] for it in turn.tool_calls)


@TALKS
def test_each_turn_matches_its_response(spoken: Talk) -> None:
    session = session_of(spoken.records())
    answered = [it for it in spoken.calls if it.truth["status"] == 200 and it.dialect]
    read = sorted(it.request_id or "" for it in session.turns)
    numbers = [number for number, it in enumerate(spoken.calls, 1) if it in answered]
    assert read == sorted(f"req_{number}" for number in numbers)
    for turn in session.turns:
        call = spoken.calls[int((turn.request_id or "").removeprefix("req_")) - 1]
        assert (turn.thread, turn.complete) == (thread(call), call.truth["complete"])
        assert turn.message_id
        assert turn.message_id in call.body.decode()
        assert turn.witnesses == {"wire"}
        assert turn.started
        assert turn.ended
        assert turn.started < turn.ended


@TALKS
def test_concurrent_calls_are_kept_apart(spoken: Talk) -> None:
    """All but the tool results, which in truth come behind the answer that asks for them."""
    apart, at_once = session_of(spoken.records()), session_of(shuffled(spoken.records()))
    assert [it.request_id for it in at_once.turns] == [it.request_id for it in apart.turns]
    assert at_once.usage == apart.usage


EXCHANGES = [
    ("claude-cli/2.1.325/multi_input_replay", ["Remember BANANA", "What was it?", "Again?"]),
    ("claude-cli/2.1.325/multi_input_queued", ["Remember BANANA", "What was it?\nAgain?"]),
    ("claude-cli/2.1.325/compact_and_slash", ["Remember BANANA", "Again", "After compact"]),
    (
        "claude-cli/2.1.325/interactive_tui",
        ["Write a tiny poem to poem.md and check it", "thanks, what next?"],
    ),
    ("claude-cli/2.1.325/subagents", ["Delegate to two agents"]),
    ("claude-cli/2.1.325/api_error_400", ["Say hello"]),
    ("claude-cli/2.1.4/tools_stream", ["Write a tiny poem to poem.md and check it"]),
    ("claude-cli/1.0.3/resume_chain", ["Remember BANANA", "What was it?", "Again?", "Again?"]),
    ("claude-agent-sdk/0.2.182/interrupt", ["Write half.txt and explain", "Carry on"]),
    ("codex/0.166.0/exec_resume", ["Create note.txt", "And now?", "Third?"]),
    ("gemini-cli/0.61.0/exec_resume", ["List the directory", "Again"]),
    ("opencode/1.18.33/run_openai_compatible", ['"Write oc.txt"', '"And then?"']),
    ("opencode/1.18.33/run_anthropic", ['"Write oc.txt"', '"And then?"']),
]


@pytest.mark.parametrize(("name", "prompts"), EXCHANGES, ids=[name for name, _ in EXCHANGES])
def test_an_exchange_starts_with_the_user_prompt(name: str, prompts: list[str]) -> None:
    session = session_of(talk(name).records())
    assert inputs(session) == prompts
    assert [it.number for it in session.exchanges] == list(range(1, len(prompts) + 1))
    assert session.title == prompts[0]


def test_session_metadata_comes_from_the_client() -> None:
    session = session_of(talk("2.1.325/tools_stream").records())
    assert session.id == talk("2.1.325/tools_stream").client_id
    assert (session.agent, session.parent) == ("claude-cli", None)
    assert session.witnesses == {"wire"}
    assert [str(it) for it in (session.started, session.ended)] == [
        "2026-11-15 08:00:00+00:00",
        "2026-11-15 08:00:04.500000+00:00",
    ]
    assert session.files == ["/home/user/project/poem.md"]


def test_sub_agent_turns_belong_to_the_exchange_that_started_them() -> None:
    session = session_of(talk("2.1.325/subagents").records())
    [exchange] = session.exchanges
    assert [it.thread.partition(":")[0] for it in exchange.turns] == ["main", *["agent"] * 4, "main"]
    assert len(session.threads) == 3
    delegated = [it for it in session.tool_calls if it.kind == "agent"]
    assert [(it.thread, "Subagent hand-back" in (it.result or "")) for it in delegated] == [("main", True)] * 2
    assert {it.thread for it in session.tool_calls if it.kind != "agent"} == set(session.threads) - {"main"}


def test_side_calls_belong_to_no_exchange() -> None:
    session = session_of(talk("2.1.4/tools_stream").records())
    assert [len(it.turns) for it in session.exchanges] == [4]
    assert {it.thread for it in session.side_turns} == {"side"}
    assert len(session.side_turns) == 4


def test_a_tool_call_lasts_from_the_response_to_the_next_request() -> None:
    call = session_of(talk("2.1.325/tools_stream").records()).tool_calls[0]
    assert str(call.started)[17:] == "01.500000+00:00"
    assert str(call.ended)[17:] == "02+00:00"


def test_a_failed_tool_call_is_marked_as_an_error() -> None:
    calls = session_of(talk("2.1.325/tools_stream").records()).tool_calls
    assert [(it.name, it.is_error) for it in calls] == [
        ("Write", False),
        ("Read", False),
        ("Bash", False),
        ("Bash", True),
    ]


def test_gemini_tool_calls_without_ids_get_their_results_once() -> None:
    [call] = session_of(talk("gemini-cli/0.61.0/exec_resume").records()).tool_calls
    assert (call.name, call.result) == ("list_directory", "Directory /home/user/project is empty.")


# ---------------------------------------------------------------- attempts that came to nothing


def test_a_retried_cut_attempt_counts_the_usage_reported_before_the_cut() -> None:
    """As the client counts it: its result says $0.002."""
    session = session_of(talk("disconnect_midstream").records())
    [exchange] = session.exchanges
    assert [(it.complete, it.usage is None) for it in exchange.turns] == [(False, False), (True, False)]
    assert session.usage == Usage(input_tokens=20, output_tokens=26, cache_read_tokens=2000, cache_write_tokens=200)
    assert session.cost.usd == 0.002
    assert (exchange.complete, exchange.end_reason) == (True, "result")


def test_a_turn_ended_by_an_error_event_is_incomplete_and_not_billed() -> None:
    """As the client counts it: its result says $0.00124."""
    session = session_of(talk("sse_error_event").records())
    assert [(it.complete, it.error, it.is_billed) for it in session.turns] == [
        (False, "overloaded_error", False),
        (True, None, True),
    ]
    assert session.usage.output_tokens == 25
    assert session.cost.usd == 0.00124


def test_a_cut_turn_without_usage_is_billed_at_an_unknown_cost() -> None:
    talking = Conversation()
    talking.ask(text("hello"))
    talking.answer(text("h"), stop=None, usage=msgspec.UNSET, complete=False, reason="client_gone")
    [turn] = talking.session.turns
    assert (turn.complete, turn.usage, turn.is_billed) == (False, None, True)
    assert turn.cost and (turn.cost.nano_usd, turn.cost.reason) == (None, "no usage")
    talking.ask(retry_of=1)
    talking.answer(text("hi"))
    assert [it.is_billed for it in talking.session.turns] == [True, True]
    assert talking.session.cost.unpriced == 2  # the second has a usage, and no price


def test_a_response_cut_before_any_content_is_a_turn() -> None:
    talking = Conversation()
    talking.ask(text("hello"))
    talking.answer(stop=None, usage=msgspec.UNSET, complete=False, reason="client_gone")
    [turn] = talking.session.turns
    assert (turn.complete, list(turn.blocks), turn.is_billed) == (False, [], True)


def test_attempts_without_a_message_are_not_turns() -> None:
    session = session_of(talk("retry_then_ok").records())
    assert [len(it.turns) for it in session.exchanges] == [1]
    failed = session_of(talk("2.1.325/api_error_529").records())
    assert [(it.turns, it.complete, it.end_reason) for it in failed.exchanges] == [([], False, "failed")]


def test_retries_without_a_retry_link_are_one_exchange() -> None:
    records = [changed(it, retry_of=None) if isinstance(it, Request) else it for it in talk("api_error_400").records()]
    assert inputs(session_of(records)) == ["Say hello"]


def test_a_cut_attempt_without_a_retry_counts_its_reported_usage() -> None:
    session = session_of(talk("sigint").records())
    assert [it.complete for it in session.turns] == [True, False]
    assert session.usage.output_tokens == 21
    assert ends(session) == ["cut"]


# ---------------------------------------------------------------- a conversation of our own


class Conversation:
    """The records of a log of Anthropic's API, call by call."""

    def __init__(self) -> None:
        self.records: list[Record] = [START]
        self.messages: list[dict[str, Any]] = []
        self.seq = 0

    def ask(self, *content: Any, thread: str = "main", **more: Any) -> Request:
        if content:
            self.messages.append({"role": "user", "content": list(content)})
        self.seq += 1
        body = more.pop("body", json.dumps({"model": "claude-x", "messages": self.messages}))
        asked = Request(
            ts=ts(self.seq),
            seq=self.seq,
            method="POST",
            path="/v1/messages",
            headers=more.pop("headers", {}),
            body=body,
            fingerprint=None,
            thread=thread,
            kind=more.pop("kind", "main"),
            **more,
        )
        self.records.append(asked)
        return asked

    def answer(self, *content: Any, seq: int = 0, stop: str | None = "end_turn", **more: Any) -> Response:
        message = {
            "type": "message",
            "id": f"msg_{self.seq:020}",
            "role": "assistant",
            "content": list(content),
        }
        usage = {"input_tokens": 1, "output_tokens": 10}
        known: dict[str, Any] = {
            "message": raw(message),
            "message_id": message["id"],
            "model": "claude-x",
            "stop_reason": stop,
            "usage": raw(usage),
            "complete": True,
            "headers": {},
        }
        told = Response(
            ts=ts(self.seq + 0.5),
            seq=seq or self.seq,
            status=200,
            timing=Timing(ttfb_ms=1, total_ms=2),
            **known | more,
        )
        self.records.append(told)
        self.messages.append({"role": "assistant", "content": list(content)})
        return told

    @property
    def session(self) -> Session:
        return session_of(self.records)


def raw(value: Any) -> msgspec.Raw:
    return msgspec.Raw(msgspec.json.encode(value))


def text(said: str) -> dict[str, Any]:
    return {"type": "text", "text": said}


def used(key: str, name: str = "Bash", **given: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": key, "name": name, "input": given}


def came(key: str, content: Any, **more: Any) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": key, "content": content, **more}


def last(session: Session) -> Exchange:
    return session.exchanges[-1]


def test_a_request_without_a_response_is_in_flight() -> None:
    talking = Conversation()
    talking.ask(text("hello"))
    session = talking.session
    assert [(it.user_input, it.complete, it.end_reason) for it in session.exchanges] == [("hello", False, None)]
    assert session.turns == []
    talking.answer(text("hi"))
    assert [(it.complete, it.end_reason) for it in talking.session.exchanges] == [(True, "result")]


def test_an_exchange_is_incomplete_while_a_tool_runs() -> None:
    talking = Conversation()
    talking.ask(text("list"))
    talking.answer(used("t1"), stop="tool_use")
    assert (last(talking.session).complete, last(talking.session).end_reason) == (False, None)
    talking.ask(came("t1", "a.txt"))
    talking.answer(text("one file"))
    assert (last(talking.session).complete, len(talking.session.exchanges)) == (True, 1)


def test_an_exchange_interrupted_by_the_next_input_is_incomplete() -> None:
    talking = Conversation()
    talking.ask(text("list"))
    talking.answer(used("t1"), stop="tool_use")
    talking.ask(came("t1", "rejected", is_error=True), text("[Request interrupted by user for tool use]"), text("no"))
    talking.answer(text("sorry"))
    session = talking.session
    assert (inputs(session), ends(session)) == (["list", "no"], ["input", "result"])
    assert [(it.result, it.is_error) for it in session.tool_calls] == [("rejected", True)]


BESIDE = [
    "<system-reminder>\nbe kind\n</system-reminder>",
    "<local-command-stdout>ok</local-command-stdout>",
    "Base directory for this skill: /x",
    "This session is being continued from a previous conversation that ran out of context.",
]


@pytest.mark.parametrize("beside", BESIDE)
def test_client_generated_texts_start_no_exchange(beside: str) -> None:
    talking = Conversation()
    talking.ask(text("list"))
    talking.answer(used("t1"), stop="tool_use")
    talking.ask(came("t1", "a.txt"))
    talking.messages.append({"role": "user", "content": [text(beside)]})
    talking.ask()
    assert inputs(talking.session) == ["list"]


def test_texts_beside_a_tool_result_start_no_exchange() -> None:
    talking = Conversation()
    talking.ask(text("list"))
    talking.answer(used("t1"), stop="tool_use")
    talking.ask(came("t1", "a.txt"), text("how to use the skill"))
    assert inputs(talking.session) == ["list"]


def test_input_typed_while_a_tool_runs_starts_no_exchange() -> None:
    talking = Conversation()
    talking.ask(text("list"))
    talking.answer(used("t1"), stop="tool_use")
    talking.messages.append({"role": "user", "content": [text("be quick")]})
    talking.ask(came("t1", "a.txt"))
    assert inputs(talking.session) == ["list"]


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("compact", "Summarise all of this."),
        (None, "CRITICAL: Respond with TEXT ONLY."),
        (None, "You are performing a CONTEXT CHECKPOINT COMPACTION. Create a handoff summary."),
    ],
)
def test_a_compaction_request_starts_no_exchange(kind: str | None, said: str) -> None:
    talking = Conversation()
    talking.ask(text("list"))
    talking.answer(text("done"))
    talking.ask(text("list"), text(said), kind=kind)
    talking.answer(text("a summary"))
    assert inputs(talking.session) == ["list"]


def test_a_repeated_tool_result_is_listed_once() -> None:
    talking = Conversation()
    talking.ask(text("list"))
    talking.answer(used("t1"), stop="tool_use")
    talking.ask(came("t1", "a.txt"))
    talking.ask()
    assert [it.kind for it in talking.session.turns[0].blocks] == ["tool_use", "tool_result"]


def test_a_reminder_tag_inside_the_user_text_is_preserved() -> None:
    talking = Conversation()
    talking.ask(text("<system-reminder>x</system-reminder>what is a <system-reminder> for?"))
    assert inputs(talking.session) == ["what is a <system-reminder> for?"]


def test_an_image_without_text_is_a_user_input() -> None:
    talking = Conversation()
    talking.ask({"type": "image", "source": {"type": "base64", "data": "AA=="}})
    assert inputs(talking.session) == ["[image]"]


def test_a_resent_history_adds_no_turns_or_usage() -> None:
    talking = Conversation()
    talking.ask(text("list"))
    talking.answer(used("t1"), stop="tool_use")
    talking.ask(came("t1", "a.txt"))
    talking.answer(text("done"))
    for number in range(3):
        talking.ask(text(f"more {number}"))
        talking.answer(text("done"))
    session = talking.session
    assert [(it.name, it.result) for it in session.tool_calls] == [("Bash", "a.txt")]
    assert session.usage.output_tokens == 50
    assert [len(it.turns) for it in session.exchanges] == [2, 1, 1, 1]


def test_tool_calls_with_a_reused_id_each_get_their_own_result() -> None:
    talking = Conversation()
    talking.ask(text("list"))
    for number in range(3):
        talking.answer(used("call_0"), stop="tool_use")
        talking.ask(came("call_0", f"{number}"))
    assert [it.result for it in talking.session.tool_calls] == ["0", "1", "2"]


def test_a_tool_result_before_a_synthetic_assistant_message_is_found() -> None:
    """Claude Code does so when it goes on with a session that was killed while a tool ran."""
    talking = Conversation()
    talking.ask(text("list"))
    talking.answer(used("t1"), stop="tool_use")
    talking.messages.append({"role": "user", "content": [came("t1", "killed", is_error=True)]})
    talking.messages.append({"role": "assistant", "content": [text("No response requested.")]})
    talking.ask(text("go on"))
    session = talking.session
    assert inputs(session) == ["list", "go on"]
    assert [it.result for it in session.tool_calls] == ["killed"]


def test_an_exchange_continues_after_a_history_rewrite() -> None:
    talking = Conversation()
    talking.ask(text("list"))
    talking.answer(used("t1"), stop="tool_use")
    talking.ask(text("CRITICAL: Respond with TEXT ONLY. Summarise."), kind="compact")
    talking.answer(text("a summary"))
    talking.messages = [{"role": "user", "content": [text(BESIDE[3])]}]
    talking.records.append(Rewrite(ts=ts(3), seq=3, reason="compaction"))
    talking.ask()
    talking.answer(text("done"))
    session = talking.session
    assert inputs(session) == ["list"]
    assert [len(it.turns) for it in session.exchanges] == [3]
    assert last(session).complete
    assert session.usage.output_tokens == 30
    assert [it.at for it in session.compactions] == [datetime.fromisoformat(ts(3))]


def test_a_log_that_starts_within_an_exchange_takes_its_input_from_the_history() -> None:
    talking = Conversation()
    talking.messages = [
        {"role": "user", "content": "list"},
        {"role": "assistant", "content": [used("t0")]},
    ]
    talking.ask(came("t0", "a.txt"))
    talking.answer(text("one file"))
    assert inputs(talking.session) == ["list"]


def test_server_side_tools_have_their_results_in_the_response() -> None:
    talking = Conversation()
    talking.ask(text("search"))
    searched = {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"query": "x"}}
    found = {
        "type": "web_search_tool_result",
        "tool_use_id": "s1",
        "content": [{"type": "web_search_result"}],
    }
    talking.answer(searched, found, text("found"))
    [call] = talking.session.tool_calls
    assert (call.name, call.result) == ("web_search", "")
    assert last(talking.session).complete


def test_unknown_blocks_are_preserved() -> None:
    talking = Conversation()
    talking.ask(text("draw"))
    talking.answer({"type": "hologram", "data": 1}, {"type": "thinking", "thinking": "hm"})
    first, second = last(talking.session).turns[0].blocks
    assert (first.kind, first.raw) == ("other", {"type": "hologram", "data": 1})
    assert (second.kind, second.text) == ("thinking", "hm")


def test_compressed_bodies_are_read() -> None:
    talking = Conversation()
    body = gzip.compress(json.dumps({"messages": [{"role": "user", "content": "hello"}]}).encode())
    talking.ask(body=base64.b64encode(body).decode(), body_encoding="base64", headers={"Content-Encoding": "gzip"})
    message = {"type": "message", "content": [text("hi")], "stop_reason": "end_turn"}
    packed = gzip.compress(json.dumps(message).encode())
    talking.answer(
        message=msgspec.UNSET,
        body=base64.b64encode(packed).decode(),
        body_encoding="base64",
        headers={"content-encoding": "gzip"},
    )
    [exchange] = talking.session.exchanges
    assert (exchange.user_input, exchange.turns[0].blocks[0].text) == ("hello", "hi")


def test_a_recoded_body_is_not_decoded_again() -> None:
    talking = Conversation()
    talking.ask(text("hello"), headers={"content-encoding": "gzip"}, recoded=True)
    assert inputs(talking.session) == ["hello"]


def test_websocket_messages_are_read_as_stream_events() -> None:
    capture = next(it for it in talk("codex/0.166.0/exec_resume").calls)
    events = [line.removeprefix("data: ") for line in capture.body.decode().split("\n") if line.startswith("data:")]
    asked = request(capture, 1, transport="websocket")
    told = response(capture, 1, rejoined=False, chunks=[Chunk(delta_ms=0, raw=event) for event in events])
    session = session_of([asked, told])
    assert [it.name for it in session.tool_calls] == ["exec_command"]
    assert session.turns[0].complete


def test_responses_with_a_reused_message_id_count_separately() -> None:
    talking = Conversation()
    for _ in range(3):
        talking.ask(text("again"))
        talking.answer(text("yes"), message_id="chatcmpl-7")
    assert talking.session.usage.output_tokens == 30


def test_a_fork_record_sets_the_session_parent() -> None:
    fork = Fork(ts=ts(0), from_seq=1, parent_session="parent", reason="message_history_diverged")
    assert session_of([START, fork]).parent == "parent"


# ---------------------------------------------------------------- the shapes of other dialects


def spoken_in(path: str, asked: Any, message: Any, **more: Any) -> Session:
    start = changed(START, provider="any")
    call = Request(ts=ts(1), seq=1, method="POST", path=path, headers={}, body=json.dumps(asked), fingerprint=None)
    told = Response(
        ts=ts(2),
        seq=1,
        status=200,
        headers={},
        timing=Timing(ttfb_ms=1, total_ms=2),
        message=raw(message),
        stop_reason="stop",
        **more,
    )
    return session_of([start, call, told])


def tools(session: Session) -> list[tuple[str | None, Any, str | None]]:
    return [(it.name, it.input, it.result) for it in session.tool_calls]


def test_chat_messages_may_have_reasoning_content_parts_and_broken_arguments() -> None:
    message = {
        "role": "assistant",
        "reasoning_content": "hm",
        "content": [{"type": "text", "text": "look"}, {"type": "image_url", "image_url": {}}],
        "tool_calls": [{"id": "c1", "function": {"name": "ls", "arguments": '{"cut'}}],
    }
    session = spoken_in("/v1/chat/completions", {"messages": [{"role": "user", "content": "hi"}]}, message)
    blocks = session.turns[0].blocks
    assert [it.kind for it in blocks] == ["thinking", "text", "image", "tool_use"]
    assert tools(session) == [("ls", '{"cut', None)]


def test_responses_api_items_include_results_of_server_side_tools() -> None:
    output = [
        {"type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}]},
        {"type": "web_search_call", "id": "ws1", "action": {"query": "x"}, "status": "completed"},
        {"type": "mcp_call", "id": "m1", "name": "add", "arguments": '{"a":1}', "output": "2"},
        {"type": "custom_tool_call", "call_id": "c1", "name": "apply_patch", "input": "*** Begin"},
        {"type": "message", "content": [{"type": "refusal", "refusal": "no"}]},
        {"type": "hologram"},
    ]
    session = spoken_in("/v1/responses", {"input": "hi"}, {"id": "r", "output": output})
    assert inputs(session) == ["hi"]
    kinds = [it.kind for it in session.turns[0].blocks if it.kind not in ("tool_use", "tool_result")]
    assert kinds == ["thinking", "text", "other"]
    assert tools(session) == [
        ("web_search", {"query": "x"}, ""),
        ("add", {"a": 1}, "2"),
        ("apply_patch", "*** Begin", None),
    ]


def test_a_failed_response_is_not_a_turn() -> None:
    talking = Conversation()
    asked = changed(talking.ask(), path="/v1/responses", body='{"input":"hi"}')
    told = changed(
        talking.answer(),
        message=raw({"id": "r", "output": [], "status": "failed"}),
        usage=msgspec.UNSET,
        stop_reason="failed",
    )
    session = session_of([asked, told])
    assert (session.turns, ends(session)) == ([], ["failed"])


def test_gemini_parts_become_thinking_image_and_tool_use_blocks_in_order() -> None:
    parts = [
        {"text": "hm", "thought": True},
        {"inlineData": {"mimeType": "image/png", "data": ""}},
        {"functionCall": {"name": "ls", "args": {"path": "a"}}},
        {"functionCall": {"name": "ls", "args": {"path": "b"}}},
    ]
    path = "/v1beta/models/gemini:generateContent"
    first = {"role": "user", "parts": [{"text": "hi"}]}
    session = spoken_in(path, {"contents": [first]}, {"role": "model", "parts": parts})
    assert [it.kind for it in session.turns[0].blocks] == ["thinking", "image", "tool_use", "tool_use"]
    assert len({it.id for it in session.tool_calls}) == 2


def test_gemini_results_are_matched_to_calls_by_name_and_order() -> None:
    path = "/v1beta/models/gemini:generateContent"
    calls: list[Any] = [{"functionCall": {"name": name, "args": {}}} for name in ("ls", "cat", "ls")]
    results = [
        {"functionResponse": {"name": name, "response": {kind: said}}}
        for name, kind, said in [("ls", "output", "1"), ("ls", "output", "2"), ("cat", "error", "gone")]
    ]
    message = {"role": "model", "parts": calls}
    contents = [{"role": "user", "parts": [{"text": "hi"}]}, message, {"role": "user", "parts": results}]
    talking = Conversation()
    asked = changed(talking.ask(), path=path, body=json.dumps({"contents": contents[:1]}))
    told = changed(talking.answer(), message=raw(message))
    again = changed(asked, seq=2, body=json.dumps({"contents": contents}))
    called = session_of([asked, told, again]).tool_calls
    assert [(it.name, it.result, it.is_error) for it in called] == [
        ("ls", "1", False),
        ("cat", "gone", True),
        ("ls", "2", False),
    ]


# ---------------------------------------------------------------- hostile logs


def test_a_response_without_a_request_is_a_counted_side_turn() -> None:
    talking = Conversation()
    talking.ask(text("hello"))
    talking.answer(text("hi"))
    session = session_of([it for it in talking.records if not isinstance(it, Request)])
    assert (session.exchanges, len(session.side_turns)) == ([], 1)
    assert session.usage.output_tokens == 10


def test_a_log_without_a_session_start_uses_the_given_id() -> None:
    talking = Conversation()
    talking.ask(text("hello"))
    session = session_of(talking.records[1:], "20261115-084532-a7f3")
    assert (session.id, inputs(session)) == ("20261115-084532-a7f3", ["hello"])
    assert session_of([]).id == ""


KEYS = st.sampled_from(
    [
        "role",
        "type",
        "content",
        "text",
        "parts",
        "output",
        "tool_calls",
        "function",
        "id",
        "name",
        "input",
        "functionCall",
        "functionResponse",
        "response",
        "arguments",
        "summary",
        "tool_use_id",
        "call_id",
    ]
)
WORDS = st.sampled_from(["user", "assistant", "model", "tool", "tool_use", "tool_result", "message"])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner | WORDS, max_size=5),
    max_leaves=12,
)
PATHS = st.sampled_from(["/v1/messages", "/v1/chat/completions", "/v1/responses", "/m:generateContent", "/x", ""])
BODIES = st.fixed_dictionaries({"messages": VALUES, "input": VALUES, "contents": VALUES}).map(json.dumps) | st.text()
REQUESTS = st.builds(
    Request,
    ts=st.sampled_from([ts(1), "2026-01-01T00:00:00", "", "9999-99-99"]),
    seq=st.integers(0, 3),
    method=st.just("POST"),
    path=PATHS,
    headers=st.sampled_from([{}, {"content-encoding": "gzip"}, {"Content-Encoding": ["br", "x"]}]),
    body=st.none() | BODIES,
    fingerprint=st.none(),
    thread=st.sampled_from([None, "main", "side", "agent:1"]),
    kind=st.sampled_from([None, "main", "compact", "side", "other"]),
    retry_of=st.none() | st.integers(0, 3),
    body_encoding=st.sampled_from([None, None, "base64"]),
    transport=st.sampled_from([None, "http", "websocket"]),
)
RESPONSES = st.builds(
    Response,
    ts=st.sampled_from([ts(2), "2026-01-01T00:00:00", "nonsense"]),
    seq=st.integers(0, 3),
    status=st.none() | st.integers(100, 599),
    headers=st.none() | st.just({"content-encoding": "zstd"}),
    timing=st.just(Timing(ttfb_ms=None, total_ms=None)),
    body=st.none() | BODIES,
    chunks=st.none() | st.lists(st.builds(Chunk, delta_ms=st.just(0.0), raw=st.none() | st.text())),
    complete=st.none() | st.booleans(),
    message=VALUES.map(raw) | st.sampled_from([msgspec.Raw(b"{"), msgspec.Raw(b"[" * 5000), msgspec.UNSET]),
    usage=VALUES.map(raw) | st.just(msgspec.UNSET),
    stop_reason=st.none() | st.just("end_turn"),
    message_id=st.none() | st.text(max_size=2),
)
OTHERS = st.sampled_from(
    [START, Fork(ts="", from_seq=1, parent_session="", reason=""), Rewrite(ts="", seq=1, reason="")]
)


@settings(max_examples=300, deadline=None)
@given(st.lists(st.one_of(REQUESTS, RESPONSES, OTHERS, st.just(object())), max_size=8))
def test_session_of_never_raises(records: list[Any]) -> None:
    session = session_of(records)
    assert session.usage.output_tokens >= 0
    assert all(isinstance(it, ToolCall) for it in session.tool_calls)


def test_removing_any_record_never_increases_usage() -> None:
    records = replace(talk("2.1.325/tools_stream")).records()
    whole = session_of(records).usage.output_tokens
    for at in range(len(records)):
        assert session_of(records[:at] + records[at + 1 :]).usage.output_tokens <= whole


@pytest.mark.parametrize(("confidence", "name"), [("certain", "c"), ("likely", "c"), ("ambiguous", "log")])
def test_a_name_that_several_sessions_have_is_not_the_id_of_the_session(confidence: str, name: str) -> None:
    identity = Identity(id="c", source="prompt_cache_key", confidence=confidence)
    start = WireStart(ts=ts(0), provider="openai", upstream="api.openai.com", session="log", identity=identity)
    assert session_of([start]).id == name
