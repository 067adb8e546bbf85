"""Droid's sessions: what the recordings of the real client say, and what is left of damaged copies."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from agent_logger.agents import registry
from agent_logger.agents.claude_code import AGENT as CLAUDE_CODE
from agent_logger.agents.droid import AGENT
from agent_logger.agents.droid.files import recognises
from agent_logger.files.sources import StampCache, source_at
from agent_logger.model.responses import ModelResponse, ReportedTotal
from agent_logger.model.session import Session, Usage
from tests.agents.foreign import DATA
from tests.agents.recorded import RecordedUsage, read_home, recording

RECORDED = DATA / "droid/0.225.2"
SCENARIOS = sorted(folder.name for folder in RECORDED.iterdir())


class ExpectedSession(msgspec.Struct):
    id: str
    kind: str
    title: str
    new_exchanges: list[str]
    new_responses: list[str]
    new_tool_calls: int
    totals: RecordedUsage
    parent: str | None = None
    fork_of: str | None = None


def expected(scenario: str) -> list[ExpectedSession]:
    manifest = json.loads((RECORDED / scenario / "manifest.json").read_bytes())
    return msgspec.convert(manifest["expected_sessions"], list[ExpectedSession])


def billed(home: Path) -> dict[str, tuple[Session, list[ModelResponse], list[ReportedTotal]]]:
    read = {}
    for source in AGENT.discover([home / ".factory"], StampCache()):
        responses, totals = AGENT.billed_of(AGENT.open_session(source))
        read[source.name] = AGENT.session_of(AGENT.open_session(source)), responses, totals
    return read


def total_of(totals: list[ReportedTotal]) -> Usage:
    models = (model for total in totals for model in total.total.models)
    return sum((model.usage for model in models if model.usage), Usage())


@pytest.fixture
def copy(tmp_path: Path) -> Callable[[str], Path]:
    def copied(scenario: str) -> Path:
        return Path(shutil.copytree(RECORDED / scenario / "home", tmp_path / "home", dirs_exist_ok=True))

    return copied


def lines_in(home: Path, session: str) -> Path:
    [path] = home.rglob(f"{session}.jsonl")
    return path


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_every_session_is_as_its_recording_says(scenario: str) -> None:
    read = billed(RECORDED / scenario / "home")
    sessions = {session.id: session for session in expected(scenario)}
    assert set(read) == {name for name, session in sessions.items() if session.kind != "subagent"}
    for name, (session, responses, totals) in read.items():
        agents = [other for other in sessions.values() if other.parent == name]
        assert session.id == name
        assert (session.title, session.parent) == (sessions[name].title, sessions[name].fork_of)
        assert session.project == "/home/user/project"
        assert [exchange.user_input for exchange in session.exchanges] == sessions[name].new_exchanges
        usages = [each.totals.as_usage() for each in (sessions[name], *agents)]
        assert total_of(totals) == sum(usages, Usage())
        assert sum((item.usage for item in session.not_itemised if item.usage), Usage()) == sum(usages, Usage())
        assert responses == []
        calls = sum(len(turn.tool_calls) for turn in session.turns)
        assert calls == sum(each.new_tool_calls for each in (sessions[name], *agents))
        assert {agent.thread for agent in session.agents} == {f"agent:{agent.id}" for agent in agents}


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_turns_are_the_responses_that_ended(scenario: str) -> None:
    complete = recording(RECORDED / scenario).of({"main", "subagent"})
    turns = [turn for session, _, _ in billed(RECORDED / scenario / "home").values() for turn in session.turns]
    assert len(turns) == len(complete)
    assert all(turn.usage is None and not turn.unread_usage for turn in turns)
    named = {turn.message_id for turn in turns if turn.message_id}
    assert named == {response.id for response in complete if str(response.id).startswith("chatcmpl-")}


def test_a_sub_agent_is_a_thread_of_the_exchange_that_started_it() -> None:
    [(session, _, _)] = billed(RECORDED / "subagents/home").values()
    [exchange] = session.exchanges
    assert [(agent.kind, agent.description) for agent in session.agents] == [
        ("worker", "Read hello"),
        ("worker", "Find files"),
    ]
    calls = {call.id for turn in exchange.turns for call in turn.tool_calls if call.name == "Task"}
    assert {agent.tool_use_id for agent in session.agents} == calls
    assert len([turn for turn in exchange.turns if turn.thread == "main"]) == 4  # each end wakes the agent


def test_failed_tools_and_exchanges_are_marked() -> None:
    sessions = [session for session, _, _ in billed(RECORDED / "failures/home").values()]
    [failed] = [session for session in sessions if session.title == "Exit code"]
    assert [call.is_error for turn in failed.turns for call in turn.tool_calls] == [True]
    assert [exchange.end_reason for exchange in failed.exchanges] == ["failed"]
    [killed] = [session for session, _, _ in billed(RECORDED / "killed/home").values()]
    assert [exchange.end_reason for exchange in killed.exchanges] == [None]


def test_thinking_is_read_from_each_api() -> None:
    for scenario, thought in (("anthropic", "Let me see."), ("responses_api", "Hm.")):
        [(session, _, _)] = billed(RECORDED / scenario / "home").values()
        first = session.turns[0].blocks[0]
        assert (first.kind, first.text) == ("thinking", thought)


def test_a_compaction_is_noted_and_its_call_is_in_the_total() -> None:
    [(session, _, totals)] = billed(RECORDED / "compact/home").values()
    assert [compaction.tokens_after for compaction in session.compactions] == [8, 3]
    assert recording(RECORDED / "compact").usage({"main"}) != total_of(totals)


# ---------------------------------------------------------------- damage and change


def test_a_session_without_settings_has_an_unknown_usage(copy: Callable[[str], Path]) -> None:
    home = copy("tools")
    for path in home.rglob("*.settings.json*"):
        path.unlink()
    [(session, responses, totals)] = billed(home).values()
    assert totals == []
    assert [response.usage for response in responses] == [None] * 4
    assert all(turn.unread_usage for turn in session.turns)


def test_settings_that_are_cut_still_count_what_can_be_read(copy: Callable[[str], Path]) -> None:
    home = copy("tools")
    [path] = home.rglob("*.settings.json")
    data = path.read_bytes()
    path.write_bytes(data[: data.index(b'"inclusiveTokenUsage"')])
    [(_, responses, totals)] = billed(home).values()
    assert (total_of(totals).output_tokens, responses) == (540, [])
    assert totals[0].total.models[0].model == "custom:fake-0"


def test_a_backup_of_the_settings_leaves_the_last_response_unknown(copy: Callable[[str], Path]) -> None:
    home = copy("tools")
    [path] = home.rglob("*.settings.json")
    path.write_bytes(b"\0" * 900)
    [(_, responses, totals)] = billed(home).values()
    assert total_of(totals).output_tokens == 540
    assert [response.message_id for response in responses] == ["chatcmpl-qVWRE7C7pm54YE6RaMXXNJ647jOnt"]


def test_zeros_do_not_stand_for_tokens_that_nobody_counted(copy: Callable[[str], Path]) -> None:
    home = copy("tools")
    for path in home.rglob("*.settings.json*"):
        settings = json.loads(path.read_bytes())
        settings["tokenUsage"] = dict.fromkeys(settings["tokenUsage"], 0)
        path.write_text(json.dumps(settings))
    [(_, responses, totals)] = billed(home).values()
    assert (len(responses), totals) == (4, [])


def test_a_total_of_several_models_belongs_to_none(copy: Callable[[str], Path]) -> None:
    home = copy("tools")
    [path] = home.rglob("*.jsonl")
    path.write_text(path.read_text().replace('"modelId":"custom:fake-0"', '"modelId":"gpt-5.6"', 1))
    [(_, _, totals)] = billed(home).values()
    assert [model.model for model in totals[0].total.models] == [None]


@pytest.mark.parametrize(
    "damage",
    [
        pytest.param(lambda line: line[: len(line) // 2], id="half"),
        pytest.param(lambda line: b"\0" * len(line), id="NUL"),
        pytest.param(lambda line: b"\xff" + line[1:], id="not UTF-8"),
    ],
)
@pytest.mark.parametrize("number", [0, 2, 5, 7, 9, 10])
def test_a_damaged_line_costs_only_itself(
    copy: Callable[[str], Path], damage: Callable[[bytes], bytes], number: int
) -> None:
    home = copy("tools")
    [path] = home.rglob("*.jsonl")
    whole = AGENT.session_of(AGENT.open_session(source_at("droid", path)))
    lines = path.read_bytes().split(b"\n")
    lines[number] = damage(lines[number])
    path.write_bytes(b"\n".join(lines))
    [(session, _, totals)] = billed(home).values()
    assert total_of(totals).output_tokens == 540
    is_turn = number in (5, 7, 10)
    assert len(session.turns) == len(whole.turns) - is_turn
    assert len(session.exchanges) == len(whole.exchanges) - (number == 9)
    assert session.project == (None if number == 0 else "/home/user/project")


def test_a_fork_whose_last_copy_is_lost_begins_at_its_own_first_message(copy: Callable[[str], Path]) -> None:
    home = copy("fork")
    _, fork, _ = expected("fork")
    path = lines_in(home, fork.id)
    lines = path.read_bytes().split(b"\n")
    forked_at = json.loads(lines[0])["forkedAtMessageId"].encode()
    path.write_bytes(b"\n".join(line for line in lines if not line.startswith(b'{"type":"message","id":"' + forked_at)))
    session, _, _ = billed(home)[fork.id]
    assert [exchange.user_input for exchange in session.exchanges] == fork.new_exchanges


def test_the_starter_of_a_sub_agent_is_known_from_its_settings_too(copy: Callable[[str], Path]) -> None:
    home = copy("subagents")
    _, agent, _ = expected("subagents")
    path = lines_in(home, agent.id)
    path.write_bytes(b"\0" * 40 + path.read_bytes()[40:])
    [(session, _, totals)] = billed(home).values()
    assert len(session.agents) == 2
    assert len(totals) == 3


def test_a_sub_agent_whose_files_are_gone_counts_as_its_parent_repeats_it(copy: Callable[[str], Path]) -> None:
    home = copy("subagents")
    main, found, read = expected("subagents")  # the parent repeats the first alone
    for path in home.rglob(f"{found.id}*"):
        path.unlink()
    [(_, _, totals)] = billed(home).values()
    usages = (session.totals.as_usage() for session in (main, found, read))
    assert total_of(totals) == sum(usages, Usage())


def test_a_side_question_is_a_session_of_its_own_and_counts_once(copy: Callable[[str], Path]) -> None:
    home = copy("fork")
    source, fork, _ = expected("fork")
    aside = home / ".factory/sessions/btw"
    aside.mkdir()
    for path in home.rglob(f"{fork.id}.*"):
        path.rename(aside / path.name)
    path = lines_in(home, fork.id)
    path.write_text(path.read_text().replace('"parent":', f'"callingSessionId":"{source.id}","parent":', 1))
    [settings] = home.rglob(f"{source.id}.settings.json")
    content = json.loads(settings.read_bytes())
    content["childInclusiveTokenUsageBySessionId"] = {fork.id: {"inputTokens": 2348, "outputTokens": 197}}
    settings.write_text(json.dumps(content))
    read = billed(home)
    assert read[fork.id][0].parent == source.id
    assert total_of(read[source.id][2]) == source.totals.as_usage()


# ---------------------------------------------------------------- files


def test_a_path_alone_leads_to_the_sub_agents() -> None:
    main, *agents = expected("subagents")
    source = source_at("droid", lines_in(RECORDED / "subagents/home", main.id))
    session = AGENT.session_of(AGENT.open_session(source))
    assert {agent.thread for agent in session.agents} == {f"agent:{agent.id}" for agent in agents}


def test_a_file_is_known_as_droids_and_not_as_claude_codes() -> None:
    main, agent, _ = expected("subagents")
    path = lines_in(RECORDED / "subagents/home", main.id)
    first = path.read_bytes()[:65536]
    assert registry.recognise("anything", first) is AGENT
    assert registry.recognise(str(path), first) is AGENT
    assert not CLAUDE_CODE.is_main_file(f"/x/{path.name}", first)
    assert not recognises(lines_in(RECORDED / "subagents/home", agent.id).read_bytes()[:65536])


def test_sessions_of_older_versions_had_no_folder_of_the_project(copy: Callable[[str], Path]) -> None:
    home = copy("tools")
    for path in (home / ".factory/sessions/-home-user-project").iterdir():
        path.rename(home / ".factory/sessions" / path.name)
    [(session, _, totals)] = billed(home).values()
    assert (session.title, total_of(totals).output_tokens) == ("List the files", 540)


def test_settings_that_change_alone_are_noticed(copy: Callable[[str], Path]) -> None:
    home = copy("tools")
    [before] = AGENT.discover([home / ".factory"], StampCache())
    [path] = home.rglob("*.settings.json")
    path.write_text(path.read_text() + "\n")
    [after] = AGENT.discover([home / ".factory"], StampCache())
    assert before.stamp != after.stamp


def test_all_sessions_are_found_by_name(copy: Callable[[str], Path]) -> None:
    read: dict[str, Any] = read_home(AGENT, copy("fork"))
    assert set(read) == {session.id for session in expected("fork")}
