"""Claude Code's files for tests: the real ones of `tests/data` with what is true of them, and ones made up by line."""

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from agent_logger.agents.claude_code.opener import claude_source
from agent_logger.agents.claude_code.transcript.lines import records_of
from agent_logger.agents.source_files import File, SourceFiles
from agent_logger.model.session import Usage
from agent_logger.protocols import jsonl
from agent_logger.protocols.jsonl import Damage
from agent_logger.protocols.lines import LineSplitter
from tests.providers.captures import DATA, Capture, captures

_MESSAGE = re.compile(rb'"id": ?"(msg_\w+)"')
_TOOL = re.compile(rb'"id": ?"(toolu_\w+)"')


@dataclass(frozen=True)
class Fixture:
    """One scenario that a real client played, and what the API it talked to says of it."""

    folder: Path

    @property
    def name(self) -> str:
        return self.folder.relative_to(DATA).as_posix()

    def paths(self, home: str = "home") -> list[Path]:
        """The main files of its sessions."""
        return sorted(self.folder.joinpath(home).glob("**/projects/*/*.jsonl"))

    def sources(self) -> list[SourceFiles]:
        return [claude_source(path) for path in self.paths()]

    def answers(self, *kinds: str) -> list[Capture]:
        """The calls of these kinds that were answered to the end, with a message."""
        return [call for call in _calls(self.name) if call.truth["kind"] in kinds and _is_answer(call)]

    def message_ids(self, *kinds: str) -> set[str]:
        return {message_id(call) for call in self.answers(*kinds)}

    def true_usage(self) -> Usage:
        manifest = json.loads((self.folder / "manifest.json").read_text())
        told = [kind for it in manifest["truth_usage_of_complete_responses"].values() for kind in it.values()]
        return Usage(
            input_tokens=sum(it["input_tokens"] for it in told),
            output_tokens=sum(it["output_tokens"] for it in told),
            cache_read_tokens=sum(it["cache_read_input_tokens"] for it in told),
            cache_write_tokens=sum(it["cache_creation_input_tokens"] for it in told),
        )


@cache
def fixtures() -> tuple[Fixture, ...]:
    return tuple(Fixture(it.parent) for it in sorted(DATA.glob("claude-*/*/*/manifest.json")))


def fixture(name: str) -> Fixture:
    return next(it for it in fixtures() if it.name == name)


def message_id(call: Capture) -> str:
    found = _MESSAGE.search(call.body)
    assert found, call.name
    return found[1].decode()


def tool_ids(call: Capture) -> list[str]:
    return list(dict.fromkeys(it.decode() for it in _TOOL.findall(call.body)))


@cache
def _calls(name: str) -> tuple[Capture, ...]:
    return tuple(call for call in captures() if call.name.rpartition("/")[0] == name)


def _is_answer(call: Capture) -> bool:
    return bool(call.truth["status"] == 200 and call.truth["complete"] and _MESSAGE.search(call.body))


# ---------------------------------------------------------------- made up

SESSION = "5b8b8aff-2b74-4ef0-9111-0f106543b103"


def time(second: float) -> str:
    return f"2026-11-15T10:{int(second) // 60:02}:{second % 60:06.3f}Z"


def line(kind: str, uuid: str, parent: str | None = None, at: float = 0, **fields: Any) -> dict[str, Any]:
    return {
        "type": kind,
        "uuid": uuid,
        "parentUuid": parent,
        "timestamp": time(at),
        "sessionId": SESSION,
        "cwd": "/home/user/project",
        **fields,
    }


def user(uuid: str, content: Any, parent: str | None = None, at: float = 0, **fields: Any) -> dict[str, Any]:
    return line("user", uuid, parent, at, message={"role": "user", "content": content}, **fields)


def assistant(
    uuid: str,
    message: str | None,
    *blocks: Any,
    parent: str | None = None,
    at: float = 0,
    output: int = 7,
    stop: str | None = "end_turn",
    model: str = "claude-opus-5-5",
    **fields: Any,
) -> dict[str, Any]:
    told = {
        "id": message,
        "role": "assistant",
        "model": model,
        "content": [text(it) if isinstance(it, str) else it for it in blocks],
        "stop_reason": stop,
        "usage": {"input_tokens": 3, "output_tokens": output},
    }
    return line("assistant", uuid, parent, at, message=told, **fields)


def text(it: str) -> dict[str, Any]:
    return {"type": "text", "text": it}


def use(called: str, name: str = "Bash", **given: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": called, "name": name, "input": given}


def result(called: str, content: Any = "done", **fields: Any) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": called, "content": content, **fields}


def data_of(lines: Iterable[dict[str, Any] | bytes]) -> bytes:
    return b"".join((it if isinstance(it, bytes) else json.dumps(it).encode()) + b"\n" for it in lines)


def file_of(lines: Iterable[dict[str, Any] | bytes], name: str = f"{SESSION}.jsonl", *, cut: bool = True) -> File:
    """`cut`: given as entries, as any reader takes them; else as bytes, as the quick one likes them."""
    data = data_of(lines)
    splitter = LineSplitter()
    entries = [entry for it in splitter.feed(data) for entry in jsonl.decode(it)]
    return File(name, entries, chunks=None if cut else lambda: [data[:100], data[100:]])


def damage_in(source: SourceFiles) -> list[Damage]:
    """The lines of a session's files that cannot be read."""
    return [item for file in (source.main, *source.others) for item in records_of(file) if isinstance(item, Damage)]


def source_of(
    lines: Iterable[dict[str, Any] | bytes],
    agents: Sequence[tuple[str, Sequence[dict[str, Any] | bytes]]] = (),
    texts: dict[str, str] | None = None,
    *,
    cut: bool = True,
) -> SourceFiles:
    others = [file_of(it, name, cut=cut) for name, it in agents]
    return SourceFiles(file_of(lines, cut=cut), others, (texts or {}).get)
