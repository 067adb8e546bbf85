"""Codex rollouts: 0.50 (usage before its items), 0.118 (copied forks), 0.166 (exact records, references)."""

import json
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from agent_logger.agents.codex import session as codex
from agent_logger.agents.codex.lines import Info
from agent_logger.agents.codex.meta import meta_of
from agent_logger.agents.codex.usage import Meter
from agent_logger.agents.registry import agent_called, recognise, resume_command
from agent_logger.agents.source_files import SourceFiles
from agent_logger.model.session import Session, Usage
from agent_logger.protocols.jsonl import JsonEntry
from tests.agents.foreign import DATA, broken, entries, lines, manifest, scenarios, shown, source, total

SCENARIOS = scenarios("codex")
ROLLOUTS = [path for folder in SCENARIOS for path in sorted(folder.glob("home/**/rollout-*.jsonl"))]
REAL_LINES = [line for path in ROLLOUTS for line in path.read_bytes().split(b"\n") if line]


def sources(folder: Path) -> dict[str, SourceFiles]:
    """By the session's id, each with the rollouts of its sub-agents."""
    metas = {}
    for path in sorted(folder.glob("home/**/rollout-*.jsonl")):
        first = next(iter(entries(path.read_bytes())))
        assert isinstance(first, JsonEntry)
        meta = meta_of(first.value)
        assert meta
        metas[path] = meta
    return {
        meta.id: source(
            path.read_bytes(),
            *(other.read_bytes() for other, it in metas.items() if it.spawned_by == meta.id),
            name=path.name,
        )
        for path, meta in metas.items()
        if meta.spawned_by is None
    }


def read(scenario: str) -> list[Session]:
    return [codex.session_of(it) for it in sources(DATA / "codex" / scenario).values()]


@pytest.mark.parametrize("folder", SCENARIOS, ids=lambda it: f"{it.parent.name}-{it.name}")
def test_session_usage_matches_the_usage_billed_by_the_server(folder: Path) -> None:
    truth = manifest(folder).truth
    sessions = {name: codex.session_of(it) for name, it in sources(folder).items()}
    assert sessions.keys() == truth.keys()
    for name, session in sessions.items():
        kinds = truth[name].values()
        usage = session.usage
        assert len(session.turns) == sum(kind["responses"] for kind in kinds)
        assert usage.input_tokens + usage.cache_read_tokens == sum(kind["input_tokens"] for kind in kinds)
        assert usage.output_tokens == sum(kind["output_tokens"] for kind in kinds)
        if all("cached_input_tokens" in kind for kind in kinds):
            assert usage.cache_read_tokens == sum(kind["cached_input_tokens"] for kind in kinds)


@pytest.mark.parametrize("folder", SCENARIOS, ids=lambda it: f"{it.parent.name}-{it.name}")
def test_the_fast_path_yields_the_same_usage(folder: Path) -> None:
    for name, session in ((name, codex.session_of(it)) for name, it in sources(folder).items()):
        responses = list(codex.responses_of(sources(folder)[name]))
        turns = sorted(session.turns, key=lambda turn: turn.thread != "main")
        assert [(it.usage, it.model, it.thread, it.message_id) for it in responses] == [
            (turn.usage, turn.model, turn.thread, turn.message_id) for turn in turns
        ]
        assert {(it.session, it.project, it.agent) for it in responses} == {(name, "/home/user/project", "codex")}


WORK = ["(**Planning** write a file first)", "I'll create note.txt first."]


