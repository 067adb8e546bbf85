"""OpenHands' conversations: a document for each event, and a state that counts the responses."""

import json
import shutil
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_logger.agents.openhands import AGENT
from agent_logger.agents.openhands import session as openhands
from agent_logger.agents.openhands.events import local_time, vendor_id
from agent_logger.agents.source_files import File, SourceFiles
from agent_logger.catalog.ledger.ledger import Ledger
from agent_logger.files import foreign
from agent_logger.files.sources import Source, StampCache
from agent_logger.model.session import Session, Usage
from agent_logger.protocols.jsonl import Damage
from tests.agents.foreign import DATA, broken, entries, scenarios, shown, total
from tests.agents.recorded import read_home, recording

FOLDERS = scenarios("openhands")
RECORDED = DATA / "openhands/1.16.0"
IN_FILE = ("main", "subagent", "compact")
DOCUMENTS = [path.read_bytes() for path in sorted(RECORDED.glob("agents/home/**/*.json")) if path.stat().st_size < 6000]


def read_real(scenario: str) -> Session:
    [(session, _)] = read_home(AGENT, RECORDED / scenario / "home").values()
    return session


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    """The folder of a conversation that may be damaged."""
    shutil.copytree(RECORDED / "tools/home", tmp_path, dirs_exist_ok=True)
    return next((tmp_path / ".openhands/conversations").iterdir())


def found_in(home: Path, cache: StampCache | None = None) -> list[Source]:
    return list(AGENT.discover([home / ".openhands"], cache or StampCache()))


def read(folder: Path) -> Session:
    [source] = found_in(folder.parents[2])
    return AGENT.session_of(AGENT.open_session(source))


def damage_in(folder: Path) -> list[Damage]:
    [source] = found_in(folder.parents[2])
    opened = AGENT.open_session(source)
    return [entry for file in (opened.main, *opened.others) for entry in file.entries if isinstance(entry, Damage)]


def event_file(folder: Path, number: int) -> Path:
    return next(folder.glob(f"events/event-{number:05d}-*.json"))


# ---------------------------------------------------------------- real files


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.relative_to(DATA).as_posix())
def test_every_complete_response_is_billed_once(folder: Path) -> None:
    ledger = Ledger()
    for _, responses in read_home(AGENT, folder / "home").values():
        ledger.add(responses)
    rows = list(ledger.rows())
    expected = recording(folder)
    # A process that is killed has not stored the tokens of its last response: they are unknown.
    unknown = {row.message_id for row in rows if row.usage is None}
    assert len(unknown) == (1 if folder.name == "failures" else 0)
    counted = [response for response in expected.of(IN_FILE) if response.id not in unknown]
    assert total(row.usage for row in rows) == total(
        response.usage.as_usage() for response in counted if response.usage
    )
    assert len(rows) == len(expected.of(IN_FILE))


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.relative_to(DATA).as_posix())
def test_responses_match_the_billed_turns_of_the_session(folder: Path) -> None:
    for session, responses in read_home(AGENT, folder / "home").values():
        assert sorted(
            repr((response.message_id, response.usage, response.model, response.at, response.thread))
            for response in responses
        ) == sorted(
            repr((turn.message_id, turn.usage, turn.model, turn.started, turn.thread))
            for turn in session.turns
            if turn.is_billed
        )
        assert {(response.session, response.project) for response in responses} == {(session.id, session.project)}


def test_the_conversation_and_its_tools_match_the_scripted_scenario() -> None:
    session = read_real("tools")
    assert shown(session) == [
        (
            "List the files",
            [["I will look.", ">terminal", "<"], [">file_editor", "<failed"], [">finish", "<"]],
        ),
        ("What is the function called?", [["The function is greet."]]),
    ]
    assert (session.id, session.title, session.project) == (
        "be0ad30a6e884bc287f3d23bfd890187",
        "List the files",
        "/home/user/project",
    )
    assert [exchange.end_reason for exchange in session.exchanges] == ["result", "result"]
    assert [call.kind for call in session.tool_calls] == ["shell", "edit", "other"]
    assert session.tool_calls[0].input == {"security_risk": "LOW", "summary": "list files", "command": "ls -1"}
    assert session.turns[0].model == "gpt-fake-1"  # the state has LiteLLM's name of the provider in front


def test_thoughts_and_edits_are_read() -> None:
    session = read_real("thoughts")
    [exchange] = session.exchanges
    assert [call.name for call in session.tool_calls] == [
        *("think", "terminal", "file_editor", "file_editor", "task_tracker", "finish"),
    ]
    assert exchange.end_reason == "result"
    assert "/home/user/project/new.txt" in session.files


@pytest.mark.parametrize("scenario", ["tools", "agents", "responses", "condense"])
def test_response_ids_are_those_of_the_provider(scenario: str) -> None:
    [(_, responses)] = read_home(AGENT, RECORDED / scenario / "home").values()
    assert {response.message_id for response in responses} == {
        response.id for response in recording(RECORDED / scenario).of(IN_FILE)
    }


