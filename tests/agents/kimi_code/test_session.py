"""Kimi Code's sessions: a log of events, in which everything is there twice or three times."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from agent_logger.agents.kimi_code import AGENT
from agent_logger.agents.kimi_code import session as kimi
from agent_logger.agents.source_files import SourceFiles
from agent_logger.catalog.ledger.ledger import Ledger
from agent_logger.files.sources import StampCache
from agent_logger.model.session import Session, Usage
from tests.agents.foreign import DATA, broken, lines, scenarios, shown, source, total
from tests.agents.recorded import read_home, recording

FOLDERS = scenarios("kimi-code")
RECORDED = DATA / "kimi-code/2.1.0"
REAL_LINES = [
    line
    for path in sorted(DATA.glob("kimi-code/*/*/home/**/wire.jsonl"))
    for line in path.read_bytes().split(b"\n")
    if line and len(line) < 4000
]
IN_FILE = ("main", "subagent", "compact")


def read_real(scenario: str, home: str = "home") -> Session:
    [(session, _)] = read_home(AGENT, RECORDED / scenario / home).values()
    return session


# ---------------------------------------------------------------- real files


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.relative_to(DATA).as_posix())
def test_every_complete_response_is_billed_once_over_all_files(folder: Path) -> None:
    ledger = Ledger()
    for _, responses in read_home(AGENT, folder / "home").values():
        ledger.add(responses)
    rows = [row for row in ledger.rows() if row.usage]
    expected = recording(folder)
    assert total(row.usage for row in rows) == expected.usage(IN_FILE)
    assert len(rows) == len(expected.of(IN_FILE))


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.relative_to(DATA).as_posix())
def test_responses_match_the_billed_turns_of_the_session(folder: Path) -> None:
    for session, responses in read_home(AGENT, folder / "home").values():
        billed = [turn for turn in session.turns if turn.is_billed]
        assert sorted(
            repr((response.message_id, response.usage, response.model, response.at, response.thread, response.final))
            for response in responses
        ) == sorted(
            repr((turn.message_id, turn.usage, turn.model, turn.started, turn.thread, turn.complete)) for turn in billed
        )
        assert {(response.session, response.project) for response in responses} == {(session.id, session.project)}


def test_the_conversation_and_its_tools_match_the_scripted_scenario() -> None:
    session = read_real("tools")
    assert shown(session) == [
        (
            "List the files",
            [
                ["I will look.", ">Bash", ">Read", "<", "<"],
                [">Read", "<failed"],
                ["Two files; missing.txt is not there."],
            ],
        ),
        ("What is the function called?", [["The function is greet."]]),
    ]
    assert (session.id, session.title, session.project, session.parent) == (
        "session_4a191189-894c-4bda-9e23-65b8bfa4d924",
        "List the files",
        "/home/user/project",
        None,
    )
    assert [exchange.end_reason for exchange in session.exchanges] == ["result", "result"]
    assert [call.kind for call in session.tool_calls] == ["shell", "read", "read"]
    assert session.tool_calls[0].result == "README.md\nhello.py\n"
    turn = session.turns[0]
    assert (turn.model, turn.stop_reason) == ("gpt-fake-1", "tool_use")  # the alias of the model is `fake`
    assert turn.started and turn.started.isoformat() == "2026-11-16T05:02:10.008000+00:00"


def test_response_ids_are_those_of_the_provider() -> None:
    for scenario in ("tools", "subagents", "anthropic"):
        [(_, responses)] = read_home(AGENT, RECORDED / scenario / "home").values()
        ids = {response.id for response in recording(RECORDED / scenario).of(IN_FILE)}
        assert {response.message_id for response in responses} == ids
    assert {response.family for response in responses} == {"anthropic"}


def test_sub_agents_are_threads_of_the_session_that_started_them() -> None:
    session = read_real("subagents")
    assert [exchange.user_input for exchange in session.exchanges] == ["Ask two agents", "Ask one more"]
    agents = {agent.thread: (agent.kind, agent.description, agent.parent_thread) for agent in session.agents}
    assert agents == {
        "agent:agent-0": ("explore", "Alpha", "main"),
        "agent:agent-1": ("coder", "Beta", "main"),
        "agent:agent-2": ("coder", "Gamma", "main"),
    }
    calls = {call.id: call.input["description"] for call in session.tool_calls if call.name == "Agent"}
    assert {agent.tool_use_id: agent.description for agent in session.agents} == calls
    threads = [{turn.thread for turn in exchange.turns} for exchange in session.exchanges]
    assert threads == [{"main", "agent:agent-0", "agent:agent-1"}, {"main", "agent:agent-2"}]


def test_forks_name_their_parents_and_their_shared_responses_count_once() -> None:
    sessions = {session.id: session for session, _ in read_home(AGENT, RECORDED / "fork/home").values()}
    inputs = {
        session.exchanges[-1].user_input: (session, [exchange.user_input for exchange in session.exchanges])
        for session in sessions.values()
    }
    first, fork = inputs["Source goes on"][0], inputs["Fork goes on"][0]
    assert inputs["Fork of the fork"][1] == ["First question", "Fork goes on", "Fork of the fork"]
    parents = (first.parent, fork.parent, inputs["Fork of the fork"][0].parent)
    assert parents == (None, first.id, fork.id)
    for item in AGENT.discover([RECORDED / "fork/home/.kimi-code"], StampCache()):
        assert AGENT.parent_of(AGENT.open_session(item)) == sessions[item.name].parent


def test_failed_cut_and_killed_steps_keep_what_arrived() -> None:
    session = read_real("failures")
    assert [(exchange.user_input, exchange.end_reason) for exchange in session.exchanges] == [
        ("Retry please", "result"),
        ("Fail please", "failed"),
        ("Again", "result"),
        ("Cut it", "result"),
        ("Break it", "result"),
        ("Run it", "result"),
        ("Run something long", "input"),  # killed
        ("After that", "result"),
    ]
    assert shown(session)[3][1] == [["This answer is cut i"], ["Whole at last."]]
    cut, whole = session.exchanges[3].turns
    assert (cut.complete, cut.is_billed, cut.usage, cut.error) == (False, True, None, "terminated")
    assert (whole.complete, bool(whole.usage)) == (True, True)
    refused = session.exchanges[1].turns[0]
    assert (refused.is_billed, refused.error) == (False, "[provider.api_error] 400 No such thing")
    killed = session.exchanges[6].turns[0]
    assert (killed.complete, killed.message_id, bool(killed.usage)) == (True, None, True)
    assert [call.is_error for call in session.tool_calls] == [True, False]


def test_a_compaction_is_a_side_turn_with_its_summary() -> None:
    session = read_real("compact")
    [compaction] = session.compactions
    assert (compaction.trigger, compaction.thread, compaction.tokens_before) == ("auto", "main", 20394)
    [turn] = session.side_turns
    assert turn.usage == recording(RECORDED / "compact").usage(["compact"])
    assert turn.blocks[0].text == "## Summary\nThe user counts."
    assert [exchange.user_input for exchange in session.exchanges] == ["Count one", "Count two", "Count three"]


def test_a_live_session_shows_its_turns_before_the_prompt_is_answered() -> None:
    session = read_real("live", "home_live")
    assert shown(session)[1] == ("Do work", [["Working.", ">Bash", "<"], ["Still.", ">Bash"]])
    assert (session.exchanges[1].complete, session.exchanges[1].end_reason) == (False, None)
    assert session.usage == recording(RECORDED / "live").usage(IN_FILE)


def test_thoughts_and_line_separators_are_read() -> None:
    assert shown(read_real("anthropic"))[0][1][0] == ["(I should look.)", "Looking.", ">Bash", "<"]
    session = read_real("parallel")
    assert session.exchanges[0].user_input == "Do\u2028five things\nin two lines"
    assert shown(session)[0][1][-1] == ["Done\u2028with it."]
    assert len(session.tool_calls) == 8


# ---------------------------------------------------------------- damage


def copied(tmp_path: Path, scenario: str) -> Path:
    home = tmp_path / "recorded"
    shutil.copytree(RECORDED / scenario / "home", home)
    return home


@pytest.mark.parametrize("kind", ["cut", "NUL", "half", "glued", "separator"])
def test_damage_loses_only_what_is_damaged(kind: str, tmp_path: Path) -> None:
    home = copied(tmp_path, "tools")
    [path] = home.rglob("main/wire.jsonl")
    written = path.read_bytes().split(b"\n")
    at = next(number for number, line in enumerate(written) if b'"type":"content.part"' in line)
    half, following = written[at][: len(written[at]) // 2], written[at + 1]
    written[at : at + 2] = {
        "cut": [half, following],
        "NUL": [b"\0" * len(half), following],
        "half": [half, b"{", b"5", following],
        "glued": [half + following],
        "separator": ["{\u2028".encode(), following],
    }[kind]
    path.write_bytes(b"\n".join(written))
    [(session, responses)] = read_home(AGENT, home).values()
    conversation = shown(session)
    assert conversation[0][1][0] == [">Bash", ">Read", "<", "<"]  # only the text is lost
    assert conversation[1:] == shown(read_real("tools"))[1:]
    assert total(response.usage for response in responses) == recording(RECORDED / "tools").usage(IN_FILE)


def test_a_session_without_its_description_keeps_its_id(tmp_path: Path) -> None:
    home = copied(tmp_path, "tools")
    next(home.rglob("state.json")).write_text("{")
    [(session, _)] = read_home(AGENT, home).values()
    assert (session.title, session.project) == ("List the files", None)


def test_a_lost_prompt_is_read_from_its_copy(tmp_path: Path) -> None:
    home = copied(tmp_path, "tools")
    [path] = home.rglob("main/wire.jsonl")
    path.write_bytes(b"\n".join(line for line in path.read_bytes().split(b"\n") if b'"turn.prompt"' not in line))
    [(session, _)] = read_home(AGENT, home).values()
    assert shown(session) == shown(read_real("tools"))


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(broken(REAL_LINES))
def test_reading_damaged_files_never_raises(main: bytes) -> None:
    session = kimi.session_of(source(main))
    responses = list(kimi.responses_of(source(main)))
    assert total(response.usage for response in responses) == total(turn.usage for turn in session.turns)
    assert len(responses) == sum(turn.is_billed for turn in session.turns)
    assert [exchange.number for exchange in session.exchanges] == list(range(1, len(session.exchanges) + 1))
    repr(session).encode()


# ---------------------------------------------------------------- single lines


def prompt(text: Any, prompt_id: str = "p", **origin: Any) -> dict[str, Any]:
    content = [{"type": "text", "text": text}] if isinstance(text, str) else text
    return {
        "type": "turn.prompt",
        "input": content,
        "origin": {"kind": "user", **origin},
        "promptId": prompt_id,
        "time": 1,
    }


def step(name: str, *events: Any, time: int = 2) -> list[dict[str, Any]]:
    begun = {"type": "step.begin", "uuid": name}
    return [{"type": "context.append_loop_event", "event": event, "time": time} for event in (begun, *events)]


def say(name: str, text: str) -> dict[str, Any]:
    return {"type": "content.part", "stepUuid": name, "part": {"type": "text", "text": text}}


def read(*values: Any) -> Session:
    file: SourceFiles = source(lines(*values))
    return kimi.session_of(file)


def test_prompts_that_were_taken_back_are_marked() -> None:
    session = read(
        prompt("One", "1"),
        *step("a", say("a", "1")),
        prompt("Two", "2"),
        {"type": "context.undo", "count": 1},
        prompt("Three", "3"),
    )
    assert [(exchange.user_input, exchange.left) for exchange in session.exchanges] == [
        ("One", False),
        ("Two", True),
        ("Three", False),
    ]


@pytest.mark.parametrize(
    ("origin", "expected"),
    [
        ({}, None),
        ({"kind": "skill_activation", "trigger": "user-slash"}, None),
        ({"kind": "skill_activation", "trigger": "model"}, "skill_activation"),
        ({"kind": "system_trigger", "name": "cron"}, "cron"),
    ],
)
def test_the_origin_of_a_prompt_says_whether_a_person_typed_it(origin: Any, expected: str | None) -> None:
    [exchange] = read(prompt("Go", **origin)).exchanges
    assert (exchange.user_input, exchange.origin) == ("Go", expected)


def test_reminders_begin_no_exchange() -> None:
    message = {"role": "user", "id": "r", "content": "Mind the date", "origin": {"kind": "injection"}}
    assert read({"type": "context.append_message", "message": message}).exchanges == []


def test_tokens_that_the_provider_did_not_count_are_unknown() -> None:
    zeros = {"inputOther": 0, "output": 0, "inputCacheRead": 0, "inputCacheCreation": 0}
    session = read(prompt("Go"), *step("a", say("a", "Hi")), {"type": "usage.record", "usage": zeros})
    [turn] = session.turns
    assert (turn.usage, turn.is_billed) == (None, True)
    assert session.usage == Usage()


def test_the_usage_of_a_step_is_taken_from_its_end_where_its_record_is_lost() -> None:
    end = {"type": "step.end", "uuid": "a", "messageId": "m", "finishReason": "end_turn"}
    usage = {"inputOther": 3, "output": 2, "inputCacheRead": 1, "inputCacheCreation": 0}
    [turn] = read(prompt("Go"), *step("a", say("a", "Hi"), {**end, "usage": usage})).turns
    assert turn.usage == Usage(input_tokens=3, output_tokens=2, cache_read_tokens=1)
    assert (turn.message_id, turn.complete) == ("m", True)


def test_a_file_that_is_no_main_file_is_not_taken_for_one() -> None:
    files = {path.parent.name: path.read_bytes()[:65536] for path in RECORDED.glob("subagents/home/**/wire.jsonl")}
    assert {name for name, first in files.items() if AGENT.recognises(first)} == {"main"}
    assert json.loads(files["main"].split(b"\n")[0])["type"] == "metadata"
