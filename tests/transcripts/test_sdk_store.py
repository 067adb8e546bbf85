"""The SDK's own suite over our store, and the real SDK that resumes from it."""

import asyncio
import inspect
import json
import re
import shutil
import sys
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_logger import FileStorage, read_session
from agent_logger.errors import StoreError
from agent_logger.logs.verify import log_files, verify_file
from agent_logger.transcripts.log import logs_in
from agent_logger.transcripts.sdk_store import AgentLoggerSessionStore
from tests.clients import Sandbox
from tests.fakeapi import FakeAPI
from tests.recording.test_examples import EXAMPLES, environment
from tests.transcripts.test_storage import JSON, TYPES

DATA = Path(__file__).parents[1] / "data"
SCENARIOS = Path(__file__).parents[1] / "fakeapi" / "scenarios"
KEY = {"project_key": "-work", "session_id": "1f320356-a178-418e-a692-69ce6e1e657c"}


@pytest.fixture
def store(tmp_path: Path) -> AgentLoggerSessionStore:
    return AgentLoggerSessionStore(FileStorage(tmp_path / "root", tmp_path))


def appended(store: AgentLoggerSessionStore, entries: list[dict[str, Any]], **key: Any) -> list[dict[str, Any]] | None:
    wanted = {**KEY, **key}
    asyncio.run(store.append(wanted, entries))
    return asyncio.run(store.load(wanted))


# ---------------------------------------------------------------- the SDK's suite


@pytest.mark.needs("claude_agent_sdk")
def test_the_sdk_conformance_suite_passes_without_skips(tmp_path: Path) -> None:
    testing = pytest.importorskip("claude_agent_sdk.testing")
    protocol = pytest.importorskip("claude_agent_sdk").SessionStore
    numbers = count()
    asyncio.run(
        testing.run_session_store_conformance(
            lambda: AgentLoggerSessionStore(FileStorage(tmp_path / str(next(numbers)), tmp_path))
        )
    )
    methods = [name for name, _ in inspect.getmembers(protocol, inspect.isfunction) if not name.startswith("_")]
    assert len(methods) == 6
    assert all(name in vars(AgentLoggerSessionStore) for name in methods)
    assert next(numbers) == 15  # one to see what there is, and one for each of the 14


# ---------------------------------------------------------------- what comes back

ENTRIES = st.builds(lambda kind, rest: {**rest, "type": kind}, TYPES, st.dictionaries(st.text(), JSON, max_size=4))


@settings(max_examples=40, deadline=None)
@given(batches=st.lists(st.lists(ENTRIES, max_size=4), min_size=1, max_size=3))
def test_any_entries_round_trip(tmp_path_factory: pytest.TempPathFactory, batches: list[list[dict[str, Any]]]) -> None:
    root = tmp_path_factory.mktemp("root")
    store = AgentLoggerSessionStore(FileStorage(root, root))
    for batch in batches:
        appended(store, batch)
    wanted = [entry for batch in batches for entry in batch]
    again = AgentLoggerSessionStore(FileStorage(root, root))
    assert asyncio.run(again.load(KEY)) == (wanted or None)


def test_entries_are_stored_verbatim(store: AgentLoggerSessionStore, tmp_path: Path) -> None:
    entries: list[dict[str, Any]] = [
        {"type": "user", "z": 1, "a": "x" * 100_000, "persistedOutputs": []},
        {"type": "ai-title", "aiTitle": "t"},
    ]
    assert appended(store, entries) == entries
    folder = tmp_path / "root" / "projects" / "-work"
    written = (folder / f"{KEY['session_id']}.jsonl").read_bytes().splitlines()
    assert [json.loads(line)["type"] for line in written] == ["session_header", "user", "ai-title"]
    assert written[1:] == [json.dumps(it, separators=(",", ":")).encode() for it in entries]
    assert not (folder / KEY["session_id"]).exists()  # no side files


def test_an_entry_with_a_repeated_uuid_is_stored_once(store: AgentLoggerSessionStore) -> None:
    entry, title = {"type": "user", "uuid": "u1"}, {"type": "ai-title"}
    appended(store, [entry, title])
    assert appended(store, [entry, title]) == [entry, title, title]


