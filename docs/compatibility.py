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
    "pi": """\
- Lines form a tree by `id` and `parentId`: the user may go back to any line and on from there (`/tree`). The last
  line is the end of the branch in use; other branches stay in the file, and were billed. Going back is not written
  itself.
- `sessions/--<folder>--/<time>_<id>.jsonl` below `~/.pi/agent`. The folder is that of the project without its first
  slash, with `-` for `/`, `\\` and `:`; other characters stay, so it cannot be read back: `cwd` in the first line
  can. `PI_CODING_AGENT_DIR` moves `~/.pi/agent`; `PI_CODING_AGENT_SESSION_DIR` and `--session-dir` name a folder for
  the files themselves, without one per project. `--no-session` writes nothing. There is no history of prompts.
- A file is begun when the first response has come or failed; before that a kill leaves nothing. From then on a line
  is appended when its message is complete, so that a kill leaves no answer in part. Files of versions 1 and 2 are
  rewritten when they are opened; all others only grow.
- `--fork`, `/fork` and `/clone` copy lines into a new file, with their ids, times and usage: all lines, or those of
  the branch. The first line names the source by its path (`parentSession`). `--continue`, `--resume` and `--session`
  go on in the same file.
- `responseId` is the vendor's, measured over four APIs; by its source Bedrock's responses have none. Ids of tool
  calls are the vendor's too, but the responses API's have the item's behind them (`call_…|fc_…`), and Gemini's are
  made up.
- `usage` is per response: `input` is without what was cached, `reasoning` is in `output`, and zeros also stand for
  what the provider did not report. `cost` is calculated by pi, 0 without a price.
- An error is an assistant's line with `stopReason: error`, zeros and no id; the SDKs' own retries leave none, pi's
  retry leaves one each. A stream that is cut or aborted leaves what came, with the vendor's id, and the counts known
  then: Anthropic's of its beginning, none of OpenAI's.
- Calls that write a summary, of a compaction or a branch, have no usage in 0.74; in 0.87 they do, without an id or a
  model, and a compaction that cuts a turn in two is the sum of two calls. In 0.87 the system prompt is a line too.
- A model that is chosen by an option on a resume is named by the responses alone, without a `model_change`.
- A command that ends with a code other than 0 is a failed tool call. There is no title, but a name that the user
  gives.
- On the wire: `OpenAI/JS`, `Anthropic/JS` or `google-genai-sdk` as user agent in 0.74, `pi (linux …)` in 0.87. With a
  login of Claude's it says `claude-cli/2.1.75` and `x-app: cli` (0.74). The responses API gets the session's id
  (`session_id`, `x-client-request-id`, `prompt_cache_key`), chat completions if the base URL names `api.openai.com`
  (`prompt_cache_key`), Anthropic's and Gemini's do not.
- Lines of type `usage` for calls aside, and usage in results of tools that ask models, are read as the documents of
  0.87 and 1.5 describe them; none is recorded. 1.5 could not be run.
""",
    "qwen-code": """\
- Lines are as Claude Code's, contents as Gemini's; what was cached is counted as asked. 0.10 and 0.24 were run, and
  nothing of them is kept here; older chats (0.1), one JSON document below `tmp/`, are not read.
- Calls aside, as those that keep its memory, are told by telemetry alone, which also has the vendor's ids.
- No session is named on the wire: logs are known again by what was said and billed.
""",
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
    return f"\n## {agent}\n\n{TRAPS[agent]}{table}"


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


def _pi(folder: Path) -> Iterator[str]:
    for line in _lines(folder, "*/home/.pi/agent/sessions/*/*.jsonl"):
        yield " ".join(filter(None, (line["type"], line.get("message", {}).get("role"))))


_KINDS: dict[str, Callable[[Path], Iterator[str]]] = {
    "claude-code": _claude,
    "codex": _codex,
    "gemini-cli": _gemini,
    "opencode": _opencode,
    "pi": _pi,
}