@pytest.mark.parametrize(
    ("scenario", "conversation"),
    [
        pytest.param(
            "0.50.0/exec_resume",
            [
                ("Create note.txt", [[*WORK, ">shell", "<"], ["Done: note.txt says hello-codex."]]),
                ("And now?", [["Second exchange answer."]]),
            ],
            id="0.50",
        ),
        pytest.param(
            "0.166.0/exec_resume",
            [
                ("Create note.txt", [[*WORK, ">exec_command", "<"], ["Done: note.txt says hello-codex."]]),
                ("And now?", [["Second exchange answer."]]),
                ("Third?", [["Third exchange answer."]]),
            ],
            id="0.166",
        ),
        pytest.param(
            "0.166.0/responses_lite",
            [("Create note.txt", [[*WORK, ">exec_command", "<"], ["Done: note.txt says hello-codex."]])],
            id="0.166, tools in the history",
        ),
        pytest.param(
            "0.118.0/app_server",
            [
                (
                    "How many files?",
                    [
                        ["I ask a helper.", ">spawn_agent", "<"],
                        ["I wait.", ">exec_command", "<"],
                        ["One file."],
                        ["There is 1 file."],
                    ],
                ),
                ("And then?", [["Original goes on."], []]),
                ("After the compaction?", [["After it."]]),
            ],
            id="0.118, sub-agent and compaction",
        ),
        pytest.param(
            "0.166.0/tools_fork_failure",
            [
                (
                    "Patch p.txt",
                    [
                        ["(**Plan** patch)", ">exec_command", "<failed"],
                        [">apply_patch", ">update_plan", "<", "<"],
                        [">web_search", "<", "Patched."],
                    ],
                ),
                ("And then?", [["Original goes on."]]),
                ("Fail", []),
                ("After?", [["After the failure."]]),
            ],
            id="0.166, tools and a failure",
        ),
    ],
)
def test_the_conversation_matches_the_scripted_scenario(scenario: str, conversation: list[Any]) -> None:
    assert shown(read(scenario)[0]) == conversation


@pytest.mark.parametrize("scenario", ["0.118.0/app_server", "0.166.0/app_server", "0.166.0/compact"])
def test_a_compaction_is_dated_between_the_surrounding_turns(scenario: str) -> None:
    session = read(scenario)[0]
    (compaction,) = session.compactions
    started = [turn.started for turn in session.turns if turn.thread == "main" and turn.started]
    assert compaction.at and started[0] < compaction.at <= started[-1]


def test_a_failed_exchange_has_the_end_reason_failed() -> None:
    exchanges = read("0.166.0/tools_fork_failure")[0].exchanges
    assert [(it.complete, it.end_reason) for it in exchanges] == [
        (True, "result"),
        (True, "result"),
        (False, "failed"),
        (True, "result"),
    ]


@pytest.mark.parametrize("scenario", ["0.118.0/app_server", "0.166.0/app_server"])
def test_a_fork_has_its_own_turns_and_names_its_parent(scenario: str) -> None:
    parent, fork = read(scenario)
    assert (fork.parent, fork.title) == (parent.id, "In a fork?")
    assert shown(fork) == [("In a fork?", [["In the fork."]])]
    assert fork.usage == Usage(input_tokens=54, output_tokens=64, cache_read_tokens=504)


def test_a_subagent_is_a_thread_of_the_session_that_started_it() -> None:
    session = read("0.166.0/app_server")[0]
    thread = "agent:01a1df74-2f16-7733-95f5-ccc3d34182d4"
    assert session.threads == ["main", thread]
    [turn] = [turn for turn in session.turns if turn.thread == thread]
    assert turn in session.exchanges[0].turns
    assert turn.usage == Usage(input_tokens=4, output_tokens=12, cache_read_tokens=80)


def test_a_session_has_its_project_times_and_tool_calls() -> None:
    session = read("0.166.0/tools_fork_failure")[0]
    assert (session.agent, session.project, session.title) == ("codex", "/home/user/project", "Patch p.txt")
    assert session.started and session.ended and (session.ended - session.started).seconds == 21
    assert resume_command(session.agent, session.id) == ["codex", "resume", session.id]
    first, patch = session.tool_calls[0], session.tool_calls[1]
    assert (first.kind, first.input, first.is_error) == ("shell", {"cmd": "ls nowhere"}, True)
    assert first.result and "No such file" in first.result
    assert (patch.name, patch.kind, patch.result) == (
        "apply_patch",
        "edit",
        "unsupported custom tool call: apply_patch",
    )


