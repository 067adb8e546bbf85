"""docs/COMPATIBILITY.md: which versions of agents were recorded, what is in their files, and known peculiarities."""

import json
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

from agent_logger.agents.base import Agent
from agent_logger.agents.contracts import ChildSetup
from agent_logger.agents.registry import AGENTS, child_setups, resume_command

DATA = Path(__file__).resolve().parent.parent / "tests/data"

PAGE = """\
<!-- Written by docs/generate.py from tests/data; notes on each agent are in NOTES.md there. -->

# Compatibility

The files of these versions were recorded by running the real clients, and are in `tests/data/`. The tests read each of
them, and compare their billed tokens with those that the server billed. Other versions are read by the same rules:
unknown parts of a line are skipped, and every field may be missing.

Tokens are counted per response of the model where the files do so. Response ids of the vendor join a response with its
call on the wire; where there are none, calls are joined by order, text and tokens. `run` records an agent by a base URL
or by the [forward door](doors.md); where the table names both, the agent's login and settings decide.

An agent is `unverified` if no files of its real client are in `tests/data/`: its files are read as its documentation
and source code describe them. `find` and `doctor` say so, too.

| agent | versions | files | tokens per | response ids | recorded by | resume |
|---|---|---|---|---|---|---|
{}
| agent | version | recorded |
|---|---|---|
"""

FOLDERS = {"claude-code": "claude-cli"}  # where the folder is called otherwise


def page() -> str:
    agents = [agent for agent in AGENTS if _notes(agent).is_file()]
    versions = {agent.name: sorted(_folder(agent).glob("*/"), key=_order) for agent in agents}
    rows = [
        f"| {name} | {folder.name} | {_scenarios(folder)} |\n"
        for name, folders in sorted(versions.items())
        for folder in folders
    ]
    sections = [_section(agent, versions[agent.name]) for agent in agents]
    summary = "".join(_summary(agent, versions.get(agent.name, [])) for agent in _readable())
    return PAGE.format(summary) + "".join(rows) + "".join(sections)


def _readable() -> list[Agent]:
    return sorted((agent for agent in AGENTS if agent.reader), key=lambda agent: agent.name)


def _summary(agent: Agent, folders: list[Path]) -> str:
    command = resume_command(agent.name, "ID")
    cells = (
        agent.name,
        ", ".join(folder.name for folder in folders) if agent.is_verified else "unverified",
        _places(agent),
        agent.counts_per or "none",
        "the vendor's" if agent.response_ids == "vendor" else "none",
        _doors(agent),
        f"`{' '.join(command)}`" if command else "none",
    )
    return f"| {' | '.join(cells)} |\n"


def _places(agent: Agent) -> str:
    """Return where the agent's sessions are, unless a variable names another folder."""
    if agent.location is None or agent.location.is_named_by_user:
        return "in `agent_folders`"
    return ", ".join(f"`~/{folder}`" for folder in agent.location.default)


def _doors(agent: Agent) -> str:
    if agent.setup is None or not agent.setup.takes_base_url:
        return "forward door"
    setup = next((type(setup) for owner, setup in child_setups() if owner is agent), ChildSetup)
    chooses = setup.door is not ChildSetup.door or setup.ignores_base_url is not ChildSetup.ignores_base_url
    return "base URL, forward door" if chooses else "base URL"


def _folder(agent: Agent) -> Path:
    return DATA / FOLDERS.get(agent.name, agent.name)


def _notes(agent: Agent) -> Path:
    return _folder(agent) / "NOTES.md"


def _order(folder: Path) -> list[int]:
    return [int(part) for part in folder.name.split(".")]


def _scenarios(folder: Path) -> str:
    return ", ".join(f"`{path.parent.name}`" for path in sorted(folder.glob("*/manifest.json")))


def _section(agent: Agent, folders: list[Path]) -> str:
    versions_of: dict[str, list[str]] = {}
    for folder in folders:
        for kind in Counter(_kinds(agent, folder)):
            versions_of.setdefault(kind, []).append(folder.name)
    rows = [
        f"| `{kind}` | {'all' if len(versions) == len(folders) else ', '.join(versions)} |\n"
        for kind, versions in sorted(versions_of.items())
    ]
    table = f"\n| records seen | versions |\n|---|---|\n{''.join(rows)}" if rows else ""
    return f"\n## {agent.name}\n\n{_notes(agent).read_text('utf-8')}{table}"


# ---------------------------------------------------------------- the records of each agent


def _lines(folder: Path, pattern: str) -> Iterator[dict[str, Any]]:
    for path in sorted(folder.glob(pattern)):
        for line in path.read_bytes().split(b"\n"):
            try:
                value = json.loads(line)
            except ValueError:
                continue  # some were recorded cut, right after a kill
            if isinstance(value, dict):
                yield value


def _claude(folder: Path) -> Iterator[str]:
    for line in _lines(folder, "*/home*/.claude/projects/**/*.jsonl"):
        yield " ".join(str(line[key]) for key in ("type", "subtype") if key in line)


def _codex(folder: Path) -> Iterator[str]:
    for line in _lines(folder, "*/home/.codex/**/rollout-*.jsonl"):
        kind, payload = line["type"], line["payload"]
        inner = payload.get("type") if kind in ("event_msg", "response_item") else None
        item = payload["item"]["type"] if inner == "item_completed" else None
        yield " ".join(filter(None, (kind, inner, item)))


