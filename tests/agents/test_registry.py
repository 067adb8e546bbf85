"""Whose file it is, by its name and how it begins."""

import json
from pathlib import Path

import pytest

from agent_logger.agents.registry import AGENTS, agent_called, recognise, resume_command
from agent_logger.files.sources import FIRST_BYTES
from tests.agents.foreign import DATA, source

CODEX = sorted(DATA.glob("codex/**/rollout-*.jsonl"))
GEMINI = sorted(DATA.glob("gemini-cli/**/session-*.jsonl"))
CLAUDE = sorted(DATA.glob("claude-cli/*/*/home/.claude/projects/*/*.jsonl"))
SUB_AGENTS = {"01a1df72-0827-70a3-9d64-ac108f3cc73f", "01a1df74-2f16-7733-95f5-ccc3d34182d4"}


def agent(path: Path) -> str | None:
    found = recognise(path.as_posix(), path.read_bytes()[:FIRST_BYTES])
    return found.name if found else None


def test_an_agent_without_files_of_its_real_client_is_unverified() -> None:
    folders = {"claude-code": "claude-cli"}
    readable = [agent for agent in AGENTS if agent.reader]
    recorded = {agent.name for agent in readable if [*(DATA / folders.get(agent.name, agent.name)).glob("*/*/")]}
    assert {agent.name for agent in readable if agent.is_verified} == recorded


def test_recorded_files_are_recognised_by_agent() -> None:
    mains = [path for path in CODEX if path.stem[-36:] not in SUB_AGENTS]
    assert {agent(path) for path in mains} == {"codex"}
    assert {agent(path) for path in GEMINI} == {"gemini-cli"}
    assert CLAUDE and {agent(path) for path in CLAUDE} == {"claude-code"}
    assert recognise("/x/opencode.db", b"SQLite format 3\0...") is agent_called("opencode")


def test_subagent_files_are_not_main_files() -> None:
    subs = [path for path in CODEX if path.stem[-36:] in SUB_AGENTS]
    assert len(subs) == 2
    assert {agent(path) for path in subs} == {None}
    sub = json.dumps({"sessionId": "s", "kind": "subagent"}).encode()
    assert recognise("chats/p/session-1.jsonl", sub) is None


def test_a_database_with_the_tables_of_a_fork_is_the_forks() -> None:
    tables = b"".join(b"CREATE TABLE `%b` (id text);" % name for name in (b"session", b"message", b"part"))
    database = b"SQLite format 3\0" + tables
    assert recognise("/x/some.dat", database) is agent_called("opencode")
    assert recognise("/x/some.dat", database + b"CREATE TABLE `kilo_board` (id text);") is agent_called("kilo")


def test_a_truncated_first_line_is_enough_to_recognise_a_file() -> None:
    [main, sub, *_] = sorted(DATA.glob("codex/0.166.0/app_server/**/rollout-*.jsonl"))
    assert recognise(main.name, main.read_bytes()[:900])
    assert recognise(sub.name, sub.read_bytes()[:900]) is None


@pytest.mark.parametrize(
    ("path", "first"),
    [
        ("rollout-1.jsonl", b""),
        ("rollout-1.jsonl", b'{"type":"session_meta"}\n'),
        ("rollout-1.jsonl", b"[" * 5_000),
        ("notes.jsonl", b'{"type":"user"}\n'),
        ("session-1.jsonl", b"{}\n"),
        ("session-1.jsonl", b"\xff\0"),
        ("opencode.db", b"nothing"),
        ("opencode.db-wal", b"SQLite format 3\0"),
        ("agent-abc.jsonl", b'{"type":"user"}\n'),
    ],
)
def test_other_files_are_not_recognised(path: str, first: bytes) -> None:
    assert recognise(path, first) is None


def test_an_unknown_agent_name_has_no_agent() -> None:
    assert agent_called("nobody") is None
    assert agent_called(None) is None


@pytest.mark.parametrize(
    "name", ["codex", "gemini-cli", "goose", "hermes", "kilo", "openclaw", "opencode", "qwen-code"]
)
def test_each_agent_reads_an_empty_source(name: str) -> None:
    found = agent_called(name)
    assert found
    assert found.session_of(source(b"")).agent == name
    assert list(found.responses_of(source(b""))) == []


def test_only_sessions_with_an_id_of_their_agent_have_a_resume_command() -> None:
    assert resume_command("claude-code", "1f320356") == ["claude", "--resume", "1f320356"]
    assert resume_command("unheard-of", "x") is None
    assert resume_command("claude-code", "20261115_080000_unnamed-1") is None
    assert resume_command("hermes", "20261115_080000_0a1b2c") == [
        "hermes",
        "chat",
        "--resume",
        "20261115_080000_0a1b2c",
    ]
    assert resume_command("hermes", "20261115_080000_unnamed-1") is None
