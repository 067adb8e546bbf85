"""What somebody else may have put into an agent's folder: names, links, clocks, circles, and texts that take long."""

import json
import os
import shutil
import sqlite3
import time
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_logger.agents.databases.sessions import root_among, trees
from agent_logger.agents.registry import readable_agent
from agent_logger.agents.threads import AgentThread, families
from agent_logger.catalog.catalog import Catalog
from agent_logger.catalog.summary import SessionSummary
from tests.agents.databases.recorded import recorded_database
from tests.agents.foreign import DATA, sources_of

NAMES = [b"\xff\xfe", b"a#b", b"\x1b[31m", b"new\nline", b"x" * 200, "e\u0301".encode(), b"%s", b"-rf"]
LINEAR_SECONDS = 5.0  # of the processor: a hundred times what is needed, and a hundredth of what a square would take


def sessions() -> list[SessionSummary]:
    """The sessions of the home, when everything of them has been read, and once more when nothing has changed."""
    with Catalog.open() as catalog:
        first = catalog.sessions()
        catalog.index()
        assert all(catalog.session(session.id) for session in first)
    with Catalog.open() as catalog:
        assert catalog.sessions() == first
    return first


def tokens(found: list[SessionSummary]) -> int:
    return sum(sum(session.usage.counts[:4]) for session in found)


def recorded(scenario: str, home: Path) -> Path:
    shutil.copytree(DATA / scenario / "home", home, dirs_exist_ok=True, symlinks=True)
    return home


# ---------------------------------------------------------------- clocks


@pytest.mark.parametrize("seconds", ["9e999", "-9e999", "1e300", "9223372036854775807", "'soon'", "x'ff'"])
def test_no_clock_in_a_database_stops_the_catalog(home: Path, seconds: str) -> None:
    path = recorded_database("hermes", "0.19.0/tree", home)
    with closing(sqlite3.connect(path)) as database, database:
        database.execute(f"UPDATE sessions SET started_at = {seconds}, ended_at = {seconds}")
        database.execute(f"UPDATE messages SET timestamp = {seconds}")
    [session] = sessions()
    assert session.turns == 8


@pytest.mark.parametrize("created", ["9" * 5_000, "9" * 15, "\u0663", -5, 1e300, None])
def test_no_clock_in_a_list_of_sessions_stops_the_catalog(home: Path, created: object) -> None:
    path = recorded("continue-cli/1.5.47/tools", home) / ".continue/sessions/sessions.json"
    path.write_text(json.dumps([{**row, "dateCreated": created} for row in json.loads(path.read_bytes())]))
    [session] = sessions()
    assert session.turns == 4


# ---------------------------------------------------------------- circles

IDS = st.sampled_from("abcdefgh")
STARTERS = st.dictionaries(IDS, st.none() | IDS | st.just("gone"))


@given(STARTERS)
def test_every_session_of_a_database_is_in_one_tree(starters: Mapping[str, str | None]) -> None:
    tree_of = trees(starters, 100)
    assert sorted(name for root, tree in tree_of.items() for name in (root, *tree)) == sorted(starters)
    for root, tree in tree_of.items():
        assert root_among(starters, root) is None
        assert {root_among(starters, name) for name in tree} <= {root}


@given(STARTERS)
def test_every_file_of_an_agent_is_in_one_family(starters: Mapping[str, str | None]) -> None:
    of_files = families({name: AgentThread(name, starter) for name, starter in starters.items()})
    assert sorted(name for main, others in of_files.items() for name in (main, *others)) == sorted(starters)


def test_sessions_that_started_each_other_are_counted_once(home: Path) -> None:
    path = recorded_database("hermes", "0.19.0/tree", home)
    before = tokens(sessions())
    with closing(sqlite3.connect(path)) as database, database:
        child = "SELECT min(id) FROM sessions WHERE parent_session_id IS NOT NULL"
        database.execute(f"UPDATE sessions SET parent_session_id = ({child}) WHERE parent_session_id IS NULL")
    assert tokens(sessions()) == before


# ---------------------------------------------------------------- names