def test_an_id_that_litellm_made_is_not_the_vendors() -> None:
    [(_, responses)] = read_home(AGENT, RECORDED / "anthropic/home").values()
    assert {(response.message_id, response.family, response.model) for response in responses} == {
        (None, "anthropic", "claude-sonnet-4-5")
    }
    made = "chatcmpl-012e1214-412f-4747-9cd7-deafabd6d566"
    assert (vendor_id(made, "anthropic"), vendor_id(made, "openai")) == (None, made)
    assert vendor_id("resp_0123abc", "openai") == "resp_0123abc"


def test_sub_agents_are_threads_and_a_task_id_that_is_used_again_loses_nothing() -> None:
    session = read_real("agents")
    assert [exchange.user_input for exchange in session.exchanges] == ["Ask two agents", "Ask one more"]
    calls = {call.id: call.input["description"] for call in session.tool_calls if call.name == "task"}
    assert {agent.tool_use_id: agent.description for agent in session.agents} == calls
    assert {(agent.kind, agent.parent_thread) for agent in session.agents} == {("general-purpose", "main")}
    assert set(session.threads) == {"main", *(agent.thread for agent in session.agents)}
    threads = [len({turn.thread for turn in exchange.turns}) for exchange in session.exchanges]
    assert threads == [3, 2]
    # The second process counts its first sub-agent under the id of that of the first process.
    state = next((RECORDED / "agents/home/.openhands/conversations").glob("*/base_state.json"))
    assert len(json.loads(state.read_bytes())["stats"]["usage_to_metrics"]) == 4  # with two for three sub-agents


def test_a_sub_agent_whose_folder_is_gone_still_counts(tmp_path: Path) -> None:
    shutil.copytree(RECORDED / "agents/home", tmp_path, dirs_exist_ok=True)
    folder = next((tmp_path / ".openhands/conversations").iterdir())
    whole = read(folder)
    shutil.rmtree(folder / "subagents")
    session = read(folder)
    lost = [turn for turn in whole.turns if turn.thread == whole.agents[0].thread]  # its task id was used again
    assert session.usage + sum((turn.usage for turn in lost if turn.usage), Usage()) == whole.usage
    assert {thread for thread in session.threads if thread != "main"} == {
        "agent:task_00000001",
        "agent:task_00000002",
    }


def test_a_condensation_is_a_side_call_and_a_compaction() -> None:
    session = read_real("condense")
    [compaction], [side] = session.compactions, session.side_turns
    assert (compaction.thread, compaction.at) == ("main", side.started)
    assert (side.blocks[0].text, side.usage) == (
        "Summary of it all.",
        Usage(input_tokens=900, output_tokens=90, cache_read_tokens=9),
    )


def test_failures_end_exchanges_and_failed_commands_are_failed_calls() -> None:
    session = read_real("failures")
    ends = {exchange.user_input: exchange.end_reason for exchange in session.exchanges}
    assert ends["Retry please"] == "result"
    assert ends["Fail please"] == "failed"
    assert ends["Run something long"] == "input"  # killed
    assert ends["After that"] == "result"
    assert "Run it \u2028 here" in ends
    failed = [call.name for call in session.tool_calls if call.is_error]
    assert failed == ["terminal", "nonsense", "terminal", "terminal"]
    cut = next(exchange for exchange in session.exchanges if exchange.user_input == "Cut it")
    assert [turn.blocks[0].text for turn in cut.turns] == ["Whole at last."]


def test_times_without_a_zone_are_those_of_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    try:
        monkeypatch.setenv("TZ", "America/New_York")
        time.tzset()
        assert local_time("2026-11-16T05:10:26.5") == datetime(2026, 11, 16, 10, 10, 26, 500_000, tzinfo=UTC)
        assert local_time("2026-11-16T05:10:26+00:00") == datetime(2026, 11, 16, 5, 10, 26, tzinfo=UTC)
    finally:
        monkeypatch.undo()
        time.tzset()
    assert local_time("soon") is None


# ---------------------------------------------------------------- finding them


def test_only_a_new_event_or_a_changed_state_changes_the_stamp(copied: Path) -> None:
    home, cache = copied.parents[2], StampCache()
    [before] = found_in(home, cache)
    assert (before.name, before.size) == (
        copied.name,
        sum(path.stat().st_size for path in copied.rglob("*.json")),
    )
    work = foreign.work.files
    [again] = found_in(home, cache)
    assert (again.stamp, foreign.work.files) == (before.stamp, work)
    shutil.copy(event_file(copied, 9), copied / "events/event-00010-abcdef0123.json")
    [more] = found_in(home, cache)
    assert more.stamp != before.stamp
    with (copied / "events/event-00010-abcdef0123.json").open("ab") as newest:
        newest.write(b" ")
    [grown] = found_in(home, cache)
    assert grown.stamp != more.stamp


def test_conversations_in_a_folder_of_their_own_are_found(copied: Path) -> None:
    [source] = AGENT.discover([copied.parent], StampCache())
    assert source.name == copied.name


def test_a_state_is_recognised_by_its_beginning(copied: Path) -> None:
    assert AGENT.recognises((copied / "base_state.json").read_bytes())
    assert not AGENT.recognises(event_file(copied, 2).read_bytes())


