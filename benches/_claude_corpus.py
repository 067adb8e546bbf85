"""Claude Code's session files, made up: split messages that repeat their usage, large results, a few bad lines."""

import json
import random
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from agent_logger.model.session import Usage

MODELS = ("claude-sonnet-4-20250514", "claude-haiku-4-5-20251001", "claude-opus-4-1-20250805")
TOOLS = ("Bash", "Read", "Edit", "Write", "Grep", "Glob")


@dataclass
class Truth:
    files: int = 0
    written_bytes: int = 0
    responses: int = 0
    tool_calls: int = 0
    bad_lines: int = 0
    usage: Usage = Usage()  # noqa: RUF009 - it is frozen


class Corpus:
    """Writes sessions below a folder, as `projects/<project>/<session>.jsonl`, the same ones for the same seed."""

    def __init__(self, seed: int = 7) -> None:
        self._random = random.Random(seed)
        self._words = [
            "".join(self._random.choices("etaoinshrdlucmfw", k=self._random.randint(2, 9))) for _ in range(4000)
        ]
        self._now = datetime(2026, 1, 5, 8, tzinfo=UTC)
        self._parent: str | None = None
        self.truth = Truth()

    def write(self, folder: Path, megabytes: int) -> Truth:
        while self.truth.written_bytes < megabytes * 1_000_000:
            project = f"/home/user/dev/proj{self._random.randint(1, 40)}"
            session = self._id()
            lines = [json.dumps(it, separators=(",", ":")) for it in self._session(project, session)]
            if self._random.random() < 0.02:
                lines.append('{"type":"assistant","message":{"id":"msg_torn","usage":{"output_tok')
                self.truth.bad_lines += 1
            path = folder / "projects" / project.replace("/", "-") / f"{session}.jsonl"
            path.parent.mkdir(parents=True, exist_ok=True)
            self.truth.written_bytes += path.write_bytes(("\n".join(lines) + "\n").encode())
            self.truth.files += 1
        return self.truth

    def write_long(self, folder: Path, messages: int, project: str = "/home/user/dev/long") -> str:
        """One session of at least so many lines, each a message or a block of one. Its id."""
        session, lines = self._id(), list[str]()
        while len(lines) < messages:
            lines += [json.dumps(it, separators=(",", ":")) for it in self._session(project, session)]
        path = folder / "projects" / project.replace("/", "-") / f"{session}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        self.truth.written_bytes += path.write_bytes(("\n".join(lines) + "\n").encode())
        self.truth.files += 1
        return session

    def words(self, count: int) -> list[str]:
        """Some that sessions are made of."""
        return self._words[:count]

    def _session(self, project: str, session: str) -> Iterator[dict[str, Any]]:
        base = {
            "isSidechain": False,
            "userType": "external",
            "cwd": project,
            "sessionId": session,
            "version": "2.1.325",
        }
        self._parent = None
        for _ in range(self._random.randint(1, 12)):
            yield self._line(base, "user", 300, message={"role": "user", "content": self._text(400)})
            for _ in range(self._random.randint(1, 14)):
                called = f"toolu_01{self._id()[:22]}" if self._random.random() < 0.8 else None
                yield from self._response(base, project, called)
                if called is None:
                    break
                yield self._result(base, called)

    def _response(self, base: dict[str, Any], project: str, called: str | None) -> Iterator[dict[str, Any]]:
        usage = {
            "input_tokens": self._random.randint(1, 50),
            "cache_creation_input_tokens": self._random.randint(0, 9000),
            "cache_read_input_tokens": self._random.randint(0, 120_000),
            "output_tokens": self._random.randint(5, 3000),
            "service_tier": "standard",
        }
        self._count(usage, called)
        message = {
            "id": f"msg_01{self._id()[:22]}",
            "type": "message",
            "role": "assistant",
            "model": self._random.choice(MODELS),
        }
        request = f"req_01{self._id()[:22]}"
        stop = "tool_use" if called else "end_turn"
        for block in self._blocks(project, called):
            whole = {
                **message,
                "content": [block],
                "stop_reason": stop,
                "stop_sequence": None,
                "usage": usage,
            }
            yield self._line(base, "assistant", 5, message=whole, requestId=request)

    def _blocks(self, project: str, called: str | None) -> Iterator[dict[str, Any]]:
        if self._random.random() < 0.3:
            yield {"type": "thinking", "thinking": self._text(1200), "signature": "x" * 300}
        yield {"type": "text", "text": self._text(600)}
        if called:
            given = {
                "file_path": f"{project}/src/f{self._random.randint(1, 90)}.py",
                "content": self._text(1500),
            }
            yield {"type": "tool_use", "id": called, "name": self._random.choice(TOOLS), "input": given}

    def _result(self, base: dict[str, Any], called: str) -> dict[str, Any]:
        told = self._text(int(self._random.paretovariate(1.1) * 600) % 60_000)
        content = [{"tool_use_id": called, "type": "tool_result", "content": told}]
        result = {"stdout": told, "stderr": "", "interrupted": False}
        return self._line(base, "user", 10, message={"role": "user", "content": content}, toolUseResult=result)

    def _line(self, base: dict[str, Any], kind: str, seconds: float, **fields: Any) -> dict[str, Any]:
        self._now += timedelta(seconds=self._random.uniform(0.1, seconds))
        parent, self._parent = self._parent, self._id()
        time = self._now.isoformat(timespec="milliseconds").replace("+00:00", "Z")
        return {"parentUuid": parent, **base, "type": kind, **fields, "uuid": self._parent, "timestamp": time}

    def _count(self, usage: dict[str, Any], called: str | None) -> None:
        self.truth.responses += 1
        self.truth.tool_calls += called is not None
        self.truth.usage += Usage(
            input_tokens=usage["input_tokens"],
            output_tokens=usage["output_tokens"],
            cache_read_tokens=usage["cache_read_input_tokens"],
            cache_write_tokens=usage["cache_creation_input_tokens"],
        )

    def _text(self, length: int) -> str:
        count = max(1, self._random.randint(length // 4, length * 2) // 6)
        return " ".join(self._random.choices(self._words, k=count))

    def _id(self) -> str:
        return str(uuid.UUID(int=self._random.getrandbits(128), version=4))
