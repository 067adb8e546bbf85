"""Gemini CLI chats: changes to messages, not messages."""

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from agent_logger.agents.gemini_cli import session as gemini_cli
from agent_logger.agents.source_files import File, SourceFiles
from agent_logger.model.session import Session, Usage
from tests.agents.foreign import broken, entries, lines, manifest, scenarios, shown, source, total

[FOLDER] = scenarios("gemini-cli")
[CHAT] = FOLDER.glob("home/.gemini/tmp/*/chats/*.jsonl")
REAL = CHAT.read_bytes()
REAL_LINES = REAL.splitlines()


def with_text(main: bytes, name: str = "chats/session-1.jsonl", **texts: str) -> SourceFiles:
    return SourceFiles(File(name, entries(main)), (), texts.get)


def read(*values: Any) -> Session:
    return gemini_cli.session_of(source(lines(*values)))


def test_session_usage_matches_the_usage_billed_by_the_server_except_the_router() -> None:
    truth = manifest(FOLDER).truth["(none)"]
    session = gemini_cli.session_of(source(REAL))
    assert len(session.turns) == truth["main"]["responses"]
    assert session.usage == Usage(
        input_tokens=truth["main"]["promptTokenCount"] - truth["main"]["cachedContentTokenCount"],
        output_tokens=truth["main"]["candidatesTokenCount"],
        cache_read_tokens=truth["main"]["cachedContentTokenCount"],
    )
    assert truth["side"]["responses"] == 2  # one a prompt, and no chat tells of them: only the wire does


def test_the_conversation_matches_the_scripted_scenario() -> None:
    session = gemini_cli.session_of(source(REAL))
    assert shown(session) == [
        (
            "List the directory",
            [["I will list the directory.", ">list_directory", "<"], ["The directory is empty."]],
        ),
        ("Again", [["Second answer."]]),
    ]
    assert [(it.complete, it.end_reason) for it in session.exchanges] == [(True, "result")] * 2
    [call] = session.tool_calls
    assert (call.kind, call.result) == ("search", "Directory /home/user/project is empty.")
    assert call.started and call.ended and call.started < call.ended


def test_a_session_has_its_id_title_project_and_times() -> None:
    session = gemini_cli.session_of(source(REAL))
    assert (session.id, session.agent) == ("252c5bc1-3ccd-4a99-8b32-b16c20006afe", "gemini-cli")
    assert (session.title, session.project) == ("List the directory", "/home/user/project")
    assert session.started and session.started.isoformat() == "2026-11-15T07:14:07.124000+00:00"
    assert session.ended and session.ended.isoformat() == "2026-11-15T07:14:09.554000+00:00"


def test_the_project_is_read_from_the_project_root_file() -> None:
    told = with_text(REAL, **{".project_root": "/elsewhere\n"})
    assert gemini_cli.session_of(told).project == "/elsewhere"


def test_the_fast_path_yields_the_same_usage() -> None:
    session = gemini_cli.session_of(source(REAL))
    responses = list(gemini_cli.responses_of(source(REAL)))
    assert [(it.message_id, it.usage, it.model, it.at) for it in responses] == [
        (turn.message_id, turn.usage, turn.model, turn.started) for turn in session.turns
    ]
    assert {(it.session, it.project, it.thread, it.family) for it in responses} == {
        (session.id, "/home/user/project", "main", "gemini")
    }


# ---------------------------------------------------------------- changes

HEAD = {"sessionId": "s", "startTime": "2026-01-01T00:00:00Z", "kind": "main"}
TOKENS = {"input": 100, "output": 5, "cached": 60, "thoughts": 7, "tool": 3, "total": 115}


def said(name: str, kind: str, content: Any, **more: Any) -> dict[str, Any]:
    return {"id": name, "timestamp": "2026-01-01T00:00:01Z", "type": kind, "content": content, **more}


def test_token_counts_are_mapped_to_billed_usage() -> None:
    session = read(HEAD, said("a", "gemini", "Hi", tokens=TOKENS))
    assert session.usage == Usage(input_tokens=43, output_tokens=12, cache_read_tokens=60)


