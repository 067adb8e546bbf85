"""A kit for agents on other providers: writes their sessions as Claude Code does, for the tools that read those.

writer = TranscriptWriter("openai")
writer.user("Why is it slow?")
answer = answer_of("/v1/chat/completions", body)
writer.assistant(answer)                      # one line per block
writer.tool_result(call["id"], "it is not")
print(json.dumps(writer.result()))            # what `--output-format json` prints
"""

import json
import logging
import os
import subprocess
import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agent_logger import __version__, config, platform
from agent_logger.agents.claude_code.folders import claude_roots, provider_root, variable_prefix
from agent_logger.agents.claude_code.naming import folder_name
from agent_logger.clock import CLOCK
from agent_logger.errors import SourceError, StoreError
from agent_logger.files.append import Appender
from agent_logger.files.git import branch_of
from agent_logger.home.facts import register_log_folder
from agent_logger.model.prices import NO_USAGE, price
from agent_logger.model.session import Block, Cost, Usage
from agent_logger.protocols.json_text import encode
from agent_logger.providers.blocks.registry import answer_blocks
from agent_logger.providers.registry import dialect_of
from agent_logger.transcripts.store import real

HOOK_SECONDS = 60
STOPPED = {  # stop reasons of each API, and Anthropic's names for them
    "stop": "end_turn", "STOP": "end_turn", "completed": "end_turn",
    "tool_calls": "tool_use", "function_call": "tool_use",
    "length": "max_tokens", "MAX_TOKENS": "max_tokens", "incomplete": "max_tokens",
    "content_filter": "refusal", "SAFETY": "refusal",
}  # fmt: skip

Json = dict[str, Any]
log = logging.getLogger("agent_logger")


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelAnswer:
    """What a model answered, in Anthropic's form."""

    blocks: Sequence[Json]
    model: str
    message_id: str
    usage: Usage | None  # none: not reported, or in an unknown form
    stop_reason: str

    @property
    def tool_uses(self) -> list[Json]:
        """The blocks of the answer that call a tool."""
        return [block for block in self.blocks if block["type"] == "tool_use"]


def answer_of(path: str, body: bytes) -> ModelAnswer:
    """The answer of an endpoint, streamed or not, read by its path: `/v1/chat/completions`, `/v1/responses`, Gemini's.

    Raises `SourceError` if the body is not an answer, or reports an error.
    """
    dialect = dialect_of("", path)
    answer = dialect.read(body) if dialect else None
    if dialect is None or answer is None or answer.error or answer.message is None:
        reason = answer.error.message if answer and answer.error else "not a model response"
        raise SourceError(f"{path}: {reason}")
    blocks = [_block(block) for block in answer_blocks(dialect, answer.message)]
    calls = any(block["type"] == "tool_use" for block in blocks)
    stopped = answer.stop_reason or "stop"
    return ModelAnswer(
        blocks=blocks,
        model=answer.model or "unknown",
        message_id=answer.message_id or f"msg_{uuid.uuid4().hex}",
        usage=answer.usage,
        stop_reason="tool_use" if calls else STOPPED.get(stopped, stopped),
    )


def _block(block: Block) -> Json:
    match block.kind:
        case "text":
            return {"type": "text", "text": block.text}
        case "thinking":
            return {"type": "thinking", "thinking": block.text, "signature": ""}
        case "tool_use":
            name = block.id or f"call_{uuid.uuid4().hex}"
            return {"type": "tool_use", "id": name, "name": block.name, "input": block.input or {}}
    return block.raw if isinstance(block.raw, dict) and "type" in block.raw else {"type": "text", "text": block.text}