def _gemini(folder: Path) -> Iterator[str]:
    for line in _lines(folder, "*/home/.gemini/tmp/*/chats/**/*.jsonl"):
        if "$set" in line:
            yield from (f"$set {key}" for key in line["$set"])
        else:
            yield line.get("type") or f"chat {line.get('kind', '')}".strip()


def _opencode(folder: Path) -> Iterator[str]:
    for path in sorted(folder.glob("*/*.sql")):
        with closing(sqlite3.connect(":memory:")) as database:
            database.executescript(path.read_text("utf-8"))
            yield "session"
            for table, key in (("message", "role"), ("part", "type")):
                for (data,) in database.execute(f"SELECT data FROM {table}"):
                    yield f"{table} {json.loads(data).get(key)}"
    for line in _lines(folder, "*/storage.jsonl"):
        told = line["content"]
        match Path(line["path"]).name.split("_")[0]:
            case "ses":
                yield "session"
            case "msg":
                yield f"message {told['role']}"
            case "prt":
                yield f"part {told['type']}"


def _grok(folder: Path) -> Iterator[str]:
    for line in _lines(folder, "*/home/.grok/sessions/*/*/updates.jsonl"):
        yield str(line["params"]["update"]["sessionUpdate"])


def _kimi(folder: Path) -> Iterator[str]:
    for line in _lines(folder, "*/home/.kimi-code/sessions/*/*/agents/*/wire.jsonl"):
        event = line.get("event")
        yield " ".join(filter(None, (str(line["type"]), event.get("type") if isinstance(event, dict) else None)))


def _openhands(folder: Path) -> Iterator[str]:
    for path in sorted(folder.glob("*/home/.openhands/conversations/**/events/event-*.json")):
        event = json.loads(path.read_bytes())
        inner = event.get("action") or event.get("observation") or {}
        yield " ".join(filter(None, (str(event["kind"]), inner.get("kind"))))


def _vibe(folder: Path) -> Iterator[str]:
    for record in _lines(folder, "*/home/.vibe/logs/session/unified/*/journal/*.jsonl"):
        yield f"journal {record['type']}"
    for path in sorted(folder.glob("*/home/.vibe/logs/session/unified/*/chunks/*.json")):
        for entry in json.loads(path.read_bytes()):
            if "type" in entry:
                yield " ".join(filter(None, ("history", str(entry["type"]), entry.get("role") or entry.get("kind"))))
    for message in _lines(folder, "*/home/.vibe/logs/session/session_*/**/messages.jsonl"):
        yield f"messages {message['role']}"


def _goose(folder: Path) -> Iterator[str]:
    for path in sorted(folder.glob("*/*.sql")):
        with closing(sqlite3.connect(":memory:")) as database:
            database.executescript(path.read_text("utf-8"))
            for role, content in database.execute("SELECT role, content_json FROM messages"):
                yield from (f"messages {role} {part.get('type')}" for part in json.loads(content))
            for (is_compaction,) in database.execute("SELECT is_compaction FROM usage_ledger"):
                yield "usage_ledger compaction" if is_compaction else "usage_ledger"
            for (kind,) in database.execute("SELECT session_type FROM sessions"):
                yield f"sessions {kind}"


def _hermes(folder: Path) -> Iterator[str]:
    for path in sorted(folder.glob("*/*.sql")):
        with closing(sqlite3.connect(":memory:")) as database:
            database.executescript(path.read_text("utf-8"))
            for (role,) in database.execute("SELECT role FROM messages"):
                yield f"messages {role}"
            for (task,) in database.execute("SELECT task FROM session_model_usage"):
                yield f"session_model_usage {task}".strip()
            for (source,) in database.execute("SELECT source FROM sessions"):
                yield f"sessions {source}"


def _openclaw(folder: Path) -> Iterator[str]:
    for path in sorted(folder.glob("*/*.sql")):
        with closing(sqlite3.connect(":memory:")) as database:
            database.executescript(path.read_text("utf-8"))
            for (data,) in database.execute("SELECT event_json FROM transcript_events WHERE event_json IS NOT NULL"):
                line = json.loads(data)
                yield " ".join(filter(None, (str(line.get("type")), _role(line))))


def _kinds(agent: Agent, folder: Path) -> Iterator[str]:
    if agent.name in _KINDS:
        yield from _KINDS[agent.name](folder)
    elif agent.location:
        for home in agent.location.default:
            for glob in agent.location.globs:
                for line in _lines(folder, f"*/home/{home}/{glob}"):
                    yield " ".join(filter(None, (str(line.get("type")), _role(line))))


def _role(line: dict[str, Any]) -> str | None:
    message = line.get("message")
    return message.get("role") if isinstance(message, dict) else None


_KINDS: dict[str, Callable[[Path], Iterator[str]]] = {
    "claude-code": _claude,
    "codex": _codex,
    "gemini-cli": _gemini,
    "grok-build": _grok,
    "kimi-code": _kimi,
    "goose": _goose,
    "hermes": _hermes,
    "kilo": _opencode,
    "mistral-vibe": _vibe,
    "openclaw": _openclaw,
    "opencode": _opencode,
    "openhands": _openhands,
}
