"""The table of formats: one row per agent whose files we read.

A new agent is a module, a row here, a place in `agents/locations.py`, and a folder of real files under `tests/data/`.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from types import ModuleType

import msgspec

from agent_logger.agents.source_files import SourceFiles
from agent_logger.model.ids import UUID_PATTERN
from agent_logger.model.responses import ModelResponse
from agent_logger.model.session import Session

FIRST_BYTES = 1 << 16  # of a file, enough to see whose it is


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """Modules are imported when they are needed: most commands read the files of one agent."""

    agent: str
    module: str  # has `session_of`
    responses_module: str | None = None  # has `responses_of`, where that one does not
    names_parents: bool = False  # the module has `parent_of`
    lists_every_call: bool = False  # its files do, those for titles and the like too
    name: re.Pattern[str]  # of a main file: the end of its path
    begins: Callable[[bytes], bool]  # whether a main file begins with these bytes

    def session_of(self, source: SourceFiles) -> Session:
        session: Session = _module(self.module).session_of(source)
        return session

    def responses_of(self, source: SourceFiles) -> Iterator[ModelResponse]:
        module = _module(self.responses_module or self.module)
        responses: Iterator[ModelResponse] = module.responses_of(source)
        return responses

    def parent_of(self, source: SourceFiles) -> str | None:
        """The session that this one was forked from, as its file says, where files do. Reads its beginning alone."""
        parent: str | None = _module(self.module).parent_of(source) if self.names_parents else None
        return parent


@cache
def _module(name: str) -> ModuleType:
    return import_module(name)


def format_of(agent: str) -> Format | None:
    return next((row for row in FORMATS if row.agent == agent), None)


def recognised(path: str, first: bytes) -> Format | None:
    """Whose main file it is, by the end of its path and its first bytes; none if it is nobody's, or a sub-agent's."""
    return next((row for row in FORMATS if row.name.search(path) and row.begins(first)), None)


# ---------------------------------------------------------------- how files begin


class _CodexPayload(msgspec.Struct, gc=False):
    id: str
    source: str | dict[str, msgspec.Raw] = ""  # an object, for a sub-agent


class _CodexLine(msgspec.Struct, gc=False):
    type: str
    payload: _CodexPayload


_codex_line = msgspec.json.Decoder(_CodexLine).decode
_CODEX_META = re.compile(rb'\{"timestamp":"[^"]*",(?:"ordinal":\d+,)?"type":"session_meta","payload":\{')
_CODEX_BARE = re.compile(rb'\{"id":"[^"]*","timestamp":"[^"]*"[,}]')  # before 0.32


def is_codex(first: bytes) -> bool:
    """Instructions may make the first line longer than what is seen of it: then a sub-agent's role tells it."""
    line = first.split(b"\n", 1)[0]
    if _CODEX_BARE.match(line):
        return True
    try:
        head = _codex_line(line)
    except (ValueError, RecursionError):
        return bool(_CODEX_META.match(line)) and b'"source":{"subagent"' not in line
    return head.type == "session_meta" and isinstance(head.payload.source, str)


class _GeminiLine(msgspec.Struct, gc=False):
    id: str = msgspec.field(name="sessionId")
    kind: str = "main"


_gemini_line = msgspec.json.Decoder(_GeminiLine).decode


def is_gemini_cli(first: bytes) -> bool:
    try:
        return _gemini_line(first.split(b"\n", 1)[0]).kind == "main"
    except (ValueError, RecursionError):
        return b'"sessionId":' in first and b'"kind": "subagent"' not in first  # an older, indented document


def is_opencode(first: bytes) -> bool:
    """A database, or the file of a session that no other started."""
    return first.startswith(b"SQLite format 3\0") or (first[:1] == b"{" and b'"parentID"' not in first)


class _ClaudeLine(msgspec.Struct, gc=False):
    type: str


_claude_line = msgspec.json.Decoder(_ClaudeLine).decode


def is_claude_code(first: bytes) -> bool:
    """An empty file is one too: some versions leave one per resume."""
    lines = first.split(b"\n")
    return not is_qwen_code(first) and (first == b"" or any(map(_is_claude_line, lines)) or len(lines) == 1)


_QWEN_LINE = re.compile(rb'\{"uuid":"[^"]*","parentUuid":[^{]*"message":\{"role":"\w+","parts":\[')


def is_qwen_code(first: bytes) -> bool:
    """Lines as Claude Code's, but for what is in them."""
    return any(map(_QWEN_LINE.match, first.split(b"\n")))


def _is_claude_line(line: bytes) -> bool:
    try:
        return bool(_claude_line(line).type)
    except (ValueError, RecursionError):
        return False


FORMATS = (
    Format(
        agent="claude-code",
        module="agent_logger.agents.claude_code.transcript.session",
        responses_module="agent_logger.agents.claude_code.transcript.responses",
        name=re.compile(rf"(?:^|/){UUID_PATTERN}\.jsonl$"),
        begins=is_claude_code,
    ),
    Format(
        agent="codex",
        module="agent_logger.agents.codex.session",
        names_parents=True,
        lists_every_call=True,
        name=re.compile(r"(?:^|/)rollout-[^/]+\.jsonl$"),
        begins=is_codex,
    ),
    Format(
        agent="gemini-cli",
        module="agent_logger.agents.gemini_cli.session",
        name=re.compile(r"(?:^|/)session-[^/]+\.jsonl?$"),
        begins=is_gemini_cli,
    ),
    Format(
        agent="opencode",
        module="agent_logger.agents.opencode.session",
        names_parents=True,
        name=re.compile(r"(?:^|/)(?:opencode[^/]*\.db|storage/session/[^/]+/ses_[^/]+\.json)$"),
        begins=is_opencode,
    ),
    Format(
        agent="qwen-code",
        module="agent_logger.agents.qwen_code.session",
        name=re.compile(rf"(?:^|/){UUID_PATTERN}\.jsonl$"),
        begins=is_qwen_code,
    ),
)
