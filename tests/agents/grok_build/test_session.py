"""Grok Build's sessions: updates without usage, and a total for each prompt."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from agent_logger.agents.grok_build import AGENT
from agent_logger.agents.grok_build import session as grok
from agent_logger.agents.source_files import File, SourceFiles
from agent_logger.catalog.ledger.ledger import Ledger
from agent_logger.files.sources import Source, StampCache
from agent_logger.model.session import Session, Usage
from tests.agents.foreign import DATA, broken, entries, lines, scenarios, shown, source, total
from tests.agents.recorded import read_home, recording

FOLDERS = scenarios("grok-build")
RECORDED = DATA / "grok-build/1.0.41"
REAL_LINES = [
    line
    for path in sorted(DATA.glob("grok-build/*/*/home/**/updates.jsonl"))
    for line in path.read_bytes().split(b"\n")
    if line and len(line) < 4000
]
IN_FILE = ("main", "subagent")  # not the calls for titles, nor those for summaries


def read_all(scenario: str, home: str = "home") -> list[Session]:
    return [session for session, _ in read_home(AGENT, RECORDED / scenario / home).values()]


def read_real(scenario: str, home: str = "home") -> Session:
    [session] = read_all(scenario, home)
    return session


# ---------------------------------------------------------------- real files


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.relative_to(DATA).as_posix())
def test_the_tokens_of_all_prompts_are_counted_once_over_all_files(folder: Path) -> None:
    ledger, sessions = Ledger(), read_home(AGENT, folder / "home")
    for item in AGENT.discover([folder / "home/.grok"], StampCache()):
        responses, totals = AGENT.billed_of(AGENT.open_session(item))
        ledger.add(responses)
        ledger.add_totals(totals)
    expected = recording(folder).usage(IN_FILE)
    assert total(row.usage for row in ledger.rows()) == expected
    assert total(session.usage for session, _ in sessions.values()) == expected


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.relative_to(DATA).as_posix())
def test_no_response_has_a_usage_of_its_own(folder: Path) -> None:
    for session, responses in read_home(AGENT, folder / "home").values():
        assert all(turn.usage is None and turn.message_id is None for turn in session.turns)
        unknown = [turn for turn in session.turns if turn.is_billed]
        assert [(response.at, response.thread, response.usage) for response in responses] == [
            (turn.started, turn.thread, None) for turn in unknown
        ]


def test_the_conversation_and_its_tools_match_the_scripted_scenario() -> None:
    session = read_real("tools")
    assert shown(session) == [
        (
            "List the files",
            [
                ["I will look.", ">run_terminal_command", ">read_file", "<", "<"],
                [">read_file", "<failed"],
                ["Two files; missing.txt is not there."],
            ],
        ),
        ("What is the function called?", [["The function is greet."]]),
    ]
    assert (session.id, session.title, session.project) == (
        "01a1e2bc-ac7a-7291-98e7-0f8cbac37ecb",
        "A later title 0",
        "/home/user/project",
    )
    assert [call.kind for call in session.tool_calls] == ["shell", "read", "read"]
    assert session.tool_calls[0].result == "README.md\nhello.py\n"
    assert {turn.model for turn in session.turns} == {"gpt-fake-1"}
    totals = [(total.exchange, total.models[0].usage) for total in session.totals]
    assert totals == [
        (1, Usage(input_tokens=2737, output_tokens=641, cache_read_tokens=12032)),
        (2, Usage(input_tokens=417, output_tokens=39, cache_read_tokens=3968)),
    ]


def test_sub_agents_are_threads_whose_tokens_the_parents_total_includes() -> None:
    session = read_real("waiting")
    assert [exchange.user_input for exchange in session.exchanges] == ["Ask two agents", "Ask one more"]
    calls = {call.id: call.input["description"] for call in session.tool_calls if call.name == "spawn_subagent"}
    assert {agent.tool_use_id: agent.description for agent in session.agents} == calls
    assert {agent.kind for agent in session.agents} == {"explore", "general-purpose"}
    assert [total.exchange for total in session.totals] == [1, 2]
    threads = {agent.thread for agent in session.agents}
    assert {turn.thread for turn in session.turns} == {"main", *threads}


def test_sub_agents_in_the_background_count_beside_the_totals_that_leave_them_out() -> None:
    session = read_real("subagents")
    assert [(exchange.user_input, exchange.origin) for exchange in session.exchanges] == [
        ("Ask two agents", None),
        (None, "subagent"),  # the end of one woke the agent
        ("Ask one more", None),
    ]
    assert session.usage == recording(RECORDED / "subagents").usage(IN_FILE)
    assert len(session.totals) == 4  # of three prompts, the second with two sub-agents, and of the third sub-agent


def test_a_fork_has_what_came_after_it() -> None:
    sessions = {session.exchanges[-1].user_input: session for session in read_all("fork")}
    inputs = {name: [item.user_input for item in session.exchanges] for name, session in sessions.items()}
    assert inputs == {
        "Source goes on": ["First question", "Source goes on"],
        "Fork goes on": ["Fork it", "Fork goes on"],
        "Fork of the fork": ["Fork of the fork"],
    }
    first, fork, other = (sessions[name] for name in inputs)
    assert [session.parent for session in sessions.values()].count(None) == 1
    assert {fork.parent, other.parent} - {None} <= {session.id for session in sessions.values()}
    assert sessions["Fork of the fork"].parent == sessions["Fork goes on"].id
    assert sessions["Fork goes on"].parent == sessions["Source goes on"].id
    assert [turn.model for turn in sessions["Fork goes on"].turns] == ["gpt-fake-1", "gpt-fake-2"]
    assert first.id in {session.id for session in sessions.values()}


def test_failed_cut_and_killed_prompts_keep_what_arrived() -> None:
    session = read_real("failures")
    assert [(exchange.user_input, exchange.end_reason) for exchange in session.exchanges] == [
        ("Retry please", "result"),
        ("Fail please", "failed"),
        ("Again", "result"),
        ("Cut it", "result"),
        ("Break it", "result"),
        ("Run it", "result"),
        ("Run something long", "cut"),
        ("After that", "result"),
    ]
    assert shown(session)[3][1] == [["This answer is cut i"], ["Whole at last."]]
    assert shown(session)[4][1] == [["This answer fail"], ["After the error event."]]
    cut, whole = session.exchanges[3].turns
    assert (cut.complete, cut.is_billed, whole.complete, whole.is_billed) == (False, True, True, False)
    assert session.exchanges[1].turns[0].error == (
        "API error (status 400 Bad Request): invalid_request_error: No such thing"
    )
    [killed] = session.exchanges[6].turns  # was billed; nobody wrote down how much
    assert (killed.usage, killed.is_billed) == (None, True)
    assert [call.is_error for call in session.tool_calls] == [True, False]


def test_a_live_session_shows_its_turns_before_the_prompt_is_answered() -> None:
    exchange = read_real("failures", "home_live").exchanges[-1]
    assert (exchange.user_input, exchange.end_reason) == ("Run something long", None)
    assert [block.text for block in exchange.turns[0].blocks if block.kind == "text"] == ["Sleeping."]


def test_compactions_thoughts_and_line_separators_are_read() -> None:
    [compaction] = read_real("compact").compactions
    assert compaction.tokens_before
    assert shown(read_real("anthropic"))[0][1][0] == ["(I should look.)", "Looking.", ">run_terminal_command", "<"]
    session = read_real("parallel")
    assert session.exchanges[0].user_input == "Do\u2028five things\nin two lines"
    assert [call.is_error for call in session.tool_calls] == [False, True, False, True, *[False] * 4]
    results = {call.name: call.result for call in session.tool_calls}
    assert results["write"] == "The file /home/user/project/note.txt has been created."
    assert results["list_dir"] and "- README.md" in results["list_dir"]


# ---------------------------------------------------------------- damage


def copied(tmp_path: Path, scenario: str) -> tuple[Path, Path]:
    home = tmp_path / "recorded"
    shutil.copytree(RECORDED / scenario / "home", home)
    [path] = home.rglob("updates.jsonl")
    return home, path


@pytest.mark.parametrize("kind", ["cut", "NUL", "half", "glued", "separator"])
def test_damage_loses_only_what_is_damaged(kind: str, tmp_path: Path) -> None:
    home, path = copied(tmp_path, "tools")
    written = path.read_bytes().split(b"\n")
    at = next(number for number, line in enumerate(written) if b"agent_message_chunk" in line)
    half, following = written[at][: len(written[at]) // 2], written[at + 1]
    written[at : at + 2] = {
        "cut": [half, following],
        "NUL": [b"\0" * len(half), following],
        "half": [half, b"{", b"5", following],
        "glued": [half + following],
        "separator": ["{\u2028".encode(), following],
    }[kind]
    path.write_bytes(b"\n".join(written))
    [(session, _)] = read_home(AGENT, home).values()
    assert shown(session)[0][1][0] == [">run_terminal_command", ">read_file", "<", "<"]  # only the text is lost
    assert shown(session)[1:] == shown(read_real("tools"))[1:]
    assert session.usage == recording(RECORDED / "tools").usage(IN_FILE)


def test_a_lost_total_is_read_from_its_copy(tmp_path: Path) -> None:
    home, path = copied(tmp_path, "tools")
    path.write_bytes(b"\n".join(line for line in path.read_bytes().split(b"\n") if b"turn_completed" not in line))
    [(session, _)] = read_home(AGENT, home).values()
    assert session.usage == recording(RECORDED / "tools").usage(IN_FILE)
    assert [total.exchange for total in session.totals] == [1, 2]


@pytest.mark.parametrize("name", ["summary.json", "usage.json", "chat_history.jsonl"])
def test_a_damaged_document_loses_no_tokens(name: str, tmp_path: Path) -> None:
    home, path = copied(tmp_path, "failures")
    (path.parent / name).write_text('{"info": 5')
    [(session, _)] = read_home(AGENT, home).values()
    assert session.usage == recording(RECORDED / "failures").usage(IN_FILE)


def test_a_sub_agent_whose_starter_is_gone_is_a_session(tmp_path: Path) -> None:
    home = tmp_path / "recorded"
    shutil.copytree(RECORDED / "waiting/home", home)
    [starter] = [folder.parent for folder in home.rglob("subagents")]
    shutil.rmtree(starter)
    sessions = [session for session, _ in read_home(AGENT, home).values()]
    assert {session.exchanges[0].user_input for session in sessions} == {
        "SUBTASK-ALPHA: list the files",
        "SUBTASK-BETA: read hello.py",
        "SUBTASK-GAMMA: fail",
    }


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(broken(REAL_LINES))
def test_reading_damaged_files_never_raises(main: bytes) -> None:
    session = grok.session_of(source(main))
    responses = list(grok.responses_of(source(main)))
    assert len(responses) == sum(turn.is_billed for turn in session.turns)
    assert [item.total for item in grok.billed_of(source(main))[1]] == list(session.totals)
    assert [exchange.number for exchange in session.exchanges] == list(range(1, len(session.exchanges) + 1))
    repr(session).encode()


# ---------------------------------------------------------------- single lines

SESSION, CHILD, GRANDCHILD = (f"01a1e2bc-ac7a-7291-98e7-0f8cbac3000{number}" for number in range(3))


def update(kind: str, at: int, session: str = SESSION, **fields: Any) -> dict[str, Any]:
    about = {"eventId": f"{session}-{at}", "agentTimestampMs": 1_795_000_000_000 + at}
    if stream := fields.pop("stream", None):
        about |= {"promptId": fields.pop("prompt", "p"), "streamStartMs": stream}
    params = {"sessionId": session, "update": {"sessionUpdate": kind, **fields}, "_meta": about}
    return {"timestamp": 1_795_000_000, "method": "session/update", "params": params}


def talk(session: str, start: int, calls: int, own: int, tokens: int, end: int) -> list[dict[str, Any]]:
    """A prompt with an answer, and its total."""
    used = {"inputTokens": tokens, "outputTokens": tokens, "totalTokens": 2 * tokens}
    usage = {**used, "modelCalls": calls, "numTurns": own, "modelUsage": {"m": used}}
    text = {"content": {"type": "text", "text": "Hi"}}
    return [
        update("user_message_chunk", start, session, content={"type": "text", "text": "Go"}),
        update("agent_message_chunk", start + 1, session, stream=start, prompt=f"p{start}", **text),
        update("turn_completed", end, session, prompt_id=f"p{start}", stop_reason="end_turn", usage=usage),
    ]


def file_of(name: str, data: bytes) -> File:
    return File(name, entries(data), lambda: [data])


def meta(parent: str, child: str) -> File:
    about = {"child_session_id": child, "parent_session_id": parent}
    return file_of(f"{parent}/subagents/{child}/meta.json", json.dumps(about).encode())


def tree(*files: tuple[str, list[dict[str, Any]]], started: list[tuple[str, str]]) -> Session:
    main, *others = (file_of(f"{name}/updates.jsonl", lines(*values)) for name, values in files)
    return grok.session_of(SourceFiles(main, [*others, *(meta(*pair) for pair in started)]))


def test_a_total_includes_sub_agents_of_sub_agents() -> None:
    session = tree(
        (SESSION, talk(SESSION, 0, 4, 1, 1000, 900)),
        (CHILD, talk(CHILD, 100, 3, 1, 300, 500)),
        (GRANDCHILD, talk(GRANDCHILD, 200, 2, 2, 200, 400)),
        started=[(SESSION, CHILD), (CHILD, GRANDCHILD)],
    )
    assert session.usage == Usage(input_tokens=1000, output_tokens=1000)
    assert [(agent.thread, agent.parent_thread) for agent in session.agents] == [
        (f"agent:{CHILD}", "main"),
        (f"agent:{GRANDCHILD}", f"agent:{CHILD}"),
    ]
    assert [len(exchange.turns) for exchange in session.exchanges] == [3]


@pytest.mark.parametrize(
    ("calls", "end", "counted"),
    [
        pytest.param(3, 500, 1000, id="included"),
        pytest.param(1, 500, 1300, id="the total has its own requests only"),
        pytest.param(3, 90_000, 1300, id="it ended after the prompt"),
    ],
)
def test_a_sub_agent_counts_once(calls: int, end: int, counted: int) -> None:
    session = tree(
        (SESSION, talk(SESSION, 0, calls, 1, 1000, 900)),
        (CHILD, talk(CHILD, 100, 2, 2, 300, end)),
        started=[(SESSION, CHILD)],
    )
    assert session.usage.input_tokens == counted


def test_sub_agents_that_name_each_other_are_read() -> None:
    session = tree(
        (SESSION, talk(SESSION, 0, 1, 1, 10, 900)),
        (CHILD, talk(CHILD, 100, 1, 1, 5, 500)),
        started=[(CHILD, CHILD)],
    )
    assert session.usage.input_tokens == 15


@pytest.mark.parametrize("child", ["../../elsewhere/other", "{outside}/elsewhere/other", "..", "."])
def test_a_name_in_a_session_leads_to_no_file_elsewhere(child: str, tmp_path: Path) -> None:
    session, outside = tmp_path / "sessions/project/session", tmp_path / "elsewhere/other"
    for folder in (session, outside, session.parent):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "updates.jsonl").write_bytes(lines(*talk(folder.name, 1, 1, 1, 1, 2)))
    about = session / "subagents/agent/meta.json"
    about.parent.mkdir(parents=True)
    about.write_text(json.dumps({"child_session_id": child.format(outside=tmp_path)}))
    path = str(session / "updates.jsonl")
    opened = AGENT.open_session(Source(path, AGENT.name, path, "session", 0.0, 0, ""))
    assert [file.name for file in opened.others] == ["session/subagents/agent/meta.json"]


def test_output_of_tools_is_read_from_bytes() -> None:
    call = update("tool_call", 2, toolCallId="c", title="grep", rawInput={}, stream=1)
    ended: dict[str, Any] = {"status": "completed", "rawOutput": {"type": "GrepSearch", "stdout": list("für".encode())}}
    result = update("tool_call_update", 3, toolCallId="c", **ended)
    [file] = [source(lines(update("user_message_chunk", 0, content={"type": "text", "text": "Go"}), call, result))]
    [found] = grok.session_of(file).tool_calls
    assert (found.name, found.result, found.is_error) == ("grep", "für", False)
