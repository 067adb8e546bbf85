"""Catalogs over a folder of Claude Code's, and all that they tell."""

import json
import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from agent_logger.catalog.catalog import Catalog
from agent_logger.catalog.ledger.rows import LedgerRow
from agent_logger.catalog.sqlite.recovery import SqliteEngine
from agent_logger.catalog.summary import Hit, SessionSummary

ID = "{:08x}-1111-4111-8111-111111111111"


class Told(NamedTuple):
    sessions: list[SessionSummary]
    ledger: list[LedgerRow]
    hits: list[Hit]


def all_of(catalog: Catalog, words: Iterable[str] = ()) -> Told:
    """Everything, after the last change."""
    catalog.refresh()
    assert catalog.index()
    rows = sorted(catalog.ledger(), key=repr)
    hits = [hit for word in words for hit in catalog.search(word, limit=1000)]
    return Told(sorted(catalog.sessions(), key=lambda it: it.id), rows, sorted(hits, key=repr))


def sqlite_of(catalog: Catalog) -> SqliteEngine:
    """The files of a catalog."""
    assert isinstance(catalog._databases, SqliteEngine)
    return catalog._databases


def made_anew(home: Path, other: Path) -> Catalog:
    """A catalog that knows nothing yet, over the same files."""
    shutil.rmtree(other, ignore_errors=True)
    other.mkdir(parents=True)
    if (home / "facts.jsonl").exists():
        shutil.copy(home / "facts.jsonl", other)
    return Catalog.open(other)


def user(number: int, text: str, session: str, **more: Any) -> dict[str, Any]:
    return _line(number, session, type="user", message={"role": "user", "content": text}, **more)


def assistant(number: int, text: str, session: str, **more: Any) -> dict[str, Any]:
    message = {
        "id": f"msg_01{number:022d}",
        "role": "assistant",
        "model": "claude-haiku-4-5",
        "content": [{"type": "text", "text": text}],
        "stop_reason": "end_turn",
        "usage": {"input_tokens": 10 + number, "output_tokens": 100 + number},
    }
    return _line(number, session, type="assistant", message={**message, **more})


def tool(
    number: int, session: str, name: str, given: Any, result: str, *, failed: bool = False
) -> list[dict[str, Any]]:
    use = {"type": "tool_use", "id": f"toolu_01{number:022d}", "name": name, "input": given}
    told = {"type": "tool_result", "tool_use_id": use["id"], "content": result, "is_error": failed}
    asked = assistant(number, "", session, content=[use], stop_reason="tool_use")
    return [asked, _line(number + 1, session, type="user", message={"role": "user", "content": [told]})]


def _line(number: int, session: str, **more: Any) -> dict[str, Any]:
    at = f"2026-11-15T{number // 3600 % 24:02}:{number // 60 % 60:02}:{number % 60:02}.{number % 1000:03}Z"
    return {
        "uuid": f"u{number}-{session[:8]}",
        "sessionId": session,
        "cwd": "/p/shop",
        "timestamp": at,
        **more,
    }


def claude_file(home: Path, session: str, lines: Sequence[dict[str, Any]], project: str = "-p-shop") -> Path:
    path = home / ".claude" / "projects" / project / f"{session}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        file.writelines(json.dumps(line, separators=(",", ":")) + "\n" for line in lines)
    return path
