"""A made-up folder of Claude Code sessions whose truth is known: for benchmarks, and to ask other programs the same.

    python benches/_corpus.py FOLDER MEGABYTES [SEED]

It has what makes counting hard: a response is split over lines that each repeat its usage, forks and resumed sessions
copy history under a new session id, sub-agents have files of their own, cache writes have two lifetimes, and here and
there a line is torn. Texts are words without meaning, as long as real ones.
"""

import json
import random
import sys
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from agent_logger.model.responses import ModelResponse
from agent_logger.model.session import MAIN, Usage

MODELS = (
    "claude-sonnet-4-20250514",
    "claude-haiku-4-5-20251001",
    "claude-opus-4-1-20250805",
    "claude-opus-4-5-20251101",
    "claude-sonnet-4-5-20250929",
    "claude-opus-4-8",
)
TOOLS = ("Bash", "Read", "Edit", "Write", "Grep", "Glob")
FIRST_DAY = datetime(2026, 1, 5, 8, tzinfo=UTC)
FORKED, WITH_AGENT, TORN = 0.15, 0.2, 0.03  # shares of sessions
LONG_CONTEXT = 200_000  # tokens; what the corpus sends stays below it


@dataclass
class Session:
    id: str
    project: str
    lines: list[dict[str, Any]] = field(default_factory=list)
    responses: list[ModelResponse] = field(default_factory=list)
    agents: dict[str, list[dict[str, Any]]] = field(default_factory=dict)  # lines of sub-agents, by id
    torn: bool = False


