"""A home that an enemy has written to: every kind of bad line, file and link that was ever seen, or could be."""

import json
import os
import uuid
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.hostile import SHORT

EMPTY_FILES = 20_000
LONG_LINE = 100 << 20  # bytes
OUTSIDE = "this stands outside of every agent's folder"


def number(value: int) -> str:
    return str(uuid.UUID(int=value))


@dataclass
class Hostile:
    home: Path
    good: int = 0  # responses that must be counted, of 10 tokens in and 1 out each
    bad: set[tuple[str, int]] = field(default_factory=set)  # the files and lines that cannot be read
    _count: int = 0

    @property
    def projects(self) -> Path:
        return self.home / ".claude" / "projects" / "-p"

    def response(self, **fields: Any) -> bytes:
        """A line that must be read, with whatever else is in it."""
        self.good += 1
        usage = {"input_tokens": 10, "output_tokens": 1}
        message = {"id": f"msg_01{self.good:022}", "role": "assistant", "model": "claude-haiku-4-5"}
        content = [{"type": "text", "text": f"answer {self.good}"}]
        line = {
            "type": "assistant",
            "uuid": number(10**9 + self.good),
            "timestamp": "2026-11-15T08:00:00.000Z",
            "cwd": "/p",
            "message": {**message, "content": content, "stop_reason": "end_turn", "usage": usage},
            **fields,
        }
        return json.dumps(line).encode()

    def session(self, *lines: bytes, bad: tuple[int, ...] = (), end: bytes = b"\n") -> Path:
        """`bad`: the numbers of lines that cannot be read."""
        self._count += 1
        path = self.projects / f"{number(self._count)}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"".join(line + end for line in lines))
        self.bad |= {(str(path), line) for line in bad}
        return path


def hostile_home(home: Path, *, empty_files: int = EMPTY_FILES, long_line: int = LONG_LINE) -> Hostile:
    it = Hostile(home)
    _lines(it)
    _long_line(it, long_line)
    for name in (*SHORT, "x" * 5000):
        it.session(it.response(sessionId=name, requestId=name, parentUuid=name, agentId=name, cwd=f"/p/{name}"))
    _files(it, empty_files)
    return it


def _lines(it: Hostile) -> None:
    between = [
        (b"[" * 100_000, True),
        (b'{"a":' * 100_000, True),
        (b"\0" * 4096, True),
        (b'{"type":"assistant","message":{"id":"msg_torn","usa', True),
        (b'{"type":"user","message":"caf\xe9"}', True),
        (b"not JSON at all", True),
        (b"", False),
        (b'{"type":"user","message":{"content":"' + "\u2028\u0085".encode() + b'"}}', False),
        (b'{"type":"user","message":{"content":"\\ud800 half"}}', False),
        (b'{"type":"user","message":NaN}', False),
        (b'{"type":"user","n":%d}' % 2**70, False),
        (b'{"0":{"1":{"2":[]}},"type":"user"}', False),
    ]
    lines: list[bytes] = []
    bad: list[int] = []
    for line, is_bad in between:
        lines += [it.response(), line]
        bad += [len(lines)] if is_bad else []
    it.session(*lines, bad=tuple(bad))
    it.session(it.response(), it.response(), end=b"\r\n")
    it.session(b"\xef\xbb\xbf" + it.response())
    it.session(it.response() + it.response(), b"\0\0\0" + it.response(), bad=(2,))
    it.session(it.response(toolUseResult=float("nan"), costUSD=float("inf"), version=2**70))
    it.session(it.response() + b"\n" + it.response()[:-40], end=b"")  # being written, or cut by a crash
    it.good -= 1


def _long_line(it: Hostile, size: int) -> None:
    path = it.session(it.response(), bad=(2,))
    with path.open("ab") as file:
        file.write(b'{"type":"user","message":"')
        for _ in range(size >> 20):
            file.write(b"x" * (1 << 20))
        file.write(b'"}\n' + it.response() + b"\n")


def _files(it: Hostile, empty_files: int) -> None:
    secret = it.home.parent / "outside" / "secret.jsonl"
    secret.parent.mkdir(exist_ok=True)
    secret.write_text(json.dumps({"type": "user", "message": OUTSIDE}) + "\n")
    links = {f"{number(2 * 10**9)}.jsonl": secret, f"{number(2 * 10**9 + 1)}.jsonl": Path("/dev/zero")}
    links |= {"loop": it.projects.parent, "linked": secret.parent, f"{number(2 * 10**9 + 2)}": secret.parent}
    for name, target in links.items():
        (it.projects / name).symlink_to(target)
        (it.projects.parent / name).symlink_to(target)
    itself = it.projects / f"{number(2 * 10**9 + 3)}.jsonl"
    itself.symlink_to(itself)
    os.mkfifo(it.projects / f"{number(2 * 10**9 + 4)}.jsonl")
    (it.projects / f"{number(2 * 10**9 + 5)}.jsonl").mkdir()
    for name in ("\x1b[2J.jsonl", "a\nb.jsonl", "agent-.jsonl", ".jsonl", "-n.jsonl", "é\udcff.jsonl"):
        (it.projects / name).write_bytes(b"")
    for folder in (".codex/sessions/2026/11/15", ".gemini/tmp/p/chats", ".local/share/opencode"):
        (it.home / folder).mkdir(parents=True)
    os.mkfifo(it.home / ".codex/sessions/2026/11/15/rollout-2026-11-15T07-13-47-01.jsonl")
    (it.home / ".gemini/tmp/p/chats/session-1.json").write_bytes(b"[" * 100_000)
    (it.home / ".local/share/opencode/opencode.db").write_bytes(b"SQLite format 3\0" + b"\xff" * 5000)
    (it.home / ".claude/history.jsonl").symlink_to(secret)
    empty = it.home / ".claude/projects/-empty"
    empty.mkdir()
    for count in range(empty_files):
        (empty / f"{number(3 * 10**9 + count)}.jsonl").touch()