# ---------------------------------------------------------------- counters


def tokens(asked: int) -> dict[str, int]:
    return {"input_tokens": asked, "cached_input_tokens": 0, "output_tokens": 0}


def info(total: dict[str, int], last: dict[str, int]) -> Info:
    return Info(total, last)


@pytest.mark.parametrize(
    ("told", "asked"),
    [
        pytest.param([info(tokens(10), tokens(10)), info(tokens(30), tokens(20))], [10, 20], id="differences"),
        pytest.param([info(tokens(10), tokens(10))] * 3, [10], id="told again"),
        pytest.param([info(tokens(100), tokens(10))], [10], id="began before this file"),
        pytest.param([info(tokens(100), tokens(100)), info(tokens(7), tokens(7))], [100, 7], id="begun anew"),
        pytest.param([info(tokens(10), tokens(10)), info(tokens(40), tokens(5))], [10, 30], id="a line was lost"),
        pytest.param([info(tokens(10), tokens(10)), info(tokens(10), tokens(0))], [10], id="compacted"),
        pytest.param([None, info(tokens(10), tokens(10))], [10], id="nothing known yet"),
        pytest.param([tokens(10), info(tokens(10), tokens(10))], [10], id="recorded"),
        pytest.param(
            [
                info(tokens(9), tokens(9)),
                tokens(10),
                info(tokens(9), tokens(9)),
                info(tokens(19), tokens(10)),
            ],
            [9, 10],
            id="recorded, an old total between",
        ),
        pytest.param(
            [tokens(10), info(tokens(10), tokens(10)), info(tokens(15), tokens(5))],
            [10, 5],
            id="recorded, then resumed by an older version",
        ),
        pytest.param([Info(), info(tokens(0), tokens(0))], [], id="nothing"),
        pytest.param([info(tokens(-5), tokens(-5))], [None], id="no count"),
        pytest.param([{"tokensUsed": 5}], [None], id="recorded, in unknown words"),
    ],
)
def test_token_counters_are_split_into_the_usage_of_each_response(
    told: list[dict[str, int] | Info | None], asked: list[int | None]
) -> None:
    meter = Meter()
    used = [meter.record(it) if isinstance(it, dict) else meter.counted(it) for it in told]
    assert [it.usage and it.usage.input_tokens for it in used if it] == asked


# ---------------------------------------------------------------- lines of other versions

ID = "0196a000-0000-7000-8000-000000000002"
PARENT = "0196a000-0000-7000-8000-000000000001"


def line(kind: str, payload: Any, at: str = "00.000") -> dict[str, Any]:
    return {"timestamp": f"2026-01-01T00:00:{at}Z", "type": kind, "payload": payload}


def meta(name: str, **more: Any) -> dict[str, Any]:
    return line("session_meta", {"id": name, "cwd": "/p", **more})


def message(role: str, *texts: str, at: str = "00.000") -> dict[str, Any]:
    parts = [{"type": "input_text" if role != "assistant" else "output_text", "text": text} for text in texts]
    return line("response_item", {"type": "message", "role": role, "content": parts}, at)


def counted(total_: int, at: str = "00.000") -> dict[str, Any]:
    told = {"input_tokens": total_}
    info = {"total_token_usage": told, "last_token_usage": told}
    return line("event_msg", {"type": "token_count", "info": info}, at)


@pytest.mark.parametrize(
    "first",
    [
        pytest.param([meta(ID, forked_from_id=PARENT), meta(PARENT)], id="both"),
        pytest.param([meta(ID, forked_from_id=PARENT)], id="the parent's name"),
        pytest.param([meta(ID), meta(PARENT)], id="the parent's first line"),
    ],
)
def test_copied_history_without_turn_ids_ends_at_the_first_pause(first: list[Any]) -> None:
    forked = lines(
        *first,
        message("user", "old", at="00.001"),
        message("assistant", "old answer", at="00.002"),
        counted(100, at="00.003"),
        message("user", "new", at="09.000"),
        message("assistant", "new answer", at="09.500"),
        counted(130, at="09.600"),
    )
    session = codex.session_of(source(forked))
    assert session.id == ID
    assert shown(session) == [("new", [["new answer"]])]
    assert session.usage.input_tokens == 30