class TranscriptWriter:
    """Write one session to a file where tools look for Claude Code's; for the provider `openai` that is
    `OPENAI_CONFIG_DIR`, if it is set.

    Every line is written at once. A disk that fails raises nothing: `lost` counts the lines. Pass `session_id`, a UUID,
    to continue a session. Raises `StoreError` if another process writes to the session.
    """

    def __init__(
        self,
        provider: str,
        *,
        cwd: str | os.PathLike[str] | None = None,
        session_id: str | None = None,
        version: str = __version__,
        permission_mode: str = "default",
    ) -> None:
        self.provider, self.cwd = provider, real(Path(cwd or Path.cwd()))
        self.session_id = str(uuid.UUID(session_id)) if session_id else str(uuid.uuid4())
        root = provider_root(provider)
        self.path = root / "projects" / folder_name(self.cwd) / f"{self.session_id}.jsonl"
        if root not in claude_roots():
            register_log_folder(config.home(), root / "projects")  # so that commands find it
        self.lost = 0
        self._version, self._permission_mode = version, permission_mode
        self._began = time.monotonic()
        self._last: str | None = None
        self._printed: list[Json] = []
        self._answers: list[ModelAnswer] = []
        self._results = 0
        self._file: Appender | None = None

    # ------------------------------------------------------------ what happens

    def user(self, content: str | Sequence[Json]) -> None:
        """Write what a person said; call this before you send it."""
        self._append("user", {"role": "user", "content": content}, permissionMode=self._permission_mode)

    def assistant(self, answer: ModelAnswer) -> None:
        """Write what the model answered: a line for each block, each with the usage of the whole answer."""
        self._answers.append(answer)
        for block in answer.blocks:
            message = {
                "id": answer.message_id,
                "type": "message",
                "role": "assistant",
                "model": answer.model,
                "content": [block],
                "stop_reason": answer.stop_reason,
                "stop_sequence": None,
                "usage": usage_of(answer.usage) if answer.usage else None,
            }
            self._print("assistant", message, self._append("assistant", message))

    def tool_result(self, tool_use_id: str, content: str | Sequence[Json], *, is_error: bool = False) -> None:
        """Write the result of a tool that the model called."""
        self._results += 1
        block = {"type": "tool_result", "tool_use_id": tool_use_id, "content": content, "is_error": is_error}
        message = {"role": "user", "content": [block]}
        self._print("user", message, self._append("user", message))

    def summary(self, text: str) -> None:
        """Write a summary of the session so far."""
        self._write({"type": "summary", "summary": text, "leafUuid": self._last, "sessionId": self.session_id})

    def close(self) -> None:
        """Close the file. What is written later continues the session."""
        if self._file:
            self._file.close()
            self._file = None

    # ------------------------------------------------------------ what is printed

    def result(self, *, is_error: bool = False) -> list[Json]:
        """What `--output-format json` prints: all messages, and how the run ended. An unknown cost is `null`."""
        usage = sum((answer.usage for answer in self._answers if answer.usage), Usage())
        cost = Cost.total(
            price(answer.usage, answer.model) if answer.usage else Cost(nano_usd=None, reason=NO_USAGE)
            for answer in self._answers
        )
        texts = [block["text"] for answer in self._answers[-1:] for block in answer.blocks if block["type"] == "text"]
        start = {
            "type": "system",
            "subtype": "init",
            "cwd": self.cwd,
            "session_id": self.session_id,
            "model": self._answers[0].model if self._answers else None,
            "permissionMode": self._permission_mode,
        }
        end = {
            "type": "result",
            "subtype": "error_during_execution" if is_error else "success",
            "is_error": is_error,
            "result": texts[-1] if texts else "",
            "session_id": self.session_id,
            "duration_ms": round((time.monotonic() - self._began) * 1000),
            "num_turns": 1 + self._results,
            "total_cost_usd": None if cost.unpriced else cost.usd,
            "usage": usage_of(usage),
            "uuid": str(uuid.uuid4()),
        }
        return [start, *self._printed, end]

    def _print(self, kind: str, message: Json, name: str) -> None:
        common = {"parent_tool_use_id": None, "session_id": self.session_id, "uuid": name}
        self._printed.append({"type": kind, "message": message, **common})

    # ------------------------------------------------------------ hooks

    def hook_environment(self) -> dict[str, str]:
        """The variables that a hook gets, under this provider's name and under Claude's, which most hooks read."""
        return {f"{variable_prefix(self.provider)}_PROJECT_DIR": self.cwd, "CLAUDE_PROJECT_DIR": self.cwd}

    def run_hook(self, command: str, event: str, **more: Any) -> int:
        """Run a hook as the client does, in a shell with JSON as its input. Return its exit status; 124 if it takes too
        long."""
        given = {
            "session_id": self.session_id,
            "transcript_path": str(self.path),
            "cwd": self.cwd,
            "permission_mode": self._permission_mode,
            "hook_event_name": event,
            **more,
        }
        environment = config.child_environment(**self.hook_environment())
        try:
            return subprocess.run(
                ["/bin/sh", "-c", command],
                input=encode(given),
                stdout=subprocess.DEVNULL,
                env=environment,
                cwd=self.cwd,
                timeout=HOOK_SECONDS,
                check=False,
            ).returncode
        except subprocess.TimeoutExpired:
            return 124

    # ------------------------------------------------------------ lines

    def _append(self, kind: str, message: Json, **more: Any) -> str:
        name = str(uuid.uuid4())
        line = {
            "parentUuid": self._parent(),
            "isSidechain": False,
            "type": kind,
            "message": message,
            "uuid": name,
            "timestamp": CLOCK.now(),
            **more,
            "userType": "external",
            "entrypoint": self.provider,
            "cwd": self.cwd,
            "sessionId": self.session_id,
            "version": self._version,
            "gitBranch": branch_of(Path(self.cwd)) or "HEAD",
        }
        self._write(line)
        self._last = name
        return name

    def _parent(self) -> str | None:
        """The id of the line before; in a continued session, that of the last line in its file."""
        if self._last is None and self._file is None and self.path.is_file():
            self._last = _last_of(self.path)
        return self._last

    def _write(self, line: Json) -> None:
        try:
            self._file = self._file or _opened(self.path)
            self._file.append(encode(line))
        except OSError as error:
            self.lost += 1
            if self.lost == 1:
                log.warning("%s: cannot write the whole session: %s", self.path, error)


def usage_of(usage: Usage) -> Json:
    """The token counts under Anthropic's names."""
    return {
        "input_tokens": usage.input_tokens,
        "cache_creation_input_tokens": usage.cache_write_tokens,
        "cache_read_input_tokens": usage.cache_read_tokens,
        "output_tokens": usage.output_tokens,
    }


def _opened(path: Path) -> Appender:
    held = _open_or_create(path)
    try:
        owned = platform.lock(held)
    except platform.NoLocksError:
        owned = True
    if not owned:
        held.close()
        raise StoreError(f"{path}: another process is writing to it")
    appender = Appender(held)
    appender.end_torn_line()
    return appender


def _open_or_create(path: Path) -> platform.Held:
    platform.make_folder(path.parent)
    return platform.open_or_create(path)


def _last_of(path: Path) -> str | None:
    for line in reversed(path.read_bytes().split(b"\n")):
        try:
            fields: Mapping[str, Any] = json.loads(line)
            return str(fields["uuid"])
        except (ValueError, LookupError, TypeError):
            continue
    return None
