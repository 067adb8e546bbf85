"""A session that has grown is read on, and comes to what it is as a whole."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agent_logger import Catalog
from agent_logger.catalog.refresh import incremental
from agent_logger.files import foreign
from tests.catalog.catalogs import ID, all_of, assistant, claude_file, made_anew, tool, user

ONE = ID.format(1)
DATA = Path(__file__).parents[2] / "data" / "claude-cli"
MAINS = [it for it in sorted(DATA.glob("2.1.325/*/home/.claude/projects/*/*.jsonl")) if it.stat().st_size > 20_000]
WORDS = ("the", "file", "zebra", "refused", "is:error")


@pytest.fixture(autouse=True)
def short_sessions_are_read_on_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(incremental, "LONG_BYTES", 0)
    monkeypatch.setattr(incremental, "TAIL_BYTES", 2000)


def check(catalog: Catalog, home: Path) -> None:
    with made_anew(catalog.home, home / "anew") as anew:
        assert all_of(catalog, WORDS) == all_of(anew, WORDS)


@pytest.mark.parametrize("main", MAINS[::2], ids=lambda it: it.parts[-6])
def test_real_sessions_read_incrementally_equal_sessions_read_at_once(home: Path, main: Path) -> None:
    lines = main.read_bytes().splitlines(keepends=True)
    path = home / ".claude" / "projects" / "-p" / main.name
    path.parent.mkdir(parents=True)
    if main.with_suffix("").is_dir():
        shutil.copytree(main.with_suffix(""), path.with_suffix(""))
    catalog, step = Catalog.open(home / ".agent-logger"), max(1, len(lines) // 5)
    for at in range(0, len(lines), step):
        with path.open("ab") as file:
            file.writelines(lines[at : at + step])
        all_of(catalog)
    check(catalog, home)


@pytest.fixture
def catalog(home: Path) -> Catalog:
    lines = [
        user(1, "fix the timer", ONE),
        *tool(2, ONE, "Bash", {"command": "the zebra"}, "refused", failed=True),
    ]
    call, *_ = tool(4, ONE, "Read", {"file_path": "/p/file"}, "")
    path = claude_file(home, ONE, [*lines, call, *tool(6, ONE, "Bash", {"command": "ls"}, "a file")])
    claude_file(home, ONE, [user(8, "and the gnu", ONE), assistant(9, "the gnu", ONE)])
    agent = path.with_suffix("") / "subagents" / "agent-a1.jsonl"
    agent.parent.mkdir(parents=True)
    agent.write_text(json.dumps({**assistant(3, "a zebra", ONE), "isSidechain": True, "agentId": "a1"}) + "\n")
    catalog = Catalog.open(home / ".agent-logger")
    all_of(catalog)
    return catalog


def grown(lines: list[dict[str, Any]]) -> Callable[[Path], object]:
    return lambda home: claude_file(home, ONE, lines)


def sub_agent(home: Path) -> None:
    path = home / ".claude/projects/-p-shop" / ONE / "subagents/agent-a1.jsonl"
    with path.open("a") as file:
        line = {**assistant(12, "more of the zebra", ONE), "isSidechain": True, "agentId": "a1"}
        file.write(json.dumps(line) + "\n")


def written_anew(home: Path) -> None:
    path = home / ".claude/projects/-p-shop" / f"{ONE}.jsonl"
    path.write_text(path.read_text().replace("zebra", "camel") + json.dumps(assistant(12, "the end", ONE)) + "\n")


RESULT = tool(4, ONE, "Read", {"file_path": "/p/file"}, "the whole file")[1]
CHANGES = {
    "an answer": (True, grown([assistant(12, "the zebra", ONE)])),
    "a prompt": (True, grown([user(12, "the zebra", ONE)])),
    "a call that failed": (True, grown(tool(12, ONE, "Bash", {"command": "file"}, "refused", failed=True))),
    "half a response": (True, grown([assistant(12, "the", ONE, stop_reason=None)])),
    "the last response goes on": (True, grown([{**assistant(9, "zebra", ONE), "uuid": "u-more"}])),
    "the result of an earlier call": (False, grown([{**RESULT, "timestamp": "2026-11-15T00:01:00.000Z"}])),
    "an earlier response goes on": (False, grown([{**assistant(6, "zebra", ONE), "uuid": "u-more"}])),
    "an earlier response goes on much later": (
        False,
        grown([{**assistant(6, "zebra", ONE), "uuid": "u-more", "timestamp": "2026-11-15T00:01:00.000Z"}]),
    ),
    "a line of an earlier time": (False, grown([{**user(5, "the zebra", ONE), "uuid": "u-more"}])),
    "a line off an earlier one": (
        False,
        grown([{**assistant(12, "zebra", ONE), "parentUuid": "u1-00000001"}]),
    ),
    "a title": (False, grown([{"type": "ai-title", "aiTitle": "The zebra", "sessionId": ONE}])),
    "a sub-agent": (False, sub_agent),
    "another file": (False, written_anew),
}


@pytest.mark.parametrize("change", CHANGES)
def test_only_new_lines_are_read_unless_they_can_change_earlier_lines(
    home: Path, catalog: Catalog, change: str
) -> None:
    """Details and texts are read on by themselves; a title is none of the texts' business."""
    alone, make = CHANGES[change]
    make(home)
    catalog.refresh()
    size = (home / ".claude/projects/-p-shop" / f"{ONE}.jsonl").stat().st_size
    before = foreign.work.bytes
    catalog.sessions()
    assert (foreign.work.bytes - before < size) == alone
    check(catalog, home)


def test_a_file_overwritten_in_the_middle_is_read_again(home: Path) -> None:
    """It has the size, the beginning and the end that it had."""
    lines = [it for number in range(1, 60, 2) for it in (user(number, "the", ONE), assistant(number + 1, "zebra", ONE))]
    path = claude_file(home, ONE, lines)
    catalog = Catalog.open(home / ".agent-logger")
    all_of(catalog, WORDS)
    before = catalog.total().usage.output_tokens
    data = path.read_bytes()
    middle = data[6000:12000].replace(b'"output_tokens":1', b'"output_tokens":2').replace(b"zebra", b"okapi")
    path.write_bytes(data[:6000] + middle + data[12000:])
    catalog.refresh()
    assert catalog.total().usage.output_tokens == before + 100 * middle.count(b"okapi")
    check(catalog, home)
    assert len(catalog.search("okapi", limit=99)) == middle.count(b"okapi") > 5