def context(turn: str, at: str) -> dict[str, Any]:
    return line("turn_context", {"turn_id": turn, "model": "gpt-5"}, at)


def test_a_copy_with_ids_of_turns_ends_where_the_first_own_turn_begins_and_at_no_pause_before() -> None:
    started = "2026-01-01T00:00:00.000Z"
    own = f"{int(datetime.fromisoformat(started).timestamp() * 1000) + 9000:012x}"
    forked = lines(
        meta(ID, forked_from_id=PARENT, timestamp=started),
        context("0196a000-0000-7000-8000-000000000003", at="00.001"),
        message("user", "old", at="00.002"),
        message("assistant", "old answer", at="05.000"),
        counted(100, at="05.001"),
        context(f"{own[:8]}-{own[8:]}-7000-8000-000000000004", at="09.000"),
        message("user", "new", at="09.001"),
        message("assistant", "new answer", at="09.500"),
        counted(130, at="09.600"),
    )
    session = codex.session_of(source(forked))
    assert shown(session) == [("new", [["new answer"]])]
    assert session.usage.input_tokens == 30
    assert [it.usage and it.usage.input_tokens for it in codex.responses_of(source(forked))] == [30]


@pytest.mark.parametrize(
    ("texts", "begins"),
    [
        (["<environment_context>\n  <cwd>/p</cwd>\n</environment_context>"], False),
        (["# AGENTS.md instructions for /p\n\nBe brief."], False),
        (["<user_instructions>\nBe brief.\n</user_instructions>"], False),
        (["<subagent_notification>\n{}\n</subagent_notification>"], False),
        (["Hello"], True),
    ],
)
def test_context_messages_of_codex_are_not_user_input(texts: list[str], begins: bool) -> None:
    session = codex.session_of(source(lines(meta(ID), message("user", *texts), message("assistant", "Hi."))))
    assert [it.user_input for it in session.exchanges] == [texts[0] if begins else None]


def test_developer_messages_are_not_user_input() -> None:
    session = codex.session_of(source(lines(meta(ID), message("developer", "Be brief."))))
    assert session.exchanges == []


NOT_BY_A_MODEL = [
    {"type": "additional_tools", "id": "at_1", "role": "developer", "tools": [{"type": "namespace"}]},
    {"type": "agent_message", "author": "/root", "recipient": "/root/a", "content": []},
    {"type": "configuration_update", "reasoning": {"effort": "high"}},
    {"type": "compaction_trigger"},
    {"type": "context_compaction", "encrypted_content": "x"},
    {"type": "compaction", "encrypted_content": "x"},
    {"type": "ghost_snapshot", "ghost_commit": {"id": "0"}},
    {"type": "other"},
    {"type": "of_next_year", "text": "?"},
    {"type": "of_next_year_output", "text": "?"},
    {"type": "of_next_year_call", "role": "developer"},
    {"type": 5},
    {},
]
UNKNOWN_LINES = [
    *(line("response_item", item) for item in NOT_BY_A_MODEL),
    line("inter_agent_communication", {"type": "message", "role": "assistant"}),
    line("dynamic_tools_updated", {"tools": []}),
    line("security_risk_score", {"score": 1}),
    line("of_next_year", {"type": "message", "role": "assistant", "content": [{"text": "?"}]}),
    line("event_msg", {"type": "of_next_year"}),
    {"type": "of_next_year"},
]


