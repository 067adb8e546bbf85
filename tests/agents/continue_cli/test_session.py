"""Sessions of Continue: what the recordings of the real client say, and what is left of damaged copies."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent_logger.agents.cline.document import entries_of
from agent_logger.agents.continue_cli import AGENT
from agent_logger.agents.continue_cli import session as continue_session
from agent_logger.agents.continue_cli.files import HISTORY
from agent_logger.agents.registry import recognise, resume_command
from agent_logger.agents.source_files import File, SourceFiles
from agent_logger.catalog.ledger.ledger import Ledger
from agent_logger.files.sources import StampCache
from agent_logger.logs.reader import read_session
from agent_logger.model.session import Session, Usage
from agent_logger.protocols.jsonl import JsonEntry
from tests.agents.foreign import DATA, scenarios, shown, total
from tests.agents.recorded import read_home, recording

FOLDERS = scenarios("continue-cli")
RECORDED = DATA / "continue-cli/1.5.47"
DOCUMENTS = sorted(path for path in RECORDED.glob("*/home/**/*.json") if path.name != "sessions.json")
CREATED = 1795095337330


def read_recorded(scenario: str) -> list[Session]:
    """The sessions of a recording, in the order in which they were created."""
    sessions = [session for session, _ in read_home(AGENT, RECORDED / scenario / "home").values()]
    return sorted(sessions, key=lambda session: str(session.started))


def opened(data: bytes, name: str = "s.json") -> SourceFiles:
    times = JsonEntry(1, 0, {"created": CREATED, "modified": CREATED + 1000}, b"")
    return SourceFiles(File(name, list(entries_of(data, HISTORY))), [File("sessions.json", [times])])


def read(*messages: dict[str, Any], usage: Any = None, **fields: Any) -> Session:
    history = [message if "message" in message else {"message": message} for message in messages]
    return continue_session.session_of(opened(json.dumps({**fields, "history": history, "usage": usage}).encode()))


def prompt(usage: Usage) -> tuple[int, int]:
    """The tokens that were sent and received: of calls without a message, the cached part is unknown."""
    return usage.context_tokens, usage.output_tokens


# ---------------------------------------------------------------- real files


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.relative_to(DATA).as_posix())
def test_every_complete_response_is_billed_once(folder: Path) -> None:
    ledger = Ledger()
    for source in AGENT.discover([folder / "home/.continue"], StampCache()):
        responses, totals = AGENT.billed_of(AGENT.open_session(source))
        ledger.add(responses)
        ledger.add_totals(totals)
    rows = list(ledger.rows())
    used, expected = total(row.usage for row in rows), recording(folder).usage(["main"])
    assert prompt(used) == prompt(expected)
    if all(row.joined_by != "result" for row in rows):
        assert used == expected
        assert len(rows) == len(recording(folder).of(["main"]))


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.relative_to(DATA).as_posix())
def test_responses_match_the_turns_of_the_session(folder: Path) -> None:
    for session, responses in read_home(AGENT, folder / "home").values():
        assert [
            (response.message_id, response.usage, response.model, response.at, response.thread)
            for response in responses
        ] == [(turn.message_id, turn.usage, turn.model, turn.started, turn.thread) for turn in session.turns]
        assert all(response.at for response in responses)


def test_the_conversation_matches_the_scripted_scenario() -> None:
    [session] = read_recorded("tools")
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
    assert [call.kind for call in session.tool_calls] == ["shell", "read", "read"]
    assert session.tool_calls[0].input == {"command": "ls -1"}
    assert session.tool_calls[0].result == "README.md\nhello.py\n"
    assert (session.project, session.title) == ("/home/user/project", "List the files")
    assert session.started and session.started.isoformat() == "2026-11-16T05:07:44.118000+00:00"
    assert [exchange.end_reason for exchange in session.exchanges] == ["result", "result"]
    assert [exchange.ended for exchange in session.exchanges] == [session.started, session.ended]  # as far as is known


def test_a_fork_has_only_what_came_after_it() -> None:
    source, fork, second = read_recorded("fork")
    assert [exchange.user_input for exchange in source.exchanges] == ["List the files", "What is the function called?"]
    assert [exchange.user_input for exchange in fork.exchanges] == ["In the fork", "More in the fork"]
    assert shown(second) == [("In the second fork", [[">Read", "<"], ["Forked again."]])]
    assert [session.title for session in (fork, second)] == ["In the fork", "In the second fork"]


@pytest.mark.parametrize(("scenario", "sent", "received"), [("killed", 2221, 212), ("compact", 2626, 142)])
def test_calls_without_a_message_are_counted_as_not_itemised(scenario: str, sent: int, received: int) -> None:
    session = read_recorded(scenario)[0]
    [rest] = session.not_itemised
    assert (rest.model, rest.usage) == ("gpt-fake-1", Usage(input_tokens=sent, output_tokens=received))


def test_sessions_that_say_the_same_are_two() -> None:
    assert [prompt(session.usage) for session in read_recorded("several")] == [(100, 5), (100, 5)]


@pytest.mark.parametrize("scenario", ["anthropic", "ai_sdk_anthropic"])
def test_the_cache_of_anthropic_is_counted_apart_with_either_library(scenario: str) -> None:
    [session] = read_recorded(scenario)
    assert [turn.usage and turn.usage.counts for turn in session.turns] == [(12, 60, 0, 5000, 0), (20, 9, 5000, 300, 0)]


def test_texts_arrive_as_they_were_typed_and_said() -> None:
    [session] = read_recorded("separators")
    assert session.exchanges[0].user_input == "First line\n\nsecond\u2028line"
    assert shown(session)[0][1] == [["One\u2028two\n\nthree \0 <b>"]]


# ---------------------------------------------------------------- finding


def test_the_list_of_sessions_is_no_session(tmp_path: Path) -> None:
    home = shutil.copytree(RECORDED / "tools/home", tmp_path / "place")
    assert list(read_home(AGENT, home)) == ["cbddaaf0-e90a-4574-94d6-4d9c6fcd2b18"]
    listed = home / ".continue/sessions/sessions.json"
    assert recognise(listed.as_posix(), listed.read_bytes()) is None


@pytest.mark.parametrize("content", ["", "[", '{"a": 1}', "[1, {}]", '[{"sessionId": 1}]', '[{"dateCreated": "x"}]'])
def test_a_damaged_list_costs_only_the_time_of_creation(content: str, tmp_path: Path) -> None:
    home = shutil.copytree(RECORDED / "tools/home", tmp_path / "place")
    (home / ".continue/sessions/sessions.json").write_text(content)
    [(session, responses)] = read_home(AGENT, home).values()
    assert (len(session.turns), len(responses)) == (4, 4)
    assert session.started == session.ended is not None  # when the file was written


def test_a_copy_is_recognised_by_its_content(tmp_path: Path) -> None:
    for path in DOCUMENTS:
        copy = tmp_path / "anything"
        copy.write_bytes(path.read_bytes())
        assert recognise(copy.as_posix(), copy.read_bytes()[:65536]) is AGENT
        assert read_session(copy).exchanges


def test_no_session_is_resumed_by_its_id() -> None:
    assert resume_command("continue-cli", "cbddaaf0-e90a-4574-94d6-4d9c6fcd2b18") is None


# ---------------------------------------------------------------- damage


@pytest.mark.parametrize("kind", ["cut", "NUL", "half", "separator"])
def test_damage_loses_only_what_is_damaged(kind: str) -> None:
    data = (RECORDED / "tools/home/.continue/sessions/cbddaaf0-e90a-4574-94d6-4d9c6fcd2b18.json").read_bytes()
    start = data.index(b"Two files; missing.txt")
    damaged = {
        "cut": data[:start],
        "NUL": data[:start] + b"\0" * 40 + data[start + 40 :],
        "half": data[:start] + data[start + 200 :],
        "separator": data[:start] + "\u2028".encode() + b'"' + data[start + 5 :],
    }[kind]
    session = continue_session.session_of(opened(damaged))
    assert shown(session)[0] == ("List the files", [["I will look.", ">Bash", ">Read", "<", "<"], [">Read", "<failed"]])
    if kind != "cut":
        assert shown(session)[1] == ("What is the function called?", [["The function is greet."]])
        assert prompt(session.usage) == (14643, 663)  # the session's total still counts the answer that is lost


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.sampled_from(DOCUMENTS),
    st.lists(st.tuples(st.integers(0, 20_000), st.integers(0, 300), st.binary(max_size=12)), max_size=3),
)
def test_reading_damaged_files_never_raises(path: Path, cuts: list[tuple[int, int, bytes]]) -> None:
    data = path.read_bytes()
    for start, length, put in cuts:
        data = data[: start % (len(data) + 1)] + put + data[start % (len(data) + 1) + length :]
    session = continue_session.session_of(opened(data))
    ledger = Ledger()
    responses, totals = continue_session.billed_of(opened(data))
    ledger.add(responses)
    ledger.add_totals(totals)
    assert total(row.usage for row in ledger.rows()) == session.usage
    repr(session).encode()


TOKENS = st.integers(1, 500)
ANSWERS = st.lists(st.lists(st.tuples(TOKENS, TOKENS), min_size=1, max_size=3), max_size=5)


@given(ANSWERS, ANSWERS, st.tuples(st.integers(0, 500), st.integers(0, 500)))
def test_a_session_uses_what_its_total_says_whatever_it_copied(
    copied: list[list[tuple[int, int]]], own: list[list[tuple[int, int]]], unseen: tuple[int, int]
) -> None:
    history: list[dict[str, Any]] = []
    for exchange in copied + own:
        history.append({"role": "user", "content": "Go"})
        history += [answer(prompt_tokens=sent, completion_tokens=received) for sent, received in exchange]
    sums = [unseen[at] + sum(tokens[at] for exchange in own for tokens in exchange) for at in (0, 1)]
    session = read(*history, usage={"promptTokens": sums[0], "completionTokens": sums[1]})
    assert prompt(session.usage) == tuple(sums)
    if unseen == (0, 0):
        assert len(session.exchanges) == len(own)


# ---------------------------------------------------------------- single messages

ASKED = {"role": "user", "content": "Task"}


def answer(content: str = "Hi", **usage: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": content, "usage": {**usage, "model": "m"} if usage else None}


def test_without_a_total_nothing_is_taken_for_a_copy() -> None:
    session = read(ASKED, answer(prompt_tokens=10, completion_tokens=1), usage={"totalCost": 0.1})
    assert (prompt(session.usage), session.not_itemised) == ((10, 1), [])


def test_an_answer_without_usage_was_billed_and_its_tokens_are_unknown() -> None:
    [turn] = read(ASKED, answer()).turns
    assert (turn.usage, turn.is_billed) == (None, True)


def test_a_summary_is_a_compaction_and_no_turn() -> None:
    summary = {"message": {"role": "assistant", "content": "So far"}, "conversationSummary": "So far"}
    session = read(summary, ASKED, answer(prompt_tokens=5, completion_tokens=1))
    assert (len(session.compactions), shown(session)) == (1, [("Task", [["Hi"]])])


def test_messages_as_the_editors_extension_writes_them() -> None:
    session = read(
        {"role": "user", "content": [{"type": "text", "text": "Look"}, {"type": "imageUrl", "imageUrl": {"url": "x"}}]},
        {"role": "thinking", "content": "Hm."},
        {"role": "assistant", "content": "", "toolCalls": [{"id": "c1", "function": {"name": "read_file"}}]},
        {"role": "tool", "toolCallId": "c1", "content": "text"},
        answer("Seen."),
        {"role": "user", "content": [{"type": "imageUrl", "imageUrl": {"url": "x"}}]},
    )
    assert shown(session) == [("Look", [["(Hm.)", ">read_file", "<"], ["Seen."]]), ("[image]", [])]


def test_the_title_of_a_session_is_its_own_unless_it_is_a_placeholder() -> None:
    assert read(ASKED, title="Greeting").title == "Greeting"
    assert read(ASKED, title="Untitled Session").title == "Task"
    assert read(title="Untitled Session").title == "Untitled Session"
