"""Hostile text in every field of every format: nothing that a terminal gets drives it, but our own colours."""

import json
import os
import pty
import re
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest
from tests.agents.foreign import DATA
from tests.catalog.catalogs import ID, assistant, claude_file
from tests.logs.wire_log.wire_records import talks

from agent_logger.model import records
from agent_logger.model.records import ExchangeRecord, Message, SessionStart

EVIL = "\x1b[2J\x1b]0;owned\x07\x9b31m\x08\x00\x7f\r\x0c\u202egnp\u2028\U000e0041[red]"
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\U000e0000-\U000e0fff]")
COLOUR = re.compile(r"\x1b\[[0-9;]*m")

# What a reader goes by: with this changed, a line says nothing at all.
KEPT = {
    "type",
    "role",
    "ts",
    "timestamp",
    "ts_start",
    "time",
    "v",
    "status",
    "kind",
    "provider",
    "subtype",
    "method",
    "path",
}
IDS = {
    "id",
    "uuid",
    "parentUuid",
    "sessionId",
    "session_id",
    "message_id",
    "requestId",
    "tool_use_id",
    "call_id",
}


def spoilt(value: Any, keep: frozenset[str]) -> Any:
    if isinstance(value, dict):
        return {key: it if key in keep else spoilt(it, keep) for key, it in value.items()}
    if isinstance(value, list):
        return [spoilt(it, keep) for it in value]
    return value + EVIL if isinstance(value, str) else value


def spoil(path: Path, keep: frozenset[str]) -> None:
    lines = [json.loads(line) for line in path.read_bytes().split(b"\n") if line]
    path.write_bytes(b"".join(json.dumps(spoilt(it, keep)).encode() + b"\n" for it in lines))


@pytest.fixture(params=["ids too", "but ids"])
def spoilt_home(home: Path, request: pytest.FixtureRequest) -> Path:
    """Of every agent a session, and of both our logs."""
    keep = frozenset(KEPT | (IDS if request.param == "but ids" else set()))
    for scenario in (
        "claude-cli/2.1.325/subagents",
        "codex/0.166.0/exec_resume",
        "gemini-cli/0.61.0/exec_resume",
    ):
        shutil.copytree(DATA / scenario / "home", home, dirs_exist_ok=True)
    shutil.copy(DATA / "claude-cli/2.1.325/interactive_tui/home/.claude/history.jsonl", home / ".claude")
    for path in home.rglob("*.jsonl"):
        spoil(path, keep)
    _opencode(home / ".local/share/opencode/opencode.db", keep)
    _own_logs(home, keep)
    return home


def _opencode(path: Path, keep: frozenset[str]) -> None:
    path.parent.mkdir(parents=True)
    with closing(sqlite3.connect(path)) as database, database:
        database.executescript((DATA / "opencode/1.18.33/agents_fork/opencode.sql").read_text())
        evil = EVIL.replace("\0", "")  # where SQL's own functions end a text
        database.execute("UPDATE session SET title = title || ?, directory = directory || ?", (evil, evil))
        for table in ("message", "part"):
            rows = database.execute(f"SELECT rowid, data FROM {table}").fetchall()
            changed = [(json.dumps(spoilt(json.loads(data), keep | IDS)), row) for row, data in rows]
            database.executemany(f"UPDATE {table} SET data = ? WHERE rowid = ?", changed)


def _own_logs(home: Path, keep: frozenset[str]) -> None:
    logs, sessions = home / "logs", home / "sessions"
    (logs / "anthropic").mkdir(parents=True)
    sessions.mkdir()
    wire = logs / "anthropic" / "20261115-084532-a7f3.jsonl"
    talk = next(it for it in talks() if it.name.endswith("2.1.325/tools_stream"))
    wire.write_bytes(b"".join(records.encode(it) + b"\n" for it in talk.records()))
    spoil(wire, keep | {"body", "chunks", "headers"})
    said = Message(source="assistant", type="text", ts="2026-11-15T08:00:00.000Z", text="hi", model="m", name="Bash")
    start = SessionStart(
        session_id="e1",
        ts=said.ts,
        model="m",
        cwd="/p",
        tools_available=["x"],
        permission_mode="y",
        witness="sdk",
    )
    exchange = ExchangeRecord(
        session_id="e1",
        exchange=1,
        ts_start=said.ts,
        ts_end=said.ts,
        user_input="do",
        messages=[said],
        stats=None,
    )
    log = sessions / "20261115_080000_e1.jsonl"
    log.write_bytes(records.encode(start) + b"\n" + records.encode(exchange) + b"\n")
    spoil(log, keep | {"source"})
    (home / ".agent-logger").mkdir()
    facts = [json.dumps({"type": "log_folder", "path": str(it)}) for it in (logs, sessions)]
    (home / ".agent-logger" / "facts.jsonl").write_text("\n".join(facts) + "\n")


