"""A session's file is recognised by what is in it, whatever its name."""

import json
import os
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from agent_logger import FileStorage, SessionLogger, discover, find_session, read_session
from agent_logger.errors import SourceError
from agent_logger.model.session import Session
from agent_logger.records import encode_line
from tests.agents.foreign import DATA
from tests.agents.qwen_code import test_session as qwen
from tests.commands import run_command
from tests.logs.wire_log.wire_records import talks
from tests.recording.test_sdk_logger import init, log_all, result, said

ID = "1f320356-a178-418e-a692-69ce6e1e657c"
NAMES = ("colleague.jsonl", "session.jsonl", "a talk", "notes.txt", "x.json", f"{ID}.jsonl")
USER = {
    "type": "user",
    "uuid": "u1",
    "sessionId": "spec",
    "timestamp": "2025-11-07T08:45:32.000Z",
    "message": {"role": "user", "content": "Why?"},
}
SPECIFICATION = [
    {"type": "summary", "summary": "Slow builds", "leafUuid": "u2"},
    USER,
    {"type": "tool_use", "uuid": "u2", "sessionId": "spec", "name": "Bash", "input": {}, "tool_use_id": "t"},
]


def _agents_files(folder: Path) -> Iterator[tuple[str, Path]]:
    yield "claude-code", next(DATA.glob("claude-cli/2.1.325/tools_stream/home/.claude/projects/*/*.jsonl"))
    yield "claude-code", next(DATA.glob("claude-cli/1.0.3/*/home/.claude/projects/*/*.jsonl"))
    yield "codex", next(DATA.glob("codex/0.166.0/exec_resume/**/rollout-*.jsonl"))
    yield "codex", next(DATA.glob("codex/0.50.0/exec_resume/**/rollout-*.jsonl"))
    yield "gemini-cli", next(DATA.glob("gemini-cli/**/session-*.jsonl"))
    yield "pi", next(DATA.glob("pi/0.87.1/tree/**/sessions/*/*.jsonl"))
    (folder / f"{qwen.ID}.jsonl").write_bytes(qwen.CHAT)
    yield "qwen-code", folder / f"{qwen.ID}.jsonl"
    with closing(sqlite3.connect(folder / "opencode.db")) as new:
        new.executescript((DATA / "opencode/1.18.33/agents_fork/opencode.sql").read_text())
    yield "opencode", folder / "opencode.db"


def _own_logs(folder: Path) -> Iterator[tuple[str, Path]]:
    with SessionLogger(folder / "exchanges") as logger:
        log_all(logger, "Why?", init(), said("Because."), result(0.1))
    assert logger.path
    yield "claude-code", logger.path
    with FileStorage(folder / "stored", agent="mine") as storage:
        storage.append("s", {"type": "user", "message": {"role": "user", "content": "Why?"}})
    yield "mine", next((folder / "stored/projects").glob("*/s.jsonl"))
    talk = next(talk for talk in talks() if talk.client_id)
    wire = folder / "20261115-084532-a7f3.jsonl"
    wire.write_bytes(b"".join(map(encode_line, talk.records())))
    yield read_session(wire).agent or "", wire


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[str, Path]]:
    folder = tmp_path_factory.mktemp("files")
    return [*_agents_files(folder), *_own_logs(folder)]


def facts(session: Session) -> tuple[object, ...]:
    inputs = [exchange.user_input for exchange in session.exchanges]
    return session.agent, inputs, len(session.turns), session.usage


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("number", range(11))
def test_a_renamed_file_is_the_same_session(
    number: int, name: str, files: list[tuple[str, Path]], tmp_path: Path
) -> None:
    agent, path = files[number]
    shutil.copy(path, tmp_path / name)
    session = read_session(tmp_path / name)
    assert session.agent == agent and (session.turns or session.exchanges)
    assert facts(session) == facts(read_session(path))


def test_the_table_has_every_kind_of_file(files: list[tuple[str, Path]]) -> None:
    assert len(files) == 11


@pytest.mark.parametrize("kind", [str, Path, os.fspath, os.fsencode])
def test_a_path_may_be_text_or_a_path(kind: type, tmp_path: Path) -> None:
    (tmp_path / "session.jsonl").write_text("".join(json.dumps(line) + "\n" for line in SPECIFICATION))
    path = kind(tmp_path / "session.jsonl")
    if isinstance(path, bytes):
        with pytest.raises(TypeError):
            read_session(path)  # type: ignore[arg-type]
        return
    session = read_session(path)
    assert (session.id, session.agent, [it.user_input for it in session.exchanges]) == ("spec", "claude-code", ["Why?"])


OTHERS = [
    b"",
    b"not json\n",
    b"{}\n",
    b'{"type":"user"}\n',
    b'{"type":"user","sessionId":"s","isSidechain":true,"message":{}}\n',
    b'{"sessionId":"s","projectHash":"h","kind":"subagent"}\n',
    b'{"id":"a","timestamp":"b"}\n',
    b"SQLite format 3\0 and no table",
    b"[" * 70_000,
]


@pytest.mark.parametrize("data", OTHERS, ids=range(len(OTHERS)))
def test_other_files_are_refused(data: bytes, tmp_path: Path) -> None:
    (tmp_path / "notes.jsonl").write_bytes(data)
    with pytest.raises(SourceError, match="not a session"):
        read_session(tmp_path / "notes.jsonl")


def test_a_first_line_that_is_longer_than_what_is_looked_at_is_recognised(tmp_path: Path) -> None:
    line = {**USER, "message": {"role": "user", "content": "x" * 100_000}}
    (tmp_path / "long").write_text(json.dumps(line, separators=(",", ":")) + "\n")
    assert read_session(tmp_path / "long").agent == "claude-code"


def test_a_folder_is_searched_for_sessions(files: list[tuple[str, Path]], home: Path, tmp_path: Path) -> None:
    below = tmp_path / "copied/from a colleague"
    below.mkdir(parents=True)
    for number, (_, path) in enumerate(files):
        shutil.copy(path, below / f"{number}.jsonl")
    (below / "README").write_text("Sessions\n")
    (below / "link.jsonl").symlink_to(below / "0.jsonl")
    found = discover(str(tmp_path / "copied"))
    names = {place.path.name for place in found}
    assert names == {f"{number}.jsonl" for number in range(len(files))}
    agents = {place.path.name: place.read().agent for place in found}
    assert [agents[f"{number}.jsonl"] for number in range(len(files))] == [agent for agent, _ in files]
    assert discover() == []


def test_a_session_is_found_in_a_project_given_as_text(home: Path) -> None:
    for project in ("-p-a", "-p-b"):
        file = home / ".claude/projects" / project / f"{ID}.jsonl"
        file.parent.mkdir(parents=True)
        file.write_text(json.dumps(USER) + "\n")
    assert find_session(ID, "/p/b") == home / ".claude/projects/-p-b" / f"{ID}.jsonl"


@pytest.mark.parametrize("name", ["colleague.jsonl", "talk.txt"])
def test_show_takes_a_renamed_file(name: str, files: list[tuple[str, Path]], home: Path) -> None:
    shutil.copy(files[0][1], home / name)
    done = run_command(["show", str(home / name)], {"HOME": str(home), "PATH": os.environ["PATH"]})
    assert done.returncode == 0 and "claude-code" in done.stdout
