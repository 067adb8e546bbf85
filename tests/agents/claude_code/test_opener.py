"""The files of a Claude Code session are found in every layout, and nothing outside of it."""

import json
import os
from pathlib import Path

import pytest

from agent_logger.agents.claude_code import opener
from agent_logger.agents.claude_code.opener import claude_source
from agent_logger.agents.claude_code.transcript.responses import responses_of
from agent_logger.agents.claude_code.transcript.session import session_of
from agent_logger.agents.source_files import SourceFiles
from agent_logger.errors import SourceError
from tests.agents.claude_code.claude_files import SESSION, assistant, data_of, result, use, user

MAIN = [user("u", "hi"), assistant("a", "msg_01abcdefghijklmn", use("toolu_1", "Agent", prompt="go"))]
AGENT = [user("x", "go", isSidechain=True), assistant("y", "msg_01bbbbbbbbbbbbbb", "done", isSidechain=True)]


@pytest.fixture
def main(tmp_path: Path) -> Path:
    path = tmp_path / "project" / f"{SESSION}.jsonl"
    path.parent.mkdir()
    path.write_bytes(data_of(MAIN))
    return path


def put(path: Path, data: bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def names(source: SourceFiles) -> list[str]:
    return [file.name for file in source.others]


@pytest.mark.parametrize("below", [f"{SESSION}/subagents/", "subagents/", ""])
def test_subagents_are_found_in_every_layout(main: Path, below: str) -> None:
    put(main.parent / f"{below}agent-a1.jsonl", data_of(AGENT))
    meta = {"toolUseId": "toolu_1", "agentType": "scout"}
    put(main.parent / f"{below}agent-a1.meta.json", json.dumps(meta).encode())
    source = claude_source(main)
    assert names(source) == [f"{below}agent-a1.jsonl"]
    (agent,) = session_of(source).agents
    assert (agent.tool_use_id, agent.kind) == ("toolu_1", "scout")
    assert [row.thread for row in responses_of(source)] == ["main", "agent:a1"]


@pytest.mark.parametrize("below", ["subagents/", ""])
def test_agent_files_of_other_sessions_in_the_same_folder_are_ignored(main: Path, below: str) -> None:
    put(main.parent / f"{below}agent-a1.jsonl", data_of([{**it, "sessionId": "another"} for it in AGENT]))
    put(main.parent / f"{below}agent-a2.jsonl", b"")
    put(main.parent / f"{below}agent-a3.jsonl", b"\0\0{bad")
    assert names(claude_source(main)) == []


def test_links_and_fifos_are_not_followed(main: Path, tmp_path: Path) -> None:
    outside = put(tmp_path / "outside" / "agent-a1.jsonl", data_of(AGENT))
    agents = main.parent / SESSION / "subagents"
    agents.mkdir(parents=True)
    (agents / "agent-a1.jsonl").symlink_to(outside)
    os.mkfifo(agents / "agent-a2.jsonl")
    (agents / "agent-a3.jsonl").mkdir()
    (main.parent / "subagents").symlink_to(outside.parent)
    assert names(claude_source(main)) == []
    for odd in (tmp_path / "link.jsonl", tmp_path / "loop.jsonl"):
        odd.symlink_to(main if odd.stem == "link" else odd)
        with pytest.raises(SourceError):
            claude_source(odd)


def test_side_files_are_only_read_from_the_session_folder(main: Path, tmp_path: Path) -> None:
    put(main.parent / SESSION / "tool-results" / "t.txt", "whole\u2028text".encode())
    put(tmp_path / "secret.txt", b"secret")
    (main.parent / SESSION / "tool-results" / "link.txt").symlink_to(tmp_path / "secret.txt")
    (main.parent / SESSION / "linked").symlink_to(tmp_path)
    text = claude_source(main).text
    assert text(f"{SESSION}/tool-results/t.txt") == "whole\u2028text"
    inside = [
        f"{SESSION}/{it}" for it in ("tool-results/link.txt", "linked/secret.txt", "../../secret.txt", "gone", "")
    ]
    for name in [*inside, "../secret.txt", str(tmp_path / "secret.txt"), "", "\0", "other/t.txt", main.name]:
        assert text(name) is None, name


def test_a_tool_result_side_file_is_found_after_the_folder_was_moved(main: Path) -> None:
    put(main.parent / SESSION / "tool-results" / "t.txt", b"all of it")
    there = f"/elsewhere/.claude/projects/p/{SESSION}/tool-results/t.txt"
    preview = f"<persisted-output>\nOutput too large (45KB). Full output saved to: {there}\n\nPreview"
    told = [
        user("r1", [result("toolu_1", preview)]),
        user(
            "r2",
            [result("toolu_2", "short")],
            toolUseResult={"persistedOutputPath": there.replace("t.txt", "gone.txt")},
        ),
    ]
    main.write_bytes(data_of([*MAIN, *told]))
    calls = session_of(claude_source(main)).tool_calls
    assert [call.result for call in calls] == ["all of it", "short"]


def test_a_long_side_file_is_truncated(main: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opener, "MOST_SIDE_BYTES", 10)
    put(main.parent / SESSION / "tool-results" / "t.txt", b"0123456789abc")
    assert claude_source(main).text(f"{SESSION}/tool-results/t.txt") == "0123456789"


def test_a_file_deleted_after_opening_reads_as_empty(main: Path) -> None:
    put(main.parent / SESSION / "subagents" / "agent-a1.jsonl", data_of(AGENT))
    source = claude_source(main)
    (main.parent / SESSION / "subagents" / "agent-a1.jsonl").unlink()
    assert len(session_of(source).turns) == 1
    main.unlink()
    assert session_of(source).turns == []
    with pytest.raises(FileNotFoundError):
        claude_source(main)


def test_entries_can_be_read_more_than_once(main: Path) -> None:
    with main.open("ab") as file:
        file.write(b"{torn")
    source = claude_source(main)
    assert [len(list(source.main.entries)) for _ in range(2)] == [3, 3]