# One process for all commands: most of the time of each would be its start.
PROGRAM = """
import json, os, sys
from agent_logger.cli import main
for line in json.loads(sys.argv.pop()):
    sys.argv[1:] = line
    print(json.dumps(["$", *line]), flush=True)
    try:
        main()
    except SystemExit as done:
        sys.stdout.flush()
        print("exit", done.code, flush=True)
"""


def on_a_terminal(home: Path, lines: list[list[str]]) -> str:
    """All that the commands print; a bar for who waits is no matter here."""
    ours, theirs = pty.openpty()
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "COLUMNS": "80",
        "TERM": "xterm-256color",
        "PAGER": "",
    }
    command = [sys.executable, "-c", PROGRAM, json.dumps(lines)]
    with (
        (home / "stderr").open("wb") as stderr,
        subprocess.Popen(command, env=environment, cwd=home, stdin=theirs, stdout=theirs, stderr=stderr) as process,
    ):
        os.close(theirs)
        written = b"".join(_read(ours))
    os.close(ours)
    assert process.returncode == 0
    return (written + (home / "stderr").read_bytes()).decode().replace("\r\n", "\n")  # a terminal makes two of one


def _read(terminal: int) -> Iterator[bytes]:
    with suppress(OSError):  # how a terminal ends
        while data := os.read(terminal, 1 << 16):
            yield data


def test_folder_names_with_control_characters_are_escaped_in_all_output(home: Path) -> None:
    """Also where somebody is asked."""
    folder = home / f"{EVIL.replace(chr(0), '')}\nno damage"
    claude_file(folder, ID.format(1), [assistant(2, "yes", ID.format(1))])
    (path,) = folder.rglob("*.jsonl")
    with path.open("ab") as file:
        file.write(b"{damaged\n")
    asked = ["find", "verify", "hook --install", "rm --yes", "context", "config", "init", "du", "doctor"]
    lines = [[*line.split(), *([ID.format(1)] if line[:2] in ("fi", "rm") else [])] for line in asked]
    lines[1] += [str(path)]
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, json.dumps(lines)],
        env={"PATH": os.environ["PATH"], "HOME": str(folder)},
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=True,
        timeout=60,
    )
    written = done.stdout.decode()
    assert "Error" not in written
    assert written.count("[y/N]") == 2
    assert not (found := CONTROL.search(written)), written[max(0, found.start() - 300) :][:400]
    for line in written.splitlines():
        assert not line.startswith("no damage"), line


def test_control_characters_in_any_file_are_escaped_on_a_terminal(spoilt_home: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "agent_logger", "ls", "--all", "--json"],
        env={"PATH": os.environ["PATH"], "HOME": str(spoilt_home)},
        capture_output=True,
        check=True,
    )
    rows = json.loads(done.stdout)
    assert {row["agent"] for row in rows} >= {"claude-code", "codex", "gemini-cli", "opencode"}
    assert sum(EVIL[:6] in json.dumps(row, ensure_ascii=False) or "\\u001b[2J" in json.dumps(row) for row in rows) >= 5
    commands = [
        "ls --all", "ls --all --json", "usage", "usage session", "usage model", "usage project", "usage agent --json",
        "verify .", "search tmp",
    ]  # fmt: skip
    lines = [line.split() for line in commands]
    for row in rows:
        lines += [
            ["show", row["path"]],
            ["export", row["path"], "--to", "md"],
            ["find", row["id"].replace("\0", "")],
            ["usage", "--explain", row["id"].replace("\0", "")],
        ]
    lines += [["show", rows[0]["path"], "--json"], ["export", rows[0]["path"], "--to", "html"]]
    written = COLOUR.sub("", on_a_terminal(spoilt_home, lines))
    assert written.count("\nexit 0\n") >= len(commands) - 1 + 3 * len(rows)  # there is damage, and what is no id
    assert "Error" not in written
    assert not (found := CONTROL.search(written)), written[max(0, found.start() - 300) :][:400]