def test_a_repeated_message_replaces_its_older_state() -> None:
    session = read(
        HEAD,
        said("q", "user", "Go"),
        said("a", "gemini", "", tokens=TOKENS),
        {**said("a", "gemini", "Done", tokens=TOKENS), "timestamp": "2026-01-01T00:00:09Z"},
    )
    assert shown(session) == [("Go", [["Done"]])]
    assert session.usage.output_tokens == 12
    assert session.turns[0].started and session.turns[0].started.second == 1


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"$set": {"messages": []}}, id="compressed away"),
        pytest.param({"$set": {"messages": [said("a", "gemini", [{"text": "Hi"}])]}}, id="copied"),
        pytest.param({"$rewindTo": "q"}, id="taken back"),
    ],
)
def test_removed_or_rewound_messages_stay_billed(change: Any) -> None:
    session = read(HEAD, said("q", "user", "Go"), said("a", "gemini", "Hi", tokens=TOKENS, model="m"), change)
    assert shown(session) == [("Go", [["Hi"]])]
    assert (session.usage.output_tokens, session.turns[0].model) == (12, "m")


def test_messages_set_as_copies_are_read_in_a_chat_that_began_elsewhere() -> None:
    call = {"functionCall": {"id": "c", "name": "read_file", "args": {"absolute_path": "/a"}}}
    answer = {"functionResponse": {"id": "c", "name": "read_file", "response": {"error": "gone"}}}
    copies = [said("q", "user", [{"text": "Go"}]), said("a", "gemini", [call]), said("r", "user", [answer])]
    session = read(HEAD, {"$set": {"messages": copies}})
    assert shown(session) == [("Go", [[">read_file", "<failed"]])]
    assert session.files == ["/a"]


def test_thoughts_and_failed_tools_are_shown() -> None:
    thoughts = [{"subject": "Plan", "description": "look first"}]
    calls = [{"id": "c", "name": "run_shell_command", "args": {}, "status": "error", "resultDisplay": "no"}]
    session = read(HEAD, said("a", "gemini", "Hm", thoughts=thoughts, toolCalls=calls))
    assert shown(session) == [(None, [["(Plan\nlook first)", "Hm", ">run_shell_command", "<failed"]])]


def test_a_running_tool_leaves_its_exchange_incomplete() -> None:
    calls = [{"id": "c", "name": "glob", "args": {}, "status": "executing"}]
    session = read(HEAD, said("q", "user", "Go"), said("a", "gemini", "Hm", toolCalls=calls))
    assert [(it.complete, it.end_reason) for it in session.exchanges] == [(False, None)]


def test_a_subagent_is_a_thread() -> None:
    main = lines(HEAD, said("q", "user", "Go"), said("a", "gemini", "Hi", tokens=TOKENS))
    sub = lines({**HEAD, "sessionId": "sub", "kind": "subagent"}, said("b", "gemini", "Ho", tokens=TOKENS))
    session = gemini_cli.session_of(source(main, sub))
    assert session.threads == ["main", "agent:sub"]
    assert session.usage.output_tokens == 24
    assert [it.thread for it in gemini_cli.responses_of(source(main, sub))] == session.threads
    assert {it.session for it in gemini_cli.responses_of(source(main, sub))} == {"s"}


def test_the_summary_is_the_title() -> None:
    assert read(HEAD, said("q", "user", "Go"), {"$set": {"summary": "About it"}}).title == "About it"


def test_a_chat_of_an_older_version_is_one_document() -> None:
    name = "chats/session-1.json"
    messages = [said("q", "user", "Go"), said("a", "gemini", "Hi", tokens=TOKENS)]
    document = json.dumps({**HEAD, "messages": messages}, indent=2)
    session = gemini_cli.session_of(with_text(document.encode(), name, **{name: document}))
    assert (session.id, shown(session)) == ("s", [("Go", [["Hi"]])])
    assert session.usage.output_tokens == 12


@pytest.mark.parametrize("document", ["", "null", "[]", '{"messages": 5}', "{", '{"messages": [1, {"id": 2}]}'])
def test_reading_malformed_documents_never_raises(document: str) -> None:
    name = "chats/session-1.json"
    assert gemini_cli.session_of(with_text(b"", name, **{name: document})).id == "session-1"


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(broken(REAL_LINES), broken(REAL_LINES))
def test_reading_damaged_chats_never_raises(main: bytes, other: bytes) -> None:
    session = gemini_cli.session_of(source(main, other))
    assert total(it.usage for it in gemini_cli.responses_of(source(main, other))) == total(
        turn.usage for turn in session.turns
    )
    repr(session).encode()
    for call in session.tool_calls:
        (call.result or "").encode()


def test_a_tool_call_written_twice_is_shown_once() -> None:
    part = {"functionCall": {"id": "c", "name": "glob", "args": {}}}
    calls = [{"id": "c", "name": "glob", "args": {}, "status": "executing"}]
    session = read(HEAD, said("a", "gemini", [{"text": "Hm"}, part], toolCalls=calls))
    assert shown(session) == [(None, [["Hm", ">glob"]])]
