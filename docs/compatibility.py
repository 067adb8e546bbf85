"""docs/COMPATIBILITY.md: which versions of agents were recorded, what is in their files, and what to beware of."""

import json
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

DATA = Path(__file__).resolve().parent.parent / "tests/data"

PAGE = """\
<!-- Written by docs/generate.py from tests/data and the traps in docs/compatibility.py. -->

# Compatibility

The files of these versions were recorded by running the real clients, and lie in `tests/data/`. Each is read in
the tests, and what they billed is compared with what the server billed. Other versions are read by the same rules:
what is not known in a line is passed over, and no field is relied on to be there.

| agent | version | recorded |
|---|---|---|
"""

TRAPS = {
    "claude-code": """\
- A response is a line per block, all with the same message id, and in older versions with the same usage.
- A fork begins with a copy of its parent's lines; messages of all files count once, by their id. The copy keeps all
  times. Lines without an id (`queue-operation`, `last-prompt`, `api-request`) are not copied. `/branch` names the
  session it copied in each line (`forkedFrom`); a fork of that copies the name too.
- 1.0.3 gives every resume a new id; later versions keep it, and 2.1.4 leaves an empty file per resume.
- 2.1.50 writes aside: a line may come before the one it follows. And it keeps the counts of a response's beginning,
  so that its output is told as 1 token; the proxy, and what it prints at the end, know better.
- Calls for compactions, titles and warm-ups are not in the files; the proxy sees them. The total that later versions
  write when they end (`cost-state`) has them.
- Before each call 2.1.325 writes a line `api-request`. An error of the API follows as `api_error` with a status, or not
  at all if the call is made again at once; a lost connection as `api_error` without one. When a killed session is
  resumed, the client adds a response of its own (`<synthetic>`, `isApiErrorMessage: false`).
""",
    "codex": """\
- `token_count` is a running total, told again when only limits changed; `token_usage_record` (0.166) is exact.
- 0.50 tells usage before the items of its response, and its counter begins anew with a resume.
- A fork begins with a copy of its parent's lines, at new times (0.118), or with a reference (0.166), its counter at
  the parent's total. Ids of turns, made of their time, tell the copy; before there were any, a pause behind it does.
- Before 0.32 lines are bare items, without times, folder, model and usage.
- Before 0.166 responses have no ids. The call that writes the summary of a compaction is in the totals alone (0.118).
- Sub-agents are rollouts of their own, which name the thread that started them.
- Context, instructions and notes of sub-agents come as messages of the user.
""",
    "gemini-cli": """\
- A line with a known `id` is a newer state of that message; `$set.messages` puts copies without tokens and tools in
  place of the history, on every resume; `$rewindTo` takes messages back. What was billed stays billed.
- `input` holds what came from the cache; `thoughts` are billed as output and stand beside it.
- Calls of the model router are in no chat, and responses have the client's ids, not the vendor's.
- Chats of older versions are one JSON document, none of which is recorded. In them (0.20) a response without words is
  put to the one before it, and what it took is lost.
""",
    "opencode": """\
- Most of the database may be in its write-ahead log: read as immutable it shows less.
- A fork is a copy under new ids that names no parent; its messages keep their times.
- The vendor's ids of responses and the calls for titles are not kept. A cost of 0 is one that is not known.
- `opencode run` puts a prompt with blanks into quotes.
- Before 1.2 there was no database, but a file for each session, message and part: below `storage/`, before 0.6 below
  `project/*/storage/`. Newer versions copy them into their database and leave them there: what is in both counts once.
""",
    "qwen-code": """\
- Lines are as Claude Code's, contents as Gemini's; what was cached is counted as asked. 0.10 and 0.24 were run, and
  nothing of them is kept here; older chats (0.1), one JSON document below `tmp/`, are not read.
- Calls aside, as those that keep its memory, are told by telemetry alone, which also has the vendor's ids.
- No session is named on the wire: logs are known again by what was said and billed.
""",
}

