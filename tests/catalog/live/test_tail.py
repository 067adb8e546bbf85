"""What live sessions do is told once, line by line as it is written."""

import os
from collections import Counter
from pathlib import Path

import pytest

from agent_logger import SessionLogger
from agent_logger.catalog.live.moments import Moment
from agent_logger.catalog.live.tail import Tail
from agent_logger.home.facts import register_log_folder
from agent_logger.home.homes import Homes
from agent_logger.journal.journal import Journal
from agent_logger.model.records import Request, Response
from tests.agents.claude_code.claude_files import data_of, user
from tests.agents.foreign import DATA
from tests.journal.wire_logs import CHAIN, write
from tests.logs.wire_log.wire_records import talk
from tests.recording.sdk_fixtures import lines

Told = tuple[str, str, str]


@pytest.fixture
def tail(home: Path, monkeypatch: pytest.MonkeyPatch) -> Tail:
    monkeypatch.setattr("agent_logger.catalog.live.tail.LOOK_SECONDS", 0.0)
    return Tail(Homes(home / ".agent-logger"))


def told(events: list[Moment]) -> list[Told]:
    return [(it.thread, it.what, it.text) for it in events]


AGENTS = [
    pytest.param("claude-cli/2.1.325/tools_stream", ".claude", id="claude-code"),
    pytest.param("claude-cli/2.1.325/subagents", ".claude", id="sub-agents"),
    pytest.param("claude-cli/1.0.3/resume_chain", ".claude", id="claude-code 1.0"),
    pytest.param("codex/0.166.0/exec_resume", ".codex", id="codex"),
    pytest.param("gemini-cli/0.61.0/exec_resume", ".gemini", id="gemini-cli"),
]


@pytest.mark.parametrize(("scenario", "folder"), AGENTS)
def test_polling_after_each_line_gives_the_same_events_as_polling_once(
    home: Path, tail: Tail, scenario: str, folder: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    source = DATA / scenario / "home" / folder
    files = sorted(it for it in source.rglob("*.jsonl") if it.is_file())
    at_once = told(_copied(tmp_path / "other", source, files, monkeypatch))
    monkeypatch.setenv("HOME", str(home))
    found: list[Told] = []
    for file in files:
        copy = home / folder / file.relative_to(source)
        copy.parent.mkdir(parents=True, exist_ok=True)
        with copy.open("ab", buffering=0) as out:
            for line in file.read_bytes().splitlines(keepends=True):
                out.write(line[:20])
                out.write(line[20:])
                found += told(tail.poll())
    assert Counter(found) == Counter(at_once)
    assert any(what == "input" for _, what, _ in found)


def _copied(home: Path, source: Path, files: list[Path], monkeypatch: pytest.MonkeyPatch) -> list[Moment]:
    for file in files:
        copy = home / source.name / file.relative_to(source)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes(file.read_bytes())
    monkeypatch.setenv("HOME", str(home))
    return Tail(Homes(home / ".agent-logger")).poll()


def test_calls_are_reported_as_they_are_recorded(home: Path, tail: Tail) -> None:
    folder = home / "logs"
    register_log_folder(home / ".agent-logger", folder)
    spoken = talk("claude-cli/2.1.325/tools_stream")
    journal = Journal(folder / "anthropic", "20261115-080000-abcd", "wire")
    found: list[Moment] = []
    for record in spoken.records():
        journal.append(record)
        found += tail.poll()
    journal.close()
    assert {it.session for it in found} == {spoken.client_id}
    kinds = [it.what for it in found]
    assert kinds[0] == "input"
    assert kinds.count("input") == 1
    assert kinds.count("tool") == kinds.count("result") + kinds.count("error") > 0
    assert len(found) == len({(it.at, it.thread, it.what, it.text) for it in found})


def test_sdk_messages_are_reported_while_the_exchange_is_in_flight(home: Path, tail: Tail) -> None:
    logger = SessionLogger(home / "sessions")
    found: list[Moment] = []
    logger.log_user_input("a poem, please")
    for message in lines(DATA / "claude-cli/2.1.325/tools_stream/stream.stdout"):
        logger.log(message)
        found += tail.poll()
    before = len(found)
    logger.close()
    assert tail.poll() == []  # the exchange is in the log now, and was told
    assert before
    assert [it.text for it in found if it.what == "input"] == ["a poem, please"]
    assert [it.what for it in found if it.what in ("tool", "result")]


def test_the_file_of_the_agent_is_followed_if_it_exists(home: Path, tail: Tail) -> None:
    register_log_folder(home / ".agent-logger", home / "logs")
    assert CHAIN.client_id
    write(home / "logs" / "anthropic", "20261115-080000-abcd", CHAIN.records())
    by_wire = told(tail.poll())
    source = DATA / CHAIN.name / "home"
    for file in source.rglob(f"{CHAIN.client_id}.jsonl"):
        copy = home / file.relative_to(source)
        copy.parent.mkdir(parents=True)
        copy.write_bytes(file.read_bytes())
    assert [what for _, what, _ in by_wire] == ["input", "text"] * 3
    assert tail.poll() == []  # the wire has told all of it
    with copy.open("ab") as out:
        out.write(data_of([user("new", "And now?", at=3)]))
    assert told(tail.poll()) == [("main", "input", "And now?")]


def test_only_live_sessions_are_reported_unless_one_is_requested(home: Path) -> None:
    register_log_folder(home / ".agent-logger", home / "logs")
    path = write(home / "logs" / "anthropic", "20261115-080000-abcd", CHAIN.records())
    os.utime(path, (1_000.0, 1_000.0))
    assert Tail(Homes(home / ".agent-logger")).poll() == []
    assert len(Tail(Homes(home / ".agent-logger"), CHAIN.client_id).poll()) == 6
    assert Tail(Homes(home / ".agent-logger"), "another").poll() == []


def test_only_the_end_of_a_long_log_is_reported(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    register_log_folder(home / ".agent-logger", home / "logs")
    records = CHAIN.records()
    write(home / "logs" / "anthropic", "20261115-080000-abcd", records)
    last = sum(len(it.body or "") for it in records[-2:] if isinstance(it, Request | Response))
    monkeypatch.setattr("agent_logger.catalog.live.open_calls.FIRST_BYTES", last + 4000)
    found = told(Tail(Homes(home / ".agent-logger")).poll())
    assert 0 < len(found) < 6
    assert found[-1][1] == "text"
