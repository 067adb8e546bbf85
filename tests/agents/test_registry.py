"""Whose file it is, by its name and how it begins."""

import json
from pathlib import Path

import pytest

from agent_logger.agents.locations import AGENT_PLACES
from agent_logger.agents.registry import FIRST_BYTES, FORMATS, format_of, recognised
from tests.agents.foreign import DATA, source

CODEX = sorted(DATA.glob("codex/**/rollout-*.jsonl"))
GEMINI = sorted(DATA.glob("gemini-cli/**/session-*.jsonl"))
CLAUDE = sorted(DATA.glob("claude-cli/*/*/home/.claude/projects/*/*.jsonl"))
SUB_AGENTS = {"01a1df72-0827-70a3-9d64-ac108f3cc73f", "01a1df74-2f16-7733-95f5-ccc3d34182d4"}


def agent(path: Path) -> str | None:
    found = recognised(path.as_posix(), path.read_bytes()[:FIRST_BYTES])
    return found.agent if found else None


def test_the_recorded_files_are_recognised() -> None:
    mains = [path for path in CODEX if path.stem[-36:] not in SUB_AGENTS]
    assert {agent(path) for path in mains} == {"codex"}
    assert {agent(path) for path in GEMINI} == {"gemini-cli"}
    assert CLAUDE and {agent(path) for path in CLAUDE} == {"claude-code"}
    assert recognised("/x/opencode.db", b"SQLite format 3\0...") is format_of("opencode")


def test_files_of_sub_agents_are_no_main_files() -> None:
    subs = [path for path in CODEX if path.stem[-36:] in SUB_AGENTS]
    assert len(subs) == 2
    assert {agent(path) for path in subs} == {None}
    sub = json.dumps({"sessionId": "s", "kind": "subagent"}).encode()
    assert recognised("chats/p/session-1.jsonl", sub) is None


def test_a_first_line_that_is_longer_than_what_is_seen_of_it_will_do() -> None:
    [main, sub, *_] = sorted(DATA.glob("codex/0.166.0/app_server/**/rollout-*.jsonl"))
    assert recognised(main.name, main.read_bytes()[:900])
    assert recognised(sub.name, sub.read_bytes()[:900]) is None


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
    assert recognised(path, first) is None


def test_every_agent_has_a_row_and_a_place() -> None:
    assert [it.agent for it in FORMATS] == [it.agent for it in AGENT_PLACES]
    assert format_of("nobody") is None


@pytest.mark.parametrize("name", ["codex", "gemini-cli", "opencode", "qwen-code"])
def test_a_row_reads(name: str) -> None:
    found = format_of(name)
    assert found
    assert found.session_of(source(b"")).agent == name
    assert list(found.responses_of(source(b""))) == []