@pytest.mark.parametrize("unknown", UNKNOWN_LINES, ids=lambda it: str(it.get("payload", it))[:40])
def test_unknown_lines_create_no_exchange_and_no_turn(unknown: dict[str, Any]) -> None:
    """Wherever it stands."""
    told = [
        message("user", "Go"),
        message("assistant", "Hi.", at="01.000"),
        line("token_usage_record", {"usage": {"input_tokens": 3, "output_tokens": 1}, "response_id": "r"}),
        line("event_msg", {"type": "task_complete"}, at="02.000"),
    ]
    for place in range(len(told) + 1):
        session = codex.session_of(source(lines(meta(ID), *told[:place], unknown, *told[place:])))
        assert shown(session) == [("Go", [["Hi."]])]
        assert session.usage.input_tokens == 3
    assert codex.session_of(source(lines(meta(ID), unknown))).exchanges == []


def test_content_item_kinds_decide_which_pieces_are_user_input() -> None:
    item = message("user", "<environment_context>typed</environment_context>", "context")
    passed = {"content_item_kinds": ["user.text", "environments.environment_context"]}
    item["payload"]["internal_chat_message_metadata_passthrough"] = passed
    session = codex.session_of(source(lines(meta(ID), item)))
    assert session.exchanges[0].user_input == "<environment_context>typed</environment_context>"


def test_usage_without_a_following_item_is_a_turn() -> None:
    session = codex.session_of(source(lines(meta(ID), message("user", "Go"), counted(5), counted(8))))
    assert [turn.usage and turn.usage.input_tokens for turn in session.turns] == [5, 3]


def test_an_interrupted_exchange_is_not_complete() -> None:
    aborted = line("event_msg", {"type": "turn_aborted", "reason": "interrupted"})
    told = lines(meta(ID), message("user", "Go"), message("assistant", "I be"), aborted)
    [exchange] = codex.session_of(source(told)).exchanges
    assert (exchange.complete, exchange.end_reason, exchange.turns[0].complete) == (False, "cut", False)


@pytest.mark.parametrize(
    ("output", "text", "failed"),
    [
        ('{"output":"no","metadata":{"exit_code":1,"duration_seconds":0.0}}', "no", True),
        ('{"output":"yes","metadata":{"exit_code":0}}', "yes", False),
        ("Exit code: 127\nWall time: 0 seconds\nOutput:\nno", None, True),
        ("Process exited with code 0\nOutput:\nProcess exited with code 9", None, False),
        ([{"type": "input_text", "text": "seen"}], "seen", False),
        ('{"not": "ours"}', '{"not": "ours"}', False),
    ],
)
def test_the_exit_status_of_a_command_is_read(output: Any, text: str | None, failed: bool) -> None:
    call = {"type": "local_shell_call", "call_id": "c", "action": {"type": "exec", "command": ["no"]}}
    answer = {"type": "function_call_output", "call_id": "c", "output": output}
    told = lines(meta(ID), line("response_item", call), line("response_item", answer))
    [called] = codex.session_of(source(told)).tool_calls
    assert (called.kind, called.is_error) == ("shell", failed)
    assert called.result == (text if text is not None else output)


def test_a_tool_result_written_twice_is_shown_once() -> None:
    call = {"type": "function_call", "name": "shell", "arguments": "{}", "call_id": "c"}
    answer = line("response_item", {"type": "function_call_output", "call_id": "c", "output": "yes"})
    session = codex.session_of(source(lines(meta(ID), line("response_item", call), answer, answer)))
    assert shown(session) == [(None, [[">shell", "<"]])]


def test_an_mcp_tool_call_has_its_namespaced_name() -> None:
    call = {
        "type": "function_call",
        "namespace": "mcp__git__",
        "name": "log",
        "arguments": "{}",
        "call_id": "c",
    }
    session = codex.session_of(source(lines(meta(ID), line("response_item", call))))
    assert [(it.name, it.kind) for it in session.tool_calls] == [("mcp__git__log", "mcp")]


def test_the_file_name_provides_the_id_when_the_first_line_is_missing() -> None:
    name = f"rollout-2026-01-01T00-00-00-{ID}.jsonl"
    session = codex.session_of(source(lines(message("user", "Go")), name=name))
    assert (session.id, session.title) == (ID, "Go")