@pytest.mark.parametrize("size", [100, 5 << 20, 17 << 20], ids=["short", "5 MB", "17 MB"])
def test_batches_of_any_size_round_trip(store: AgentLoggerSessionStore, size: int) -> None:
    entries = [{"type": "user", "uuid": f"u{number}", "text": "x" * size} for number in range(2)]
    assert appended(store, entries) == entries


def test_a_failing_disk_raises_and_a_retry_stores_the_entries_once(
    store: AgentLoggerSessionStore, tmp_path: Path
) -> None:
    projects = tmp_path / "root" / "projects"
    projects.parent.mkdir()
    projects.write_text("a file where the folder should be")
    entries = [{"type": "user", "uuid": "u1"}, {"type": "mode"}]
    with pytest.raises(StoreError):
        appended(store, entries)
    projects.unlink()
    give_up = 100
    for _ in range(give_up):
        try:
            assert appended(store, entries) == entries
            break
        except StoreError:
            asyncio.run(asyncio.sleep(0.02))
    else:
        raise AssertionError("it did not get well again")


HOSTILE = [
    "..", "../..", "../../../etc/x", "/etc/passwd", "a/../../b", "a//b", "", "a\0b", "x" * 400, "memory",
    "a.bodies", "~", "-", ".hidden", "a.jsonl", "a.p2", "CON", "a b", "\N{PARTY POPPER}",
    "d41d8cd98f00b204e9800998ecf8427e",
]  # fmt: skip


@pytest.mark.parametrize("field", ["project_key", "session_id", "subpath"])
def test_hostile_keys_stay_separate_and_inside_the_root(tmp_path: Path, field: str) -> None:
    root = tmp_path / "in" / "root"
    store = AgentLoggerSessionStore(FileStorage(root, tmp_path))
    keys = [{**KEY, field: name} for name in HOSTILE if name or field != "subpath"]
    for number, key in enumerate(keys):
        asyncio.run(store.append(key, [{"type": "user", "n": number}]))
    for number, key in enumerate(keys):
        assert asyncio.run(store.load(key)) == [{"type": "user", "n": number}]
    outside = {path for path in tmp_path.rglob("*") if root not in (path, *path.parents) and path != root.parent}
    assert {it for it in outside if tmp_path / "home" not in (it, *it.parents)} == set()
    if field == "session_id":
        assert sorted(it["session_id"] for it in asyncio.run(store.list_sessions("-work"))) == sorted(HOSTILE)
    if field == "subpath":
        assert asyncio.run(store.list_subkeys(KEY)) == sorted(it for it in HOSTILE if it)
    for key in keys[::2]:
        asyncio.run(store.delete(key))
    left = [asyncio.run(store.load(key)) is not None for key in keys]
    assert left == [number % 2 == 1 for number in range(len(keys))]


@pytest.mark.parametrize(
    "below", ["", KEY["session_id"], f"{KEY['session_id']}/subagents"], ids=["project", "session", "agents"]
)
def test_nothing_is_read_written_or_removed_through_a_symlink(tmp_path: Path, below: str) -> None:
    outside = AgentLoggerSessionStore(FileStorage(tmp_path / "outside", tmp_path))
    secret = [{"type": "user", "secret": True}]
    appended(outside, secret)
    appended(outside, secret, subpath="subagents/agent-1")
    store = AgentLoggerSessionStore(FileStorage(tmp_path / "root", tmp_path))
    link = tmp_path / "root" / "projects" / "-work" / below
    link.parent.mkdir(parents=True)
    link.symlink_to(tmp_path / "outside" / "projects" / "-work" / below)
    key = {**KEY, "subpath": "subagents/agent-1"} if below else KEY
    assert asyncio.run(store.load(key)) is None
    assert asyncio.run(store.list_subkeys(KEY)) == []
    with pytest.raises(StoreError):
        asyncio.run(store.append(key, secret))
    asyncio.run(store.delete(key))
    asyncio.run(store.delete(KEY))
    assert asyncio.run(outside.load(key)) == secret


def test_deleting_a_subpath_keeps_deeper_subpaths(store: AgentLoggerSessionStore) -> None:
    for subpath in ("subagents/agent-1", "subagents/agent-1/deeper"):
        appended(store, [{"type": "user"}], subpath=subpath)
    asyncio.run(store.delete({**KEY, "subpath": "subagents/agent-1"}))
    assert asyncio.run(store.list_subkeys(KEY)) == ["subagents/agent-1/deeper"]


