"""OpenClaw's sessions: pi's lines in a database, or in the files of older versions."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent_logger.agents.openclaw import AGENT
from agent_logger.agents.openclaw import session as openclaw
from agent_logger.agents.registry import recognise, resume_command
from agent_logger.agents.source_files import Entries, File, SourceFiles
from agent_logger.catalog.catalog import Catalog
from agent_logger.files.sealed import zstd
from agent_logger.files.sources import FIRST_BYTES
from agent_logger.model.session import Session
from agent_logger.protocols.jsonl import JsonEntry
from tests.agents.databases.recorded import recorded_database
from tests.agents.foreign import scenarios, shown, total
from tests.agents.recorded import read_home, recording
from tests.hostile import ODD_VALUES

FOLDERS = scenarios("openclaw")
IN_FILE = ("main", "subagent")  # not the calls for summaries and memories
TOOLS = "cfac7f99-557b-45d5-bd56-8a2b40c351f6"
NESTED = "26550596-8323-45b7-bd92-db60316481b0"


def read_all(scenario: str, home: Path) -> list[Session]:
    recorded_database("openclaw", f"2026.9.6/{scenario}", home)
    return [session for session, _ in read_home(AGENT, home).values()]


def read_real(scenario: str, home: Path) -> Session:
    [session] = read_all(scenario, home)
    return session


# ---------------------------------------------------------------- recordings


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_every_response_in_the_events_is_billed_once(folder: Path, home: Path) -> None:
    recorded_database("openclaw", f"2026.9.6/{folder.name}", home)
    read = read_home(AGENT, home)
    recorded = recording(folder)
    responses = [response for _, responses in read.values() for response in responses]
    assert {response.message_id for response in responses} == {response.id for response in recorded.of(IN_FILE)}
    assert total(response.usage for response in responses) == recorded.usage(IN_FILE)
    assert total(session.usage for session, _ in read.values()) == recorded.usage(IN_FILE)
    with Catalog.open() as catalog:
        catalog.refresh()
        assert total(row.usage for row in catalog.ledger()) == recorded.usage(IN_FILE)
        assert sum(session.damaged_lines for session in catalog.sessions()) == 0


def test_a_session_that_is_continued_is_one_conversation(home: Path) -> None:
    session = read_real("tools", home)
    assert shown(session) == [
        (
            "List the files",
            [["I will look.", ">exec", "<"], [">read", "<failed"], ["Two files; missing.txt is not there."]],
        ),
        ("What is the function called?", [["The function is greet."]]),
    ]
    assert (session.id, session.project) == (TOOLS, "/home/user/.openclaw/workspace")
    assert resume_command(session.agent, session.id) == ["openclaw", "agent", "--local", "--session-id", TOOLS]


def test_a_command_that_fails_is_an_error(home: Path) -> None:
    calls = read_real("errors", home).tool_calls
    assert [(call.name, call.kind, call.is_error) for call in calls] == [
        ("exec", "shell", True),
        ("read", "read", False),
        ("write", "write", False),
        ("edit", "edit", True),
        (None, "other", True),  # its call is not in the message
    ]


def test_a_compressed_event_is_read(home: Path) -> None:
    session = read_real("nested", home)
    assert [call.name for call in session.tool_calls] == ["tool_call", "exec"]
    assert session.tool_calls[0].result and "childSessionKey" in session.tool_calls[0].result
    assert [exchange.user_input for exchange in session.exchanges] == ["How long are the files?", "Sure?"]


def test_a_refused_prompt_has_failed(home: Path) -> None:
    session = read_real("failures", home)
    assert [(exchange.user_input, exchange.end_reason) for exchange in session.exchanges] == [
        ("One", "result"),
        ("Two", "result"),
        ("Three", "failed"),
        ("Four", "failed"),
    ]


def test_each_session_of_an_agent_is_one(home: Path) -> None:
    one, other = read_all("anthropic", home)
    assert [session.exchanges[0].user_input for session in (one, other)] == ["Other session", "List"]
    assert one.id == "11111111-2222-4333-8444-555555555555"
    assert shown(other) == [("List", [["(Let me see.)", "I will look.", ">exec", "<"], ["Done."]])]


def test_a_compaction_is_noted(home: Path) -> None:
    session = read_real("compaction", home)
    assert [exchange.user_input for exchange in session.exchanges] == ["Begin", "More", "More again", "Last"]
    assert [compaction.tokens_before for compaction in session.compactions] == [58050]


def test_a_database_is_recognised_under_any_name(home: Path) -> None:
    path = recorded_database("openclaw", "2026.9.6/tools", home)
    assert recognise("/x/openclaw-agent.sqlite", path.read_bytes()[:FIRST_BYTES]) is AGENT


# ---------------------------------------------------------------- how sessions are related


def changed(home: Path, *statements: str) -> Path:
    """Change the recorded database."""
    path = recorded_database("openclaw", "2026.9.6/nested", home)
    with closing(sqlite3.connect(path)) as database, database:
        for statement in statements:
            database.execute(statement)
    return path


def event(name: str, at: str, parent: str | None = None, **fields: Any) -> str:
    return json.dumps({"id": name, "parentId": parent, "timestamp": f"2026-11-19T04:41:{at}Z", **fields})


def spoken(role: str, text: str, response: str | None = None) -> dict[str, Any]:
    usage = {"input": 7, "output": 2, "cacheRead": 0, "cacheWrite": 0}
    answer = {"responseId": response, "usage": usage, "stopReason": "stop", "model": "m"} if response else {}
    return {"type": "message", "message": {"role": role, "content": [{"type": "text", "text": text}], **answer}}


CHILD = "c0000000-0000-4000-8000-000000000001"
CHILD_EVENTS = (
    event(CHILD, "10.000", type="session", version=4, cwd="/w"),
    event("u", "10.100", **spoken("user", "Count the lines of file 1")),
    event("a", "10.200", "u", **spoken("assistant", "Two.", "chatcmpl-child")),
)


def with_child(home: Path, node: dict[str, str], window: dict[str, str], key: str = "agent:main:subagent:x") -> Path:
    def insert(table: str, fields: dict[str, Any]) -> str:
        values = ", ".join("'" + str(value).replace("'", "''") + "'" for value in fields.values())
        return f"INSERT INTO {table} ({', '.join(fields)}) VALUES ({values})"

    times = {"created_at": 1795063270000, "updated_at": 1795063270000}
    return changed(
        home,
        insert(
            "session_nodes",
            {"session_key": key, "current_session_id": CHILD, "entry_json": "{}", **node, "updated_at": 1},
        ),
        insert("session_windows", {"session_id": CHILD, "session_key": key, **window, **times}),
        *(
            insert(
                "transcript_events",
                {"session_id": CHILD, "seq": number, "event_json": data, "created_at": 1795063270000},
            )
            for number, data in enumerate(CHILD_EVENTS)
        ),
    )


@pytest.mark.parametrize(
    ("node", "window", "key"),
    [
        ({"spawned_by": "agent:main:main"}, {}, "agent:main:subagent:x"),
        ({}, {"spawned_by": "agent:main:main"}, "agent:other:main"),
        ({"parent_session_key": "agent:main:main"}, {}, "agent:main:subagent:x"),
    ],
)
def test_a_sub_agent_is_a_thread_of_the_session_that_started_it(
    node: dict[str, str], window: dict[str, str], key: str, home: Path
) -> None:
    with_child(home, node, window, key)
    [(session, responses)] = read_home(AGENT, home).values()
    assert session.threads == ["main", f"agent:{CHILD}"]
    assert [agent.description for agent in session.agents] == ["Count the lines of file 1"]
    [call] = [call for call in session.tool_calls if call.name == "tool_call"]
    assert [agent.tool_use_id for agent in session.agents] == [call.id]
    assert [response.message_id for response in responses if response.thread != "main"] == ["chatcmpl-child"]
    assert {response.session for response in responses} == {NESTED}


def test_a_conversation_below_another_one_is_a_session(home: Path) -> None:
    with_child(home, {"parent_session_key": "agent:main:main"}, {}, "agent:main:discord:channel:1")
    assert set(read_home(AGENT, home)) == {CHILD, NESTED}


def test_a_fork_counts_what_is_new_in_it(home: Path) -> None:
    copied = "event_json, created_at, event_zstd, event_utf8_bytes, navigation_json FROM transcript_events"
    with_child(home, {"fork_source_session_id": NESTED}, {"reason": "fork"}, "agent:main:fork")
    with closing(sqlite3.connect(home / ".openclaw/agents/main/agent/openclaw-agent.sqlite")) as database, database:
        database.execute(f"UPDATE transcript_events SET seq = seq + 100 WHERE session_id = '{CHILD}' AND seq > 0")
        database.execute(
            f"INSERT INTO transcript_events SELECT '{CHILD}', seq, {copied} WHERE session_id = '{NESTED}' AND seq > 0"
        )
    with Catalog.open() as catalog:
        catalog.refresh()
        found = {session.id: session for session in catalog.sessions()}
        assert (found[CHILD].parent, found[CHILD].exchanges, found[CHILD].turns) == (NESTED, 1, 1)
        assert total(row.usage for row in catalog.ledger()).input_tokens == 910 + 7


def test_a_deleted_transcript_is_read_from_the_archive(home: Path) -> None:
    path = changed(
        home,
        "CREATE TABLE session_transcript_archives (session_id, encoding, archive_blob, created_at)",
    )
    lines = "\n".join(CHILD_EVENTS).encode() + b"\n"
    with closing(sqlite3.connect(path)) as database, database:
        insert = "INSERT INTO session_transcript_archives VALUES (?, ?, ?, 1795063270000)"
        database.execute(insert, (CHILD, "zstd", zstd.compress(lines)))
        database.execute(insert, ("plain", "identity", lines))
    read = read_home(AGENT, home)
    assert set(read) == {NESTED, CHILD, "plain"}
    assert shown(read[CHILD][0]) == [("Count the lines of file 1", [["Two."]])]


# ---------------------------------------------------------------- damage


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE transcript_events SET event_zstd = x'28b52ffd00' WHERE event_zstd IS NOT NULL",
        "UPDATE transcript_events SET event_json = substr(event_json, 1, 100) WHERE seq = 5",
    ],
    ids=["compressed", "cut"],
)
def test_an_event_that_cannot_be_read_is_counted_and_the_rest_is_read(statement: str, home: Path) -> None:
    changed(home, statement)
    with Catalog.open() as catalog:
        catalog.refresh()
        [session] = catalog.sessions()
    assert (session.damaged_lines, session.exchanges) == (1, 2)


def test_without_the_table_of_keys_sessions_are_found(home: Path) -> None:
    changed(home, "DROP TABLE session_nodes")
    assert set(read_home(AGENT, home)) == {NESTED}


# ---------------------------------------------------------------- before there was a database


def older(home: Path, name: str, *lines: str) -> Path:
    path = home / ".openclaw/agents/main/sessions" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{line}\n" for line in lines))
    return path


def header(name: str) -> str:
    return json.dumps(
        {"type": "session", "version": 3, "id": name, "timestamp": "2026-01-01T00:00:00Z", "cwd": "/w"},
        separators=(",", ":"),
    )


MAIN = "a0000000-0000-4000-8000-000000000001"


def test_older_files_are_read_and_sub_agents_are_known_by_the_index(home: Path) -> None:
    older(home, f"{MAIN}.jsonl", header(MAIN), *CHILD_EVENTS[1:])
    older(home, f"{CHILD}.jsonl", header(CHILD), event("b", "11.000", **spoken("assistant", "Sub.", "chatcmpl-b")))
    older(
        home,
        "sessions.json",
        json.dumps(
            {
                "agent:main:main": {"sessionId": MAIN},
                "agent:main:subagent:x": {"sessionId": CHILD, "spawnedBy": "agent:main:main"},
                "odd": [1],
            }
        ),
    )
    [(session, responses)] = read_home(AGENT, home).values()
    assert (session.id, session.threads) == (MAIN, ["main", f"agent:{CHILD}"])
    assert [response.message_id for response in responses] == ["chatcmpl-child", "chatcmpl-b"]


def test_a_session_that_was_moved_into_the_database_is_read_there(home: Path) -> None:
    recorded_database("openclaw", "2026.9.6/nested", home)
    older(home, f"{NESTED}.jsonl", header(NESTED), *CHILD_EVENTS[1:])
    older(home, f"{MAIN}-topic-7.jsonl", header(MAIN), *CHILD_EVENTS[1:])
    read = read_home(AGENT, home)
    assert {name: len(session.turns) for name, (session, _) in read.items()} == {NESTED: 4, MAIN: 1}


# ---------------------------------------------------------------- rows


def read(*rows: Any) -> SourceFiles:
    def entries() -> Entries:
        for number, row in enumerate(rows, 1):
            yield JsonEntry(number, 0, row, b"")

    return SourceFiles(File(MAIN, list(entries())))


EVENTS = st.one_of(
    st.sampled_from(
        [*(line.encode() for line in CHILD_EVENTS), b"", b"{", b"null", b"[" * 3_000, b"\xff", b'{"type":"\\ud800"}']
    ),
    st.sampled_from(ODD_VALUES),
)
ROWS = st.lists(
    st.fixed_dictionaries(
        {"table": st.sampled_from(["session_windows", "transcript_events", "transcript_events", None])},
        optional={"event": EVENTS, **dict.fromkeys(("title", "source_session", "key"), st.sampled_from(ODD_VALUES))},
    ),
    max_size=8,
)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(ROWS)
def test_reading_malformed_rows_never_raises(rows: list[Any]) -> None:
    session = openclaw.session_of(read(*rows))
    responses = list(openclaw.responses_of(read(*rows)))
    openclaw.parent_of(read(*rows))
    assert session.id == MAIN
    assert total(response.usage for response in responses) == total(turn.usage for turn in session.turns)
    repr(session).encode()