# What the real client did.
OPENCODE_IMPORT = {
    "what `export ID` prints": (
        '`{"info": session, "messages": [{"info": message, "parts": [part, ...]}]}`, one session: a sub-agent '
        "has an export of its own. Each `info` and part is the JSON of its row with `id`, `sessionID` and "
        "`messageID` added; messages in the order of their times, parts of their ids"
    ),
    "what `import FILE` takes": (
        "one such file, or the URL of a share. A second file on the line is an error"
    ),
    "required of a session": (
        "`id` (begins with `ses`), `slug`, `title`, `version`, `time.created`, `time.updated`, and "
        "`messages`, which may be empty. A field may be absent but not `null`"
    ),
    "required of a message": (
        "of a prompt: `id` (`msg`), `sessionID`, `role`, `time.created`, `agent`, `model`; of an answer: "
        "`parentID`, `modelID`, `providerID`, `mode`, `agent`, `path`, `cost`, `tokens` too. Before 0.6 "
        "opencode wrote no `agent`, `parentID` or `model`"
    ),
    "required of a part": (
        "`id` (`prt`), `sessionID`, `messageID` of a message that is there, `type`, and what the type needs: "
        "a `reason` at the end of a step, a `title` and `metadata` of a tool that completed"
    ),
    "a row that it refuses": (
        "ends the import with exit code 1. There is no transaction: the session and the rows before it stay, "
        "and a second import adds the rest"
    ),
    "fields that it does not know": ("are dropped; a part of an unknown `type` is refused"),
    "versions": ("not compared: `version` may be any text"),
    "a session that is there": (
        "its messages and parts stay as they are, missing ones are added; title and totals stay; project and "
        "folder change as below"
    ),
    "ids, times, tokens, cost": ("stay. Rows of parts get the time of the import, which their JSON does not"),
    "project and folder": (
        "those where the import runs: `projectID`, `directory` and `path` of the file are ignored. `session "
        "list` in another project does not show it"
    ),
    "sub-agents": ("one import each, in any order; they keep `parentID`, and `session list` leaves them out"),
    "no database yet": ("it is made"),
    "afterwards": (
        "`session list` shows the session, `export` prints the same messages, `run --session ID` goes on with "
        "it"
    ),
}
TABLES = {
    "opencode": (
        (
            "`opencode export` and `opencode import`, measured with 1.18.33; the lists of required fields are\n"
            "those of the source of 1.18.18, of which samples were tried:"
        ),
        OPENCODE_IMPORT,
    ),
}

AGENTS = {"claude-cli": "claude-code"}  # where the folder is called otherwise


def page() -> str:
    versions = sorted(
        (AGENTS.get(folder.parent.name, folder.parent.name), _order(folder.name), folder)
        for folder in DATA.glob("*/*")
        if AGENTS.get(folder.parent.name, folder.parent.name) in TRAPS
    )
    rows = [f"| {agent} | {folder.name} | {_scenarios(folder)} |\n" for agent, _, folder in versions]
    sections = [_section(agent, [it for name, _, it in versions if name == agent]) for agent in TRAPS]
    return PAGE + "".join(rows) + "".join(sections)


def _order(version: str) -> list[int]:
    return [int(part) for part in version.split(".")]


def _scenarios(folder: Path) -> str:
    return ", ".join(f"`{path.parent.name}`" for path in sorted(folder.glob("*/manifest.json")))


def _section(agent: str, folders: list[Path]) -> str:
    seen: dict[str, list[str]] = {}
    for folder in folders:
        for kind in Counter(_KINDS[agent](folder)):
            seen.setdefault(kind, []).append(folder.name)
    every = len(folders)
    rows = [
        f"| `{kind}` | {'all' if len(versions) == every else ', '.join(versions)} |\n"
        for kind, versions in sorted(seen.items())
    ]
    table = f"\n| records seen | versions |\n|---|---|\n{''.join(rows)}" if rows else ""
    return f"\n## {agent}\n\n{TRAPS[agent]}{_measured(agent)}{table}"


def _measured(agent: str) -> str:
    if agent not in TABLES:
        return ""
    title, answers = TABLES[agent]
    rows = [f"| {question} | {answer} |\n" for question, answer in answers.items()]
    return f"\n{title}\n\n| question | answer |\n|---|---|\n{''.join(rows)}"


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
    for path in sorted(folder.glob("*/opencode.sql")):
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


_KINDS: dict[str, Callable[[Path], Iterator[str]]] = {
    "claude-code": _claude,
    "codex": _codex,
    "gemini-cli": _gemini,
    "opencode": _opencode,
}