def test_a_rollout_without_times_and_payloads_is_read() -> None:
    def bare(role: str, text: str) -> dict[str, Any]:
        return {"type": "message", "id": None, "role": role, "content": [{"type": "text", "text": text}]}

    call = {"type": "function_call", "name": "shell", "arguments": '{"command":["ls"]}', "call_id": "c"}
    told = json.dumps({"output": "none\n", "metadata": {"exit_code": 2}})
    old = lines(
        {"id": ID, "timestamp": "2025-08-01T10:00:00.000Z", "instructions": None},
        {"record_type": "state"},
        bare("user", "List"),
        bare("assistant", "I look."),
        call,
        {"record_type": "state"},
        {"type": "function_call_output", "call_id": "c", "output": told},
        bare("assistant", "Nothing there."),
    )
    session = codex.session_of(source(old))
    assert (session.id, session.title, str(session.started)[:10]) == (ID, "List", "2025-08-01")
    assert shown(session) == [("List", [["I look.", ">shell", "<failed"], ["Nothing there."]])]
    assert list(codex.responses_of(source(old))) == []  # it tells no usage
    assert recognise(f"rollout-2025-08-01T10-00-00-{ID}.jsonl", old) is agent_called("codex")


def test_damage_affects_only_the_damaged_line() -> None:
    rollout = next(path for path in ROLLOUTS if "exec_resume" in str(path) and "0.166" in str(path))
    whole = rollout.read_bytes()
    at = whole.index(b'{"timestamp"', 5_000)
    hurt = whole[:at] + b'\0\0\0{"timestamp":"2026' + whole[at:]
    assert shown(codex.session_of(source(hurt))) == shown(codex.session_of(source(whole)))


def deep(levels: int) -> list[Any]:
    return [deep(levels - 1)] if levels else []


@pytest.mark.parametrize("time", ["2026-11-15T07:13:47Z", None])
def test_a_record_on_the_same_line_as_an_ignored_record_is_read(time: str | None) -> None:
    record = lines({**counted(5), "timestamp": time})
    glued = lines(meta(ID)) + lines(line("event_msg", {"type": "agent_message"})).strip() + record
    assert [it.usage for it in codex.responses_of(source(glued))] == [Usage(input_tokens=5)]


@pytest.mark.parametrize("item", [5, {}, {"type": 5}, {"type": "reasoning", "summary": deep(200)}])
def test_an_unreadable_item_is_not_a_turn(item: Any) -> None:
    assert codex.session_of(source(lines(meta(ID), line("response_item", item)))).turns == []


def test_a_line_with_keys_in_another_order_is_read() -> None:
    turned = [dict(reversed(it.items())) for it in (message("user", "Go"), message("assistant", "Hi"), counted(5))]
    session = codex.session_of(source(lines(meta(ID), *turned)))
    assert (shown(session), session.usage.input_tokens) == ([("Go", [["Hi"]])], 5)


def test_a_lone_surrogate_is_replaced_and_its_line_is_read() -> None:
    session = codex.session_of(source(lines(meta(ID), message("user", "a\ud83d"), message("assistant", "b"))))
    assert shown(session) == [("a\ufffd", [["b"]])]


def test_fields_of_the_wrong_type_do_not_affect_other_fields() -> None:
    odd = counted(5)
    odd["payload"]["turn_id"] = odd["payload"]["info"]["last_token_usage"] = 1
    context = line("turn_context", {"model": "gpt", "service_tier": ["x"], "turn_id": 3})
    [response] = codex.responses_of(source(lines(meta(ID), context, odd)))
    assert (response.model, response.tier, response.usage) == ("gpt", None, Usage(input_tokens=5))


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(broken(REAL_LINES), broken(REAL_LINES))
def test_reading_damaged_rollouts_never_raises(main: bytes, other: bytes) -> None:
    session = codex.session_of(source(main, other))
    assert total(it.usage for it in codex.responses_of(source(main, other))) == total(
        turn.usage for turn in session.turns
    )
    repr(session).encode()
    for call in session.tool_calls:
        (call.result or "").encode()