class Corpus:
    """Sessions without end; `seed` says which."""

    def __init__(self, seed: int = 7) -> None:
        self._random = random.Random(seed)
        self._time = FIRST_DAY
        self._words = ["".join(self._random.choices("etaoinshrdlu", k=self._random.randint(2, 9))) for _ in range(3000)]

    def sessions(self) -> Iterator[Session]:
        while True:
            session = self._session()
            yield session
            if self._random.random() < FORKED:
                yield self._fork(session)

    def single(self, model: str, usage: Usage) -> Session:
        """A session with one response."""
        session = Session(self._uuid(), "/home/user/dev/single")
        self._respond(session, model, usage, MAIN, session.lines)
        return session

    # ------------------------------------------------------------ what a session is made of

    def _session(self) -> Session:
        rng = self._random
        session = Session(self._uuid(), f"/home/user/dev/project{rng.randint(1, 40)}")
        model = rng.choice(MODELS)
        for _ in range(rng.randint(1, 8)):
            self._wait(5, 900)
            self._line(session, "user", {"role": "user", "content": self._text(400)}, session.lines)
            for _ in range(rng.randint(1, 10)):
                self._answer(session, model, MAIN, session.lines)
        if rng.random() < WITH_AGENT:
            agent = f"{rng.getrandbits(64):016x}"
            lines = session.agents.setdefault(agent, [])
            self._answer(session, rng.choice(MODELS), f"agent:{agent}", lines)
        session.torn = rng.random() < TORN
        return session

    def _fork(self, parent: Session) -> Session:
        """All of its history under another id, with its times, and then one answer of its own."""
        fork = Session(self._uuid(), parent.project)
        fork.lines = [{**line, "sessionId": fork.id} for line in parent.lines]
        fork.responses = [replace(it, session=fork.id) for it in parent.responses if it.thread == MAIN]
        self._answer(fork, self._random.choice(MODELS), MAIN, fork.lines)
        return fork

    def _answer(self, session: Session, model: str, thread: str, lines: list[dict[str, Any]]) -> None:
        rng = self._random
        written, hour = rng.randint(0, 9000), rng.choice([0, rng.randint(0, 9000)])
        usage = Usage(
            input_tokens=rng.randint(1, 50),
            output_tokens=rng.randint(5, 3000),
            cache_read_tokens=rng.randint(0, LONG_CONTEXT - 20_000),
            cache_write_tokens=written + hour,
            cache_write_1h_tokens=hour,
        )
        self._wait(1, 20)
        self._respond(session, model, usage, thread, lines)

    def _respond(self, session: Session, model: str, usage: Usage, thread: str, lines: list[dict[str, Any]]) -> None:
        rng = self._random
        message_id, request_id = f"msg_01{self._hex(22)}", f"req_01{self._hex(22)}"
        first = self._time
        for block in list(self._blocks()):
            message = {
                "id": message_id,
                "type": "message",
                "role": "assistant",
                "model": model,
                "content": [block],
            }
            told = {**message, "stop_reason": "end_turn", "stop_sequence": None, "usage": _told(usage)}
            self._line(session, "assistant", told, lines, requestId=request_id, isSidechain=thread != MAIN)
            self._time += timedelta(milliseconds=rng.randint(1, 3000))
        session.responses.append(
            ModelResponse(
                family="anthropic",
                message_id=message_id,
                request_id=request_id,
                model=model,
                usage=usage,
                tier="standard",
                at=first,
                session=session.id,
                project=session.project,
                agent="claude-code",
                thread=thread,
                final=True,
                reported_cost_usd=None,
            )
        )

    def _blocks(self) -> Iterator[dict[str, Any]]:
        rng = self._random
        if rng.random() < 0.3:
            yield {"type": "thinking", "thinking": self._text(1200), "signature": "s" * 300}
        yield {"type": "text", "text": self._text(600)}
        if rng.random() < 0.8:
            given = {"file_path": f"src/file{rng.randint(1, 90)}.py", "content": self._text(1500)}
            yield {
                "type": "tool_use",
                "id": f"toolu_01{self._hex(22)}",
                "name": rng.choice(TOOLS),
                "input": given,
            }

    def _line(
        self, session: Session, kind: str, message: dict[str, Any], lines: list[dict[str, Any]], **more: Any
    ) -> None:
        known = {"userType": "external", "cwd": session.project, "version": "2.1.325", "gitBranch": "main"}
        parent = lines[-1]["uuid"] if lines else None
        ids = {"uuid": self._uuid(), "parentUuid": parent, "sessionId": session.id, "isSidechain": False}
        time = self._time.isoformat(timespec="milliseconds").replace("+00:00", "Z")
        lines.append({"type": kind, "message": message, **known, **ids, "timestamp": time, **more})

    def _wait(self, least: int, most: int) -> None:
        self._time += timedelta(seconds=self._random.randint(least, most))

    def _text(self, characters: int) -> str:
        rng = self._random
        return " ".join(rng.choices(self._words, k=max(1, rng.randint(1, 2 * characters) // 6)))

    def _hex(self, digits: int) -> str:
        return f"{self._random.getrandbits(4 * digits):0{digits}x}"

    def _uuid(self) -> str:
        return str(uuid.UUID(int=self._random.getrandbits(128), version=4))


def _told(usage: Usage) -> dict[str, Any]:
    return {
        "input_tokens": usage.input_tokens,
        "cache_creation_input_tokens": usage.cache_write_tokens,
        "cache_read_input_tokens": usage.cache_read_tokens,
        "cache_creation": {
            "ephemeral_5m_input_tokens": usage.cache_write_tokens - usage.cache_write_1h_tokens,
            "ephemeral_1h_input_tokens": usage.cache_write_1h_tokens,
        },
        "output_tokens": usage.output_tokens,
        "service_tier": "standard",
    }


def write(session: Session, root: Path) -> int:
    """Its files below a Claude Code folder; how many bytes they have."""
    folder = root / "projects" / session.project.replace("/", "-")
    torn = b'{"type":"assistant","message":{"id":"msg_torn","usage":{"output_tok\n' if session.torn else b""
    size = _write(folder / f"{session.id}.jsonl", session.lines, torn)
    for agent, lines in session.agents.items():
        size += _write(folder / session.id / "subagents" / f"agent-{agent}.jsonl", lines, b"")
    return size


def _write(path: Path, lines: list[dict[str, Any]], end: bytes) -> int:
    path.parent.mkdir(parents=True, exist_ok=True)
    data = "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines).encode() + end
    return path.write_bytes(data)


def fill(root: Path, megabytes: float, seed: int = 7) -> list[Session]:
    sessions, size = [], 0
    for session in Corpus(seed).sessions():
        sessions.append(session)
        size += write(session, root)
        if size >= megabytes * 1e6:
            break
    return sessions


if __name__ == "__main__":
    filled = fill(Path(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3]) if len(sys.argv) > 3 else 7)
    unique = {it.message_id: it.usage for session in filled for it in session.responses if it.usage}
    print(f"{len(filled)} sessions, {len(unique)} responses: {sum(unique.values(), Usage())}")
