"""Whose file it is, by its name and how it begins."""

import json
from pathlib import Path

import pytest

from agent_logger.agents.registry import agent_called, recognise, resume_command
from agent_logger.files.sources import FIRST_BYTES
from tests.agents.foreign import DATA, source

CODEX = sorted(DATA.glob("codex/**/rollout-*.jsonl"))
GEMINI = sorted(DATA.glob("gemini-cli/**/session-*.jsonl"))
CLAUDE = sorted(DATA.glob("claude-cli/*/*/home/.claude/projects/*/*.jsonl"))
SUB_AGENTS = {"01a1df72-0827-70a3-9d64-ac108f3cc73f", "01a1df74-2f16-7733-95f5-ccc3d34182d4"}


def agent(path: Path) -> str | None:
    found = recognise(path.as_posix(), path.read_bytes()[:FIRST_BYTES])
    return found.name if found else None


def test_the_recorded_files_are_recognise() -> None:
    mains = [path for path in CODEX if path.stem[-36:] not in SUB_AGENTS]
    assert {agent(path) for path in mains} == {"codex"}
    assert {agent(path) for path in GEMINI} == {"gemini-cli"}
    assert CLAUDE and {agent(path) for path in CLAUDE} == {"claude-code"}
    assert recognise("/x/opencode.db", b"SQLite format 3\0...") is agent_called("opencode")


def test_files_of_sub_agents_are_no_main_files() -> None:
    subs = [path for path in CODEX if path.stem[-36:] in SUB_AGENTS]
    assert len(subs) == 2
    assert {agent(path) for path in subs} == {None}
    sub = json.dumps({"sessionId": "s", "kind": "subagent"}).encode()
    assert recognise("chats/p/session-1.jsonl", sub) is None


def test_a_first_line_that_is_longer_than_what_is_seen_of_it_will_do() -> None:
    [main, sub, *_] = sorted(DATA.glob("codex/0.166.0/app_server/**/rollout-*.jsonl"))
    assert recognise(main.name, main.read_bytes()[:900])
    assert recognise(sub.name, sub.read_bytes()[:900]) is None


@pytest.mark.parametrize(
    ("path", "first"),
    [
        ("rollout-1.jsonl", b""),
        ("rollout-1.jsonl", b'{"type":"session_meta"}\n'),
        ("rollout-1.jsonl", b"[" * 5_000),
        ("rollout-1.json", b'{"type":"session_meta","payload":{"id":"x"}}'),
        ("notes.jsonl", b'{"type":"user"}\n'),
        ("session-1.jsonl", b"{}\n"),
        ("session-1.jsonl", b"\xff\0"),
        ("opencode.db", b"nothing"),
        ("opencode.db-wal", b"SQLite format 3\0"),
        ("agent-abc.jsonl", b'{"type":"user"}\n'),
    ],
)
def test_other_files_are_nobodys(path: str, first: bytes) -> None:
    assert recognise(path, first) is None


def test_a_name_that_is_no_agents_is_nobodys() -> None:
    assert agent_called("nobody") is None
    assert agent_called(None) is None


@pytest.mark.parametrize("name", ["codex", "gemini-cli", "opencode", "qwen-code"])
def test_a_row_reads(name: str) -> None:
    found = agent_called(name)
    assert found
    assert found.session_of(source(b"")).agent == name
    assert list(found.responses_of(source(b""))) == []


def test_a_session_with_a_name_of_its_clients_can_be_resumed() -> None:
    assert resume_command("claude-code", "1f320356") == ["claude", "--resume", "1f320356"]
    assert resume_command("unheard-of", "x") is None
    assert resume_command("claude-code", "20261115_080000_unnamed-1") is None