def test_a_state_elsewhere_has_its_tokens(copied: Path, tmp_path: Path) -> None:
    elsewhere = shutil.copy(copied / "base_state.json", tmp_path / "copy.json")
    source = Source(str(elsewhere), AGENT.name, str(elsewhere), "", 0.0, 0, "")
    session = AGENT.session_of(AGENT.open_session(source))
    assert (session.id, session.usage) == (copied.name, read_real("tools").usage)


# ---------------------------------------------------------------- damage


def test_a_lost_event_leaves_the_tokens_of_its_response(copied: Path) -> None:
    event_file(copied, 4).unlink()
    session = read(copied)
    assert session.usage == read_real("tools").usage
    assert [[turn.message_id for turn in exchange.turns] for exchange in session.exchanges] == [
        [turn.message_id for turn in exchange.turns] for exchange in read_real("tools").exchanges
    ]
    assert [damage.reason for damage in damage_in(copied)] == ["event 4 is missing"]


@pytest.mark.parametrize(
    "spoil",
    [lambda data: data[: len(data) // 2], lambda data: b"\0" * len(data), lambda data: b"", lambda data: data[9:]],
    ids=["cut", "NUL", "empty", "beheaded"],
)
@pytest.mark.parametrize("number", range(10))
def test_a_damaged_event_loses_itself_and_is_reported(
    copied: Path, number: int, spoil: Callable[[bytes], bytes]
) -> None:
    path = event_file(copied, number)
    path.write_bytes(spoil(path.read_bytes()))
    session, whole = read(copied), read_real("tools")
    assert session.usage == whole.usage
    blocks = [len(turn.blocks) for turn in session.turns]
    assert sum(blocks) >= sum(len(turn.blocks) for turn in whole.turns) - 2
    assert damage_in(copied)


def test_bytes_behind_an_event_and_raw_line_breaks_in_it_lose_nothing(copied: Path) -> None:
    path = event_file(copied, 1)
    document = json.loads(path.read_bytes())
    document["llm_message"]["content"][0]["text"] = "List\u2028the files"
    path.write_bytes(json.dumps(document, indent=1, ensure_ascii=False).encode() + b"\n\0\0\0")
    session = read(copied)
    assert session.exchanges[0].user_input == "List\u2028the files"
    assert len(damage_in(copied)) == 1


def test_of_half_a_state_the_responses_before_the_cut_are_counted(copied: Path) -> None:
    path = copied / "base_state.json"
    data = path.read_bytes()
    third = data.index(b'"token_usages"')
    for _ in range(3):
        third = data.index(b'"response_id"', third + 1)
    path.write_bytes(data[:third])
    session = read(copied)
    assert [turn.usage is not None for turn in session.turns] == [True, True, False, False]
    assert session.project == "/home/user/project"
    assert [turn.is_billed for turn in session.turns] == [True] * 4
    assert all(turn.cost is None or turn.cost.nano_usd is None for turn in session.turns)
    assert damage_in(copied)


def test_without_its_state_a_conversation_is_read_and_its_tokens_are_unknown(copied: Path) -> None:
    (copied / "base_state.json").unlink()
    session, whole = read(copied), read_real("tools")
    assert (session.id, shown(session)) == (whole.id, shown(whole))
    assert [(turn.usage, turn.is_billed) for turn in session.turns] == [(None, True)] * 4
    assert [damage.reason for damage in damage_in(copied)] == ["base_state.json is missing"]


def test_a_cut_state_at_any_place_never_invents_tokens(copied: Path) -> None:
    path = copied / "base_state.json"
    data, whole = path.read_bytes(), read_real("tools")
    usages = {turn.message_id: turn.usage for turn in whole.turns}
    for end in range(0, len(data), 97):
        path.write_bytes(data[:end])
        session = read(copied)
        assert len(session.turns) == 4
        assert all(turn.usage in (None, usages[turn.message_id]) for turn in session.turns)


def files_of(state: bytes, events: bytes) -> SourceFiles:
    return SourceFiles(
        File("../0123/base_state.json", list(entries(state))), [File("../0123/events", list(entries(events)))]
    )


@settings(max_examples=60)
@given(st.data())
def test_no_document_stops_the_reader(data: st.DataObject) -> None:
    state, events = data.draw(broken(DOCUMENTS)), data.draw(broken(DOCUMENTS))
    session = openhands.session_of(files_of(state, events))
    responses = list(openhands.responses_of(files_of(state, events)))
    billed = [turn for turn in session.turns if turn.is_billed]
    assert len(responses) == len(billed)


def test_a_value_of_a_wrong_type_loses_itself_alone(copied: Path) -> None:
    def with_wrong(path: Path, **fields: Any) -> None:
        path.write_text(json.dumps(json.loads(path.read_bytes()) | fields))

    with_wrong(event_file(copied, 2), thought={"a": 1}, timestamp=7, tool_call=[])
    with_wrong(event_file(copied, 9), llm_message="text")
    session = read(copied)
    assert session.usage == read_real("tools").usage
    assert [call.name for call in session.tool_calls] == ["terminal", "file_editor", "finish"]
