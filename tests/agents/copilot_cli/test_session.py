"""Copilot CLI's sessions: one event per line, with the sub-agents of a session among its own."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent_logger.agents.copilot_cli import session as copilot
from agent_logger.agents.registry import recognise, resume_command
from agent_logger.catalog.catalog import Catalog
from agent_logger.catalog.ledger.ledger import Ledger
from agent_logger.model.remainders import with_remainders
from agent_logger.model.responses import ModelResponse
from agent_logger.model.session import Session, Usage
from tests.agents.foreign import DATA, broken, lines, shown, source, sources_of, total

AGENT = "copilot-cli"
VERSION = DATA / AGENT / "1.0.102"
FOLDERS = sorted(path.parent for path in VERSION.glob("*/manifest.json"))
FILES = sorted(VERSION.glob("*/home/.copilot/session-state/*/events.jsonl"))
REAL_LINES = [line for path in FILES for line in path.read_bytes().split(b"\n") if line]
NAME = "1f5a0c1e-0000-4000-8000-000000000001"
PATH = f"{NAME}/events.jsonl"


def read_real(scenario: str) -> Session:
    [files] = sources_of(AGENT, VERSION / scenario)
    return copilot.session_of(files)


def truth_of(folder: Path, *kinds: str) -> Usage:
    [truth] = [
        truth
        for name, truth in json.loads((folder / "manifest.json").read_text())[
            "truth_usage_of_complete_responses"
        ].items()
        if name in ("(all)", "main")
    ]
    counts = [truth[kind] for kind in kinds if kind in truth] if "input" not in truth else [truth]
    return total(
        Usage(
            input_tokens=each["input"],
            output_tokens=each["output"],
            cache_read_tokens=each["cache_read"],
            cache_write_tokens=each["cache_write"],
        )
        for each in counts
    )


def once(responses: list[ModelResponse]) -> dict[str | None, Usage | None]:
    return {response.message_id: response.usage for response in responses}


# ---------------------------------------------------------------- real files


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_every_complete_response_is_billed_once_over_all_files(folder: Path) -> None:
    responses = [response for files in sources_of(AGENT, folder) for response in copilot.responses_of(files)]
    assert total(once(responses).values()) == truth_of(folder, "main", "subagent", "compact")
    main = [response for response in responses if response.thread == "main"]
    assert total(once(main).values()) == truth_of(folder, "main")


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_responses_match_the_billed_turns_of_the_session(folder: Path) -> None:
    for files in sources_of(AGENT, folder):
        session, responses = copilot.session_of(files), list(copilot.responses_of(files))
        billed = [turn for turn in session.turns if turn.is_billed]
        assert {
            (response.message_id, response.usage, response.model, response.at, response.thread, response.final)
            for response in responses
        } == {(turn.message_id, turn.usage, turn.model, turn.started, turn.thread, turn.complete) for turn in billed}
        assert len(responses) == len(billed)
        assert {(response.session, response.project, response.agent) for response in responses} == {
            (session.id, "/home/user/project", AGENT)
        }
        assert session.totals == []  # the responses make up what the client counts
        assert copilot.billed_of(files) == (responses, [])


def test_the_conversation_and_its_tools_match_the_scripted_scenario() -> None:
    session = read_real("tools")
    assert shown(session) == [
        (
            "List the files of this project",
            [
                ["I will look first.", ">bash", "<"],
                [">bash", ">view", "<", "<failed"],
                ["There are two files; does-not-exist.txt is missing."],
            ],
        ),
        ("What is the function called?", [["The second answer: the function is called greet."]]),
    ]
    assert [(exchange.complete, exchange.end_reason) for exchange in session.exchanges] == [(True, "result")] * 2
    assert [(call.name, call.kind, call.is_error) for call in session.tool_calls] == [
        ("bash", "shell", False),
        ("bash", "shell", True),
        ("view", "read", False),
    ]
    assert (session.id, session.title) == ("e31ef11d-4d9c-45ab-8d24-1b29d40e6137", "List the files of this project")
    assert (session.project, session.parent) == ("/home/user/project", None)
    assert session.started and session.started.isoformat() == "2026-11-16T04:58:54.368000+00:00"
    first = session.turns[0]
    assert first.started and first.started.isoformat() == "2026-11-16T04:58:54.498000+00:00"  # 21 ms earlier
    assert (first.model, first.stop_reason) == ("gpt-5.4", "tool_calls")


def test_vendors_are_known_by_the_endpoint() -> None:
    families = {
        name: {
            response.family for files in sources_of(AGENT, VERSION / name) for response in copilot.responses_of(files)
        }
        for name in ("tools", "anthropic", "responses")
    }
    assert families == {"tools": {"openai"}, "anthropic": {"anthropic"}, "responses": {"openai"}}


def test_thinking_failed_tools_and_line_separators_are_read() -> None:
    session = read_real("anthropic")
    assert session.exchanges[0].user_input == "Look at\u2028everything, and write a note"
    assert shown(session)[0][1] == [
        [
            *("(I should look at both files at once.)", "Both at once.", ">view", ">bash", ">view"),
            *("<failed", "<", "<failed"),
        ],
        [">create", "<"],
        [">edit", "<"],
        ["Written\u2028and changed."],
    ]
    assert session.turns[0].usage == Usage(
        input_tokens=10, output_tokens=120, cache_read_tokens=1000, cache_write_tokens=4000
    )


def test_sub_agents_are_threads_and_their_prompts_are_no_exchanges() -> None:
    session = read_real("agents")
    assert [exchange.user_input for exchange in session.exchanges] == ["Ask two helpers", "And now?"]
    assert [(agent.kind, agent.description, agent.parent_thread) for agent in session.agents] == [
        ("general-purpose", "Read hello", "main"),
        ("explore", "Count files", "main"),
    ]
    calls = {call.id: call for call in session.tool_calls}
    started = [calls[agent.tool_use_id or ""] for agent in session.agents]
    assert [(call.name, call.kind, call.input["name"]) for call in started] == [
        ("task", "agent", "read-hello"),
        ("task", "agent", "count-files"),
    ]
    threads = {
        agent.thread: [turn for turn in session.turns if turn.thread == agent.thread] for agent in session.agents
    }
    assert [[call.name for turn in turns for call in turn.tool_calls] for turns in threads.values()] == [
        ["view", "bash"],
        ["bash"],
    ]


def test_agents_may_start_agents_run_on_after_the_answer_and_fail() -> None:
    session = read_real("nested_agents")
    names = {agent.thread: agent.description for agent in session.agents}
    assert {agent.description: names.get(agent.parent_thread) for agent in session.agents} == {
        "Outer": None,
        "Back": None,
        "Inner": "Outer",
        "Fails": None,
    }
    [exchange] = session.exchanges
    assert (exchange.user_input, exchange.end_reason) == ("Ask helpers", "result")
    [failed] = [turn for turn in session.turns if turn.error]
    assert (names[failed.thread], failed.error, failed.is_billed) == ("Fails", "400 made up", False)
    called = [call.name for call in session.tool_calls if call.thread == "main"]
    assert called == ["task", "task", "task", "sql", "read_agent"]  # without the call that the client made up
    [made_up] = [turn for turn in session.turns if turn.is_synthetic]
    assert [block.kind for block in made_up.blocks] == ["other", "other"]


def test_failed_cut_and_killed_exchanges_have_their_end_reasons() -> None:
    session = read_real("failures")
    assert [(exchange.user_input, exchange.complete, exchange.end_reason) for exchange in session.exchanges] == [
        ("Start", True, "result"),
        ("Fail please", False, "failed"),
        ("Cut it", True, "result"),
        ("Run something long", False, "input"),
        ("Go on", True, "result"),
        ("Stall", False, "cut"),
        ("And now?", True, "result"),
    ]
    assert [turn.error for turn in session.exchanges[1].turns] == ["400 made up"]
    assert [call.is_error for call in session.tool_calls] == [True]


def test_a_compaction_and_the_call_that_wrote_its_summary_are_read() -> None:
    session = read_real("compact")
    assert [exchange.user_input for exchange in session.exchanges] == ["List the files", "And now?", "And then?"]
    [compaction] = session.compactions
    assert (compaction.trigger, compaction.tokens_before, compaction.tokens_after) == ("manual", 10984, 10947)
    [summary] = session.side_turns
    assert summary.usage == truth_of(VERSION / "compact", "compact")
    assert summary.message_id and summary.blocks[0].text.startswith("<overview>")


def test_a_fork_names_its_parent_and_shared_responses_are_billed_once() -> None:
    sessions = {session.id: session for session in map(copilot.session_of, sources_of(AGENT, VERSION / "fork"))}
    [fork] = [session for session in sessions.values() if session.parent]
    assert fork.parent in sessions
    assert (sessions[fork.parent].title, fork.title) == ("List the files", "List the files (fork)")
    inputs = {session.id: [exchange.user_input for exchange in session.exchanges] for session in sessions.values()}
    assert inputs[fork.id] == ["List the files", "What now?", "And there?"]
    assert inputs[fork.parent] == ["List the files", "And here?"]
    assert {copilot.parent_of(files) for files in sources_of(AGENT, VERSION / "fork")} == {None, fork.parent}
    ledger = Ledger()
    for files in sources_of(AGENT, VERSION / "fork"):
        ledger.add(copilot.responses_of(files))
    rows = list(ledger.rows())
    assert (len(rows), total(row.usage for row in rows)) == (5, truth_of(VERSION / "fork", "main"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.parts[-6])
def test_a_file_is_recognised_by_its_content_and_by_its_path(path: Path) -> None:
    first = path.read_bytes()[:4096]
    for name in (path.as_posix(), "/elsewhere/mine.jsonl"):
        agent = recognise(name, first)
        assert agent and agent.name == AGENT


def test_a_session_is_resumed_by_its_id() -> None:
    assert resume_command(AGENT, NAME) == ["copilot", "--resume", NAME]


# ---------------------------------------------------------------- made up

START = {
    "type": "session.start",
    "data": {"sessionId": NAME, "copilotVersion": "1.0.9", "selectedModel": "gpt-5.4", "context": {"cwd": "/p"}},
}


def events(*bodies: dict[str, Any]) -> bytes:
    return lines(
        *(
            {**body, "id": f"e{at}", "timestamp": f"2026-05-01T00:00:{at:02}.000Z", "parentId": None}
            for at, body in enumerate(bodies)
        )
    )


def said(text: str, *tools: str, **more: Any) -> dict[str, Any]:
    requests = [{"toolCallId": tool, "name": "bash", "arguments": {}} for tool in tools]
    return {"type": "assistant.message", "data": {"content": text, "toolRequests": requests, **more}}


def asked(text: str, **more: Any) -> dict[str, Any]:
    return {"type": "user.message", "data": {"content": text, **more}}


def used(response: str, given: int, output: int) -> dict[str, Any]:
    usage = {"model": "gpt-5.4", "inputTokens": given, "outputTokens": output, "apiCallId": response}
    return {"type": "session.usage_record", "data": {"usage": usage}}


def ended(tool: str, **more: Any) -> dict[str, Any]:
    return {"type": "tool.execution_complete", "data": {"toolCallId": tool, "success": True, **more}}


def shut_down(given: int, output: int, read: int = 0, *, snapshot: bool = False) -> dict[str, Any]:
    usage = {"inputTokens": given, "outputTokens": output, "cacheReadTokens": read, "cacheWriteTokens": 0}
    data: dict[str, Any] = {"modelMetrics": {"gpt-5.4": {"usage": usage}}}
    if snapshot:
        data["accountingSnapshot"] = {"sessionStartTime": "2026-05-01T00:00:00.000Z"}
    return {"type": "session.shutdown", "data": data}


def read(data: bytes) -> Session:
    return with_remainders(copilot.session_of(source(data, name=PATH)))


def usage_of(data: bytes) -> Usage:
    """What the ledger counts."""
    responses, totals = copilot.billed_of(source(data, name=PATH))
    ledger = Ledger()
    ledger.add(responses)
    ledger.add_totals(totals)
    return total(row.usage for row in ledger.rows())


RESUME = {"type": "session.resume", "data": {}}


def test_totals_of_older_versions_are_added_over_the_processes() -> None:
    data = events(
        START, asked("Go"), said("One"), shut_down(100, 5, 60), RESUME, asked("On"), said("Two"), shut_down(70, 4)
    )
    both = Usage(input_tokens=110, output_tokens=9, cache_read_tokens=60)
    session = read(data)
    assert (usage_of(data), total(rest.usage for rest in session.not_itemised)) == (both, both)
    assert [turn.is_billed for turn in session.turns] == [False, False]


def test_newer_versions_go_on_counting_when_a_session_is_resumed() -> None:
    data = events(
        *(START, asked("Go"), used("r1", 100, 5), said("One", apiCallId="r1"), shut_down(100, 5, snapshot=True)),
        *(RESUME, asked("On"), used("r2", 70, 4), said("Two", apiCallId="r2"), shut_down(170, 9, snapshot=True)),
    )
    assert usage_of(data) == Usage(input_tokens=170, output_tokens=9)
    assert read(data).totals == []


@pytest.mark.parametrize("lost", [2, 7])
def test_a_response_whose_usage_is_lost_is_in_the_total(lost: int) -> None:
    bodies = [
        *(START, asked("Go"), used("r1", 100, 5), said("One", apiCallId="r1"), shut_down(100, 5, snapshot=True)),
        *(RESUME, asked("On"), used("r2", 70, 4), said("Two", apiCallId="r2"), shut_down(170, 9, snapshot=True)),
    ]
    written = events(*bodies).split(b"\n")
    written[lost] = written[lost][: len(written[lost]) // 2]
    assert usage_of(b"\n".join(written)) == Usage(input_tokens=170, output_tokens=9)


def test_a_session_without_any_count_has_responses_of_unknown_usage() -> None:
    data = events(START, asked("Go"), said("One"))
    [turn] = read(data).turns
    assert (turn.is_billed, turn.usage) == (True, None)
    [response] = copilot.responses_of(source(data, name=PATH))
    assert (response.usage, response.message_id) == (None, None)


def test_sub_agents_of_older_versions_are_named_by_their_tool_call() -> None:
    start = {"type": "subagent.started", "data": {"toolCallId": "t1", "agentName": "explore"}}
    data = events(START, asked("Go"), said("", "t1"), start, said("Looked", parentToolCallId="t1"), said("Done"))
    session = read(data)
    assert [(turn.thread, [block.text for block in turn.blocks if block.text]) for turn in session.turns] == [
        ("main", []),
        ("agent:t1", ["Looked"]),
        ("main", ["Done"]),
    ]
    assert [(agent.thread, agent.kind, agent.tool_use_id) for agent in session.agents] == [
        ("agent:t1", "explore", "t1")
    ]


@pytest.mark.parametrize(
    ("result", "failed", "text"),
    [
        ({"result": {"content": "a\n<exited with exit code 2>"}}, True, "a\n<exited with exit code 2>"),
        ({"result": {"content": "a\n<shellId: 1 completed with exit code 0>"}}, False, None),
        ({"result": {"content": "b"}, "shellExecution": {"exitCode": 1}}, True, "b"),
        ({"success": False, "error": {"message": "no such file"}}, True, "no such file"),
        ({"success": False, "error": "denied"}, True, "denied"),
        ({"result": {"content": "says <exited with exit code 2> in between"}}, False, None),
        ({"result": "plain"}, False, "plain"),
    ],
)
def test_a_failed_command_is_a_failed_call(result: dict[str, Any], failed: bool, text: str | None) -> None:
    [call] = read(events(START, asked("Go"), said("", "t1"), ended("t1", **result))).tool_calls
    assert call.is_error == failed
    assert text in (None, call.result)


def test_a_skill_is_no_input_of_its_own_and_a_message_of_another_sender_is() -> None:
    data = events(
        *(START, asked("Go"), asked("<skill-context>long", source="skill-pdf"), said("Done")),
        *(asked("Keep going", source="autopilot"), said("Kept")),
    )
    session = read(data)
    assert [(exchange.user_input, exchange.origin) for exchange in session.exchanges] == [
        ("Go", None),
        ("Keep going", "autopilot"),
    ]


def test_older_compactions_have_their_own_words() -> None:
    summary = {
        "success": True,
        "summaryContent": "All.",
        "compactionTokensUsed": {"input": 50, "output": 6, "cachedInput": 20},
    }
    [turn] = read(events(START, asked("Go"), {"type": "session.compaction_complete", "data": summary})).side_turns
    assert turn.usage == Usage(input_tokens=30, output_tokens=6, cache_read_tokens=20)


# ---------------------------------------------------------------- damage

WHOLE = events(
    *(START, asked("Go"), used("r1", 100, 5), said("One", "t1", apiCallId="r1"), ended("t1", result={"content": "x"})),
    *(
        used("r2", 200, 6),
        said("Two\nlines", apiCallId="r2"),
        asked("On"),
        used("r3", 300, 7),
        said("Three", apiCallId="r3"),
    ),
)
WRITTEN = WHOLE.split(b"\n")[:-1]


def test_a_record_that_newlines_split_is_read() -> None:
    data = WHOLE.replace(b"Two\\nlines", b"Two\nlines")
    assert data != WHOLE
    assert read(data) == read(WHOLE)


def test_pieces_of_a_split_record_may_look_like_records() -> None:
    text = b'{"a": 1}\n\n{"type":"x"}\n}\nend'
    data = WHOLE.replace(b"Two\\nlines", text.replace(b'"', b'\\"'))
    assert [block.text for block in read(data).exchanges[0].turns[1].blocks] == [text.decode()]


def test_a_cut_record_with_another_one_behind_is_the_only_one_lost() -> None:
    data = b"\n".join([*WRITTEN[:3], WRITTEN[3][:60] + WRITTEN[4], *WRITTEN[5:]])
    session = read(data)
    assert [turn.usage and turn.usage.input_tokens for turn in session.turns] == [100, 200, 300]
    assert session.tool_calls[0].result == "x"


def test_a_last_record_without_its_newline_is_read() -> None:
    assert read(WHOLE[:-1]) == read(WHOLE)
    assert read(WHOLE[:-1] + b"\0" * 5000) == read(WHOLE)


def test_raw_line_separators_and_bytes_that_are_no_characters_are_read() -> None:
    for raw, text in (("Two\u2028lines".encode(), "Two\u2028lines"), (b"Two\xfflines", "Two\ufffdlines")):
        session = read(WHOLE.replace(b"Two\\nlines", raw))
        assert session.exchanges[0].turns[1].blocks[0].text == text


DAMAGE = st.one_of(
    st.builds(lambda at, n: ("cut", at, n), st.integers(0, 3000), st.just(0)),
    st.builds(lambda at, n: ("nul", at, n), st.integers(0, 3000), st.integers(1, 400)),
    st.builds(lambda at, n: ("newline", at, n), st.integers(0, 3000), st.just(1)),
    st.builds(lambda at, n: ("noise", at, n), st.integers(0, 3000), st.integers(1, 40)),
    st.builds(lambda at, n: ("gone", at, n), st.just(0), st.just(0)),
)


def damaged(line: bytes, damage: tuple[str, int, int]) -> bytes:
    kind, at, count = damage
    at %= len(line)
    match kind:
        case "cut":
            return line[:at]
        case "nul":
            return line[:at] + b"\0" * count + line[at + count :]
        case "newline":
            return line[:at] + b"\n" + line[at:]
        case "noise":
            return line[:at] + b'\xff\x00{["\\'[: count % 6 + 1] + line[at + count :]
    return b""


@settings(max_examples=400, deadline=None)
@given(st.integers(0, len(WRITTEN) - 1), DAMAGE)
def test_damage_of_one_line_loses_nothing_of_another(at: int, damage: tuple[str, int, int]) -> None:
    lost = {2: "r1", 3: "r1", 5: "r2", 6: "r2", 8: "r3", 9: "r3"}.get(at)
    session = read(b"\n".join([*WRITTEN[:at], damaged(WRITTEN[at], damage), *WRITTEN[at + 1 :]]) + b"\n")
    whole = {turn.message_id: turn for turn in read(WHOLE).turns}
    kept = {turn.message_id: turn for turn in session.turns}
    for name, turn in whole.items():
        if name != lost and not (at == 4 and name == "r1"):
            assert kept[name] == turn
    if lost and at in (3, 6, 9):  # the message is lost, but not what was billed
        assert kept[lost].usage == whole[lost].usage
    if at not in (1, 7):
        assert [exchange.user_input for exchange in session.exchanges] == ["Go", "On"]


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(broken(REAL_LINES))
def test_reading_damaged_files_never_raises(main: bytes) -> None:
    session = copilot.session_of(source(main, name=PATH))
    responses, totals = copilot.billed_of(source(main, name=PATH))
    assert total(response.usage for response in responses) == total(turn.usage for turn in session.turns)
    assert [reported.total for reported in totals] == list(session.totals)
    copilot.parent_of(source(main, name=PATH))
    assert [exchange.number for exchange in session.exchanges] == list(range(1, len(session.exchanges) + 1))
    repr(session).encode()
    for call in session.tool_calls:
        (call.result or "").encode()


# ---------------------------------------------------------------- files


def home_with(root: Path, *names: str, data: bytes = WHOLE) -> None:
    for name in names:
        path = root / ".copilot" / "session-state" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


def test_sessions_of_older_versions_are_single_files(tmp_path: Path) -> None:
    other = NAME.replace("1f5a", "2f5a")
    home_with(tmp_path / "home", PATH, f"{NAME}.jsonl", f"{other}.jsonl", data=events(asked("Go")))
    sessions = [copilot.session_of(files) for files in sources_of(AGENT, tmp_path)]
    assert [session.id for session in sessions] == [NAME, other]


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("id: x\nname: List the files\nuser_named: false\n", "List the files"),
        ("name: 'It''s a \u2028 name'\n", "It's a \u2028 name"),
        ('name: "a\\Lb \\"c\\" \\u00e9\\x41"\n', 'a\u2028b "c" \xe9A'),
        ("name: two\n  lines\nother: x\n", "two lines"),
        ("name: |-\n  two\n  lines\n", "two\nlines"),
        ("name: >-\n  two\n  lines\n", "two lines"),
        ("summary: An older name\n", "An older name"),
        ("name: null\n", "Go"),
        ("name:\n", "Go"),
        ("\0\0", "Go"),
    ],
)
def test_the_title_is_that_of_the_description(text: str, title: str, tmp_path: Path) -> None:
    home_with(tmp_path / "home", PATH)
    (tmp_path / "home/.copilot/session-state" / NAME / "workspace.yaml").write_text(text)
    [files] = sources_of(AGENT, tmp_path)
    assert copilot.session_of(files).title == title


def test_the_catalog_lists_no_sub_agent_and_counts_all(home: Path) -> None:
    shutil.copytree(VERSION / "nested_agents/home", home, dirs_exist_ok=True)
    with Catalog.open(home / ".agent-logger") as catalog:
        [row] = catalog.sessions()
    assert (row.agent, row.title, row.exchanges) == (AGENT, "Ask helpers", 1)
    assert row.usage == truth_of(VERSION / "nested_agents", "main", "subagent")


def test_the_catalog_counts_the_totals_of_older_versions(home: Path) -> None:
    home_with(home, PATH, data=events(START, asked("Go"), said("One"), shut_down(100, 5, 60)))
    with Catalog.open(home / ".agent-logger") as catalog:
        [row] = catalog.sessions()
    assert row.usage == Usage(input_tokens=40, output_tokens=5, cache_read_tokens=60)