def test_the_store_handles_more_logs_than_it_keeps_open(
    store: AgentLoggerSessionStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agent_logger.transcripts.sdk_store.MOST_OPEN", 3)
    for turn in range(2):
        for number in range(10):
            appended(store, [{"type": "user", "uuid": f"{turn}"}], session_id=f"s{number}")
    assert [len(asyncio.run(store.load({**KEY, "session_id": f"s{number}"})) or []) for number in range(10)] == [2] * 10


# ---------------------------------------------------------------- what was recorded of a real session


FILES = sorted(DATA.glob("claude-*/*/*/home/.claude/projects/*/*.jsonl"))


def recorded(path: Path) -> Iterator[tuple[dict[str, str], list[dict[str, Any]]]]:
    """A session of the client's as the SDK would give it to a store."""
    key = {"project_key": path.parent.name, "session_id": path.stem}
    yield key, lines(path)
    for agent in sorted(path.with_suffix("").glob("subagents/*.jsonl")):
        meta = agent.with_suffix(".meta.json")
        described = [{"type": "agent_metadata", **json.loads(meta.read_bytes())}] if meta.exists() else []
        yield {**key, "subpath": f"subagents/{agent.stem}"}, lines(agent) + described


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_bytes().split(b"\n")[:-1]]


@pytest.mark.parametrize("path", FILES, ids=lambda it: "-".join((it.parts[-7], it.parts[-6], it.stem[:8])))
def test_a_stored_client_session_reads_the_same_as_its_transcript(
    store: AgentLoggerSessionStore, tmp_path: Path, path: Path
) -> None:
    beside = path.with_suffix("") / "tool-results"
    if beside.exists() or not path.stat().st_size:
        return  # what the client has in other files, the SDK does not give to a store
    for key, entries in recorded(path):
        asyncio.run(store.append(key, entries))
    (log,) = logs_in(tmp_path / "root" / "projects" / path.parent.name)
    assert read_session(log.path) == read_session(path)


def test_sample_sessions_with_sub_agents_exist() -> None:
    assert len(FILES) > 40
    assert sum(len(list(recorded(path))) > 1 for path in FILES) > 2


# ---------------------------------------------------------------- the real SDK


def ask(sandbox: Sandbox, url: str, *arguments: str) -> str:
    command = [sys.executable, str(EXAMPLES / "session_store.py"), *arguments]
    done = sandbox.run(command, environment(url))
    assert done.exit_code == 0, done.stdout + done.stderr
    found = re.search(r"session ([0-9a-f-]{36})", done.stdout)
    assert found, done.stdout
    return found[1]


def without_files_of_the_client(sandbox: Sandbox) -> None:
    for path in sandbox.home.glob(".claude*"):
        shutil.rmtree(path) if path.is_dir() else path.unlink()


@pytest.mark.needs("claude_agent_sdk")
@pytest.mark.needs("claude")
@pytest.mark.parametrize(
    ("scenario", "prompt"),
    [("hello_repeat", "Remember BANANA"), ("subagent", "Use two agents, then tell me.")],
    ids=["a conversation", "with sub-agents"],
)
def test_a_session_is_resumed_from_the_store_without_client_files(sandbox: Sandbox, scenario: str, prompt: str) -> None:
    with FakeAPI(SCENARIOS / f"{scenario}.json", {"CWD": str(sandbox.project)}) as api:
        session = ask(sandbox, api.url, prompt)
        asked = len(api.calls)
        without_files_of_the_client(sandbox)
        assert ask(sandbox, api.url, "--resume", session, "What did I ask?") == session
        resumed = [call for call in api.calls[asked:] if b"What did I ask?" in call.body]
    assert resumed
    assert prompt.encode() in resumed[0].body
    projects = sandbox.home / ".agent-logger" / "projects"
    (log,) = [it for folder in projects.iterdir() for it in logs_in(folder)]
    found = read_session(log.path)
    assert (found.id, found.agent) == (session, "claude-code")
    assert found.witnesses == {"transcript"}
    assert [it.user_input for it in found.exchanges][:1] + [it.user_input for it in found.exchanges][-1:] == [
        prompt,
        "What did I ask?",
    ]
    assert len(found.agents) == (2 if scenario == "subagent" else 0)
    assert [bad for path in log_files(projects) for bad in verify_file(path).damage] == []