@pytest.mark.parametrize("name", NAMES)
def test_no_name_of_a_file_stops_the_catalog(home: Path, name: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENT_LOGGER_AGENT_FOLDERS", str(home / "project"))
    [trajectory] = recorded("mini-swe-agent/2.4.6/text", home).rglob("*.json")
    os.rename(os.fsencode(trajectory), os.fsencode(trajectory.parent) + b"/" + name + b".json")
    [talk] = recorded("gptme/0.35.1/tools", home).rglob("conversation.jsonl")
    os.rename(os.fsencode(talk.parent), os.fsencode(talk.parent.parent) + b"/" + name)
    project = os.fsencode(home / "project") + b"/" + name
    os.makedirs(project + b"/.git")
    history = DATA / "aider/0.86.2/tools/home/project/.aider.chat.history.md"
    shutil.copy(os.fsencode(history), project + b"/" + os.fsencode(history.name))
    turns = {session.agent: session.turns > 0 for session in sessions()}
    assert turns == {"aider": True, "gptme": True, "mini-swe-agent": True}


@pytest.mark.parametrize("child", ["a\0b", "\ud800", "../../../x", "x" * 5_000, "/etc/passwd", ""])
def test_no_name_in_a_file_leads_to_another_file(home: Path, child: str) -> None:
    """Droid's settings name the sub-agents whose own settings may exist."""
    [path] = recorded("droid/0.225.2/tools", home).rglob("*.settings.json")
    (home / "x.settings.json").write_text("{}")
    document = json.loads(path.read_bytes())
    document["childInclusiveTokenUsageBySessionId"] = {child: {"inputTokens": 5, "outputTokens": 1}}
    before = tokens(sessions())
    path.write_text(json.dumps(document))
    assert tokens(sessions()) == before + 6


# ---------------------------------------------------------------- links


def test_no_link_in_a_conversation_leads_out_of_it(home: Path) -> None:
    """The folder of a conversation has links to all conversations, and to the events of another one."""
    recorded("openhands/1.16.0/agents", home)
    before = sessions()
    folder = home / ".openhands/conversations"
    [real] = folder.iterdir()
    for name in ("a" * 32, "b" * 32):
        (folder / name).mkdir()
        shutil.copy(real / "base_state.json", folder / name)
    os.symlink(folder, folder / ("a" * 32) / "subagents")
    os.symlink(real / "events", folder / ("b" * 32) / "events")
    os.symlink(folder, real / "subagents" / "again")
    found = sessions()
    assert tokens(found) == tokens(before)
    assert {session.id: session.tool_calls for session in found} == {
        real.name: before[0].tool_calls,
        "a" * 32: 0,
        "b" * 32: 0,
    }


def test_no_link_in_a_conversation_leads_to_a_branch_of_another(home: Path) -> None:
    logs = recorded("gptme/0.35.1/undo_fork", home) / ".local/share/gptme/logs"
    (logs / "other").mkdir()
    (logs / "other/conversation.jsonl").write_bytes(b"")
    os.symlink(logs / "source/branches", logs / "other/branches")
    assert [session.turns for session in sessions() if session.id == "other"] in ([], [0])


# ---------------------------------------------------------------- texts that take long


def talk(text: str, role: str = "assistant") -> bytes:
    said = [("user", "Go"), (role, text)]
    return b"".join(
        json.dumps({"role": role, "content": content, "timestamp": f"2026-01-01T00:00:0{at}"}).encode() + b"\n"
        for at, (role, content) in enumerate(said)
    )


def state(rest: str) -> bytes:
    return b'{"id":"a",' + rest.encode()


LONG: dict[str, tuple[str, str, bytes]] = {
    "blocks of code without an end": ("gptme", "a/conversation.jsonl", talk("```sh\nls\n" * 100_000)),
    "elements without an end": ("gptme", "a/conversation.jsonl", talk("<tool-use><shell>\n" * 100_000)),
    "attributes without an end": ("gptme", "a/conversation.jsonl", talk("<tool-use><shell a" * 100_000)),
    "calls beside blocks": ("gptme", "a/conversation.jsonl", talk("```a\nx\n```\n@a(c:1): {}\n" * 20_000)),
    "a text without an end": ("gptme", "a/conversation.jsonl", talk('@a(c:1): {"' + '\\"' * 1_000_000)),
    "counts without an end": ("openhands", "base_state.json", state('"token_usages":[{' + '"prompt_tokens"' * 100_000)),
    "owners without counts": ("openhands", "base_state.json", state('"a":{"model_name","token_usages":[' * 50_000)),
    "responses without events": (
        *("openhands", "base_state.json"),
        state('"stats":{"usage_to_metrics":{"agent":{"token_usages":[{"prompt_tokens":1,"response_id":"0"}')
        + b"".join(b',{"prompt_tokens":1,"response_id":"%d"}' % number for number in range(1, 30_000))
        + b"]}}}}",
    ),
}


@pytest.mark.parametrize("kind", LONG)
def test_the_time_for_a_file_grows_with_its_length(kind: str, tmp_path: Path) -> None:
    name, path, data = LONG[kind]
    folders = {"gptme": ".local/share/gptme/logs", "openhands": f".openhands/conversations/{'a' * 32}"}
    file = tmp_path / "home" / folders[name] / path
    file.parent.mkdir(parents=True)
    file.write_bytes(data)
    agent = readable_agent(name)
    assert agent
    began = time.process_time()
    [source] = sources_of(name, tmp_path)
    agent.session_of(source)
    assert time.process_time() - began < LINEAR_SECONDS


@pytest.mark.parametrize("is_summary", [lambda number: True, lambda number: number % 2 == 0], ids=["only", "between"])
def test_the_time_for_a_session_of_summaries_grows_with_their_number(
    tmp_path: Path, is_summary: Callable[[int], bool]
) -> None:
    path = recorded_database("hermes", "0.19.0/tools", tmp_path / "home")
    texts = [f"[CONTEXT COMPACTION {number}" if is_summary(number) else f"{number}" for number in range(5_000)]
    with closing(sqlite3.connect(path)) as database, database:
        [(session,)] = database.execute("SELECT id FROM sessions").fetchall()
        insert = "INSERT INTO messages (session_id, role, content, timestamp) VALUES (?, 'user', ?, ?)"
        database.executemany(insert, [(session, text, 1e9 + number) for number, text in enumerate(texts)])
    agent = readable_agent("hermes")
    assert agent
    began = time.process_time()
    [source] = sources_of("hermes", tmp_path)
    agent.session_of(source)
    assert time.process_time() - began < LINEAR_SECONDS


def test_sessions_that_continue_each_other_are_read_in_time(home: Path) -> None:
    path = recorded_database("hermes", "0.19.0/tools", home)
    with closing(sqlite3.connect(path)) as database, database:
        rows = [(f"s{number}", f"s{number - 1}" if number else None, float(number)) for number in range(4_000)]
        columns = "id, parent_session_id, started_at, source, end_reason"
        database.executemany(f"INSERT INTO sessions ({columns}) VALUES (?, ?, ?, 'cli', 'branched')", rows)
    began = time.process_time()
    assert len(sources_of("hermes", home.parent)) == 1  # in the others, nothing was said
    assert time.process_time() - began < LINEAR_SECONDS
